#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! The consistency of a read is one word of the reader's, [`Consistency`], and this crate finds the parameters that mean
//! it. The rejected way, to pass `resourceVersion` and `resourceVersionMatch` through, has eleven combinations of which
//! the server refuses some, ignores the page size in others, and reads one in a way that nobody expects.

mod error;
mod pages;
mod query;
mod reader;
mod snapshot;

#[cfg(test)]
mod tests;

pub use self::error::ReadError;
pub use self::pages::Pages;
pub use self::query::{Consistency, Query};
pub use self::reader::{ApiReader, Config};
