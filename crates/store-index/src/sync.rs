//! Locks, in one place, so that models can replace them.

#[cfg(not(kubestrata_loom))]
pub(crate) use parking_lot::{Mutex, RwLock};

#[cfg(kubestrata_loom)]
pub(crate) use self::model::{Mutex, RwLock};

/// Loom's locks with the methods of `parking_lot`.
#[cfg(kubestrata_loom)]
mod model {
    use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no test panics while it holds a lock")
        }
    }

    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no test panics while it holds a lock")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no test panics while it holds a lock")
        }
    }
}
