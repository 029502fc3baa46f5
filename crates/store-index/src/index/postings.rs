//! One index's sets of slots.

use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashSet, HashTable};
use smallvec::SmallVec;

use crate::IndexUsage;

/// Number of a value within its index.
pub(crate) type ValueId = u32;

/// Values to slots, and back: the store never asks an index function about an object's old state again, so a function
/// that changes its mind leaves no ghost entries.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    hasher: DefaultHashBuilder,
    by_text: HashTable<ValueId>,
    values: Vec<Option<Value>>,
    free: Vec<ValueId>,
    of_slot: Vec<Held>,
    entries: usize,
    unindexed: usize,
    /// Bytes of the texts and of the sets.
    held_bytes: usize,
}

#[derive(Debug)]
struct Value {
    text: Box<str>,
    members: Members,
}

/// The slots that have a value; never empty. Most values of a unique field have one.
#[derive(Debug)]
pub(crate) enum Members {
    One(u32),
    Many(HashSet<u32, BuildHasherDefault<SlotHasher>>),
}

/// Spreads slot numbers. Without a random seed, as the store chooses the numbers itself: so the order in which an index
/// gives its objects follows from what was done to the store, and a run replays.
#[derive(Debug, Default)]
pub(crate) struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn write_u32(&mut self, slot: u32) {
        // The golden ratio: successive numbers land far apart in the high bits, and in different buckets by the low ones.
        self.0 = (self.0 ^ u64::from(slot)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Members {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(slots) => slots.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let (one, many) = match self {
            Self::One(slot) => (Some(*slot), None),
            Self::Many(slots) => (None, Some(slots)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    fn bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(slots) => slots.allocation_size(),
        }
    }

    fn insert(&mut self, slot: u32) {
        match self {
            Self::One(first) => *self = Self::Many(HashSet::from_iter([*first, slot])),
            Self::Many(slots) => {
                slots.insert(slot);
            }
        }
    }

    /// Whether nothing is left.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Self::One(only) => *only == slot,
            Self::Many(slots) => {
                slots.remove(&slot);
                slots.is_empty()
            }
        }
    }
}

/// The values of one slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Held {
    /// The slot is empty, or its object has no value.
    #[default]
    Nothing,
    One(ValueId),
    Many(Box<[ValueId]>),
    /// The values could not be computed.
    Failed,
}

impl Held {
    fn ids(&self) -> &[ValueId] {
        match self {
            Self::Nothing | Self::Failed => &[],
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Many(ids) => size_of_val(&**ids),
            _ => 0,
        }
    }
}

impl Postings {
    /// Sets the values of a slot: each once, or `None` if they could not be computed.
    pub(crate) fn set<'a>(
        &mut self,
        slot: u32,
        values: Option<impl ExactSizeIterator<Item = &'a str>>,
    ) {
        let new = match values {
            None => Held::Failed,
            Some(mut values) => match values.len() {
                0 => Held::Nothing,
                1 => {
                    let text = values.next().unwrap_or_default();
                    if self.is_only_value(slot, text) {
                        return;
                    }
                    Held::One(self.add(text, slot))
                }
                _ => Held::Many(values.map(|text| self.add(text, slot)).collect()),
            },
        };
        self.exchange(slot, new);
    }

    /// Removes a slot.
    pub(crate) fn clear(&mut self, slot: u32) {
        self.exchange(slot, Held::Nothing);
    }

    /// The usual update changes nothing: one text comparison shows it.
    fn is_only_value(&self, slot: u32, text: &str) -> bool {
        match self.of_slot.get(slot as usize) {
            Some(Held::One(id)) => self.text(*id) == Some(text),
            _ => false,
        }
    }

    fn exchange(&mut self, slot: u32, new: Held) {
        let at = slot as usize;
        if at >= self.of_slot.len() {
            if new == Held::Nothing {
                return;
            }
            self.of_slot.resize(at + 1, Held::Nothing);
        }
        let old = std::mem::take(&mut self.of_slot[at]);
        for id in old.ids() {
            if !new.ids().contains(id) {
                self.drop_member(*id, slot);
            }
        }
        self.entries = self.entries + new.ids().len() - old.ids().len();
        self.unindexed =
            self.unindexed + usize::from(new == Held::Failed) - usize::from(old == Held::Failed);
        self.held_bytes = self.held_bytes + new.bytes() - old.bytes();
        self.of_slot[at] = new;
    }

    /// Makes the slot a member of the value's set, making the set if need be.
    fn add(&mut self, text: &str, slot: u32) -> ValueId {
        if let Some(id) = self.find(text) {
            if let Some(value) = &mut self.values[id as usize] {
                let before = value.members.bytes();
                if !matches!(value.members, Members::One(only) if only == slot) {
                    value.members.insert(slot);
                }
                self.held_bytes = self.held_bytes + value.members.bytes() - before;
            }
            return id;
        }
        let value = Value { text: text.into(), members: Members::One(slot) };
        self.held_bytes += text.len();
        let id = self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            u32::try_from(self.values.len() - 1).expect("an index has fewer than 2^32 values")
        });
        self.values[id as usize] = Some(value);
        let (hasher, values) = (&self.hasher, &self.values);
        self.by_text.insert_unique(hasher.hash_one(text), id, |id| {
            hasher.hash_one(values[*id as usize].as_ref().map_or("", |value| &*value.text))
        });
        id
    }

    fn drop_member(&mut self, id: ValueId, slot: u32) {
        let Some(value) = &mut self.values[id as usize] else { return };
        let before = value.members.bytes();
        if !value.members.remove(slot) {
            self.held_bytes = self.held_bytes + value.members.bytes() - before;
            return;
        }
        self.held_bytes -= before + value.text.len();
        let hash = self.hasher.hash_one(&*value.text);
        if let Ok(entry) = self.by_text.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.values[id as usize] = None;
        self.free.push(id);
    }

    fn text(&self, id: ValueId) -> Option<&str> {
        Some(&self.values.get(id as usize)?.as_ref()?.text)
    }

    /// The number of a value that some object has.
    pub(crate) fn find(&self, text: &str) -> Option<ValueId> {
        let hash = self.hasher.hash_one(text);
        self.by_text.find(hash, |id| self.text(*id) == Some(text)).copied()
    }

    /// The slots that have a value.
    pub(crate) fn members(&self, id: ValueId) -> Option<&Members> {
        Some(&self.values.get(id as usize)?.as_ref()?.members)
    }

    /// Whether a slot has one of the values.
    pub(crate) fn has_any(&self, slot: u32, ids: &[ValueId]) -> bool {
        let held = self.of_slot.get(slot as usize).map_or(&[][..], Held::ids);
        held.iter().any(|id| ids.contains(id))
    }

    /// All values that some object has.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.values.iter().flatten().map(|value| &*value.text)
    }

    pub(crate) fn unindexed(&self) -> usize {
        self.unindexed
    }

    pub(crate) fn usage(&self, name: &Arc<str>) -> IndexUsage {
        IndexUsage {
            name: Arc::clone(name),
            values: self.by_text.len(),
            entries: self.entries,
            unindexed: self.unindexed,
            bytes: self.held_bytes
                + self.by_text.allocation_size()
                + self.values.capacity() * size_of::<Option<Value>>()
                + self.free.capacity() * size_of::<ValueId>()
                + self.of_slot.capacity() * size_of::<Held>(),
        }
    }

    /// Checks every invariant; for tests and debug builds.
    #[cfg(all(test, not(kubestrata_loom)))]
    pub(crate) fn check(&self) {
        let mut entries = 0;
        for (slot, held) in self.of_slot.iter().enumerate() {
            for id in held.ids() {
                entries += 1;
                let members = self.members(*id).expect("a held value exists");
                assert!(members.iter().any(|member| member as usize == slot), "not a member");
            }
        }
        let members: usize = self.values.iter().flatten().map(|value| value.members.len()).sum();
        assert_eq!((entries, members), (self.entries, entries));
        assert_eq!(self.by_text.len(), self.values.iter().flatten().count());
        assert!(self.values.iter().flatten().all(|value| value.members.len() > 0), "empty set");
        let bytes = self.values.iter().flatten().map(|v| v.text.len() + v.members.bytes());
        let held = self.of_slot.iter().map(Held::bytes);
        assert_eq!(bytes.chain(held).sum::<usize>(), self.held_bytes);
    }
}

/// Slots that have one of a few values of one index: one term of a query.
#[derive(Debug)]
pub(crate) struct Term<'a> {
    pub(crate) postings: &'a Postings,
    pub(crate) ids: SmallVec<[ValueId; 4]>,
}

impl Term<'_> {
    /// An upper bound of the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.ids.iter().filter_map(|id| self.postings.members(*id)).map(Members::len).sum()
    }

    pub(crate) fn has(&self, slot: u32) -> bool {
        self.postings.has_any(slot, &self.ids)
    }

    /// The slots; more than one of the values may give one slot twice.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.ids.iter().filter_map(|id| self.postings.members(*id)).flat_map(Members::iter)
    }
}
