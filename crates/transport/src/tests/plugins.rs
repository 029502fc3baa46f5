//! Credential plugins: real scripts, run by a kubeconfig that names them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use expect_test::expect;
use futures_util::FutureExt as _;
use kubestrata_api_types::{Timestamp, cause_ref};
use tempfile::TempDir;
use tokio::time::{Instant, advance};
use tower::ServiceExt as _;

use super::clock::{SOON, Still, until};
use super::credentials::authorization;
use super::server::{Authority, Log, Server, answer, json, over};
use super::{create, get, pod};
use crate::{AuthError, Config, Kubeconfig, Pem, Tls, Transport};

/// A kubeconfig beside a script.
struct Plugin {
    folder: TempDir,
    config: Config,
}

/// A credential, as a plugin prints it.
fn credential(status: &str) -> String {
    format!(
        r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{{status}}}}}"#
    )
}

/// Makes a program of this text.
///
/// It is another process that writes it: a program that one of the other tests starts at that moment has all our files until it
/// is a program of its own, and nothing can be run that somebody may still write to (ETXTBSY).
fn install(program: &Path, text: &str) {
    let source = program.with_extension("source");
    std::fs::write(&source, text).unwrap();
    std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = std::process::Command::new("cp").arg("-p").arg(source).arg(program).status();
    assert!(copy.unwrap().success());
}

fn print(text: &str) -> String {
    format!("printf '%s' '{text}'")
}

impl Plugin {
    fn new(script: &str) -> Self {
        Self::with("v1", "interactiveMode: IfAvailable", "server: 'https://in-process'", script)
    }

    fn with(version: &str, exec: &str, cluster: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("plugin");
        install(&program, &format!("#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{script}\n"));
        let text = format!(
            "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n\
             clusters:\n- name: c\n  cluster:\n    {cluster}\n\
             users:\n- name: u\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/{version}\n      \
             command: ./plugin\n      args: [one, two]\n      env: [{{name: GREETING, value: hello}}, {{name: NOTHING, value: }}]\n      {exec}\n"
        );
        let path = folder.path().join("config");
        std::fs::write(&path, text).unwrap();
        let config = Kubeconfig::read(&path).unwrap().config(None).unwrap();
        Self { folder, config }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a script has written.
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// How often a script that begins with [`COUNT`] has run.
    fn runs(&self) -> usize {
        self.text("runs").lines().count()
    }

    /// That of a script which has written its number.
    fn process(&self) -> PathBuf {
        PathBuf::from("/proc").join(self.text("pid").trim())
    }

    /// A transport to a server that refuses the token `stale`.
    fn transport(&self) -> (Transport, Log) {
        over(self.config.clone(), |seen| async move {
            if authorization(&seen).ends_with("stale") {
                answer(401, "text/plain", "Unauthorized")
            } else {
                json(pod("a", 1))
            }
        })
    }

    /// Two requests, one after the other: what each sent, or the error of the last.
    async fn twice(&self) -> Result<Vec<String>, String> {
        let (transport, log) = self.transport();
        for _ in 0..2 {
            transport.clone().oneshot(get("a")).await.map_err(|error| {
                std::iter::successors(Some(&*error as &dyn std::error::Error), |e| e.source())
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": ")
            })?;
        }
        Ok(log.all().iter().map(|seen| authorization(seen).to_owned()).collect())
    }
}

/// Makes a script count its runs.
const COUNT: &str = "echo run >> runs\n";

#[tokio::test]
async fn a_plugin_gives_a_token() {
    let plugin = Plugin::new(&format!("{COUNT}{}", print(&credential(r#""token":"abc""#))));
    assert_eq!(plugin.twice().await.unwrap(), ["Bearer abc", "Bearer abc"]);
    assert_eq!(plugin.runs(), 1);
    // Arguments and environment.
    let script = format!("{} | sed s/X/$GREETING-$1-$2/", print(&credential(r#""token":"X""#)));
    assert_eq!(Plugin::new(&script).twice().await.unwrap()[0], "Bearer hello-one-two");
    // A variable without a value is an empty one.
    let exec = "interactiveMode: Never\n      provideClusterInfo: ~";
    let script = format!("{} | sed s/X/${{NOTHING-unset}}-/", print(&credential(r#""token":"X""#)));
    let plugin = Plugin::with("v1", exec, "server: 'https://in-process'", &script);
    assert_eq!(plugin.twice().await.unwrap()[0], "Bearer -");
    // YAML is as good.
    let yaml =
        "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus:\n  token: y\n";
    assert_eq!(Plugin::new(&print(yaml)).twice().await.unwrap()[0], "Bearer y");
    // The older version, without a word on interaction.
    let old = credential(r#""token":"old""#).replace("/v1", "/v1beta1");
    let plugin = Plugin::with("v1beta1", "", "server: 'https://in-process'", &print(&old));
    assert_eq!(plugin.twice().await.unwrap()[0], "Bearer old");
}

/// An expiry this far from now.
fn in_seconds(seconds: u64) -> (Timestamp, String) {
    let end = Timestamp::now() + Duration::from_secs(seconds);
    (end, format!(r#""expirationTimestamp":"{end}""#))
}

/// A transport that has had a token from the script, with a life of so many seconds less one at most.
///
/// The end is a time of the world, which goes on while the clock stands still: a script that took longer is asked again.
async fn with_a_life_of(plugin: &Plugin, seconds: u64) -> Transport {
    for _ in 0..100 {
        let (end, text) = in_seconds(seconds);
        std::fs::write(plugin.path("answer"), credential(&format!(r#""token":"t",{text}"#)))
            .unwrap();
        let (transport, _) = plugin.transport();
        transport.clone().oneshot(get("a")).await.unwrap();
        if end > Timestamp::now() + Duration::from_secs(seconds - 1) {
            return transport;
        }
        std::fs::remove_file(plugin.path("runs")).unwrap();
    }
    panic!("a script takes more than a second each time");
}

/// client-go asks the plugin before each request then; here it is used for a second.
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_born_expired_is_used_and_made_anew() {
    let _still = Still::new();
    // Each run gives another token.
    let status = r#""token":"X","expirationTimestamp":"2001-01-01T00:00:00Z""#;
    let script = format!("{COUNT}{} | sed s/X/$$/", print(&credential(status)));
    let plugin = Plugin::new(&script);
    let (transport, log) = plugin.transport();
    let sent = |n: usize| authorization(&log.all()[n]).to_owned();
    for _ in 0..3 {
        transport.clone().oneshot(get("a")).await.unwrap();
    }
    assert_eq!((sent(0), sent(1), plugin.runs()), (sent(1), sent(2), 1));
    advance(Duration::from_secs(1)).await;
    transport.oneshot(get("a")).await.unwrap();
    assert_ne!(sent(2), sent(3));
    assert_eq!(plugin.runs(), 2);
    // A certificate has an end of its own, whatever the plugin says of it.
    let authority = Authority::new("a");
    for (year, runs) in [(2001, 2), (2999, 1)] {
        let pair = authority.client("me", |params| {
            params.not_before = rcgen::date_time_ymd(2000, 1, 1);
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
        });
        let status = format!(
            r#""token":"t","expirationTimestamp":"2999-01-01T00:00:00Z","clientCertificateData":{:?},"clientKeyData":{:?}"#,
            pair.certificate, pair.key
        );
        let plugin = Plugin::new(&format!("{COUNT}cat answer"));
        std::fs::write(plugin.path("answer"), credential(&status)).unwrap();
        let (transport, _) = plugin.transport();
        transport.clone().oneshot(get("a")).await.unwrap();
        advance(Duration::from_secs(1)).await;
        transport.oneshot(get("a")).await.unwrap();
        assert_eq!(plugin.runs(), runs, "{year}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_life_is_used_for_most_of_it() {
    let _still = Still::new();
    let plugin = Plugin::new(&format!("{COUNT}cat answer"));
    let transport = with_a_life_of(&plugin, 8).await;
    advance(Duration::from_secs(6)).await;
    transport.clone().oneshot(get("a")).await.unwrap();
    assert_eq!(plugin.runs(), 1);
    advance(Duration::from_millis(1300)).await;
    transport.oneshot(get("a")).await.unwrap();
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_fails_has_its_pauses_and_the_old_token_its_life() {
    let _still = Still::new();
    let plugin = Plugin::new(&format!("{COUNT}cat answer"));
    let transport = with_a_life_of(&plugin, 100).await;
    let call = || async {
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(transport.clone().oneshot(get("a")).await.is_ok());
        }
        assert!(all.iter().all(|ok| *ok == all[0]), "{all:?}");
        (all[0], plugin.runs())
    };
    assert_eq!(call().await, (true, 1));
    std::fs::remove_file(plugin.path("answer")).unwrap();
    // Soon to expire, but not yet.
    advance(Duration::from_secs(92)).await;
    assert_eq!(call().await, (true, 2));
    advance(Duration::from_millis(1100)).await;
    assert_eq!(call().await, (true, 3));
    advance(Duration::from_millis(7000)).await;
    let mut runs = 4;
    for pause in [4_u64, 8, 10, 10] {
        assert_eq!(call().await, (false, runs), "{pause}");
        advance(Duration::from_millis(pause * 1000 - 700)).await;
        assert_eq!(call().await, (false, runs), "{pause}");
        advance(Duration::from_millis(750)).await;
        runs += 1;
    }
    let (_, end) = in_seconds(100);
    std::fs::write(plugin.path("answer"), credential(&format!(r#""token":"t",{end}"#))).unwrap();
    assert_eq!(call().await, (true, runs));
    // Half a minute less than its life: the script had that long.
    advance(Duration::from_secs(60)).await;
    assert_eq!(call().await, (true, runs));
}

/// What a `select!` does to a call when another branch is chosen: it is kept without being polled, or dropped.
#[tokio::test]
async fn a_run_is_in_no_callers_hands() {
    for keep in [true, false] {
        let answer = print(&credential(r#""token":"t""#));
        let plugin = Plugin::new(&format!("{COUNT}sleep 0.3; {answer}"));
        let (transport, log) = plugin.transport();
        let mut first = Box::pin(transport.clone().oneshot(get("a")));
        assert!((&mut first).now_or_never().is_none());
        until("it runs", || plugin.runs() == 1).await;
        let kept = keep.then_some(first);
        let second = transport.clone().oneshot(get("a"));
        let second = tokio::time::timeout(SOON, second).await;
        second.expect("it waits for no other call").unwrap();
        if let Some(first) = kept {
            first.await.unwrap();
        }
        assert_eq!((plugin.runs(), log.len()), (1, 1 + usize::from(keep)));
    }
}

#[tokio::test]
async fn a_run_ends_with_its_transport_and_all_that_it_has_started() {
    for start in [
        "echo $$ > pid; echo run >> runs; exec sleep 600",
        "sleep 600 & echo $! > pid; echo run >> runs; wait",
    ] {
        let plugin = Plugin::new(start);
        let (transport, _) = plugin.transport();
        let mut call = Box::pin(transport.oneshot(get("a")));
        assert!((&mut call).now_or_never().is_none());
        until("it runs", || plugin.runs() == 1).await;
        let process = plugin.process();
        assert!(process.exists());
        drop(call);
        ends(&process).await;
    }
}

/// An agent that a plugin starts is for its next run.
#[tokio::test]
async fn what_a_plugin_leaves_behind_is_left() {
    let answer = print(&credential(r#""token":"t""#));
    let plugin =
        Plugin::new(&format!("sleep 600 < /dev/null > log 2>&1 & echo $! > pid; {answer}"));
    plugin.twice().await.unwrap();
    let process = plugin.process();
    assert!(process.exists() && !is_zombie(&process));
    let number = plugin.text("pid");
    assert!(std::process::Command::new("kill").arg(number.trim()).status().unwrap().success());
    ends(&process).await;
}

#[tokio::test]
async fn failures_name_the_program_and_never_what_it_printed() {
    let pair = Authority::new("a").client("me", |_| {});
    for (script, want) in [
        ("echo top-secret; exit 7".to_owned(), "exit status: 7"),
        (print("{\"token\": top-secret"), "no ExecCredential (line 1"),
        (print("kind: [top-secret"), "no ExecCredential (line 1"),
        (print("status: {token: {top: secret}}"), "no ExecCredential (line"),
        (print(&credential("")), "neither a token nor a certificate"),
        (print(&credential(r#""token":"""#)), "neither a token nor a certificate"),
        (print(&credential(r#""token":"top-secret","clientCertificateData":"x""#)), "only one of"),
        (
            print(&credential(&format!(
                r#""clientCertificateData":"top-secret","clientKeyData":{:?}"#,
                pair.key
            ))),
            "its certificate is not valid PEM",
        ),
        (print(&credential("").replace("/v1", "/v2")), "is not of client.authentication"),
        (
            print(r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"}"#),
            "has no status",
        ),
        ("head -c 2000000 /dev/zero".to_owned(), "more than 1048576 bytes"),
    ] {
        let plugin = Plugin::new(&script);
        let (transport, log) = plugin.transport();
        let error = transport.oneshot(create()).await.unwrap_err();
        let error = cause_ref::<AuthError>(&*error).unwrap();
        let text = error.to_string();
        assert!(text.contains(want) && text.contains("plugin\""), "{want}: {text}");
        assert!(!format!("{error:?}").contains("top"), "{error:?}");
        assert_eq!(log.len(), 0);
    }
}

#[tokio::test]
async fn a_missing_program_is_told_with_its_hint() {
    let exec = "interactiveMode: Never\n      installHint: get it from the shop";
    let plugin = Plugin::with("v1", exec, "server: 'https://in-process'", "exit 0");
    std::fs::remove_file(plugin.path("plugin")).unwrap();
    let error = plugin.twice().await.unwrap_err();
    assert!(
        error.ends_with("No such file or directory (os error 2) (get it from the shop)"),
        "{error}"
    );
}

/// kube#1675, kube#1950.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_hangs_is_killed_and_holds_up_nobody_else() {
    let still = Still::new();
    let limit = Duration::from_millis(700);
    let mut plugin = Plugin::new(&format!("{COUNT}echo $$ > pid; exec sleep 600"));
    plugin.config.timeouts.exec = limit;
    let (transport, _) = plugin.transport();
    let started = Instant::now();
    let all = futures_util::future::join_all((0..20).map(|_| transport.clone().oneshot(get("a"))));
    tokio::pin!(all);
    tokio::select! {
        biased; // The calls must not end.
        _ = &mut all => panic!("there is no credential"),
        // The runtime of this test has one thread: that it does this meanwhile shows that no run stands on it.
        () = until("it runs", || plugin.text("pid").ends_with('\n')) => {}
    }
    // From here on only the deadline can be waited for.
    drop(still);
    for error in all.await.into_iter().map(Result::unwrap_err) {
        let cause = cause_ref::<AuthError>(&*error);
        assert!(matches!(cause, Some(AuthError::ExecTimeout { .. })), "{error:?}");
    }
    assert_eq!(plugin.runs(), 1, "who waits for a run shares its failure");
    assert!(started.elapsed() < 2 * limit, "{:?}", started.elapsed());
    ends(&plugin.process()).await;
}

async fn ends(process: &Path) {
    until("the process has ended", || !process.exists() || is_zombie(process)).await;
}

fn is_zombie(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.contains(") Z ")
}

#[tokio::test]
async fn many_requests_cause_one_run() {
    let plugin =
        Plugin::new(&format!("{COUNT}sleep 0.1; {}", print(&credential(r#""token":"t""#))));
    let (transport, log) = plugin.transport();
    let all = futures_util::future::join_all((0..50).map(|_| transport.clone().oneshot(get("a"))));
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!((plugin.runs(), log.len()), (1, 50));
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_made_anew_once() {
    let _still = Still::new();
    let plugin = Plugin::new(&format!("{COUNT}cat answer"));
    std::fs::write(plugin.path("answer"), credential(r#""token":"stale""#)).unwrap();
    let (transport, log) = plugin.transport();
    // Too young to be made again: a server that refuses everything must not start a process per request.
    assert!(transport.clone().oneshot(create()).await.is_err());
    assert_eq!((plugin.runs(), log.len()), (1, 1));
    advance(Duration::from_millis(1050)).await;
    std::fs::write(plugin.path("answer"), credential(r#""token":"good""#)).unwrap();
    let all = futures_util::future::join_all((0..10).map(|_| transport.clone().oneshot(create())));
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!((plugin.runs(), log.len()), (2, 21));
    transport.oneshot(create()).await.unwrap();
    assert_eq!((plugin.runs(), log.len()), (2, 22));
}

#[tokio::test]
async fn a_plugin_is_told_of_the_server() {
    let cluster = "server: 'https://in-process/base'\n    tls-server-name: api\n    certificate-authority: ca\n    \
                   proxy-url: 'http://me:pass-word@proxy:3128'\n    disable-compression: true\n    extensions:\n    \
                   - {name: other, extension: 7}\n    \
                   - {name: client.authentication.k8s.io/exec, extension: {audience: x, list: [1, 2.5, null, true]}}";
    let exec = "interactiveMode: Never\n      provideClusterInfo: true";
    let script = format!(
        "printf '%s' \"$KUBERNETES_EXEC_INFO\" > info; {}",
        print(&credential(r#""token":"t""#))
    );
    let plugin = Plugin::with("v1", exec, cluster, &script);
    std::fs::write(plugin.path("ca"), "some PEM").unwrap();
    plugin.twice().await.unwrap();
    expect![[r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://in-process/base","tls-server-name":"api","certificate-authority-data":"c29tZSBQRU0=","proxy-url":"http://me:pass-word@proxy:3128","disable-compression":true,"config":{"audience":"x","list":[1,2.5,null,true]}},"interactive":false}}"#]]
    .assert_eq(&plugin.text("info"));
    assert!(!format!("{:?}", plugin.config).contains("pass-word"));
    // Not unless the file says so.
    let plugin = Plugin::with("v1", "interactiveMode: Never", cluster, &script);
    plugin.twice().await.unwrap();
    expect![[r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}"#]]
    .assert_eq(&plugin.text("info"));
}

/// kube#1675: the certificate of a plugin is used, and replaced when the server refuses it.
#[tokio::test(start_paused = true)]
async fn the_certificate_of_a_plugin_rotates() {
    let _still = Still::new();
    let authority = Authority::new("both");
    let (first, second) = (authority.client("one", |_| {}), authority.client("two", |_| {}));
    let old = first.der.clone();
    let revoked = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&revoked);
    let server = Server::start(Some(authority.server(&["127.0.0.1"], |_| {})), move |seen| {
        let refuse =
            flag.load(std::sync::atomic::Ordering::SeqCst) && seen.client.as_ref() == Some(&old);
        async move { if refuse { answer(401, "text/plain", "no") } else { json(pod("a", 1)) } }
    })
    .await;
    let plugin = Plugin::new(&format!("{COUNT}cat answer"));
    let write = |pair: &super::server::ClientPair| {
        let status = format!(
            r#""clientCertificateData":{:?},"clientKeyData":{:?}"#,
            pair.certificate, pair.key
        );
        std::fs::write(plugin.path("answer"), credential(&status)).unwrap();
    };
    write(&first);
    let mut config = server.config().auth(plugin.config.auth.clone());
    config.tls = Tls::trust(Pem::inline(authority.pem()));
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
    config.metrics = metrics.clone();
    let transport = Transport::connect(config).unwrap();
    for _ in 0..2 {
        transport.clone().oneshot(create()).await.unwrap();
    }
    let value = |series: &str| metrics.value(&format!("rest_client_exec_plugin_{series}"));
    assert_eq!(value("certificate_rotation_age"), Some(0.0));
    // The certificates of these tests are good for two thousand years.
    assert!(value("ttl_seconds").unwrap() > 1e9);
    assert_eq!(server.log.last().client.as_ref(), Some(&first.der));
    assert_eq!((server.accepted(), plugin.runs()), (1, 1));
    advance(Duration::from_millis(1050)).await;
    write(&second);
    revoked.store(true, std::sync::atomic::Ordering::SeqCst);
    transport.clone().oneshot(create()).await.unwrap();
    assert_eq!(server.log.last().client.as_ref(), Some(&second.der));
    assert!(server.log.last().headers.get("authorization").is_none());
    assert_eq!((server.accepted(), plugin.runs()), (2, 2));
    assert_eq!(transport.connections().requests, 1);
    // Valid since 1975, replaced now.
    assert!(value("certificate_rotation_age").unwrap() > 1e9);
    assert_eq!(value(r#"call_total{code="0",call_status="no_error"}"#), Some(2.0));
}

/// client-go `rest_client_exec_plugin_call_total`.
#[tokio::test]
async fn runs_of_plugins_are_counted_by_how_they_went() {
    let cases = [
        ("exit 7", "7", "plugin_execution_error"),
        ("kill -9 $$", "-1", "plugin_execution_error"),
        ("exec sleep 60", "1", "client_internal_error"),
        // What it printed is of no use, but it ran.
        ("echo nothing", "0", "no_error"),
    ];
    for (script, code, status) in cases {
        let mut plugin = Plugin::new(script);
        let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
        plugin.config.metrics = metrics.clone();
        plugin.config.timeouts.exec =
            Duration::from_secs(if script.contains("sleep") { 1 } else { 60 });
        assert!(plugin.twice().await.is_err());
        let series = format!(
            r#"rest_client_exec_plugin_call_total{{code="{code}",call_status="{status}"}}"#
        );
        assert_eq!(metrics.value(&series), Some(1.0), "{script}: {}", metrics.render());
    }
    let mut plugin = Plugin::new("true");
    std::fs::remove_file(plugin.path("plugin")).unwrap();
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
    plugin.config.metrics = metrics.clone();
    assert!(plugin.twice().await.is_err());
    let series =
        r#"rest_client_exec_plugin_call_total{code="1",call_status="plugin_not_found_error"}"#;
    assert_eq!(metrics.value(series), Some(1.0), "{}", metrics.render());
}

/// It has answered; what it leaves behind, as an agent that keeps a session, holds its output open.
#[tokio::test]
async fn a_plugin_may_leave_something_running() {
    let script =
        format!("{COUNT}sleep 600 &\necho $! > pid\n{}", print(&credential(r#""token":"abc""#)));
    let mut plugin = Plugin::new(&script);
    // A tenth of what the end of its output would take.
    plugin.config.timeouts.exec = SOON;
    assert_eq!(plugin.twice().await.unwrap(), ["Bearer abc", "Bearer abc"]);
    assert_eq!(plugin.runs(), 1);
    // It may be meant to go on, and is ours to end.
    assert!(plugin.process().exists());
    let ended = std::process::Command::new("kill").arg(plugin.text("pid").trim()).status().unwrap();
    assert!(ended.success());
}

/// What has no end is said to end with the year 9999.
#[tokio::test]
async fn what_has_no_end_is_used_for_long() {
    for end in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999+00:00"] {
        let status = format!(r#""token":"abc","expirationTimestamp":"{end}""#);
        let plugin = Plugin::new(&format!("{COUNT}{}", print(&credential(&status))));
        assert_eq!(plugin.twice().await.unwrap(), ["Bearer abc", "Bearer abc"]);
        assert_eq!(plugin.runs(), 1);
    }
}
