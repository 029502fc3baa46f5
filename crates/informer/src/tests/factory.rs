//! What a factory takes for the same.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{ShardField, ShardSelector};
use kubestrata_testkit::{Thing, things};

use super::{server, settle, stored};
use crate::{Config, InformerFactory, Selection};

/// KEP-5866: who asks for the same shard shares an informer, and two shards, or a shard and all objects, never do. Together
/// the shards hold every object once, also of a server that does not know shards.
#[tokio::test(start_paused = true)]
async fn a_factory_shares_by_shard() {
    let part = |index| ShardSelector::part(ShardField::Uid, index, 2).unwrap();
    let names: Vec<String> = (0..8).map(|n| format!("{n}-k-{n}{n}")).collect();
    let of_part = |index| {
        let of = names.iter().filter(|name| part(index).matches(&Thing::new(name, 1)));
        of.map(|name| format!("{name}@1")).collect::<Vec<_>>().join(" ")
    };
    let adds: String = names.iter().map(|name| format!("+{name}@1 ")).collect();
    let server = server(&format!("watch: {adds} end@1 |").repeat(3));
    let mut config = Config::default();
    // The selection alone decides, also where it says nothing.
    config.reflector.shard = Some(part(1));
    let factory = InformerFactory::new(Arc::new(server.clone()), config);
    factory.start();
    let shard = |index| Selection::from(things()).shard(part(index));
    let (first, again) = (factory.informer(shard(0)), factory.informer(shard(0)));
    let second = factory.informer_with(shard(1), |mut config| {
        config.reflector.shard = None;
        config
    });
    let all = factory.informer(things());
    for informer in [&first, &again, &second, &all] {
        informer.wait_synced(Duration::from_secs(5)).await.unwrap();
    }
    settle().await;
    assert_eq!(factory.informers().len(), 3);
    expect_test::expect![[r#"
        watch rv="" match=NotOlderThan initial bookmarks shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
        watch rv="" match=NotOlderThan initial bookmarks shard=shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')
        watch rv="" match=NotOlderThan initial bookmarks"#]]
    .assert_eq(&server.requests().join("\n"));
    assert!(!of_part(0).is_empty() && !of_part(1).is_empty());
    assert_eq!(stored(&first), of_part(0));
    assert_eq!(stored(&again), of_part(0));
    assert_eq!(stored(&second), of_part(1));
    assert_eq!(all.reader().len(), names.len());
    drop((first, again));
    settle().await;
    assert!(factory.get(&shard(0)).is_none() && factory.get(&shard(1)).is_some());
}

/// What one informer has found out of a resource, the others of its factory need not try, for as long as it counts; another
/// factory does.
#[tokio::test(start_paused = true)]
async fn a_factory_remembers_which_kinds_do_not_stream() {
    let server = server(
        "422 | list@1: n/a | watch: wait=200s | list@1: m/b | watch: wait=200s | watch: +k/c@1 end@1 \
         | watch: end@1",
    );
    let source = Arc::new(server.clone());
    let mut config = Config::default();
    config.reflector.fallback_for = Duration::from_secs(60);
    let factory = InformerFactory::new(source.clone(), config);
    factory.start();
    let in_namespace = |name| factory.informer(things().in_namespace(name));
    let first = in_namespace("n");
    settle().await;
    let second = in_namespace("m");
    settle().await;
    assert_eq!((stored(&first).as_str(), stored(&second).as_str()), ("n/a@1", "m/b@1"));
    assert!(first.status().reflector.fallback && second.status().reflector.fallback);
    tokio::time::sleep(Duration::from_secs(59)).await;
    let third = in_namespace("k");
    settle().await;
    assert!(third.has_synced() && !third.status().reflector.fallback, "it is over");
    let other = InformerFactory::new(source, Config::default()).informer(things());
    other.start();
    settle().await;
    expect_test::expect![[r#"
        watch rv="" match=NotOlderThan initial bookmarks
        list rv="0" limit=500
        watch rv="1" bookmarks
        list rv="0" limit=500
        watch rv="1" bookmarks
        watch rv="" match=NotOlderThan initial bookmarks
        watch rv="" match=NotOlderThan initial bookmarks"#]]
    .assert_eq(&server.requests().join("\n"));
}
