//! Limits and times of the server.

use std::time::Duration;

/// Limits and times, with the defaults of kube-apiserver where it has them.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config {
    /// Bytes of a request's body. Default 3 MiB, as kube-apiserver.
    pub body_bytes: usize,
    /// How long a read waits for a version of the future before it is answered with 504. Default 3 s, as kube-apiserver.
    pub fresh_patience: Duration,
    /// A watch without `timeoutSeconds` ends after a random time between this and twice this.
    /// Default 30 minutes, as `--min-request-timeout`.
    pub watch_timeout: Duration,
    /// Time between bookmarks. Default 60 s, as kube-apiserver.
    pub bookmark_interval: Duration,
    /// How often a write without a version is tried again when another write comes between. Default 1,000.
    pub write_retries: usize,
    /// How often a generated name is tried again when it is taken. Default 8, as kube-apiserver.
    pub name_retries: usize,
    /// Features by the names of Kubernetes.
    pub gates: Gates,
    /// The past that lists can read.
    pub storage: kubestrata_storage::Config,
    /// The past that watches can resume from, for each resource.
    pub watch_cache: kubestrata_watch_cache::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            body_bytes: 3 << 20,
            fresh_patience: Duration::from_secs(3),
            watch_timeout: Duration::from_secs(30 * 60),
            bookmark_interval: Duration::from_secs(60),
            write_retries: 1000,
            name_retries: 8,
            gates: Gates::default(),
            storage: kubestrata_storage::Config::default(),
            watch_cache: kubestrata_watch_cache::Config::default(),
        }
    }
}

/// Features that can be switched off, by the names of their gates in Kubernetes. All are on by default.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Gates {
    /// `WatchList` (KEP-3157). Off, a watch with `sendInitialEvents` is refused with 422, as by servers before 1.32.
    pub watch_list: bool,
    /// `StreamingCollectionEncodingToJSON` (KEP-5116). Off, a JSON list is made as a whole before it is sent.
    pub streaming_collection_encoding_to_json: bool,
    /// `StreamingCollectionEncodingToProtobuf` (KEP-5116). Off, a protobuf list is made as a whole before it is sent.
    pub streaming_collection_encoding_to_protobuf: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            watch_list: true,
            streaming_collection_encoding_to_json: true,
            streaming_collection_encoding_to_protobuf: true,
        }
    }
}
