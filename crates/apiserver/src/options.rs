//! Options of a list or a watch: decoding, defaulting and validation, in the order and the words of kube-apiserver.

use kubestrata_api_types::{FieldSelector, LabelSelector};

use crate::config::Gates;
use crate::failure::{Cause, Outcome, bad_request, invalid};
use crate::query::Query;

/// `ListOptions`, decoded, defaulted and valid.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) bookmarks: bool,
    pub(crate) version: String,
    pub(crate) matching: Option<Match>,
    pub(crate) timeout: Option<i64>,
    /// 0 for none.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) initial_events: Option<bool>,
}

/// `resourceVersionMatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

impl ListOptions {
    /// Decodes the query. Without `watch` in it, the deprecated path prefix is validated as a list is.
    pub(crate) fn parse(query: &Query, gates: Gates) -> Outcome<Self> {
        let watch = query.flag("watch").unwrap_or(false);
        let labels = query.text("labelSelector").parse::<LabelSelector>();
        let labels = labels.map_err(|error| bad_request(error.to_string()))?;
        let fields = query.text("fieldSelector").parse::<FieldSelector>();
        let fields = fields.map_err(|error| bad_request(error.to_string()))?;
        let timeout = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let version = query.text("resourceVersion").to_owned();
        let mut matching = query.text("resourceVersionMatch").to_owned();
        let mut initial_events = query.flag("sendInitialEvents");

        // A watch from "now" or "anything" is a streaming list (apimachinery `SetListOptionsDefaults`).
        let unversioned = version.is_empty() || version == "0";
        if gates.watch_list
            && watch
            && unversioned
            && initial_events.is_none()
            && matching.is_empty()
        {
            initial_events = Some(true);
            "NotOlderThan".clone_into(&mut matching);
        }
        let continue_token = query.text("continue").to_owned();
        let causes = if watch {
            validate_watch(&matching, initial_events, &continue_token, gates)
        } else {
            validate_list(&version, &matching, initial_events, &continue_token)
        };
        if !causes.is_empty() {
            return Err(invalid("meta.k8s.io", "ListOptions", "", &causes));
        }
        let matching = match matching.as_str() {
            "Exact" => Some(Match::Exact),
            "NotOlderThan" => Some(Match::NotOlderThan),
            _ => None,
        };
        Ok(Self {
            labels,
            fields,
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            version,
            matching,
            timeout,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token,
            initial_events,
        })
    }

    /// The version as a number; 0 where there is none. The error is the text of the API's own error.
    pub(crate) fn revision(&self) -> Result<u64, String> {
        parse_version(&self.version)
    }
}

/// Parses a `resourceVersion`; the error is Go's.
pub(crate) fn parse_version(version: &str) -> Result<u64, String> {
    if version.is_empty() {
        return Ok(0);
    }
    // Go takes neither a sign nor the other forms that Rust takes.
    let digits = version.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = digits.then(|| version.parse::<u64>());
    match parsed {
        Some(Ok(revision)) => Ok(revision),
        other => {
            let problem = if other.is_some() { "value out of range" } else { "invalid syntax" };
            Err(format!(
                "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: {problem}"
            ))
        }
    }
}

const MATCH: &str = "resourceVersionMatch";

fn validate_list(
    version: &str,
    matching: &str,
    initial_events: Option<bool>,
    continue_token: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !matching.is_empty() {
        if version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(Cause::forbidden(MATCH, detail));
        }
        if !continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden(MATCH, detail));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            causes.push(Cause::unsupported(MATCH, matching, "\"Exact\", \"NotOlderThan\", \"\""));
        }
        if matching == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(MATCH, detail));
        }
    }
    if initial_events.is_some() {
        let detail = "sendInitialEvents is forbidden for list";
        causes.push(Cause::forbidden("sendInitialEvents", detail));
    }
    causes
}

fn validate_watch(
    matching: &str,
    initial_events: Option<bool>,
    continue_token: &str,
    gates: Gates,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if initial_events.is_some() {
        if !gates.watch_list {
            let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            causes.push(Cause::forbidden("sendInitialEvents", detail));
        }
        if matching != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden(MATCH, detail));
        }
    } else if !matching.is_empty() {
        let detail =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(Cause::forbidden(MATCH, detail));
    }
    if !matching.is_empty() {
        if matching != "NotOlderThan" {
            causes.push(Cause::unsupported(MATCH, matching, "\"NotOlderThan\""));
        }
        if !continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden(MATCH, detail));
        }
    }
    causes
}
