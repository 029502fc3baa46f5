//! The ways in which the system asks a program to end.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Askings that wait to be heard. More change nothing: the second already ends all.
const WAITING_MAX: usize = 4;

/// Hears each time that somebody asks, from its making on: also while nobody waits for it.
#[derive(Debug)]
pub struct Stop {
    asked: mpsc::Receiver<()>,
    /// Listens, and ends with us. A system without signals has none.
    _listener: JoinSet<()>,
}

impl Stop {
    /// Listens to SIGINT (Ctrl-C), SIGTERM and SIGHUP.
    pub fn listen() -> Self {
        let (tell, mut stop) = Self::told();
        if let (Ok(interrupt), Ok(terminate), Ok(hang_up)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) {
            // A task of its own: each signal is counted, while a listener that is made anew forgets what came before.
            stop._listener.spawn(forward([interrupt, terminate, hang_up], tell));
        } else {
            // Nobody can ask: the sender stays, so that the receiver waits for ever.
            stop._listener.spawn(async move { tell.closed().await });
        }
        stop
    }

    /// One that somebody else tells.
    pub(crate) fn told() -> (mpsc::Sender<()>, Self) {
        let (tell, asked) = mpsc::channel(WAITING_MAX);
        (tell, Self { asked, _listener: JoinSet::new() })
    }

    /// Ready once for each time that somebody asks. Cancel-safe.
    pub async fn asked(&mut self) {
        if self.asked.recv().await.is_none() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

async fn forward([mut interrupt, mut terminate, mut hang_up]: [Signal; 3], tell: mpsc::Sender<()>) {
    loop {
        tokio::select! {
            // All mean the same; the order is of no importance.
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        // Full: it is asked for already.
        let _ = tell.try_send(());
    }
}
