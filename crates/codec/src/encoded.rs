//! The item that flows through all layers: an object's own bytes and its head.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{
    Collection, FieldPath, Format, Object, ObjectKey, OwnerRef, PartialObjectMetadata,
    Representation, ResourceType, ResourceVersion, Segment, Timestamp, Undecodable, Unreadable,
    View, ViewError,
};
use serde::de::DeserializeOwned;

use crate::head::{Head, HeadBuilder, OBJECT_BYTES_MAX, SelfType};
use crate::json::noting::STRING_TOO_LONG;
use crate::limits::Limits;
use crate::{decode, head, prune, view};

/// An object as its wire bytes and a small parsed head. A clone is a reference count.
///
/// The bytes are JSON text, or the protobuf message without the `k8s\0` envelope. They are one allocation of exact size;
/// the head points into them. Nothing but the head is decoded, or even checked, before [`Encoded::decode`].
///
/// Items of lists of built-in kinds carry no `kind` and `apiVersion`; [`Encoded::resource`] knows them.
#[derive(Clone)]
pub struct Encoded(Arc<Inner>);

struct Inner {
    head: Head,
    resource: Arc<ResourceType>,
    format: Format,
    /// The bytes are the whole object, apart from `managedFields`.
    whole: bool,
    bytes: Box<[u8]>,
}

/// How the bytes of an object are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) prune: &'a [FieldPath],
    pub(crate) limits: &'a Limits,
    /// Nothing but metadata was asked for.
    pub(crate) metadata_only: bool,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(collection: &'a Collection, limits: &'a Limits) -> Self {
        let metadata_only = collection.representation == Representation::Metadata;
        Self { prune: &collection.prune, limits, metadata_only }
    }

    /// The same without pruning.
    pub(crate) fn keeping_all(self) -> Self {
        Self { prune: &[], ..self }
    }
}

impl Encoded {
    /// Reads an object of a known type, cutting out the fields `prune` first.
    ///
    /// `bytes` are JSON text, or a protobuf message without envelope. They are copied. A path that leads nowhere cuts
    /// nothing; in protobuf, neither does one into a raw extension that holds an object of an unknown kind.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the metadata is malformed, nesting is deeper than [`Limits::depth`]'s default, or the object is
    /// of 2 GiB or more. It names the object as far as that could be read. An object without a name is no error here:
    /// reviews have none.
    pub fn read(
        resource: &Arc<ResourceType>,
        format: Format,
        bytes: &[u8],
        prune: &[FieldPath],
    ) -> Result<Self, Unreadable> {
        let reading = Reading { prune, limits: &Limits::DEFAULT, metadata_only: false };
        let read = Self::read_and(resource, format, bytes, reading, |_| ());
        read.map(|(encoded, ())| encoded)
    }

    /// The same, and what `inspect` makes of what the object says of its type.
    pub(crate) fn read_and<R>(
        resource: &Arc<ResourceType>,
        format: Format,
        bytes: &[u8],
        reading: Reading<'_>,
        inspect: impl FnOnce(&SelfType<'_>) -> R,
    ) -> Result<(Self, R), Unreadable> {
        if bytes.len() > OBJECT_BYTES_MAX {
            return Err(HeadBuilder::default().unreadable("larger than 2 GiB"));
        }
        let (prune, depth_max) = (reading.prune, reading.limits.depth);
        // What a path could have led to is not looked for: that an update is refused must not depend on the object.
        let only_managed_fields = prune.is_empty() || is_managed_fields(prune);
        let whole = only_managed_fields && !reading.metadata_only;
        let make = |head, bytes| {
            Self(Arc::new(Inner { head, resource: Arc::clone(resource), format, whole, bytes }))
        };
        let mut builder = HeadBuilder::default();
        let scanned = head::scan(resource, format, bytes, depth_max, &mut builder);
        if let Err(error) = scanned {
            return Err(builder.unreadable(error.to_string()));
        }
        if builder.longest_text(reading.limits.string_bytes) > reading.limits.string_bytes {
            return Err(builder.unreadable(STRING_TOO_LONG));
        }
        let inspected = inspect(&builder.own);
        if prune.is_empty() {
            return Ok((make(builder.build(bytes), bytes.into()), inspected));
        }
        // By far the most frequent request. The scan has found the place, so no second pass is needed.
        if is_managed_fields(prune) && !builder.managed_fields_twice {
            let Some(cut) = builder.managed_fields.take() else {
                return Ok((make(builder.build(bytes), bytes.into()), inspected));
            };
            let field = builder.metadata_field;
            let mut head = builder.build(bytes);
            let bytes = match format {
                Format::Json => {
                    head.cut(&cut, 0);
                    [&bytes[..cut.start], &bytes[cut.end..]].concat()
                }
                Format::Protobuf => prune::cut_metadata(&mut head, bytes, field, &cut),
            };
            return Ok((make(head, bytes.into()), inspected));
        }
        let pruned = prune::prune(resource, format, bytes, prune, depth_max)
            .map_err(|error| builder.unreadable(error.to_string()))?;
        let mut builder = HeadBuilder::default();
        head::scan(resource, format, &pruned, depth_max, &mut builder)
            .map_err(|error| builder.unreadable(error.to_string()))?;
        let head = builder.build(&pruned);
        Ok((make(head, pruned.into()), inspected))
    }

    /// The object's type.
    pub fn resource(&self) -> &Arc<ResourceType> {
        &self.0.resource
    }

    /// The format of [`Encoded::bytes`].
    pub fn format(&self) -> Format {
        self.0.format
    }

    /// JSON text, or the protobuf message without its envelope.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The object's key, borrowed.
    pub fn object_key(&self) -> &ObjectKey {
        &self.0.head.key
    }

    /// Bytes on the heap, for accounting. The resource type is shared and not counted.
    pub fn size(&self) -> usize {
        size_of::<Inner>() + 2 * size_of::<usize>() + self.0.bytes.len() + self.0.head.size()
    }

    /// Whether the bytes are the whole object: nothing but `managedFields` was to be cut out as they arrived, and not the
    /// metadata alone was asked for.
    pub fn is_whole(&self) -> bool {
        self.0.whole
    }

    /// Decodes the whole object, to be read. To be changed and sent back, see [`Tracked::decode`](crate::Tracked::decode).
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if the bytes are malformed, are beyond the default [`Limits`], or do not fit `K`; it names object
    /// and place, not contents.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, Undecodable> {
        self.decode_within(&Limits::DEFAULT)
    }

    /// The same with limits of the caller's: `depth` and `string_bytes`.
    ///
    /// # Errors
    ///
    /// As [`Encoded::decode`].
    pub fn decode_within<K: DeserializeOwned>(&self, limits: &Limits) -> Result<K, Undecodable> {
        decode::object(self, limits).map(|(object, _)| object)
    }

    /// Decodes the metadata alone, whatever the rest is. `apiVersion` and `kind` are the object's own.
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if the metadata is malformed.
    pub fn metadata(&self) -> Result<PartialObjectMetadata, Undecodable> {
        let metadata = decode::metadata(self)?;
        Ok(PartialObjectMetadata {
            api_version: Some(self.0.resource.api_version().into_owned()),
            kind: Some(self.0.resource.kind.to_string()),
            metadata,
        })
    }

    /// The metadata's own bytes, empty if there is none, and their offset.
    pub(crate) fn metadata_bytes(&self) -> (&[u8], usize) {
        let span = &self.0.head.metadata;
        (&self.0.bytes[span.start as usize..span.end as usize], span.start as usize)
    }
}

/// Whether this is exactly [`FieldPath::managed_fields`].
fn is_managed_fields(prune: &[FieldPath]) -> bool {
    let is = |segment: &Segment, name: &str| matches!(segment, Segment::Field(field) if **field == *name);
    matches!(prune, [path] if matches!(
        path.segments(),
        [first, second] if is(first, "metadata") && is(second, "managedFields")
    ))
}

impl Object for Encoded {
    fn name(&self) -> &str {
        self.0.head.key.name()
    }

    fn namespace(&self) -> Option<&str> {
        self.0.head.key.namespace()
    }

    fn uid(&self) -> Option<&str> {
        self.0.head.uid(&self.0.bytes)
    }

    fn resource_version(&self) -> ResourceVersion {
        self.0.head.resource_version.clone()
    }

    fn generation(&self) -> Option<i64> {
        self.0.head.generation
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.0.head.deletion_timestamp
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.0.head.label(&self.0.bytes, key)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        self.0.head.for_each_label(&self.0.bytes, f);
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        self.0.head.for_each_owner(&self.0.bytes, f);
    }

    fn key(&self) -> ObjectKey {
        self.0.head.key.clone()
    }
}

/// Reads the path from the bytes.
impl View for Encoded {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        view::field(self, path, out)
    }
}

/// Equal if type, format and bytes are.
impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.format == other.0.format
                && self.0.bytes == other.0.bytes
                && self.0.resource == other.0.resource)
    }
}

impl Eq for Encoded {}

/// Shows identity and size, never the contents.
impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}@{} ({:?}, {} bytes)",
            self.0.resource,
            self.0.head.key,
            self.0.head.resource_version,
            self.0.format,
            self.0.bytes.len()
        )
    }
}
