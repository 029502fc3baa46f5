//! Frames, however the bytes are cut.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::Notify;

use super::{ACK, GOAWAY, Parser, Peer, SETTINGS};

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    out.extend_from_slice(payload);
    out
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (number, value) in pairs {
        payload.extend_from_slice(&number.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, &payload)
}

/// What is known after each of these frames: the streams, whether it is settled for the first time, whether it is gone.
fn check(frames: &[(Vec<u8>, usize, bool, bool)]) {
    for cut in [1, 2, 5, 7, 9, 13, 1 << 20] {
        let peer = Peer::new(Arc::new(Notify::new()));
        let mut parser = Parser::default();
        for (bytes, streams, settled, gone) in frames {
            for piece in bytes.chunks(cut) {
                parser.feed(piece, &peer);
            }
            assert_eq!(peer.streams_max(), *streams, "cut {cut}");
            assert_eq!(peer.settled().now_or_never().is_some(), *settled, "cut {cut}");
            assert_eq!(peer.is_gone(), *gone, "cut {cut}");
        }
    }
}

#[test]
fn settings_and_farewells_are_seen() {
    let data = |length: usize| frame(0, 0, &vec![3; length]);
    check(&[
        (settings(&[(4, 65_535), (3, 100), (5, 16_384)]), 100, true, false),
        (frame(SETTINGS, ACK, &[]), 100, false, false),
        (data(20_000), 100, false, false),
        // Lowered, raised, and not mentioned.
        (settings(&[(3, 7)]), 7, true, false),
        (settings(&[(3, u32::MAX)]), u32::MAX as usize, true, false),
        (settings(&[(1, 0)]), u32::MAX as usize, true, false),
        (data(0), u32::MAX as usize, false, false),
        (frame(GOAWAY, 0, &[0; 17]), u32::MAX as usize, false, true),
        (settings(&[(3, 0)]), 0, true, true),
    ]);
    // A server that has nothing to say says so.
    check(&[(settings(&[]), usize::MAX, true, false)]);
    // Several frames at once, and settings whose length no peer would send.
    let mut odd = frame(SETTINGS, 0, &[0, 3, 0, 0, 0, 9, 0, 3]);
    odd.extend(settings(&[(3, 4)]));
    check(&[(odd, 4, true, false)]);
}
