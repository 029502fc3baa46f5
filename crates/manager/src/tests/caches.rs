//! Which caches a manager makes, and what they ask for.

use std::time::Duration;

use expect_test::expect;
use kubestrata_api_types::{Kind as _, ObjectKey, Representation, ShardField, ShardSelector};
use tokio::time::sleep;

use super::server::{Host, Log, Member, Server, Set, run_for};
use crate::{CacheOptions, Controller, Manager, Watch};

/// Two controllers and a reader share one watch.
#[tokio::test(start_paused = true)]
async fn one_cache_for_each_kind() {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1")]);
    let mut manager = Manager::builder(server.service()).build();
    let (one, two) = (Log::new(), Log::new());
    manager.add(Controller::builder("1").for_kind::<Set>().reconciler(one.clone())).unwrap();
    manager.add(Controller::builder("2").for_kind::<Set>().reconciler(two.clone())).unwrap();
    run_for(manager, 5.0).await.unwrap();
    assert_eq!((one.lines().as_str(), two.lines().as_str()), ("0.0 n/a@1", "0.0 n/a@1"));
    assert_eq!(server.of("sets").requests().len(), 1);
    let request = &server.of("sets").recorded()[0].1;
    assert_eq!(request.collection.prune.len(), 1, "managed fields are cut out by default");
}

#[tokio::test(start_paused = true)]
async fn namespaces_have_a_cache_each_and_cluster_scoped_kinds_one() {
    let server = Server::new(&[
        ("sets", "watch: +n/a@1 end@1 | watch: +m/b@1 end@1"),
        ("hosts", "watch: +h@1 end@1"),
    ]);
    let mut manager = Manager::builder(server.service()).namespaces(["n", "m"]).build();
    let log = Log::new();
    let controller = Controller::builder("c").for_kind::<Set>().watch(Watch::of::<Host>());
    manager.add(controller.reconciler(log.clone())).unwrap();
    run_for(manager, 5.0).await.unwrap();
    let asked = |plural| {
        let requests = server.of(plural).recorded();
        let namespaces = requests.iter().map(|(_, request)| request.collection.namespace.clone());
        namespaces.collect::<Vec<_>>()
    };
    assert_eq!(asked("sets"), [Some("n".into()), Some("m".into())]);
    assert_eq!(asked("hosts"), [None]);
    let mut lines: Vec<_> = log.lines().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["0.0 h@gone", "0.0 m/b@1", "0.0 n/a@1"]);
}

#[tokio::test(start_paused = true)]
async fn options_of_a_kind_reach_the_server() {
    let server = Server::new(&[("sets", "watch: end@1"), ("members", "watch: end@1")]);
    let options = CacheOptions::<Set>::new()
        .keep_managed_fields()
        .labels("a=b".parse().unwrap())
        .fields("c=d".parse().unwrap())
        .shard(ShardSelector::part(ShardField::Uid, 1, 2).unwrap())
        .namespaces(["x"]);
    let mut manager = Manager::builder(server.service()).cache(options).build();
    let controller = Controller::builder("c")
        .for_kind::<Set>()
        .watch(Watch::of::<Member>().metadata_only().owner::<Set>());
    manager.add(controller.reconciler(Log::new())).unwrap();
    run_for(manager, 5.0).await.unwrap();
    let request = &server.of("sets").requests()[0];
    expect![[r#"watch rv="" match=NotOlderThan initial bookmarks shard=shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000') labels=a=b fields=c=d"#]]
        .assert_eq(request);
    let sets = &server.of("sets").recorded()[0].1.collection;
    assert_eq!((sets.namespace.as_deref(), sets.prune.len()), (Some("x"), 0));
    let members = &server.of("members").recorded()[0].1.collection;
    assert_eq!(members.representation, Representation::Metadata);
}

/// A kind that is kept decoded runs through the same watches.
#[tokio::test(start_paused = true)]
async fn a_decoded_kind_is_reconciled_like_any_other() {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1 wait=5s ~n/a@2 wait=5s -n/a@3")]);
    let options = CacheOptions::<Set>::new().decoded();
    let mut manager = Manager::builder(server.service()).cache(options).build();
    let log = Log::new();
    manager.add(Controller::builder("c").for_kind::<Set>().reconciler(log.clone())).unwrap();
    assert!(manager.cache().informers(Set::resource()).is_empty(), "it is not encoded");
    run_for(manager, 20.0).await.unwrap();
    // The log looks into the encoded cache, where it is not.
    expect![[r#"
        0.0 n/a@gone
        5.0 n/a@gone
        10.0 n/a@gone"#]]
    .assert_eq(&log.lines());
}

#[tokio::test(start_paused = true)]
async fn what_is_owned_is_found_by_its_owner() {
    let server = Server::new(&[
        ("sets", "watch: +n/a@1 end@1"),
        ("members", "watch: +n/x@1{.owner=Set:a} +n/y@1{.owner=Set:b} +n/z@1{.owner=Set:a} end@1"),
    ]);
    let mut manager = Manager::builder(server.service()).build();
    let controller = Controller::builder("c").for_kind::<Set>().owns::<Member>();
    manager.add(controller.reconciler(Log::new())).unwrap();
    let members = manager.cache().informers(Member::resource());
    run_for(manager, 5.0).await.unwrap();
    let owned = members[0].reader().by_index(crate::owner_index_name(), "uid-a").unwrap();
    let mut names: Vec<_> = owned.iter().map(kubestrata_api_types::Object::key).collect();
    names.sort();
    assert_eq!(names, [ObjectKey::namespaced("n", "x"), ObjectKey::namespaced("n", "z")]);
}

/// A cache that somebody asks for while the manager runs begins at once.
#[tokio::test(start_paused = true)]
async fn a_late_cache_starts_when_it_is_asked_for() {
    let server = Server::new(&[("sets", "watch: end@1"), ("hosts", "watch: +h@1 end@1")]);
    let mut manager = Manager::builder(server.service()).build();
    manager.add(Controller::builder("c").for_kind::<Set>().reconciler(Log::new())).unwrap();
    let cache = manager.cache().clone();
    let late = async {
        sleep(Duration::from_secs(3)).await;
        let hosts = cache.informers(Host::resource());
        hosts[0].wait_synced(Duration::from_secs(1)).await.unwrap();
        hosts[0].reader().len()
    };
    let (ran, hosts) = tokio::join!(run_for(manager, 10.0), late);
    ran.unwrap();
    assert_eq!(hosts, 1);
}
