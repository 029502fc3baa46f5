//! Limits, status and metrics.

use std::sync::Arc;

use expect_test::expect;
use kubestrata_telemetry::Memory;

use super::{Run, check_with, seconds};
use crate::{Config, Metrics, Phase};

#[tokio::test(start_paused = true)]
async fn selectors_are_on_every_request() {
    let config = Config {
        labels: "app=web".parse().unwrap(),
        fields: "spec.nodeName=n1".parse().unwrap(),
        ..Config::default()
    };
    check_with(config, "422 | list@5: a more | list@5: b | watch:", 5, expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks labels=app=web fields=spec.nodeName=n1
        0.000 ! streaming list: scripted (Invalid, HTTP 422); fall back to a plain list
        0.000 > list rv="0" limit=500 labels=app=web fields=spec.nodeName=n1
        0.000 > list rv="" limit=500 continue=token labels=app=web fields=spec.nodeName=n1
        0.000 replace@5: a@5 b@5
        0.000 > watch rv="5" bookmarks labels=app=web fields=spec.nodeName=n1
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_size_holds_at_every_version() {
    let config = Config { streaming: false, page_size: Some(2), ..Config::default() };
    check_with(
        config,
        "list@5: a | watch: gone | list@5: a | watch:",
        5,
        expect![[r#"
            0.000 > list rv="0" limit=2
            0.000 replace@5: a@5
            0.000 > watch rv="5" bookmarks
            0.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            1.397 > list rv="5" match=NotOlderThan limit=2
            1.397 replace@5: a@5
            1.397 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// A relist has no limit, which would pass by the server's cache; but a server that pages at version "0" has no cache for
/// it, and there relists are paged too: see `t10_pages` (client-go `paginatedResult`).
#[tokio::test(start_paused = true)]
async fn relists_without_version_zero_are_whole_unless_the_first_was_paged() {
    let config = Config { streaming: false, ..Config::default() };
    check_with(
        config,
        "list@5: a | watch: gone | list@5: a | watch:",
        5,
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@5: a@5
            0.000 > watch rv="5" bookmarks
            0.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            1.397 > list rv="5"
            1.397 replace@5: a@5
            1.397 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// The delay grows through an outage, and is small again only after a watch has lived for two minutes.
#[tokio::test(start_paused = true)]
async fn l07_delays_reset_after_a_healthy_stay_only() {
    let config = Config { streaming: false, ..Config::default() };
    let outage = "500 | ".repeat(9);
    check_with(
        config,
        &format!("{outage} list@5: a | watch: wait=100s 500 | list@5: a | watch: wait=130s 500 | list@5: a | watch:"),
        900,
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 ! list: scripted (InternalError, HTTP 500); relist after 1.25324926s
            1.254 > list rv="0" limit=500
            1.254 ! list: scripted (InternalError, HTTP 500); relist after 2.793250812s
            4.048 > list rv="0" limit=500
            4.048 ! list: scripted (InternalError, HTTP 500); relist after 6.307208811s
            10.356 > list rv="0" limit=500
            10.356 ! list: scripted (InternalError, HTTP 500); relist after 9.243898989s
            19.600 > list rv="0" limit=500
            19.600 ! list: scripted (InternalError, HTTP 500); relist after 18.486588171s
            38.087 > list rv="0" limit=500
            38.087 ! list: scripted (InternalError, HTTP 500); relist after 45.130096433s
            83.218 > list rv="0" limit=500
            83.218 ! list: scripted (InternalError, HTTP 500); relist after 56.320460603s
            139.539 > list rv="0" limit=500
            139.539 ! list: scripted (InternalError, HTTP 500); relist after 45.692015396s
            185.232 > list rv="0" limit=500
            185.232 ! list: scripted (InternalError, HTTP 500); relist after 38.565260532s
            223.798 > list rv="0" limit=500
            223.798 replace@5: a@5
            223.798 > watch rv="5" bookmarks
            323.798 ! watch: scripted (InternalError, HTTP 500); relist after 42.124265072s
            365.923 > list rv="5"
            365.923 replace@5: a@5
            365.923 > watch rv="5" bookmarks
            495.923 ! watch: scripted (InternalError, HTTP 500); relist after 1.163950326s
            497.087 > list rv="5"
            497.087 replace@5: a@5
            497.087 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_how_it_goes() {
    let memory = Memory::new();
    let config =
        Config { metrics: Metrics::new(&memory, &[("resource", "things")]), ..Config::default() };
    let mut run = Run::new(
        "403 | 403 | watch: +a@3 end@9 ?x@10 wait=60s bookmark@11 wait=60s gone | watch: end@20",
        config,
    );
    run.run(seconds(0)).await;
    let status = run.status();
    assert_eq!((status.phase, status.states), (Phase::Waiting, 0));
    assert_eq!(status.failing.unwrap().count, 2);
    assert!(status.last_failure.unwrap().failure.status().unwrap().is_forbidden());

    run.run(seconds(100)).await;
    let status = run.status();
    assert_eq!((status.phase, status.states), (Phase::Live, 1));
    assert_eq!(status.resource_version, 11.into());
    assert!(status.failing.is_none() && status.last_failure.is_some());
    assert!(status.live_since < status.last_bookmark && status.last_bookmark == status.last_event);
    assert!(!status.fallback);

    run.run(seconds(60)).await;
    assert_eq!((run.status().states, run.status().resource_version), (2, 20.into()));
    expect![[r##"
        # HELP reflector_consistency_checks_total Comparisons of a streamed state with a list, by result.
        reflector_consistency_checks_total{resource="things",result="different"} 0
        reflector_consistency_checks_total{resource="things",result="equal"} 0
        reflector_consistency_checks_total{resource="things",result="unknown"} 0
        # HELP reflector_fallbacks_total Times a plain list was made because a streaming one failed.
        reflector_fallbacks_total{resource="things"} 1
        # HELP reflector_items_per_list Objects that lists brought, plain and streaming ones, well or not.
        reflector_items_per_list_bucket{resource="things",le="0"} 3
        reflector_items_per_list_bucket{resource="things",le="10"} 4
        reflector_items_per_list_bucket{resource="things",le="100"} 4
        reflector_items_per_list_bucket{resource="things",le="1000"} 4
        reflector_items_per_list_bucket{resource="things",le="10000"} 4
        reflector_items_per_list_bucket{resource="things",le="100000"} 4
        reflector_items_per_list_bucket{resource="things",le="1000000"} 4
        reflector_items_per_list_bucket{resource="things",le="+Inf"} 4
        reflector_items_per_list_sum{resource="things"} 1
        reflector_items_per_list_count{resource="things"} 4
        # HELP reflector_items_per_watch Events that accepted watches brought, with those of the streaming lists that they began as.
        reflector_items_per_watch_bucket{resource="things",le="0"} 0
        reflector_items_per_watch_bucket{resource="things",le="10"} 1
        reflector_items_per_watch_bucket{resource="things",le="100"} 1
        reflector_items_per_watch_bucket{resource="things",le="1000"} 1
        reflector_items_per_watch_bucket{resource="things",le="10000"} 1
        reflector_items_per_watch_bucket{resource="things",le="100000"} 1
        reflector_items_per_watch_bucket{resource="things",le="1000000"} 1
        reflector_items_per_watch_bucket{resource="things",le="+Inf"} 1
        reflector_items_per_watch_sum{resource="things"} 4
        reflector_items_per_watch_count{resource="things"} 1
        # HELP reflector_last_resource_version The last 15 digits of the version up to which the consumer has everything.
        reflector_last_resource_version{resource="things"} 20
        # HELP reflector_list_duration_seconds Time that lists took, plain and streaming ones, well or not.
        reflector_list_duration_seconds_bucket{resource="things",le="0.01"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="0.05"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="0.1"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="0.5"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="1"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="5"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="10"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="30"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="60"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="300"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="600"} 4
        reflector_list_duration_seconds_bucket{resource="things",le="+Inf"} 4
        reflector_list_duration_seconds_sum{resource="things"} 0
        reflector_list_duration_seconds_count{resource="things"} 4
        # HELP reflector_lists_total Plain lists begun, without their pages.
        reflector_lists_total{resource="things"} 1
        # HELP reflector_live 1 while a watch follows the state, else 0.
        reflector_live{resource="things"} 1
        # HELP reflector_relists_total Times a live watch was given up, by reason.
        reflector_relists_total{resource="things",reason="broken"} 0
        reflector_relists_total{resource="things",reason="disordered"} 0
        reflector_relists_total{resource="things",reason="expired"} 1
        reflector_relists_total{resource="things",reason="inconsistent"} 0
        reflector_relists_total{resource="things",reason="refused"} 0
        # HELP reflector_rewinds_total Times the server had lost what it had told: new epochs.
        reflector_rewinds_total{resource="things"} 0
        # HELP reflector_short_watches_total Watches that ended within a second without any event.
        reflector_short_watches_total{resource="things"} 0
        # HELP reflector_streaming_lists_total Streaming lists begun.
        reflector_streaming_lists_total{resource="things"} 3
        # HELP reflector_unreadable_total Objects whose head could not be read.
        reflector_unreadable_total{resource="things"} 1
        # HELP reflector_watch_duration_seconds Time that accepted watches lived, with the streaming lists that they began as.
        reflector_watch_duration_seconds_bucket{resource="things",le="0.01"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="0.05"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="0.1"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="0.5"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="1"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="5"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="10"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="30"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="60"} 0
        reflector_watch_duration_seconds_bucket{resource="things",le="300"} 1
        reflector_watch_duration_seconds_bucket{resource="things",le="600"} 1
        reflector_watch_duration_seconds_bucket{resource="things",le="+Inf"} 1
        reflector_watch_duration_seconds_sum{resource="things"} 120
        reflector_watch_duration_seconds_count{resource="things"} 1
        # HELP reflector_watches_total Watches begun, without streaming lists.
        reflector_watches_total{resource="things"} 0
    "##]]
    .assert_eq(&memory.render());
}

/// The consumer decides the pace: what is not asked for is not read.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_ahead() {
    let mut run = Run::new("watch: end@9 +a@10 +b@11 close | watch:", Config::default());
    run.reflector.next().await;
    run.reflector.next().await;
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(run.server.requests().len(), 1);
    assert_eq!(run.server.open_streams(), 1);
    assert_eq!(Arc::strong_count(&run.log), 2);
}
