//! The ways in which the system asks a program to end.

use tokio::signal::unix::{SignalKind, signal};

/// Ready at the next SIGINT (Ctrl-C), SIGTERM or SIGHUP.
pub async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        // A system without signals cannot ask.
        return std::future::pending().await;
    };
    tokio::select! {
        // All mean the same; the order is of no importance.
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}
