//! Lists in JSON.

use kubestrata_api_types::{ListMeta, ListPart, ResourceVersion};
use serde::Deserialize;

use super::{ListDecoder, ListError};
use crate::Encoded;
use crate::input::BadValue;
use crate::json::Cursor;

/// Where the decoder stands in the text.
#[derive(Debug, Default)]
pub(super) enum State {
    /// Before the list's `{`; goes to `FirstKey`.
    #[default]
    Start,
    /// Behind the list's `{`, before a key or the `}`; goes to `Colon` or `End`.
    FirstKey,
    /// Behind a comma, before a key; goes to `Colon`.
    Key,
    /// Behind a value, before a comma or the list's `}`; goes to `Key` or `End`.
    AfterValue,
    /// Before the colon after a key; goes to `Value`, or to `ItemsStart` after `items`.
    Colon(String),
    /// Before the value of a key other than `items`; goes to `AfterValue`.
    Value(String),
    /// Before the value of `items`: a list, or null; goes to `FirstItem` or `AfterValue`.
    ItemsStart,
    /// Behind the `[`, before an item or the `]`; goes to `AfterItem` or `AfterValue`.
    FirstItem,
    /// Behind a comma, before an item; goes to `AfterItem`.
    Item,
    /// Behind an item, before a comma or the `]`; goes to `Item` or `AfterValue`.
    AfterItem,
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
            let step = if self.input.is_within_value() {
                self.value_step()?
            } else {
                let Some(byte) = self.input.peek() else { return Ok(None) };
                self.step(byte)?
            };
            match step {
                Step::NeedMore => return Ok(None),
                Step::Again => {}
                Step::Part(part) => return Ok(Some(part)),
            }
        }
    }

    /// What the next byte leads to.
    fn step(&mut self, byte: u8) -> Result<Step, ListError> {
        let state = match (&mut self.json, byte) {
            (State::Start, b'{') => State::FirstKey,
            (State::Start, _) => return Err(self.malformed_here("a list must be a JSON object")),
            (State::FirstKey | State::AfterValue, b'}') => {
                self.input.skip(1);
                self.json = State::End;
                return Ok(self.end()?.map_or(Step::Again, Step::Part));
            }
            (State::AfterValue, b',') => State::Key,
            (State::AfterValue, _) => return Err(self.malformed_here("no comma between members")),
            (State::FirstKey | State::Key, b'"') | (State::Value(_), _) => {
                return self.value_step();
            }
            (State::FirstKey | State::Key, _) => return Err(self.malformed_here("no key")),
            (State::Colon(key), b':') if key == "items" => {
                if std::mem::replace(&mut self.items_seen, true) {
                    return Err(self.malformed_here("items twice"));
                }
                State::ItemsStart
            }
            (State::Colon(key), b':') => State::Value(std::mem::take(key)),
            (State::Colon(_), _) => return Err(self.malformed_here("no colon after a key")),
            (State::ItemsStart, b'[') => State::FirstItem,
            (State::ItemsStart, _) => return self.value_step(),
            (State::FirstItem | State::AfterItem, b']') => State::AfterValue,
            (State::AfterItem, b',') => State::Item,
            (State::AfterItem, _) => return Err(self.malformed_here("no comma between items")),
            (State::FirstItem | State::Item, b'{') => return self.value_step(),
            (State::FirstItem | State::Item, _) => {
                return Err(self.malformed_here("an item must be a JSON object"));
            }
            (State::End, _) => return Err(self.malformed_here("text goes on after the list")),
        };
        self.input.skip(1);
        self.json = state;
        Ok(Step::Again)
    }

    /// Takes a key, an item or another value, once all of it is there.
    fn value_step(&mut self) -> Result<Step, ListError> {
        let start = self.input.position();
        let limit = self.limits.item_bytes;
        let value = self.input.take_value(limit).map_err(|bad| match bad {
            BadValue::TooLarge => ListError::TooLarge { limit },
            BadValue::Malformed(error) => Self::malformed(error.offset, error.problem),
        })?;
        let Some(value) = value else { return Ok(Step::NeedMore) };
        match std::mem::replace(&mut self.json, State::AfterValue) {
            State::FirstItem | State::Item => {
                self.json = State::AfterItem;
                Ok(Step::Part(self.item(&value)))
            }
            State::FirstKey | State::Key => {
                let mut cursor = Cursor::new(&value, 0, self.limits.depth);
                let key = cursor.string().and_then(|key| cursor.text(key));
                let key = key.map_err(|e| Self::malformed(start + e.offset, e.problem))?;
                self.json = State::Colon(key.into_owned());
                Ok(Step::Again)
            }
            // Go writes null for a list that is nil.
            State::ItemsStart if *value == *b"null" => Ok(Step::Again),
            State::ItemsStart => Err(Self::malformed(start, "items are no list")),
            State::Value(key) => self.value(start, &key, &value),
            State::Start | State::Colon(_) | State::AfterValue | State::AfterItem | State::End => {
                Err(Self::malformed(start, "no value is due"))
            }
        }
    }

    /// The value of a key other than `items`.
    fn value(&mut self, start: usize, key: &str, text: &[u8]) -> Result<Step, ListError> {
        let malformed = |problem| Self::malformed(start, problem);
        match key {
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
}

fn list_meta(text: &[u8]) -> Option<ListMeta> {
    let meta: Option<JsonMeta> = serde_json::from_slice(text).ok()?;
    Some(meta.unwrap_or_default().into())
}

/// The `metadata` of lists, and of what else is many.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JsonMeta {
    resource_version: Option<ResourceVersion>,
    r#continue: Option<String>,
    remaining_item_count: Option<i64>,
}

impl From<JsonMeta> for ListMeta {
    fn from(meta: JsonMeta) -> Self {
        Self {
            resource_version: meta.resource_version.unwrap_or_default(),
            continue_token: meta.r#continue.filter(|token| !token.is_empty()),
            // The type of it is signed in Go; a negative one says nothing.
            remaining_item_count: meta.remaining_item_count.and_then(|count| count.try_into().ok()),
        }
    }
}
