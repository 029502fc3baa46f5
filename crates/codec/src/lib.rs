#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! The item that flows is [`Encoded`]: the object's own wire bytes, and a head of positions in them.
//! The rejected way, to decode each object as it arrives, costs ten times the memory and time for objects of which most
//! readers want a name, a label and an owner, and makes one object that does not decode an error of the whole stream.

pub mod schema;

pub mod proto;
pub mod transcode;

mod input;
mod json;
mod limits;
mod wire;

mod decode;
mod head;
mod prune;
mod view;

mod decoded;
mod dynamic;
mod encoded;
mod table;
mod tracked;
mod weigh;

pub mod envelope;

mod answer;
mod list;
mod status;
mod watch;

mod encode;
mod negotiate;

pub mod collection;
pub mod frame;

mod client;
mod layer;

#[cfg(test)]
mod tests;

pub use self::answer::{AnswerError, decode_object};
pub use self::client::{
    Client, ClientError, Deletion, EncodedService, List, Patch, Writable, Write,
};
pub use self::decoded::{Decoded, Item};
pub use self::dynamic::Dynamic;
pub use self::encode::{EncodeError, encode};
pub use self::encoded::Encoded;
pub use self::layer::{Decode, DecodeFuture, DecodeLayer};
pub use self::limits::Limits;
pub use self::list::{ListDecoder, ListError};
pub use self::negotiate::{
    JSON, Negotiation, PROTOBUF, accept_header, content_type, delete_options_body, format_of,
};
pub use self::status::decode_status;
pub use self::table::{Column, Row, Table};
pub use self::tracked::{Tracked, UnknownFields};
pub use self::watch::{WatchDecoder, WatchError};
