//! The engine of client-go's `DeltaFIFO`, the predecessor: a list of deltas for each key, and keys in a row.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{
    Event, Object, ObjectKey, ResourceVersion, Snapshot, Unreadable, Update,
};

use crate::in_process::InProcess;
use crate::known::keys_of;
use crate::real_fifo::present;
use crate::scale::{Scale, Slot};
use crate::{Batch, Deleted, Delta, KnownObjects, Limits, Load, Popped, Queue, Tombstone};

/// Which changes of one key become one while they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing between these two")]
pub enum Merging {
    /// Two deletions in a row, and nothing else: client-go's rule.
    #[default]
    Deletions,
    /// All but a deletion and the newest state after it: what a consumer needs that looks at the newest state only.
    /// The queue then holds at most three deltas for a key, however slow its consumer.
    ToNewest,
}

/// A list of deltas for each key; a batch is all that waits for one key.
///
/// Beside a [`RealFifo`](crate::RealFifo), it differs in what client-go's two queues differ in:
///
/// - Keys come in the order in which they were first queued, and a key's later changes with its first: the order between
///   objects is lost. A consumer that has seen version 10 of one object may not have seen version 5 of another.
/// - Changes that wait may become one, see [`Merging`].
/// - The deletion of a key that is neither queued nor known is dropped.
/// - A new state is taken apart, its objects first and deletions after; [`Delta::ReplacedAll`] and [`Delta::SyncAll`] do
///   not occur.
///
/// It differs from client-go's in two points, as the [`Queue`] promises them: it is synced after the last key of the first
/// state was processed, not when that is popped; and a version without an object, which client-go drops, is handed on as
/// [`Delta::Bookmark`] when no key waits any more, as only then is it true.
pub struct DeltaFifo<T> {
    /// What waits, in order of first arrival.
    order: VecDeque<Entry>,
    /// Looked up only: its order shows nowhere.
    items: HashMap<ObjectKey, Vec<Slot<T>>>,
    /// All changes up to it were pushed.
    version: Option<ResourceVersion>,
    load: Load,
    scale: Scale<T>,
    merging: Merging,
    known: Arc<dyn KnownObjects<T>>,
    /// Of the batch popped last.
    in_process: InProcess<T>,
    /// Something other than a bookmark has come.
    populated: bool,
    /// Entries of the first state that are not processed yet.
    initial: usize,
    /// Whether one of them is in process.
    initial_in_process: bool,
    /// Latched: the first state has been processed.
    synced: bool,
    closed: bool,
}

/// One place in the row.
enum Entry {
    /// The deltas of this key.
    Key(ObjectKey),
    /// An object that cannot be read, of unknown key, and its load.
    Unreadable(Unreadable, Load),
}

impl<T: Object + Clone> DeltaFifo<T> {
    /// A queue that takes states apart, by what the consumer knows. `weigh` gives the bytes that an object holds.
    pub fn new(
        limits: Limits,
        weigh: fn(&T) -> usize,
        known: Arc<dyn KnownObjects<T>>,
        merging: Merging,
    ) -> Self {
        Self {
            order: VecDeque::new(),
            items: HashMap::new(),
            version: None,
            load: Load::default(),
            scale: Scale::new(limits, weigh),
            merging,
            known,
            in_process: InProcess::default(),
            populated: false,
            initial: 0,
            initial_in_process: false,
            synced: false,
            closed: false,
        }
    }

    /// Number of keys that wait, counting each object of unknown key as one.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Appends a delta to those of its key.
    fn append(&mut self, delta: Delta<T>) {
        let Some(key) = delta.key() else {
            if let Delta::Unreadable(unreadable) = delta {
                let load = self.scale.slot(Delta::Unreadable(unreadable.clone())).load;
                self.load += load;
                self.order.push_back(Entry::Unreadable(unreadable, load));
            }
            return;
        };
        let new = self.scale.slot(delta);
        self.load += new.load;
        let deltas = self.items.entry(key.clone()).or_insert_with(|| {
            self.order.push_back(Entry::Key(key));
            Vec::new()
        });
        for dropped in merge(deltas, new, self.merging) {
            self.load -= dropped.load;
            // Its version was reached all the same, and somebody may wait for it.
            if let Delta::Deleted(Deleted::Observed(object)) = &dropped.delta {
                reached(&mut self.version, object.resource_version());
            }
        }
    }

    fn change(&mut self, object: T, make: fn(T) -> Delta<T>) {
        if object.name().is_empty() {
            self.append(Delta::nameless(&object));
            return;
        }
        // client-go: a change before the first state makes the queue synced at once.
        self.populated = true;
        self.check_synced();
        self.append(make(object));
    }

    fn delete(&mut self, object: T) {
        let key = object.key();
        if !object.name().is_empty() && !self.items.contains_key(&key) && !self.is_known(&key) {
            // client-go: presumably deleted by a relist already.
            self.populated = true;
            self.check_synced();
            reached(&mut self.version, object.resource_version());
            return;
        }
        self.change(object, |object| Delta::Deleted(Deleted::Observed(object)));
    }

    /// Whether the consumer has the key, or will have it once it has processed what it took.
    fn is_known(&self, key: &ObjectKey) -> bool {
        self.in_process.will_have(key).unwrap_or_else(|| self.known.get(key).is_some())
    }

    /// The steps of client-go's `Replace`, in its order: the state, deletions of what only the queue knows, deletions of
    /// what only the consumer knows.
    fn replace(&mut self, mut snapshot: Snapshot<T>) {
        Delta::set_nameless_apart(&mut snapshot);
        let present = present(&snapshot);
        let Snapshot { items, unreadable, resource_version } = snapshot;
        for object in items {
            self.append(Delta::Replaced(object));
        }
        for unreadable in unreadable {
            self.append(Delta::Unreadable(unreadable));
        }
        let in_queue = |key: &ObjectKey| self.items.contains_key(key);
        let mut gone = self.in_process.gone(|key| present.contains(key) || in_queue(key));
        for entry in &self.order {
            // By the row, not by the map as in client-go, so that the order is the same in each run.
            let Entry::Key(key) = entry else { continue };
            if !present.contains(key) {
                let newest = self.items[key].iter().rev().find_map(|slot| slot.delta.object());
                gone.push(Tombstone { key: key.clone(), last: newest.cloned() });
            }
        }
        let in_process = self.in_process.keys();
        for key in keys_of(&*self.known) {
            if !present.contains(&key) && !in_queue(&key) && !in_process.contains(&key) {
                let last = self.known.get(&key);
                gone.push(Tombstone { key, last });
            }
        }
        for tombstone in gone {
            self.append(Delta::Deleted(Deleted::Missed(tombstone)));
        }
        if !self.populated {
            self.populated = true;
            self.initial = self.order.len();
            self.check_synced();
        }
        reached(&mut self.version, resource_version);
    }

    fn check_synced(&mut self) {
        self.synced |= self.populated && self.initial == 0;
    }

    fn batch(&self, deltas: Vec<Delta<T>>) -> Popped<T> {
        Popped::Batch(Batch { deltas, initial: !self.synced })
    }
}

fn reached(version: &mut Option<ResourceVersion>, by_now: ResourceVersion) {
    if !by_now.is_unset() {
        *version = Some(by_now);
    }
}

/// Puts `new` behind `deltas`, all of one key, and gives back what it has made superfluous.
fn merge<T: Object>(deltas: &mut Vec<Slot<T>>, new: Slot<T>, merging: Merging) -> Vec<Slot<T>> {
    let is_deletion = |slot: &Slot<T>| matches!(slot.delta, Delta::Deleted(_));
    let mut dropped = Vec::new();
    if merging == Merging::ToNewest {
        // A deletion stays, even if the object is there again: it was another object.
        let superfluous = |slot: &Slot<T>| match &new.delta {
            Delta::Unreadable(_) => matches!(slot.delta, Delta::Unreadable(_)),
            _ => !is_deletion(slot),
        };
        dropped.extend(deltas.extract_if(.., |slot| superfluous(slot)));
    }
    match deltas.last_mut() {
        Some(last) if is_deletion(last) && is_deletion(&new) => {
            // client-go: what was seen is worth more than what was missed, and then the older one. But a deletion of
            // another object of that name is none of the one that the consumer has.
            let missed = matches!(last.delta, Delta::Deleted(Deleted::Missed(_)));
            let replace = missed && is_same(last, &new);
            dropped.push(if replace { std::mem::replace(last, new) } else { new });
        }
        _ => deltas.push(new),
    }
    dropped
}

/// Whether nothing says that two deltas of one key are about different objects.
fn is_same<T: Object>(one: &Slot<T>, other: &Slot<T>) -> bool {
    let uid = |slot: &Slot<T>| slot.delta.object()?.uid().map(str::to_owned);
    uid(one).zip(uid(other)).is_none_or(|(one, other)| one == other)
}

impl<T: Object + Clone> Queue<T> for DeltaFifo<T> {
    fn measure(&self, update: &Update<T>) -> Load {
        self.scale.update(update)
    }

    fn admits(&self, load: Load) -> bool {
        self.order.is_empty() || self.scale.admits(self.load, load)
    }

    fn push(&mut self, update: Update<T>) {
        match update {
            Update::Replace(snapshot) => self.replace(snapshot),
            Update::Event(Event::Added(object)) => self.change(object, Delta::Added),
            Update::Event(Event::Modified(object)) => self.change(object, Delta::Updated),
            Update::Event(Event::Deleted(object)) => self.delete(object),
            Update::Event(Event::Bookmark(bookmark)) => {
                reached(&mut self.version, bookmark.resource_version);
            }
            Update::Event(Event::Unreadable(unreadable)) => {
                self.append(Delta::Unreadable(unreadable));
            }
        }
    }

    fn resync(&mut self) {
        // An older stored object must never follow a newer one on its way there.
        let in_process = self.in_process.keys();
        let at_rest = keys_of(&*self.known)
            .into_iter()
            .filter(|key| !self.items.contains_key(key) && !in_process.contains(key));
        let again: Vec<_> = at_rest.filter_map(|key| self.known.get(&key)).collect();
        for object in again {
            self.append(Delta::Sync(object));
        }
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn pop(&mut self) -> Popped<T> {
        let Some(entry) = self.order.pop_front() else {
            debug_assert_eq!(self.load, Load::default(), "an empty queue weighs nothing");
            return match self.version.take() {
                Some(version) => self.batch(vec![Delta::Bookmark(version)]),
                None if self.closed => Popped::Closed,
                None => Popped::Empty,
            };
        };
        self.initial_in_process = self.initial > 0;
        let deltas = match entry {
            Entry::Unreadable(unreadable, load) => {
                self.load -= load;
                vec![Delta::Unreadable(unreadable)]
            }
            Entry::Key(key) => {
                let slots = self.items.remove(&key).unwrap_or_default();
                debug_assert!(!slots.is_empty(), "a key in the row has deltas");
                for slot in &slots {
                    self.load -= slot.load;
                    self.in_process.note(&slot.delta);
                }
                slots.into_iter().map(|slot| slot.delta).collect()
            }
        };
        if self.order.is_empty() {
            // A burst must not pin its memory for ever.
            self.order.shrink_to(self.scale.limits.batch);
            self.items.shrink_to(self.scale.limits.batch);
        }
        self.batch(deltas)
    }

    fn processed(&mut self) {
        self.in_process.clear();
        self.initial -= usize::from(std::mem::take(&mut self.initial_in_process));
        self.check_synced();
    }

    fn has_synced(&self) -> bool {
        self.synced
    }

    fn load(&self) -> Load {
        self.load
    }
}

impl<T> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("keys", &self.order.len())
            .field("load", &self.load)
            .field("limits", &self.scale.limits)
            .field("merging", &self.merging)
            .field("initial", &self.initial)
            .field("synced", &self.synced)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
