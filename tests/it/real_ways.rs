//! Ways to a real kube-apiserver: through proxies of Debian, and with certificates of openssl that are replaced under load.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{
    BoxError, Collection, DeleteOptions, Event, Kind as _, ListWatch, Object as _, ObjectKey,
    WatchOptions,
};
use kubestrata_codec::Client as _;
use kubestrata_transport::{Auth, Config, Identity, Kubeconfig, Pem, Proxy, Retry, Transport};
use libtest_mimic::Trial;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::bed::{Run, SOON, eventually, single};
use crate::ports::free_ports;
use crate::target::{Target, real_kubeconfig};

/// The user and password of the proxies.
const LOGIN: (&str, &str) = ("me", "s3cret");
/// How long requests go on with each certificate.
const LOAD: Duration = Duration::from_millis(1500);

pub(crate) fn trials() -> Vec<Trial> {
    if !Target::available().contains(&Target::Real) {
        return Vec::new();
    }
    let with = |program: &str, name: &str, run: fn() -> Run| {
        let there = installed(program);
        if !there {
            eprintln!("skipped real_ways::{name}: the program {program} is not installed");
        }
        single(&format!("real_ways::{name}"), run).with_ignored_flag(!there)
    };
    vec![
        with("tinyproxy", "through_tinyproxy", || Box::pin(through_tinyproxy())),
        with("microsocks", "through_microsocks", || Box::pin(through_microsocks())),
        with("openssl", "certificates_in_files_rotate", || Box::pin(files_rotate())),
        with("openssl", "certificates_of_a_plugin_rotate", || Box::pin(plugin_rotates())),
    ]
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// As the suite's other trials reach the server, but asking once.
fn config() -> Config {
    let mut config = Config::from_kubeconfig(real_kubeconfig()).unwrap();
    config.retry = Retry::never();
    // No trial waits for these, and a busy machine may be late.
    (config.timeouts.connect, config.timeouts.tls) = (SOON, SOON);
    config
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

// === Proxies ===

/// A program that listens on a port of loopback. It is killed when this is dropped.
struct Program {
    port: u16,
    _child: Child,
    _folder: tempfile::TempDir,
}

impl Program {
    async fn start(make: impl FnOnce(u16, &Path) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_ports(1);
        let mut command = make(port, folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + SOON;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            assert!(Instant::now() < until, "the proxy does not listen");
            assert!(child.try_wait().unwrap().is_none(), "the proxy has ended");
            sleep(Duration::from_millis(20)).await;
        }
        Self { port, _child: child, _folder: folder }
    }
}

async fn through_tinyproxy() {
    let proxy = Program::start(|port, folder| {
        let file = folder.join("tinyproxy.conf");
        let (user, password) = LOGIN;
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth {user} {password}\n\
             PidFile \"{0}/pid\"\nLogFile \"{0}/log\"\n",
            folder.display()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(file);
        command
    })
    .await;
    through("http", proxy.port, "tinyproxy").await;
}

async fn through_microsocks() {
    let proxy = Program::start(|port, _| {
        let mut command = Command::new("microsocks");
        let (user, password) = LOGIN;
        command.args(["-i", "127.0.0.1", "-p", &port.to_string(), "-u", user, "-P", password]);
        command
    })
    .await;
    through("socks5", proxy.port, "microsocks").await;
}

/// A write, its event and its removal through the proxy; and nothing with the wrong password.
async fn through(scheme: &str, port: u16, name: &str) {
    let proxied = |login: &str| {
        let mut config = config();
        let proxy = Proxy::new(&format!("{scheme}://{login}127.0.0.1:{port}")).unwrap();
        config.proxy = Some(proxy);
        Transport::connect(config).unwrap()
    };
    let transport = proxied(&format!("{}:{}@", LOGIN.0, LOGIN.1));
    let collection = Collection::new(ConfigMap::resource().clone()).in_namespace("default");
    let metadata = ObjectMeta {
        name: Some(format!("through-{name}")),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    };
    let map = ConfigMap { metadata, ..ConfigMap::default() };
    let made = transport.create(&map).await.unwrap();
    let options =
        WatchOptions { resource_version: made.resource_version(), ..WatchOptions::default() };
    let mut watch = ListWatch::watch(&transport, &collection, options).await.unwrap();
    let key = ObjectKey::namespaced("default", &format!("through-{name}"));
    transport.delete::<ConfigMap>(&key, DeleteOptions::default()).await.unwrap();
    loop {
        match timeout(SOON, watch.next()).await.expect("an event in time").unwrap().unwrap() {
            Event::Deleted(object) if object.name() == format!("through-{name}") => break,
            _ => {}
        }
    }
    for (login, want) in [
        ("", "it wants a user and a password"),
        ("me:wrong@", "it refuses the user or the password"),
    ] {
        let error = proxied(login).raw_get("/version").await.unwrap_err();
        let text = chain(&*error);
        assert!(
            text.contains(&format!("proxy {scheme}://127.0.0.1:{port} opens no tunnel")),
            "{text}"
        );
        // tinyproxy says 401 to a wrong password where others say 407.
        assert!(text.ends_with(want) || text.ends_with("it answered HTTP 401"), "{text}");
    }
}

// === Certificates ===

/// The folder with the authority of clients that the script of the servers has made.
fn authority() -> PathBuf {
    real_kubeconfig().parent().unwrap().to_owned()
}

/// Makes a certificate for the user `name`, as `NAME.crt` and `NAME.key`.
async fn issue(folder: &Path, name: &str) {
    let at = |end: &str| folder.join(format!("{name}.{end}"));
    std::fs::write(at("ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    let mut request = Command::new("openssl");
    request
        .args([
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-subj", &format!("/O=system:masters/CN={name}")])
        .arg("-keyout")
        .arg(at("key"))
        .arg("-out")
        .arg(at("csr"));
    let mut sign = Command::new("openssl");
    sign.args(["x509", "-req", "-days", "1", "-in"])
        .arg(at("csr"))
        .arg("-CA")
        .arg(authority().join("client-ca.crt"))
        .arg("-CAkey")
        .arg(authority().join("client-ca.key"))
        .args(["-set_serial", &(1 + name.len()).to_string(), "-extfile"])
        .arg(at("ext"))
        .arg("-out")
        .arg(at("crt"));
    for mut command in [request, sign] {
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Who the server says that we are.
async fn who(transport: &Transport) -> Result<String, BoxError> {
    let review = transport.create(&SelfSubjectReview::default()).await?;
    let user = review.status.as_ref().and_then(|status| status.user_info.as_ref());
    Ok(user.and_then(|user| user.username.clone()).unwrap_or_default())
}

/// Requests that go on all the time, none of which may fail.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    tasks: tokio::task::JoinSet<()>,
}

impl Load {
    fn start(transport: &Transport) -> Self {
        let (stop, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..6 {
            let (transport, stop, done) = (transport.clone(), Arc::clone(&stop), Arc::clone(&done));
            tasks.spawn(async move {
                let key = ObjectKey::cluster("default");
                while !stop.load(Ordering::SeqCst) {
                    if n % 2 == 0 {
                        let result = transport.get::<Namespace>(&key).await;
                        result.unwrap_or_else(|error| panic!("a read failed: {}", chain(&error)));
                    } else {
                        let name = who(&transport).await;
                        name.unwrap_or_else(|error| panic!("a write failed: {}", chain(&*error)));
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { stop, done, tasks }
    }

    /// Ends once there were so many requests.
    async fn end_after(mut self, requests: usize) {
        let enough = async || self.done.load(Ordering::SeqCst) > requests;
        eventually("requests go on", enough).await;
        self.stop.store(true, Ordering::SeqCst);
        while let Some(end) = self.tasks.join_next().await {
            end.expect("no request fails");
        }
    }
}

async fn becomes(transport: &Transport, name: &str) {
    let until = Instant::now() + SOON;
    while who(transport).await.unwrap() != name {
        assert!(Instant::now() < until, "the certificate of {name} is not used");
        sleep(Duration::from_millis(50)).await;
    }
    sleep(LOAD).await;
}

async fn files_rotate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut config = config();
    config.auth = Auth::none();
    config.timeouts.files = Duration::from_millis(100);
    config.tls = config.tls.identity(Identity {
        certificate: Pem::file(at("current.crt")),
        key: Pem::file(at("current.key")),
    });
    issue(folder.path(), "first").await;
    std::fs::copy(at("first.crt"), at("current.crt")).unwrap();
    std::fs::copy(at("first.key"), at("current.key")).unwrap();
    let transport = Transport::connect(config).unwrap();
    let load = Load::start(&transport);
    becomes(&transport, "first").await;
    for name in ["second", "thirdly"] {
        issue(folder.path(), name).await;
        // One after the other, with a time in between in which they do not fit each other.
        std::fs::copy(at(&format!("{name}.crt")), at("current.crt")).unwrap();
        sleep(Duration::from_millis(300)).await;
        std::fs::copy(at(&format!("{name}.key")), at("current.key")).unwrap();
        becomes(&transport, name).await;
    }
    load.end_after(50).await;
}

async fn plugin_rotates() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Valid for three to four seconds, of which nine tenths are used.
    let script = r#"#!/bin/sh
cd "$(dirname "$0")"
echo run >> runs
name=$(cat current)
quote() { sed 's/$/\\n/' "$1" | tr -d '\n'; }
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"expirationTimestamp":"%s",' \
  "$(date -u -d '+4 seconds' +%Y-%m-%dT%H:%M:%SZ)"
printf '"clientCertificateData":"%s","clientKeyData":"%s"}}' "$(quote "$name.crt")" "$(quote "$name.key")"
"#;
    // By a process of its own: a program that another trial starts at this moment has all our files until it is a program of
    // its own, and nothing can be run that somebody may still write to (ETXTBSY).
    std::fs::write(at("source"), script).unwrap();
    std::fs::set_permissions(at("source"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = Command::new("cp").arg("-p").args([at("source"), at("plugin")]).status().await;
    assert!(copy.unwrap().success());
    let direct = config();
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: '{}'}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}}}}}]\n",
        direct.server
    );
    std::fs::write(at("config"), text).unwrap();
    issue(folder.path(), "first").await;
    std::fs::write(at("current"), "first").unwrap();
    let mut config = Kubeconfig::read(at("config")).unwrap().config(None).unwrap();
    config.tls.authority = direct.tls.authority;
    config.retry = Retry::never();
    let transport = Transport::connect(config).unwrap();
    let start = Instant::now();
    let load = Load::start(&transport);
    becomes(&transport, "first").await;
    issue(folder.path(), "second").await;
    std::fs::write(at("current"), "second").unwrap();
    becomes(&transport, "second").await;
    load.end_after(50).await;
    let runs = std::fs::read_to_string(at("runs")).unwrap().lines().count();
    // One per three seconds or so, one per second where the script is slow, and not one per request.
    let most = 2 + usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!((2..=most).contains(&runs), "{runs}");
}
