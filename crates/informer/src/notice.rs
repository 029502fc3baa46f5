//! What a handler is told, and how two things that wait become one.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{Object, ObjectKey};

use crate::sink::Objects;

/// What a handler is told.
pub(crate) enum Notice<T> {
    Add {
        object: T,
        initial: bool,
    },
    /// `unchanged`: a relist has found the same version.
    Update {
        old: T,
        new: T,
        unchanged: bool,
    },
    Delete {
        last: T,
        final_state_known: bool,
    },
    /// Each of these objects, once more.
    Resync(Arc<dyn Objects<T>>),
    /// All objects of the informer's first state were told before this.
    Synced,
}

/// What two notices of one object come to.
#[derive(Debug)]
pub(crate) enum Merged<T> {
    /// This one.
    One(Notice<T>),
    /// Nothing: the object came and went.
    Nothing,
    /// They cannot be one.
    Both(Notice<T>, Notice<T>),
}

impl<T> Notice<T> {
    /// One notice in place of two of the same key: from what was known before the first to what is so after the second.
    pub(crate) fn merge(first: Self, second: Self) -> Merged<T> {
        match (first, second) {
            (Self::Add { initial, .. }, Self::Update { new, .. }) => {
                Merged::One(Self::Add { object: new, initial })
            }
            (Self::Add { .. }, Self::Delete { .. }) => Merged::Nothing,
            (
                Self::Update { old, unchanged, .. },
                Self::Update { new, unchanged: still_unchanged, .. },
            ) => Merged::One(Self::Update { old, new, unchanged: unchanged && still_unchanged }),
            (Self::Update { .. }, delete @ Self::Delete { .. }) => Merged::One(delete),
            // A deletion and an add are two objects of one name.
            (first, second) => Merged::Both(first, second),
        }
    }
}

impl<T: Object> Notice<T> {
    /// The key of the one object that it is about, where it is about one.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Add { object, .. } => Some(object.key()),
            Self::Update { new, .. } => Some(new.key()),
            Self::Delete { last, .. } => Some(last.key()),
            Self::Resync(_) | Self::Synced => None,
        }
    }
}

impl<T: Clone> Clone for Notice<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Add { object, initial } => {
                Self::Add { object: object.clone(), initial: *initial }
            }
            Self::Update { old, new, unchanged } => {
                Self::Update { old: old.clone(), new: new.clone(), unchanged: *unchanged }
            }
            Self::Delete { last, final_state_known } => {
                Self::Delete { last: last.clone(), final_state_known: *final_state_known }
            }
            Self::Resync(objects) => Self::Resync(Arc::clone(objects)),
            Self::Synced => Self::Synced,
        }
    }
}

/// Names the notice, never the object.
impl<T> fmt::Debug for Notice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add { .. } => "Add",
            Self::Update { .. } => "Update",
            Self::Delete { .. } => "Delete",
            Self::Resync(_) => "Resync",
            Self::Synced => "Synced",
        })
    }
}
