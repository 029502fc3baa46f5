//! The item that flows through all layers: an object's own bytes and its head.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{
    Collection, FieldPath, Format, KeyRef, Object, OwnerRef, PartialObjectMetadata, Representation,
    ResourceType, ResourceVersion, Segment, Timestamp, Undecodable, Unreadable, View, ViewError,
};
use serde::de::DeserializeOwned;

use crate::head::{Block, HeadBuilder, Kept, OBJECT_BYTES_MAX, SelfType};
use crate::json::noting::STRING_TOO_LONG;
use crate::limits::Limits;
use crate::{decode, head, prune, view};

/// An object as its wire bytes and a small parsed head, in one allocation. A clone is a reference count.
///
/// The bytes are JSON text, or the protobuf message without the `k8s\0` envelope; the head points into them. Nothing but
/// the head is decoded, or even checked, before [`Encoded::decode`].
///
/// Items of lists of built-in kinds carry no `kind` and `apiVersion`; [`Encoded::resource`] knows them.
#[derive(Clone)]
pub struct Encoded(Block);

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
    /// of more than 512 MiB. It names the object as far as that could be read. An object without a name is no error here:
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
            return Err(HeadBuilder::new(&[]).unreadable("larger than 512 MiB"));
        }
        let (prune, depth_max) = (reading.prune, reading.limits.depth);
        let mut builder = HeadBuilder::new(bytes);
        let scanned = head::scan(resource, format, bytes, depth_max, &mut builder);
        if let Err(error) = scanned {
            return Err(builder.unreadable(error.to_string()));
        }
        if builder.longest_text(reading.limits.string_bytes) > reading.limits.string_bytes {
            return Err(builder.unreadable(STRING_TOO_LONG));
        }
        let inspected = inspect(&builder.own);
        let managed_fields_only = is_managed_fields(prune);
        // What a path could have led to is not looked for: that an update is refused must not depend on the object.
        let whole = (prune.is_empty() || managed_fields_only) && !reading.metadata_only;
        let kept = Kept { resource, format, whole };
        if prune.is_empty() {
            return Ok((Self(builder.keep(&kept)), inspected));
        }
        // By far the most frequent request. The scan has found the place, so no second pass is needed.
        if managed_fields_only && let Some(block) = builder.keep_without_managed_fields(&kept) {
            return Ok((Self(block), inspected));
        }
        let pruned = prune::prune(resource, format, bytes, prune, depth_max)
            .map_err(|error| builder.unreadable(error.to_string()))?;
        let mut builder = HeadBuilder::new(&pruned);
        head::scan(resource, format, &pruned, depth_max, &mut builder)
            .map_err(|error| builder.unreadable(error.to_string()))?;
        Ok((Self(builder.keep(&kept)), inspected))
    }

    /// The object's type.
    pub fn resource(&self) -> &Arc<ResourceType> {
        self.0.resource()
    }

    /// The format of [`Encoded::bytes`].
    pub fn format(&self) -> Format {
        self.0.format()
    }

    /// JSON text, or the protobuf message without its envelope.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Bytes on the heap, for accounting. The resource type is shared and not counted.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Whether the bytes are the whole object: nothing but `managedFields` was to be cut out as they arrived, and not the
    /// metadata alone was asked for.
    pub fn is_whole(&self) -> bool {
        self.0.is_whole()
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
            api_version: Some(self.resource().api_version().into_owned()),
            kind: Some(self.resource().kind.to_string()),
            metadata,
        })
    }

    /// The metadata's own bytes, empty if there is none, and their offset.
    pub(crate) fn metadata_bytes(&self) -> (&[u8], usize) {
        self.0.metadata()
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
        self.0.name()
    }

    fn namespace(&self) -> Option<&str> {
        self.0.namespace()
    }

    fn uid(&self) -> Option<&str> {
        self.0.uid()
    }

    fn resource_version(&self) -> ResourceVersion {
        self.0.resource_version()
    }

    fn generation(&self) -> Option<i64> {
        self.0.generation()
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.0.deletion_timestamp()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        self.0.for_each_label(f);
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        self.0.for_each_owner(f);
    }

    fn key_ref(&self) -> KeyRef<'_> {
        self.0.key()
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
        // One block has one place.
        std::ptr::eq(self.bytes(), other.bytes())
            || (self.format() == other.format()
                && self.bytes() == other.bytes()
                && self.resource() == other.resource())
    }
}

impl Eq for Encoded {}

/// Shows identity and size, never the contents.
impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}@{} ({:?}, {} bytes)",
            self.resource(),
            self.key_ref(),
            self.resource_version(),
            self.format(),
            self.bytes().len()
        )
    }
}
