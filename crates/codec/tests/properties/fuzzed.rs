//! Inputs as a fuzzer gives them: three bytes that choose, and more bytes, through all properties.
//!
//! The others are either the object or stream itself, or the choices of which [`Maker`] makes one: so a fuzzer reaches what
//! lies behind many nested lengths as well as what no encoder would write.

use std::cell::RefCell;

use kubestrata_api_types::Format;
use kubestrata_codec::schema::{self, Kind};

use crate::dice::Dice;
use crate::make::Maker;
use crate::shown::Shown;
use crate::{checks, streams};

thread_local! {
    /// What it has found out about the table is the same for every input.
    static MAKER: RefCell<Maker> = RefCell::default();
}

/// What the first three bytes choose.
struct Choice<'a> {
    kind: &'static Kind,
    format: Format,
    /// The rest are choices, and not the input itself.
    is_made: bool,
    is_list: bool,
    rest: &'a [u8],
}

impl<'a> Choice<'a> {
    fn of(input: &'a [u8]) -> Option<Self> {
        let ([how, kind @ ..], rest) = input.split_first_chunk::<3>()?;
        let kinds = schema::kinds();
        Some(Self {
            kind: &kinds[usize::from(u16::from_le_bytes(*kind)) % kinds.len()],
            format: if how & 1 == 0 { Format::Protobuf } else { Format::Json },
            is_made: how & 2 != 0,
            is_list: how & 4 != 0,
            rest,
        })
    }

    /// The input, and the choices of the checks.
    fn input(&self, make: impl FnOnce(&mut Maker, &mut Dice) -> Vec<u8>) -> (Vec<u8>, Dice) {
        let mut dice = Dice::from_input(self.rest);
        let input = if self.is_made {
            MAKER.with_borrow_mut(|maker| make(maker, &mut dice))
        } else {
            self.rest.to_vec()
        };
        (input, dice)
    }
}

/// One object. Says how it ended; nothing if the input is too short to be one.
pub(crate) fn object(input: &[u8]) -> Option<&'static str> {
    let choice = Choice::of(input)?;
    let kind = choice.kind;
    let (input, mut dice) = choice.input(|maker, dice| match choice.format {
        Format::Protobuf => maker.protobuf(dice, kind.message()),
        Format::Json => maker.json(dice, kind),
    });
    let shown = Shown { what: "a fuzzer's object", number: 0, kind, input: &input };
    Some(match choice.format {
        Format::Protobuf => checks::protobuf(kind, shown.input, &mut dice),
        Format::Json => checks::json(kind, shown.input, &mut dice),
    })
}

/// One watch or list. Says how it ended; nothing if the input is too short to be one.
pub(crate) fn stream(input: &[u8]) -> Option<&'static str> {
    let choice = Choice::of(input)?;
    let (kind, format) = (choice.kind, choice.format);
    let (input, mut dice) = choice.input(|maker, dice| match choice.is_list {
        true => maker.list(dice, kind, format),
        false => maker.watch(dice, kind, format),
    });
    let shown = Shown { what: "a fuzzer's stream", number: 0, kind, input: &input };
    Some(match choice.is_list {
        true => streams::list(kind, format, shown.input, &mut dice),
        false => streams::watch(kind, format, shown.input, &mut dice),
    })
}
