use rustix::process::{Signal, getpid, kill_process};
use tokio::time::sleep;

use super::*;

/// How long a child may take to start and to end on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let mut command = command("sh");
    command.args(["-c", script]);
    command
}

/// One test: a signal to this process is heard by every child that runs meanwhile.
#[tokio::test]
async fn signals_reach_an_interactive_child_and_its_code_reaches_us() {
    assert!(interactive(shell("exit 0")).await.is_ok());
    for (script, code) in [("exit 2", 2), ("exit 130", 130), ("kill -TERM $$", 143)] {
        assert_eq!(interactive(shell(script)).await.unwrap_err().code(), code, "{script}");
    }
    assert_eq!(bounded(shell("exit 2"), PATIENCE).await.unwrap_err().code(), 1);
    for (signal, name, code) in [(Signal::TERM, "TERM", 7), (Signal::HUP, "HUP", 8)] {
        let ended = timeout(PATIENCE, signalled(signal, name, code)).await.expect("the child ends");
        assert_eq!(ended.unwrap_err().code(), code, "{name}");
    }
}

/// Runs a child that ends with `code` at the signal, which is sent to us as soon as the child is ready for it.
async fn signalled(signal: Signal, name: &str, code: u8) -> Result<(), Failure> {
    let ready = std::env::temp_dir().join(format!("kubestrata-run-{}", std::process::id()));
    // A process of the same number may have left it, and the signal must not come before the child's own.
    let _ = std::fs::remove_file(&ready);
    let path = ready.display();
    let script =
        format!("trap 'rm {path}; exit {code}' {name}; : > {path}; while :; do sleep 0.02; done");
    let ask = async {
        while !ready.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        // `interactive` listens before it starts the child.
        kill_process(getpid(), signal).unwrap();
    };
    tokio::join!(interactive(shell(&script)), ask).0
}
