//! Failures, in the words of kube-apiserver.

use kubestrata_api_types::{ResourceType, Status, StatusCause, StatusDetails, reason};
use kubestrata_storage::{ReadError, WriteError};
use kubestrata_watch_cache::{NotFresh, TooOld};

/// Why a request is not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// As a `Status` object.
    Status(Box<Status>),
    /// As plain text, for what is outside the API.
    Text(u16, &'static str),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl Failure {
    /// Path unknown.
    pub(crate) fn no_path() -> Self {
        Self::Text(404, "404 page not found\n")
    }

    /// The status, of a failure that has one.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Text(code, text) => Status::failure(code, "", text.trim_end()),
        }
    }
}

pub(crate) fn bad_request(message: impl Into<String>) -> Failure {
    Status::failure(400, reason::BAD_REQUEST, message).into()
}

/// An error that is no API error in kube-apiserver either: 500 without reason.
pub(crate) fn unclassified(message: impl Into<String>) -> Failure {
    Status::failure(500, "", message).into()
}

pub(crate) fn internal(message: impl Into<String>) -> Failure {
    let message = message.into();
    let mut status =
        Status::failure(500, reason::INTERNAL_ERROR, format!("Internal error occurred: {message}"));
    let cause = StatusCause { message, ..StatusCause::default() };
    status.details = Some(StatusDetails { causes: vec![cause], ..StatusDetails::default() });
    status.into()
}

/// An internal error whose message is the error itself.
pub(crate) fn internal_plain(message: &str) -> Failure {
    Status::failure(500, reason::INTERNAL_ERROR, message).into()
}

/// Details that name an object by its plural.
fn named(resource: &ResourceType, name: &str) -> StatusDetails {
    StatusDetails {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..StatusDetails::default()
    }
}

pub(crate) fn not_found(resource: &ResourceType, name: &str) -> Failure {
    let message = format!("{resource} \"{name}\" not found");
    let mut status = Status::failure(404, reason::NOT_FOUND, message);
    status.details = Some(named(resource, name));
    status.into()
}

pub(crate) fn no_resource() -> Failure {
    let message = "the server could not find the requested resource";
    let mut status = Status::failure(404, reason::NOT_FOUND, message);
    status.details = Some(StatusDetails::default());
    status.into()
}

pub(crate) fn already_exists(resource: &ResourceType, name: &str, terminating: bool) -> Failure {
    let message = format!("{resource} \"{name}\" already exists");
    let message = if terminating { format!("object is being deleted: {message}") } else { message };
    let mut status = Status::failure(409, reason::ALREADY_EXISTS, message);
    status.details = Some(named(resource, name));
    status.into()
}

pub(crate) fn name_exhausted(resource: &ResourceType, name: &str) -> Failure {
    let message = format!(
        "{resource} \"{name}\" already exists, the server was not able to generate a unique name for the object"
    );
    let mut status = Status::failure(409, reason::ALREADY_EXISTS, message);
    status.details = Some(StatusDetails { retry_after_seconds: 1, ..named(resource, name) });
    status.into()
}

pub(crate) fn conflict(resource: &ResourceType, name: &str, problem: &str) -> Failure {
    let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {problem}");
    let mut status = Status::failure(409, reason::CONFLICT, message);
    status.details = Some(named(resource, name));
    status.into()
}

/// A precondition of a delete that does not hold. kube-apiserver names the Kind here, not the plural.
pub(crate) fn precondition(resource: &ResourceType, name: &str, problem: &str) -> Failure {
    let (kind, group) = (&resource.kind, &resource.group);
    let qualified = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
    let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {problem}");
    let mut status = Status::failure(409, reason::CONFLICT, message);
    status.details = Some(StatusDetails { kind: kind.to_string(), ..named(resource, name) });
    status.into()
}

pub(crate) fn modified(resource: &ResourceType, name: &str) -> Failure {
    let problem = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, problem)
}

pub(crate) fn forbidden(resource: &ResourceType, name: &str, problem: &str) -> Failure {
    let message = format!("{resource} \"{name}\" is forbidden: {problem}");
    let mut status = Status::failure(403, reason::FORBIDDEN, message);
    status.details = Some(named(resource, name));
    status.into()
}

/// A field that breaks a rule.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        let (field, message) = (field.to_owned(), format!("Forbidden: {detail}"));
        Self { reason: "FieldValueForbidden", field, message }
    }

    pub(crate) fn invalid(field: &str, value: &str, detail: &str) -> Self {
        let message = format!("Invalid value: {value}: {detail}");
        Self { reason: "FieldValueInvalid", field: field.to_owned(), message }
    }

    pub(crate) fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self { reason: "FieldValueRequired", field: field.to_owned(), message }
    }

    pub(crate) fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        Self::unsupported_value(field, &format!("{value:?}"), supported)
    }

    /// `value` as it is to be shown.
    pub(crate) fn unsupported_value(field: &str, value: &str, supported: &str) -> Self {
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        Self { reason: "FieldValueNotSupported", field: field.to_owned(), message }
    }
}

/// 422. `kind` is the Kind for an object, or what the caller names.
pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Failure {
    let shown: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let shown = match &shown[..] {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let message = format!("{qualified} \"{name}\" is invalid: {shown}");
    let mut status = Status::failure(422, reason::INVALID, message);
    let causes = causes.iter().map(|cause| StatusCause {
        reason: cause.reason.to_owned(),
        message: cause.message.clone(),
        field: cause.field.clone(),
    });
    status.details = Some(StatusDetails {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        causes: causes.collect(),
        ..StatusDetails::default()
    });
    status.into()
}

pub(crate) fn invalid_object(resource: &ResourceType, name: &str, causes: &[Cause]) -> Failure {
    invalid(&resource.group, &resource.kind, name, causes)
}

/// A patch that does not fit the object.
pub(crate) fn rejected_patch() -> Failure {
    let message = "the server rejected our request due to an error in our request";
    let mut status = Status::failure(422, reason::INVALID, message);
    status.details = Some(StatusDetails::default());
    status.into()
}

pub(crate) fn method_not_allowed(resource: &ResourceType, action: &str) -> Failure {
    let message = format!("{action} is not supported on resources of kind \"{resource}\"");
    let mut status = Status::failure(405, reason::METHOD_NOT_ALLOWED, message);
    status.details = Some(StatusDetails {
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..StatusDetails::default()
    });
    status.into()
}

pub(crate) fn unsupported_media(accepted: &str) -> Failure {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    Status::failure(415, reason::UNSUPPORTED_MEDIA_TYPE, message).into()
}

/// A patch of a type that no resource knows.
pub(crate) fn unsupported_patch() -> Failure {
    let message = "415: Unsupported Media Type";
    let mut status = Status::failure(415, reason::UNSUPPORTED_MEDIA_TYPE, message);
    status.details = Some(StatusDetails::default());
    status.into()
}

pub(crate) fn not_acceptable(message: impl Into<String>) -> Failure {
    Status::failure(406, reason::NOT_ACCEPTABLE, message).into()
}

/// None of the types that a client accepts is known.
pub(crate) fn unknown_media(message: impl Into<String>) -> Failure {
    let mut status = Status::failure(406, reason::NOT_ACCEPTABLE, message);
    status.details = Some(StatusDetails::default());
    status.into()
}

pub(crate) fn too_large(limit: usize) -> Failure {
    let message = format!("Request entity too large: limit is {limit}");
    Status::failure(413, reason::REQUEST_ENTITY_TOO_LARGE, message).into()
}

pub(crate) fn expired(message: impl Into<String>) -> Failure {
    Status::failure(410, reason::EXPIRED, message).into()
}

impl From<NotFresh> for Failure {
    fn from(error: NotFresh) -> Self {
        let mut status = Status::failure(504, reason::TIMEOUT, format!("Timeout: {error}"));
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        status.details = Some(StatusDetails {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..StatusDetails::default()
        });
        status.into()
    }
}

impl From<TooOld> for Failure {
    fn from(error: TooOld) -> Self {
        expired(error.to_string())
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Compacted { .. } => {
                expired("The resourceVersion for the provided list is too old.")
            }
            other => internal(other.to_string()),
        }
    }
}

impl<V> From<WriteError<V>> for Failure {
    fn from(error: WriteError<V>) -> Self {
        match error {
            WriteError::Unavailable(problem) => internal(problem),
            _ => internal("the storage refused the write"),
        }
    }
}
