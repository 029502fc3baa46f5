//! Watch events in JSON.

use kubestrata_api_types::{Event, Format};

use super::{WatchDecoder, WatchError};
use crate::input::BadValue;
use crate::json::{Cursor, ScanError};
use crate::{Encoded, status};

impl WatchDecoder {
    pub(super) fn next_json(&mut self) -> Result<Option<Event<Encoded>>, WatchError> {
        if !self.input.is_within_value() {
            let Some(byte) = self.input.peek() else { return Ok(None) };
            if let Some((event, size)) = self.line() {
                self.input.skip(size);
                return Ok(Some(event));
            }
            if byte != b'{' {
                let problem = "an event must be a JSON object";
                return Err(ScanError { offset: 0, problem }.into());
            }
        }
        let (start, limit) = (self.input.position(), self.limits.frame_bytes);
        let frame = self.input.take_value(limit).map_err(|bad| match bad {
            BadValue::TooLarge => WatchError::TooLarge { limit },
            BadValue::Malformed(ScanError { offset, problem }) => {
                WatchError::Malformed { offset: offset - start, problem }
            }
        })?;
        frame.map(|frame| self.event_of_frame(&frame)).transpose()
    }

    /// An event that is written as every server writes it, and its size: one line, type first, nothing behind the object.
    ///
    /// Its object is read in place, so that its bytes are looked at once. Whatever does not fit goes the general way:
    /// that the object's braces close exactly where the line ends is what the head scan checks.
    fn line(&self) -> Option<(Event<Encoded>, usize)> {
        let rest = self.input.rest();
        let searched = &rest[..rest.len().min(self.limits.frame_bytes)];
        let size = memchr::memchr(b'\n', searched)?;
        let object = rest[..size].strip_prefix(br#"{"type":""#)?.strip_suffix(b"}")?;
        let quote = memchr::memchr(b'"', object)?;
        let (event_type, object) = object.split_at(quote);
        let object = object.strip_prefix(br#"","object":"#)?;
        let event_type = match event_type {
            b"ADDED" => "ADDED",
            b"MODIFIED" => "MODIFIED",
            b"DELETED" => "DELETED",
            _ => return None,
        };
        match self.event(event_type, Format::Json, object, None) {
            Event::Unreadable(_) => None,
            event => Some((event, size)),
        }
    }

    fn event_of_frame(&self, frame: &[u8]) -> Result<Event<Encoded>, WatchError> {
        let mut cursor = Cursor::new(frame, 0, usize::MAX);
        cursor.expect(b'{', "an event must be a JSON object")?;
        let (mut event_type, mut object) = (None, None);
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            match &*cursor.text(key)? {
                "type" => {
                    let string = cursor.string()?;
                    event_type = Some(cursor.text(string)?);
                }
                "object" => object = Some(cursor.value()?),
                _ => cursor.skip()?,
            }
        }
        let event_type = event_type.ok_or_else(|| cursor.error("an event without type"))?;
        let object = object.ok_or_else(|| cursor.error("an event without object"))?;
        let object = cursor.raw(object);
        if event_type == "ERROR" {
            let status = status::from_json(object)
                .ok_or_else(|| cursor.error("an ERROR event without Status"))?;
            return Err(WatchError::Status(Box::new(status)));
        }
        Ok(self.event(&event_type, Format::Json, object, None))
    }
}
