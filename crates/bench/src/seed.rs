//! Creates the pods that the other benchmarks read.

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_codec::Client as _;
use serde_json::json;
use tokio::time::Instant;

use crate::Result;
use crate::pods::pod;
use crate::site::{Place, Stack};

/// Requests at a time.
const PARALLEL: usize = 16;

/// How many pods, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Pods.
    #[arg(long, default_value_t = 30_000)]
    objects: u32,
}

/// Runs it once. Pods that are there already stay as they are.
pub(crate) async fn run(options: &Options) -> Result {
    let stack = options.place.connect(true)?;
    seed(stack, &options.place.namespace, options.objects).await
}

/// Creates namespace and pods over any stack.
pub(crate) async fn seed(stack: Stack, namespace: &str, objects: u32) -> Result {
    let start = Instant::now();
    let metadata = ObjectMeta { name: Some(namespace.to_owned()), ..ObjectMeta::default() };
    match stack.create(&Namespace { metadata, ..Namespace::default() }).await {
        Err(error) if !error.is_already_exists() => return Err(error.into()),
        _ => {}
    }
    let mut creations = stream::iter(0..objects)
        .map(|index| {
            let stack = stack.clone();
            async move { stack.create(&pod(namespace, index)).await }
        })
        .buffer_unordered(PARALLEL);
    while let Some(creation) = creations.next().await {
        match creation {
            Err(error) if !error.is_already_exists() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(json!({
        "what": "kubestrata seed",
        "objects": objects,
        "secs": start.elapsed().as_secs_f64(),
    }))
}
