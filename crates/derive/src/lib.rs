#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! The same derives exist twice, with another default path: [`Object`] and [`Kind`] find the traits in
//! `kubestrata_api_types`, [`FacadeObject`] and [`FacadeKind`] in `kubestrata_controller`, which re-exports them under
//! the short names. The rejected way, reading the user's manifest at expansion, costs a TOML parser in every build.

mod attribute;
mod expand;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

const API_TYPES: &str = "::kubestrata_api_types";
const FACADE: &str = "::kubestrata_controller::api_types";

/// Implements `Object` by the field `metadata`. See the crate's head.
///
/// # Errors
///
/// A compile error at the struct if it has no such named field, and at the field's type if that is no `Meta`.
#[proc_macro_derive(Object, attributes(kubestrata))]
pub fn object(input: TokenStream) -> TokenStream {
    finish(expand::object(&parse_macro_input!(input as DeriveInput), API_TYPES))
}

/// Implements `Kind` from the attribute `kubestrata`. See the crate's head.
///
/// # Errors
///
/// A compile error at the key or value that is wrong, or at the struct for a key that is missing.
#[proc_macro_derive(Kind, attributes(kubestrata))]
pub fn kind(input: TokenStream) -> TokenStream {
    finish(expand::kind(&parse_macro_input!(input as DeriveInput), API_TYPES))
}

/// [`Object`], for users of `kubestrata-controller`, which re-exports it as `Object`.
#[proc_macro_derive(FacadeObject, attributes(kubestrata))]
pub fn facade_object(input: TokenStream) -> TokenStream {
    finish(expand::object(&parse_macro_input!(input as DeriveInput), FACADE))
}

/// [`Kind`], for users of `kubestrata-controller`, which re-exports it as `Kind`.
#[proc_macro_derive(FacadeKind, attributes(kubestrata))]
pub fn facade_kind(input: TokenStream) -> TokenStream {
    finish(expand::kind(&parse_macro_input!(input as DeriveInput), FACADE))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
