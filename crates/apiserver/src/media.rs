//! Content negotiation.

use http::HeaderMap;
use kubestrata_api_types::Format;

use crate::failure::{Outcome, not_acceptable, unknown_media};

/// In which form an answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Media {
    pub(crate) format: Format,
    pub(crate) shape: Shape,
}

/// What of each object an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object.
    Object,
    /// `PartialObjectMetadata` or its list.
    Metadata,
    /// The aggregated form of discovery.
    Aggregated,
}

/// What an endpoint can answer with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// Whole objects as protobuf.
    pub(crate) protobuf: bool,
    /// Metadata only.
    pub(crate) metadata: bool,
    /// Aggregated discovery.
    pub(crate) aggregated: bool,
}

const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

struct Clause<'a> {
    mime: &'a str,
    quality: f32,
    form: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mime = parts.next().unwrap_or_default();
        let mut clause = Self { mime, quality: 1.0, form: None, group: None, version: None };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                "as" => clause.form = Some(value),
                "g" => clause.group = Some(value),
                "v" => clause.version = Some(value),
                _ => {}
            }
        }
        clause
    }

    fn fits(&self, offer: Offer) -> Option<Media> {
        let shape = match (self.form, self.group, self.version) {
            (None, ..) => Shape::Object,
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) if offer.metadata => Shape::Metadata,
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2"))
                if offer.aggregated =>
            {
                Shape::Aggregated
            }
            _ => return None,
        };
        let format = match self.mime {
            "application/json" | "application/*" | "*/*" => Format::Json,
            // Metadata has a schema whatever the kind.
            "application/vnd.kubernetes.protobuf"
                if shape == Shape::Metadata || (offer.protobuf && shape == Shape::Object) =>
            {
                Format::Protobuf
            }
            _ => return None,
        };
        Some(Media { format, shape })
    }
}

/// The text of the `Accept` headers.
fn accepted(headers: &HeaderMap) -> String {
    let accept = headers.get_all(http::header::ACCEPT).iter();
    accept.filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",")
}

/// What a client accepts, best first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let clauses = accept.split(',').filter(|clause| !clause.trim().is_empty());
    let mut clauses: Vec<Clause<'_>> = clauses.map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// In which format a client gets a failure. It may be one that its objects cannot have, and is JSON if it accepts none.
pub(crate) fn status_format(headers: &HeaderMap) -> Format {
    let offer = Offer { protobuf: true, metadata: false, aggregated: false };
    let accept = accepted(headers);
    let found = clauses(&accept).iter().find_map(|clause| clause.fits(offer));
    found.map_or(Format::Json, |media| media.format)
}

/// Chooses the form of an answer by the `Accept` headers.
pub(crate) fn negotiate(headers: &HeaderMap, offer: Offer) -> Outcome<Media> {
    let accept = accepted(headers);
    let clauses = clauses(&accept);
    if clauses.is_empty() {
        return Ok(Media { format: Format::Json, shape: Shape::Object });
    }
    if let Some(media) = clauses.iter().find_map(|clause| clause.fits(offer)) {
        return Ok(media);
    }
    let known = |clause: &Clause<'_>| TYPES.split(", ").any(|known| known == clause.mime);
    if clauses.iter().any(known) {
        return Err(not_acceptable(format!(
            "only the following media types are accepted: {TYPES}"
        )));
    }
    Err(unknown_media(format!(
        "406: Not Acceptable\n\nAvailable representations: {TYPES}, application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch"
    )))
}
