//! Goes through the fields of one message, in the order in which they stand.

use super::error::{Error, Problem};
use super::value::{Context, Lead, Place, Run, Source, Text, is_empty, zero};
use super::wire::{self, Order, Wire};
use crate::schema::{self, Field, Message};

/// A walk through the fields of a message.
#[derive(Debug)]
pub(super) struct Walk<'de> {
    /// The innermost message.
    frame: Frame<'de>,
    /// Those that it is inlined in, the outermost first.
    outer: [Option<Frame<'de>>; schema::INLINED_MAX],
    lead: Lead<'de>,
    /// How many of `apiVersion` and `kind` are done.
    leads: u8,
    /// Whether [`Walk::next_usual`] may be asked.
    is_usual: bool,
}

/// What [`Walk::next_usual`] has found.
pub(super) enum Usual {
    Field(&'static Field),
    End,
    /// Something that [`Walk::next`] has to look at.
    Other,
}

impl<'de> Walk<'de> {
    /// Of a message in a message.
    #[inline]
    pub(super) fn usual(message: &'static Message, bytes: &'de [u8]) -> Self {
        let frame = Frame { message, rest: bytes, seen: 0, last: 0, order: Order::Distinct };
        let outer = [None; schema::INLINED_MAX];
        Self { frame, outer, lead: Lead::None, leads: 2, is_usual: true }
    }

    pub(super) fn new(
        context: &Context<'_>,
        message: &'static Message,
        bytes: &'de [u8],
        lead: Lead<'de>,
    ) -> Result<Self, Error> {
        let has_lead = !matches!(lead, Lead::None);
        let frame = Frame::new(context, message, bytes)?;
        Ok(Self {
            frame,
            outer: [None; schema::INLINED_MAX],
            lead,
            leads: if has_lead { 0 } else { 2 },
            is_usual: !has_lead && !context.careful,
        })
    }

    /// The next field, as long as everything is as Go's encoders write it; its value goes to `source`.
    #[inline]
    pub(super) fn next_usual<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Usual {
        if !self.is_usual {
            return Usual::Other;
        }
        let frame = &mut self.frame;
        let message = frame.message;
        loop {
            let Some((number, wire, rest)) = wire::usual_entry(frame.rest) else {
                let is_end = frame.rest.is_empty() && self.outer[0].is_none();
                let is_whole = message.zeros() & !frame.seen == 0;
                return if is_end && is_whole { Usual::End } else { Usual::Other };
            };
            let Some(position) = message.position(number) else { return Usual::Other };
            let field = &message.fields()[position];
            // A number that rises was not given out before.
            if number <= frame.last {
                return Usual::Other;
            }
            if !field.is_single() {
                match frame.next_usual_run(number, position, source) {
                    Usual::Field(field)
                        if field.is_managed_fields() && context.options.skip_managed_fields =>
                    {
                        continue;
                    }
                    found => return found,
                }
            }
            (frame.rest, frame.last) = (rest, number);
            frame.seen |= 1 << position;
            if wire.is_zero() && field.hides_empty() && is_empty(field.ty(), wire) {
                continue;
            }
            // Nearly always it is an entry that was there before, for which there is nothing to drop.
            match source {
                Source::Wire(ty, before) => (*ty, *before) = (field.ty(), wire),
                _ => *source = Source::Wire(field.ty(), wire),
            }
            return Usual::Field(field);
        }
    }

    /// The next field that JSON shows; its value goes to `source`.
    pub(super) fn next<'c>(
        &mut self,
        context: &'c Context<'c>,
        source: &mut Source<'de, 'c>,
    ) -> Result<Option<Place<'de>>, Error> {
        while self.leads < 2 {
            if let Some(name) = self.next_lead(context, source) {
                return Ok(Some(Place::Lead(name)));
            }
        }
        self.is_usual = !context.careful;
        loop {
            match self.frame.next(context, source)? {
                Some(field) if !field.is_inline() => return Ok(Some(Place::Field(field))),
                Some(field) => {
                    let room = self.outer.iter_mut().find(|frame| frame.is_none());
                    match (&source, field.message(), room) {
                        (Source::Wire(_, Wire::Bytes(bytes)), Some(message), Some(room)) => {
                            let inner = Frame::new(context, message, bytes)?;
                            *room = Some(std::mem::replace(&mut self.frame, inner));
                        }
                        _ => return Err(context.error(Problem::WireType, self.frame.rest)),
                    }
                }
                None => match self.outer.iter_mut().rev().find_map(Option::take) {
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

    /// The entries of a list or map, for [`Walk::next_usual`]: its first is the next there is.
    #[inline(never)]
    fn next_usual_run(
        &mut self,
        number: usize,
        position: usize,
        source: &mut Source<'de, '_>,
    ) -> Usual {
        let field = &self.message.fields()[position];
        if !(field.is_repeated() || field.is_map()) {
            return Usual::Other;
        }
        let mut rest = self.rest;
        // Looked at once more where the error is told.
        let Ok(run) = Run::take(&mut rest, number, field.ty()) else { return Usual::Other };
        (self.rest, self.last) = (rest, number);
        self.seen |= 1 << position;
        *source = if field.is_map() {
            Source::Map(field.ty(), run)
        } else {
            Source::List(field.ty(), run)
        };
        Usual::Field(field)
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
