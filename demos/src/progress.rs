//! What a person sees meanwhile: bars on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::{Instant, sleep};

/// Why what was said did not arrive, the first time.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a line. One that does not get through is no reason to leave things behind on a server: [`lost`] tells of it in
/// the end.
pub fn say(line: &str) {
    if let Err(error) = writeln!(io::stdout(), "{line}") {
        // A reader that has gone away wants no more.
        if error.kind() != io::ErrorKind::BrokenPipe {
            // Only the first counts.
            let _ = LOST.set(error);
        }
    }
}

/// Why some of what was said is lost, as on a disk that is full; `None` if it is not.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// One step with a number that moves towards a goal.
#[derive(Debug)]
pub struct Step {
    name: &'static str,
    started: Instant,
    bar: Option<ProgressBar>,
}

/// A step did not reach its goal in time.
#[derive(Debug)]
pub struct TooSlow {
    step: &'static str,
    limit: Duration,
    reached: u64,
    goal: u64,
}

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { step, limit, reached, goal } = self;
        write!(f, "{step}: {reached} of {goal} after {} s", limit.as_secs())
    }
}

impl std::error::Error for TooSlow {}

impl Step {
    pub fn new(name: &'static str, goal: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(goal).with_message(name);
            let style =
                ProgressStyle::with_template("{msg:<28} {bar:40} {pos:>5}/{len:<5} {elapsed}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        if bar.is_none() {
            say(&format!("{name} …"));
        }
        Self { name, started: Instant::now(), bar }
    }

    /// Since the step began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows how far it is.
    pub fn set(&self, reached: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(reached);
        }
    }

    /// Waits until `measure` gives (reached, whether done), polled 20 times a second.
    pub async fn reach(
        self,
        goal: u64,
        limit: Duration,
        mut measure: impl FnMut() -> (u64, bool),
    ) -> Result<(), TooSlow> {
        loop {
            let (reached, done) = measure();
            self.set(reached);
            if done {
                self.done();
                return Ok(());
            }
            if self.started.elapsed() > limit {
                return Err(TooSlow { step: self.name, limit, reached, goal });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends the step.
    pub fn done(self) {
        self.end("done");
    }

    /// Ends a step that did not get through.
    pub fn failed(self) {
        self.end("FAILED");
    }

    fn end(self, how: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        match self.bar {
            Some(bar) if how == "done" => bar.finish(),
            Some(bar) => bar.abandon_with_message(format!("{}: {how}", self.name)),
            None => say(&format!("{}: {how} after {seconds:.1} s", self.name)),
        }
    }
}
