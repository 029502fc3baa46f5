//! The order and the times of attempts, on a paused clock.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use expect_test::{Expect, expect};
use tokio::time::Instant;

/// Attempts on `addresses`, each with how it ends: after so many milliseconds, well (`+`) or not (`-`).
async fn check(addresses: &[&str], want: Expect) {
    let start = Instant::now();
    let log = RefCell::new(String::new());
    let note = |text: String| {
        *log.borrow_mut() += &format!("{} ms: {text}\n", start.elapsed().as_millis());
    };
    let parsed: Vec<(SocketAddr, u64, bool)> = addresses
        .iter()
        .map(|line| {
            let (address, end) = line.split_once(' ').unwrap();
            let (end, good) = (end.trim_matches(['+', '-']), end.starts_with('+'));
            (address.parse().unwrap(), end.parse().unwrap(), good)
        })
        .collect();
    let list = parsed.iter().map(|(address, ..)| *address).collect();
    let result = super::first(list, Duration::from_millis(300), |address| {
        let (_, end, good) = *parsed.iter().find(|(known, ..)| *known == address).unwrap();
        note(format!("try {address}"));
        async move {
            tokio::time::sleep(Duration::from_millis(end)).await;
            if good { Ok(address) } else { Err(io::Error::other(format!("no {address}"))) }
        }
    })
    .await;
    note(format!("{result:?}"));
    want.assert_eq(&log.borrow());
}

#[tokio::test(start_paused = true)]
async fn the_next_address_is_tried_after_a_while_or_after_a_failure() {
    // The first answers in time: nothing else is tried.
    check(
        &["[::1]:1 +299", "127.0.0.1:1 +0"],
        expect![[r#"
            0 ms: try [::1]:1
            299 ms: Ok([::1]:1)
        "#]],
    )
    .await;
    // It swallows packets: the other family is there a moment later.
    check(
        &["[::1]:1 -99999", "[::2]:1 -99999", "127.0.0.1:1 +5"],
        expect![[r#"
            0 ms: try [::1]:1
            300 ms: try 127.0.0.1:1
            305 ms: Ok(127.0.0.1:1)
        "#]],
    )
    .await;
    // It refuses: the next is tried at once.
    check(
        &["127.0.0.1:1 -2", "127.0.0.2:1 -2", "[::1]:1 +2"],
        expect![[r#"
            0 ms: try 127.0.0.1:1
            2 ms: try [::1]:1
            4 ms: Ok([::1]:1)
        "#]],
    )
    .await;
    // The first is slow, and wins all the same.
    check(
        &["127.0.0.1:1 +700", "127.0.0.2:1 -50", "127.0.0.3:1 +99999"],
        expect![[r#"
            0 ms: try 127.0.0.1:1
            300 ms: try 127.0.0.2:1
            350 ms: try 127.0.0.3:1
            700 ms: Ok(127.0.0.1:1)
        "#]],
    )
    .await;
    // None answers: the last error, once all have failed.
    check(
        &["127.0.0.1:1 -1000", "127.0.0.2:1 -10"],
        expect![[r#"
            0 ms: try 127.0.0.1:1
            300 ms: try 127.0.0.2:1
            1000 ms: Err(Custom { kind: Other, error: "no 127.0.0.1:1" })
        "#]],
    )
    .await;
    check(
        &[],
        expect![[r#"
            0 ms: Err(Kind(AddrNotAvailable))
        "#]],
    )
    .await;
}

#[test]
fn families_take_turns() {
    let order = |text: &str| {
        let addresses = text.split(' ').map(|address| address.parse().unwrap()).collect();
        let out: Vec<_> = super::interleaved(addresses).iter().map(SocketAddr::to_string).collect();
        out.join(" ")
    };
    assert_eq!(
        order("[::1]:1 [::2]:1 [::3]:1 1.0.0.1:1 1.0.0.2:1"),
        "[::1]:1 1.0.0.1:1 [::2]:1 1.0.0.2:1 [::3]:1"
    );
    assert_eq!(order("1.0.0.1:1 [::1]:1 1.0.0.2:1"), "1.0.0.1:1 [::1]:1 1.0.0.2:1");
    assert_eq!(order("1.0.0.1:1 1.0.0.2:1"), "1.0.0.1:1 1.0.0.2:1");
}
