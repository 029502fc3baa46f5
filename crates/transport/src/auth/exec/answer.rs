//! What a plugin prints.

use std::time::Duration;

use kubestrata_api_types::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::ExecPlugin;
use crate::auth::source::Made;
use crate::auth::{AuthError, header};
use crate::tls::{Identity, Pem, validity};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: String,
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<End>,
    token: Option<Secret>,
    client_certificate_data: Option<Secret>,
    client_key_data: Option<Secret>,
}

/// A time, which may be the last one there is: plugins say so of what has no end.
struct End(Timestamp);

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(end) => Ok(Self(end)),
            // Beyond the last time that there is, in every zone.
            Err(_) if text.starts_with("9999-12-3") => Ok(Self(Timestamp::MAX)),
            Err(_) => Err(serde::de::Error::custom("no time")),
        }
    }
}

/// A string that is wiped when dropped.
struct Secret(SecretString);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

fn filled(secret: Option<Secret>) -> Option<SecretString> {
    secret.map(|secret| secret.0).filter(|secret| !secret.expose_secret().is_empty())
}

/// Reads the output, JSON or YAML (client-go's decoder takes both).
pub(super) fn parse(plugin: &ExecPlugin, output: &[u8]) -> Result<Made, AuthError> {
    let credential = decode(plugin, output)?;
    if credential.kind != "ExecCredential" || credential.api_version != plugin.api_version {
        return Err(plugin.error(format!("its output is not of {}", plugin.api_version)));
    }
    let status = credential.status.ok_or_else(|| plugin.error("its output has no status"))?;
    let token = filled(status.token);
    let pair = (filled(status.client_certificate_data), filled(status.client_key_data));
    let identity = match pair {
        (Some(certificate), Some(key)) => Some(Identity {
            certificate: Pem::inline(certificate.expose_secret().as_bytes()),
            key: Pem::inline(key.expose_secret().as_bytes()),
        }),
        (None, None) => None,
        _ => return Err(plugin.error("its output has only one of certificate and key")),
    };
    if token.is_none() && identity.is_none() {
        return Err(plugin.error("its output has neither a token nor a certificate and key"));
    }
    let mut end = status.expiration_timestamp.map(|end| end.0);
    if let Some(identity) = &identity {
        // What the plugin says of its token's end need not be true of the certificate, and many plugins say nothing.
        let (_, until) = validity(&identity.certificate)
            .ok_or_else(|| plugin.error("its certificate is not valid PEM"))?;
        end = Some(end.map_or(until, |end| end.min(until)));
    }
    // Nothing is left of what has expired when it is printed.
    let left = |end: Timestamp| Duration::try_from(end.duration_since(Timestamp::now()));
    let lifetime = end.map(|end| left(end).unwrap_or_default());
    let header = token.map(|token| header::bearer(token.expose_secret())).transpose()?;
    Ok(Made { header, identity, lifetime, period: None })
}

fn decode(plugin: &ExecPlugin, output: &[u8]) -> Result<ExecCredential, AuthError> {
    // Line and column only: the parser's own text can quote the token.
    let failed = |line: u64, column: u64| {
        plugin.error(format!("its output is no ExecCredential (line {line}, column {column})"))
    };
    let json = match serde_json::from_slice(output) {
        Ok(credential) => return Ok(credential),
        Err(error) => (error.line() as u64, error.column() as u64),
    };
    if output.trim_ascii_start().first() == Some(&b'{') {
        return Err(failed(json.0, json.1));
    }
    let Ok(text) = std::str::from_utf8(output) else { return Err(failed(json.0, json.1)) };
    serde_saphyr::from_str(text).map_err(|error| {
        error.location().map_or_else(|| failed(0, 0), |at| failed(at.line(), at.column()))
    })
}
