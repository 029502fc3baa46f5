//! What a client is made of, by chance.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::ObjectMeta;
use kubestrata_derive::{Kind, Object};
use kubestrata_informer::reflector::{self, Backoff, FailureHook};
use kubestrata_informer::{Config, Fifo, Merging, QueueLimits};
use kubestrata_testkit::FakeWorld;
use kubestrata_transport::{Retry, Timeouts, Transport};
use serde::{Deserialize, Serialize};

use crate::log::note;
use crate::network::Wire;
use crate::sim::{Form, Sim, View};

/// What a client that keeps values reads of a ConfigMap.
#[derive(Debug, Clone, Serialize, Deserialize, Object, Kind)]
#[kubestrata(group = "", version = "v1", plural = "configmaps", scope = "Namespaced")]
pub(super) struct ConfigMap {
    metadata: ObjectMeta,
}

/// What a client that keeps values reads of a Widget.
#[derive(Debug, Clone, Serialize, Deserialize, Object, Kind)]
#[kubestrata(group = "sim.example", version = "v1", plural = "widgets", scope = "Namespaced")]
pub(super) struct Widget {
    metadata: ObjectMeta,
}

fn seconds(world: &FakeWorld, least: u64, most: u64) -> Duration {
    Duration::from_secs(least + world.below(most - least + 1))
}

/// A transport over one client's end of the network.
pub(super) fn transport(world: &FakeWorld, wire: Wire) -> Transport {
    let mut config = kubestrata_transport::Config::in_process();
    config.timeouts = Timeouts {
        answer: seconds(world, 5, 60),
        watch_answer: seconds(world, 5, 30),
        body: seconds(world, 5, 30),
        watch_margin: seconds(world, 2, 30),
        ..Timeouts::default()
    };
    if world.chance(50) {
        config.retry = Retry::never();
    }
    Transport::over(wire, config).expect("a configuration without credentials is valid")
}

/// A configuration by chance, and the count of what it brings.
pub(super) fn config<T>(world: &FakeWorld, sim: &Arc<Sim>, number: usize, view: View) -> Config<T> {
    let log = Arc::clone(sim);
    let failed = FailureHook::new(move |failure| {
        note!(log.log, "client {number}: {} failed: {}", failure.during, failure.recovery);
        log.log.count(match failure.recovery {
            reflector::Recovery::Retry(_) => "recovery: retry",
            reflector::Recovery::Reopen => "recovery: reopen",
            reflector::Recovery::Relist(_) => "recovery: relist",
            reflector::Recovery::AskForLatest => "recovery: ask for the latest",
            reflector::Recovery::FallBack => "recovery: fall back",
            reflector::Recovery::ListWhole => "recovery: list whole",
            _ => "recovery: other",
        });
    });
    let mut reflector = reflector::Config {
        streaming: world.chance(75),
        streaming_tries: 1 + u32::try_from(world.below(3)).unwrap_or(0),
        streaming_stall: seconds(world, 5, 75),
        fallback_for: seconds(world, 10, 300),
        page_size: world.chance(50).then(|| 1 + u32::try_from(world.below(5)).unwrap_or(0)),
        watch_timeout: seconds(world, 10, 120),
        read_margin: seconds(world, 2, 30),
        open_timeout: seconds(world, 5, 60),
        list_stall: seconds(world, 5, 60),
        backoff: Backoff { cap: seconds(world, 2, 30), ..Backoff::default() },
        world: Arc::new(FakeWorld::new(world.below(u64::MAX))),
        on_failure: Some(failed),
        ..reflector::Config::default()
    };
    view.selection().choose_in(&mut reflector);
    let queue = match world.below(3) {
        0 => QueueLimits { batch: 2, items: 3, ..QueueLimits::default() },
        1 => QueueLimits { batch: 1, items: 1, ..QueueLimits::default() },
        _ => QueueLimits::default(),
    };
    let fifo = match world.below(10) {
        0..=1 => Fifo::Apart,
        2 => Fifo::ByKey(Merging::Deletions),
        3 => Fifo::ByKey(Merging::ToNewest),
        _ => Fifo::Atomic,
    };
    count(sim, view, fifo);
    Config { reflector, queue, fifo, ..Config::default() }
}

fn count(sim: &Sim, view: View, fifo: Fifo) {
    sim.log.count(match fifo {
        Fifo::Atomic => "queue: atomic",
        Fifo::Apart => "queue: apart",
        Fifo::ByKey(Merging::Deletions) => "queue: by key",
        Fifo::ByKey(Merging::ToNewest) => "queue: by key, to the newest",
    });
    sim.log.count(match view.form {
        Form::Encoded => "kept as bytes",
        Form::Metadata => "kept as metadata",
        Form::Decoded => "kept decoded",
    });
    if !view.scope.fields.is_empty() {
        sim.log.count("field selector");
    }
}
