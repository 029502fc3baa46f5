//! The engine of client-go's `RealFIFO`: one list of deltas in the order of arrival.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::mem::size_of;
use std::sync::Arc;

use kubestrata_api_types::{Event, Object, ObjectKey, Snapshot, Unreadable, Update};

use crate::{Batch, Deleted, Delta, KnownObjects, Load, Popped, Queue, Tombstone};

/// Bounds of a [`RealFifo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// Deltas in one batch. Default 1000, as in client-go.
    pub batch: usize,
    /// Queued items from which on the producer waits. Default 2000: client-go holds its lock, and so stops its
    /// reflector, from two full batches on.
    pub items: usize,
    /// Queued bytes from which on the producer waits. Default 64 MiB; client-go has no such bound.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batch: 1000, items: 2000, bytes: 64 << 20 }
    }
}

/// Every change in the order of arrival, none merged, none dropped.
///
/// Two kinds exist. The atomic one hands a new state on as one [`Delta::ReplacedAll`], so that the consumer swaps its
/// state at once and finds the deletions itself. The one with [`KnownObjects`] takes a state apart, deletions first, as
/// client-go did before its gate AtomicFIFO.
pub struct RealFifo<T> {
    queued: VecDeque<Slot<T>>,
    load: Load,
    limits: Limits,
    weigh: fn(&T) -> usize,
    known: Option<Arc<dyn KnownObjects<T>>>,
    /// Something other than a bookmark has come.
    populated: bool,
    /// Deltas of the first state that are not processed yet.
    initial: usize,
    /// Latched: the first state has been processed.
    synced: bool,
    closed: bool,
}

struct Slot<T> {
    delta: Delta<T>,
    load: Load,
}

impl<T: Object + Clone> RealFifo<T> {
    /// An atomic queue. `weigh` gives the bytes that an object holds.
    pub fn new(limits: Limits, weigh: fn(&T) -> usize) -> Self {
        Self {
            queued: VecDeque::new(),
            load: Load::default(),
            limits,
            weigh,
            known: None,
            populated: false,
            initial: 0,
            synced: false,
            closed: false,
        }
    }

    /// A queue that takes states apart, by what the consumer knows.
    pub fn with_known_objects(
        limits: Limits,
        weigh: fn(&T) -> usize,
        known: Arc<dyn KnownObjects<T>>,
    ) -> Self {
        Self { known: Some(known), ..Self::new(limits, weigh) }
    }

    /// Number of queued deltas; a whole state is one.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    fn append(&mut self, delta: Delta<T>) {
        let load = self.weigh_delta(&delta);
        self.load.items += load.items;
        self.load.bytes += load.bytes;
        self.queued.push_back(Slot { delta, load });
    }

    fn weigh_delta(&self, delta: &Delta<T>) -> Load {
        let bytes = match delta {
            Delta::Added(object)
            | Delta::Updated(object)
            | Delta::Replaced(object)
            | Delta::Sync(object)
            | Delta::Deleted(Deleted::Observed(object)) => (self.weigh)(object),
            Delta::Deleted(Deleted::Missed(tombstone)) => {
                tombstone.last.as_ref().map_or(0, self.weigh)
            }
            Delta::ReplacedAll(snapshot) => return self.weigh_snapshot(snapshot),
            Delta::Unreadable(unreadable) => unreadable.problem.len(),
            Delta::SyncAll | Delta::Bookmark(_) => 0,
        };
        Load { items: 1, bytes: bytes + size_of::<Slot<T>>() }
    }

    fn weigh_snapshot(&self, snapshot: &Snapshot<T>) -> Load {
        let problems: usize = snapshot.unreadable.iter().map(|object| object.problem.len()).sum();
        Load {
            items: (snapshot.items.len() + snapshot.unreadable.len()).max(1),
            bytes: snapshot.items.iter().map(self.weigh).sum::<usize>()
                + problems
                + size_of::<Slot<T>>(),
        }
    }

    fn change(&mut self, delta: Delta<T>) {
        // client-go: a change before the first state makes the queue synced at once.
        self.populated = true;
        self.check_synced();
        self.append(delta);
    }

    fn object(&mut self, object: T, make: fn(T) -> Delta<T>) {
        if object.name().is_empty() {
            self.append(Delta::Unreadable(nameless(&object)));
        } else {
            self.change(make(object));
        }
    }

    fn replace(&mut self, mut snapshot: Snapshot<T>) {
        let Snapshot { items, unreadable, .. } = &mut snapshot;
        // One object without a name must not cost the others (odf-operator PR 895 shows how it can).
        items.retain(|object| {
            let usable = !object.name().is_empty();
            if !usable {
                unreadable.push(nameless(object));
            }
            usable
        });
        let version = snapshot.resource_version.clone();
        let apart = self.known.clone();
        match &apart {
            None => self.append(Delta::ReplacedAll(snapshot)),
            Some(known) => self.take_apart(snapshot, &**known),
        }
        if !self.populated {
            self.populated = true;
            self.initial = self.queued.len();
            self.check_synced();
        }
        if apart.is_some() && !version.is_unset() {
            // The state's version, which client-go loses here. It is no part of the first state, as an empty one is
            // synced at once.
            self.append(Delta::Bookmark(version));
        }
    }

    /// The steps of client-go's non-atomic `Replace`, in its order: deletions of what only the queue knows, deletions of
    /// what only the consumer knows, then the state.
    fn take_apart(&mut self, snapshot: Snapshot<T>, known: &dyn KnownObjects<T>) {
        let present: HashSet<ObjectKey> = snapshot.items.iter().map(Object::key).collect();
        let (order, last) = self.last_queued();
        let mut tombstones = Vec::new();
        for key in order {
            // k/k#115658: what was queued and never consumed needs its deletion too.
            let index = last[&key];
            let deleted = matches!(self.queued[index].delta, Delta::Deleted(_));
            if !present.contains(&key) && !deleted {
                let last = object_of(&self.queued[index].delta).cloned();
                tombstones.push(Tombstone { key, last });
            }
        }
        for key in known_keys(known) {
            if !present.contains(&key) && !last.contains_key(&key) {
                let last = known.get(&key);
                tombstones.push(Tombstone { key, last });
            }
        }
        for tombstone in tombstones {
            self.append(Delta::Deleted(Deleted::Missed(tombstone)));
        }
        for unreadable in snapshot.unreadable {
            self.append(Delta::Unreadable(unreadable));
        }
        for object in snapshot.items {
            self.append(Delta::Replaced(object));
        }
    }

    /// Keys with an object in the queue, by first appearance, and where each appears last.
    fn last_queued(&self) -> (Vec<ObjectKey>, HashMap<ObjectKey, usize>) {
        let mut order = Vec::new();
        let mut last = HashMap::new();
        for (index, slot) in self.queued.iter().enumerate() {
            if matches!(slot.delta, Delta::Unreadable(_)) {
                continue;
            }
            if let Some(key) = slot.delta.key()
                && last.insert(key.clone(), index).is_none()
            {
                order.push(key);
            }
        }
        (order, last)
    }

    /// How many deltas from the head make the next batch.
    fn batch_length(&self) -> usize {
        let mut keys = HashSet::new();
        let most = if self.initial > 0 { self.initial } else { usize::MAX };
        let mut length = 0;
        for slot in self.queued.iter().take(self.limits.batch.max(1).min(most)) {
            if !slot.delta.is_batchable() {
                // It is about everything, so it goes alone.
                return length.max(1);
            }
            if let Some(key) = slot.delta.key()
                && !keys.insert(key)
            {
                break;
            }
            length += 1;
        }
        length
    }

    fn check_synced(&mut self) {
        self.synced |= self.populated && self.initial == 0;
    }
}

/// All keys first: the implementation may hold a lock while it calls, which a `get` from within would meet.
fn known_keys<T: 'static>(known: &dyn KnownObjects<T>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    known.for_each_key(&mut |key| keys.push(key.clone()));
    keys
}

fn nameless<T: Object>(object: &T) -> Unreadable {
    Unreadable {
        key: None,
        resource_version: object.resource_version(),
        problem: "the object has no name".to_owned(),
    }
}

fn object_of<T>(delta: &Delta<T>) -> Option<&T> {
    match delta {
        Delta::Added(object)
        | Delta::Updated(object)
        | Delta::Replaced(object)
        | Delta::Sync(object)
        | Delta::Deleted(Deleted::Observed(object)) => Some(object),
        Delta::Deleted(Deleted::Missed(tombstone)) => tombstone.last.as_ref(),
        Delta::ReplacedAll(_) | Delta::SyncAll | Delta::Bookmark(_) | Delta::Unreadable(_) => None,
    }
}

impl<T: Object + Clone> Queue<T> for RealFifo<T> {
    fn measure(&self, update: &Update<T>) -> Load {
        let slot = size_of::<Slot<T>>();
        match update {
            Update::Replace(snapshot) => self.weigh_snapshot(snapshot),
            Update::Event(Event::Unreadable(unreadable)) => {
                Load { items: 1, bytes: unreadable.problem.len() + slot }
            }
            Update::Event(event) => {
                Load { items: 1, bytes: event.object().map_or(0, self.weigh) + slot }
            }
        }
    }

    fn admits(&self, load: Load) -> bool {
        self.queued.is_empty()
            || (self.load.items.saturating_add(load.items) <= self.limits.items
                && self.load.bytes.saturating_add(load.bytes) <= self.limits.bytes)
    }

    fn push(&mut self, update: Update<T>) {
        match update {
            Update::Replace(snapshot) => self.replace(snapshot),
            Update::Event(Event::Added(object)) => self.object(object, Delta::Added),
            Update::Event(Event::Modified(object)) => self.object(object, Delta::Updated),
            Update::Event(Event::Deleted(object)) => {
                self.object(object, |object| Delta::Deleted(Deleted::Observed(object)));
            }
            Update::Event(Event::Bookmark(bookmark)) => {
                self.append(Delta::Bookmark(bookmark.resource_version));
            }
            Update::Event(Event::Unreadable(unreadable)) => {
                self.append(Delta::Unreadable(unreadable));
            }
        }
    }

    fn resync(&mut self) {
        let Some(known) = self.known.clone() else {
            self.append(Delta::SyncAll);
            return;
        };
        // An older stored object must never follow a newer queued one.
        let (_, queued) = self.last_queued();
        let unqueued = known_keys(&*known).into_iter().filter(|key| !queued.contains_key(key));
        let again: Vec<_> = unqueued.filter_map(|key| known.get(&key)).collect();
        for object in again {
            self.append(Delta::Sync(object));
        }
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn pop(&mut self) -> Popped<T> {
        if self.queued.is_empty() {
            return if self.closed { Popped::Closed } else { Popped::Empty };
        }
        let initial = !self.synced;
        let length = self.batch_length();
        let mut deltas = Vec::with_capacity(length);
        for slot in self.queued.drain(..length) {
            self.load.items -= slot.load.items;
            self.load.bytes -= slot.load.bytes;
            deltas.push(slot.delta);
        }
        if self.queued.is_empty() {
            debug_assert_eq!(self.load, Load::default(), "an empty queue weighs nothing");
            // A burst must not pin its memory for ever.
            self.queued.shrink_to(self.limits.batch);
        }
        Popped::Batch(Batch { deltas, initial })
    }

    fn processed(&mut self, deltas: usize) {
        self.initial = self.initial.saturating_sub(deltas);
        self.check_synced();
    }

    fn has_synced(&self) -> bool {
        self.synced
    }

    fn load(&self) -> Load {
        self.load
    }
}

impl<T> fmt::Debug for RealFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealFifo")
            .field("load", &self.load)
            .field("limits", &self.limits)
            .field("initial", &self.initial)
            .field("synced", &self.synced)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
