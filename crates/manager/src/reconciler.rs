//! What users write.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use kubestrata_api_types::{BoxError, ObjectKey};

use crate::{Action, Context};

/// Brings the object of a key into its desired state.
///
/// It is told a key, not what happened: it reads the state that is there, and does what is missing. The object may be
/// gone; then it cleans up. No key is reconciled twice at once, different keys are.
///
/// The cache may be behind the reconciler's own writes. Write so that a repeated step does no harm (names that follow
/// from the object, so that a second create is refused; preconditions on updates), or wait, see [`Context`].
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// Reconciles one key.
    ///
    /// The future is dropped where it stands if the controller has a time limit, or the manager must stop.
    ///
    /// # Errors
    ///
    /// Any error: it is reported, counted, and the key is tried again after a back-off, which grows with each failure in
    /// a row; not if a [`TerminalError`](crate::TerminalError) is in the chain of sources.
    ///
    /// # Panics
    ///
    /// A panic is caught and counts as an error.
    async fn reconcile(&self, context: &Context, key: ObjectKey) -> Result<Action, BoxError>;
}

#[async_trait]
impl<R: Reconciler + ?Sized> Reconciler for Arc<R> {
    async fn reconcile(&self, context: &Context, key: ObjectKey) -> Result<Action, BoxError> {
        (**self).reconcile(context, key).await
    }
}

/// A reconciler from a function.
pub fn from_fn<F, Fut>(f: F) -> FromFn<F>
where
    F: Fn(Context, ObjectKey) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send,
{
    FromFn(f)
}

/// The reconciler that [`from_fn`] makes.
pub struct FromFn<F>(F);

#[async_trait]
impl<F, Fut> Reconciler for FromFn<F>
where
    F: Fn(Context, ObjectKey) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send,
{
    async fn reconcile(&self, context: &Context, key: ObjectKey) -> Result<Action, BoxError> {
        (self.0)(context.clone(), key).await
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFn")
    }
}
