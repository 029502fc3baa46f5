//! The checks themselves, and the whole of tidy as a test.

use super::licences::acceptable;
use super::manifests::has_lints;
use super::sources::{long_functions, problems};

#[test]
fn the_workspace_is_tidy() {
    let findings = super::check().unwrap();
    assert!(findings.errors.is_empty(), "{}", findings.errors.join("\n"));
}

#[test]
fn licences_are_read_as_expressions() {
    for (expression, want) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
        ("(MIT AND GPL-3.0-only) OR MPL-2.0", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", true),
        ("MIT WITH some-exception", false),
        ("(MIT", false),
        ("", false),
    ] {
        assert_eq!(acceptable(expression), want, "{expression:?}");
    }
}

#[test]
fn members_without_lints_are_found() {
    assert!(has_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
    assert!(has_lints("[lints.rust]\nunsafe_code = \"deny\"\n[lints.clippy]\ntodo = \"warn\"\n"));
    assert!(!has_lints("[package]\nname = \"a\"\n"));
    assert!(!has_lints("[lints]\n[dependencies]\nworkspace = true\n"));
}

#[test]
fn paths_of_one_machine_are_found() {
    let folder = concat!("/ho", "me/");
    assert_eq!(problems(&format!("fine\nlet path = \"{folder}someone\";")).len(), 1);
    assert_eq!(problems(&format!("see https://example.org{folder}page")), Vec::<String>::new());
}

#[test]
fn long_functions_are_found_and_short_ones_are_not() {
    let long = format!("    pub fn long() {{\n{}    }}\n", "        x();\n".repeat(70));
    let text = format!("fn short() {{\n    x();\n}}\n\nimpl A {{\n{long}}}\n");
    assert_eq!(long_functions(&text), [("long".to_owned(), 72)]);
}

#[test]
fn tests_that_are_not_there_are_found() {
    let mut functions = super::tests_named::Functions::default();
    functions.note("crates/a/src/tests.rs", "#[test]\nfn one() {\n}\n    async fn two<T>() {}\n");
    functions.note("tests/it/main.rs", "fn three() {}");
    let text = "| x | `a::one`, `a::two` | `it::three` |\n| y | `b::one` `a::three` `plain` |\n`not::a_row`";
    assert_eq!(functions.missing(text), ["b::one", "a::three"]);
}
