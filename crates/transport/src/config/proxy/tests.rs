//! Which proxy, and for which servers.

use std::collections::HashMap;

use super::{NoProxy, Proxy, from_variables};
use crate::config::ServerUrlError;

#[test]
fn proxies_are_urls() {
    for (url, want) in [
        ("http://p", "http://p:80"),
        ("https://p:8443", "https://p:8443"),
        ("https://p/", "https://p:443"),
        ("socks5://[fd00::1]", "socks5://[fd00::1]:1080"),
        ("socks5h://me:s3cret@p", "socks5://p:1080"),
        ("http://me:s3%63ret@p:3128", "http://p:3128"),
        ("http://me@example.com:s3cret@p:3128/@x", "http://p:3128"),
    ] {
        let proxy = Proxy::new(url).unwrap();
        assert_eq!(
            (proxy.to_string().as_str(), format!("{proxy:?}")),
            (want, format!("Proxy({want})"))
        );
        assert_eq!(url.contains('@'), proxy.credentials().is_some());
    }
    let long = format!("socks5://me:{}@p", "x".repeat(256));
    for (url, want) in [
        ("p:3128", ServerUrlError::ProxyScheme),
        ("ftp://p", ServerUrlError::ProxyScheme),
        ("http://", ServerUrlError::Malformed),
        ("http://me:%zz@p", ServerUrlError::Malformed),
        ("http://me:a b@p", ServerUrlError::Malformed),
        ("http://me:s3cret@", ServerUrlError::Malformed),
        ("socks5://me@p", ServerUrlError::ProxyCredentials),
        (&long, ServerUrlError::ProxyCredentials),
    ] {
        assert_eq!(Proxy::new(url).unwrap_err(), want, "{url}");
    }
    let basic = Proxy::new("http://me:p%40ss@p").unwrap().credentials().unwrap().basic();
    assert_eq!(basic, "Basic bWU6cEBzcw==");
    assert!(basic.is_sensitive());
}

/// Go's table has this row (CVE-2025-22870): what an address is bound to is no name.
#[test]
fn a_zone_is_no_name() {
    let rules = NoProxy::parse("example.com,fe80::/10");
    assert!(!rules.matches("[1000::%25.example.com]", 123));
    assert!(!rules.matches("1000::%.example.com", 123));
    assert!(rules.matches("fe80::1%eth0", 443));
    assert!(rules.matches("www.example.com", 443));
}

/// The table of Go's own test of `httpproxy`, and what its documentation says beyond it.
#[test]
fn exceptions_are_as_for_go() {
    let rules = "foobar.com, .barbaz.net, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, \
                 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64, *.wild.org, p.io:8443";
    for (host, port, direct) in [
        ("localhost", 80, true),
        ("127.0.0.1", 80, true),
        ("127.0.0.2", 80, true),
        ("[::1]", 80, true),
        ("[::2]", 80, false),
        ("192.168.1.1", 80, true),
        ("192.168.1.2", 80, false),
        ("192.168.1.2", 81, true),
        ("192.168.1.3", 80, true),
        ("192.168.1.4", 80, false),
        ("10.0.0.2", 80, true),
        ("10.0.0.4", 80, false),
        ("[2001:db8::52:0:1]", 80, true),
        ("[2001:db8::52:0:2]", 80, false),
        ("[2001:db8::52:0:2]", 443, true),
        ("[2001:db8::52:0:3]", 80, true),
        ("[2002:db8:a::123]", 80, true),
        ("[fe80::424b:c8be:1643:a1b6]", 80, false),
        ("barbaz.net", 80, false),
        ("www.barbaz.net", 80, true),
        ("foobar.com", 80, true),
        ("www.foobar.com", 443, true),
        ("foofoobar.com", 80, false),
        ("baz.com", 80, false),
        ("localhost.net", 80, false),
        ("WWW.FooBar.com", 80, true),
        ("wild.org", 80, false),
        ("a.b.wild.org", 80, true),
        ("p.io", 8443, true),
        ("api.p.io", 8443, true),
        ("p.io", 443, false),
    ] {
        assert_eq!(NoProxy::parse(rules).matches(host, port), direct, "{host}:{port}");
    }
    assert!(NoProxy::parse("a, *").matches("anything.org", 1));
    let nonsense = NoProxy::parse(":1, 10.0.0.0/99,, [::2, /8, .");
    assert!(!nonsense.matches("10.0.0.1", 1) && !nonsense.matches("[::2]", 1));
    assert!(!NoProxy::default().matches("example.com", 1));
    // International names are not made ASCII, which is what servers' URLs are in.
    let names = NoProxy::parse("b\u{fc}cher.example, xn--bcher-kva.example");
    assert!(names.matches("xn--bcher-kva.example", 1));
    assert!(!NoProxy::parse("b\u{fc}cher.example").matches("xn--bcher-kva.example", 1));
    // A name below an address is a name.
    assert!(!NoProxy::parse("1.1.1.1").matches("a.1.1.1.1.example", 1));
}

#[test]
fn the_environment_names_a_proxy_by_the_scheme_of_the_server() {
    let found = |server: &str, variables: &[(&str, &str)]| {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let proxy = from_variables(&server.parse().unwrap(), &|name| {
            variables.get(name).map(std::ffi::OsString::from)
        });
        proxy.map(|proxy| proxy.map_or_else(String::new, |proxy| proxy.to_string()))
    };
    let both = [("HTTPS_PROXY", "https://tls"), ("HTTP_PROXY", "plain:8080")];
    assert_eq!(found("https://a.b", &both).unwrap(), "https://tls:443");
    assert_eq!(found("http://a.b", &both).unwrap(), "http://plain:8080");
    assert_eq!(found("https://a.b", &both[1..]).unwrap(), "");
    let both_sizes = [("HTTPS_PROXY", "http://large"), ("https_proxy", "socks5://small")];
    assert_eq!(found("https://a.b", &both_sizes).unwrap(), "http://large:80");
    assert_eq!(found("https://a.b", &both_sizes[1..]).unwrap(), "socks5://small:1080");
    let empty =
        [("HTTPS_PROXY", ""), ("https_proxy", "small"), ("NO_PROXY", "a"), ("no_proxy", "*")];
    assert_eq!(found("https://b", &empty).unwrap(), "http://small:80");
    let except = [("https_proxy", "http://p"), ("NO_PROXY", "x, a.b:6443")];
    assert_eq!(found("https://a.b", &except).unwrap(), "http://p:80");
    assert_eq!(found("https://a.b:6443", &except).unwrap(), "");
    assert_eq!(found("https://127.0.0.1:6443", &except).unwrap(), "");
    let bad = found("https://a.b", &[("https_proxy", "gopher://s3cret")]).unwrap_err();
    assert_eq!(bad.to_string(), "environment variable https_proxy names no proxy");
    assert_eq!(bad.source, ServerUrlError::ProxyScheme);
    // The header `Proxy` of a request that a CGI program serves.
    let cgi = [("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET")];
    let error = found("http://a.b", &cgi).unwrap_err();
    assert_eq!((error.variable, error.source), ("HTTP_PROXY", ServerUrlError::ProxyOfRequest));
    assert_eq!(found("https://a.b", &cgi).unwrap(), "");
    assert_eq!(found("http://a.b", &cgi[1..]).unwrap(), "");
}
