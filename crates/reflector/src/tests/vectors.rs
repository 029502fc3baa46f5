//! The vectors T1 to T17 of a reflector.

use std::time::Duration;

use expect_test::expect;
use kubestrata_api_types::{
    Event, Object as _, Operation, Status, StatusCause, StatusDetails, Unreadable, WatchOptions,
};
use kubestrata_testkit::{FakeWorld, Reply, Scripted, Thing, WatchStep, show_update, things};

use super::{Run, check, check_plain, check_with, seconds};
use crate::{Config, Reflector};

/// The first requests are the query of a streaming list; no plain list follows, and the stream goes on.
#[tokio::test(start_paused = true)]
async fn t01_first_requests() {
    check(
        "watch: +a@3 +b@7 +c@5 end@9 ~a@10 wait=60s bookmark@12",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3 b@7 c@5
            0.000 ~a@10
            60.000 bookmark@12
        "#]],
    )
    .await;
    let mut run = Run::new("watch: +a@3 end@9", Config::default());
    run.run(seconds(1)).await;
    let (_, request) = run.server.recorded().remove(0);
    let Operation::Watch(WatchOptions { timeout, .. }) = request.operation else { panic!() };
    assert!((seconds(300)..seconds(600)).contains(&timeout.unwrap()));
    assert_eq!(run.status().resource_version, 9.into());
}

/// Cut within the initial events: the next try has no version, and nothing was told.
#[tokio::test(start_paused = true)]
async fn t02_cut_before_the_end_bookmark() {
    check("watch: +a@3 +b@7 wait=2s close | watch: +b@7 end@9", expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks
        2.000 ! streaming list: the streaming list ended without its end bookmark, after 2 events; retry after 1.396625406s
        3.397 > watch rv="" match=NotOlderThan initial bookmarks
        3.397 replace@9: b@7
    "#]]).await;
}

/// Refused streaming list: one plain list, its watch, and the refusal is remembered for a while.
#[tokio::test(start_paused = true)]
async fn t03_streaming_list_refused() {
    check_with(
        Config::default(),
        "422 | list@5: a | watch: gone | list@7: a@6 | watch: wait=300s close | watch: wait=310s ~a@8 gone | watch: +a@8 end@9",
        900,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 ! streaming list: scripted (Invalid, HTTP 422); fall back to a plain list
            0.000 > list rv="0" limit=500
            0.000 replace@5: a@5
            0.000 > watch rv="5" bookmarks
            0.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.576802203s
            1.577 > list rv="5"
            1.577 replace@7: a@6
            1.577 > watch rv="7" bookmarks
            301.577 > watch rv="7" bookmarks
            611.577 ~a@8
            611.577 ! watch: too old resource version (Gone, HTTP 410); relist after 1.410315514s
            612.988 > watch rv="8" match=NotOlderThan initial bookmarks
            612.988 replace@9: a@8
        "#]],
    )
    .await;
}

/// Throttled streaming list: two growing delays, no plain list.
#[tokio::test(start_paused = true)]
async fn t04_streaming_list_throttled() {
    check(
        "429 | 429 | watch: +a@3 end@9",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 1.396625406s
            1.397 > watch rv="" match=NotOlderThan initial bookmarks
            1.397 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 2.310974747s
            3.708 > watch rv="" match=NotOlderThan initial bookmarks
            3.708 replace@9: a@3
        "#]],
    )
    .await;
    let (first, second) = gaps("429 | 429 | watch: +a@3 end@9").await;
    assert!((0.8..1.6).contains(&first) && (1.6..3.2).contains(&second), "{first} {second}");
}

async fn gaps(script: &str) -> (f64, f64) {
    let mut run = Run::new(script, Config::default());
    run.run(seconds(30)).await;
    let at: Vec<_> = run.server.recorded().iter().map(|(at, _)| at.as_secs_f64()).collect();
    (at[1] - at[0], at[2] - at[1])
}

/// A live watch that ends as it should: opened again at once from the last version, no list.
#[tokio::test(start_paused = true)]
async fn t05_clean_end_reopens_at_once() {
    check(
        "watch: +a@3 end@9 ~a@10 wait=300s close | watch: ~a@11",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            0.000 ~a@10
            300.000 > watch rv="10" bookmarks
            300.000 ~a@11
        "#]],
    )
    .await;
}

/// 410 on a live watch: relist at the last version; refused too: without version, at once.
#[tokio::test(start_paused = true)]
async fn t06_expired_twice() {
    check(
        "watch: +a@3 end@9 wait=5s gone | gone | watch: +a@12 end@15",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            5.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            6.397 > watch rv="9" match=NotOlderThan initial bookmarks
            6.397 ! streaming list: too old resource version (Gone, HTTP 410); ask for the latest
            6.397 > watch rv="" match=NotOlderThan initial bookmarks
            6.397 replace@15: a@12
        "#]],
    )
    .await;
    check_plain(
        "list@9: a@3 | watch: wait=5s expired | gone | list@15: a@12 | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@9: a@3
            0.000 > watch rv="9" bookmarks
            5.000 ! watch: too old resource version (Expired, HTTP 410); relist after 1.396625406s
            6.397 > list rv="9"
            6.397 ! list: too old resource version (Gone, HTTP 410); ask for the latest
            6.397 > list rv=""
            6.397 replace@15: a@12
            6.397 > watch rv="15" bookmarks
        "#]],
    )
    .await;
}

/// Connection refused three times while live: the same version each time, growing delay, no list.
#[tokio::test(start_paused = true)]
async fn t07_connection_refused() {
    check(
        "watch: +a@3 end@9 wait=200s close | refused | refused | refused | watch: ~a@11",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            200.000 > watch rv="9" bookmarks
            200.000 ! watch: connection refused; retry after 1.576802203s
            201.577 > watch rv="9" bookmarks
            201.577 ! watch: connection refused; retry after 2.310823521s
            203.888 > watch rv="9" bookmarks
            203.888 ! watch: connection refused; retry after 6.007515798s
            209.896 > watch rv="9" bookmarks
            209.896 ~a@11
        "#]],
    )
    .await;
}

/// Forbidden while live: told once, then a relist after a delay.
#[tokio::test(start_paused = true)]
async fn t08_forbidden() {
    check(
        "watch: +a@3 end@9 wait=200s close | 403 | watch: +a@3 end@12",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            200.000 > watch rv="9" bookmarks
            200.000 ! watch: scripted (Forbidden, HTTP 403); relist after 1.576802203s
            201.577 > watch rv="9" match=NotOlderThan initial bookmarks
            201.577 replace@12: a@3
        "#]],
    )
    .await;
    check_plain(
        "list@9: a@3 | 500 | list@9: a@3 | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@9: a@3
            0.000 > watch rv="9" bookmarks
            0.000 ! watch: scripted (InternalError, HTTP 500); relist after 1.396625406s
            1.397 > list rv="9"
            1.397 replace@9: a@3
            1.397 > watch rv="9" bookmarks
        "#]],
    )
    .await;
}

/// Closed within a second without any event: a failure, with a delay.
#[tokio::test(start_paused = true)]
async fn t09_very_short_watch() {
    check_plain("list@9: a@3 | watch: wait=200ms close | list@9: a@3 | watch:", expect![[r#"
        0.000 > list rv="0" limit=500
        0.000 replace@9: a@3
        0.000 > watch rv="9" bookmarks
        0.200 ! watch: very short watch: it ended after 200ms without any event; relist after 1.396625406s
        1.597 > list rv="9"
        1.597 replace@9: a@3
        1.597 > watch rv="9" bookmarks
    "#]])
        .await;
}

/// Pages: later ones have a token and no version, and the version is the first page's.
#[tokio::test(start_paused = true)]
async fn t10_pages() {
    check_plain(
        "list@10: a more | list@10: b more | list@10: c | watch: wait=5s gone | list@12: a | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 > list rv="" limit=500 continue=token
            0.000 > list rv="" limit=500 continue=token2
            0.000 replace@10: a@10 b@10 c@10
            0.000 > watch rv="10" bookmarks
            5.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            6.397 > list rv="10" match=NotOlderThan limit=500
            6.397 replace@12: a@12
            6.397 > watch rv="12" bookmarks
        "#]],
    )
    .await;
}

/// A page that has expired: one list of everything, at the first version, without limit.
#[tokio::test(start_paused = true)]
async fn t11_page_expired() {
    check_plain(
        "list@10: a b more | expired | list@11: a b c | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 > list rv="" limit=500 continue=token
            0.000 ! list: too old resource version (Expired, HTTP 410); list without pages
            0.000 > list rv="0"
            0.000 replace@11: a@11 b@11 c@11
            0.000 > watch rv="11" bookmarks
        "#]],
    )
    .await;
}

/// A version from the future, in each of the three shapes that servers had: at once again without version.
#[tokio::test(start_paused = true)]
async fn t12_too_large_in_three_shapes() {
    let text = "Too large resource version";
    let cause = |reason: &str, message: &str| Status {
        details: Some(StatusDetails {
            causes: vec![StatusCause {
                reason: reason.into(),
                message: message.into(),
                ..StatusCause::default()
            }],
            ..StatusDetails::default()
        }),
        ..Status::failure(504, "Timeout", "Timeout: wait")
    };
    let shapes = [
        cause("ResourceVersionTooLarge", "x"),
        cause("", text),
        Status::failure(504, "Timeout", format!("{text}: 5, current: 3")),
    ];
    for status in shapes {
        let server = Scripted::<Thing>::new([Reply::Status(status).into()]);
        server.then("list@3: a | watch:").unwrap();
        let config = Config { streaming: false, ..Config::default() };
        let mut reflector = Reflector::new(server.clone(), things(), config);
        reflector.next().await;
        let at: Vec<_> = server.recorded().iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [Duration::ZERO; 2]);
        expect![[r#"
            [
                "list rv=\"0\" limit=500",
                "list rv=\"\" limit=500",
            ]
        "#]]
        .assert_debug_eq(&server.requests());
    }
}

/// An event of a foreign kind, which a decoder gives without version: passed on, and the version stays.
#[tokio::test(start_paused = true)]
async fn t13_foreign_event() {
    check(
        "watch: +a@3 end@9 ?x wait=2s close | watch: ~a@11",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            0.000 ?x@
            2.000 > watch rv="9" bookmarks
            2.000 ~a@11
        "#]],
    )
    .await;
}

/// An object that cannot be read, in a watch, a list and a streaming list: it alone is missing, and named.
#[tokio::test(start_paused = true)]
async fn t14_unreadable_object() {
    check(
        "watch: +a@3 ?x@4 end@9 ?x@10 ~a@11 wait=2s close | watch:",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3 ?x@4
            0.000 ?x@10
            0.000 ~a@11
            2.000 > watch rv="11" bookmarks
        "#]],
    )
    .await;
    check_plain(
        "list@5: a ?x@4 b | watch: ?x@6 wait=2s close | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@5: a@5 b@5 ?x@4
            0.000 > watch rv="5" bookmarks
            0.000 ?x@6
            2.000 > watch rv="6" bookmarks
        "#]],
    )
    .await;
}

/// A transform that refuses x, or skips it: only x is missing, by every way of getting a state, and the version goes on.
#[tokio::test(start_paused = true)]
async fn t14_transform_of_one_object_fails() {
    for (refuses, streaming) in [(true, true), (true, false), (false, true), (false, false)] {
        let config = Config { streaming, ..Config::default() };
        let script = if streaming {
            "watch: +a@3 +x@4 end@9 ~x@10 ~a@11 ~x@12 wait=2s close | watch:"
        } else {
            "list@9: a@3 x@4 | watch: ~x@10 ~a@11 ~x@12 wait=2s close | watch:"
        };
        let transform = move |event: Event<Thing>| match event {
            Event::Added(x) | Event::Modified(x) if x.name == "x" && refuses => {
                Event::Unreadable(Unreadable {
                    key: Some(x.key()),
                    resource_version: x.resource_version,
                    problem: "of the test".to_owned(),
                })
            }
            Event::Added(x) | Event::Modified(x) if x.name == "x" => Event::Deleted(x),
            Event::Added(object) => Event::Added(object.labelled("seen", "yes")),
            Event::Modified(object) => Event::Modified(object.labelled("seen", "yes")),
            other => other,
        };
        let server = Scripted::parse(script).unwrap();
        let mut reflector = Reflector::new(server.clone(), things(), config).transform(transform);
        let mut log = Vec::new();
        while let Ok(update) = tokio::time::timeout(seconds(5), reflector.next()).await {
            log.push(show_update(&update));
        }
        let state =
            if refuses { "replace@9: a@3{seen=yes} ?x@4" } else { "replace@9: a@3{seen=yes}" };
        let x = if refuses { "?x" } else { "-x" };
        let expected =
            [state, &format!("{x}@10"), "~a@11{seen=yes}", &format!("{x}@12")].map(str::to_owned);
        assert_eq!(log, expected);
        assert_eq!(server.requests().last().unwrap(), "watch rv=\"12\" bookmarks");
    }
}

/// Timeouts of a thousand watches are in [300, 600) seconds, and not all alike.
#[tokio::test(start_paused = true)]
async fn t15_random_timeouts() {
    let server = Scripted::<Thing>::by(|_| {
        Reply::Watch(vec![WatchStep::Wait(seconds(2)), WatchStep::Close]).into()
    });
    let config = Config {
        world: std::sync::Arc::new(FakeWorld::new(7)),
        streaming_tries: 2000,
        streaming_time: seconds(1_000_000),
        backoff: crate::Backoff { cap: seconds(1), ..Default::default() },
        ..Config::default()
    };
    let mut reflector = Reflector::new(server.clone(), things(), config);
    let _ = tokio::time::timeout(seconds(4000), reflector.next()).await;
    let timeouts: std::collections::BTreeSet<_> = server
        .recorded()
        .iter()
        .map(|(_, request)| match &request.operation {
            Operation::Watch(options) => options.timeout.unwrap(),
            _ => panic!("only watches were asked for"),
        })
        .collect();
    assert!(server.recorded().len() > 1000);
    assert!(timeouts.first() >= Some(&seconds(300)) && timeouts.last() < Some(&seconds(600)));
    assert!(timeouts.len() > 200, "{}", timeouts.len());
    assert!(timeouts.iter().all(|timeout| timeout.subsec_nanos() == 0));
}

/// A bookmark is where the next watch begins.
#[tokio::test(start_paused = true)]
async fn t16_bookmark_then_end() {
    check(
        "watch: +a@3 end@9 bookmark@50 wait=60s close | watch: ~a@51",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            0.000 bookmark@50
            60.000 > watch rv="50" bookmarks
            60.000 ~a@51
        "#]],
    )
    .await;
}

/// No end bookmark: warned each ten seconds, and given up in favour of a plain list after a while.
#[tokio::test(start_paused = true)]
async fn t17_no_end_bookmark_ever() {
    let mut run = Run::new("watch: +a@3 | list@5: a | watch:", Config::default());
    run.run(seconds(9)).await;
    assert!(run.status().waiting_for_end_bookmark.is_none());
    run.run(seconds(60)).await;
    assert!(run.status().waiting_for_end_bookmark.is_some());
    run.run(seconds(20)).await;
    assert!(run.status().waiting_for_end_bookmark.is_none() && run.status().fallback);
    expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks
        75.000 ! streaming list: the streaming list brought nothing new for 75s, and no end bookmark; fall back to a plain list
        75.000 > list rv="0" limit=500
        75.000 replace@5: a@5
        75.000 > watch rv="5" bookmarks
    "#]].assert_eq(&run.text());
    // The streaming list's connection is closed, the watch's is open.
    assert_eq!(run.server.open_streams(), 1);
    drop(run.reflector);
    assert_eq!(run.server.open_streams(), 0);
}
