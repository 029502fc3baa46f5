#![doc = include_str!("../README.md")]

mod codec;
mod controller;
mod counting;
mod events;
mod follow;
mod measure;
mod pods;
mod reads;
mod requests;
mod seed;
mod site;
mod smoke;
mod sync;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kubestrata_api_types::BoxError;
use serde_json::Value;

#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: counting::Counting<mimalloc::MiMalloc> = counting::Counting(mimalloc::MiMalloc);

#[cfg(feature = "system-allocator")]
#[global_allocator]
static ALLOCATOR: counting::Counting<std::alloc::System> = counting::Counting(std::alloc::System);

/// Benchmarks of kubestrata. Each run prints one JSON line.
#[derive(Debug, Parser)]
#[command(name = "kubestrata-bench")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Creates the pods that the others read.
    Seed(seed::Options),
    /// The initial sync of an informer.
    Sync(sync::Options),
    /// Events at the speed of the socket, from the replay server of the peers.
    Events(events::Options),
    /// Cached reads.
    Reads(reads::Options),
    /// Single requests: a GET and a PATCH, one at a time and 100.
    Requests(requests::Options),
    /// The codec on recorded objects. Prints one line for each figure, and a table.
    Codec(codec::Options),
    /// No-op reconciles.
    Controller(controller::Options),
    /// All of it in a tiny size against the embedded server.
    Smoke,
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Arguments::parse().what {
        What::Seed(options) => seed::run(&options).await,
        What::Sync(options) => sync::run(&options).await,
        What::Events(options) => events::run(&options).await,
        What::Reads(options) => reads::run(&options).await,
        What::Requests(options) => requests::run(&options).await,
        What::Codec(options) => codec::run(&options).await,
        What::Controller(options) => controller::run(&options).await,
        What::Smoke => smoke::run().await,
    };
    match result {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kubestrata-bench: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// One line of results, or why there are none.
type Result<T = Value> = std::result::Result<T, BoxError>;
