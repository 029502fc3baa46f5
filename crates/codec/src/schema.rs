//! The wire schema of every built-in kind, as static data.
//!
//! For each message the table gives its fields in the order of the published Go struct, which is the order of the JSON
//! form, with protobuf number, JSON name and type. Lookups by kind, number and name neither allocate nor initialise.
//! The data is generated (`cargo xtask codegen`) from `schema/schema.json`.

#[rustfmt::skip]
mod builtin;
#[rustfmt::skip]
mod table;

use kubestrata_api_types::ResourceType;

/// The release of `k8s.io/api` that the table was made from: minor 37 of Kubernetes.
pub const MINOR: u32 = 37;

/// A kind with its message.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kind {
    /// Kind, as in `Pod`.
    pub kind: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    message: u16,
}

impl Kind {
    /// The message that objects of this kind are on the wire.
    pub fn message(&self) -> &'static Message {
        &table::MESSAGES[usize::from(self.message)]
    }
}

/// The message of a built-in kind.
///
/// Top-level kinds carry no `apiVersion` and `kind` in the message: those travel in the envelope.
/// `None` for custom resources and for kinds of a newer server.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    let found = table::KINDS
        .binary_search_by(|entry| {
            (entry.kind, entry.group, entry.version).cmp(&(kind, group, version))
        })
        .ok()?;
    Some(table::KINDS[found].message())
}

/// The message of a kind given as objects name themselves: `group/version` or `version`, and kind.
pub fn kind_of(api_version: &str, kind_name: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kind(group, version, kind_name)
}

/// The message of the objects of `resource`.
pub fn resource(resource: &ResourceType) -> Option<&'static Message> {
    kind(&resource.group, &resource.version, &resource.kind)
}

/// Every kind of the table, sorted by kind, group and version.
pub fn kinds() -> &'static [Kind] {
    &table::KINDS
}

/// The message of `metadata` in every object.
pub fn object_meta() -> &'static Message {
    &table::MESSAGES[table::OBJECT_META]
}

/// The message of one entry of `managedFields`.
pub(crate) fn managed_fields() -> &'static Message {
    object_meta()
        .by_name("managedFields")
        .and_then(Field::message)
        .expect("metadata of every object has managed fields")
}

/// The message of a JSON schema in a CustomResourceDefinition, which some types hold without naming it.
pub(crate) fn json_schema() -> &'static Message {
    &table::MESSAGES[table::JSON_SCHEMA]
}

/// A resource that a server of this version serves.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resource {
    /// Group, version, kind, plural name and scope.
    pub resource: ResourceType,
    /// Name in the singular.
    pub singular: &'static str,
    /// What can be done with it, as discovery says it.
    pub verbs: &'static [&'static str],
    /// Abbreviations for kubectl.
    pub short_names: &'static [&'static str],
    /// Groups of resources for kubectl, as in `all`.
    pub categories: &'static [&'static str],
    /// Its subresources.
    pub subresources: &'static [Subresource],
}

/// A subresource, as in `pods/status`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Subresource {
    /// The part after the slash.
    pub name: &'static str,
    /// Group of its kind.
    pub group: &'static str,
    /// Version of its kind.
    pub version: &'static str,
    /// Its kind, which need not be the resource's: `pods/eviction` is `policy/v1` Eviction.
    pub kind: &'static str,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

/// The resources of the server that the table describes, sorted by group, version and name.
pub fn resources() -> &'static [Resource] {
    &builtin::RESOURCES
}

/// How deep messages are inlined in each other; the generator of the table refuses more.
pub(crate) const INLINED_MAX: usize = 2;

/// The fields of one message.
pub struct Message {
    name: &'static str,
    fields: &'static [Field],
    /// By field number: position in `fields` counted from one, or zero.
    slots: &'static [u8],
    /// By place on the wire, inlined messages unfolded: the way to the field, as positions counted from one, through
    /// inlined messages.
    ways: &'static [[u8; INLINED_MAX + 1]],
    /// By [`hash`] of the JSON name: the place of its field, or of any other.
    index: &'static [u8],
    /// Makes the hashes of the names differ.
    seed: u64,
    /// By position in `fields`: JSON shows the field even when the wire lacks it.
    zeros: u64,
    /// By place on the wire: Go writes the field even when it is zero. `None` if other messages are inlined.
    written: Option<u64>,
    /// JSON may hold `apiVersion` and `kind`, which the message has no fields for.
    is_kind: bool,
}

impl Message {
    /// Full name, as in `api.core.v1.Pod`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The fields in JSON order. An inlined message is one field without a name.
    pub fn fields(&self) -> &'static [Field] {
        self.fields
    }

    /// The field of a protobuf number.
    pub fn by_number(&self, number: u32) -> Option<&'static Field> {
        self.position(usize::try_from(number).ok()?).map(|position| &self.fields[position])
    }

    /// The field of a JSON name, looked for in inlined messages too.
    pub fn by_name(&self, name: &str) -> Option<&'static Field> {
        self.find(name).map(|(field, _)| field)
    }

    /// The message at a position in the table, as [`Type::Nested`] holds it.
    pub(crate) fn at(index: u16) -> &'static Self {
        &table::MESSAGES[usize::from(index)]
    }

    #[inline]
    pub(crate) fn position(&self, number: usize) -> Option<usize> {
        let slot = *self.slots.get(number)?;
        usize::from(slot).checked_sub(1)
    }

    /// The fields in the order in which the wire has them.
    pub(crate) fn by_wire_order(&self) -> impl Iterator<Item = &'static Field> {
        let fields = self.fields;
        self.slots.iter().filter_map(move |slot| fields.get(usize::from(*slot).checked_sub(1)?))
    }

    /// Whether objects of this message are of a kind, and may say so.
    pub(crate) fn is_kind(&self) -> bool {
        self.is_kind
    }

    pub(crate) fn zeros(&self) -> u64 {
        self.zeros
    }

    /// How many fields JSON may show, those of inlined messages among them: the places of [`Message::find`] are below.
    pub(crate) fn places(&self) -> usize {
        self.ways.len()
    }

    /// The field of a JSON name, with its place among all fields in the order of the wire, inlined messages unfolded.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<(&'static Field, u8)> {
        let place = *self.index.get(hash(name, self.seed, self.index.len()))?;
        let field = self.by_place(place)?;
        (field.name == name).then_some((field, place))
    }

    /// The field at a place.
    #[inline]
    pub(crate) fn by_place(&self, place: u8) -> Option<&'static Field> {
        self.ways.get(usize::from(place)).map(|way| self.follow(*way))
    }

    /// The places of the fields that Go writes even when they are zero, one bit each. `None` for a message that has
    /// others inlined.
    pub(crate) fn written(&self) -> Option<u64> {
        self.written
    }

    /// The field at the end of a way.
    #[inline]
    fn follow(&self, path: [u8; INLINED_MAX + 1]) -> &'static Field {
        let first = &self.fields[usize::from(path[0]) - 1];
        // Hardly any field is in an inlined message.
        if path[1] == 0 { first } else { first.follow(&path[1..]) }
    }
}

/// Below `slots`, a power of two. The generator of the table chose a `seed` for each message with which the names of its
/// fields do not meet, so that one look tells the only field that a name can be.
#[inline]
fn hash(name: &str, seed: u64, slots: usize) -> usize {
    let name = name.as_bytes();
    // Hardly any name is longer than two words.
    let (head, tail) = match (name.first_chunk(), name.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => match (name.first_chunk(), name.last_chunk()) {
            (Some(head), Some(tail)) => {
                (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into())
            }
            _ => (name.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)), 0),
        },
    };
    let mixed = (head ^ tail.rotate_left(29)).wrapping_add(name.len() as u64).wrapping_mul(seed);
    // The topmost bits depend on all others.
    (((mixed >> 32) * slots as u64) >> 32) as usize
}

impl Field {
    /// The field at the end of a way through inlined messages.
    fn follow(&'static self, path: &[u8]) -> &'static Self {
        let mut field = self;
        for step in path {
            match (step, field.message()) {
                (0, _) | (_, None) => break,
                (step, Some(inner)) => field = &inner.fields[usize::from(*step) - 1],
            }
        }
        field
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Message").field(&self.name).finish()
    }
}

/// Type of a field, or of its elements or map values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    Text,
    Bytes,
    /// A message, by position in the table.
    Nested(u16),
    /// A message that only wraps a list; JSON shows the list.
    List(u16),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// `RawExtension`, `FieldsV1` and `JSON`: JSON text in field 1 of a message.
    Json,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
}

impl Type {
    /// A JSON schema.
    pub(crate) const SCHEMA: Self = Self::Nested(table::JSON_SCHEMA as u16);

    /// Whether the wire holds the value itself: of several entries the last one counts.
    pub(crate) fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Int32 | Self::Int64 | Self::Double | Self::Text | Self::Bytes
        )
    }

    pub(crate) fn message(self) -> Option<&'static Message> {
        match self {
            Self::Nested(index) | Self::List(index) => Some(Message::at(index)),
            _ => None,
        }
    }
}

/// The bits of `Field::flags`.
mod flag {
    pub(super) const REPEATED: u8 = 1;
    pub(super) const MAP: u8 = 2;
    pub(super) const INLINE: u8 = 4;
    pub(super) const OMIT_EMPTY: u8 = 8;
    pub(super) const OMIT_ZERO: u8 = 16;
    pub(super) const POINTER: u8 = 32;
    pub(super) const NIL: u8 = 64;
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    name: &'static str,
    number: u8,
    ty: Type,
    flags: u8,
    /// Position in the table of merge rules counted from one, or zero.
    merge: u8,
}

impl Field {
    /// JSON name; empty for an inlined message.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Protobuf field number.
    pub fn number(&self) -> u32 {
        u32::from(self.number)
    }

    /// The message of the field, or of its elements or map values; `None` for scalars and for types with a JSON form of
    /// their own.
    pub fn message(&self) -> Option<&'static Message> {
        self.ty.message()
    }

    /// Whether the field is a list in JSON.
    pub fn is_list(&self) -> bool {
        self.flags & flag::REPEATED != 0 || matches!(self.ty, Type::List(_)) && !self.is_map()
    }

    /// Whether the field is a map with string keys.
    pub fn is_map(&self) -> bool {
        self.flags & flag::MAP != 0
    }

    /// Whether the field is a message whose fields stand in JSON where the message would.
    pub fn is_inline(&self) -> bool {
        self.flags & flag::INLINE != 0
    }

    /// Whether the field has a value apart from being absent: a pointer in Go.
    pub fn is_pointer(&self) -> bool {
        self.flags & flag::POINTER != 0
    }

    /// How strategic merge patch and server-side apply treat the field.
    pub fn merge(&self) -> &'static Merge {
        static NONE: Merge =
            Merge { strategy: "", key: "", list_type: "", list_keys: &[], map_type: "" };
        match usize::from(self.merge).checked_sub(1) {
            Some(index) => &table::MERGES[index],
            None => &NONE,
        }
    }

    /// Whether this is the field of `ObjectMeta` that most readers skip.
    pub(crate) fn is_managed_fields(&self) -> bool {
        self.name == "managedFields"
    }

    pub(crate) fn ty(&self) -> Type {
        self.ty
    }

    pub(crate) fn is_repeated(&self) -> bool {
        self.flags & flag::REPEATED != 0
    }

    /// Whether the field is nil in Go when it is absent: a pointer, list, map, or bytes.
    pub(crate) fn is_nil(&self) -> bool {
        self.flags & flag::NIL != 0
    }

    pub(crate) fn omits_empty(&self) -> bool {
        self.flags & flag::OMIT_EMPTY != 0
    }

    /// Whether the field is one value, and no message whose zero value JSON lacks.
    pub(crate) fn is_single(&self) -> bool {
        self.flags & (flag::REPEATED | flag::MAP | flag::INLINE | flag::OMIT_ZERO) == 0
    }

    /// Whether the field is absent in JSON when it is empty.
    pub(crate) fn hides_empty(&self) -> bool {
        self.flags & (flag::OMIT_EMPTY | flag::POINTER) == flag::OMIT_EMPTY
    }

    pub(crate) fn omits_zero(&self) -> bool {
        self.flags & flag::OMIT_ZERO != 0
    }
}

/// How two versions of a field are merged. Empty where Kubernetes says nothing.
#[derive(Debug)]
#[non_exhaustive]
pub struct Merge {
    /// Strategic merge patch: `merge`, `replace`, `retainKeys`, or several with commas.
    pub strategy: &'static str,
    /// Strategic merge patch: the field that tells the elements of a list apart.
    pub key: &'static str,
    /// Server-side apply: `atomic`, `set` or `map` for lists.
    pub list_type: &'static str,
    /// Server-side apply: the fields that tell the elements of a list of type `map` apart.
    pub list_keys: &'static [&'static str],
    /// Server-side apply: `atomic` or `granular` for structs and maps.
    pub map_type: &'static str,
}

#[cfg(test)]
mod tests;
