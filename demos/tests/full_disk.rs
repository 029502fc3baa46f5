//! What is printed to a disk that is full is lost, and a demo says so.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::process::Command;

#[test]
fn results_on_a_full_disk_are_a_failure_that_names_it() {
    for arguments in [["--list"], ["realfifo"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_demos"));
        let output = command.args(arguments).stdout(full).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("standard output: No space left"), "{arguments:?}: {error}");
    }
}
