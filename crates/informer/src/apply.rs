//! From deltas to the store and to what handlers are told: no lock, no waiting.

use kubestrata_api_types::{ResourceVersion, Snapshot, Unreadable};
use kubestrata_realfifo::{Deleted, Delta};
use kubestrata_store_index::Change;

use crate::Problem;
use crate::notice::Notice;
use crate::sink::{AnyStore, Item, StoreReader};

/// How deltas are understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// An object with another uid than the stored one is told as an update.
    pub(crate) recreate_as_update: bool,
    /// A deletion of an object that is not stored is told all the same, as client-go does; not where a transform skips
    /// objects, nor where a queue may merge an object's beginning with its end.
    pub(crate) tell_unknown_deletes: bool,
    /// Whether anybody listens.
    pub(crate) tell: bool,
}

/// What a batch leads to.
#[derive(Debug)]
pub(crate) struct Outcome<T> {
    pub(crate) notices: Vec<Notice<T>>,
    pub(crate) problems: Vec<Problem>,
}

impl<T> Default for Outcome<T> {
    fn default() -> Self {
        Self { notices: Vec::new(), problems: Vec::new() }
    }
}

/// Puts a batch into the store and tells what is to be said of it, in the queue's order.
pub(crate) fn apply<T: Item>(
    store: &mut dyn AnyStore<T>,
    reader: &dyn StoreReader<T>,
    deltas: Vec<Delta<T>>,
    initial: bool,
    rules: Rules,
) -> Outcome<T> {
    let mut outcome = Outcome::default();
    let mut changes = Vec::with_capacity(deltas.len());
    let mut said = Vec::with_capacity(deltas.len());
    for delta in deltas {
        match delta {
            Delta::Added(object)
            | Delta::Updated(object)
            | Delta::Replaced(object)
            | Delta::Sync(object) => {
                said.push(Said::Is(rules.tell.then(|| object.clone())));
                changes.push(Change::Upsert(object));
            }
            Delta::Deleted(deleted) => {
                let key = deleted.key();
                let (last, known) = match deleted {
                    Deleted::Observed(object) => (Some(object), true),
                    Deleted::Missed(tombstone) => (tombstone.last, false),
                };
                let version = last.as_ref().filter(|_| known).map(T::resource_version);
                changes.push(Change::Delete { key, version: version.unwrap_or_default() });
                said.push(Said::Gone { last, known });
            }
            Delta::Bookmark(version) => {
                changes.push(Change::Bookmark(version));
                said.push(Said::Nothing);
            }
            Delta::Unreadable(unreadable) => {
                outcome.problems.push(Problem::Unreadable(unreadable));
            }
            Delta::ReplacedAll(snapshot) => {
                replace(store, reader, snapshot, initial, rules, &mut outcome)
            }
            Delta::SyncAll => outcome.notices.push(Notice::Resync(reader.freeze())),
        }
    }
    let applied = store.apply(changes);
    outcome.problems.extend(applied.problems.into_iter().map(Problem::Index));
    if rules.tell {
        for (said, previous) in said.into_iter().zip(applied.previous) {
            say(said, previous, initial, rules, &mut outcome.notices);
        }
    }
    outcome
}

/// What a delta says of its object.
enum Said<T> {
    Is(Option<T>),
    Gone { last: Option<T>, known: bool },
    Nothing,
}

fn say<T: Item>(
    said: Said<T>,
    previous: Option<T>,
    initial: bool,
    rules: Rules,
    notices: &mut Vec<Notice<T>>,
) {
    match (said, previous) {
        (Said::Is(Some(object)), previous) => changed(previous, object, initial, rules, notices),
        (Said::Gone { last, known }, previous) => {
            if previous.is_none() && !rules.tell_unknown_deletes {
                return;
            }
            let (last, known) = match (last, previous) {
                // A queue that merges changes may tell of an object's end whose beginning it did not tell.
                (Some(last), Some(stored)) if is_other(&stored, &last) => (Some(stored), false),
                (last, stored) => (last.or(stored), known),
            };
            // Without any state there is nothing to tell of, and nobody was ever told of the object.
            if let Some(last) = last {
                notices.push(Notice::Delete { last, final_state_known: known });
            }
        }
        (Said::Is(None) | Said::Nothing, _) => {}
    }
}

fn changed<T: Item>(
    previous: Option<T>,
    object: T,
    initial: bool,
    rules: Rules,
    notices: &mut Vec<Notice<T>>,
) {
    match previous {
        None => notices.push(Notice::Add { object, initial }),
        Some(old) if is_other(&old, &object) && !rules.recreate_as_update => {
            notices.push(Notice::Delete { last: old, final_state_known: false });
            notices.push(Notice::Add { object, initial });
        }
        Some(old) => {
            let unchanged = old.resource_version() == object.resource_version();
            notices.push(Notice::Update { old, new: object, unchanged });
        }
    }
}

/// Whether the name is the same and the object is not: it was deleted and made again.
fn is_other<T: Item>(old: &T, new: &T) -> bool {
    matches!((old.uid(), new.uid()), (Some(old), Some(new)) if old != new)
}

fn replace<T: Item>(
    store: &mut dyn AnyStore<T>,
    reader: &dyn StoreReader<T>,
    snapshot: Snapshot<T>,
    initial: bool,
    rules: Rules,
    outcome: &mut Outcome<T>,
) {
    let Snapshot { mut items, unreadable, resource_version } = snapshot;
    let version: ResourceVersion = resource_version;
    for unreadable in unreadable {
        // The object is there, only its new state cannot be read. Its last readable state stays: to tell handlers that it
        // is gone would be wrong.
        items.extend(stored_state(reader, &unreadable));
        outcome.problems.push(Problem::Unreadable(unreadable));
    }
    let told = if rules.tell { items.clone() } else { Vec::new() };
    let replaced = store.replace(items, version);
    outcome.problems.extend(replaced.problems.into_iter().map(Problem::Index));
    if !rules.tell {
        return;
    }
    let gone = replaced.removed.into_iter();
    outcome.notices.extend(gone.map(|last| Notice::Delete { last, final_state_known: false }));
    for (object, previous) in told.into_iter().zip(replaced.previous) {
        changed(previous, object, initial, rules, &mut outcome.notices);
    }
}

fn stored_state<T: Item>(reader: &dyn StoreReader<T>, unreadable: &Unreadable) -> Option<T> {
    reader.get(unreadable.key.as_ref()?)
}
