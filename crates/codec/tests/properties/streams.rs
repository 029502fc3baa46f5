//! The properties of watches and lists: it does not matter how the bytes are cut.

use bytes::Bytes;
use kubestrata_api_types::{Collection, Format, ListPart};
use kubestrata_codec::schema::Kind;
use kubestrata_codec::{Encoded, Limits, ListDecoder, WatchDecoder, WatchError};

use crate::checks::resource;
use crate::dice::Dice;
use crate::memory::bounded;

/// Small, so that inputs reach them.
const LIMITS: Limits =
    Limits { frame_bytes: 8 << 10, item_bytes: 4 << 10, depth: 32, string_bytes: 2 << 10 };

/// Buffers grow by doubling, and an object is copied out of them, with a head that is larger than its text at worst.
const PER_BYTE: usize = 100;

/// The bytes in pieces: as one, one by one, or cut somewhere.
fn pieces<'a>(bytes: &'a [u8], dice: &mut Dice) -> Vec<&'a [u8]> {
    if bytes.len() < 400 && dice.once_in(4) {
        return bytes.chunks(1).collect();
    }
    let mut cuts: Vec<usize> =
        (0..1 + dice.below(5)).map(|_| dice.below(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// A watch gives the same events and ends the same way however it is cut.
pub(crate) fn watch(
    kind: &'static Kind,
    format: Format,
    bytes: &[u8],
    dice: &mut Dice,
) -> &'static str {
    let collection = Collection::new(resource(kind));
    let run = |pieces: &[&[u8]]| {
        let mut decoder = WatchDecoder::new(collection.clone(), format, LIMITS);
        let mut log = Vec::new();
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            loop {
                match decoder.next() {
                    Ok(Some(event)) => log.push(match event.object() {
                        Some(object) => show(object),
                        None => format!("{event:?}"),
                    }),
                    Ok(None) => break,
                    Err(WatchError::Status(status)) => {
                        log.push(format!("{status:?}"));
                        return (log, "read");
                    }
                    Err(error) => {
                        log.push(format!("{error:?}"));
                        return (log, "refused");
                    }
                }
            }
        }
        match decoder.finish() {
            Ok(()) => (log, "read"),
            Err(error) => {
                log.push(format!("{error:?}"));
                (log, "refused")
            }
        }
    };
    let whole = bounded("watch", bytes.len(), PER_BYTE, || run(&[bytes]));
    let cut = pieces(bytes, dice);
    assert_eq!(whole, run(&cut), "cut in {:?}", cut.iter().map(|p| p.len()).collect::<Vec<_>>());
    whole.1
}

/// A list gives the same items and ends the same way however it is cut.
pub(crate) fn list(
    kind: &'static Kind,
    format: Format,
    bytes: &[u8],
    dice: &mut Dice,
) -> &'static str {
    let collection = Collection::new(resource(kind));
    let run = |pieces: &[&[u8]]| {
        let mut decoder = ListDecoder::new(collection.clone(), format, LIMITS);
        let mut log = Vec::new();
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            loop {
                match decoder.next() {
                    Ok(Some(ListPart::Item(object))) => log.push(show(&object)),
                    Ok(Some(part)) => log.push(format!("{part:?}")),
                    Ok(None) => break,
                    Err(error) => {
                        log.push(format!("{error:?}"));
                        return (log, "refused");
                    }
                }
            }
        }
        match decoder.finish() {
            Ok(()) => (log, "read"),
            Err(error) => {
                log.push(format!("{error:?}"));
                (log, "refused")
            }
        }
    };
    let whole = bounded("list", bytes.len(), PER_BYTE, || run(&[bytes]));
    let cut = pieces(bytes, dice);
    assert_eq!(whole, run(&cut), "cut in {:?}", cut.iter().map(|p| p.len()).collect::<Vec<_>>());
    whole.1
}

/// Identity and contents.
fn show(object: &Encoded) -> String {
    format!("{object:?} {}", object.bytes().escape_ascii())
}
