//! Names: made and checked.

use kubestrata_api_types::World;
use serde_json::Value;

use crate::catalog::Resource;
use crate::failure::Cause;

/// Characters of generated names: no vowels, so that no words come out (apimachinery `rand`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// A generated name is at most 63 characters: the rest of the base and 5 random ones.
const BASE_MAX: usize = 58;
const RANDOM: usize = 5;

/// A name from its prefix.
pub(crate) fn generate(prefix: &str, world: &dyn World) -> String {
    let mut end = prefix.len().min(BASE_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    let mut random = world.random();
    let count = ALPHABET.len() as u64;
    for _ in 0..RANDOM {
        // A remainder below 27 fits any index.
        let index = usize::try_from(random % count).unwrap_or_default();
        name.push(char::from(ALPHABET[index]));
        random /= count;
    }
    name
}

/// What a kind's names must look like.
enum Rule {
    /// RFC 1123 subdomain: the default.
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// RFC 1035 label: a name in DNS that starts with a letter.
    Service,
    /// Anything that can stand in a path.
    Segment,
}

fn rule(resource: &Resource) -> Rule {
    match (&*resource.ty.group, &*resource.ty.plural) {
        ("", "namespaces") => Rule::Label,
        ("", "services") => Rule::Service,
        ("rbac.authorization.k8s.io" | "certificates.k8s.io", _) => Rule::Segment,
        _ => Rule::Subdomain,
    }
}

/// What is wrong with the name of a new object.
pub(crate) fn check(resource: &Resource, name: &str) -> Option<Cause> {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |text: &str| {
        let bytes = text.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(first, last)| alphanumeric(*first) && alphanumeric(*last))
            && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
    };
    let (valid, max, problem) = match rule(resource) {
        Rule::Subdomain => (name.split('.').all(label), 253, SUBDOMAIN),
        Rule::Label => (label(name), 63, LABEL),
        Rule::Service => {
            let letter = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
            (label(name) && letter, 63, SERVICE)
        }
        Rule::Segment => {
            let problem = segment_problem(name);
            return problem.map(|problem| cause(name, &problem));
        }
    };
    if name.len() > max {
        return Some(cause(name, &format!("must be no more than {max} characters")));
    }
    (!valid).then(|| cause(name, problem))
}

fn segment_problem(name: &str) -> Option<String> {
    if matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let bad = name.chars().find(|c| matches!(c, '/' | '%'));
    bad.map(|bad| format!("may not contain '{bad}'"))
}

/// What is wrong with a label.
pub(crate) fn label_causes(key: &str, value: &Value) -> Vec<Cause> {
    let part = |text: &str| {
        let bytes = text.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
    };
    let field = "metadata.labels";
    let mut causes = Vec::new();
    let (prefix, name) =
        key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !part(name) {
        causes.push(Cause::invalid(field, &format!("{key:?}"), LABEL_NAME));
    } else if name.len() > 63 {
        let problem = "name part must be no more than 63 bytes";
        causes.push(Cause::invalid(field, &format!("{key:?}"), problem));
    }
    if prefix
        .is_some_and(|prefix| !prefix.split('.').all(|label| part(label) && !label.contains('_')))
    {
        let problem = format!("prefix part {SUBDOMAIN}");
        causes.push(Cause::invalid(field, &format!("{key:?}"), &problem));
    }
    // What is no text is refused by the schema.
    if let Value::String(value) = value
        && !value.is_empty()
    {
        if !part(value) {
            causes.push(Cause::invalid(field, &format!("{value:?}"), LABEL_VALUE));
        } else if value.len() > 63 {
            causes.push(Cause::invalid(
                field,
                &format!("{value:?}"),
                "must be no more than 63 bytes",
            ));
        }
    }
    causes
}

fn cause(name: &str, problem: &str) -> Cause {
    Cause::invalid("metadata.name", &format!("{name:?}"), problem)
}

const LABEL_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
