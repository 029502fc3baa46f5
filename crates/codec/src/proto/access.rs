//! Walks lists, maps and messages for visitors.

use std::borrow::Cow;

use serde::de::{Error as _, Unexpected};

use super::error::{Error, Problem, Step};
use super::value::{Place, Run, Source, Value, map_entry};
use super::walk::{Usual, Walk};
use super::wire::Wire;
use crate::schema::{Message, Type};

/// What is being walked: one type for all, so that each visitor is compiled for one access type.
///
/// It holds the one value that is current, and visitors get a reference to it: values and walks are too large to be
/// moved at each of the hundreds of fields of an object.
#[derive(Debug)]
pub(crate) struct Access<'de, 'c> {
    state: State<'de>,
    /// The element, or the value of the key, that was given out last.
    value: Value<'de, 'c>,
}

/// What can be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Object,
    /// Nothing to walk.
    Scalar,
}

#[derive(Debug)]
enum State<'de> {
    /// Nothing was found to walk.
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
    /// Begins a walk through `outer`, whose source it may take.
    ///
    /// Written to the place that it stays at: those who walk borrow it from there, and do not move it.
    pub(super) fn begin(
        outer: &mut Value<'de, 'c>,
        wanted: Shape,
        expected: &dyn serde::de::Expected,
    ) -> Result<Self, Error> {
        let (context, depth) = (outer.context, outer.depth + 1);
        // By far the most frequent: a message in a message, a list, or a map.
        match &outer.source {
            Source::Wire(Type::Nested(index), Wire::Bytes(bytes))
                if wanted == Shape::Object
                    && !context.careful
                    && depth <= context.options.depth =>
            {
                let state = State::Message(Walk::usual(Message::at(*index), bytes));
                return Ok(Self { state, value: Value::before_first(context, depth) });
            }
            Source::List(ty, run) if wanted == Shape::List => {
                let state = State::List { ty: *ty, run: *run, index: 0 };
                return Ok(Self { state, value: Value::before_first(context, depth) });
            }
            Source::Map(ty, run) if wanted == Shape::Object => {
                let state = State::Map { ty: *ty, run: *run };
                return Ok(Self { state, value: Value::before_first(context, depth) });
            }
            _ => {}
        }
        Self::begin_in_general(outer, wanted, expected)
    }

    #[inline(never)]
    fn begin_in_general(
        outer: &mut Value<'de, 'c>,
        wanted: Shape,
        expected: &dyn serde::de::Expected,
    ) -> Result<Self, Error> {
        let (shape, access) = Self::begin_any(outer)?;
        match shape {
            _ if shape == wanted => Ok(access),
            Shape::Scalar => Err(outer.mismatch(expected)),
            Shape::List => Err(Error::invalid_type(Unexpected::Seq, expected)),
            Shape::Object => Err(Error::invalid_type(Unexpected::Map, expected)),
        }
    }

    /// The same for whatever there is. Nothing is taken from a scalar.
    pub(super) fn begin_any(outer: &mut Value<'de, 'c>) -> Result<(Shape, Self), Error> {
        let value = Value::before_first(outer.context, outer.depth + 1);
        let mut access = Self { state: State::Closed, value };
        Ok((access.enter(outer)?, access))
    }

    fn enter(&mut self, outer: &mut Value<'de, 'c>) -> Result<Shape, Error> {
        outer.resolve_json()?;
        match &mut outer.source {
            Source::List(ty, run) => {
                self.state = State::List { ty: *ty, run: *run, index: 0 };
                Ok(Shape::List)
            }
            Source::Map(ty, run) => {
                self.state = State::Map { ty: *ty, run: *run };
                Ok(Shape::Object)
            }
            Source::Object(message, bytes, lead) => {
                let context = self.value.context;
                // The values inside know their own depth; this message's is one less.
                if self.value.depth > context.options.depth {
                    return Err(context.error(Problem::Depth, bytes));
                }
                self.state = State::Message(Walk::new(context, message, bytes, *lead)?);
                Ok(Shape::Object)
            }
            Source::Tree(tree) => Ok(self.enter_tree(tree)),
            _ => Ok(Shape::Scalar),
        }
    }

    fn enter_tree(&mut self, tree: &mut serde_json::Value) -> Shape {
        match tree {
            serde_json::Value::Array(list) => {
                self.state = State::TreeList(std::mem::take(list).into_iter());
                Shape::List
            }
            serde_json::Value::Object(map) => {
                self.state = State::TreeMap(std::mem::take(map).into_iter());
                Shape::Object
            }
            _ => Shape::Scalar,
        }
    }

    /// Makes the next element of a list the current value, if there is one.
    pub(super) fn next_element(&mut self) -> Result<Option<&mut Value<'de, 'c>>, Error> {
        let value = &mut self.value;
        match &mut self.state {
            State::List { ty, run, index } => {
                value.place = Place::Index(*index);
                *index += 1;
                match run.next() {
                    Ok(Some(wire)) => match &mut value.source {
                        Source::Wire(before_ty, before) => (*before_ty, *before) = (*ty, wire),
                        source => *source = Source::Wire(*ty, wire),
                    },
                    Ok(None) => return Ok(None),
                    Err(fault) => return Err(value.context.fault(fault)),
                }
            }
            State::TreeList(list) => match list.next() {
                Some(tree) => value.source = Source::Tree(Box::new(tree)),
                None => return Ok(None),
            },
            _ => return Ok(None),
        }
        Ok(Some(value))
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
        // Most of the time of a decode is spent here.
        if let State::Message(walk) = &mut self.state {
            match walk.next_usual(self.value.context, &mut self.value.source) {
                Usual::Field(field) => {
                    self.value.place = Place::Field(field);
                    return Ok(Some(Key(Cow::Borrowed(field.name()))));
                }
                Usual::End => return Ok(None),
                Usual::Other => {}
            }
        }
        self.next_key_in_general()
    }

    #[inline(never)]
    fn next_key_in_general(&mut self) -> Result<Option<Key<'de>>, Error> {
        let value = &mut self.value;
        match &mut self.state {
            State::Message(walk) => {
                let Some(place) = walk.next(value.context, &mut value.source)? else {
                    return Ok(None);
                };
                value.place = place;
                Ok(match place {
                    Place::Field(field) => Some(Key(Cow::Borrowed(field.name()))),
                    Place::Lead(name) => Some(Key(Cow::Borrowed(name))),
                    _ => None,
                })
            }
            State::Map { ty, run } => {
                let Some(wire) = run.next().map_err(|fault| value.context.fault(fault))? else {
                    return Ok(None);
                };
                let (key, wire) = map_entry(*ty, wire).map_err(Error::new)?;
                if key.len() > value.context.options.string_bytes {
                    return Err(value.context.error(Problem::Length, key));
                }
                value.place = Place::Key(key);
                value.source = Source::Wire(*ty, wire);
                Ok(Some(Key(super::forms::text(key))))
            }
            State::TreeMap(map) => Ok(map.next().map(|(key, tree)| {
                value.place = Place::Unnamed;
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
        match self.value.place {
            Place::Field(field) => error.add(Step::Field(field.name())),
            Place::Lead(name) => error.add(Step::Field(name)),
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
