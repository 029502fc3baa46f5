//! Someone who changes things while others watch.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{DeleteOptions, Kind, ObjectKey, PatchKind};
use kubestrata_codec::{Client as _, ClientError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::NAMESPACE;
use crate::bed::Stack;

/// One request. A server whose etcd stands still answers late or never.
const REQUEST: Duration = Duration::from_secs(5);
/// One request to a server that is well, on a machine that does much else.
const WELL: Duration = Duration::from_secs(60);

/// A kind with something to change in it.
pub(super) trait Plain:
    Kind + Serialize + DeserializeOwned + Clone + std::fmt::Debug
{
    /// An object to create.
    fn plain(metadata: ObjectMeta) -> Self;
    /// A merge patch.
    fn patch(number: usize) -> Value;
}

impl Plain for ConfigMap {
    fn plain(metadata: ObjectMeta) -> Self {
        let data = [("number".to_owned(), "0".to_owned())].into();
        Self { metadata, data: Some(data), ..Self::default() }
    }

    fn patch(number: usize) -> Value {
        json!({ "data": { "number": number.to_string() } })
    }
}

impl Plain for Event {
    fn plain(metadata: ObjectMeta) -> Self {
        let involved_object =
            ObjectReference { namespace: metadata.namespace.clone(), ..ObjectReference::default() };
        Self { metadata, involved_object, message: Some("0".to_owned()), ..Self::default() }
    }

    fn patch(number: usize) -> Value {
        json!({ "message": number.to_string() })
    }
}

/// Changes objects in the order of their numbers, so that a run repeats.
#[derive(Clone)]
pub(super) struct Writer<K> {
    stack: Stack,
    /// Numbers of objects that may be there, oldest first.
    there: Vec<usize>,
    /// Deletions so far.
    gone: usize,
    /// Writes that the server did not acknowledge.
    refused: usize,
    next: usize,
    kind: PhantomData<fn() -> K>,
}

impl<K: Plain> Writer<K> {
    pub(super) fn new(stack: Stack) -> Self {
        Self { stack, there: Vec::new(), gone: 0, refused: 0, next: 0, kind: PhantomData }
    }

    /// Writes that the server did not acknowledge, so far.
    pub(super) fn refused(&self) -> usize {
        self.refused
    }

    /// Deletions so far.
    pub(super) fn gone(&self) -> usize {
        self.gone
    }

    pub(super) async fn create(&mut self) {
        self.try_create(WELL).await.expect("the server is well");
    }

    pub(super) async fn update(&mut self) {
        self.try_update(WELL).await.expect("the server is well");
    }

    pub(super) async fn delete(&mut self) {
        self.try_delete(WELL).await.expect("the server is well");
    }

    /// Deletes the oldest object and makes another of its name.
    pub(super) async fn recreate(&mut self) {
        let number = self.there.remove(0);
        self.remove(number, WELL).await.expect("the server is well");
        self.put(number, WELL).await.expect("the server is well");
        self.there.push(number);
    }

    /// Changes things for a while, whether the server likes it or not.
    pub(super) async fn writes_for(&mut self, duration: Duration) {
        self.writes_during(sleep(duration)).await;
    }

    /// The same, until something else is done.
    pub(super) async fn writes_during(&mut self, other: impl Future<Output = ()>) {
        let over = Cell::new(false);
        let other = async {
            other.await;
            over.set(true);
        };
        let writes = async {
            while !over.get() {
                self.write().await;
            }
        };
        tokio::join!(other, writes);
    }

    async fn write(&mut self) {
        let result = match self.next % 3 {
            0 => self.try_delete(REQUEST).await,
            1 => self.try_update(REQUEST).await,
            _ => self.try_create(REQUEST).await,
        };
        if result.is_err() {
            // What became of it is not known, and need not be: what the server has in the end is the truth.
            sleep(Duration::from_millis(100)).await;
            self.next += 1;
            self.refused += 1;
        }
    }

    async fn try_create(&mut self, limit: Duration) -> Result<(), Refused> {
        self.next += 1;
        let number = self.next;
        self.put(number, limit).await?;
        self.there.push(number);
        Ok(())
    }

    async fn try_update(&mut self, limit: Duration) -> Result<(), Refused> {
        self.next += 1;
        let number = self.there[self.next % self.there.len()];
        let (key, patch) = (key(number), K::patch(self.next));
        let patched = self.stack.patch::<K>(&key, PatchKind::Merge, &patch);
        timeout(limit, patched).await.map_err(|_| Refused::Late)??;
        Ok(())
    }

    async fn try_delete(&mut self, limit: Duration) -> Result<(), Refused> {
        self.next += 1;
        let number = self.there.remove(0);
        self.remove(number, limit).await
    }

    async fn put(&self, number: usize, limit: Duration) -> Result<(), Refused> {
        let key = key(number);
        let metadata = ObjectMeta {
            name: Some(key.name().to_owned()),
            namespace: key.namespace().map(str::to_owned),
            ..ObjectMeta::default()
        };
        let object = K::plain(metadata);
        timeout(limit, self.stack.create(&object)).await.map_err(|_| Refused::Late)??;
        Ok(())
    }

    async fn remove(&mut self, number: usize, limit: Duration) -> Result<(), Refused> {
        let key = key(number);
        let options = DeleteOptions::default();
        let deleted = self.stack.delete::<K>(&key, options);
        timeout(limit, deleted).await.map_err(|_| Refused::Late)??;
        self.gone += 1;
        Ok(())
    }
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, &format!("object-{number:05}"))
}

/// A write that did not get through, or perhaps did.
#[derive(Debug)]
#[expect(dead_code, reason = "read by those who read the message of a panic")]
pub(super) enum Refused {
    Late,
    Refused(ClientError),
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        Self::Refused(error)
    }
}
