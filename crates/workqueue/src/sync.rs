//! The one lock of this crate, in a form that loom can model.

#[cfg(kubestrata_loom)]
use loom::sync as imp;
#[cfg(not(kubestrata_loom))]
use std::sync as imp;

pub(crate) use imp::MutexGuard;

/// A mutex without poisoning: every critical section of this crate leaves the state whole at each point that can panic.
#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
