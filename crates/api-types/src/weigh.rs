//! How many bytes an object holds, so that stores and queues can account for them.

use std::iter::Sum;
use std::ops::{Add, AddAssign, SubAssign};

use crate::{ObjectMeta, PartialObjectMetadata};

/// Heap bytes of one object, apart from the bytes of its handle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by every implementer of Weigh")]
pub struct Weight {
    /// What is held to answer [`Object`](crate::Object): key, labels, owners, and their allocations.
    pub head: usize,
    /// What is held beside: the encoded bytes, or the decoded fields.
    pub body: usize,
}

impl Weight {
    /// Head and body together.
    pub const fn total(self) -> usize {
        self.head.saturating_add(self.body)
    }
}

impl Add for Weight {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            head: self.head.saturating_add(other.head),
            body: self.body.saturating_add(other.body),
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        self.head = self.head.saturating_sub(other.head);
        self.body = self.body.saturating_sub(other.body);
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::default(), Add::add)
    }
}

/// Tells how much memory an object holds.
///
/// Called once when an object enters a queue or store and once when it leaves: it must be cheap, and give the same
/// answer both times. Memory that several objects share, as interned strings are, may be left out.
/// An estimate will do, but one that ignores most of the object makes the bounds in bytes meaningless.
pub trait Weigh {
    /// Heap bytes of this object.
    fn weight(&self) -> Weight;
}

impl Weigh for PartialObjectMetadata {
    fn weight(&self) -> Weight {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let pair = |(key, value): (&String, &String)| {
            2 * size_of::<String>() + key.capacity() + value.capacity()
        };
        let ObjectMeta { labels, annotations, owner_references, finalizers, .. } = &self.metadata;
        let owners = owner_references.iter().map(|owner| {
            size_of_val(owner)
                + owner.api_version.capacity()
                + owner.kind.capacity()
                + owner.name.capacity()
                + owner.uid.capacity()
        });
        let names = [&self.metadata.name, &self.metadata.namespace, &self.metadata.uid];
        Weight {
            head: names.into_iter().map(text).sum::<usize>()
                + labels.iter().map(pair).sum::<usize>()
                + owners.sum::<usize>(),
            body: text(&self.api_version)
                + text(&self.kind)
                + text(&self.metadata.generate_name)
                + annotations.iter().map(pair).sum::<usize>()
                + finalizers.iter().map(|name| size_of_val(name) + name.capacity()).sum::<usize>(),
        }
    }
}
