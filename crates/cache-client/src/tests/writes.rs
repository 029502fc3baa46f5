//! Reading own writes: what the vectors leave open, and the hazards of others.

use kubestrata_api_types::{DeleteOptions, Representation, WriteOptions};

use super::*;

/// A read waits for a write that was on its way when it began, and not for one that began later.
#[tokio::test(start_paused = true)]
async fn a_read_waits_for_writes_that_are_on_their_way() {
    let steps = ["+a/x@1", "end@1", "wait=900", "~a/x@10"];
    let (client, _) = client(&[&steps], vec![slow(300, object("a/x@10"))]);
    get(&client, "a/x").await.unwrap();
    let write = send(&client, "a", update("a/x@1"));
    let read = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (took, read) = timed(get(&client, "a/x")).await;
        // The event comes 900 ms after the sync.
        assert_eq!((took, version(&read.unwrap()).as_str()), (800, "10"));
    };
    let before = timed(get(&client, "a/x"));
    let (write, (), before) = tokio::join!(write, read, before);
    write.unwrap();
    // Joined after the write had begun, it waits as well.
    assert_eq!(before.0, 900);
}

#[tokio::test(start_paused = true)]
async fn creates_are_waited_for_by_key_and_by_list() {
    let steps = ["end@1", "wait=700", "+a/x@10"];
    let (client, _) = client(&[&steps], vec![slow(200, object("a/x@10"))]);
    assert_eq!(list(&client, "a", ListOptions::default()).await.unwrap(), "");
    let (write, get, list) = tokio::join!(
        send(&client, "a", create("a/x@0")),
        timed(get(&client, "a/x")),
        timed(list(&client, "a", ListOptions::default())),
    );
    write.unwrap();
    assert_eq!((get.0, version(&get.1.unwrap()).as_str()), (700, "10"));
    assert_eq!((list.0, list.1.unwrap().as_str()), (700, "a/x@10"));
}

/// Hazard 4: bookmarks count, so a wait on a quiet kind ends.
#[tokio::test(start_paused = true)]
async fn a_bookmark_ends_a_wait() {
    let steps = ["+a/x@1", "end@1", "wait=300", "bookmark@50"];
    let (client, _) = client(&[&steps], vec![object("a/x@40")]);
    get(&client, "a/x").await.unwrap();
    send(&client, "a", update("a/x@1")).await.unwrap();
    let (took, _) = timed(get(&client, "a/x")).await;
    assert_eq!(took, 300);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_bounded_and_says_what_is_missing() {
    let (client, _) = client(&[&["+a/x@1", "end@1"]], vec![object("a/x@40")]);
    get(&client, "a/x").await.unwrap();
    send(&client, "a", update("a/x@1")).await.unwrap();
    let (took, read) = timed(get(&client, "a/x")).await;
    let error = read.unwrap_err();
    assert_eq!(took, 10_000);
    assert!(cache_error(&error).is_stale());
    let source = std::error::Error::source(&*error).unwrap().to_string();
    assert_eq!(source, "the store is at version 1, which is older than 40");
}

/// Hazard 1: one namespace's events say nothing about another's.
#[tokio::test(start_paused = true)]
async fn a_wait_is_on_the_store_that_answers() {
    let namespaces = vec!["a".to_owned(), "b".to_owned()];
    let a: &[&str] = &["+a/x@1", "end@1", "wait=800", "~a/x@10"];
    let b: &[&str] = &["end@99"];
    let (cache, _) = cache(&[a, b], Config { namespaces, ..Config::default() });
    cache.start();
    let live = Scripted::new([object("a/x@10")]);
    let client = CacheClient::new(cache, live).read_your_writes();
    assert_eq!(list(&client, "", ListOptions::default()).await.unwrap(), "a/x@1");
    send(&client, "a", update("a/x@1")).await.unwrap();
    let (all, b, read) = tokio::join!(
        timed(list(&client, "", ListOptions::default())),
        timed(list(&client, "b", ListOptions::default())),
        timed(get(&client, "a/x")),
    );
    assert_eq!((all.0, all.1.unwrap().as_str(), b.0), (800, "a/x@10", 0));
    assert_eq!((read.0, version(&read.1.unwrap()).as_str()), (800, "10"));
    let error = get(&client, "c/x").await.unwrap_err();
    let text = "configmaps of namespace \"c\" are not cached";
    assert_eq!(error.to_string(), text);
}

/// Bug rows 48 and 49: an eviction is no state of the object; a delete of an object that the cache lacks is sent.
#[tokio::test(start_paused = true)]
async fn k48_k49_subresources_and_deletes_go_to_the_server() {
    let answers = vec![object("a/x@99"), gone(""), object("a/x@98")];
    let (client, live) = client(&[&["+a/x@1", "end@1"]], answers);
    let body = Payload::json("{}");
    let eviction = Operation::Create { name: Some("x".into()), body, options: Default::default() };
    let request = ApiRequest::new(maps().in_namespace("a"), eviction).subresource("eviction");
    client.clone().oneshot(request).await.unwrap();
    send(&client, "a", delete("unknown")).await.unwrap();
    let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let Operation::Update { name, body, .. } = update("a/x@1") else { panic!() };
    send(&client, "a", Operation::Update { name, body, options }).await.unwrap();
    assert_eq!(live.requests().len(), 3);
    let (took, read) = timed(get(&client, "a/x")).await;
    assert_eq!((took, version(&read.unwrap()).as_str(), client.tracked()), (0, "1", 0));
}

/// A delete that finalizers hold up is an update.
#[tokio::test(start_paused = true)]
async fn a_held_up_delete_is_waited_for_as_an_update() {
    let json = br#"{"metadata":{"name":"x","namespace":"a","uid":"uid-a/x","resourceVersion":"10",
        "deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}"#;
    let resource = Arc::new(ConfigMap::resource().clone());
    let terminating = Encoded::read(&resource, Format::Json, json, &[]).unwrap();
    let mut steps: Vec<_> = ["+a/x@1", "end@1", "wait=400"].map(step).into();
    steps.push(WatchStep::Item(Event::Modified(terminating.clone())));
    let server = Scripted::new([Reply::Watch(steps).into()]);
    let factory = InformerFactory::new(Arc::new(server), Default::default());
    let cache = Cache::new(factory, Config::default());
    cache.start();
    let live = Scripted::new([Reply::Object(terminating).into()]);
    let client = CacheClient::new(cache, live).read_your_writes();
    get(&client, "a/x").await.unwrap();
    send(&client, "a", delete("x")).await.unwrap();
    let (took, read) = timed(get(&client, "a/x")).await;
    assert_eq!(took, 400);
    assert!(read.unwrap().deletion_timestamp().is_some());
}

/// An object of the same name with another uid is shown, however soon it comes.
#[tokio::test(start_paused = true)]
async fn a_new_object_under_a_deleted_name_is_shown() {
    let other = |version: u64| {
        let json = format!(
            r#"{{"metadata":{{"name":"x","namespace":"a","uid":"two","resourceVersion":"{version}"}}}}"#
        );
        let resource = Arc::new(ConfigMap::resource().clone());
        Encoded::read(&resource, Format::Json, json.as_bytes(), &[]).unwrap()
    };
    let mut steps: Vec<_> = ["+a/x@1", "end@1", "wait=400", "-a/x@9"].map(step).into();
    steps.push(WatchStep::Item(Event::Added(other(10))));
    let server = Scripted::new([Reply::Watch(steps).into()]);
    let factory = InformerFactory::new(Arc::new(server), Default::default());
    let cache = Cache::new(factory, Config::default());
    cache.start();
    let live = Scripted::new([gone("uid-a/x"), Reply::Object(other(10)).into()]);
    let client = CacheClient::new(cache, live).read_your_writes();
    get(&client, "a/x").await.unwrap();
    send(&client, "a", delete("x")).await.unwrap();
    assert!(get(&client, "a/x").await.is_err());
    send(&client, "a", create("a/x@0")).await.unwrap();
    let (took, read) = timed(get(&client, "a/x")).await;
    assert_eq!((took, read.unwrap().uid()), (400, Some("two")));
}

/// A server that went back to an older state: told once, not for ever.
#[tokio::test(start_paused = true)]
async fn a_rewound_server_is_told_once() {
    let server = Scripted::<Encoded>::new([
        Reply::Watch(
            ["+a/x@100", "end@100", "wait=300"]
                .map(step)
                .into_iter()
                .chain([WatchStep::Status(Status::failure(410, "Expired", "too old"))])
                .collect(),
        )
        .into(),
        // Older than asked for, and so not believed before the server says the same of its most recent state.
        watch(&["+a/x@40", "end@50"]),
        watch(&["+a/x@40", "end@50"]),
    ]);
    let factory = InformerFactory::new(Arc::new(server), Default::default());
    let cache = Cache::new(factory, Config::default());
    cache.start();
    let live = Scripted::new([object("a/x@120")]);
    let client = CacheClient::new(cache, live).read_your_writes();
    get(&client, "a/x").await.unwrap();
    send(&client, "a", update("a/x@100")).await.unwrap();
    let error = get(&client, "a/x").await.unwrap_err();
    let CacheError::Stale { error, .. } = cache_error(&error) else { panic!("{error:?}") };
    assert!(matches!(error, kubestrata_store_index::WaitError::Rewound { .. }));
    assert_eq!(version(&get(&client, "a/x").await.unwrap()), "40");
}

/// Beyond the bound the writes of a kind are remembered as one, and reads still show them.
#[tokio::test(start_paused = true)]
async fn the_record_of_writes_is_bounded() {
    let steps = ["end@1", "wait=500", "bookmark@400"];
    let (cache, _) = cache(&[&steps], Config { tracked_writes: 50, ..Config::default() });
    cache.start();
    let live = Scripted::<Encoded>::by(|request| {
        let Operation::Create { body, .. } = &request.operation else { return Reply::Hang.into() };
        let resource = &request.collection.resource;
        let object = Encoded::read(resource, Format::Json, &body.bytes, &[]).unwrap();
        Reply::Object(object).into()
    });
    let client = CacheClient::new(cache, live).read_your_writes();
    list(&client, "a", ListOptions::default()).await.unwrap();
    for number in 0..300 {
        send(&client, "a", create(&format!("a/m{number}@{}", number + 10))).await.unwrap();
        assert!(client.tracked() <= 50);
    }
    let (took, _) = timed(list(&client, "a", ListOptions::default())).await;
    assert_eq!((took, client.tracked()), (500, 0));
}

/// Hazards 5 and 8: writes start no informer, and count for reads in every representation.
#[tokio::test(start_paused = true)]
async fn writes_start_nothing_and_count_for_metadata_reads() {
    let (cache, server) = cache(&[&["+a/x@1", "end@1", "wait=400", "~a/x@10"]], Config::default());
    cache.start();
    let live = Scripted::new([object("a/x@10")]);
    let client = CacheClient::new(cache, live).read_your_writes();
    send(&client, "a", update("a/x@1")).await.unwrap();
    assert!(server.requests().is_empty());
    let mut collection = maps().in_namespace("a");
    collection.representation = Representation::Metadata;
    let operation = Operation::Get { name: "x".into(), options: GetOptions::default() };
    let call = client.clone().oneshot(ApiRequest::new(collection, operation));
    let (took, read) = timed(call).await;
    assert_eq!((took, version(&read.unwrap().into_object().unwrap()).as_str()), (400, "10"));
}

/// A write that is dropped half way holds up nobody.
#[tokio::test(start_paused = true)]
async fn a_cancelled_write_is_forgotten() {
    let (client, _) = client(&[&["+a/x@1", "end@1"]], vec![Reply::Hang.into()]);
    get(&client, "a/x").await.unwrap();
    let write = send(&client, "a", update("a/x@1"));
    assert!(tokio::time::timeout(Duration::from_millis(5), write).await.is_err());
    let (took, read) = timed(get(&client, "a/x")).await;
    assert_eq!((took, read.is_ok(), client.tracked()), (0, true, 0));
}

/// The typed methods work on the cached client as on a transport.
#[tokio::test(start_paused = true)]
async fn typed_methods_read_their_writes() {
    let steps = ["+a/x@1 .v=1", "end@1", "wait=500", "~a/x@10 .v=2"];
    let (client, live) = client(&[&steps], vec![object("a/x@10 .v=2"), gone("uid-a/x")]);
    let key: ObjectKey = "a/x".parse().unwrap();
    let mut read = client.get::<ConfigMap>(&key).await.unwrap();
    read.data.as_mut().unwrap().insert("v".into(), "2".into());
    client.update(&read).await.unwrap();
    let read = client.get::<ConfigMap>(&key).await.unwrap();
    assert_eq!(read.data.as_ref().unwrap()["v"], "2");
    client.delete::<ConfigMap>(&key, DeleteOptions::default()).await.unwrap();
    assert!(client.get_opt::<ConfigMap>(&key).await.unwrap().is_none());
    assert!(client.list::<ConfigMap>(None, ListOptions::default()).await.unwrap().items.is_empty());
    assert_eq!(live.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_table_is_the_servers() {
    let (client, live) = client(&[&["+a/x@1", "end@1"]], vec![object("a/x@1")]);
    // The script has no table to give.
    let table = client.table(maps(), ListOptions::default());
    assert!(tokio::time::timeout(Duration::from_secs(1), table).await.is_err());
    assert_eq!(live.requests().len(), 1);
}
