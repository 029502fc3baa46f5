//! What is printed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Figure;
use super::cases::what;

/// A figure as JSON.
pub(super) fn line(figure: &Figure) -> Value {
    json!({
        "what": "kubestrata codec",
        "set": figure.set,
        "work": figure.what,
        "by": figure.by,
        "input_bytes": figure.input.round(),
        "ns": figure.ns.round(),
        "allocations": figure.allocations,
        "allocated_bytes": figure.allocated.round(),
    })
}

/// All figures for people, the peers of one work together.
pub(super) fn table(figures: &[Figure]) -> String {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for figure in figures {
        let key = (&*figure.set, &*figure.what);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut out = String::from(
        "set             work             by               bytes in     ns   allocations  allocated\n",
    );
    for (set, what) in keys {
        for figure in figures.iter().filter(|figure| (&*figure.set, &*figure.what) == (set, what)) {
            let Figure { by, input, ns, allocations, allocated, .. } = figure;
            // Writing into a String cannot fail.
            let _ = writeln!(
                out,
                "{set:<15} {what:<16} {by:<16} {input:>8.0} {ns:>8.0} {allocations:>10.1} {allocated:>10.0}"
            );
        }
    }
    out
}

/// The ratios that the goals are about.
pub(super) fn summary(figures: &[Figure], rounds: usize, lists: Vec<Value>) -> Value {
    let ns = |set: &str, what: &str, by: &str| {
        let fits = |figure: &&Figure| figure.set == set && figure.what == what && figure.by == by;
        figures.iter().find(fits).map(|figure| figure.ns)
    };
    let ratio = |set: &str, what: &str, rival: &str| {
        Some(ns(set, what, "kubestrata")? / ns(set, what, rival)?)
    };
    let of_sets = |what: &'static str, rival: &'static str| {
        let sets = ["pods", "running-pods", "configmaps", "endpointslices"];
        let ratios = sets.map(|set| (set.to_owned(), json!(ratio(set, what, rival))));
        Value::Object(ratios.into_iter().collect())
    };
    json!({
        "what": "kubestrata codec summary",
        "rounds": rounds,
        "decode_to_prost": of_sets(what::DECODE, "prost"),
        "decode_to_serde_json": of_sets(what::DECODE, "serde_json"),
        "encode_to_serde_json": of_sets(what::ENCODE, "serde_json"),
        "encode_to_prost": of_sets(what::ENCODE, "prost"),
        "decode_to_client_go": of_sets(what::DECODE, "client-go"),
        "head_ns": ns("pods", what::HEAD, "kubestrata"),
        "head_json_ns": ns("pods", what::HEAD, "kubestrata json"),
        "lists": lists,
    })
}
