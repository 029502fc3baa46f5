//! What it costs to read a pod, by way and encoding.
//!
//! `cargo run --release -p kubestrata-codec --example decode_cost [FILE.pb]`: FILE holds a pod in the `k8s\0` envelope;
//! without one, a pod as a Deployment's controller makes it is taken.

use std::hint::black_box;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_codec::{envelope, proto, schema, transcode};
use tokio::time::Instant;

/// Runs of each way; the median counts.
const ROUNDS: usize = 21;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message = schema::kind("", "v1", "Pod").ok_or("no message")?;
    let mut body = Vec::new();
    match std::env::args().nth(1) {
        Some(path) => body.extend_from_slice(envelope::open(&std::fs::read(path)?)?.message),
        None => drop(transcode::to_protobuf(POD.as_bytes(), message, &mut body)?),
    }
    let options = proto::Options::of("v1", "Pod");
    let mut json = Vec::new();
    transcode::to_json(&body, message, &options, &mut json)?;
    let short = options.without_managed_fields();
    let mut short_json = Vec::new();
    transcode::to_json(&body, message, &short, &mut short_json)?;
    let pod: Pod = proto::from_slice(&body, message, &options)?;

    report("protobuf → Pod", body.len(), || proto::from_slice::<Pod>(&body, message, &options));
    report("protobuf → Pod, managedFields skipped", body.len(), || {
        proto::from_slice::<Pod>(&body, message, &short)
    });
    report("JSON → Pod", json.len(), || serde_json::from_slice::<Pod>(&json));
    report("JSON without managedFields → Pod", short_json.len(), || {
        serde_json::from_slice::<Pod>(&short_json)
    });
    report("Pod → protobuf", body.len(), || proto::to_vec(&pod, message));
    report("Pod → JSON", json.len(), || serde_json::to_vec(&pod));
    report("protobuf → JSON text", body.len(), || {
        let mut out = Vec::new();
        transcode::to_json(&body, message, &options, &mut out).map(|_| out)
    });
    report("JSON text → protobuf", json.len(), || {
        let mut out = Vec::new();
        transcode::to_protobuf(&json, message, &mut out).map(|_| out)
    });
    Ok(())
}

/// Prints the median time of one call.
#[expect(clippy::print_stdout, reason = "a program for people")]
fn report<T, E>(name: &str, bytes: usize, mut call: impl FnMut() -> Result<T, E>) {
    const CALLS: u32 = 2_000;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                let _ = black_box(call());
            }
            start.elapsed() / CALLS
        })
        .collect();
    times.sort();
    println!("{name:40} {bytes:6} bytes {:8.2} µs", times[ROUNDS / 2].as_secs_f64() * 1e6);
}

/// A pod with one container, as a server shows it, managed fields included.
const POD: &str = include_str!("pod.json");
