//! What agrees with Go, and what does not.

use std::collections::BTreeMap;

use serde_json::Value;

/// Counts of one conversion, with a name for all that is not as Go has it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many agree.
    pub(crate) same: usize,
    /// Name to what is different.
    pub(crate) exceptions: BTreeMap<String, String>,
}

impl Tally {
    /// Counts one comparison. `difference` says what is wrong, or nothing.
    pub(crate) fn add(&mut self, name: impl Into<String>, difference: Option<String>) {
        match difference {
            None => self.same += 1,
            Some(difference) => drop(self.exceptions.insert(name.into(), difference)),
        }
    }

    /// Fails unless exactly `same` comparisons agree, and exactly those named do not.
    pub(crate) fn assert(&self, what: &str, same: usize, exceptions: &[&str]) {
        let found: Vec<&str> = self.exceptions.keys().map(String::as_str).collect();
        let detail = || {
            let lines = self.exceptions.iter().map(|(name, why)| format!("\n  {name}: {why}"));
            lines.collect::<String>()
        };
        assert_eq!(found, exceptions, "{what}: {} agree, and differing are{}", self.same, detail());
        assert_eq!(self.same, same, "{what}");
    }
}

/// Where two texts begin to differ.
pub(crate) fn text(left: &[u8], right: &[u8]) -> Option<String> {
    if left == right {
        return None;
    }
    let at = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let part = |text: &[u8]| {
        let (from, to) = (at.saturating_sub(40).min(text.len()), (at + 40).min(text.len()));
        text[from..to].escape_ascii().to_string()
    };
    Some(format!("{} where Go has {}", part(left), part(right)))
}

/// The first place where two values differ.
pub(crate) fn value(left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        _ if left == right => None,
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys());
            names.into_iter().find_map(|name| {
                let none = Value::String("nothing".to_owned());
                let pair = (left.get(name).unwrap_or(&none), right.get(name).unwrap_or(&none));
                value(pair.0, pair.1).map(|found| format!(".{name}{found}"))
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, pair)| value(pair.0, pair.1).map(|found| format!("[{at}]{found}")))
        }
        _ => Some(format!(": {left} where Go has {right}")),
    }
}
