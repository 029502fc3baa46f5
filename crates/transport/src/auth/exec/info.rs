//! What a plugin is told: `KUBERNETES_EXEC_INFO`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::ExecPlugin;
use crate::auth::AuthError;
use crate::tls::Pem;

/// `spec.cluster` of an `ExecCredential`, from the cluster of the kubeconfig (client-go `ConfigToExecCluster`).
#[derive(Clone)]
pub(crate) struct ClusterInfo {
    pub(crate) server: String,
    pub(crate) tls_server_name: Option<String>,
    pub(crate) insecure: bool,
    /// A file is read at each run, so that a plugin sees a renewed authority.
    pub(crate) authority: Option<Pem>,
    /// Can hold a password.
    pub(crate) proxy_url: Option<SecretString>,
    pub(crate) disable_compression: bool,
    /// The cluster's extension `client.authentication.k8s.io/exec`, passed on as it is.
    pub(crate) config: Option<serde_json::Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Credential<'a> {
    kind: &'static str,
    api_version: &'a str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster<'a>>,
    /// A controller has nobody to ask, and the plugin gets no standard input.
    interactive: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy_url: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_compression: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a serde_json::Value>,
}

pub(super) async fn render(plugin: &ExecPlugin) -> Result<SecretString, AuthError> {
    let cluster = match &plugin.cluster {
        Some(info) => Some(cluster(info, plugin).await?),
        None => None,
    };
    let credential = Credential {
        kind: "ExecCredential",
        api_version: &plugin.api_version,
        spec: Spec { cluster, interactive: false },
    };
    let text = serde_json::to_string(&credential);
    text.map(SecretString::from).map_err(|_| plugin.error("its configuration is no JSON"))
}

async fn cluster<'a>(info: &'a ClusterInfo, plugin: &ExecPlugin) -> Result<Cluster<'a>, AuthError> {
    let authority = match &info.authority {
        Some(pem) => {
            let contents = pem.read("certificate authority", &plugin.starting).await;
            Some(contents.map_err(|error| plugin.error(error.to_string()))?)
        }
        None => None,
    };
    Ok(Cluster {
        server: &info.server,
        tls_server_name: info.tls_server_name.as_deref(),
        insecure_skip_tls_verify: info.insecure,
        certificate_authority_data: authority.map(|pem| STANDARD.encode(pem.bytes())),
        proxy_url: info.proxy_url.as_ref().map(|url| url.expose_secret()),
        disable_compression: info.disable_compression,
        config: info.config.as_ref(),
    })
}
