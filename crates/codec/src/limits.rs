//! Bounds on what a decoder accepts.

/// Bounds on what a decoder accepts from a server.
///
/// What is beyond one is a typed error with its place; memory is bounded by the first two in any case. A value is decoded
/// after its object has arrived: [`Encoded::decode`](crate::Encoded::decode) goes by the defaults of `depth` and
/// `string_bytes`, [`Encoded::decode_within`](crate::Encoded::decode_within) by the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// Bytes of one watch event. A larger one is an error of the stream, as in client-go's streaming decoder.
    /// Default: 16 MiB, as there.
    pub frame_bytes: usize,
    /// Bytes of one list item, or of the list's own metadata. A larger one is an error of the list.
    /// Default: 16 MiB; etcd takes 1.5 MiB by default.
    pub item_bytes: usize,
    /// Nesting of an object. Default: 128, where `serde_json` stops in any case. In protobuf it counts messages, of which
    /// [`proto::DEPTH`](crate::proto::DEPTH) at most may nest.
    pub depth: usize,
    /// Bytes of one string in an object's head or in a decoded value. Default: 16 MiB, as for a whole item.
    pub string_bytes: usize,
}

impl Limits {
    /// The defaults, as a constant.
    pub const DEFAULT: Self =
        Self { frame_bytes: 16 << 20, item_bytes: 16 << 20, depth: 128, string_bytes: 16 << 20 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
