//! Lists in JSON.

use kubestrata_api_types::{ListMeta, ListPart, ResourceVersion};
use serde::Deserialize;

use super::{ListDecoder, ListError};
use crate::Encoded;
use crate::json::{Cursor, ScanError, Skipper, skip_space};

/// Where the decoder stands in the text.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Before the list's `{`; goes to `Key`.
    #[default]
    Start,
    /// Before a key, a comma or the list's `}`; goes to `Value`, `Items` or `End`.
    Key,
    /// Before the value of a key other than `items`; goes to `Key`.
    Value(String),
    /// Before the value of `items`: a list, or null; goes to `Items` or `Key`.
    ItemsStart,
    /// Before an item, a comma or the `]`; goes to `Key` at the end.
    Items,
    /// After the list's `}`: only white space may come.
    End,
}

/// One step forward.
enum Step {
    /// The text ends before the next token does.
    NeedMore,
    Again,
    Part(ListPart<Encoded>),
}

impl ListDecoder {
    pub(super) fn next_json(&mut self) -> Result<Option<ListPart<Encoded>>, ListError> {
        loop {
            self.start = skip_space(&self.buffer, self.start);
            if self.start == self.buffer.len() {
                return Ok(None);
            }
            match self.step()? {
                Step::NeedMore => return Ok(None),
                Step::Again => {}
                Step::Part(part) => return Ok(Some(part)),
            }
        }
    }

    fn step(&mut self) -> Result<Step, ListError> {
        let byte = self.buffer[self.start];
        match &self.json {
            State::Start => {
                self.take(b'{', byte, "a list must be a JSON object")?;
                self.json = State::Key;
                Ok(Step::Again)
            }
            State::Key => self.key(byte),
            State::Value(_) => self.value(),
            State::ItemsStart if byte == b'[' => {
                self.start += 1;
                self.json = State::Items;
                Ok(Step::Again)
            }
            // Go writes null for a list that is nil.
            State::ItemsStart => match self.token()? {
                None => Ok(Step::NeedMore),
                Some(value) if self.buffer[value.clone()] == *b"null" => {
                    self.start = value.end;
                    self.json = State::Key;
                    Ok(Step::Again)
                }
                Some(value) => Err(self.malformed_at(value.start, "items are no list")),
            },
            State::Items => self.items(byte),
            State::End => Err(self.malformed_at(self.start, "text goes on after the list")),
        }
    }

    fn key(&mut self, byte: u8) -> Result<Step, ListError> {
        match byte {
            b'}' => {
                self.start += 1;
                self.json = State::End;
                Ok(self.end()?.map_or(Step::Again, Step::Part))
            }
            // One comma too many is what this lets pass: it loses nothing.
            b',' => {
                self.start += 1;
                Ok(Step::Again)
            }
            b'"' => {
                let Some(token) = self.token()? else { return Ok(Step::NeedMore) };
                let colon = skip_space(&self.buffer, token.end);
                match self.buffer.get(colon) {
                    None => return Ok(Step::NeedMore),
                    Some(b':') => {}
                    Some(_) => return Err(self.malformed_at(colon, "no colon after a key")),
                }
                let mut cursor = Cursor::new(&self.buffer, token.start, self.limits.depth);
                let key = cursor.string().and_then(|key| cursor.text(key));
                let key = key.map_err(|error| self.malformed(0, error))?.into_owned();
                self.start = colon + 1;
                self.json = if key == "items" { State::ItemsStart } else { State::Value(key) };
                Ok(Step::Again)
            }
            _ => Err(self.malformed_at(self.start, "no key")),
        }
    }

    fn value(&mut self) -> Result<Step, ListError> {
        let Some(token) = self.token()? else { return Ok(Step::NeedMore) };
        let State::Value(key) = std::mem::replace(&mut self.json, State::Key) else {
            return Err(self.malformed_at(token.start, "no value is due"));
        };
        self.start = token.end;
        let text = &self.buffer[token.clone()];
        let malformed = |problem| self.malformed_at(token.start, problem);
        match key.as_str() {
            "kind" => {
                let kind = serde_json::from_slice(text);
                self.own.kind = kind.map_err(|_| malformed("kind is no string"))?;
            }
            "apiVersion" => {
                let api_version = serde_json::from_slice(text);
                self.own.api_version =
                    api_version.map_err(|_| malformed("apiVersion is no string"))?;
            }
            "metadata" => {
                if self.meta_seen {
                    return Err(malformed("metadata twice"));
                }
                let meta = list_meta(text).ok_or_else(|| malformed("malformed metadata"))?;
                self.meta_seen = true;
                return Ok(Step::Part(ListPart::Meta(meta)));
            }
            _ => {}
        }
        Ok(Step::Again)
    }

    fn items(&mut self, byte: u8) -> Result<Step, ListError> {
        match byte {
            b']' => {
                self.start += 1;
                self.json = State::Key;
                Ok(Step::Again)
            }
            b',' => {
                self.start += 1;
                Ok(Step::Again)
            }
            b'{' => {
                let Some(token) = self.token()? else { return Ok(Step::NeedMore) };
                let part = self.item(&self.buffer[token.clone()]);
                self.start = token.end;
                Ok(Step::Part(part))
            }
            _ => Err(self.malformed_at(self.start, "an item must be a JSON object")),
        }
    }

    /// The value that starts here, once all of it is there.
    fn token(&mut self) -> Result<Option<std::ops::Range<usize>>, ListError> {
        let rest = &self.buffer[self.start..];
        let skipper = self.skipper.get_or_insert_with(|| Skipper::new(0));
        // Without a limit of depth: an item that is nested too deep costs itself alone, when its head is read.
        let end = skipper.find_end(rest, usize::MAX);
        let length = rest.len();
        let end = end.map_err(|error| self.malformed(self.start, error))?;
        if end.unwrap_or(length) > self.limits.item_bytes {
            return Err(ListError::TooLarge { limit: self.limits.item_bytes });
        }
        if end.is_some() {
            self.skipper = None;
        }
        Ok(end.map(|end| self.start..self.start + end))
    }

    fn take(&mut self, want: u8, have: u8, problem: &'static str) -> Result<(), ListError> {
        if want != have {
            return Err(self.malformed_at(self.start, problem));
        }
        self.start += 1;
        Ok(())
    }

    fn malformed_at(&self, at: usize, problem: &'static str) -> ListError {
        self.malformed(0, ScanError { offset: at, problem })
    }
}

fn list_meta(text: &[u8]) -> Option<ListMeta> {
    let meta: Option<JsonMeta> = serde_json::from_slice(text).ok()?;
    Some(meta.unwrap_or_default().into())
}

/// The `metadata` of lists, and of what else is many.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JsonMeta {
    resource_version: ResourceVersion,
    r#continue: Option<String>,
    remaining_item_count: Option<u64>,
}

impl From<JsonMeta> for ListMeta {
    fn from(meta: JsonMeta) -> Self {
        Self {
            resource_version: meta.resource_version,
            continue_token: meta.r#continue.filter(|token| !token.is_empty()),
            remaining_item_count: meta.remaining_item_count,
        }
    }
}
