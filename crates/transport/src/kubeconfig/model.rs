//! The fields of the file that we know, with the line of each that an error may have to point to.
//!
//! What is not there or null is the zero value, at every place, as for Go (`encoding/json`, by `sigs.k8s.io/yaml`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use secrecy::SecretString;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::{KubeconfigError, Place};

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct File {
    pub(super) current_context: Option<Spanned<String>>,
    #[serde(deserialize_with = "list")]
    pub(super) clusters: Vec<NamedCluster>,
    #[serde(deserialize_with = "list")]
    pub(super) users: Vec<NamedUser>,
    #[serde(deserialize_with = "list")]
    pub(super) contexts: Vec<NamedContext>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct NamedCluster {
    pub(super) name: Option<Spanned<String>>,
    pub(super) cluster: Option<Cluster>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct NamedUser {
    pub(super) name: Option<Spanned<String>>,
    pub(super) user: Option<User>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct NamedContext {
    pub(super) name: Option<Spanned<String>>,
    pub(super) context: Option<Context>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    pub(super) server: Option<Spanned<String>>,
    pub(super) tls_server_name: Option<Spanned<String>>,
    #[serde(deserialize_with = "flag")]
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<Spanned<String>>,
    pub(super) proxy_url: Option<Spanned<Secret>>,
    #[serde(deserialize_with = "flag")]
    pub(super) disable_compression: Option<bool>,
    #[serde(deserialize_with = "list")]
    pub(super) extensions: Vec<Extension>,
}

/// Something that somebody else keeps in the file.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Extension {
    pub(super) name: Option<String>,
    pub(super) extension: serde_json::Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<Spanned<String>>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<Spanned<Secret>>,
    pub(super) token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) username: Option<Spanned<String>>,
    pub(super) password: Option<Secret>,
    #[serde(rename = "as")]
    pub(super) impersonate: Option<String>,
    #[serde(rename = "as-uid")]
    pub(super) impersonate_uid: Option<String>,
    #[serde(rename = "as-groups", deserialize_with = "list")]
    pub(super) impersonate_groups: Vec<String>,
    #[serde(rename = "as-user-extra", deserialize_with = "lists")]
    pub(super) impersonate_extra: BTreeMap<String, Vec<String>>,
    pub(super) exec: Option<Spanned<Exec>>,
    pub(super) auth_provider: Option<Spanned<Ignored>>,
}

/// A credential plugin (client.authentication.k8s.io).
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exec {
    pub(super) api_version: Option<String>,
    pub(super) command: Option<String>,
    #[serde(deserialize_with = "list")]
    pub(super) args: Vec<String>,
    #[serde(deserialize_with = "list")]
    pub(super) env: Vec<ExecVariable>,
    pub(super) install_hint: Option<String>,
    #[serde(deserialize_with = "flag")]
    pub(super) provide_cluster_info: Option<bool>,
    pub(super) interactive_mode: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ExecVariable {
    pub(super) name: Option<String>,
    pub(super) value: Option<Secret>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Context {
    pub(super) cluster: Option<Spanned<String>>,
    pub(super) user: Option<Spanned<String>>,
    pub(super) namespace: Option<String>,
}

/// Any value at all.
pub(super) struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A string that is wiped when dropped.
pub(super) struct Secret(pub(super) SecretString);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

/// A boolean and no string that looks like one: kubectl refuses `"true"`, and what is refused there must not switch
/// verification off here. A plain `yes` is one, as in YAML 1.1; that in quotes is taken too, as it cannot be told apart.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    struct Flag;

    impl Visitor<'_> for Flag {
        type Value = Option<bool>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("true or false, without quotes")
        }

        fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
            Ok(Some(flag))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            match &*text.to_ascii_lowercase() {
                "yes" | "y" | "on" => Ok(Some(true)),
                "no" | "n" | "off" => Ok(Some(false)),
                _ => Err(E::invalid_type(serde::de::Unexpected::Other("a string"), &self)),
            }
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Flag)
}

/// A list, of which null, and each null in it, is the zero value.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// A map of such lists.
fn lists<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    struct Lists(#[serde(deserialize_with = "list")] Vec<String>);
    let lists = Option::<BTreeMap<String, Lists>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(lists.into_iter().map(|(key, Lists(list))| (key, list)).collect())
}

impl File {
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        Ok(parse::<Option<Self>>(text, path)?.flatten().unwrap_or_default())
    }
}

/// Parses a file; `None` if there is nothing in it.
pub(super) fn parse<T: serde::de::DeserializeOwned>(
    text: &str,
    path: &Path,
) -> Result<Option<T>, KubeconfigError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    serde_saphyr::from_str(text).map(Some).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        KubeconfigError::Malformed {
            place: Place::new(path, line),
            field: field_at(text, line),
            problem: describe(error.without_snippet()),
        }
    })
}

/// What the parser found, without the values that its own message may quote: they can be credentials.
fn describe(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::SerdeMissingField { field, .. } => format!("field {field:?} is missing"),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            format!("expected {expected}")
        }
        Error::Unexpected { expected, .. } => format!("expected {expected}"),
        Error::Eof { .. } => "the file ends too early".to_owned(),
        Error::DuplicateMappingKey { .. } => "the same field twice".to_owned(),
        Error::MultipleDocuments { .. } => "more than one YAML document".to_owned(),
        Error::InvalidBooleanStrict { .. } => "expected true or false".to_owned(),
        Error::InvalidScalar { ty, .. } => format!("expected {ty}"),
        Error::NullIntoString { .. } => "expected a string".to_owned(),
        _ => "not valid YAML".to_owned(),
    }
}

/// The key on a line of YAML in block style. Never a value: only what stands before the first colon.
fn field_at(text: &str, line: u64) -> Option<String> {
    let index = usize::try_from(line.checked_sub(1)?).ok()?;
    let line = text.lines().nth(index)?.trim_start_matches([' ', '-', '{', '[']);
    let (key, _) = line.split_once(':')?;
    let key = key.trim_matches(['"', '\'']);
    let plausible = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (plausible && !key.is_empty() && key.len() <= 40).then(|| key.to_owned())
}
