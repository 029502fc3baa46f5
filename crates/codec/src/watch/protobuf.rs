//! Watch events in protobuf.
//!
//! A frame is its length in four bytes, most significant first, and a `WatchEvent` {1 type, 2 object {1 raw}} without
//! the magic number. `raw` is the object in an envelope, or, from an encoder of mixed formats, JSON.

use kubestrata_api_types::{Event, Format};

use super::{WatchDecoder, WatchError, anonymous};
use crate::input::FRONT;
use crate::json::ScanError;
use crate::wire::{Reader, Value};
use crate::{Encoded, envelope, status};

/// Size of the length in front of a frame.
const PREFIX: usize = 4;

impl WatchDecoder {
    pub(super) fn next_protobuf(&mut self) -> Result<Option<Event<Encoded>>, WatchError> {
        let mut room = [0; FRONT];
        let Some((prefix, _)) = self.input.front(&mut room).split_first_chunk::<PREFIX>() else {
            self.input.hold();
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        if length > self.limits.frame_bytes {
            return Err(WatchError::TooLarge { limit: self.limits.frame_bytes });
        }
        let Some(frame) = self.input.take(PREFIX + length) else {
            self.input.hold();
            return Ok(None);
        };
        self.event_of_message(&frame[PREFIX..]).map(Some)
    }

    fn event_of_message(&self, message: &[u8]) -> Result<Event<Encoded>, WatchError> {
        let (mut event_type, mut raw) = ("", None);
        let mut reader = Reader::new(message);
        while let Some(field) = reader.next()? {
            match (field.number, field.value) {
                (1, Value::Bytes(range)) => event_type = reader.text(range)?,
                (2, Value::Bytes(range)) => {
                    let mut extension = reader.inner(range);
                    while let Some(field) = extension.next()? {
                        if let (1, Value::Bytes(range)) = (field.number, field.value) {
                            raw = Some(&message[range]);
                        }
                    }
                }
                _ => {}
            }
        }
        let malformed = |problem| WatchError::from(ScanError { offset: 0, problem });
        let raw = raw.ok_or_else(|| malformed("an event without object"))?;
        if event_type == "ERROR" {
            let status = if raw.starts_with(b"{") {
                status::from_json(raw)
            } else {
                status::from_envelope(raw)
            };
            let status = status.ok_or_else(|| malformed("an ERROR event without Status"))?;
            return Err(WatchError::Status(Box::new(status)));
        }
        if raw.starts_with(b"{") {
            return Ok(self.event(event_type, Format::Json, raw, None));
        }
        // The frame says where the event ends, so a broken envelope costs this event alone.
        Ok(match envelope::open(raw) {
            Ok(envelope) => self.event(
                event_type,
                Format::Protobuf,
                envelope.message,
                Some(envelope.self_type()),
            ),
            Err(error) => Event::Unreadable(anonymous(error.to_string())),
        })
    }
}
