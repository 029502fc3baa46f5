//! Properties of the decoders on input that nobody meant to send: whatever the bytes are, two ways to the same answer agree,
//! nothing panics, and no operation takes more memory than a multiple of its input.
//!
//! Inputs are drawn from a seed: objects of every kind of the table, whole and damaged, and arbitrary bytes.
//! `KUBESTRATA_CODEC_INPUTS` sets how many each test draws, `KUBESTRATA_CODEC_SEED` the seed; a failure prints its input.
//!
//! `fuzz/` beside this folder calls the same functions with what libFuzzer finds. `KUBESTRATA_CODEC_ARTIFACT` names a file
//! that it has left, for the test [`of_a_fuzzers_input`], which needs no fuzzer.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]
#![expect(clippy::print_stdout, reason = "how many inputs there were is worth knowing")]

mod checks;
mod fuzzed;
mod streams;

mod dice;
mod make;
mod memory;
mod shown;

use std::collections::BTreeMap;

use kubestrata_api_types::Format;
use kubestrata_codec::schema;

use self::dice::Dice;
use self::make::Maker;
use self::shown::Shown;

/// Inputs of each test in a normal run: some seconds without optimisation.
const INPUTS: u64 = 4_000;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Draws inputs, checks each, and counts how they end.
fn draw(
    what: &str,
    input: impl Fn(&mut Maker, &mut Dice, &'static schema::Kind) -> Vec<u8>,
    mut check: impl FnMut(&'static schema::Kind, &[u8], &mut Dice) -> &'static str,
) {
    let inputs = setting("KUBESTRATA_CODEC_INPUTS", INPUTS);
    let seed = setting("KUBESTRATA_CODEC_SEED", SEED);
    let (mut maker, mut ends) = (Maker::default(), BTreeMap::<_, u64>::new());
    for number in 0..inputs {
        let mut dice = Dice::new(seed, number);
        let kind = dice.of(schema::kinds());
        let input = input(&mut maker, &mut dice, kind);
        let shown = Shown { what, number, kind, input: &input };
        let end = check(kind, shown.input, &mut dice);
        *ends.entry(end).or_default() += 1;
    }
    println!("{what}: {inputs} inputs of seed {seed:#x}: {ends:?}; {}", memory::report());
    // A generator of nothing but rubbish, or of none, would prove little.
    for end in ["read", "refused"] {
        let share = ends.get(end).copied().unwrap_or_default();
        assert!(share >= inputs / 20, "{what}: {ends:?}");
    }
}

#[test]
fn of_protobuf() {
    draw("protobuf", |maker, dice, kind| maker.protobuf(dice, kind.message()), checks::protobuf);
}

#[test]
fn of_json() {
    draw("JSON", |maker, dice, kind| maker.json(dice, kind), checks::json);
}

#[test]
fn of_watches() {
    for format in [Format::Json, Format::Protobuf] {
        draw(
            &format!("watch in {format:?}"),
            |maker, dice, kind| maker.watch(dice, kind, format),
            |kind, input, dice| streams::watch(kind, format, input, dice),
        );
    }
}

#[test]
fn of_lists() {
    for format in [Format::Json, Format::Protobuf] {
        draw(
            &format!("list in {format:?}"),
            |maker, dice, kind| maker.list(dice, kind, format),
            |kind, input, dice| streams::list(kind, format, input, dice),
        );
    }
}

/// What the fuzz targets do with their input, on bytes that no fuzzer has chosen.
#[test]
fn of_a_fuzzers_input() {
    let both = |input: &[u8]| [fuzzed::object(input), fuzzed::stream(input)];
    if let Some(path) = std::env::var_os("KUBESTRATA_CODEC_ARTIFACT") {
        println!("{:?}", both(&std::fs::read(path).unwrap()));
        return;
    }
    assert_eq!(both(b"ab"), [None, None], "too short to say what it is");
    let mut ends = BTreeMap::<_, u64>::new();
    for number in 0..setting("KUBESTRATA_CODEC_INPUTS", INPUTS) / 4 {
        let mut dice = Dice::new(setting("KUBESTRATA_CODEC_SEED", SEED), number);
        let length = 3 + dice.below(200);
        let input: Vec<u8> = (0..length).map(|_| dice.byte()).collect();
        for end in both(&input) {
            *ends.entry(end.expect("there is a kind")).or_default() += 1;
        }
    }
    assert_eq!(ends.keys().copied().collect::<Vec<_>>(), ["read", "refused"]);
}
