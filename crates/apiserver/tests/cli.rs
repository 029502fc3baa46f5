//! The program: what it prints, writes, serves, and how it ends.

#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use kubestrata_transport::{Config, Transport};

/// The program, killed if the test fails.
struct Program(Child);

impl Program {
    fn start(args: &[&str]) -> (Self, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kubestrata-apiserver"))
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it prints its URL");
        (Self(child), line.trim_end().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_program_serves_until_it_is_told_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("token"), "a token\n").unwrap();
    let (mut program, url) = Program::start(&[
        "--listen",
        "127.0.0.1:0",
        "--tls",
        "--token-file",
        &file("token"),
        "--kubeconfig-out",
        &file("kubeconfig"),
        "--declare",
        "x.io/v1/Foo/foos/namespaced",
    ]);
    // The kubeconfig is there before the line is printed.
    let config = Config::from_kubeconfig(file("kubeconfig")).unwrap();
    assert_eq!(format!("{url}/"), config.server.to_string());
    let transport = Transport::connect(config).unwrap();
    let foos = transport.raw_get("/apis/x.io/v1/foos").await.unwrap();
    assert!(foos.starts_with(b"{"), "{foos:?}");
    assert!(transport.raw_get("/apis/x.io/v1/bars").await.is_err());
    let id = program.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(program.0.wait().unwrap().code(), Some(0));
}

#[test]
fn bad_arguments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token").display().to_string();
    std::fs::write(&file, " \n").unwrap();
    for (args, want) in [
        (["--token", ""], "the token is empty"),
        (["--token-file", &file], "the token is empty"),
        (["--declare", "foos"], "want GROUP/VERSION/KIND/PLURAL/SCOPE"),
        (["--declare", "x.io/v1/Foo/foos/galaxy"], "neither namespaced nor cluster"),
        (["--listen", "0.0.0.0:0"], "a token is required"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_kubestrata-apiserver")).args(args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(want), "{text}");
    }
}
