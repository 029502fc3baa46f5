//! Walks lists, maps and messages for visitors.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::error::{Error, Problem, Step};
use super::value::{Context, Lead, Run, Source, Text, Value, is_empty, map_entry, zero};
use super::wire::{self, Order, Wire};
use crate::schema::{Field, Message, Type};

/// What is being walked: one type for all, so that each visitor is compiled for one access type.
///
/// It holds the one value that is current, and visitors get a reference to it: values and walks are too large to be
/// moved at each of the hundreds of fields of an object.
#[derive(Debug)]
pub(crate) struct Access<'de, 'c> {
    state: State<'de>,
    /// The element, or the value of the key, that was given out last.
    value: Value<'de, 'c>,
    /// Where that value is, for the path of an error.
    step: Place<'de>,
}

/// What [`Access::enter`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Object,
    /// Nothing to walk.
    Scalar,
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
    /// Before [`Access::enter`].
    Closed,
    Message(Walk<'de>),
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

impl<'de, 'c> Access<'de, 'c> {
    /// A walk through what is in `value`, still to be entered.
    #[inline]
    pub(super) fn inside(value: &Value<'de, 'c>) -> Self {
        let (context, depth) = (value.context, value.depth + 1);
        let value = Value { context, depth, source: Source::Null };
        Self { state: State::Closed, value, step: Place::Unnamed }
    }

    /// Begins the walk through `outer`, whose source it takes unless that is a scalar.
    pub(super) fn enter(&mut self, outer: &mut Value<'de, 'c>) -> Result<Shape, Error> {
        let (message, bytes, lead) = match outer.source {
            // By far the most frequent: a message in a message.
            Source::Wire(Type::Nested(index), Wire::Bytes(bytes)) => {
                (Message::at(index), bytes, Lead::None)
            }
            _ => {
                outer.resolve_json()?;
                match std::mem::replace(&mut outer.source, Source::Null) {
                    Source::Object(message, bytes, lead) => (message, bytes, lead),
                    Source::List(ty, run) => {
                        self.state = State::List { ty, run, index: 0 };
                        return Ok(Shape::List);
                    }
                    Source::Map(ty, run) => {
                        self.state = State::Map { ty, run };
                        return Ok(Shape::Object);
                    }
                    Source::Tree(tree) => return Ok(self.enter_tree(*tree, outer)),
                    scalar => {
                        outer.source = scalar;
                        return Ok(Shape::Scalar);
                    }
                }
            }
        };
        let context = self.value.context;
        // The values inside know their own depth; this message's is one less.
        if self.value.depth > context.options.depth {
            return Err(context.error(Problem::Depth, bytes));
        }
        self.state = State::Message(Walk::new(context, message, bytes, lead)?);
        Ok(Shape::Object)
    }

    fn enter_tree(&mut self, tree: serde_json::Value, outer: &mut Value<'de, 'c>) -> Shape {
        match tree {
            serde_json::Value::Array(list) => {
                self.state = State::TreeList(list.into_iter());
                Shape::List
            }
            serde_json::Value::Object(map) => {
                self.state = State::TreeMap(map.into_iter());
                Shape::Object
            }
            scalar => {
                outer.source = Source::Tree(Box::new(scalar));
                Shape::Scalar
            }
        }
    }

    /// Makes the next element of a list the current value, if there is one.
    pub(super) fn next_element(&mut self) -> Result<Option<&mut Value<'de, 'c>>, Error> {
        let source = match &mut self.state {
            State::List { ty, run, index } => {
                self.value.context.pointer.set(true);
                self.step = Place::Index(*index);
                *index += 1;
                let wire = run.next().map_err(|fault| self.value.context.fault(fault))?;
                wire.map(|wire| Source::Wire(*ty, wire))
            }
            State::TreeList(list) => list.next().map(|tree| Source::Tree(Box::new(tree))),
            _ => None,
        };
        Ok(source.map(|source| {
            self.value.source = source;
            &mut self.value
        }))
    }

    /// How many elements are to come, if it is known.
    pub(super) fn left(&self) -> Option<usize> {
        match &self.state {
            State::List { run, .. } | State::Map { run, .. } => Some(run.left),
            State::TreeList(list) => Some(list.len()),
            State::TreeMap(map) => Some(map.len()),
            State::Message(_) | State::Closed => None,
        }
    }

    /// The next key, whose value becomes the current one.
    #[inline(never)]
    pub(super) fn next_key(&mut self) -> Result<Option<Key<'de>>, Error> {
        // Most of the time of a decode is spent here, and most fields are of the most frequent form.
        if let State::Message(walk) = &mut self.state
            && let Some(field) = walk.next_short(self.value.context, &mut self.value.source)
        {
            self.step = Place::Field(field.name());
            return Ok(Some(Key(Cow::Borrowed(field.name()))));
        }
        self.next_key_in_general()
    }

    #[inline(never)]
    fn next_key_in_general(&mut self) -> Result<Option<Key<'de>>, Error> {
        let value = &mut self.value;
        match &mut self.state {
            State::Message(walk) => {
                let Some(name) = walk.next(value.context, &mut value.source)? else {
                    return Ok(None);
                };
                self.step = Place::Field(name);
                Ok(Some(Key(Cow::Borrowed(name))))
            }
            State::Map { ty, run } => {
                let Some(wire) = run.next().map_err(|fault| value.context.fault(fault))? else {
                    return Ok(None);
                };
                let (key, wire) = map_entry(*ty, wire).map_err(Error::new)?;
                if key.len() > value.context.options.string_bytes {
                    return Err(value.context.error(Problem::Length, key));
                }
                // What is in a map is there, zero or not.
                value.context.pointer.set(true);
                self.step = Place::Key(key);
                value.source = Source::Wire(*ty, wire);
                Ok(Some(Key(super::forms::text(key))))
            }
            State::TreeMap(map) => Ok(map.next().map(|(key, tree)| {
                value.source = Source::Tree(Box::new(tree));
                Key(Cow::Owned(key))
            })),
            _ => Ok(None),
        }
    }

    /// The value of the key given out last.
    pub(super) fn current(&mut self) -> &mut Value<'de, 'c> {
        &mut self.value
    }

    /// Gives an error of the value given out last its place.
    #[cold]
    pub(super) fn place(&self, error: &mut Error) {
        match self.step {
            Place::Field(name) => error.add(Step::Field(name)),
            Place::Index(index) => error.add(Step::Index(index)),
            Place::Key(key) => {
                error.add(Step::Key(super::forms::text(key).into_owned()));
                error.set_offset(self.value.context.offset(key));
            }
            Place::Unnamed => {}
        }
    }
}

/// The key of a member: the name of a field, or text of the input.
#[derive(Debug)]
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

/// A walk through the fields of a message.
#[derive(Debug)]
struct Walk<'de> {
    /// The innermost message, and those that it is inlined in.
    frame: Frame<'de>,
    outer: SmallVec<[Frame<'de>; 1]>,
    lead: Lead<'de>,
    /// How many of `apiVersion` and `kind` are done.
    leads: u8,
}

impl<'de> Walk<'de> {
    fn new(
        context: &Context<'_>,
        message: &'static Message,
        bytes: &'de [u8],
        lead: Lead<'de>,
    ) -> Result<Self, Error> {
        let leads = if matches!(lead, Lead::None) { 2 } else { 0 };
        let frame = Frame::new(context, message, bytes)?;
        Ok(Self { frame, outer: SmallVec::new(), lead, leads })
    }

    /// The next field if the wire has it, and all that is passed over before it, in the most frequent form; its value goes
    /// to `source`. If not, [`Walk::next`] knows the next one.
    #[inline]
    fn next_short<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Option<&'static Field> {
        if context.careful || self.leads < 2 {
            return None;
        }
        let frame = &mut self.frame;
        loop {
            let (number, wire, rest) = wire::short_entry(frame.rest)?;
            let position = frame.message.position(number)?;
            let field = &frame.message.fields()[position];
            // A number that rises was not given out before.
            if !field.is_single() || number <= frame.last {
                return None;
            }
            (frame.rest, frame.last) = (rest, number);
            frame.seen |= 1 << position;
            if field.hides_empty() && is_empty(field.ty(), wire) {
                continue;
            }
            context.pointer.set(field.is_pointer());
            *source = Source::Wire(field.ty(), wire);
            return Some(field);
        }
    }

    /// The name of the next field that JSON shows; its value goes to `source`.
    fn next<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Result<Option<&'static str>, Error> {
        while self.leads < 2 {
            if let Some(name) = self.next_lead(context, source) {
                return Ok(Some(name));
            }
        }
        loop {
            match self.frame.next(context, source)? {
                Some(field) if !field.is_inline() => {
                    context.pointer.set(field.is_pointer());
                    return Ok(Some(field.name()));
                }
                Some(field) => match (&source, field.message()) {
                    (Source::Wire(_, Wire::Bytes(bytes)), Some(message)) => {
                        let inner = Frame::new(context, message, bytes)?;
                        self.outer.push(std::mem::replace(&mut self.frame, inner));
                    }
                    _ => return Err(context.error(Problem::WireType, self.frame.rest)),
                },
                None => match self.outer.pop() {
                    Some(around) => self.frame = around,
                    None => return Ok(None),
                },
            }
        }
    }

    fn next_lead<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Option<&'static str> {
        let text = match (self.lead, self.leads) {
            (Lead::None, _) => None,
            (Lead::Options, 0) => context.options.api_version.map(Text::Given),
            (Lead::Options, _) => context.options.kind.map(Text::Given),
            (Lead::Envelope(api_version, _), 0) => Some(Text::Input(api_version)),
            (Lead::Envelope(_, kind), _) => Some(Text::Input(kind)),
        };
        let name = if self.leads == 0 { "apiVersion" } else { "kind" };
        self.leads += 1;
        *source = Source::Text(text?);
        Some(name)
    }
}

/// One message, or one inlined in another.
#[derive(Debug, Clone, Copy)]
struct Frame<'de> {
    message: &'static Message,
    rest: &'de [u8],
    /// By position: the field was given out.
    seen: u64,
    /// The number of the field given out last.
    last: usize,
    /// Known if the walk is careful, else taken for the usual.
    order: Order,
}

impl<'de> Frame<'de> {
    fn new(
        context: &Context<'_>,
        message: &'static Message,
        rest: &'de [u8],
    ) -> Result<Self, Error> {
        let order = if context.careful {
            wire::order(rest).map_err(|fault| context.fault(fault))?
        } else {
            Order::Distinct
        };
        Ok(Self { message, rest, seen: 0, last: 0, order })
    }

    /// The next field of this message that JSON shows; its value goes to `source`.
    fn next<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Result<Option<&'static Field>, Error> {
        let fault = |fault| context.fault(fault);
        while !self.rest.is_empty() {
            let here = self.rest;
            let (number, mut wire) = wire::entry(&mut self.rest).map_err(fault)?;
            let position = self.message.position(number);
            // Entries of a list that the table does not know follow each other too.
            let is_next = number > self.last || (number == self.last && position.is_none());
            if !is_next && !context.careful {
                return Err(context.disorder());
            }
            self.last = number;
            let Some(position) = position else {
                context.note_unknown();
                continue;
            };
            let field = &self.message.fields()[position];
            let bit = 1_u64 << position;
            if self.seen & bit != 0 {
                // An earlier part, the last of which was given out; or an entry of what was given out with the first.
                continue;
            }
            self.seen |= bit;
            if field.is_repeated() || field.is_map() {
                let run = if self.order < Order::Mixed {
                    self.rest = here;
                    Run::take(&mut self.rest, number, field.ty())
                } else {
                    Run::gather(here, number, field.ty())
                };
                let run = run.map_err(fault)?;
                if context.options.skip_managed_fields && field.is_managed_fields() {
                    continue;
                }
                *source = if field.is_map() {
                    Source::Map(field.ty(), run)
                } else {
                    Source::List(field.ty(), run)
                };
                return Ok(Some(field));
            }
            if self.order > Order::Distinct
                && let Some(last) = self.last_part(context, number, field)?
            {
                wire = last;
            }
            if field.hides_empty() && is_empty(field.ty(), wire) {
                continue;
            }
            if field.omits_zero() && wire == Wire::Bytes(&[]) {
                continue;
            }
            *source = Source::Wire(field.ty(), wire);
            return Ok(Some(field));
        }
        Ok(self.next_absent(source))
    }

    /// The next field that the wire lacks and that JSON shows nevertheless.
    fn next_absent(&mut self, source: &mut Source<'de, '_>) -> Option<&'static Field> {
        let absent = self.message.zeros() & !self.seen;
        if absent == 0 {
            return None;
        }
        let position = absent.trailing_zeros();
        self.seen |= 1 << position;
        let field = &self.message.fields()[position as usize];
        *source = Source::Wire(field.ty(), zero(field.ty()));
        Some(field)
    }

    /// The last of further entries of a field that has one value. As in Go the last scalar counts; parts of a message
    /// would have to be merged, and are refused.
    fn last_part(
        &self,
        context: &Context<'_>,
        number: usize,
        field: &Field,
    ) -> Result<Option<Wire<'de>>, Error> {
        let mut rest = self.rest;
        let mut last = None;
        while !rest.is_empty() {
            let here = rest;
            let (next, wire) = wire::entry(&mut rest).map_err(|fault| context.fault(fault))?;
            if next == number {
                if !field.ty().is_scalar() {
                    return Err(context.error(Problem::Split, here));
                }
                last = Some(wire);
            } else if self.order < Order::Mixed {
                break;
            }
        }
        Ok(last)
    }
}
