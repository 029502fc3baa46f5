//! Public bugs of other clients on this path, by their numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use expect_test::expect;
use kubestrata_testkit::{FakeWorld, Scripted, things};
use tokio::time::timeout;

use super::{Run, check, check_plain, check_with, seconds};
use crate::{Config, Phase, Reflector};

/// The server sends the objects and closes, again and again, without end bookmark: a bounded number of tries, with
/// delays, then a plain list.
#[tokio::test(start_paused = true)]
async fn kk140890_no_end_bookmark() {
    check(
        "watch: +a@3 wait=2s close | watch: +a@3 wait=2s close | watch: +a@3 wait=2s close | list@5: a | watch:",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            2.000 ! streaming list: the streaming list ended without its end bookmark, after 1 events; retry after 1.396625406s
            3.397 > watch rv="" match=NotOlderThan initial bookmarks
            5.397 ! streaming list: the streaming list ended without its end bookmark, after 1 events; retry after 2.310974747s
            7.708 > watch rv="" match=NotOlderThan initial bookmarks
            9.708 ! streaming list: the streaming list ended without its end bookmark, after 1 events; fall back to a plain list
            9.708 > list rv="0" limit=500
            9.708 replace@5: a@5
            9.708 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// The same with an end after no time and no event: a plain list at once.
#[tokio::test(start_paused = true)]
async fn kk135895_fake_without_bookmarks() {
    check("watch: close | list@5: a | watch:", expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks
        0.000 ! streaming list: very short watch: it ended after 0ns without any event; fall back to a plain list
        0.000 > list rv="0" limit=500
        0.000 replace@5: a@5
        0.000 > watch rv="5" bookmarks
    "#]]).await;
}

/// The server's cache lags, and each streaming list is refused with 429: after some tries a plain list at "0".
#[tokio::test(start_paused = true)]
async fn kk139766_lagging_cache() {
    check(
        "429 | 429 | 429 | list@5: a | watch:",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 1.396625406s
            1.397 > watch rv="" match=NotOlderThan initial bookmarks
            1.397 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 2.310974747s
            3.708 > watch rv="" match=NotOlderThan initial bookmarks
            3.708 ! streaming list: scripted (TooManyRequests, HTTP 429); fall back to a plain list
            3.708 > list rv="0" limit=500
            3.708 replace@5: a@5
            3.708 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// Every error falls back, not only Invalid.
#[tokio::test(start_paused = true)]
async fn kk120984_fallback_on_any_error() {
    for error in ["400", "403", "404", "406", "500", "503", "broken"] {
        let mut run = Run::new(&format!("{error} | list@5: a | watch:"), Config::default());
        run.run(seconds(1)).await;
        assert_eq!(run.status().states, 1, "{error}");
    }
}

/// The end bookmark comes a minute late on a quiet server: waited for.
#[tokio::test(start_paused = true)]
async fn kk122277_late_end_bookmark() {
    check(
        "watch: +a@3 wait=60s end@9",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            60.000 replace@9: a@3
        "#]],
    )
    .await;
}

/// The server was restored to an older state: the version from the future is given up at once.
#[tokio::test(start_paused = true)]
async fn kk107133_server_from_the_past() {
    check(
        "watch: +a@300 end@900 wait=5s gone | toolarge | watch: +a@3 end@9 ~a@10",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@900: a@300
            5.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            6.397 > watch rv="900" match=NotOlderThan initial bookmarks
            6.397 ! streaming list: Timeout: Too large resource version: 9, current: 5 (Timeout, HTTP 504); ask for the latest
            6.397 > watch rv="" match=NotOlderThan initial bookmarks
            6.397 replace@9: a@3
            6.397 ~a@10
        "#]],
    )
    .await;
}

/// 410 at each watch: delays between the rounds, which grow.
#[tokio::test(start_paused = true)]
async fn kk129266_watch_always_expired() {
    check_plain(
        "list@9: a | watch: gone | list@9: a | watch: gone | list@9: a | gone | gone | list@9: a | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@9: a@9
            0.000 > watch rv="9" bookmarks
            0.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            1.397 > list rv="9"
            1.397 replace@9: a@9
            1.397 > watch rv="9" bookmarks
            1.397 ! watch: too old resource version (Gone, HTTP 410); relist after 2.310974747s
            3.708 > list rv="9"
            3.708 replace@9: a@9
            3.708 > watch rv="9" bookmarks
            3.708 ! watch: too old resource version (Gone, HTTP 410); relist after 5.641262054s
            9.350 > list rv="9"
            9.350 ! list: too old resource version (Gone, HTTP 410); ask for the latest
            9.350 > list rv=""
            9.350 replace@9: a@9
            9.350 > watch rv="9" bookmarks
        "#]],
    )
    .await;
}

/// A token expires on the third page: what came is thrown away, and one list of everything at the first version follows.
#[tokio::test(start_paused = true)]
async fn a_late_page_expires() {
    check_plain(
        "list@10: a more | list@10: b more | expired | list@11: a c | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 > list rv="" limit=500 continue=token
            0.000 > list rv="" limit=500 continue=token2
            0.000 ! list: too old resource version (Expired, HTTP 410); list without pages
            0.000 > list rv="0"
            0.000 replace@11: a@11 c@11
            0.000 > watch rv="11" bookmarks
        "#]],
    )
    .await;
    // That one expires too: the most recent state. `Gone` is not about the token.
    check_plain(
        "list@10: a more | expired | expired | list@12: a | watch: wait=2s gone | list@12: a more | gone | list@13: a | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 > list rv="" limit=500 continue=token
            0.000 ! list: too old resource version (Expired, HTTP 410); list without pages
            0.000 > list rv="0"
            0.000 ! list: too old resource version (Expired, HTTP 410); ask for the latest
            0.000 > list rv=""
            0.000 replace@12: a@12
            0.000 > watch rv="12" bookmarks
            2.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            3.397 > list rv="12"
            3.397 > list rv="" continue=token
            3.397 ! list: too old resource version (Gone, HTTP 410); ask for the latest
            3.397 > list rv=""
            3.397 replace@13: a@13
            3.397 > watch rv="13" bookmarks
        "#]],
    )
    .await;
}

/// 410 as the status of the answer, not as an event of the stream: the version is not asked for again and again.
#[tokio::test(start_paused = true)]
async fn l03_expired_at_the_start_of_a_watch() {
    for expired in ["gone", "expired"] {
        let script = format!("watch: end@9 wait=2s close | {expired} | watch: +a@12 end@15");
        let mut run = Run::new(&script, Config::default());
        run.run(seconds(10)).await;
        assert_eq!(
            run.server.requests(),
            [
                "watch rv=\"\" match=NotOlderThan initial bookmarks",
                "watch rv=\"9\" bookmarks",
                "watch rv=\"9\" match=NotOlderThan initial bookmarks",
            ]
        );
        assert_eq!(run.status().states, 2);
    }
}

/// Each watch recovers by itself: one that fails pauses no other, and one that is well does not make another's delays short.
#[tokio::test(start_paused = true)]
async fn l05_l06_watches_do_not_share_their_delays() {
    let failing = Scripted::parse(&"500 |".repeat(200)).unwrap();
    let news: String = (0..300).map(|n| format!(" wait=1s ~a@{}", n + 10)).collect();
    let config = |seed| Config { world: Arc::new(FakeWorld::new(seed)), ..Config::default() };
    let mut bad = Reflector::new(failing.clone(), things(), config(1));
    let mut good = Reflector::new(
        Scripted::parse(&format!("watch: end@9{news}")).unwrap(),
        things(),
        config(2),
    );
    let mut told = 0;
    let both = async {
        tokio::select! {
            // The failing one first, so that it could take the other's turn if anything let it.
            biased;
            _ = async { loop { bad.next().await; } } => {}
            () = async { loop { good.next().await; told += 1; } } => {}
        }
    };
    let _ = timeout(seconds(250), both).await;
    assert!(told >= 249, "{told}");
    // A streaming list and a plain one each time.
    let mut at: Vec<_> = failing.recorded().iter().map(|(at, _)| at.as_secs_f64()).collect();
    at.dedup();
    assert!(at.len() < 15, "{at:?}");
    assert!(at[at.len() - 1] - at[at.len() - 2] >= 30.0, "{at:?}");
}

/// A watch that begins without a version has its first ADDED events in no order: a cut then must not resume at one of
/// their versions.
#[tokio::test(start_paused = true)]
async fn kk136583_unordered_events_prove_no_version() {
    check_plain(
        "list: | watch: +a@7 +b@3 wait=2s close | watch: +a@7 +b@3 ~b@8 +c@9 wait=2s close | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@:
            0.000 > watch rv="" bookmarks
            0.000 +a@7
            0.000 +b@3
            2.000 > watch rv="" bookmarks
            2.000 +a@7
            2.000 +b@3
            2.000 ~b@8
            2.000 +c@9
            4.000 > watch rv="9" bookmarks
        "#]],
    )
    .await;
}

/// A timeout of the watch on this side is no failure: opened again, no list.
#[tokio::test(start_paused = true)]
async fn kk89652_own_timeout_is_no_relist() {
    check(
        "watch: +a@3 end@9 wait=60s cut | watch: ~a@10",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            60.000 ! watch: scripted: broken; reopen
            60.000 > watch rv="9" bookmarks
            60.000 ~a@10
        "#]],
    )
    .await;
}

/// The peer vanishes: the watch is given up a little after its timeout, and opened again.
#[tokio::test(start_paused = true)]
async fn kk65012_silent_peer() {
    check_with(
        Config::default(),
        "watch: +a@3 end@9 | watch: ~a@10",
        640,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            499.000 ! watch: the watch outlived its timeout by 30s; reopen
            499.000 > watch rv="9" bookmarks
            499.000 ~a@10
        "#]],
    )
    .await;
}

/// A watch that is never accepted, and a list that brings nothing, are given up too.
#[tokio::test(start_paused = true)]
async fn l04_requests_without_answer_are_given_up() {
    check(
        "watch: end@9 wait=2s close | hang | watch: +a@10",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9:
            2.000 > watch rv="9" bookmarks
            122.000 ! watch: the watch was not accepted within 120s; retry after 1.576802203s
            123.577 > watch rv="9" bookmarks
            123.577 +a@10
        "#]],
    )
    .await;
    check_plain(
        "hang | list@5: a wait=600s b | list@5: a | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            120.000 ! list: the list brought nothing for 120s; relist after 1.25324926s
            121.254 > list rv="0" limit=500
            241.254 ! list: the list brought nothing for 120s; relist after 2.793250812s
            244.048 > list rv="0" limit=500
            244.048 replace@5: a@5
            244.048 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// A server that was put back makes a list at a version of its future wait, and a transport that retries makes it silent.
#[tokio::test(start_paused = true)]
async fn a_list_that_stalls_at_a_version_is_followed_by_one_of_the_latest_state() {
    check_plain(
        "list@9: a@9 | watch: gone | hang | list@5: a@4 | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@9: a@9
            0.000 > watch rv="9" bookmarks
            0.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            1.397 > list rv="9"
            121.397 ! list: the list brought nothing for 120s; relist after 3.153604406s
            124.551 > list rv="" limit=500
            124.551 replace@5: a@4
            124.551 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// The definition of the kind is deleted: 404 for ever, which costs little and is told.
#[tokio::test(start_paused = true)]
async fn kk79610_kind_is_gone() {
    let mut run = Run::new(
        &format!("watch: +a@3 end@9 wait=2s close {}", "| 404".repeat(100)),
        Config::default(),
    );
    run.run(seconds(600)).await;
    let status = run.status();
    assert_eq!(status.phase, Phase::Waiting);
    assert!(status.live_since.is_none());
    assert!(status.last_failure.unwrap().failure.status().unwrap().is_not_found());
    let requests = run.server.requests().len();
    assert!((20..60).contains(&requests), "{requests}");
}

/// A proxy that answers and closes at once, each time with a bookmark: no tight loop.
#[tokio::test(start_paused = true)]
async fn short_watches_with_events_are_slowed_down() {
    let script = format!("watch: end@9 {}", "| watch: bookmark@9 close".repeat(200));
    let mut run = Run::new(&script.replacen("end@9", "end@9 close", 1), Config::default());
    run.run(seconds(60)).await;
    let requests = run.server.requests().len();
    assert!((10..60).contains(&requests), "{requests}");
    assert_eq!(run.status().states, 1);
}

/// A stream that breaks on the same object each time: after one reopening without progress a list gets around it.
#[tokio::test(start_paused = true)]
async fn an_unpassable_event_leads_to_a_list() {
    check(
        "watch: end@9 +a@10 cut | watch: cut | watch: +a@10 +b@11 end@11",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9:
            0.000 +a@10
            0.000 ! watch: scripted: broken; reopen
            0.000 > watch rv="10" bookmarks
            0.000 ! watch: scripted: broken; relist after 1.576802203s
            1.577 > watch rv="10" match=NotOlderThan initial bookmarks
            1.577 replace@11: a@10 b@11
        "#]],
    )
    .await;
}

/// A list that breaks is not delivered in part, nor is one without its metadata.
#[tokio::test(start_paused = true)]
async fn partial_lists_are_not_delivered() {
    check_plain(
        "list@5: a more | list@5: b cut | list@5: a headless | list@5: a b c | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 > list rv="" limit=500 continue=token
            0.000 ! list: scripted: broken; relist after 1.25324926s
            1.254 > list rv="0" limit=500
            1.254 ! list: the list ended without its metadata; relist after 2.793250812s
            4.048 > list rv="0" limit=500
            4.048 replace@5: a@5 b@5 c@5
            4.048 > watch rv="5" bookmarks
        "#]],
    )
    .await;
}

/// A watch that goes back, by a bookmark or by an object: nothing of it is told, and the state is asked for again.
#[tokio::test(start_paused = true)]
async fn versions_never_go_back_within_an_epoch() {
    for late in ["bookmark@10", "~b@10", "-b@10", "?b@10"] {
        let script = format!("watch: end@9 ~a@12 {late} ~a@13 | watch: ~a@12 end@13 ~a@14");
        let mut run = Run::new(&script, Config::default());
        run.run(seconds(5)).await;
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9:
            0.000 ~a@12
            0.000 ! watch: the watch went back from version 12 to version 10; relist after 1.396625406s
            1.397 > watch rv="12" match=NotOlderThan initial bookmarks
            1.397 replace@13: a@12
            1.397 ~a@14
        "#]]
        .assert_eq(&run.text());
        assert_eq!(run.status().epoch, 0);
    }
    // Versions that cannot be compared have no order that could be broken.
    let mut run = Run::new("watch: end@x ~a@y ~a@x ~a@007 ~a@", Config::default());
    run.run(seconds(5)).await;
    assert_eq!(run.text().lines().count(), 6, "{}", run.text());
}

/// A state older than the one asked for is not taken, whoever sends it; the most recent one is, however old.
#[tokio::test(start_paused = true)]
async fn a_lagging_answer_is_not_taken() {
    check(
        "watch: end@9 wait=2s gone | watch: +old@3 end@5 | watch: +new@9 end@9",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9:
            2.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            3.397 > watch rv="9" match=NotOlderThan initial bookmarks
            3.397 ! streaming list: asked for a state not older than version 9, the server gave one of version 5; ask for the latest
            3.397 > watch rv="" match=NotOlderThan initial bookmarks
            3.397 replace@9: new@9
        "#]],
    )
    .await;
    check_plain(
        "list@9: a | watch: wait=2s gone | list@5: old more | list@12: new | watch:",
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 replace@9: a@9
            0.000 > watch rv="9" bookmarks
            2.000 ! watch: too old resource version (Gone, HTTP 410); relist after 1.396625406s
            3.397 > list rv="9"
            3.397 ! list: asked for a state not older than version 9, the server gave one of version 5; ask for the latest
            3.397 > list rv=""
            3.397 replace@12: new@12
            3.397 > watch rv="12" bookmarks
        "#]],
    )
    .await;
}

/// The server has lost what it had told: a new epoch, which the status and the metrics show.
#[tokio::test(start_paused = true)]
async fn a_restored_server_is_a_new_epoch() {
    let mut run = Run::new(
        "watch: +a@300 end@900 wait=5s gone | toolarge | watch: +a@3 end@9 wait=5s ~a@10 wait=5s gone | watch: +a@10 end@12",
        Config::default(),
    );
    run.run(seconds(8)).await;
    assert_eq!((run.status().states, run.status().epoch), (2, 1));
    run.run(seconds(20)).await;
    assert_eq!((run.status().states, run.status().epoch), (3, 1));
}

/// Changes and deletions before the end bookmark are part of the state.
#[tokio::test(start_paused = true)]
async fn l01_changes_before_the_end_bookmark_are_applied() {
    check(
        "watch: +a@3 +b@4 +c@5 -a@6 ~b@7 +d@8 end@9",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: c@5 b@7 d@8
        "#]],
    )
    .await;
}

/// A connection that breaks while a watch is opened costs no list; while a streaming list is, it counts as a try.
#[tokio::test(start_paused = true)]
async fn broken_connections_at_opening() {
    check(
        "watch: end@9 wait=2s close | reset | watch: +a@10",
        expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks
        0.000 replace@9:
        2.000 > watch rv="9" bookmarks
        2.000 ! watch: connection reset; retry after 1.576802203s
        3.577 > watch rv="9" bookmarks
        3.577 +a@10
    "#]],
    )
    .await;
    check(
        "reset | reset | reset | list@5: a | watch:",
        expect![[r#"
        0.000 > watch rv="" match=NotOlderThan initial bookmarks
        0.000 ! streaming list: connection reset; retry after 1.396625406s
        1.397 > watch rv="" match=NotOlderThan initial bookmarks
        1.397 ! streaming list: connection reset; retry after 2.310974747s
        3.708 > watch rv="" match=NotOlderThan initial bookmarks
        3.708 ! streaming list: connection reset; fall back to a plain list
        3.708 > list rv="0" limit=500
        3.708 replace@5: a@5
        3.708 > watch rv="5" bookmarks
    "#]],
    )
    .await;
}

/// A transform sees each object once, and while the state still arrives.
#[tokio::test(start_paused = true)]
async fn kk131799_transform_while_receiving() {
    let seen = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&seen);
    let server = Scripted::parse("watch: +a@3 +b@4 wait=5s +c@5 end@9 ~a@10").unwrap();
    let mut reflector =
        Reflector::new(server, things(), Config::default()).transform(move |event| {
            counter.fetch_add(u32::from(event.object().is_some()), Ordering::Relaxed);
            event
        });
    assert!(timeout(seconds(1), reflector.next()).await.is_err());
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    reflector.next().await;
    reflector.next().await;
    assert_eq!(seen.load(Ordering::Relaxed), 4);
}

/// Many reflectors that lose their server at once do not come back at once.
#[tokio::test(start_paused = true)]
async fn kk138728_reflectors_come_back_apart() {
    let mut back = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let server = Scripted::parse("watch: end@9 wait=5s 500 | watch: end@10").unwrap();
        let config = Config { world: Arc::new(FakeWorld::new(seed)), ..Config::default() };
        let mut reflector = Reflector::new(server.clone(), things(), config);
        let _ = timeout(seconds(60), async {
            reflector.next().await;
            reflector.next().await;
        })
        .await;
        back.insert(server.recorded()[1].0);
    }
    let (first, last) = (back.first().unwrap(), back.last().unwrap());
    assert!(back.len() == 20 && *last - *first > std::time::Duration::from_millis(400));
}
