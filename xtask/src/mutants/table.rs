//! Mistakes that the simulation must find, each as one replacement in one file.

use crate::workspace::root;

/// One mistake.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// What it is, in some words.
    pub(crate) name: &'static str,
    /// The file, from the root of the workspace.
    pub(crate) file: &'static str,
    /// What is right. It must stand in the file exactly once.
    pub(crate) from: &'static str,
    /// What is wrong.
    pub(crate) to: &'static str,
}

impl Mutant {
    /// The file's text with the mistake in it.
    ///
    /// # Errors
    ///
    /// If the right text is not there exactly once: the table is out of date.
    pub(crate) fn apply(&self, text: &str) -> Result<String, String> {
        let count = text.matches(self.from).count();
        if count == 1 {
            return Ok(text.replacen(self.from, self.to, 1));
        }
        let Self { name, file, .. } = self;
        Err(format!("mutant {name:?}: its text stands {count} times in {file}, not once"))
    }
}

/// What is wrong with the table.
pub(crate) fn problems() -> Vec<String> {
    let problem = |mutant: &Mutant| match std::fs::read_to_string(root().join(mutant.file)) {
        Ok(text) => mutant.apply(&text).err(),
        Err(error) => Some(format!("mutant {:?}: {}: {error}", mutant.name, mutant.file)),
    };
    MUTANTS.iter().filter_map(problem).collect()
}

/// The mistakes.
pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "take an object of another uid for the same",
        file: "crates/informer/src/apply.rs",
        from: "(Some(old), Some(new)) if old != new)",
        to: "(Some(old), Some(new)) if old != new && false)",
    },
    Mutant {
        name: "resume a watch from the last initial event",
        file: "crates/reflector/src/state/recover.rs",
        from: "                self.streaming_failed(&streaming, fault, now);",
        to: "                if streaming.events > 0 {
                    let mut streaming = streaming;
                    let state = streaming.gather.take(ResourceVersion::UNSET);
                    self.last = state.items.last().map(T::resource_version).unwrap_or_default();
                    self.phase = Phase::BeginWatch;
                } else {
                    self.streaming_failed(&streaming, fault, now);
                }",
    },
    Mutant {
        name: "take a streaming list without its end bookmark for whole",
        file: "crates/reflector/src/state/recover.rs",
        from: "                let lived = now.since(streaming.started);",
        to: "                if streaming.events > 0 {
                    let end = kubestrata_api_types::Bookmark {
                        resource_version: 1.into(),
                        initial_events_end: true,
                    };
                    self.on_event(kubestrata_api_types::Event::Bookmark(end), now);
                    self.phase = Phase::BeginWatch;
                    return;
                }
                let lived = now.since(streaming.started);",
    },
    Mutant {
        name: "resume a watch where the list was",
        file: "crates/reflector/src/state/receive.rs",
        from: "advance(&mut self.last, version);",
        to: "let _ = version;",
    },
    Mutant {
        name: "no relist after 410",
        file: "crates/reflector/src/state/recover.rs",
        from: "_ => self.relist(During::Watch, fault, now),",
        to: "_ => self.retry_watch(fault, now),",
    },
    Mutant {
        name: "relist in pages exactly what is known already",
        file: "crates/reflector/src/state/ask.rs",
        from: "let version_match = exact.then_some(VersionMatch::NotOlderThan);",
        to: "let version_match = exact.then_some(VersionMatch::NotOlderThan).filter(|_| false);",
    },
    Mutant {
        name: "wait for ever for a version that will not come",
        file: "crates/reflector/src/state/recover.rs",
        from: "if waits && stalled(&fault) {",
        to: "if waits && stalled(&fault) && false {",
    },
    Mutant {
        name: "forget one deletion of a relist",
        file: "crates/informer/src/apply.rs",
        from: "let gone = replaced.removed.into_iter();",
        to: "let gone = replaced.removed.into_iter().skip(1);",
    },
    Mutant {
        name: "synced before the first state is stored",
        file: "crates/realfifo/src/real_fifo.rs",
        from: "self.initial = self.queued.len();",
        to: "self.initial = 0;",
    },
    Mutant {
        name: "hand on a new state object by object",
        file: "crates/realfifo/src/real_fifo.rs",
        from: "None => self.append(Delta::ReplacedAll(snapshot)),",
        to: "None => snapshot.items.into_iter().for_each(|o| self.append(Delta::Replaced(o))),",
    },
    Mutant {
        name: "a late handler is not told of what is there",
        file: "crates/informer/src/informer.rs",
        from: ".filter(|stored| !stored.is_empty())",
        to: ".filter(|stored| stored.is_empty())",
    },
    Mutant {
        name: "the store never goes back",
        file: "crates/store-index/src/version.rs",
        from: "let rewound = version.is_at_least(&self.version) == Some(false);",
        to: "let rewound = false;",
    },
    Mutant {
        name: "take a list that was cut for whole",
        file: "crates/codec/src/list.rs",
        from: "} else if self.complete && self.input.available() == 0 {",
        to: "} else if self.meta_seen || self.complete && self.input.available() == 0 {",
    },
    Mutant {
        name: "the server leaves out the first change after a resume",
        file: "crates/watch-cache/src/state.rs",
        from: "entry.change.revision <= after)",
        to: "entry.change.revision <= after + 1)",
    },
    Mutant {
        name: "a queue by key forgets one deletion of a relist",
        file: "crates/realfifo/src/delta_fifo.rs",
        from: "for tombstone in gone {",
        to: "for tombstone in gone.into_iter().skip(1) {",
    },
    Mutant {
        name: "a backlog that coalesces loses deletions",
        file: "crates/informer/src/notice.rs",
        from: "(Self::Update { .. }, delete @ Self::Delete { .. }) => Merged::One(delete),",
        to: "(Self::Update { .. }, Self::Delete { .. }) => Merged::Nothing,",
    },
    Mutant {
        name: "events of other shards are kept",
        file: "crates/reflector/src/state/receive.rs",
        from: "(Some(shard), Some(object)) => !shard.matches(object),",
        to: "(Some(shard), Some(object)) => !shard.matches(object) && false,",
    },
];
