//! Several namespaces.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{ApiRequest, Collection, Operation, ResourceType, Scope};
use kubestrata_testkit::{Reply, Scripted, Thing, WatchStep, things};

use super::{Log, settle};
use crate::{Config, HandlerConfig, InformerFactory};

/// One object in each namespace that is asked for, and a list of all of them for all.
fn server() -> Scripted<Thing> {
    Scripted::by(|request: &ApiRequest| {
        let names = match &request.collection.namespace {
            Some(namespace) => vec![namespace.to_string()],
            None => ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
        };
        let Operation::Watch(_) = &request.operation else { return Reply::Hang.into() };
        let mut steps: Vec<_> = names
            .iter()
            .map(|namespace| {
                let thing: Thing = format!("{namespace}/a@1").parse().unwrap();
                WatchStep::Item(kubestrata_api_types::Event::Added(thing))
            })
            .collect();
        steps.push(WatchStep::Item(kubestrata_api_types::Event::Bookmark(
            kubestrata_api_types::Bookmark { resource_version: 5.into(), initial_events_end: true },
        )));
        Reply::Watch(steps).into()
    })
}

fn factory(server: &Scripted<Thing>) -> InformerFactory<Thing> {
    let factory = InformerFactory::new(Arc::new(server.clone()), Config::default());
    factory.start();
    factory
}

#[tokio::test(start_paused = true)]
async fn a_group_follows_each_of_its_namespaces_once() {
    let server = server();
    let factory = factory(&server);
    let group = factory.group(things(), ["n2", "n1", "n2"]);
    let log = Log::default();
    let handler = group.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    group.wait_synced(Duration::from_secs(5)).await.unwrap();
    handler.wait_synced().await.unwrap();
    assert!(group.has_synced() && handler.has_synced());
    assert_eq!((server.recorded().len(), handler.all().len()), (2, 2));
    assert_eq!(log.take_sorted(), "+n1/a@1! +n2/a@1!");
    assert_eq!(group.list().len(), 2);
    assert!(group.get(&"n1/a".parse().unwrap()).is_some());
    assert!(group.get(&"n3/a".parse().unwrap()).is_none(), "not followed");
    assert!(group.informer(Some("n3")).is_none() && group.informer(None).is_none());
    // Shared with whoever asks for one of the namespaces alone.
    factory.informer(things().in_namespace("n1"));
    settle().await;
    assert_eq!(server.recorded().len(), 2);
    handler.drain();
    handler.ended().await;
    group.stop().await;
    assert!(group.add_handler(Log::default(), HandlerConfig::default()).is_err());
    assert_eq!(server.open_streams(), 0);
}

/// Bug row 51: the name for all namespaces beside named ones doubles nothing, and a kind without namespaces is listed
/// once.
#[tokio::test(start_paused = true)]
async fn k51_no_object_is_followed_twice() {
    for names in [&["n1", ""][..], &[]] {
        let server = server();
        let group = factory(&server).group(things(), names);
        group.wait_synced(Duration::from_secs(5)).await.unwrap();
        assert_eq!((server.recorded().len(), group.list().len()), (1, 3));
        assert!(group.get(&"n2/a".parse().unwrap()).is_some());
    }
    const GLOBAL: ResourceType =
        ResourceType::from_static("test.kubestrata.dev", "v1", "Global", "globals", Scope::Cluster);
    let server = server();
    let group = factory(&server).group(Collection::new(GLOBAL), ["n1", "n2"]);
    group.wait_synced(Duration::from_secs(5)).await.unwrap();
    assert_eq!(server.recorded().len(), 1);
    assert!(server.recorded()[0].1.collection.namespace.is_none());
}

/// Selectors and form of the selection hold for each member.
#[tokio::test(start_paused = true)]
async fn a_group_has_the_selection_of_each_member() {
    let server = server();
    let selection = crate::Selection::from(things().metadata_only())
        .labels("app=web".parse().unwrap())
        .fields("spec.nodeName=n".parse().unwrap());
    let group = factory(&server).group(selection, ["n1", "n2"]);
    group.wait_synced(Duration::from_secs(5)).await.unwrap();
    for (_, request) in server.recorded() {
        let Operation::Watch(options) = &request.operation else { panic!() };
        assert_eq!(options.labels, "app=web".parse().unwrap());
        assert_eq!(options.fields, "spec.nodeName=n".parse().unwrap());
        assert_eq!(
            request.collection.representation,
            kubestrata_api_types::Representation::Metadata
        );
    }
}
