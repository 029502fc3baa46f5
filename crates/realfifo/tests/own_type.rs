//! The bare engine with the user's own type: no runtime, no lock.

use kubestrata_api_types::{Event, Object as _, ObjectMeta, Snapshot, Update};
use kubestrata_derive::Object;
use kubestrata_realfifo::{Batch, Delta, Limits, Popped, Queue as _, RealFifo};

#[derive(Debug, Clone, Object)]
struct Order {
    metadata: ObjectMeta,
    amount: u32,
}

fn order(name: &str, amount: u32) -> Order {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Order { metadata, amount }
}

#[test]
fn every_change_in_order() {
    let mut queue = RealFifo::new(Limits::default(), |_| size_of::<Order>());
    let state = Snapshot {
        items: vec![order("a", 1), order("b", 2)],
        unreadable: Vec::new(),
        resource_version: 7.into(),
    };
    queue.push(Update::Replace(state));
    for amount in [3, 4] {
        queue.push(Update::Event(Event::Modified(order("a", amount))));
    }
    queue.push(Update::Event(Event::Deleted(order("b", 2))));

    let mut amounts = Vec::new();
    while let Popped::Batch(Batch { deltas, .. }) = queue.pop() {
        for delta in deltas {
            match delta {
                Delta::ReplacedAll(state) => assert_eq!(state.items.len(), 2),
                Delta::Updated(order) => amounts.push(order.amount),
                Delta::Deleted(deleted) => {
                    assert_eq!(deleted.last().map(|order| order.name()), Some("b"));
                }
                other => panic!("not expected: {other:?}"),
            }
        }
        queue.processed();
        assert!(queue.has_synced());
    }
    assert_eq!(amounts, [3, 4]);
}
