//! From a struct to its implementations.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Field, LitStr, Path, Result};

use crate::attribute::{Attribute, required};

/// `impl Object`.
pub(crate) fn object(input: &DeriveInput, default_path: &str) -> Result<TokenStream> {
    let path = path(&Attribute::of(input)?, default_path)?;
    let field = metadata(input)?;
    let ty = &field.ty;
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    // The span of the field's type, so that "does not implement Meta" points there.
    let meta = quote_spanned!(ty.span()=> <#ty as #path::Meta>);
    Ok(quote! {
        #[automatically_derived]
        impl #generics #path::Object for #ident #arguments #bounds {
            fn name(&self) -> &str {
                #meta::name(&self.metadata)
            }
            fn namespace(&self) -> ::core::option::Option<&str> {
                #meta::namespace(&self.metadata)
            }
            fn uid(&self) -> ::core::option::Option<&str> {
                #meta::uid(&self.metadata)
            }
            fn resource_version(&self) -> #path::ResourceVersion {
                #meta::resource_version(&self.metadata)
            }
            fn generation(&self) -> ::core::option::Option<i64> {
                #meta::generation(&self.metadata)
            }
            fn deletion_timestamp(&self) -> ::core::option::Option<#path::Timestamp> {
                #meta::deletion_timestamp(&self.metadata)
            }
            fn label(&self, key: &str) -> ::core::option::Option<&str> {
                #meta::label(&self.metadata, key)
            }
            fn for_each_label(&self, f: &mut dyn ::core::ops::FnMut(&str, &str)) {
                #meta::for_each_label(&self.metadata, f)
            }
            fn for_each_owner(&self, f: &mut dyn ::core::ops::FnMut(#path::OwnerRef<'_>)) {
                #meta::for_each_owner(&self.metadata, f)
            }
        }
    })
}

/// `impl Kind`.
pub(crate) fn kind(input: &DeriveInput, default_path: &str) -> Result<TokenStream> {
    let attribute = Attribute::of(input)?;
    let path = path(&attribute, default_path)?;
    let group = required(attribute.group.as_ref(), "group", input)?;
    let version = required(attribute.version.as_ref(), "version", input)?;
    let plural = required(attribute.plural.as_ref(), "plural", input)?;
    let scope = required(attribute.scope.as_ref(), "scope", input)?;
    let ident = &input.ident;
    let own_name = LitStr::new(&ident.to_string(), ident.span());
    let kind = attribute.kind.as_ref().unwrap_or(&own_name);

    check(group, "an API group, as in \"example.com\", or empty", |text| {
        text.is_empty() || text.split('.').all(is_label)
    })?;
    check(version, "a version, as in \"v1\" or \"v1beta1\"", is_label)?;
    check(plural, "a plural name in lower case, as in \"widgets\"", is_label)?;
    check(kind, "a kind, as in \"Widget\"", |text| {
        text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })?;
    check(scope, "\"Namespaced\" or \"Cluster\"", |text| matches!(text, "Namespaced" | "Cluster"))?;

    let scope = format_ident!("{}", scope.value(), span = scope.span());
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics #path::Kind for #ident #arguments #bounds {
            fn resource() -> &'static #path::ResourceType {
                static RESOURCE: #path::ResourceType = #path::ResourceType::from_static(
                    #group, #version, #kind, #plural, #path::Scope::#scope,
                );
                &RESOURCE
            }
        }
    })
}

fn path(attribute: &Attribute, default: &str) -> Result<Path> {
    match &attribute.path {
        Some(path) => Ok(path.clone()),
        None => LitStr::new(default, Span::call_site()).parse(),
    }
}

fn metadata(input: &DeriveInput) -> Result<&Field> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "an object is a struct"));
    };
    data.fields
        .iter()
        .find(|field| field.ident.as_ref().is_some_and(|ident| ident == "metadata"))
        .ok_or_else(|| {
            Error::new(
                input.ident.span(),
                "an object has a field `metadata`, of a type that is `Meta`",
            )
        })
}

fn check(value: &LitStr, want: &str, valid: impl Fn(&str) -> bool) -> Result<()> {
    if valid(&value.value()) {
        Ok(())
    } else {
        Err(Error::new(value.span(), format!("want {want}")))
    }
}

/// RFC 1123: what URLs and group names are made of.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
        && text.len() <= 63
}
