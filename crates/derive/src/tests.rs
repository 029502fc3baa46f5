//! The errors, as users read them. What is generated is tested by using it, in `tests/`.

use expect_test::{Expect, expect};
use syn::DeriveInput;

use crate::{API_TYPES, FACADE, expand};

/// Expands both derives and compares the errors, one per line.
fn check(input: &str, expected: &Expect) {
    let input: DeriveInput = syn::parse_str(input).unwrap();
    let errors: Vec<_> = [expand::object(&input, API_TYPES), expand::kind(&input, API_TYPES)]
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect();
    expected.assert_eq(&errors.join("\n"));
}

#[test]
fn errors_say_what_is_wanted() {
    let rest = r#"version = "v1", plural = "as", scope = "Cluster""#;
    let with =
        |attribute: &str| format!("#[kubestrata({attribute})] struct A {{ metadata: ObjectMeta }}");
    check(&with(&format!("group = \"\", {rest}")), &expect![""]);
    check("struct A { metadata: ObjectMeta }", &expect!["missing `group` in #[kubestrata(…)]"]);
    check(&with(rest), &expect!["missing `group` in #[kubestrata(…)]"]);
    check(
        &with(&format!("group = \"A.b\", {rest}")),
        &expect![[r#"want an API group, as in "example.com", or empty"#]],
    );
    check(
        &with(&format!("group = \"\", kind = \"a\", {rest}")),
        &expect![[r#"want a kind, as in "Widget""#]],
    );
    check(
        &with(r#"group = "", version = "v1", plural = "as", scope = "cluster""#),
        &expect![[r#"want "Namespaced" or "Cluster""#]],
    );
    check(
        &with(r#"group = "", group = """#),
        &expect![[r#"
            this key is there twice
            this key is there twice"#]],
    );
    check(
        &with(r#"groop = """#),
        &expect![[r#"
            unknown key: want group, version, kind, plural, scope or crate
            unknown key: want group, version, kind, plural, scope or crate"#]],
    );
    check(
        "enum A { B }",
        &expect![[r#"
            an object is a struct
            missing `group` in #[kubestrata(…)]"#]],
    );
    check(
        r#"#[kubestrata(group = "", version = "v1", plural = "as", scope = "Cluster")] struct A { meta: ObjectMeta }"#,
        &expect!["an object has a field `metadata`, of a type that is `Meta`"],
    );
}

#[test]
fn the_path_is_the_facades_for_its_users_and_the_attributes_before_all() {
    let expanded = |attribute: &str, default| {
        let input = format!("{attribute} struct A {{ metadata: M }}");
        expand::object(&syn::parse_str(&input).unwrap(), default).unwrap().to_string()
    };
    assert!(expanded("", API_TYPES).contains(":: kubestrata_api_types :: Object"));
    assert!(expanded("", FACADE).contains(":: kubestrata_controller :: api_types :: Object"));
    let own = expanded(r#"#[kubestrata(crate = "crate::words")]"#, FACADE);
    assert!(own.contains("crate :: words :: Object") && !own.contains("kubestrata"));
}
