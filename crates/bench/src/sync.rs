//! The initial sync of an informer: how long, how much CPU, how much memory.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::ListWatch;
use kubestrata_codec::{DecodeLayer, Decoded, Encoded};
use kubestrata_store_index::Stored;
use serde_json::json;
use tokio::time::Instant;
use tower::Layer as _;

use crate::Result;
use crate::follow::follow;
use crate::measure::{cpu_ms, memory_kb};
use crate::site::{Form, Place, Stack, Store};

/// What to sync.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    form: Form,
}

/// Runs it once.
pub(crate) async fn run(options: &Options) -> Result {
    let stack = options.place.connect(options.form.identity)?;
    measure(stack, &options.place.namespace, &options.form).await
}

/// Runs it once over any stack.
pub(crate) async fn measure(stack: Stack, namespace: &str, form: &Form) -> Result {
    match form.store {
        Store::Encoded => sync::<Encoded>(Arc::new(stack), namespace, form).await,
        Store::Decoded => {
            let decoded = DecodeLayer::<Pod>::new().layer(stack);
            sync::<Decoded<Pod>>(Arc::new(decoded), namespace, form).await
        }
    }
}

async fn sync<T: Stored>(source: Arc<dyn ListWatch<T>>, namespace: &str, form: &Form) -> Result {
    let (base_kb, cpu, start) = (memory_kb("VmRSS"), cpu_ms(), Instant::now());
    let followed = follow(source, form.pods(namespace), Vec::new()).await?;
    let sync_s = start.elapsed().as_secs_f64();
    let cpu_ms = cpu_ms() - cpu;
    let reader = followed.informer.reader();
    let (objects, usage) = (reader.len(), reader.usage());
    let rss_kb = memory_kb("VmRSS");
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes_per_object = rss_kb.saturating_sub(base_kb) as f64 * 1024.0 / objects.max(1) as f64;
    Ok(json!({
        "what": "kubestrata informer",
        "format": format!("{:?}", form.format).to_lowercase(),
        "store": format!("{:?}", form.store).to_lowercase(),
        "keep_managed_fields": form.keep_managed_fields,
        "identity": form.identity,
        "objects": objects,
        "sync_s": sync_s,
        "cpu_ms": cpu_ms,
        "base_kb": base_kb,
        "rss_kb": rss_kb,
        "peak_kb": memory_kb("VmHWM"),
        "bytes_per_object": bytes_per_object,
        "stored_bytes": usage.total(),
    }))
}
