//! Ports for programs that are told theirs.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The lowest that is given out.
const LOWEST: u32 = 10_000;
/// From where on the kernel gives ports away, if it does not say.
const EPHEMERAL: u32 = 32_768;
/// From one answer to the next.
const STEP: u32 = 10;

/// The first of so many neighbouring ports of loopback that nobody has.
///
/// They are below those that the kernel gives to whoever wants any, as each connection does: one of these may be taken before
/// the program that is to listen there has started, or while it is away.
pub(crate) fn free_ports(count: u16) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let places = ephemeral().saturating_sub(LOWEST) / STEP;
    for _ in 0..places {
        // Relaxed: only the number must be unique. Another process begins elsewhere.
        let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id());
        let first = u16::try_from(LOWEST + turn % places * STEP).expect("it is below the highest");
        let mut all = first..first + count;
        if all.all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return first;
        }
    }
    panic!("no {count} neighbouring free ports on loopback");
}

/// From where on the kernel gives ports away.
fn ephemeral() -> u32 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(EPHEMERAL)
}
