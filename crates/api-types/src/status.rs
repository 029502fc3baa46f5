//! The API's own error: `Status` of `meta/v1`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Values of `Status.reason`.
pub mod reason {
    /// 401
    pub const UNAUTHORIZED: &str = "Unauthorized";
    /// 403
    pub const FORBIDDEN: &str = "Forbidden";
    /// 404
    pub const NOT_FOUND: &str = "NotFound";
    /// 409 on create
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    /// 409 on a stale write
    pub const CONFLICT: &str = "Conflict";
    /// 410
    pub const GONE: &str = "Gone";
    /// 410: the version or token is too old
    pub const EXPIRED: &str = "Expired";
    /// 422
    pub const INVALID: &str = "Invalid";
    /// 500: try again
    pub const SERVER_TIMEOUT: &str = "ServerTimeout";
    /// 504
    pub const TIMEOUT: &str = "Timeout";
    /// 429
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
    /// 400
    pub const BAD_REQUEST: &str = "BadRequest";
    /// 405
    pub const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
    /// 406
    pub const NOT_ACCEPTABLE: &str = "NotAcceptable";
    /// 413
    pub const REQUEST_ENTITY_TOO_LARGE: &str = "RequestEntityTooLarge";
    /// 415
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "UnsupportedMediaType";
    /// 500
    pub const INTERNAL_ERROR: &str = "InternalError";
    /// 503
    pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
}

/// The text of the cause that marks a version from the server's future.
const TOO_LARGE_CAUSE: &str = "ResourceVersionTooLarge";
const TOO_LARGE_TEXT: &str = "Too large resource version";

/// Success or failure of a request, as the server says it.
///
/// As an error it displays the server's message, code and reason. The server's messages name objects and fields and can
/// quote rejected values; they are the server's words, shown as kubectl shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct Status {
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub status: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub message: String,
    /// For programs; see [`reason`].
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub reason: String,
    /// More, per reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// HTTP status code; 0 if not known.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub code: u16,
    /// After an expired continue token: one that goes on, at the price of consistency (`metadata.continue`).
    #[serde(skip)]
    pub continue_token: Option<String>,
}

/// `Status.details`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct StatusDetails {
    /// Name of the object concerned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the object concerned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind, or plural name of the resource, of the object concerned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID of the object concerned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Causes, one per field or problem.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub causes: Vec<StatusCause>,
    /// Seconds after which a repeat makes sense; 0 for none.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub retry_after_seconds: u32,
}

/// One entry of `Status.details.causes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct StatusCause {
    /// For programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field concerned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(code: &u16) -> bool {
    *code == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero_u32(seconds: &u32) -> bool {
    *seconds == 0
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl Status {
    /// A failure.
    pub fn failure(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.into(),
            code,
            ..Self::default()
        }
    }

    /// Whether this is a success.
    pub fn is_success(&self) -> bool {
        self.status == "Success"
    }

    /// The version or continue token is older than the server's history: start afresh.
    /// Reason Expired or Gone, or HTTP 410 (client-go `IsResourceExpired`, `IsGone`).
    pub fn is_expired(&self) -> bool {
        matches!(self.reason.as_str(), reason::EXPIRED | reason::GONE) || self.code == 410
    }

    /// The write was based on an old version of the object.
    pub fn is_conflict(&self) -> bool {
        self.reason == reason::CONFLICT || (self.reason.is_empty() && self.code == 409)
    }

    /// The object, or its namespace or kind, is not there.
    pub fn is_not_found(&self) -> bool {
        self.reason == reason::NOT_FOUND || (self.reason.is_empty() && self.code == 404)
    }

    /// An object of that name is already there.
    pub fn is_already_exists(&self) -> bool {
        self.reason == reason::ALREADY_EXISTS
    }

    /// No valid credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.reason == reason::UNAUTHORIZED || self.code == 401
    }

    /// Not allowed.
    pub fn is_forbidden(&self) -> bool {
        self.reason == reason::FORBIDDEN || self.code == 403
    }

    /// The request breaks a rule of the API.
    pub fn is_invalid(&self) -> bool {
        self.reason == reason::INVALID || self.code == 422
    }

    /// The server asks to come back later.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason == reason::TOO_MANY_REQUESTS || self.code == 429
    }

    /// The server did not manage in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self.reason.as_str(), reason::TIMEOUT | reason::SERVER_TIMEOUT) || self.code == 504
    }

    /// The version asked for is newer than what this server has; it may have been restored, or lag behind.
    ///
    /// All three shapes that servers have used (client-go `isTooLargeResourceVersionError`): the cause
    /// `ResourceVersionTooLarge`; a cause with the message (1.17.0 to 1.18.5); the message alone (older).
    pub fn is_too_large_resource_version(&self) -> bool {
        let causes = self.details.as_ref().map_or(&[][..], |details| &details.causes);
        if causes.iter().any(|cause| cause.reason == TOO_LARGE_CAUSE) {
            return true;
        }
        self.reason == reason::TIMEOUT
            && (causes.iter().any(|cause| cause.message == TOO_LARGE_TEXT)
                || self.message.contains(TOO_LARGE_TEXT))
    }

    /// When the server wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message =
            if self.message.is_empty() { "the server gave no message" } else { &self.message };
        match (self.reason.as_str(), self.code) {
            ("", 0) => f.write_str(message),
            ("", code) => write!(f, "{message} (HTTP {code})"),
            (reason, 0) => write!(f, "{message} ({reason})"),
            (reason, code) => write!(f, "{message} ({reason}, HTTP {code})"),
        }
    }
}

impl std::error::Error for Status {}
