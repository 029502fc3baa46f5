//! Where a benchmark reads from.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Accept, ApiRequest, ApiResponse, BoxError, Collection, FieldPath, Format, Kind as _,
};
use kubestrata_codec::{Encoded, EncodedService};
use kubestrata_transport::{Compression, Config, Transport};
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use crate::Result;

/// Any stack of layers that answers requests.
pub(crate) type Stack = BoxCloneSyncService<ApiRequest, ApiResponse<Encoded>, BoxError>;

/// The server and the namespace.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// The server.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: PathBuf,
    /// The namespace of the pods.
    #[arg(long, default_value = "bench")]
    pub(crate) namespace: String,
}

/// In which form objects come, and what is kept of them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Form {
    /// Encoding on the wire.
    #[arg(long, value_enum, default_value = "protobuf")]
    pub(crate) format: WireFormat,
    /// What the store holds.
    #[arg(long, value_enum, default_value = "encoded")]
    pub(crate) store: Store,
    /// Keep `metadata.managedFields`, which are cut out otherwise.
    #[arg(long)]
    pub(crate) keep_managed_fields: bool,
    /// Ask for no compression.
    #[arg(long)]
    pub(crate) identity: bool,
}

/// Encoding on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireFormat {
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

impl From<WireFormat> for Format {
    fn from(format: WireFormat) -> Self {
        match format {
            WireFormat::Protobuf => Self::Protobuf,
            WireFormat::Json => Self::Json,
        }
    }
}

/// What the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// The objects' own bytes.
    Encoded,
    /// Rust values.
    Decoded,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            format: WireFormat::Protobuf,
            store: Store::Encoded,
            keep_managed_fields: false,
            identity: false,
        }
    }
}

impl Form {
    /// The pods of a namespace in this form.
    pub(crate) fn pods(&self, namespace: &str) -> Collection {
        let prune: Arc<[FieldPath]> = if self.keep_managed_fields {
            Arc::from([])
        } else {
            Arc::from([FieldPath::managed_fields()])
        };
        Collection::new(Pod::resource().clone())
            .in_namespace(namespace)
            .accept(Accept::Only(self.format.into()))
            .prune(prune)
    }
}

impl Place {
    /// Connects. Without `identity` compression is asked for, as the Go peers do by default.
    pub(crate) fn connect(&self, identity: bool) -> Result<Stack> {
        connect(Config::from_kubeconfig(&self.kubeconfig)?, identity)
    }
}

/// Connects to the server of a configuration.
pub(crate) fn connect(mut config: Config, identity: bool) -> Result<Stack> {
    config.compression = if identity { Compression::Never } else { Compression::Always };
    Ok(stack(Transport::connect(config)?))
}

/// A service without its type.
pub(crate) fn stack(service: impl EncodedService) -> Stack {
    BoxCloneSyncService::new(service.map_err(Into::into))
}
