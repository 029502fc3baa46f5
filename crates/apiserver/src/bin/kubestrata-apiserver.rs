//! The embedded API server as a program.

#![expect(clippy::print_stdout, reason = "the address is what a caller waits for")]
#![expect(clippy::print_stderr, reason = "where a program tells why it ends")]

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use kubestrata_api_types::{BoxError, ResourceType, Scope, SystemWorld, World as _};
use kubestrata_apiserver::{Config, Listen, Server};

/// A Kubernetes API server for development and tests. It keeps everything in memory and forgets it when it ends.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8001")]
    listen: SocketAddr,
    /// Speak TLS, by a certificate that the kubeconfig vouches for.
    #[arg(long)]
    tls: bool,
    /// A further name or address for the certificate. May be repeated.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Where to write a kubeconfig.
    #[arg(long, value_name = "PATH")]
    kubeconfig_out: Option<PathBuf>,
    /// A bearer token that requests must have. Other users of this machine can see it: prefer --token-file.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the bearer token that requests must have.
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// A resource to serve beside the built-in ones. May be repeated.
    #[arg(
        long,
        value_name = "GROUP/VERSION/KIND/PLURAL/SCOPE",
        value_parser = resource,
        help = "A resource to serve beside the built-in ones, as x.io/v1/Foo/foos/namespaced; scope: namespaced or cluster"
    )]
    declare: Vec<ResourceType>,
    /// The resource version at which the empty server begins. By default the microseconds since 1970, so that no version is
    /// given twice when it is started again.
    ///
    /// A client that follows across the restart resumes at its old version, is told that it is gone, and lists again.
    #[arg(long, value_name = "REVISION")]
    first_revision: Option<u64>,
}

/// A revision above all those of earlier runs: a server that wrote less than a million times a second is behind it.
fn revision_of_clock() -> u64 {
    let now = SystemWorld::new().wall().as_microsecond();
    u64::try_from(now).unwrap_or(1)
}

/// Parses `GROUP/VERSION/KIND/PLURAL/SCOPE`. An empty group is the core group.
fn resource(text: &str) -> Result<ResourceType, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, version, kind, plural, scope] = parts[..] else {
        return Err("want GROUP/VERSION/KIND/PLURAL/SCOPE".to_owned());
    };
    if version.is_empty() || kind.is_empty() || plural.is_empty() {
        return Err("version, kind and plural must not be empty".to_owned());
    }
    let scope = match scope.to_ascii_lowercase().as_str() {
        "namespaced" => Scope::Namespaced,
        "cluster" => Scope::Cluster,
        other => return Err(format!("scope {other:?} is neither namespaced nor cluster")),
    };
    Ok(ResourceType::new(group, version, kind, plural, scope))
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The whole chain: each error tells of its own level only.
            let mut text = error.to_string();
            let mut cause: Option<&(dyn Error + 'static)> = error.source();
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            eprintln!("kubestrata-apiserver: {text}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    // Registered before anything is promised: a signal during the start must not be lost.
    let signals = Signals::new()?;
    let mut listen = Listen::new().address(args.listen);
    listen.tls = args.tls;
    listen.names = args.names;
    if let Some(path) = args.token_file {
        listen = listen.token(std::fs::read_to_string(path)?.trim());
    } else if let Some(token) = args.token {
        listen = listen.token(token);
    }
    let mut config = Config::default();
    config.storage.first_revision = args.first_revision.unwrap_or_else(revision_of_clock);
    let mut builder = Server::builder().config(config);
    for resource in args.declare {
        builder = builder.declare(resource);
    }
    let serving = builder.start().listen(listen).await?;
    if let Some(path) = args.kubeconfig_out {
        serving.write_kubeconfig(path)?;
    }
    println!("{}", serving.url());
    signals.any().await;
    serving.shutdown().await;
    Ok(())
}

#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    async fn any(mut self) {
        tokio::select! {
            // Either will do; the order means nothing.
            biased;
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn any(self) {
        // Without the signal there is only the process's end.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
