//! An informer, and a handler of it that believes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubestrata_api_types::{Collection, Object, ObjectKey, reason};
use kubestrata_codec::Encoded;
use kubestrata_informer::{Config, Handler, HandlerConfig, Informer, Registration};
use kubestrata_reflector::{self as reflector, Failure, FailureHook};

use crate::bed::Stack;

/// Uid and version of an object.
type State = (String, u64);

fn state(object: &Encoded) -> State {
    let uid = object.uid().expect("a server's objects have a uid").to_owned();
    let version = object.resource_version().as_u64().expect("a server's versions are numbers");
    (uid, version)
}

/// What a handler was told, and what of it cannot be true.
#[derive(Debug, Default)]
struct Told {
    objects: BTreeMap<ObjectKey, State>,
    gone: BTreeSet<String>,
    deletes: usize,
    unseen_deletes: usize,
    wrong: Vec<String>,
}

impl Told {
    fn check(&mut self, fine: bool, what: impl FnOnce() -> String) {
        if !fine {
            self.wrong.push(what());
        }
    }
}

/// Keeps a copy by what it is told alone.
#[derive(Debug, Default)]
struct Mirror(Mutex<Told>);

impl Handler<Encoded> for Mirror {
    fn on_add(&self, object: &Encoded, _: bool) {
        let mut told = self.0.lock().unwrap();
        let (uid, version) = state(object);
        let known = told.objects.insert(object.key(), (uid.clone(), version));
        told.check(known.is_none(), || format!("{object:?} is added over {known:?}"));
        let gone = told.gone.contains(&uid);
        told.check(!gone, || format!("{object:?} is added after its deletion"));
    }

    fn on_update(&self, old: &Encoded, new: &Encoded) {
        let mut told = self.0.lock().unwrap();
        let (before, now) = (state(old), state(new));
        let known = told.objects.insert(new.key(), now.clone());
        told.check(known.as_ref() == Some(&before), || {
            format!("{new:?} is an update of {before:?}, but {known:?} was told")
        });
        told.check(now.0 == before.0 && now.1 >= before.1, || format!("{new:?} after {old:?}"));
    }

    fn on_delete(&self, last: &Encoded, final_state_known: bool) {
        let mut told = self.0.lock().unwrap();
        let (uid, version) = state(last);
        let known = told.objects.remove(&last.key());
        let fine = known.as_ref().is_some_and(|(known, at)| *known == uid && version >= *at);
        told.check(fine, || format!("{last:?} is deleted, but {known:?} was told"));
        told.gone.insert(uid);
        told.deletes += 1;
        told.unseen_deletes += usize::from(!final_state_known);
    }
}

/// Counts of failures, by what the reflector made of them.
#[derive(Debug, Default)]
struct Failures {
    all: usize,
    expired: usize,
    kinds: BTreeMap<String, usize>,
}

/// One informer under watch.
pub(super) struct Witness {
    name: &'static str,
    informer: Informer<Encoded>,
    mirror: Arc<Mirror>,
    failures: Arc<Mutex<Failures>>,
    _registration: Registration,
}

impl Witness {
    /// Starts an informer and waits until it is synced.
    pub(super) async fn start(name: &'static str, stack: Stack, collection: Collection) -> Self {
        let failures = Arc::new(Mutex::new(Failures::default()));
        let noted = Arc::clone(&failures);
        let on_failure = FailureHook::new(move |failure: &Failure| {
            let mut noted = noted.lock().unwrap();
            noted.all += 1;
            let expired = failure.status().is_some_and(|status| {
                status.code == 410
                    || status.reason == reason::EXPIRED
                    || status.reason == reason::GONE
            });
            noted.expired += usize::from(expired);
            // Without the delay, which is another one each time.
            let recovery = format!("{:?}", failure.recovery);
            let recovery = recovery.split('(').next().unwrap_or_default();
            let code = failure.status().map_or(0, |status| status.code);
            *noted.kinds.entry(format!("{} {code} {recovery}", failure.during)).or_default() += 1;
        });
        let reflector = reflector::Config { on_failure: Some(on_failure), ..Default::default() };
        let config = Config { reflector, ..Config::default() };
        let informer = Informer::new(Arc::new(stack), collection, config);
        let mirror = Arc::new(Mirror::default());
        let handler = Arc::clone(&mirror);
        let registration = informer.add_handler(handler, HandlerConfig::default()).unwrap();
        informer.start();
        informer.wait_synced(Duration::from_secs(120)).await.unwrap();
        registration.wait_synced().await.unwrap();
        Self { name, informer, mirror, failures, _registration: registration }
    }

    /// The version that the store has reached.
    pub(super) fn version(&self) -> u64 {
        self.informer.reader().version().version.as_u64().unwrap_or_default()
    }

    /// Whether store and handler have exactly these objects, byte for byte.
    pub(super) fn equals(&self, live: &BTreeMap<ObjectKey, Encoded>) -> bool {
        let stored = self.informer.reader().list();
        let same =
            |object: &Encoded| live.get(&object.key()).is_some_and(|other| same(object, other));
        if stored.len() != live.len() || !stored.iter().all(same) {
            return false;
        }
        let told = self.mirror.0.lock().unwrap();
        told.objects.len() == live.len()
            && live.iter().all(|(key, object)| told.objects.get(key) == Some(&state(object)))
    }

    /// How often the whole state was fetched again.
    pub(super) fn relists(&self) -> u64 {
        self.informer.status().reflector.states - 1
    }

    /// How often the server said that a version is gone.
    pub(super) fn expired(&self) -> usize {
        self.failures.lock().unwrap().expired
    }

    /// How many deletions the handler was told of, and how many of them nobody saw happen.
    pub(super) fn deletes(&self) -> (usize, usize) {
        let told = self.mirror.0.lock().unwrap();
        (told.deletes, told.unseen_deletes)
    }

    /// Fails unless the handler was told a true story.
    pub(super) fn check_story(&self) {
        let told = self.mirror.0.lock().unwrap();
        assert_eq!(told.wrong, Vec::<String>::new(), "{}", self.name);
        // Every uid that was ever added is either there or was told as gone: the additions could not pass otherwise.
        let there = told.objects.values().filter(|(uid, _)| told.gone.contains(uid)).count();
        assert_eq!(there, 0, "{}: told as gone, and there", self.name);
    }

    /// Prints what it took.
    pub(super) fn report(&self, trial: &str, recovered: Duration) {
        let failures = self.failures.lock().unwrap();
        let (deletes, unseen) = self.deletes();
        eprintln!(
            "{trial} {}: recovered in {:.1} s, {} relists, {} failures {:?}, {deletes} deletions told, {unseen} of them unseen",
            self.name,
            recovered.as_secs_f64(),
            self.relists(),
            failures.all,
            failures.kinds,
        );
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.informer.stop().await;
    }
}

/// Whether these are the same object in the same state, as bytes.
///
/// Items of a JSON list name no type of their own and events do, so JSON is compared without these two fields.
fn same(one: &Encoded, other: &Encoded) -> bool {
    if one.bytes() == other.bytes() {
        return true;
    }
    let plain = |object: &Encoded| {
        let mut value: serde_json::Value = serde_json::from_slice(object.bytes()).ok()?;
        let fields = value.as_object_mut()?;
        fields.remove("apiVersion");
        fields.remove("kind");
        Some(value)
    };
    state(one) == state(other) && plain(one).is_some_and(|value| Some(value) == plain(other))
}
