//! Which servers are reached without a proxy: `NO_PROXY`, by the rules of Go's `httpproxy`.

use std::net::IpAddr;

/// Exceptions from a proxy: entries apart by commas, each one of
///
/// - `*`: everything;
/// - an address, perhaps with a port: `10.0.0.1`, `[fd00::1]:6443`;
/// - a network: `10.0.0.0/8`;
/// - a name, perhaps with a port: `example.com` is it and all below it, `.example.com` and `*.example.com` only what is
///   below it.
///
/// Names are compared as they are written, without regard to capitals: an international one must be in ASCII, `xn--…`, as it
/// is in the server's URL (Go translates it). One that is not matches nothing, with a warning.
///
/// `localhost` and loopback addresses are always excepted. A name is not resolved for the sake of an address or network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    all: bool,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Network {
        address: IpAddr,
        bits: u32,
    },
    Address {
        address: IpAddr,
        port: String,
    },
    Domain {
        /// With a leading dot.
        suffix: String,
        /// Whether the name without the dot is meant too.
        itself: bool,
        port: String,
    },
}

impl NoProxy {
    /// Reads the entries. One that makes no sense matches nothing, as for Go.
    pub fn parse(text: &str) -> Self {
        let mut this = Self::default();
        for entry in text.split(',') {
            let entry = entry.trim().to_lowercase();
            if !entry.is_ascii() {
                tracing::warn!(entry, "a name among the exceptions from the proxy is not in ASCII");
            }
            match entry.as_str() {
                "" => {}
                "*" => this.all = true,
                entry => this.rules.extend(rule(entry)),
            }
        }
        this
    }

    /// Whether this server is reached directly. `host` may have the brackets of an IPv6 address in a URL.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_lowercase();
        if host == "localhost" {
            return true;
        }
        // What an address is bound to on this machine is no part of a name: `::1%.example.com` is below nothing (Go,
        // CVE-2025-22870).
        let (host, zone) = match host.split_once('%') {
            Some((address, zone)) => (address.to_owned(), Some(zone.to_owned())),
            None => (host, None),
        };
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if zone.is_some() && address.is_none() {
            return self.all;
        }
        if address.is_some_and(|address| address.is_loopback()) || self.all {
            return true;
        }
        let port = port.to_string();
        let fits = |wanted: &str| wanted.is_empty() || wanted == port;
        self.rules.iter().any(|rule| match (rule, address) {
            (Rule::Network { address: network, bits }, Some(address)) => {
                within(*network, *bits, address)
            }
            (Rule::Address { address: wanted, port }, Some(address)) => {
                *wanted == address && fits(port)
            }
            (Rule::Domain { suffix, itself, port }, None) => {
                let below = host.ends_with(suffix.as_str());
                (below || (*itself && host == suffix[1..])) && fits(port)
            }
            _ => false,
        })
    }
}

fn rule(entry: &str) -> Option<Rule> {
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u32>())
        && bits <= if address.is_ipv4() { 32 } else { 128 }
    {
        return Some(Rule::Network { address, bits });
    }
    let (host, port) = split_port(entry);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(Rule::Address { address: address.to_canonical(), port: port.to_owned() });
    }
    let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
    if name.is_empty() {
        return None;
    }
    let itself = !name.starts_with('.');
    let suffix = if itself { format!(".{name}") } else { name.to_owned() };
    Some(Rule::Domain { suffix, itself, port: port.to_owned() })
}

/// Go `net.SplitHostPort`, but what it refuses is a host without a port.
fn split_port(entry: &str) -> (&str, &str) {
    let Some((host, port)) = entry.rsplit_once(':') else { return (entry, "") };
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inside) => (inside, port),
        None if host.contains([':', '[', ']']) || port.contains(']') => (entry, ""),
        None => (host, port),
    }
}

fn within(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.leading_zeros() >= bits
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.leading_zeros() >= bits
        }
        _ => false,
    }
}
