//! Tests of the decoder's own memory.

use kubestrata_api_types::{Collection, Format, ResourceType, Scope};

use super::WatchDecoder;
use crate::limits::{BUFFER_KEPT, Limits};

#[test]
fn a_large_event_does_not_hold_its_room_for_ever() {
    let maps = ResourceType::from_static("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);
    let mut decoder = WatchDecoder::new(Collection::new(maps), Format::Json, Limits::default());
    let data = "x".repeat(4 * BUFFER_KEPT);
    let large = format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"a\"}},\"data\":\"{data}\"}}}}"
    );
    for part in large.as_bytes().chunks(10_000) {
        assert!(decoder.next().unwrap().is_none());
        decoder.push(part);
    }
    assert!(decoder.next().unwrap().is_some());
    assert!(decoder.buffer.capacity() > BUFFER_KEPT);
    decoder.push(b"\n");
    assert!(decoder.buffer.capacity() <= BUFFER_KEPT);
    assert!(decoder.next().unwrap().is_none());
    decoder.finish().unwrap();
}
