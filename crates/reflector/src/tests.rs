//! Tests of the reflector: a script of answers, and a log of all that followed.

mod bugs;
mod config;
mod consistency;
mod convergence;
mod limits;
mod shards;
mod vectors;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::Expect;
use kubestrata_testkit::{FakeWorld, Scripted, Thing, describe, show_update, things};
use tokio::time::{Instant, timeout_at};

use crate::{Config, FailureHook, Fallbacks, Reflector, ReflectorStatus};

/// A reflector over a script, and the log of requests, updates and failures in the order in which they happened.
struct Run {
    server: Scripted<Thing>,
    reflector: Reflector<Thing>,
    log: Arc<Log>,
}

struct Log {
    server: Scripted<Thing>,
    origin: Instant,
    lines: Mutex<(String, usize)>,
}

impl Log {
    fn line(&self, text: &str) {
        let mut lines = self.lines.lock().unwrap();
        let requests = self.server.recorded();
        let (out, seen) = &mut *lines;
        for (at, request) in &requests[*seen..] {
            writeln!(out, "{:.3} > {}", at.as_secs_f64(), describe(request)).unwrap();
        }
        *seen = requests.len();
        if !text.is_empty() {
            writeln!(out, "{:.3} {text}", self.origin.elapsed().as_secs_f64()).unwrap();
        }
    }
}

impl Run {
    fn new(script: &str, config: Config) -> Self {
        let server = Scripted::parse(script).unwrap();
        let lines = Mutex::new((String::new(), 0));
        let log = Arc::new(Log { server: server.clone(), origin: Instant::now(), lines });
        let hook = Arc::clone(&log);
        let config = Config {
            world: Arc::new(FakeWorld::new(1)),
            // A server of its own.
            fallbacks: Fallbacks::default(),
            on_failure: Some(FailureHook::new(move |failure| {
                hook.line(&format!(
                    "! {}: {}; {}",
                    failure.during, failure.error, failure.recovery
                ));
            })),
            ..config
        };
        let reflector = Reflector::new(server.clone(), things(), config);
        Self { server, reflector, log }
    }

    /// Lets it run for this long.
    async fn run(&mut self, time: Duration) -> &mut Self {
        let end = Instant::now() + time;
        while let Ok(update) = timeout_at(end, self.reflector.next()).await {
            self.log.line(&show_update(&update));
        }
        self.log.line("");
        self
    }

    fn text(&self) -> String {
        self.log.lines.lock().unwrap().0.clone()
    }

    fn status(&self) -> ReflectorStatus {
        self.reflector.status().read()
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Runs a script to its end or for 400 seconds, and compares the log.
async fn check(script: &str, expected: Expect) {
    check_with(Config::default(), script, 400, expected).await;
}

/// The same without streaming lists.
async fn check_plain(script: &str, expected: Expect) {
    check_with(Config { streaming: false, ..Config::default() }, script, 400, expected).await;
}

async fn check_with(config: Config, script: &str, time: u64, expected: Expect) {
    let mut run = Run::new(script, config);
    // A script that has ended hangs; what a reflector makes of that is not part of the scenario.
    let end = Instant::now() + seconds(time);
    while Instant::now() < end
        && run.server.requests().last().is_none_or(|r| !r.ends_with("ended)"))
    {
        let Ok(update) =
            timeout_at(end.min(Instant::now() + seconds(1)), run.reflector.next()).await
        else {
            continue;
        };
        run.log.line(&show_update(&update));
    }
    run.log.line("");
    expected.assert_eq(&run.text());
}

#[test]
fn a_reflector_can_be_sent_and_its_parts_are_small() {
    fn sendable<T: Send>() {}
    sendable::<Reflector<Thing>>();
}
