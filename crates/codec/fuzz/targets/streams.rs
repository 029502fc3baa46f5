//! A watch or a list of some kind, in protobuf or JSON, cut in two ways.

#![no_main]
#![expect(dead_code, reason = "the properties have more callers than this target")]

#[path = "../../tests/properties/checks.rs"]
mod checks;
#[path = "../../tests/properties/dice.rs"]
mod dice;
#[path = "../../tests/properties/fuzzed.rs"]
mod fuzzed;
#[path = "../../tests/properties/make.rs"]
mod make;
#[path = "../../tests/properties/memory.rs"]
mod memory;
#[path = "../../tests/properties/shown.rs"]
mod shown;
#[path = "../../tests/properties/streams.rs"]
mod streams;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzzed::stream(input);
});
