//! Watch events in JSON.

use kubestrata_api_types::{Event, Format};

use super::{WatchDecoder, WatchError};
use crate::json::{Cursor, ScanError, Skipper, skip_space};
use crate::{Encoded, status};

impl WatchDecoder {
    pub(super) fn next_json(&mut self) -> Result<Option<Event<Encoded>>, WatchError> {
        if self.skipper.is_none() {
            self.start = skip_space(&self.buffer, self.start);
            if self.start == self.buffer.len() {
                return Ok(None);
            }
            if let Some((event, size)) = self.line() {
                self.start += size;
                return Ok(Some(event));
            }
        }
        let rest = &self.buffer[self.start..];
        if rest[0] != b'{' {
            return Err(ScanError { offset: 0, problem: "an event must be a JSON object" }.into());
        }
        let skipper = self.skipper.get_or_insert_with(|| Skipper::new(0));
        // Without a limit of depth: an object that is nested too deep costs itself alone, when its head is read.
        let end = skipper.find_end(rest, usize::MAX)?;
        if end.unwrap_or(rest.len()) > self.limits.frame_bytes {
            return Err(WatchError::TooLarge { limit: self.limits.frame_bytes });
        }
        let Some(end) = end else { return Ok(None) };
        let event = self.event_of_frame(&rest[..end])?;
        self.skipper = None;
        self.start += end;
        Ok(Some(event))
    }

    /// An event that is written as every server writes it, and its size: one line, type first, nothing behind the object.
    ///
    /// Its object is read in place, so that its bytes are looked at once. Whatever does not fit goes the general way:
    /// that the object's braces close exactly where the line ends is what the head scan checks.
    fn line(&self) -> Option<(Event<Encoded>, usize)> {
        let rest = &self.buffer[self.start..];
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
