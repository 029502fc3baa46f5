//! What to read, and how new it must be.

use std::sync::Arc;

use kubestrata_api_types::{
    Collection, FieldSelector, Kind, LabelSelector, ListOptions, ResourceVersion, VersionMatch,
    WatchOptions,
};

/// How new the state that is read must be. KEP-2340 describes what a server does for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Consistency {
    /// All that was committed before the read began.
    #[default]
    MostRecent,
    /// The state at this version or a later one. A server that is not there yet waits up to 3 s and then refuses.
    AtLeast(ResourceVersion),
    /// The state at exactly this version, while the server still has it: some minutes.
    Exactly(ResourceVersion),
    /// Whatever the server has at hand, be it hours old. The cheapest; ignores page sizes.
    Any,
}

impl Consistency {
    /// `resourceVersion` and `resourceVersionMatch` of a list that means this.
    pub(crate) fn parameters(&self) -> (ResourceVersion, Option<VersionMatch>) {
        match self {
            Self::MostRecent => (ResourceVersion::UNSET, None),
            // Without a match, and with a page size, the server would read "exactly": the legacy rule.
            Self::AtLeast(version) => (version.clone(), Some(VersionMatch::NotOlderThan)),
            Self::Exactly(version) => (version.clone(), Some(VersionMatch::Exact)),
            Self::Any => (ResourceVersion::ANY, None),
        }
    }
}

/// What a list is about. The default of each part is "all", "most recent" and the reader's page size.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct Query {
    /// Kind and namespace.
    pub collection: Collection,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these field values.
    pub fields: FieldSelector,
    /// How new.
    pub consistency: Consistency,
    /// Objects per page, instead of the reader's. 0 asks for all in one.
    pub page_size: Option<u32>,
}

impl Query {
    /// All objects of a collection.
    pub fn new(collection: Collection) -> Self {
        Self {
            collection,
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            consistency: Consistency::default(),
            page_size: None,
        }
    }

    /// All objects of a kind.
    pub fn of<K: Kind>() -> Self {
        Self::new(Collection::new(Arc::new(K::resource().clone())))
    }

    /// Only those in a namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.collection = self.collection.in_namespace(namespace);
        self
    }

    /// Only those with these labels.
    pub fn labels(mut self, labels: LabelSelector) -> Self {
        self.labels = labels;
        self
    }

    /// Only those with these field values.
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.fields = fields;
        self
    }

    /// How new the state must be.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// Objects per page; 0 asks for all in one.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = Some(objects);
        self
    }

    pub(crate) fn list_options(&self, page_size: u32) -> ListOptions {
        let (resource_version, version_match) = self.consistency.parameters();
        ListOptions {
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            shard: None,
            resource_version,
            version_match,
            limit: Some(self.page_size.unwrap_or(page_size)).filter(|limit| *limit > 0),
            continue_token: None,
        }
    }

    /// KEP-3157: the state as initial events. `None` where a watch cannot give what is asked for.
    pub(crate) fn watch_options(&self) -> Option<WatchOptions> {
        let resource_version = match &self.consistency {
            Consistency::Exactly(_) => return None,
            other => other.parameters().0,
        };
        Some(WatchOptions {
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            shard: None,
            resource_version,
            version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: Some(true),
            // Without bookmarks the server never says that the state is complete.
            allow_bookmarks: true,
            timeout: None,
        })
    }
}
