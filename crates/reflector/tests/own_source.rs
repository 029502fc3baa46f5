//! A reflector over a source that is no API server: a table in memory, of the user's own type.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use kubestrata_api_types::{
    Bookmark, BoxError, BoxFuture, Collection, Event, ListMeta, ListOptions, ListPart, ListStream,
    ListWatch, Object as _, ObjectMeta, ResourceType, Scope, Update, WatchOptions, WatchStream,
};
use kubestrata_derive::Object;
use kubestrata_reflector::{Config, Reflector};
use tokio::sync::watch;

#[derive(Debug, Clone, Object)]
struct Row {
    metadata: ObjectMeta,
    text: String,
}

fn row(name: &str, text: &str, version: u64) -> Row {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    Row { metadata, text: text.to_owned() }
}

/// A table whose version is the number of writes; a watcher is told the row that the last write changed.
struct Table(watch::Sender<(u64, BTreeMap<String, Row>, Option<Row>)>);

impl Table {
    fn write(&self, name: &str, text: &str) {
        self.0.send_modify(|(version, rows, last)| {
            *version += 1;
            let row = row(name, text, *version);
            rows.insert(name.to_owned(), row.clone());
            *last = Some(row);
        });
    }
}

/// What the reflector follows. It knows no streaming list, and says so.
struct Source(Arc<Table>);

impl ListWatch<Row> for Source {
    fn list(&self, _: &Collection, _: ListOptions) -> BoxFuture<Result<ListStream<Row>, BoxError>> {
        let (version, rows, _) = self.0.0.borrow().clone();
        let meta = ListMeta { resource_version: version.into(), ..ListMeta::default() };
        let parts = rows.into_values().map(ListPart::Item).chain([ListPart::Meta(meta)]).map(Ok);
        let parts: ListStream<Row> = stream::iter(parts.collect::<Vec<_>>()).boxed();
        Box::pin(async { Ok(parts) })
    }

    fn watch(
        &self,
        _: &Collection,
        options: WatchOptions,
    ) -> BoxFuture<Result<WatchStream<Row>, BoxError>> {
        let receiver = self.0.0.subscribe();
        Box::pin(async move {
            if options.send_initial_events.is_some() {
                return Err("no streaming lists here".into());
            }
            let first = Bookmark {
                resource_version: receiver.borrow().0.into(),
                initial_events_end: false,
            };
            let changes = stream::unfold(receiver, |mut receiver| async move {
                receiver.changed().await.ok()?;
                let row = receiver.borrow_and_update().2.clone()?;
                Some((Ok(Event::Modified(row)), receiver))
            });
            Ok(stream::iter([Ok(Event::Bookmark(first))]).chain(changes).boxed())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn any_list_watch_will_do() {
    let table = Arc::new(Table(watch::Sender::new((0, BTreeMap::new(), None))));
    table.write("a", "one");
    let rows = ResourceType::new("example.com", "v1", "Row", "rows", Scope::Cluster);
    let mut reflector =
        Reflector::new(Source(Arc::clone(&table)), Collection::new(rows), Config::default());

    let Update::Replace(state) = reflector.next().await else { panic!("a state comes first") };
    assert_eq!((state.items[0].name(), state.items[0].text.as_str()), ("a", "one"));
    let Update::Event(Event::Bookmark(_)) = reflector.next().await else { panic!("a bookmark") };
    table.write("a", "two");
    let Update::Event(Event::Modified(row)) = reflector.next().await else { panic!("a change") };
    assert_eq!((row.text.as_str(), row.resource_version()), ("two", 2.into()));
    assert!(reflector.status().read().fallback);
}
