//! A resource that the server does not have any more, and has again (bug row 12, k/k#79610).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kubestrata_api_types::{Bookmark, Event, Status};
use kubestrata_testkit::{Reply, Scripted, Thing, WatchStep, things};

use super::{Log, server, stored, with};
use crate::{Config, HandlerConfig, Informer, InformerFactory, SyncError, WhenGone};

/// Ten seconds of two objects, then 404 for some minutes, then one other object.
fn comes_and_goes() -> Scripted<Thing> {
    let gone = "| 404 ".repeat(17);
    server(&format!("watch: +a@1 +b@2 end@2 wait=10s close {gone} | watch: +c@9 end@9"))
}

fn following(when_gone: WhenGone) -> (Scripted<Thing>, Informer<Thing>, Log) {
    let server = comes_and_goes();
    let informer = with(&server, Config { when_gone, ..Config::default() });
    let log = Log::default();
    informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    (server, informer, log)
}

/// By default nothing is taken back, the status says since when, and the state follows when the resource is back.
#[tokio::test(start_paused = true)]
async fn k12_a_resource_that_is_gone_is_seen_and_comes_back() {
    let (_server, informer, log) = following(WhenGone::Keep);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let status = informer.status();
    let since = status.gone_since.expect("the server has said so").elapsed();
    assert!(since > Duration::from_secs(45) && since < Duration::from_secs(52), "{since:?}");
    assert!(status.reflector.live_since.is_none() && status.synced);
    assert_eq!(stored(&informer), "a@1 b@2");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((informer.status().gone_since, stored(&informer).as_str()), (None, "c@9"));
    assert_eq!(log.take(), "+a@1! +b@2! -a@1? -b@2? +c@9");
}

/// On demand its objects count as gone after a while, once, and the informer goes on asking.
#[tokio::test(start_paused = true)]
async fn the_objects_of_a_resource_that_is_gone_count_as_gone() {
    let (_server, informer, log) = following(WhenGone::Clear { after: Duration::from_secs(30) });
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(stored(&informer), "a@1 b@2", "not yet");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stored(&informer), "");
    assert_eq!(log.take_sorted(), "+a@1! +b@2! -a@1? -b@2?");
    let version = informer.reader().version();
    assert_eq!((version.epoch, version.version), (0, 2.into()), "the version stays");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((log.take().as_str(), informer.status().gone_since), ("+c@9", None));
}

/// A resource that never was: nothing is synced, and nothing taken back.
#[tokio::test(start_paused = true)]
async fn a_resource_that_never_was_is_no_empty_one() {
    let server = server(&"404 | ".repeat(100));
    let when_gone = WhenGone::Clear { after: Duration::from_secs(30) };
    let informer = with(&server, Config { when_gone, ..Config::default() });
    informer.start();
    let error = informer.wait_synced(Duration::from_secs(300)).await.unwrap_err();
    assert!(matches!(error, SyncError::Timeout { .. }));
    assert!(informer.status().gone_since.is_some() && !informer.has_synced());
}

/// On demand the informer stops: handlers are told what they were to be told, then end; the factory makes a new one.
#[tokio::test(start_paused = true)]
async fn an_informer_may_stop_when_its_resource_is_gone() {
    let served = Arc::new(AtomicBool::new(true));
    let is_served = Arc::clone(&served);
    let server = Scripted::by(move |_| {
        if !is_served.load(Ordering::SeqCst) {
            return Reply::Status(Status::failure(404, "NotFound", "no such resource")).into();
        }
        let end = Bookmark { resource_version: 1.into(), initial_events_end: true };
        Reply::Watch(vec![
            WatchStep::Item(Event::Added("a@1".parse().unwrap())),
            WatchStep::Item(Event::Bookmark(end)),
            WatchStep::Wait(Duration::from_secs(10)),
            WatchStep::Close,
        ])
        .into()
    });
    let when_gone = WhenGone::Stop { after: Duration::from_secs(30) };
    let config = Config { when_gone, ..Config::default() };
    let factory = InformerFactory::new(Arc::new(server.clone()), config);
    factory.start();
    let informer = factory.informer(things());
    let log = Log::default();
    let handler = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    served.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(40)).await;
    handler.ended().await;
    let status = informer.status();
    assert!(status.stopped && status.gone_since.is_some() && informer.reader().is_closed());
    assert!(informer.add_handler(Log::default(), HandlerConfig::default()).is_err());
    assert_eq!((log.take().as_str(), stored(&informer).as_str()), ("+a@1!", "a@1"));
    let asked = server.requests().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.requests().len(), asked, "it asks no more");

    // Its definition is back: whoever knows that asks the factory again.
    served.store(true, Ordering::SeqCst);
    let again = factory.informer(things());
    again.wait_synced(Duration::from_secs(60)).await.unwrap();
    assert_eq!(stored(&again), "a@1");
}
