//! What we changed in a file, put into what the file says by now.

use super::tree::Node;

/// Lists of entries that have names. They are merged entry by entry, which kubectl writes as wholes too: two changes of one entry need not
/// fit together, as a token of one and a user name of the other.
const LISTS: [&str; 3] = ["clusters", "users", "contexts"];

/// `theirs`, with all that differs between `loaded` and `ours`. What both have changed is as in `ours`.
pub(super) fn merge(loaded: &Node, ours: &Node, theirs: Node) -> Node {
    let mut merged = theirs;
    for key in keys(loaded).chain(keys(ours)) {
        let (old, new) = (loaded.get(key), ours.get(key));
        if old == new {
            continue;
        }
        match new {
            Some(Node::List(new)) if LISTS.contains(&key) => {
                let old = old.map_or(&[][..], Node::items);
                entries(old, new, merged.entry(key));
            }
            Some(new) => *merged.entry(key) = new.clone(),
            None => merged.remove(key),
        }
    }
    merged
}

fn keys(node: &Node) -> impl Iterator<Item = &str> {
    let entries = if let Node::Map(entries) = node { &entries[..] } else { &[] };
    entries.iter().map(|(key, _)| key.as_str())
}

fn entries(old: &[Node], new: &[Node], merged: &mut Node) {
    if !matches!(merged, Node::List(_)) {
        *merged = Node::List(Vec::new());
    }
    let Node::List(merged) = merged else { unreachable!("it was made a list above") };
    let find = |all: &[Node], entry: &Node| {
        let name = entry.name();
        all.iter().position(|other| other.name() == name)
    };
    for entry in old {
        if find(new, entry).is_none()
            && let Some(index) = find(merged, entry)
        {
            merged.remove(index);
        }
    }
    for entry in new {
        if find(old, entry).is_some_and(|index| old[index] == *entry) {
            continue;
        }
        match find(merged, entry) {
            Some(index) => merged[index] = entry.clone(),
            None => merged.push(entry.clone()),
        }
    }
}
