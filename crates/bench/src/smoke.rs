//! All of it in a tiny size against the embedded server: shows that the benchmarks work, and no figures.

use kubestrata_apiserver::Server;
use kubestrata_transport::{Config, Transport};
use serde_json::{Value, json};

use crate::reads::Rounds;
use crate::site::{Form, Store, WireFormat, stack};
use crate::{Result, codec, controller, reads, requests, seed, sync};

/// Enough that each of the hundred labels and fifty nodes has pods.
const OBJECTS: u32 = 200;
/// GETs one at a time; the others follow from it.
const REQUESTS: u64 = 40;
const NAMESPACE: &str = "bench";

/// A benchmark did not see all pods, or lacks a field.
#[derive(Debug, thiserror::Error)]
#[error("a benchmark gave {0}")]
struct Wrong(Value);

/// Runs everything once.
pub(crate) async fn run() -> Result {
    let server = Server::start_default();
    let api = stack(Transport::over(server, Config::in_process())?);
    seed::seed(api.clone(), NAMESPACE, OBJECTS).await?;
    let mut lines = Vec::new();
    for format in [WireFormat::Protobuf, WireFormat::Json] {
        for store in [Store::Encoded, Store::Decoded] {
            let form = Form { format, store, ..Form::default() };
            lines.push(sync::measure(api.clone(), NAMESPACE, &form).await?);
        }
    }
    let rounds = Rounds { get: 200, label: 100, index: 50, full: 2 };
    lines.push(reads::measure(api.clone(), NAMESPACE, rounds).await?);
    lines.push(controller::measure(api.clone(), NAMESPACE, 10).await?);
    for line in &lines {
        if line["objects"] != json!(OBJECTS) || !line["peak_kb"].is_u64() {
            return Err(Wrong(line.clone()).into());
        }
    }
    for format in [WireFormat::Protobuf, WireFormat::Json] {
        lines.push(requests::measure(api.clone(), NAMESPACE, format, REQUESTS).await?);
    }
    lines.push(codec::smoke()?);
    Ok(Value::Array(lines))
}
