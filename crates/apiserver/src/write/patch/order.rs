//! The order of a list that was merged.

use serde_json::Value;

/// What tells an element from others: the value of its key, or the element itself if there is no key.
fn id<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    if key.is_empty() { Some(value) } else { value.get(key) }
}

fn place(list: &[Value], value: &Value, key: &str) -> Option<usize> {
    list.iter().position(|other| id(other, key) == id(value, key))
}

/// Orders a list as Go's `normalizeElementOrder` does: what `order` names in its order, all else in the order from
/// `before`; between the two the old order decides, and what is new comes first.
pub(super) fn restore(list: &mut Vec<Value>, before: &[Value], order: &[Value], key: &str) {
    let (mut named, kept): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|value| place(order, value, key).is_some());
    named.sort_by_key(|value| place(order, value, key));
    let mut kept = kept.into_iter().peekable();
    for value in named {
        while let (Some(own), Some(next)) = (place(before, &value, key), kept.peek())
            && place(before, next, key).is_some_and(|other| other < own)
        {
            list.extend(kept.next());
        }
        list.push(value);
    }
    list.extend(kept);
}

/// Whether all of `list` are in `order`, one after the other.
pub(super) fn same_order(list: &[&Value], order: &[Value], key: &str) -> bool {
    let mut rest = order.iter();
    list.iter().all(|value| rest.any(|other| id(other, key) == id(value, key)))
}
