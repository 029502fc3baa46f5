//! The lock of this crate's hand-offs, in one place, so that models can replace it.

#[cfg(not(kubestrata_loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(kubestrata_loom)]
pub(crate) use self::model::Mutex;

/// Loom's lock with the methods of `parking_lot`.
#[cfg(kubestrata_loom)]
mod model {
    use loom::sync::MutexGuard;

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
}
