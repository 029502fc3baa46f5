//! Start, sync, stop, and the factory.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::Status;
use kubestrata_telemetry::Memory;
use kubestrata_testkit::{Scripted, Thing, things};

use super::{Log, informer, server, settle, with};
use crate::{Config, HandlerConfig, InformerFactory, Selection, SyncError};

#[tokio::test(start_paused = true)]
async fn waiting_for_sync_tells_why_it_fails() {
    let server = Scripted::<Thing>::by(|_| {
        kubestrata_testkit::Reply::Status(Status::failure(403, "Forbidden", "things is forbidden"))
            .into()
    });
    let informer = informer(&server);
    let early = informer.wait_synced(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(early, SyncError::NotStarted { .. }));
    informer.start();
    let error = informer.wait_synced(Duration::from_secs(60)).await.unwrap_err();
    let text = "the informer of things.test.kubestrata.dev was not synced within 60s";
    assert_eq!(error.to_string(), text);
    let status = kubestrata_api_types::cause_ref::<Status>(&error).unwrap();
    assert!(status.is_forbidden() && error.source().is_some());
    assert!(informer.status().reflector.failing.is_some());
    informer.stop().await;
    let stopped = informer.wait_synced(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(stopped, SyncError::Stopped { .. }));
}

/// Q4: an empty first state is synced once it was processed.
#[tokio::test(start_paused = true)]
async fn an_empty_collection_syncs() {
    let server = server("watch: end@7");
    let informer = informer(&server);
    let log = Log::default();
    let handler = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    informer.wait_synced(Duration::from_secs(5)).await.unwrap();
    handler.wait_synced().await.unwrap();
    assert_eq!(informer.reader().version().version, 7.into());
    let late = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    late.wait_synced().await.unwrap();
    assert_eq!(log.take(), "");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_and_readers_keep_what_is_stored() {
    let server = server("watch: +a@1 end@1 wait=10s ~a@2");
    let informer = informer(&server);
    let log = Log::default();
    let handler = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    let other = informer.clone();
    settle().await;
    drop(informer);
    assert_eq!(server.open_streams(), 1);
    let reader = other.reader();
    drop(other);
    handler.ended().await;
    settle().await;
    assert_eq!((server.open_streams(), reader.len(), reader.is_closed()), (0, 1, true));
    assert_eq!(log.take(), "+a@1!");
}

#[tokio::test(start_paused = true)]
async fn stop_ends_everything_and_refuses_new_handlers() {
    let server = server("watch: +a@1 end@1");
    let informer = informer(&server);
    let handler = informer.add_handler(Log::default(), HandlerConfig::default()).unwrap();
    informer.start();
    settle().await;
    informer.stop().await;
    informer.stop().await;
    handler.ended().await;
    assert_eq!(server.open_streams(), 0);
    assert!(informer.add_handler(Log::default(), HandlerConfig::default()).is_err());
    assert!(informer.has_synced() && informer.wait_synced(Duration::ZERO).await.is_ok());
    informer.start();
    settle().await;
    assert_eq!(server.requests().len(), 1, "it does not start again");
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_an_informer_that_never_starts_ends_with_it() {
    let server = server("");
    let informer = informer(&server);
    let handler = informer.add_handler(Log::default(), HandlerConfig::default()).unwrap();
    informer.stop().await;
    handler.ended().await;
    assert!(handler.wait_synced().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_factory_shares_informers_and_counts_references() {
    let server = server("watch: +a/x@1 end@1 | watch: end@1 | watch: end@2");
    let factory = InformerFactory::new(Arc::new(server.clone()), Config::default());
    let all = factory.informer(things());
    assert!(!all.is_started());
    let again = factory.informer(things());
    let labelled = Selection::from(things()).labels("app=web".parse().unwrap());
    let web = factory.informer(labelled.clone());
    factory.start();
    settle().await;
    assert_eq!((all.reader().len(), again.reader().len(), web.reader().len()), (1, 1, 0));
    assert_eq!(factory.informers().len(), 2);
    expect_test::expect![[r#"
        watch rv="" match=NotOlderThan initial bookmarks
        watch rv="" match=NotOlderThan initial bookmarks labels=app=web"#]]
    .assert_eq(&server.requests().join("\n"));
    drop(web);
    settle().await;
    assert!(factory.get(&labelled).is_none());
    drop(all);
    assert!(factory.get(&things().into()).is_some(), "somebody still holds it");
    // Made after the start, an informer starts at once; a stopped one is made anew.
    let web = factory.informer(labelled.clone());
    web.wait_synced(Duration::from_secs(5)).await.unwrap();
    factory.stop().await;
    assert!(factory.get(&labelled).is_none());
}

/// Also bug row 22c (k/k PR 139143): the metric of the version follows the store.
#[tokio::test(start_paused = true)]
async fn status_and_metrics_tell_the_age_and_size_of_the_store() {
    let server = server("watch: +a@1 +b@2 end@2 wait=5s ~a@3 wait=5s bookmark@12345678901234567");
    let metrics = Memory::new();
    let config =
        Config { name: "test".into(), metrics: Arc::new(metrics.clone()), ..Config::default() };
    let informer = with(&server, config);
    informer.start();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let status = informer.status();
    assert!(status.started && status.synced && status.reflector.live_since.is_some());
    assert_eq!((status.objects, status.queued, status.unreadable), (2, 0, 0));
    assert_eq!((status.relists(), status.reflector.fallback, status.gone_since), (0, false, None));
    assert!(status.reflector.failing.is_none() && status.reflector.last_failure.is_none());
    assert_eq!(status.version.version, 12_345_678_901_234_567.into());
    let ago = |at: Option<tokio::time::Instant>| at.unwrap().elapsed().as_secs();
    let (event, bookmark) = (ago(status.reflector.last_event), ago(status.reflector.last_bookmark));
    assert_eq!((event, bookmark), (10, 10));
    let labels = "name=\"test\",group=\"test.kubestrata.dev\",version=\"v1\",resource=\"things\"";
    let value = |name: &str, more: &str| metrics.value(&format!("{name}{{{labels}{more}}}"));
    assert_eq!(value("informer_store_resource_version", ""), Some(345_678_901_234_567.0));
    assert_eq!(value("informer_store_objects", ""), Some(2.0));
    assert_eq!(value("informer_queued_items", ""), Some(0.0));
    let latency = format!("informer_processing_latency_seconds_bucket{{{labels}");
    assert!(metrics.render().contains(&latency));
    assert!(value("informer_store_bytes", ",part=\"heads\"").unwrap() > 0.0);
    assert!(value("informer_store_bytes", ",part=\"index metadata.namespace\"").is_some());
}

/// Nothing but a hook of the user's own can end an informer from within, and then it is seen.
#[tokio::test(start_paused = true)]
async fn a_panic_on_its_tasks_ends_the_informer_for_all_to_see() {
    let server = server("watch: ?a@1 end@1");
    let hook = crate::ProblemHook::new(|_: &crate::Problem| panic!("a hook's own fault"));
    let informer = with(&server, Config { on_problem: Some(hook), ..Config::default() });
    let handler = informer.add_handler(Log::default(), HandlerConfig::default()).unwrap();
    informer.start();
    let error = informer.wait_synced(Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, SyncError::Stopped { .. }));
    assert!(informer.status().stopped && informer.reader().is_closed());
    handler.ended().await;
}

/// Every question of the status while things go wrong: last failure and since when, fallback, relists; and any number of
/// waiters for one sync.
#[tokio::test(start_paused = true)]
async fn status_tells_what_goes_wrong_and_since_when() {
    let server =
        server("422 | list@1: a | watch: wait=10s gone | list@5: a b | watch: wait=5s cut");
    let informer = informer(&server);
    informer.start();
    let waiters = (0..50).map(|_| {
        let informer = informer.clone();
        async move { informer.wait_synced(Duration::from_secs(60)).await.unwrap() }
    });
    futures_util::future::join_all(waiters).await;
    settle().await;
    let status = informer.status();
    assert!(status.synced && status.reflector.fallback && status.reflector.live_since.is_some());
    assert_eq!(status.relists(), 0);
    tokio::time::sleep(Duration::from_secs(13)).await;
    let status = informer.status();
    assert_eq!((status.relists(), status.objects), (1, 2));
    let last = status.reflector.last_failure.unwrap();
    assert!(
        last.failure.status().is_some_and(Status::is_expired) && last.at.elapsed().as_secs() < 5
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    let status = informer.status();
    assert!(status.reflector.live_since.is_none() && status.synced);
    assert!(status.reflector.failing.is_some_and(|failing| failing.since.elapsed().as_secs() < 20));
}
