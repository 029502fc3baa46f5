//! The server that a demo runs on.

use std::path::Path;
use std::task::{Context, Poll};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kubestrata_apiserver::Server;
use kubestrata_controller::api_types::{BoxFuture, SystemWorld, World as _};
use kubestrata_controller::prelude::*;
use tokio::time::timeout;
use tower::{Service, ServiceExt as _};

/// Why the demo cannot run on the server.
#[derive(Debug)]
pub enum Refused {
    /// Its own ReplicaSet controller would do the work twice.
    ControllerManager { holder: String, age: SignedDuration },
    /// Nobody answered.
    Silent { limit: Duration },
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ControllerManager { holder, age } => write!(
                f,
                "a kube-controller-manager is at work on this server: {holder} renewed the lease \
                 kube-system/kube-controller-manager {} s ago; its ReplicaSet controller and the demo's would both make pods",
                age.as_secs()
            ),
            Self::Silent { limit } => {
                write!(f, "the server did not answer within {} s", limit.as_secs())
            }
        }
    }
}

impl std::error::Error for Refused {}

/// Connects to the server of a kubeconfig, or starts one in this process.
pub fn connect(kubeconfig: Option<&Path>) -> Result<Transport, BoxError> {
    Ok(match kubeconfig {
        Some(path) => Transport::connect(Config::from_kubeconfig(path)?)?,
        None => Transport::over(Patient(Server::start_default()), Config::in_process())?,
    })
}

/// A server in the same process answers at once, so that a demo over it would never wait, and hear no Ctrl-C. This one
/// lets others have a turn before each request, as every real one does.
#[derive(Debug, Clone)]
struct Patient<S>(S);

impl<S, R> Service<R> for Patient<S>
where
    S: Service<R, Error: Send, Response: Send, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            server.oneshot(request).await
        })
    }
}

/// The server's name, for people.
pub fn place(kubeconfig: Option<&Path>) -> String {
    kubeconfig.map_or("the embedded server".to_owned(), |path| path.display().to_string())
}

/// A name for the demo's own namespace that nobody else has.
pub fn namespace() -> String {
    format!("kubestrata-demo-{:08x}", SystemWorld::new().random() >> 32)
}

/// Refuses where a kube-controller-manager holds its lease.
pub async fn check(transport: &Transport) -> Result<(), BoxError> {
    let key = ObjectKey::namespaced("kube-system", "kube-controller-manager");
    let limit = Duration::from_secs(30);
    let read = timeout(limit, transport.get_opt::<Lease>(&key)).await;
    let Some(lease) = read.map_err(|_| Refused::Silent { limit })?? else {
        return Ok(());
    };
    let Some(spec) = lease.into_inner().spec else { return Ok(()) };
    let (Some(holder), Some(renewed)) = (spec.holder_identity, spec.renew_time) else {
        return Ok(());
    };
    let age = Timestamp::now().duration_since(renewed.0);
    // A lease counts as fresh for its own duration, and twice that for clocks that differ.
    let fresh = SignedDuration::from_secs(i64::from(spec.lease_duration_seconds.unwrap_or(15)) * 3);
    if holder.is_empty() || age > fresh {
        return Ok(());
    }
    Err(Refused::ControllerManager { holder, age }.into())
}
