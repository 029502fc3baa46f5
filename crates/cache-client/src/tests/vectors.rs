//! The vectors C1 to C10.

use kubestrata_api_types::{FieldSelector, FieldTerm, ListPart, ShardField, ShardSelector};
use kubestrata_informer::Selection;
use kubestrata_store_index::{Index, QueryError};

use super::*;

/// Get before start → not-started error.
#[tokio::test(start_paused = true)]
async fn c1_a_read_before_the_start_fails() {
    let (cache, server) = cache(&[&["end@1"]], Config::default());
    let client = CacheClient::new(cache.clone(), server.clone());
    let error = get(&client, "a/x").await.unwrap_err();
    assert!(matches!(cache_error(&error), CacheError::NotStarted));
    // Also of a kind whose informer was asked for before.
    cache.informer(maps());
    let error = get(&client, "a/x").await.unwrap_err();
    assert!(matches!(cache_error(&error), CacheError::NotStarted));
    assert!(server.requests().is_empty());
    cache.start();
    let error = get(&client, "a/x").await.unwrap_err();
    let status = cause_ref::<Status>(&*error).unwrap();
    assert_eq!((status.code, status.message.as_str()), (404, "configmaps \"x\" not found"));
    let details = status.details.as_ref().unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("x", "configmaps"));
}

/// Started, unsynced → timeout error, which tells why.
#[tokio::test(start_paused = true)]
async fn c2_a_read_waits_for_the_sync_for_a_bounded_time() {
    let forbidden = Status::failure(403, "Forbidden", "configmaps is forbidden");
    let server = Scripted::<Encoded>::by(move |_| Reply::Status(forbidden.clone()).into());
    let factory = InformerFactory::new(Arc::new(server.clone()), Default::default());
    let config = Config { sync_timeout: Duration::from_secs(50), ..Config::default() };
    let cache = Cache::new(factory, config);
    cache.start();
    let client = CacheClient::new(cache, server);
    let (took, error) = timed(get(&client, "a/x")).await;
    let error = error.unwrap_err();
    assert_eq!(took, 50_000);
    assert!(matches!(cache_error(&error), CacheError::NotSynced { .. }));
    assert!(cause_ref::<Status>(&*error).unwrap().is_forbidden(), "the cause shows");
    // The caller's own limit works as well.
    let within = tokio::time::timeout(Duration::from_millis(50), get(&client, "a/x")).await;
    assert!(within.is_err());
}

fn indexed(watches: &[&[&str]]) -> CacheClient<Scripted<Encoded>> {
    let (cache, server) = cache(watches, Config::default());
    cache.start();
    let informer = cache.informer(maps());
    informer.add_index(Index::field("data.v".parse().unwrap())).unwrap();
    informer.add_index(Index::field("data.w".parse().unwrap())).unwrap();
    CacheClient::new(cache, server)
}

fn fields(text: &str) -> ListOptions {
    ListOptions { fields: text.parse().unwrap(), ..ListOptions::default() }
}

/// List by a field without index → error; with index in ns → only ns; without ns → all.
#[tokio::test(start_paused = true)]
async fn c3_a_list_by_field_needs_an_index() {
    let client = indexed(&[&["+a/x@1 .v=1", "+a/y@2 .v=2", "+b/x@3 .v=1", "end@3"]]);
    let error = list(&client, "", fields("data.z=1")).await.unwrap_err();
    let error = cause_ref::<QueryError>(&error).unwrap();
    assert_eq!(error.to_string(), "there is no index \"data.z\"");
    assert_eq!(list(&client, "a", fields("data.v=1")).await.unwrap(), "a/x@1");
    assert_eq!(list(&client, "", fields("data.v=1")).await.unwrap(), "a/x@1 b/x@3");
    assert_eq!(list(&client, "", fields("metadata.name=y")).await.unwrap(), "a/y@2");
}

/// Two-term selector = intersection.
#[tokio::test(start_paused = true)]
async fn c4_two_terms_intersect() {
    let client = indexed(&[&["+a/x@1 .v=1 .w=1", "+a/y@2 .v=1 .w=2", "+b/x@3 .v=1", "end@3"]]);
    assert_eq!(list(&client, "", fields("data.v=1,data.w=2")).await.unwrap(), "a/y@2");
    assert_eq!(list(&client, "", fields("data.v=1,data.w=")).await.unwrap(), "b/x@3");
    assert_eq!(list(&client, "b", fields("data.v=1,data.w=2")).await.unwrap(), "");
    let labels = ListOptions { labels: "app=web".parse().unwrap(), ..fields("data.v=1") };
    assert_eq!(list(&client, "", labels).await.unwrap(), "");
}

/// `!=` → error.
#[tokio::test(start_paused = true)]
async fn c5_other_than_equality_is_an_error() {
    let client = indexed(&[&["+a/x@1 .v=1", "end@1"]]);
    let unequal = FieldTerm { field: "data.v".into(), value: "1".into(), equal: false };
    let fields = FieldSelector::everything().and(unequal);
    let error = list(&client, "", ListOptions { fields, ..Default::default() }).await.unwrap_err();
    let error = cause_ref::<QueryError>(&error).unwrap();
    assert!(matches!(error, QueryError::NotExact { field } if field == "data.v"));
}

/// Limit 3 of 10 → 3, continue marker set; and the marker leads on.
#[tokio::test(start_paused = true)]
async fn c6_a_limited_list_has_a_next_page() {
    let added: Vec<String> = (0..10).map(|number| format!("+a/m{number}@{}", number + 1)).collect();
    let steps: Vec<&str> = added.iter().map(String::as_str).chain(["end@10"]).collect();
    let (cache, server) = cache(&[&steps], Config::default());
    cache.start();
    let client = CacheClient::new(cache, server.clone());
    let page = |token| {
        let (limit, continue_token) = (Some(3), token);
        let options = ListOptions { limit, continue_token, ..ListOptions::default() };
        let call = send(&client, "a", Operation::List(options));
        async move {
            use futures_util::StreamExt as _;
            let parts: Vec<_> = call.await.unwrap().into_list().unwrap().collect().await;
            let items = parts.iter().filter(|part| matches!(part, Ok(ListPart::Item(_)))).count();
            let Some(Ok(ListPart::Meta(meta))) = parts.into_iter().last() else { panic!() };
            assert_eq!(meta.resource_version, 10.into());
            (items, meta.continue_token)
        }
    };
    let (items, token) = page(None).await;
    assert_eq!((items, token.is_some()), (3, true));
    // The client's own loop over pages gets them all.
    let limit = ListOptions { limit: Some(3), ..ListOptions::default() };
    assert_eq!(list(&client, "a", limit).await.unwrap().split(' ').count(), 10);
    // A page of a list that the server began is the server's.
    let theirs = page(Some("eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ".to_owned()));
    assert!(tokio::time::timeout(Duration::from_secs(1), theirs).await.is_err());
    assert!(server.requests().last().unwrap().contains("continue=eyJ2"));
}

/// Mutate a returned object → cache unchanged.
#[tokio::test(start_paused = true)]
async fn c7_a_returned_object_is_the_callers() {
    let (client, _) = client(&[&["+a/x@1 .v=1", "end@1"]], vec![]);
    let mut read = client.get::<ConfigMap>(&"a/x".parse().unwrap()).await.unwrap();
    read.data.as_mut().unwrap().insert("v".into(), "changed".into());
    let lister = client.cache().lister::<ConfigMap>().unwrap();
    let mut shared = lister.get(&"a/x".parse().unwrap()).unwrap().unwrap();
    Arc::make_mut(&mut shared).data = None;
    let again = client.get::<ConfigMap>(&"a/x".parse().unwrap()).await.unwrap();
    assert_eq!(again.data.as_ref().unwrap()["v"], "1");
}

/// RYW: delayed watch 500 ms; Update then Get → waits and returns new; Get of another key not delayed; List delayed;
/// concurrent later write does not prolong.
#[tokio::test(start_paused = true)]
async fn c8_a_get_shows_the_own_update() {
    let steps = [
        "+a/x@1",
        "+a/y@2",
        "+b/z@3",
        "end@3",
        "wait=500",
        "~a/x@10 .v=new",
        "wait=500",
        "~a/x@20",
    ];
    let (client, _) = client(&[&steps], vec![object("a/x@10 .v=new"), slow(400, object("a/x@20"))]);
    assert_eq!(version(&get(&client, "a/x").await.unwrap()), "1");
    let (took, answer) = timed(send(&client, "a", update("a/x@1 .v=new"))).await;
    assert!(answer.is_ok() && took == 0, "a write does not wait for the cache");
    let others = async {
        let (took, read) = timed(get(&client, "a/y")).await;
        assert_eq!((took, version(&read.unwrap()).as_str()), (0, "2"));
        let (took, read) = timed(list(&client, "b", ListOptions::default())).await;
        assert_eq!((took, read.unwrap().as_str()), (0, "b/z@3"));
    };
    let key = "a/x".parse().unwrap();
    let error = client.check(ConfigMap::resource(), &key).unwrap_err();
    assert!(error.is_stale(), "asking does not wait");
    let later = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        send(&client, "a", update("a/x@10")).await.unwrap();
    };
    let (get, list, (), ()) = tokio::join!(
        timed(get(&client, "a/x")),
        timed(list(&client, "a", ListOptions::default())),
        others,
        later,
    );
    assert_eq!((get.0, version(&get.1.unwrap()).as_str()), (500, "10"));
    assert_eq!((list.0, list.1.unwrap().as_str()), (500, "a/x@10 a/y@2"));
    client.check(ConfigMap::resource(), &key).unwrap_err();
    let (took, read) = timed(super::get(&client, "a/x")).await;
    assert_eq!((took, version(&read.unwrap()).as_str()), (500, "20"));
    client.check(ConfigMap::resource(), &key).unwrap();
    assert_eq!(client.tracked(), 0, "what the cache has is not remembered");
}

/// RYW delete: a List after Delete lacks it, at once, also where the watch lags and where it brings the object once more.
#[tokio::test(start_paused = true)]
async fn c9_a_deleted_object_is_not_shown() {
    let steps = [
        "+a/x@1", "+a/y@2", "end@2", "wait=500", "~a/x@5", "wait=500", "-a/x@9", "wait=500",
        "+a/x@12",
    ];
    let (client, live) = client(&[&steps], vec![gone("uid-a/x")]);
    assert_eq!(list(&client, "a", ListOptions::default()).await.unwrap(), "a/x@1 a/y@2");
    send(&client, "a", delete("x")).await.unwrap();
    for _ in 0..3 {
        let (took, read) = timed(list(&client, "a", ListOptions::default())).await;
        assert_eq!((took, read.unwrap().as_str()), (0, "a/y@2"));
        let error = get(&client, "a/x").await.unwrap_err();
        assert!(cause_ref::<Status>(&*error).unwrap().is_not_found());
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(live.requests(), ["delete a/x"]);
    // Another client sees the cache as it is.
    let other = client.clone().without_read_your_writes();
    assert!(list(&other, "a", ListOptions::default()).await.unwrap().len() >= 5);
}

/// RYW with an object outside the selector: bounded failure with a clear error.
#[tokio::test(start_paused = true)]
async fn c10_a_write_outside_the_selector_is_not_waited_for() {
    let (cache, _) =
        cache(&[&["+a/x@1 app=web", "end@1", "wait=500", "-a/x@20 app=web"]], Config::default());
    cache.informer(Selection::from(maps()).labels("app=web".parse().unwrap()));
    cache.start();
    let live = Scripted::new([object("a/new@10 app=db"), object("a/x@20 app=db")]);
    let client = CacheClient::new(cache, live).read_your_writes();
    assert_eq!(list(&client, "a", ListOptions::default()).await.unwrap(), "a/x@1");
    send(&client, "a", create("a/new@0 app=db")).await.unwrap();
    let (took, read) = timed(get(&client, "a/new")).await;
    let error = read.unwrap_err();
    assert_eq!(took, 0);
    assert!(matches!(cache_error(&error), CacheError::NotSelected { .. }));
    let text = "object a/new was written by this client, and the cache does not select it";
    assert_eq!(error.to_string(), text);
    // A list of the kind is not held up by it, now or later.
    let (took, read) = timed(list(&client, "a", ListOptions::default())).await;
    assert_eq!((took, read.unwrap().as_str()), (0, "a/x@1"));
    // A write that takes an object out of the selection is waited for: its event will come.
    send(&client, "a", update("a/x@1 app=db")).await.unwrap();
    let (took, read) = timed(list(&client, "a", ListOptions::default())).await;
    assert_eq!((took, read.unwrap().as_str()), (500, ""));
    let error = get(&client, "a/x").await.unwrap_err();
    assert!(matches!(cache_error(&error), CacheError::NotSelected { .. }));
}

/// The same for an object of another shard: it never comes, and is not waited for.
#[tokio::test(start_paused = true)]
async fn a_write_outside_the_shard_is_not_waited_for() {
    let shard = |index| ShardSelector::part(ShardField::Uid, index, 2).unwrap();
    let texts: Vec<String> = (0..20).map(|n| format!("a/{n}-s-{n}@{}", 10 + n)).collect();
    let (inside, outside): (Vec<_>, Vec<_>) =
        texts.iter().partition(|text| shard(0).matches(&map(text)));
    let (inside, outside) = (inside[0].as_str(), outside[0].as_str());
    let (cache, _) = cache(&[&["end@1", "wait=500", &format!("+{inside}")]], Config::default());
    cache.informer(Selection::from(maps()).shard(shard(0)));
    cache.start();
    let live = Scripted::new([object(outside), object(inside)]);
    let client = CacheClient::new(cache, live).read_your_writes();
    assert_eq!(list(&client, "a", ListOptions::default()).await.unwrap(), "");
    send(&client, "a", create(outside)).await.unwrap();
    let key = |text: &str| text.split('@').next().unwrap().to_owned();
    let (took, read) = timed(get(&client, &key(outside))).await;
    assert!(matches!(cache_error(&read.unwrap_err()), CacheError::NotSelected { .. }));
    assert_eq!(took, 0);
    // What is of the shard is waited for.
    send(&client, "a", create(inside)).await.unwrap();
    let (took, read) = timed(get(&client, &key(inside))).await;
    let read = read.unwrap();
    assert_eq!((took, format!("{}@{}", read.key(), version(&read)).as_str()), (500, inside));
}
