//! One request to an API server, typed, before any HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    FieldPath, FieldSelector, LabelSelector, ObjectKey, ResourceType, ResourceVersion,
    ShardSelector,
};

/// An encoding of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "every codec must handle each")]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// Which encodings the answer may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Accept {
    /// Protobuf, then JSON, for kinds that the codec's schema knows; JSON for all others.
    #[default]
    Auto,
    /// As `Auto`, but protobuf only where the server is known to be no newer than the codec's schema: for objects that are
    /// read without a Rust type, which JSON holds whole whatever fields they have.
    Whole,
    /// Only this format.
    Only(Format),
}

/// How much of each object the answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Representation {
    /// Whole objects.
    #[default]
    Object,
    /// `PartialObjectMetadata`: metadata only.
    Metadata,
    /// `Table`: cells as the server shows them to people. In JSON only, and for get and list: the answer to either is one
    /// object, the table. Nothing that follows a collection can do so by tables.
    Table,
}

/// What a list or watch is about, and in which form its objects come. A clone is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The kind.
    pub resource: Arc<ResourceType>,
    /// One namespace, or all of them (and cluster-scoped kinds) with `None`.
    pub namespace: Option<Arc<str>>,
    /// Whole objects, metadata, or a table.
    pub representation: Representation,
    /// Encodings to ask for.
    pub accept: Accept,
    /// Fields that the codec cuts out of the bytes as they arrive.
    pub prune: Arc<[FieldPath]>,
}

impl Collection {
    /// All objects of a kind, whole, nothing pruned.
    pub fn new(resource: impl Into<Arc<ResourceType>>) -> Self {
        Self {
            resource: resource.into(),
            namespace: None,
            representation: Representation::default(),
            accept: Accept::default(),
            prune: Arc::from([]),
        }
    }

    /// Only this namespace. An empty one means all.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = (!namespace.is_empty()).then(|| Arc::from(namespace));
        self
    }

    /// Only metadata.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.representation = Representation::Metadata;
        self
    }

    /// What the server shows to people, as a table.
    #[must_use]
    pub fn as_table(mut self) -> Self {
        self.representation = Representation::Table;
        self
    }

    /// Encodings to ask for.
    #[must_use]
    pub fn accept(mut self, accept: Accept) -> Self {
        self.accept = accept;
        self
    }

    /// Fields to cut out of the bytes.
    #[must_use]
    pub fn prune(mut self, paths: impl Into<Arc<[FieldPath]>>) -> Self {
        self.prune = paths.into();
        self
    }
}

/// `resourceVersionMatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two values")]
pub enum VersionMatch {
    /// At least as new.
    NotOlderThan,
    /// Exactly this version.
    Exact,
}

/// Options of a get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct GetOptions {
    /// Unset: most recent. `"0"`: anything cached. Else: at least as new.
    pub resource_version: ResourceVersion,
}

/// Options of a list.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct ListOptions {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these field values.
    pub fields: FieldSelector,
    /// KEP-5866: only objects of this shard, from servers that know shards; others ignore it.
    pub shard: Option<ShardSelector>,
    /// Which state is asked for; see the table in KEP-2340.
    pub resource_version: ResourceVersion,
    /// How `resource_version` is meant.
    pub version_match: Option<VersionMatch>,
    /// Page size in objects.
    pub limit: Option<u32>,
    /// Token of the page before. A request with a token must have no resource version.
    pub continue_token: Option<String>,
}

/// Options of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct WatchOptions {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these field values.
    pub fields: FieldSelector,
    /// KEP-5866: only objects of this shard, from servers that know shards; others ignore it.
    pub shard: Option<ShardSelector>,
    /// Events after this version.
    pub resource_version: ResourceVersion,
    /// Must be `NotOlderThan` with `send_initial_events`, absent without.
    pub version_match: Option<VersionMatch>,
    /// KEP-3157: a streaming list, which starts with the state as synthetic ADDED events.
    pub send_initial_events: Option<bool>,
    /// BOOKMARK events wanted. A streaming list without them never says that its initial state is complete.
    pub allow_bookmarks: bool,
    /// How long the server should keep the watch open, in whole seconds.
    pub timeout: Option<Duration>,
}

/// What a server does with fields that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these values")]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them with a warning; the server's default.
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct WriteOptions {
    /// Who owns the fields that this write sets; required for apply.
    pub field_manager: Option<String>,
    /// Do everything but store the result.
    pub dry_run: bool,
    /// Apply only: take over fields that others own.
    pub force: bool,
    /// What to do with unknown fields.
    pub field_validation: Option<FieldValidation>,
}

/// What must be true for a delete to happen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct Preconditions {
    /// The object has this UID.
    pub uid: Option<String>,
    /// The object has this version.
    pub resource_version: Option<ResourceVersion>,
}

/// What happens to the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these values")]
pub enum Propagation {
    /// They stay, without this owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// Options of delete and delete-collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct DeleteOptions {
    /// Delete only if these hold.
    pub preconditions: Preconditions,
    /// Seconds; 0 is at once. Only pods have a grace period of their own.
    pub grace_period_seconds: Option<i64>,
    /// What happens to owned objects.
    pub propagation: Option<Propagation>,
    /// Do everything but delete.
    pub dry_run: bool,
}

/// The kind of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these values")]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Kubernetes' own merge, for built-in kinds.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// An encoded body. A clone is a reference count.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair of two fields")]
pub struct Payload {
    /// The bytes; for protobuf with the `k8s\0` envelope.
    pub bytes: Bytes,
    /// Their format.
    pub format: Format,
}

impl Payload {
    /// A JSON body.
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), format: Format::Json }
    }

    /// A protobuf body, envelope included.
    pub fn protobuf(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), format: Format::Protobuf }
    }
}

/// Shows format and size, never the contents.
impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({:?}, {} bytes)", self.format, self.bytes.len())
    }
}

/// What is to be done. Names are without namespace: that is in the request's [`Collection`].
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "every layer must decide for each operation")]
pub enum Operation {
    /// Read one object, or a subresource of it.
    Get {
        /// Name of the object.
        name: Arc<str>,
        /// Options.
        options: GetOptions,
    },
    /// Read many.
    List(ListOptions),
    /// Follow changes.
    Watch(WatchOptions),
    /// Make an object, or post to a subresource of the object `name`.
    Create {
        /// Name of the parent object, for a subresource only.
        name: Option<Arc<str>>,
        /// The object.
        body: Payload,
        /// Options.
        options: WriteOptions,
    },
    /// Replace an object.
    Update {
        /// Name of the object.
        name: Arc<str>,
        /// The object.
        body: Payload,
        /// Options.
        options: WriteOptions,
    },
    /// Change an object.
    Patch {
        /// Name of the object.
        name: Arc<str>,
        /// Kind of patch.
        kind: PatchKind,
        /// The patch.
        body: Bytes,
        /// Options.
        options: WriteOptions,
    },
    /// Remove an object.
    Delete {
        /// Name of the object.
        name: Arc<str>,
        /// Options.
        options: DeleteOptions,
    },
    /// Remove many.
    DeleteCollection {
        /// Which.
        list: ListOptions,
        /// Options.
        options: DeleteOptions,
    },
}

/// The verbs of the API, as in RBAC rules and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the API has these verbs")]
pub enum Verb {
    /// `get`
    Get,
    /// `list`
    List,
    /// `watch`
    Watch,
    /// `create`
    Create,
    /// `update`
    Update,
    /// `patch`
    Patch,
    /// `delete`
    Delete,
    /// `deletecollection`
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the verb changes nothing on the server.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request. A clone is cheap, so that layers can retry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApiRequest {
    /// Kind, namespace and form.
    pub collection: Collection,
    /// What to do.
    pub operation: Operation,
    /// Subresource, as in `status`.
    pub subresource: Option<Arc<str>>,
}

impl ApiRequest {
    /// A request on the objects of a collection.
    pub fn new(collection: Collection, operation: Operation) -> Self {
        Self { collection, operation, subresource: None }
    }

    /// The same request on a subresource.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<Arc<str>>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// The verb.
    pub fn verb(&self) -> Verb {
        match self.operation {
            Operation::Get { .. } => Verb::Get,
            Operation::List(_) => Verb::List,
            Operation::Watch(_) => Verb::Watch,
            Operation::Create { .. } => Verb::Create,
            Operation::Update { .. } => Verb::Update,
            Operation::Patch { .. } => Verb::Patch,
            Operation::Delete { .. } => Verb::Delete,
            Operation::DeleteCollection { .. } => Verb::DeleteCollection,
        }
    }

    /// Name of the object that the request is about, where it is about one.
    pub fn name(&self) -> Option<&str> {
        match &self.operation {
            Operation::Get { name, .. }
            | Operation::Update { name, .. }
            | Operation::Patch { name, .. }
            | Operation::Delete { name, .. } => Some(name),
            Operation::Create { name, .. } => name.as_deref(),
            Operation::List(_) | Operation::Watch(_) | Operation::DeleteCollection { .. } => None,
        }
    }

    /// Key of the object that the request is about, where it is about one.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.collection.namespace.as_deref(), self.name()?))
    }
}
