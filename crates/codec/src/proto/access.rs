//! Walks lists, maps and messages for visitors.

use super::error::{Error, Problem, Step};
use super::value::{Context, Lead, Run, Source, Text, Value, is_empty, map_entry, zero};
use super::wire::{self, Order, Wire};
use crate::schema::{Field, Message, Type};

/// What is being walked: one type for all, so that each visitor is compiled for one access type.
#[derive(Debug)]
pub(crate) struct Access<'de, 'c> {
    context: &'c Context<'c>,
    depth: u16,
    state: State<'de>,
    /// The value of the key given out last.
    pending: Option<Source<'de, 'c>>,
    /// Where that value is, for the path of an error.
    step: Place<'de>,
}

#[derive(Debug, Clone, Copy)]
enum Place<'de> {
    Field(&'static str),
    Index(usize),
    Key(&'de [u8]),
    /// A key of JSON text, which errors do not name.
    Unnamed,
}

#[derive(Debug)]
enum State<'de> {
    /// The innermost message, and those that it is inlined in.
    Message {
        frame: Frame<'de>,
        outer: Vec<Frame<'de>>,
        lead: Lead<'de>,
        leads: u8,
    },
    List {
        ty: Type,
        run: Run<'de>,
        index: usize,
    },
    Map {
        ty: Type,
        run: Run<'de>,
    },
    TreeList(std::vec::IntoIter<serde_json::Value>),
    TreeMap(serde_json::map::IntoIter),
}

/// One message, or one inlined in another.
#[derive(Debug, Clone, Copy)]
struct Frame<'de> {
    message: &'static Message,
    rest: &'de [u8],
    /// By position: the field was given out.
    seen: u64,
    order: Order,
}

impl<'de> Frame<'de> {
    fn new(
        context: &Context<'_>,
        message: &'static Message,
        rest: &'de [u8],
    ) -> Result<Self, Error> {
        let order = wire::order(rest).map_err(|fault| context.fault(fault))?;
        Ok(Self { message, rest, seen: 0, order })
    }
}

impl<'de, 'c> Access<'de, 'c> {
    /// A walk through `source`, or the source back if it is neither list, map nor message.
    pub(super) fn open(
        context: &'c Context<'c>,
        depth: u16,
        source: Source<'de, 'c>,
    ) -> Result<Result<Self, Source<'de, 'c>>, Error> {
        let state = match source {
            Source::Object(message, bytes, lead) => {
                if depth >= context.options.depth {
                    return Err(context.error(Problem::Depth, bytes));
                }
                let frame = Frame::new(context, message, bytes)?;
                State::Message { frame, outer: Vec::new(), lead, leads: 0 }
            }
            Source::List(ty, run) => State::List { ty, run, index: 0 },
            Source::Map(ty, run) => State::Map { ty, run },
            Source::Tree(tree) => match *tree {
                serde_json::Value::Array(list) => State::TreeList(list.into_iter()),
                serde_json::Value::Object(map) => State::TreeMap(map.into_iter()),
                scalar => return Ok(Err(Source::Tree(Box::new(scalar)))),
            },
            other => return Ok(Err(other)),
        };
        Ok(Ok(Self { context, depth: depth + 1, state, pending: None, step: Place::Unnamed }))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.state, State::List { .. } | State::TreeList(_))
    }

    /// The next element of a list.
    pub(super) fn next_element(&mut self) -> Result<Option<Value<'de, 'c>>, Error> {
        let source = match &mut self.state {
            State::List { ty, run, index } => {
                self.context.pointer.set(true);
                self.step = Place::Index(*index);
                *index += 1;
                let wire = run.next().map_err(|fault| self.context.fault(fault))?;
                wire.map(|wire| Source::Wire(*ty, wire))
            }
            State::TreeList(list) => list.next().map(|tree| Source::Tree(Box::new(tree))),
            _ => None,
        };
        Ok(source.map(|source| self.value(source)))
    }

    /// How many elements are to come, if it is known.
    pub(super) fn left(&self) -> Option<usize> {
        match &self.state {
            State::List { run, .. } | State::Map { run, .. } => Some(run.left),
            State::TreeList(list) => Some(list.len()),
            State::TreeMap(map) => Some(map.len()),
            _ => None,
        }
    }

    /// The next key, as a value.
    pub(super) fn next_key(&mut self) -> Result<Option<Value<'de, 'c>>, Error> {
        let key = match &mut self.state {
            State::Message { .. } => self.next_field()?,
            State::Map { ty, run } => {
                let fault = |fault| self.context.fault(fault);
                match run.next().map_err(fault)? {
                    None => None,
                    Some(wire) => {
                        let (key, value) = map_entry(*ty, wire).map_err(Error::new)?;
                        if key.len() > self.context.options.string_bytes {
                            return Err(self.context.error(Problem::Length, key));
                        }
                        // What is in a map is there, zero or not.
                        self.context.pointer.set(true);
                        self.step = Place::Key(key);
                        self.pending = Some(Source::Wire(*ty, value));
                        Some(match super::forms::text(key) {
                            std::borrow::Cow::Borrowed(key) => Text::Input(key),
                            std::borrow::Cow::Owned(key) => Text::Made(key),
                        })
                    }
                }
            }
            State::TreeMap(map) => map.next().map(|(key, tree)| {
                self.pending = Some(Source::Tree(Box::new(tree)));
                Text::Made(key)
            }),
            _ => None,
        };
        Ok(key.map(|key| self.value(Source::Text(key))))
    }

    /// The value of the key given out last.
    pub(super) fn next_value(&mut self) -> Value<'de, 'c> {
        let source = self.pending.take().unwrap_or(Source::Null);
        self.value(source)
    }

    fn value(&self, source: Source<'de, 'c>) -> Value<'de, 'c> {
        Value { context: self.context, depth: self.depth, source }
    }

    /// An error of the value given out last, with its place.
    #[cold]
    pub(super) fn placed(&self, error: Error) -> Error {
        match self.step {
            Place::Field(name) => error.within(Step::Field(name)),
            Place::Index(index) => error.within(Step::Index(index)),
            Place::Key(key) => error
                .within(Step::Key(super::forms::text(key).into_owned()))
                .or_at(self.context.offset(key)),
            Place::Unnamed => error,
        }
    }

    /// The name of the next field of a message.
    fn next_field(&mut self) -> Result<Option<Text<'de, 'c>>, Error> {
        let State::Message { frame, outer, lead, leads } = &mut self.state else {
            return Ok(None);
        };
        while *leads < 2 {
            let text = match (*lead, *leads) {
                (Lead::None, _) => None,
                (Lead::Options, 0) => self.context.options.api_version.map(Text::Given),
                (Lead::Options, _) => self.context.options.kind.map(Text::Given),
                (Lead::Envelope(api_version, _), 0) => Some(Text::Input(api_version)),
                (Lead::Envelope(_, kind), _) => Some(Text::Input(kind)),
            };
            let name = if *leads == 0 { "apiVersion" } else { "kind" };
            *leads += 1;
            if let Some(text) = text {
                self.pending = Some(Source::Text(text));
                self.step = Place::Field(name);
                return Ok(Some(Text::Input(name)));
            }
        }
        loop {
            let (field, source) = match step(self.context, frame)? {
                Found::Field(field, source) => (field, source),
                Found::End => match outer.pop() {
                    Some(around) => {
                        *frame = around;
                        continue;
                    }
                    None => return Ok(None),
                },
            };
            match source {
                Source::Wire(ty, Wire::Bytes(bytes)) if field.is_inline() => {
                    if let Some(message) = ty.message() {
                        let inner = Frame::new(self.context, message, bytes)?;
                        outer.push(std::mem::replace(frame, inner));
                    }
                }
                source => {
                    self.context.pointer.set(field.is_pointer());
                    self.pending = Some(source);
                    self.step = Place::Field(field.name());
                    return Ok(Some(Text::Input(field.name())));
                }
            }
        }
    }
}

enum Found<'de, 'c> {
    Field(&'static Field, Source<'de, 'c>),
    End,
}

/// The next field of one message that JSON shows.
fn step<'de, 'c>(
    context: &'c Context<'c>,
    frame: &mut Frame<'de>,
) -> Result<Found<'de, 'c>, Error> {
    let fault = |fault| context.fault(fault);
    while !frame.rest.is_empty() {
        let here = frame.rest;
        let (number, mut wire) = wire::entry(&mut frame.rest).map_err(fault)?;
        let Some(position) = frame.message.position(number) else {
            context.note_unknown();
            continue;
        };
        let field = &frame.message.fields()[position];
        let bit = 1_u64 << position;
        if field.is_repeated() || field.is_map() {
            if frame.seen & bit != 0 {
                // Given out with the first of its entries.
                continue;
            }
            frame.seen |= bit;
            let run = if frame.order < Order::Mixed {
                frame.rest = here;
                Run::take(&mut frame.rest, number, field.ty())
            } else {
                Run::gather(here, number, field.ty())
            };
            let run = run.map_err(fault)?;
            if context.options.skip_managed_fields && field.is_managed_fields() {
                continue;
            }
            let source = if field.is_map() {
                Source::Map(field.ty(), run)
            } else {
                Source::List(field.ty(), run)
            };
            return Ok(Found::Field(field, source));
        }
        if frame.seen & bit != 0 {
            // An earlier part, the last of which was given out.
            continue;
        }
        frame.seen |= bit;
        if frame.order > Order::Distinct
            && let Some(last) = last_part(context, frame, number, field)?
        {
            wire = last;
        }
        if !field.is_pointer() && field.omits_empty() && is_empty(field.ty(), wire) {
            continue;
        }
        if field.omits_zero() && wire == Wire::Bytes(&[]) {
            continue;
        }
        return Ok(Found::Field(field, Source::Wire(field.ty(), wire)));
    }
    let absent = frame.message.zeros() & !frame.seen;
    if absent == 0 {
        return Ok(Found::End);
    }
    let position = absent.trailing_zeros();
    frame.seen |= 1 << position;
    let field = &frame.message.fields()[position as usize];
    Ok(Found::Field(field, Source::Wire(field.ty(), zero(field.ty()))))
}

/// The last of further entries of a field that has one value. As in Go the last scalar counts; parts of a message would
/// have to be merged, and are refused.
fn last_part<'de>(
    context: &Context<'_>,
    frame: &Frame<'de>,
    number: u32,
    field: &Field,
) -> Result<Option<Wire<'de>>, Error> {
    let mut rest = frame.rest;
    let mut last = None;
    while !rest.is_empty() {
        let here = rest;
        let (next, wire) = wire::entry(&mut rest).map_err(|fault| context.fault(fault))?;
        if next == number {
            if !field.ty().is_scalar() {
                return Err(context.error(Problem::Split, here));
            }
            last = Some(wire);
        } else if frame.order < Order::Mixed {
            break;
        }
    }
    Ok(last)
}
