//! The engine of client-go's `RealFIFO`: one list of deltas in the order of arrival.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{Event, Object, ObjectKey, Snapshot, Update};

use crate::in_process::InProcess;
use crate::known::keys_of;
use crate::scale::{Scale, Slot};
use crate::{Batch, Deleted, Delta, KnownObjects, Limits, Load, Popped, Queue, Tombstone};

/// Every change in the order of arrival, none merged, none dropped.
///
/// Two kinds exist. The atomic one hands a new state on as one [`Delta::ReplacedAll`], so that the consumer swaps its
/// state at once and finds the deletions itself. The one with [`KnownObjects`] takes a state apart, deletions first, as
/// client-go did before its gate AtomicFIFO.
pub struct RealFifo<T> {
    queued: VecDeque<Slot<T>>,
    load: Load,
    scale: Scale<T>,
    known: Option<Arc<dyn KnownObjects<T>>>,
    /// Of the batch popped last; only with known objects.
    in_process: InProcess<T>,
    /// Something other than a bookmark has come.
    populated: bool,
    /// Deltas of the first state that are not processed yet.
    initial: usize,
    /// Those of them that are in process. What was popped before the first state came must not count for it.
    initial_in_process: usize,
    /// Latched: the first state has been processed.
    synced: bool,
    closed: bool,
}

impl<T: Object + Clone> RealFifo<T> {
    /// An atomic queue. `weigh` gives the bytes that an object holds.
    pub fn new(limits: Limits, weigh: fn(&T) -> usize) -> Self {
        Self {
            queued: VecDeque::new(),
            load: Load::default(),
            scale: Scale::new(limits, weigh),
            known: None,
            in_process: InProcess::default(),
            populated: false,
            initial: 0,
            initial_in_process: 0,
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
        let slot = self.scale.slot(delta);
        self.load += slot.load;
        self.queued.push_back(slot);
    }

    fn change(&mut self, delta: Delta<T>) {
        // client-go: a change before the first state makes the queue synced at once.
        self.populated = true;
        self.check_synced();
        self.append(delta);
    }

    fn object(&mut self, object: T, make: fn(T) -> Delta<T>) {
        if object.key_ref().is_nameless() {
            self.append(Delta::nameless(&object));
        } else {
            self.change(make(object));
        }
    }

    fn replace(&mut self, mut snapshot: Snapshot<T>) {
        Delta::set_nameless_apart(&mut snapshot);
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
        let present = present(&snapshot);
        let (order, last) = self.last_queued();
        let mut tombstones =
            self.in_process.gone(|key| present.contains(key) || last.contains_key(key));
        for key in order {
            // k/k#115658: what was queued and never consumed needs its deletion too.
            let delta = &self.queued[last[&key]].delta;
            if !present.contains(&key) && !matches!(delta, Delta::Deleted(_)) {
                let last = delta.object().cloned();
                tombstones.push(Tombstone { key, last });
            }
        }
        let in_process = self.in_process.keys();
        for key in keys_of(known) {
            let elsewhere = last.contains_key(&key) || in_process.contains(&key);
            if !present.contains(&key) && !elsewhere {
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
        let initial = if self.initial > 0 { self.initial } else { usize::MAX };
        let most = self.scale.limits.batch.max(1).min(initial).min(self.queued.len());
        // Not std's set: at a hundred thousand events per second its hash shows.
        let mut keys = hashbrown::HashSet::with_capacity(most);
        let mut length = 0;
        for slot in self.queued.iter().take(most) {
            if !slot.delta.is_batchable() {
                // It is about everything, so it goes alone.
                return length.max(1);
            }
            if let Some(key) = slot.delta.key_ref()
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

/// Keys of all objects of a state: also of those that cannot be read, which are there all the same.
pub(crate) fn present<T: Object>(snapshot: &Snapshot<T>) -> HashSet<ObjectKey> {
    let unreadable = snapshot.unreadable.iter().filter_map(|unreadable| unreadable.key.clone());
    snapshot.items.iter().map(Object::key).chain(unreadable).collect()
}

impl<T: Object + Clone> Queue<T> for RealFifo<T> {
    fn measure(&self, update: &Update<T>) -> Load {
        self.scale.update(update)
    }

    fn admits(&self, load: Load) -> bool {
        self.queued.is_empty() || self.scale.admits(self.load, load)
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
        // An older stored object must never follow a newer one on its way there.
        let (_, queued) = self.last_queued();
        let in_process = self.in_process.keys();
        let at_rest = keys_of(&*known)
            .into_iter()
            .filter(|key| !queued.contains_key(key) && !in_process.contains(key));
        let again: Vec<_> = at_rest.filter_map(|key| known.get(&key)).collect();
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
            self.load -= slot.load;
            if self.known.is_some() {
                self.in_process.note(&slot.delta);
            }
            deltas.push(slot.delta);
        }
        self.initial_in_process = length.min(self.initial);
        if self.queued.is_empty() {
            debug_assert_eq!(self.load, Load::default(), "an empty queue weighs nothing");
            // A burst must not pin its memory for ever.
            self.queued.shrink_to(self.scale.limits.batch);
        }
        Popped::Batch(Batch { deltas, initial })
    }

    fn processed(&mut self) {
        self.in_process.clear();
        self.initial -= std::mem::take(&mut self.initial_in_process);
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
            .field("limits", &self.scale.limits)
            .field("initial", &self.initial)
            .field("synced", &self.synced)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
