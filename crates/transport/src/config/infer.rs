//! Finding the configuration: environment, home, pod.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kubestrata_api_types::FOREVER;

use super::proxy::from_variables;
use super::{Config, Protocol, ProxyVariableError};
use crate::auth::Auth;
use crate::kubeconfig::{Kubeconfig, KubeconfigError};
use crate::tls::Pem;

/// Where Kubernetes puts a pod's credentials.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// No configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[from] KubeconfigError),
    /// There is no kubeconfig, and this is no pod.
    #[error("no kubeconfig found (tried: {}), and this is no pod", paths(.tried))]
    NotFound {
        /// Where a kubeconfig was looked for.
        tried: Vec<PathBuf>,
        /// What is missing for a pod.
        #[source]
        in_cluster: InClusterError,
    },
    /// This is no pod, or one without credentials.
    #[error("this is no pod with a service account")]
    InCluster(#[from] InClusterError),
    /// The proxy of the environment cannot be used.
    #[error("the proxy cannot be used")]
    Proxy(#[from] ProxyVariableError),
}

fn paths(paths: &[PathBuf]) -> String {
    let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    texts.join(", ")
}

/// What is missing for a pod.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InClusterError {
    /// An environment variable that Kubernetes sets in every pod is not set.
    #[error("environment variable {name} is not set")]
    Variable {
        /// The variable.
        name: &'static str,
    },
    /// The variables make no URL.
    #[error("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make no URL")]
    Address,
    /// A file of the service account is missing.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What a pod finds around itself. [`InCluster::from_env`] for real; tests fill it in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "tests write literals of it")]
pub struct InCluster {
    /// Address of the API server.
    pub host: String,
    /// Its port.
    pub port: String,
    /// Folder with `token`, `ca.crt` and `namespace`.
    pub folder: PathBuf,
}

impl InCluster {
    /// From `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT` and the folder of the service account.
    ///
    /// # Errors
    ///
    /// A variable is not set: this is no pod.
    pub fn from_env() -> Result<Self, InClusterError> {
        Self::from_variables(&|name| std::env::var_os(name))
    }

    fn from_variables(
        variable: &dyn Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, InClusterError> {
        let text = |name| {
            variable(name)
                .and_then(|value| value.into_string().ok())
                .filter(|value| !value.is_empty())
                .ok_or(InClusterError::Variable { name })
        };
        Ok(Self {
            host: text("KUBERNETES_SERVICE_HOST")?,
            port: text("KUBERNETES_SERVICE_PORT")?,
            folder: PathBuf::from(SERVICE_ACCOUNT),
        })
    }

    /// The configuration of this pod. Token and certificate authority are read again as they are renewed.
    ///
    /// # Errors
    ///
    /// A file is missing, or the address makes no URL.
    pub fn config(&self) -> Result<Config, InClusterError> {
        let host = &self.host;
        // net.JoinHostPort: an IPv6 address goes into brackets.
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut config = Config::new(&format!("https://{host}:{}", self.port))
            .map_err(|_| InClusterError::Address)?;
        let readable = |name: &str| {
            let path = self.folder.join(name);
            match std::fs::File::open(&path) {
                Ok(_) => Ok(path),
                Err(source) => Err(InClusterError::File { path, source }),
            }
        };
        config.auth = Auth::token_file(readable("token")?);
        config.tls.authority = Some(Pem::file(readable("ca.crt")?));
        if let Ok(namespace) = std::fs::read_to_string(self.folder.join("namespace")) {
            let namespace = namespace.trim();
            if !namespace.is_empty() {
                namespace.clone_into(&mut config.namespace);
            }
        }
        Ok(config)
    }
}

impl Config {
    /// What kubectl would use, else what a pod would: the files of `KUBECONFIG`, else `~/.kube/config`, else the service
    /// account of the pod we run in. Where that names no proxy, the environment may ([`Config::proxy_from_env`]), and it has its
    /// say about HTTP/2 ([`Config::protocol_from_env`]).
    ///
    /// # Errors
    ///
    /// A kubeconfig is there but of no use, or there is nothing at all.
    pub fn infer() -> Result<Self, ConfigError> {
        Self::infer_from(&|name| std::env::var_os(name))
    }

    pub(super) fn infer_from(
        variable: &dyn Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::infer_server(variable)?;
        // client-go: the `proxy-url` of a kubeconfig first, whatever the environment excepts.
        if config.proxy.is_none() {
            config.proxy = from_variables(&config.server, variable)?;
        }
        Ok(config.protocol_from(variable))
    }

    /// The same with what the environment says of HTTP/2, as apimachinery's `net.SetTransportDefaults` reads it:
    ///
    /// - `DISABLE_HTTP2`: HTTP/1.1 alone if it is anything but empty, be it `false`; for a proxy or load balancer on the way
    ///   that cannot do HTTP/2.
    /// - `HTTP2_READ_IDLE_TIMEOUT_SECONDS`: [`Timeouts::ping_interval`](crate::Timeouts::ping_interval); 0 for no pings.
    /// - `HTTP2_PING_TIMEOUT_SECONDS`: [`Timeouts::ping_answer`](crate::Timeouts::ping_answer); 0 for what it is.
    ///
    /// A number that is none is passed over with a warning. [`Config::infer`], [`Config::from_kubeconfig`] and
    /// [`Config::in_cluster`] do all this by themselves.
    #[must_use]
    pub fn protocol_from_env(self) -> Self {
        self.protocol_from(&|name| std::env::var_os(name))
    }

    fn protocol_from(mut self, variable: &dyn Fn(&'static str) -> Option<OsString>) -> Self {
        if variable("DISABLE_HTTP2").is_some_and(|value| !value.is_empty()) {
            tracing::info!("HTTP/2 is switched off by DISABLE_HTTP2");
            self.protocol = Protocol::Http1;
        }
        let seconds = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            let seconds = value.to_str().and_then(|text| text.parse().ok());
            if seconds.is_none() {
                tracing::warn!(name, "the variable is no number of seconds");
            }
            seconds.map(Duration::from_secs)
        };
        if let Some(interval) = seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS") {
            self.timeouts.ping_interval = if interval.is_zero() { FOREVER } else { interval };
        }
        // x/net: a connection must have some time to answer, so that none means as much as usual.
        let answer = seconds("HTTP2_PING_TIMEOUT_SECONDS").filter(|answer| !answer.is_zero());
        if let Some(answer) = answer {
            self.timeouts.ping_answer = answer;
        }
        self
    }

    fn infer_server(
        variable: &dyn Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        let files: Vec<PathBuf> = match (variable("KUBECONFIG"), variable("HOME")) {
            (Some(list), _) if !list.is_empty() => {
                std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
            }
            (_, Some(home)) if !home.is_empty() => vec![Path::new(&home).join(".kube/config")],
            _ => Vec::new(),
        };
        let tried = match Kubeconfig::read_all(files) {
            Ok(kubeconfig) => return Ok(kubeconfig.config(None)?),
            // As for kubectl, files none of which exists are the same as no files.
            Err(KubeconfigError::NotFound { tried }) => tried,
            Err(error) => return Err(error.into()),
        };
        let pod = InCluster::from_variables(variable).and_then(|pod| pod.config());
        pod.map_err(|in_cluster| ConfigError::NotFound { tried, in_cluster })
    }

    /// The current context of a kubeconfig file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or used.
    pub fn from_kubeconfig(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Ok(Kubeconfig::read(path)?.config(None)?.proxy_from_env()?.protocol_from_env())
    }

    /// The service account of the pod we run in.
    ///
    /// # Errors
    ///
    /// This is no pod, or one without a service account.
    pub fn in_cluster() -> Result<Self, ConfigError> {
        Ok(InCluster::from_env()?.config()?.proxy_from_env()?.protocol_from_env())
    }
}
