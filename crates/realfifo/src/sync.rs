//! The locks and atomics of this crate: the standard library's, or loom's under `--cfg kubestrata_loom`.

#[cfg(not(kubestrata_loom))]
pub(crate) use std::sync::{
    Arc, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

#[cfg(kubestrata_loom)]
pub(crate) use loom::sync::{
    Arc, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

#[cfg(not(kubestrata_loom))]
type Inner<T> = std::sync::Mutex<T>;
#[cfg(kubestrata_loom)]
type Inner<T> = loom::sync::Mutex<T>;

/// A mutex that does not poison: every critical section of this crate leaves the state whole.
#[derive(Debug)]
pub(crate) struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
