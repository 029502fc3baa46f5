//! Continue tokens, as kube-apiserver writes them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::failure::{Outcome, bad_request};

/// Where a list goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The revision of the whole walk; negative for "now".
    pub(crate) revision: i64,
    /// The first key, relative to the scope of the request, without a leading slash.
    pub(crate) start: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Wire {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    pub(crate) fn encode(&self) -> String {
        let start = format!("/{}", self.start);
        let wire = Wire { v: "meta.k8s.io/v1".to_owned(), rv: self.revision, start };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).expect("a token is written to memory"))
    }

    pub(crate) fn decode(text: &str) -> Outcome<Self> {
        Self::try_decode(text).map_err(|problem| {
            bad_request(format!("invalid continue token: continue key is not valid: {problem}"))
        })
    }

    fn try_decode(text: &str) -> Result<Self, String> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| base64_problem(&error))?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|_| json_problem(&bytes))?;
        if wire.v != "meta.k8s.io/v1" {
            return Err(format!("server does not recognize this encoded version {}", wire.v));
        }
        if wire.rv == 0 {
            return Err(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned()
            );
        }
        if wire.start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        let clean = !start.split('/').any(|part| matches!(part, "" | "." | ".."));
        if !clean {
            return Err(wire.start);
        }
        Ok(Self { revision: wire.rv, start: start.to_owned() })
    }
}

/// The message of Go's decoder.
fn base64_problem(error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            *at
        }
        base64::DecodeError::InvalidLength(length) => *length,
        _ => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

/// The message of Go's decoder, for text that is no JSON at its first byte.
fn json_problem(bytes: &[u8]) -> String {
    match bytes.first() {
        None => "unexpected end of JSON input".to_owned(),
        Some(byte) if byte.is_ascii_graphic() => {
            format!("invalid character '{}' looking for beginning of value", char::from(*byte))
        }
        Some(byte) => {
            format!("invalid character '\\x{byte:02x}' looking for beginning of value")
        }
    }
}
