//! Events at the speed of the socket, from the replay server of the peers.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::ListWatch;
use kubestrata_codec::{DecodeLayer, Decoded, Encoded};
use kubestrata_store_index::Stored;
use kubestrata_transport::{Config, Transport};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tower::Layer as _;

use crate::Result;
use crate::follow::follow;
use crate::measure::{cpu_ms, memory_kb};
use crate::site::{Form, Store, connect};

/// Events that take longer have failed.
const LIMIT: Duration = Duration::from_secs(120);

/// Where the events come from.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The replay server, as in `http://127.0.0.1:18080`.
    #[arg(long)]
    server: String,
    /// The namespace of the pods.
    #[arg(long, default_value = "bench")]
    namespace: String,
    /// How many events it sends.
    #[arg(long)]
    events: u64,
    #[command(flatten)]
    form: Form,
}

/// Not all events came.
#[derive(Debug, thiserror::Error)]
#[error("{have} of {want} events after {} s", LIMIT.as_secs())]
struct Missing {
    have: u64,
    want: u64,
}

/// Runs it once.
pub(crate) async fn run(options: &Options) -> Result {
    let config = Config::new(&options.server)?;
    // Compression is not what is measured, and the server has none.
    let stack = connect(config.clone(), true)?;
    let trigger = Transport::connect(config)?;
    match options.form.store {
        Store::Encoded => events::<Encoded>(Arc::new(stack), &trigger, options).await,
        Store::Decoded => {
            let decoded = DecodeLayer::<Pod>::new().layer(stack);
            events::<Decoded<Pod>>(Arc::new(decoded), &trigger, options).await
        }
    }
}

async fn events<T: Stored>(
    source: Arc<dyn ListWatch<T>>,
    trigger: &Transport,
    options: &Options,
) -> Result {
    let collection = options.form.pods(&options.namespace);
    let followed = follow(source, collection, Vec::new()).await?;
    let told = &followed.told;
    sleep(Duration::from_millis(300)).await;
    let (before, cpu, start) = (told.updates(), cpu_ms(), Instant::now());
    trigger.raw_get("/go").await?;
    let all = async {
        while told.updates() - before < options.events {
            sleep(Duration::from_millis(1)).await;
        }
    };
    if timeout(LIMIT, all).await.is_err() {
        return Err(Missing { have: told.updates() - before, want: options.events }.into());
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_ms() - cpu);
    let updates = told.updates() - before;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let (count, cpu) = (updates as f64, cpu as f64);
    Ok(json!({
        "what": "kubestrata replay",
        "format": format!("{:?}", options.form.format).to_lowercase(),
        "store": format!("{:?}", options.form.store).to_lowercase(),
        "updates": updates,
        "per_s": count / seconds,
        "cpu_us_per_event": cpu * 1000.0 / count,
        "peak_kb": memory_kb("VmHWM"),
    }))
}
