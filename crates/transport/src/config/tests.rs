//! Finding the configuration.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use kubestrata_api_types::FOREVER;

use super::infer::ConfigError;
use super::{Config, InCluster, Protocol, ServerUrlError, Timeouts};

fn service_account(folder: &Path) {
    std::fs::write(folder.join("token"), "t").unwrap();
    std::fs::write(folder.join("ca.crt"), "c").unwrap();
    std::fs::write(folder.join("namespace"), "team\n").unwrap();
}

#[test]
fn a_pod_finds_its_service_account() {
    let folder = tempfile::tempdir().unwrap();
    let pod = |host: &str| InCluster {
        host: host.to_owned(),
        port: "443".to_owned(),
        folder: folder.path().to_owned(),
    };
    let error = pod("10.0.0.1").config().unwrap_err().to_string();
    assert_eq!(error, format!("{} cannot be read", folder.path().join("token").display()));
    service_account(folder.path());
    let config = pod("10.0.0.1").config().unwrap();
    assert_eq!(
        (config.server.to_string().as_str(), config.namespace.as_str()),
        ("https://10.0.0.1:443/", "team")
    );
    assert!(format!("{:?}", config.auth).starts_with("TokenFile("));
    assert!(config.tls.authority.is_some() && !config.tls.insecure);
    let endpoint = pod("fd00::1").config().unwrap().endpoint();
    assert_eq!((&*endpoint.host, endpoint.to_string().as_str()), ("fd00::1", "[fd00::1]:443"));
    assert!(pod("not a host").config().is_err());
}

#[test]
fn inference_goes_from_kubeconfig_to_pod() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, server: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a}}}}]\nclusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    };
    let infer = |variables: &[(&'static str, OsString)]| {
        let variables: HashMap<_, _> = variables.iter().cloned().collect();
        Config::infer_from(&|name| variables.get(name).cloned())
    };
    let home_variable = ("HOME", home.path().as_os_str().to_owned());
    let Err(ConfigError::NotFound { tried, .. }) = infer(std::slice::from_ref(&home_variable))
    else {
        panic!("something was found");
    };
    assert_eq!(tried, [home.path().join(".kube/config")]);
    write(".kube/config", "https://home");
    let listed = write("listed", "https://listed");
    let found = |variables: &[(&'static str, OsString)]| infer(variables).unwrap().server;
    assert_eq!(found(std::slice::from_ref(&home_variable)), "https://home");
    let list = std::env::join_paths([home.path().join("missing"), listed]).unwrap();
    assert_eq!(found(&[home_variable.clone(), ("KUBECONFIG", list)]), "https://listed");
    // The proxy of the environment, unless the kubeconfig has one.
    let proxy = ("HTTPS_PROXY", OsString::from("http://env:1"));
    let proxied = infer(&[home_variable.clone(), proxy.clone()]).unwrap().proxy.unwrap();
    assert_eq!(proxied.to_string(), "http://env:1");
    write(".kube/config", "https://home', proxy-url: 'socks5://file:2");
    let except = ("NO_PROXY", OsString::from("*"));
    let proxied = infer(&[home_variable.clone(), proxy, except]).unwrap().proxy.unwrap();
    assert_eq!(proxied.to_string(), "socks5://file:2");
    // A list of missing files does not fall back to the home folder, as for kubectl.
    let missing = ("KUBECONFIG", home.path().join("missing").into_os_string());
    assert!(infer(&[home_variable.clone(), missing]).is_err());
    // A broken file is an error, never passed over.
    std::fs::write(home.path().join(".kube/config"), "clusters: 7").unwrap();
    assert!(matches!(infer(&[home_variable]), Err(ConfigError::Kubeconfig(_))));
}

/// apimachinery `net.SetTransportDefaults`: any value switches it off, whatever it says.
#[test]
fn the_environment_has_its_say_about_http2() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    let text = "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n\
                clusters: [{name: a, cluster: {server: 'https://home'}}]\n";
    std::fs::write(home.path().join(".kube/config"), text).unwrap();
    for (value, protocol) in [
        (None, Protocol::Auto),
        (Some(""), Protocol::Auto),
        (Some("1"), Protocol::Http1),
        (Some("false"), Protocol::Http1),
    ] {
        let config = Config::infer_from(&|name| match name {
            "HOME" => Some(home.path().into()),
            "DISABLE_HTTP2" => value.map(OsString::from),
            _ => None,
        });
        assert_eq!(config.unwrap().protocol, protocol, "{value:?}");
    }
    let default = Timeouts::default();
    for (idle, ping, interval, answer) in [
        ("7", "3", Duration::from_secs(7), Duration::from_secs(3)),
        // No pings at all.
        ("0", "", FOREVER, default.ping_answer),
        // No time at all would end each connection that is pinged.
        ("", "0", default.ping_interval, default.ping_answer),
        ("soon", "-1", default.ping_interval, default.ping_answer),
    ] {
        let config = Config::infer_from(&|name| match name {
            "HOME" => Some(home.path().into()),
            "HTTP2_READ_IDLE_TIMEOUT_SECONDS" => Some(idle.into()),
            "HTTP2_PING_TIMEOUT_SECONDS" => Some(ping.into()),
            _ => None,
        });
        let timeouts = config.unwrap().timeouts;
        assert_eq!((timeouts.ping_interval, timeouts.ping_answer), (interval, answer), "{idle}");
    }
}

#[test]
fn servers_are_urls() {
    for (text, error) in [
        ("", ServerUrlError::Malformed),
        ("host:6443", ServerUrlError::Scheme),
        ("unix:///run/x", ServerUrlError::Malformed),
        ("ftp://host", ServerUrlError::Scheme),
        ("https://user@host", ServerUrlError::Credentials),
    ] {
        let have = Config::new(text).unwrap_err();
        assert!(have == error || have == ServerUrlError::Malformed, "{text}: {have}");
    }
    let ports: Vec<_> = ["http://h", "https://h", "https://h:1", "https://[::1]:2/p"]
        .map(|text| Config::new(text).unwrap().endpoint().to_string())
        .into();
    assert_eq!(ports, ["h:80", "h:443", "h:1", "[::1]:2"]);
    for (text, loopback) in [
        ("http://localhost:1", true),
        ("http://127.1.2.3", true),
        ("http://[::1]", true),
        ("http://10.0.0.1", false),
        ("https://localhost.example", false),
    ] {
        assert_eq!(Config::new(text).unwrap().endpoint().is_loopback(), loopback, "{text}");
    }
}

#[test]
fn gzip_is_asked_for_from_other_hosts_only() {
    use super::Compression;
    for (server, asked) in [
        ("https://10.0.0.1:6443", true),
        ("https://api.example", true),
        ("https://localhost:6443", false),
        ("http://127.0.0.1:8080", false),
        ("https://[::1]:6443", false),
    ] {
        let mut config = Config::new(server).unwrap();
        assert_eq!(config.asks_for_gzip(), asked, "{server}");
        config.compression = Compression::Always;
        assert!(config.asks_for_gzip());
        config.compression = Compression::Never;
        assert!(!config.asks_for_gzip());
    }
}
