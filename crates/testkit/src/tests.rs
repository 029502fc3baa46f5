//! Tests of the test doubles.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use futures_util::StreamExt as _;
use kubestrata_api_types::{ListOptions, ListPart, ListWatch as _, WatchOptions, World as _};

use crate::{FakeWorld, Model, Scripted, Thing, show_event, things};

#[test]
fn things_print_as_they_parse() {
    for text in ["a@5", "ns/a@5", "a@5#other", "ns/a@5{app=web,tier=back,.spec.nodeName=n1}"] {
        assert_eq!(text.parse::<Thing>().unwrap().to_string(), text);
    }
    for bad in ["", "a/b/c@5", "a@5{x}", "a@5{x=1"] {
        assert!(bad.parse::<Thing>().is_err(), "{bad}");
    }
}

#[test]
fn scripts_say_what_is_wrong() {
    let problem = |script| Scripted::parse(script).unwrap_err().to_string();
    expect![[r#""+" is no event"#]].assert_eq(&problem("watch: +"));
    expect![[r#""lisst: a" is no answer"#]].assert_eq(&problem("lisst: a"));
    expect![[r#""5" is no duration"#]].assert_eq(&problem("wait=5 hang"));
}

#[tokio::test(start_paused = true)]
async fn answers_come_in_order_and_requests_are_recorded() {
    let server = Scripted::parse(
        "list@5: a more | wait=2s watch: +c@6 ?d@7 wait=300s bookmark@9 gone | refused",
    )
    .unwrap();
    let parts: Vec<_> =
        server.list(&things(), ListOptions::default()).await.unwrap().collect().await;
    assert_eq!(parts.len(), 2);
    let mut watch = server.watch(&things(), Default::default()).await.unwrap();
    let mut log = String::new();
    while let Some(event) = watch.next().await {
        log.push_str(&event.map_or_else(|error| error.to_string(), |event| show_event(&event)));
        log.push('\n');
    }
    assert_eq!(server.open_streams(), 0);
    expect![[r#"
        +c@6
        ?d@7
        bookmark@9
        too old resource version (Gone, HTTP 410)
    "#]]
    .assert_eq(&log);
    let error = server.list(&things(), ListOptions::default()).await.err().unwrap();
    assert_eq!(error.to_string(), "connection refused");
    let late = server.list(&things(), ListOptions::default());
    assert!(tokio::time::timeout(Duration::from_secs(9), late).await.is_err());
    expect![[r#"
        +0.000s list rv=""
        +0.000s watch rv=""
        +302.000s list rv=""
        +302.000s list rv="" (the script has ended)
    "#]]
    .assert_eq(&server.timeline());
}

#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_world() {
    let (a, b) = (FakeWorld::new(7), FakeWorld::new(7));
    assert_eq!((a.random(), a.uid()), (b.random(), b.uid()));
    assert_ne!(a.random(), FakeWorld::new(8).random());
    tokio::time::advance(Duration::from_secs(90)).await;
    assert_eq!(a.wall().to_string(), "2030-01-01T00:01:30Z");
}

/// A restored model has its old versions again, and nobody who watched it before sees more.
#[tokio::test(start_paused = true)]
async fn a_restored_model_goes_back() {
    let model = Model::new(Arc::new(FakeWorld::new(1)));
    model.put(Thing::new("a", 0));
    model.save();
    model.put(Thing::new("b", 0));
    let options = WatchOptions { resource_version: 3.into(), ..Default::default() };
    let mut watch = model.watch(&things(), options.clone()).await.unwrap();
    model.restore();
    assert!(watch.next().await.unwrap().is_err() && watch.next().await.is_none());
    assert!(model.watch(&things(), options).await.is_err(), "a version from the future");
    assert_eq!((model.version(), model.objects().len()), (2.into(), 1));
    assert_eq!(model.put(Thing::new("c", 0)), 3.into());
}

/// A quiet watch has bookmarks, if it wants them; and events come once more by a fault only.
#[tokio::test(start_paused = true)]
async fn the_model_sends_bookmarks_and_repeats() {
    let model = Model::new(Arc::new(FakeWorld::new(1)));
    model.put(Thing::new("a", 0));
    let options =
        WatchOptions { resource_version: 1.into(), allow_bookmarks: true, ..Default::default() };
    let mut watch = model.watch(&things(), options.clone()).await.unwrap();
    let mut log = Vec::new();
    for _ in 0..2 {
        log.push(show_event(&watch.next().await.unwrap().unwrap()));
    }
    assert_eq!(log, ["+a@2#a-2", "bookmark@2"]);
    model.put(Thing::new("a", 0));
    model.set_faults(crate::Faults { repeat: 100, ..Default::default() });
    let mut watch = model.watch(&things(), options).await.unwrap();
    log.clear();
    for _ in 0..3 {
        log.push(show_event(&watch.next().await.unwrap().unwrap()));
    }
    model.set_faults(crate::Faults::default());
    log.push(show_event(&watch.next().await.unwrap().unwrap()));
    assert_eq!(log, ["+a@2#a-2", "+a@2#a-2", "+a@2#a-2", "~a@3#a-2"]);
}

#[tokio::test(start_paused = true)]
async fn the_model_serves_states_changes_and_410() {
    let model = Model::new(Arc::new(FakeWorld::new(1)));
    model.put(Thing::new("a", 0));
    model.put(Thing::new("b", 0));
    let options = WatchOptions {
        send_initial_events: Some(true),
        allow_bookmarks: true,
        ..Default::default()
    };
    let mut watch = model.watch(&things(), options).await.unwrap();
    let mut log = String::new();
    for change in 0..6 {
        match change {
            3 => drop(model.put(Thing::new("a", 0))),
            4 => drop(model.delete(&"b".parse().unwrap())),
            5 => model.compact(),
            _ => {}
        }
        let event = tokio::time::timeout(Duration::from_secs(9), watch.next()).await;
        log.push_str(
            &event.map_or_else(|_| "nothing".into(), |event| show_event(&event.unwrap().unwrap())),
        );
        log.push('\n');
    }
    expect![[r#"
        +a@2#a-2
        +b@3#b-3
        end@3
        ~a@4#a-2
        -b@5#b-3
        nothing
    "#]]
    .assert_eq(&log);
    let old = WatchOptions { resource_version: 4.into(), ..Default::default() };
    let error = model.watch(&things(), old).await.err().unwrap();
    assert_eq!(error.to_string(), "too old resource version (Expired, HTTP 410)");
    let future = ListOptions { resource_version: 9.into(), ..Default::default() };
    assert!(model.list(&things(), future).await.err().unwrap().to_string().contains("Too large"));

    model.put(Thing::new("c", 0));
    let mut options = ListOptions { limit: Some(1), ..Default::default() };
    let page: Vec<_> = model.list(&things(), options.clone()).await.unwrap().collect().await;
    let ListPart::Meta(meta) = page[1].as_ref().unwrap() else { panic!("the metadata comes last") };
    options.continue_token.clone_from(&meta.continue_token);
    model.compact();
    assert!(model.list(&things(), options).await.is_err());
}
