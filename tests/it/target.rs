//! The servers that scenarios run against.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{
    Collection, DeleteOptions, Kind as _, ListOptions, ObjectKey, ResourceType, Scope,
};
use kubestrata_apiserver::{Listen, Server, Serving};
use kubestrata_codec::{Client as _, Dynamic};
use kubestrata_transport::{Config, Protocol, Retry, Transport};
use tower::util::BoxCloneSyncService;

use crate::bed::{SOON, Stack, eventually};
use crate::kinds::{Widget, widget_definition};

/// Names the kubeconfig of a real server; without it there are no trials against one.
const REAL: &str = "KUBESTRATA_REAL_KUBECONFIG";

/// A kind of server, and the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The embedded server, called directly.
    InProcess,
    /// The embedded server over HTTP/1.1, without TLS.
    Plain,
    /// The embedded server over HTTP/2 and TLS.
    Tls,
    /// kube-apiserver.
    Real,
}

impl Target {
    /// Those that can be used now.
    pub(crate) fn available() -> Vec<Self> {
        let mut targets = vec![Self::InProcess, Self::Plain, Self::Tls];
        if std::env::var_os(REAL).is_some() {
            targets.push(Self::Real);
        }
        targets
    }

    /// For the names of trials.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Plain => "http1",
            Self::Tls => "tls_http2",
            Self::Real => "real",
        }
    }
}

/// A server that runs, or that was running.
pub(crate) struct Live {
    /// What kind it is.
    pub(crate) target: Target,
    /// What answers requests.
    pub(crate) stack: Stack,
    /// The embedded server itself, for what no client can ask of it.
    pub(crate) server: Option<Server>,
    serving: Option<Serving>,
    config: Config,
}

impl Live {
    /// Starts an embedded server, or joins the real one.
    pub(crate) async fn start(target: Target) -> Self {
        let server = (target != Target::Real).then(Server::start_default);
        let listen = match target {
            Target::Plain => Some(Listen::new()),
            Target::Tls => Some(Listen::new().tls()),
            Target::InProcess | Target::Real => None,
        };
        let serving = match (&server, listen) {
            (Some(server), Some(listen)) => Some(server.listen(listen).await.unwrap()),
            _ => None,
        };
        let mut config = match (target, &serving) {
            (Target::Real, _) => Config::from_kubeconfig(real_kubeconfig()).unwrap(),
            (_, Some(serving)) => from_text(&serving.kubeconfig()),
            (_, None) => Config::in_process(),
        };
        match target {
            Target::Plain => config.protocol = Protocol::Http1,
            Target::Tls => config.protocol = Protocol::Http2,
            Target::InProcess | Target::Real => {}
        }
        // No trial waits for these, and a busy machine may be late.
        (config.timeouts.connect, config.timeouts.tls) = (SOON, SOON);
        (config.timeouts.wait, config.timeouts.body) = (SOON, SOON);
        config.timeouts.watch_answer = SOON;
        let stack = connect(server.as_ref(), target, config.clone());
        Self { target, stack, server, serving, config }
    }

    /// Another way to the same server, which asks once.
    pub(crate) fn stack_without_retries(&self) -> Stack {
        let mut config = self.config();
        config.retry = Retry::never();
        connect(self.server.as_ref(), self.target, config)
    }

    /// How to connect to it.
    pub(crate) fn config(&self) -> Config {
        self.config.clone()
    }

    /// The certificate that its own is to be checked with.
    pub(crate) fn authority(&self) -> String {
        let serving = self.serving.as_ref().expect("a server with sockets");
        serving.authority().expect("a server with TLS").to_owned()
    }

    /// Makes a namespace.
    pub(crate) async fn create_namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        self.stack.create(&namespace).await.expect("a namespace can be made");
    }

    /// Removes a namespace, as far as the server does that by itself.
    pub(crate) async fn delete_namespace(&self, name: &str) {
        let key = ObjectKey::cluster(name);
        // Best effort: without a controller manager it stays, terminating, until the server itself is removed.
        let _ = self.stack.delete::<Namespace>(&key, DeleteOptions::default()).await;
    }

    /// Teaches the server the custom resource of this suite, by an object, as users do.
    pub(crate) async fn learn_widgets(&self) {
        let resource = ResourceType::from_static(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            Scope::Cluster,
        );
        let definition = Dynamic { resource: Arc::new(resource), value: widget_definition() };
        match self.stack.create(&definition).await {
            Err(error) if !error.is_already_exists() => panic!("no definition: {error:?}"),
            _ => {}
        }
        let all = Collection::new(Widget::resource().clone());
        eventually("widgets are served", async || {
            self.stack.list_encoded(all.clone(), ListOptions::default()).await.is_ok()
        })
        .await;
    }
}

fn connect(server: Option<&Server>, target: Target, config: Config) -> Stack {
    let transport = match server {
        Some(server) if target == Target::InProcess => Transport::over(server.clone(), config),
        _ => Transport::connect(config),
    };
    BoxCloneSyncService::new(transport.unwrap())
}

/// The kubeconfig of the real server. The folder around it is that of the script that runs the server.
pub(crate) fn real_kubeconfig() -> PathBuf {
    std::env::var_os(REAL).expect("trials against a real server run only if there is one").into()
}

/// The configuration that a kubeconfig gives, by way of a file, as users have it.
pub(crate) fn from_text(kubeconfig: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    Config::from_kubeconfig(&path).unwrap()
}
