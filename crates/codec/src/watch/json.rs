//! Watch events in JSON.

use kubestrata_api_types::{Event, Format};

use super::{Lines, WatchDecoder, WatchError};
use crate::input::BadValue;
use crate::json::{Cursor, ScanError};
use crate::{Encoded, status};

impl WatchDecoder {
    pub(super) fn next_json(&mut self) -> Result<Option<Event<Encoded>>, WatchError> {
        if !self.input.is_within_value() {
            let Some(byte) = self.input.peek() else { return Ok(None) };
            if let Some((event, size)) = self.line_feed().and_then(|size| self.line(size)) {
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

    /// How far away the next line feed is. Bytes are looked at once, however many events without one they hold.
    fn line_feed(&mut self) -> Option<usize> {
        let (start, rest) = (self.input.position(), self.input.rest());
        let searched = rest.len().min(self.limits.frame_bytes);
        let known = self.lines.searched.saturating_sub(start);
        if (known == 0 || !self.lines.found) && known < searched {
            let found = memchr::memchr(b'\n', &rest[known..searched]);
            let end = found.map_or(searched, |offset| known + offset);
            self.lines = Lines { searched: start + end, found: found.is_some() };
        }
        let size = self.lines.searched.checked_sub(start)?;
        (self.lines.found && size < searched).then_some(size)
    }

    /// An event that is written as every server writes it, and its size: one line, type first, nothing behind the object.
    ///
    /// Its object is read in place, so that its bytes are looked at once. Whatever does not fit goes the general way:
    /// that the object's braces close exactly where the line ends is what the head scan checks.
    fn line(&self, size: usize) -> Option<(Event<Encoded>, usize)> {
        let object = self.input.rest()[..size].strip_prefix(br#"{"type":""#)?.strip_suffix(b"}")?;
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
