//! The attribute `#[kubestrata(…)]`.

use syn::meta::ParseNestedMeta;
use syn::{DeriveInput, Error, LitStr, Path, Result};

/// What the attribute says, unchecked but for unknown and doubled keys.
#[derive(Default)]
pub(crate) struct Attribute {
    pub(crate) group: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) kind: Option<LitStr>,
    pub(crate) plural: Option<LitStr>,
    pub(crate) scope: Option<LitStr>,
    pub(crate) path: Option<Path>,
}

impl Attribute {
    pub(crate) fn of(input: &DeriveInput) -> Result<Self> {
        let mut found = Self::default();
        for attribute in
            input.attrs.iter().filter(|attribute| attribute.path().is_ident("kubestrata"))
        {
            attribute.parse_nested_meta(|meta| found.key(&meta))?;
        }
        Ok(found)
    }

    fn key(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("crate") {
            let path = meta.value()?.parse::<LitStr>()?.parse::<Path>()?;
            return once(&mut self.path, path, meta);
        }
        for (name, value) in [
            ("group", &mut self.group),
            ("version", &mut self.version),
            ("kind", &mut self.kind),
            ("plural", &mut self.plural),
            ("scope", &mut self.scope),
        ] {
            if meta.path.is_ident(name) {
                return once(value, meta.value()?.parse()?, meta);
            }
        }
        Err(meta.error("unknown key: want group, version, kind, plural, scope or crate"))
    }
}

fn once<T>(slot: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if slot.replace(value).is_some() { Err(meta.error("this key is there twice")) } else { Ok(()) }
}

/// The value of a key that must be there.
pub(crate) fn required<'a>(
    value: Option<&'a LitStr>,
    key: &str,
    input: &DeriveInput,
) -> Result<&'a LitStr> {
    value.ok_or_else(|| {
        let text = format!("missing `{key}` in #[kubestrata(…)]");
        Error::new(input.ident.span(), text)
    })
}
