//! From one context of a kubeconfig to a [`Config`].

mod auth;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde_saphyr::Spanned;

use self::auth::auth;
use super::model::{Cluster, Context, User};
use super::{Entry, Kubeconfig, KubeconfigError, Place};
use crate::auth::Impersonation;
use crate::config::{Compression, Config, Proxy};
use crate::tls::{Identity, Pem, Tls};

impl Kubeconfig {
    /// What a context says: its server, how to verify it, who we are, and the namespace to use by default.
    /// `None` takes the current context.
    ///
    /// A server without TLS gets no credentials, as by kubectl: everybody on the way could read them. Set
    /// [`Config::auth`] for one that shall have them nevertheless.
    ///
    /// # Errors
    ///
    /// There is no such context, cluster or user, a field has a bad value, or asks for what this crate does not do.
    pub fn config(&self, context: Option<&str>) -> Result<Config, KubeconfigError> {
        let (context, place) = self.context(context)?;
        let cluster = match &context.cluster {
            Some(name) => find("cluster", &self.clusters, name, place)?,
            None => return Err(missing(place, "cluster")),
        };
        let user = match context.user.as_ref().filter(|name| !name.value.is_empty()) {
            Some(name) => Some(find("user", &self.users, name, place)?),
            None => None,
        };
        let mut config = server(cluster)?;
        config.tls = tls(cluster, user)?;
        if let Some(user) = user {
            let auth = auth(user, &config, cluster)?;
            if config.is_tls() {
                config.auth = auth;
            } else if !auth.is_none() {
                tracing::warn!(
                    server = %config.server,
                    "the server is reached without TLS: it gets no credentials (client-go: IsConfigTransportTLS)"
                );
            }
            config.impersonate = impersonation(user)?;
        }
        if let Some(namespace) = context.namespace.as_ref().filter(|name| !name.is_empty()) {
            config.namespace.clone_from(namespace);
        }
        Ok(config)
    }

    fn context(&self, name: Option<&str>) -> Result<(&Context, &Place), KubeconfigError> {
        let (name, place) = match (name, &self.current) {
            (Some(name), _) => (name, None),
            (None, Some((name, place))) => (name.as_str(), Some(place)),
            (None, None) => {
                return Err(KubeconfigError::NoContext {
                    files: self.files().map(Path::to_owned).collect(),
                });
            }
        };
        let entry = self.contexts.get(name).ok_or_else(|| KubeconfigError::Unknown {
            place: place.cloned(),
            kind: "context",
            name: name.to_owned(),
            known: self.contexts.keys().cloned().collect(),
        })?;
        Ok((&entry.value, &entry.place))
    }
}

fn find<'a, T>(
    kind: &'static str,
    all: &'a std::collections::BTreeMap<String, Entry<T>>,
    name: &Spanned<String>,
    from: &Place,
) -> Result<&'a Entry<T>, KubeconfigError> {
    all.get(&name.value).ok_or_else(|| KubeconfigError::Unknown {
        place: Some(at(from, name)),
        kind,
        name: name.value.clone(),
        known: all.keys().cloned().collect(),
    })
}

fn at<T>(place: &Place, value: &Spanned<T>) -> Place {
    Place::new(&place.path, value.referenced.line())
}

fn is_set(secret: &SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

fn missing(place: &Place, field: &str) -> KubeconfigError {
    malformed(place.clone(), field, "is required")
}

fn malformed(place: Place, field: &str, problem: &str) -> KubeconfigError {
    KubeconfigError::Malformed { place, field: Some(field.to_owned()), problem: problem.to_owned() }
}

fn server(cluster: &Entry<Cluster>) -> Result<Config, KubeconfigError> {
    let Some(server) = cluster.value.server.as_ref().filter(|server| !server.value.is_empty())
    else {
        return Err(missing(&cluster.place, "server"));
    };
    let mut config = Config::new(&server.value).map_err(|error| {
        malformed(at(&cluster.place, server), "server", &format!("is no server URL: {error}"))
    })?;
    if let Some(proxy) = cluster.value.proxy_url.as_ref().filter(|proxy| is_set(&proxy.value.0)) {
        config.proxy = Some(Proxy::new(proxy.value.0.expose_secret()).map_err(|error| {
            malformed(at(&cluster.place, proxy), "proxy-url", &error.to_string())
        })?);
    }
    if cluster.value.disable_compression == Some(true) {
        config.compression = Compression::Never;
    }
    Ok(config)
}

fn tls(cluster: &Entry<Cluster>, user: Option<&Entry<User>>) -> Result<Tls, KubeconfigError> {
    let Entry { value, place } = cluster;
    let authority = pem(
        "certificate-authority-data",
        value
            .certificate_authority_data
            .as_ref()
            .map(|data| (data.value.as_str(), at(place, data))),
        value.certificate_authority.as_deref(),
        place,
    )?;
    let insecure = value.insecure_skip_tls_verify == Some(true);
    if insecure && authority.is_some() {
        // client-go: "specifying a root certificates file with the insecure flag is not allowed".
        let problem = "cannot be combined with certificate-authority";
        return Err(malformed(place.clone(), "insecure-skip-tls-verify", problem));
    }
    let mut tls = Tls { authority, insecure, ..Tls::default() };
    tls.server_name = value
        .tls_server_name
        .as_ref()
        .map(|name| name.value.clone())
        .filter(|name| !name.is_empty());
    let Some(Entry { value, place }) = user else { return Ok(tls) };
    let certificate = pem(
        "client-certificate-data",
        value.client_certificate_data.as_ref().map(|data| (data.value.as_str(), at(place, data))),
        value.client_certificate.as_deref(),
        place,
    )?;
    let key = pem(
        "client-key-data",
        value.client_key_data.as_ref().map(|data| (data.value.0.expose_secret(), at(place, data))),
        value.client_key.as_deref(),
        place,
    )?;
    tls.identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (None, None) => None,
        (Some(_), None) => return Err(malformed(place.clone(), "client-key", "is missing")),
        (None, Some(_)) => {
            return Err(malformed(place.clone(), "client-certificate", "is missing"));
        }
    };
    Ok(tls)
}

/// Inline data wins over a file, as in client-go. The data are base64 of PEM.
fn pem(
    field: &str,
    data: Option<(&str, Place)>,
    file: Option<&str>,
    from: &Place,
) -> Result<Option<Pem>, KubeconfigError> {
    if let Some((text, place)) = data.filter(|(text, _)| !text.is_empty()) {
        // A key among others: what it passes through is wiped, and allocated once.
        let mut compact = Zeroizing::new(Vec::with_capacity(text.len()));
        compact.extend(text.bytes().filter(|byte| !byte.is_ascii_whitespace()));
        let mut bytes = Zeroizing::new(vec![0; compact.len().div_ceil(4) * 3]);
        let length = STANDARD
            .decode_slice(&*compact, &mut bytes)
            .map_err(|_| malformed(place, field, "is not base64"))?;
        return Ok(Some(Pem::inline(&bytes[..length])));
    }
    Ok(file.filter(|file| !file.is_empty()).map(|file| Pem::file(beside(from, file))))
}

/// Relative paths are relative to the file that names them, not to the working directory.
fn beside(place: &Place, file: &str) -> PathBuf {
    place.path.parent().unwrap_or_else(|| Path::new("")).join(file)
}

fn impersonation(user: &Entry<User>) -> Result<Option<Impersonation>, KubeconfigError> {
    let value = &user.value;
    let (groups, extra) = (value.impersonate_groups.clone(), value.impersonate_extra.clone());
    let uid = value.impersonate_uid.clone().filter(|uid| !uid.is_empty());
    let name = value.impersonate.clone().unwrap_or_default();
    if name.is_empty() {
        if groups.is_empty() && extra.is_empty() && uid.is_none() {
            return Ok(None);
        }
        // client-go refuses it too; passing over it would act with rights that the file means to give up.
        return Err(malformed(
            user.place.clone(),
            "as",
            "is missing, but other as-* fields are set",
        ));
    }
    Ok(Some(Impersonation { user: name, uid, groups, extra }))
}
