//! The credentials of a user.

use secrecy::{ExposeSecret as _, SecretString};

use super::{at, beside, is_set, malformed};
use crate::auth::{Auth, ClusterInfo, ExecPlugin};
use crate::config::{Compression, Config};
use crate::kubeconfig::model::{Cluster, Exec, User};
use crate::kubeconfig::{Entry, KubeconfigError, Place};

/// The extension of a cluster that is passed to plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// `config` is what the cluster has become so far.
pub(super) fn auth(
    user: &Entry<User>,
    config: &Config,
    cluster: &Entry<Cluster>,
) -> Result<Auth, KubeconfigError> {
    let Entry { value, place } = user;
    if let Some(provider) = &value.auth_provider {
        return Err(KubeconfigError::Unsupported {
            place: at(place, provider),
            field: "auth-provider",
            hint: "Kubernetes removed it in 1.26; use an exec plugin",
        });
    }
    let filled = |secret: &&SecretString| is_set(secret);
    let token = value.token.as_ref().map(|secret| &secret.0).filter(filled);
    let username = value.username.as_ref().filter(|name| !name.value.is_empty());
    if let (Some(_), Some(name)) = (token, username) {
        // client-go: "more than one authentication method found".
        let problem = "cannot be combined with token";
        return Err(malformed(at(place, name), "username", problem));
    }
    // client-go: a token file is re-read and wins over the token, which is its first value.
    if let Some(file) = value.token_file.as_ref().filter(|file| !file.is_empty()) {
        return Ok(Auth::token_file(beside(place, file)));
    }
    if let Some(token) = token {
        return Ok(Auth::secret_token(token.clone()));
    }
    if let Some(name) = username {
        let password = value.password.as_ref().map(|secret| secret.0.clone()).unwrap_or_default();
        return Ok(Auth::secret_basic(&name.value, password));
    }
    match &value.exec {
        Some(exec) => {
            let plugin = plugin(&exec.value, at(place, exec), config, cluster)?;
            // client-go asks no plugin where there is a certificate.
            let asked = config.tls.identity.is_none();
            Ok(if asked { Auth::exec(plugin) } else { Auth::none() })
        }
        None => Ok(Auth::none()),
    }
}

fn plugin(
    exec: &Exec,
    place: Place,
    config: &Config,
    cluster: &Entry<Cluster>,
) -> Result<ExecPlugin, KubeconfigError> {
    let Some(command) = exec.command.as_ref().filter(|command| !command.is_empty()) else {
        return Err(malformed(place, "command", "is required"));
    };
    let version = exec.api_version.clone().unwrap_or_default();
    if !matches!(
        version.as_str(),
        "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
    ) {
        return Err(malformed(place, "apiVersion", "is no known version of exec plugins"));
    }
    interactive(exec, &version, &place)?;
    // client-go: a command with a separator is a path beside the file, else it is looked up in PATH.
    let command = if command.contains('/') { beside(&place, command) } else { command.into() };
    let mut plugin = ExecPlugin::new(version, command);
    plugin.args.clone_from(&exec.args);
    for variable in &exec.env {
        let Some(name) = variable.name.clone().filter(|name| !name.is_empty()) else {
            return Err(malformed(place, "env", "has a variable without a name"));
        };
        let value = variable.value.as_ref().map(|value| value.0.clone()).unwrap_or_default();
        plugin.env.push((name, value));
    }
    plugin.install_hint.clone_from(&exec.install_hint);
    if exec.provide_cluster_info == Some(true) {
        plugin.cluster = Some(info(config, &cluster.value));
    }
    Ok(plugin)
}

/// Whether the plugin can do without a person. Nobody sits before a controller, so it is never offered one.
fn interactive(exec: &Exec, version: &str, place: &Place) -> Result<(), KubeconfigError> {
    let Some(mode) = exec.interactive_mode.as_ref().filter(|mode| !mode.value.is_empty()) else {
        // client-go: v1beta1 has a default, v1 has none.
        return if version.ends_with("/v1") {
            Err(malformed(place.clone(), "interactiveMode", "is required"))
        } else {
            Ok(())
        };
    };
    match mode.value.as_str() {
        "Never" | "IfAvailable" => Ok(()),
        "Always" => Err(KubeconfigError::Unsupported {
            place: at(place, mode),
            field: "interactiveMode",
            hint: "a plugin that asks a person cannot serve a controller",
        }),
        _ => {
            let problem = "must be Never, IfAvailable or Always";
            Err(malformed(at(place, mode), "interactiveMode", problem))
        }
    }
}

fn info(config: &Config, cluster: &Cluster) -> ClusterInfo {
    ClusterInfo {
        server: cluster.server.as_ref().map(|server| server.value.clone()).unwrap_or_default(),
        tls_server_name: config.tls.server_name.clone(),
        insecure: config.tls.insecure,
        authority: config.tls.authority.clone(),
        proxy_url: cluster
            .proxy_url
            .as_ref()
            .map(|url| url.value.0.clone())
            .filter(|url| !url.expose_secret().is_empty()),
        disable_compression: config.compression == Compression::Never,
        config: cluster
            .extensions
            .iter()
            .filter(|extension| extension.name.as_deref() == Some(EXEC_EXTENSION))
            .map(|extension| extension.extension.clone())
            .next(),
    }
}
