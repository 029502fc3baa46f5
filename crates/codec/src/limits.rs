//! Bounds on what a decoder accepts.

/// Bounds on what a decoder accepts from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// Bytes of one watch event. A larger one is an error of the stream, as in client-go's streaming decoder.
    /// Default: 16 MiB, as there.
    pub frame_bytes: usize,
    /// Bytes of one list item, or of the list's own metadata. A larger one is an error of the list.
    /// Default: 16 MiB; etcd takes 1.5 MiB by default.
    pub item_bytes: usize,
    /// Nesting of an object. Default: 128, which is where `serde_json` stops too.
    pub depth: usize,
}

impl Limits {
    /// The defaults, as a constant.
    pub const DEFAULT: Self = Self { frame_bytes: 16 << 20, item_bytes: 16 << 20, depth: 128 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
