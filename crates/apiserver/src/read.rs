//! Get, list and watch.

mod get;
mod list;
mod selection;
mod token;
mod watch;

pub(crate) use self::get::get;
pub(crate) use self::list::{list, matching_items, respond};
pub(crate) use self::selection::Selection;
pub(crate) use self::watch::watch;
