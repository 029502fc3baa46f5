//! Results of one measurement side by side, with ratios to our own.

use serde_json::{Map, Value};

/// One measurement and whoever took part in it. The first one added is what the others are compared with.
pub(crate) struct Section {
    title: String,
    fields: &'static [&'static str],
    columns: Vec<(String, Map<String, Value>)>,
}

impl Section {
    /// An empty section that shows these fields.
    pub(crate) fn new(title: String, fields: &'static [&'static str]) -> Self {
        Self { title, fields, columns: Vec::new() }
    }

    /// Adds the result of one program.
    pub(crate) fn add(&mut self, name: impl Into<String>, mut result: Map<String, Value>) {
        derive_rate(&mut result);
        self.columns.push((name.into(), result));
    }

    /// Prints one line for each program: the figures, and in brackets our figure divided by its.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        print!("{:<20}", "");
        for field in self.fields {
            print!("{field:>24}");
        }
        println!();
        let ours = self.columns.first().map(|(_, result)| result);
        for (index, (name, result)) in self.columns.iter().enumerate() {
            print!("{name:<20}");
            for field in self.fields {
                let text = match number(result, field) {
                    None => "–".to_owned(),
                    Some(value) => {
                        let ours = ours.and_then(|ours| number(ours, field));
                        match ours.filter(|_| index > 0 && value != 0.0) {
                            Some(ours) => format!("{} ({:.2}x)", figure(value), ours / value),
                            None => figure(value),
                        }
                    }
                };
                print!("{text:>24}");
            }
            println!();
        }
    }
}

fn number(result: &Map<String, Value>, field: &str) -> Option<f64> {
    result.get(field).and_then(Value::as_f64)
}

/// Three or four significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// The peers do not print the rate; it follows from what they print.
fn derive_rate(result: &mut Map<String, Value>) {
    let Some(objects) = number(result, "objects") else { return };
    let (Some(sync), Some(all)) = (number(result, "sync_s"), number(result, "all_reconciled_s"))
    else {
        return;
    };
    if all > sync {
        result.insert("reconciles_per_s".to_owned(), Value::from(objects / (all - sync)));
    }
}

/// For each field of the first run that is a number: the median over all runs.
pub(crate) fn median(runs: &[Map<String, Value>]) -> Map<String, Value> {
    let Some(first) = runs.first() else { return Map::new() };
    let mut result = first.clone();
    for (field, value) in &mut result {
        let mut values: Vec<f64> = runs.iter().filter_map(|run| number(run, field)).collect();
        if !values.is_empty() {
            values.sort_by(f64::total_cmp);
            *value = Value::from(values[values.len() / 2]);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn medians_are_taken_field_by_field() {
        let runs = [
            object(json!({"what": "x", "a": 3, "b": 1.5})),
            object(json!({"what": "x", "a": 1, "b": 9.5})),
            object(json!({"what": "x", "a": 2, "b": 2.5})),
        ];
        assert_eq!(Value::Object(median(&runs)), json!({"what": "x", "a": 2.0, "b": 2.5}));
    }

    #[test]
    fn the_rate_of_reconciles_counts_from_sync_on() {
        let mut result = object(json!({"objects": 300, "sync_s": 1.0, "all_reconciled_s": 3.0}));
        derive_rate(&mut result);
        assert_eq!(number(&result, "reconciles_per_s"), Some(150.0));
    }
}
