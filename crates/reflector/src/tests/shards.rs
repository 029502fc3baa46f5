//! Shards of a collection (KEP-5866).

use expect_test::expect;
use kubestrata_api_types::{ShardField, ShardSelector};
use kubestrata_testkit::Thing;

use super::{Run, check_with, seconds};
use crate::{Config, Consistency};

/// The names whose uid is in the first half of all hashes, as the server counts; the others are in the second.
fn half() -> (ShardSelector, Vec<String>, Vec<String>) {
    let shard = ShardSelector::part(ShardField::Uid, 0, 2).unwrap();
    let names = (0..8).map(|n| format!("{n}-k-{n}{n}"));
    let (inside, outside) = names.partition(|name| shard.matches(&Thing::new(name, 1)));
    (shard, inside, outside)
}

#[tokio::test(start_paused = true)]
async fn the_shard_is_on_every_request() {
    let (shard, ..) = half();
    let config =
        Config { shard: Some(shard), consistency: Consistency::Report, ..Config::default() };
    check_with(
        config,
        "watch: end@9 wait=2s gone | list@9: | 422 | list@9: more | list@9: | watch:",
        5,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
            0.000 replace@9:
            0.000 > list rv="9" match=Exact limit=500 shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
            2.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            3.397 > watch rv="9" match=NotOlderThan initial bookmarks shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
            3.397 ! streaming list: scripted (Invalid, HTTP 422); fall back to a plain list
            3.397 > list rv="9" shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
            3.397 > list rv="" continue=token shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
            3.397 replace@9:
            3.397 > watch rv="9" bookmarks shard=shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
        "#]],
    )
    .await;
}

/// A server that does not know shards sends everything: what is not of the shard is left out of states, events and
/// comparisons, but its versions count; and the status tells.
#[tokio::test(start_paused = true)]
async fn a_server_without_shards() {
    let (shard, inside, outside) = half();
    let (a, b) = (&inside[0], &inside[1]);
    let (x, y) = (&outside[0], &outside[1]);
    let config =
        Config { shard: Some(shard), consistency: Consistency::Report, ..Config::default() };
    for script in [
        format!(
            "watch: +{x}@3 +{a}@4 ~{y}@5 end@9 ~{x}@10 +{b}@11 -{y}@12 wait=60s close | list@9: {x}@3 {a}@4 {y}@5 | watch:"
        ),
        format!(
            "422 | list@9: {x}@3 {a}@4 {y}@5 | watch: ~{x}@10 +{b}@11 -{y}@12 wait=60s close | watch:"
        ),
    ] {
        let mut run = Run::new(&script, config.clone());
        run.run(seconds(70)).await;
        let lines: Vec<_> = run.text().lines().map(str::to_owned).collect();
        assert!(lines.contains(&format!("0.000 replace@9: {a}@4")), "{lines:#?}");
        assert!(lines.contains(&format!("0.000 +{b}@11")), "{lines:#?}");
        assert!(!run.text().contains(&format!("{x}@")) && !run.text().contains(&format!("{y}@")));
        assert!(run.server.requests().last().unwrap().contains("watch rv=\"12\""));
        assert!(run.status().shard_ignored);
        assert_eq!(run.status().resource_version, 12.into(), "the consumer has all up to it");
        let checked = run.status().last_check.map(|last| format!("{:?}", last.found));
        assert_eq!(checked.unwrap_or_else(|| "Equal(1)".into()), "Equal(1)");
    }
}

/// A server that refuses a shard is a failure like any other, with the server's own words.
#[tokio::test(start_paused = true)]
async fn a_shard_that_is_refused() {
    let (shard, ..) = half();
    let config = Config { shard: Some(shard), ..Config::default() };
    let mut run = Run::new(&"400 |".repeat(10), config);
    run.run(seconds(10)).await;
    let status = run.status();
    assert_eq!(status.states, 0);
    let failure = status.last_failure.unwrap().failure;
    assert_eq!(failure.status().unwrap().code, 400);
    assert!(
        failure.error.to_string().contains("with shardRange(object.metadata.uid, '0x0"),
        "{}",
        failure.error
    );
}
