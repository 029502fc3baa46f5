//! Reading the body of an answer with one object.

use std::sync::Arc;

use kubestrata_api_types::{Answer, Collection, Format, Representation, ResourceType, Unreadable};

use crate::encoded::Reading;
use crate::envelope::{self, EnvelopeError};
use crate::head::SelfType;
use crate::limits::Limits;
use crate::{Encoded, status};

/// The body is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The object's head cannot be read.
    #[error("the answer cannot be read")]
    Unreadable(#[source] Unreadable),
    /// A protobuf body without its envelope.
    #[error("the answer cannot be read")]
    Envelope(#[source] EnvelopeError),
    /// The answer says that it is a Status, but is none.
    #[error("the answer is a malformed Status")]
    MalformedStatus,
}

/// Reads an answer with one object: of get, create, update, patch, delete, or of a subresource.
///
/// A `Status` gives [`Answer::Status`], also one that tells of a failure. An object of another kind than the
/// collection's, as the `Scale` of a subresource, comes with a resource type of its own kind and the collection's
/// plural name.
///
/// # Errors
///
/// [`AnswerError`] if the body is malformed.
pub fn decode_object(
    collection: &Collection,
    format: Format,
    body: &[u8],
) -> Result<Answer<Encoded>, AnswerError> {
    match format {
        Format::Json => json(collection, body),
        Format::Protobuf => protobuf(collection, body),
    }
}

fn json(collection: &Collection, body: &[u8]) -> Result<Answer<Encoded>, AnswerError> {
    let read = |resource: &Arc<ResourceType>| {
        let reading = Reading::of(collection, &Limits::DEFAULT);
        Encoded::read_and(resource, Format::Json, body, reading, |own| {
            (is_status(own), own_type(collection, own))
        })
        .map_err(AnswerError::Unreadable)
    };
    let (object, (is_status, own_type)) = read(&collection.resource)?;
    if is_status {
        let status = status::from_json(body).ok_or(AnswerError::MalformedStatus)?;
        return Ok(Answer::Status(Box::new(status)));
    }
    match own_type {
        Some(resource) => read(&resource).map(|(object, _)| Answer::Object(object)),
        None => Ok(Answer::Object(object)),
    }
}

fn protobuf(collection: &Collection, body: &[u8]) -> Result<Answer<Encoded>, AnswerError> {
    let envelope = envelope::open(body).map_err(AnswerError::Envelope)?;
    let own = envelope.self_type();
    if is_status(&own) {
        let status =
            status::from_protobuf(envelope.message).map_err(|_| AnswerError::MalformedStatus)?;
        return Ok(Answer::Status(Box::new(status)));
    }
    let other = own_type(collection, &own);
    let resource = other.as_ref().unwrap_or(&collection.resource);
    let reading = Reading::of(collection, &Limits::DEFAULT);
    Encoded::read_and(resource, Format::Protobuf, envelope.message, reading, |_| ())
        .map(|(object, ())| Answer::Object(object))
        .map_err(AnswerError::Unreadable)
}

fn is_status(own: &SelfType<'_>) -> bool {
    own.kind.as_deref() == Some("Status") && own.api_version.as_deref() == Some("v1")
}

/// The resource type of an object that is not of the collection's own.
fn own_type(collection: &Collection, own: &SelfType<'_>) -> Option<Arc<ResourceType>> {
    let (api_version, kind) = (own.api_version.as_deref()?, own.kind.as_deref()?);
    let expected = &collection.resource;
    if expected.matches(api_version, kind) || is_partial(collection, api_version, kind) {
        return None;
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Arc::new(ResourceType::new(group, version, kind, expected.plural.clone(), expected.scope)))
}

/// Whether this is the metadata that was asked for instead of the object.
pub(crate) fn is_partial(collection: &Collection, api_version: &str, kind: &str) -> bool {
    collection.representation == Representation::Metadata
        && kind == "PartialObjectMetadata"
        && api_version == "meta.k8s.io/v1"
}

/// Checks that an object of a list or watch is of the kind that was asked for. One that says nothing is.
pub(crate) fn foreign(collection: &Collection, own: &SelfType<'_>) -> Option<String> {
    let (kind, api_version) = (own.kind.as_deref()?, own.api_version.as_deref()?);
    let fits =
        collection.resource.matches(api_version, kind) || is_partial(collection, api_version, kind);
    (!fits).then(|| format!("foreign kind {} of {}", shown(kind), shown(api_version)))
}

/// What an error shows of a name that could be of any length.
pub(crate) fn shown(name: &str) -> String {
    // Longer than any that a server allows.
    const MOST: usize = 253;
    name.chars().take(MOST).collect()
}
