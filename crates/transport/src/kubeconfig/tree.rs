//! The whole contents of a file, with what nobody here knows, so that it can be written back.

use std::fmt;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

/// A value of YAML. Any text in a kubeconfig can be a secret.
#[derive(Clone)]
pub(super) enum Node {
    Null,
    /// What is no text without quotes, as a number or a boolean, as it is written: a password may look like one, and one that
    /// is written back otherwise is lost.
    Plain(SecretString),
    Text(SecretString),
    List(Vec<Self>),
    /// In the order of the file.
    Map(Vec<(String, Self)>),
}

impl Node {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of a key, which is made if it is not there; what is no map becomes one.
    pub(super) fn entry(&mut self, key: &str) -> &mut Self {
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(Vec::new());
        }
        let Self::Map(entries) = self else { unreachable!("it was made a map above") };
        let at = entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            entries.push((key.to_owned(), Self::Null));
            entries.len() - 1
        });
        &mut entries[at].1
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Self::Map(entries) = self {
            entries.retain(|(name, _)| name != key);
        }
    }

    /// The entries of a list; none of anything else.
    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// The field `name` of an entry: empty if it has none, as for Go.
    pub(super) fn name(&self) -> String {
        match self.get("name") {
            None | Some(Self::Null) => String::new(),
            Some(Self::Text(text) | Self::Plain(text)) => text.expose_secret().to_owned(),
            Some(Self::List(_) | Self::Map(_)) => String::new(),
        }
    }

    /// The entry of a list whose field `name` is this.
    pub(super) fn named(&mut self, name: &str) -> Option<&mut Self> {
        let Self::List(items) = self else { return None };
        items.iter_mut().find(|item| item.name() == name)
    }

    /// YAML in block style, that any reader of YAML 1.1 and 1.2 takes for the same values.
    pub(super) fn render(&self) -> SecretString {
        let mut out = Buffer::default();
        self.block(0, &mut out);
        out.0.as_str().into()
    }

    fn block(&self, depth: usize, out: &mut Buffer) {
        match self {
            Self::Map(entries) if !entries.is_empty() => {
                for (n, (key, value)) in entries.iter().enumerate() {
                    // The first is on the line of a list's dash, or the first of all.
                    if n > 0 {
                        indent(depth, out);
                    }
                    scalar(key, out);
                    out.push(':');
                    value.behind_key(depth, out);
                }
            }
            Self::List(items) if !items.is_empty() => {
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        indent(depth, out);
                    }
                    out.push_str("- ");
                    item.block(depth + 1, out);
                }
            }
            other => {
                other.inline(out);
                out.push('\n');
            }
        }
    }

    fn behind_key(&self, depth: usize, out: &mut Buffer) {
        match self {
            Self::Map(entries) if !entries.is_empty() => {
                out.push('\n');
                indent(depth + 1, out);
                self.block(depth + 1, out);
            }
            // As kubectl writes it: the dashes below the key.
            Self::List(items) if !items.is_empty() => {
                out.push('\n');
                indent(depth, out);
                self.block(depth, out);
            }
            other => {
                out.push(' ');
                other.block(depth, out);
            }
        }
    }

    fn inline(&self, out: &mut Buffer) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Plain(text) => out.push_str(text.expose_secret()),
            Self::Text(text) => scalar(text.expose_secret(), out),
            Self::List(_) => out.push_str("[]"),
            Self::Map(_) => out.push_str("{}"),
        }
    }
}

/// A text that is wiped, also where it was before it grew.
#[derive(Default)]
struct Buffer(Zeroizing<String>);

impl Buffer {
    fn push_str(&mut self, text: &str) {
        if self.0.capacity() - self.0.len() < text.len() {
            let room = (self.0.len() + text.len()) * 2;
            let old = std::mem::replace(&mut self.0, Zeroizing::new(String::with_capacity(room)));
            self.0.push_str(&old);
        }
        self.0.push_str(text);
    }

    fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }
}

fn indent(depth: usize, out: &mut Buffer) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Text as it is where nothing can take it for something else, and in quotes otherwise.
fn scalar(text: &str, out: &mut Buffer) {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._@+=-:".contains(&byte))
        && !text.ends_with(':')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null"
        );
    if plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' | '\u{a0}'..='\u{d7ff}' if !matches!(c, '\u{2028}' | '\u{2029}') => {
                out.push(c)
            }
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Text(one), Self::Text(other)) | (Self::Plain(one), Self::Plain(other)) => {
                one.expose_secret() == other.expose_secret()
            }
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Map(one), Self::Map(other)) => one == other,
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Plain(value.to_string().into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Plain(value.to_string().into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Plain(value.to_string().into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // With a point or an exponent, so that it stays a float.
        Ok(Node::Plain(format!("{value:?}").into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::text(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some((Key(key), value)) = entries.next_entry()? {
            all.push((key, value));
        }
        Ok(Node::Map(all))
    }
}

/// A key. One that is no text becomes text, as in Go, which makes JSON of YAML before it looks at it.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Node::deserialize(deserializer)? {
            Node::Text(key) | Node::Plain(key) => Ok(Self(key.expose_secret().to_owned())),
            Node::Null => Ok(Self("null".to_owned())),
            Node::List(_) | Node::Map(_) => {
                Err(serde::de::Error::custom("a key that is no scalar"))
            }
        }
    }
}

/// Reads the same file once more for the texts of scalars that are none: the parser gives either what one means or how it is
/// written.
pub(super) struct Texts<'a>(pub(super) &'a mut Node);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            Node::Null | Node::Text(_) => IgnoredAny::deserialize(deserializer).map(drop),
            Node::Plain(text) => {
                *text = String::deserialize(deserializer)?.into();
                Ok(())
            }
            Node::List(_) => deserializer.deserialize_seq(self),
            Node::Map(_) => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what was there before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Node::List(known) = self.0 else { return Ok(()) };
        for item in known {
            if items.next_element_seed(Texts(item))?.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Node::Map(known) = self.0 else { return Ok(()) };
        for (name, value) in known {
            let Some(key) = entries.next_key::<String>()? else { return Ok(()) };
            *name = key;
            entries.next_value_seed(Texts(value))?;
        }
        Ok(())
    }
}
