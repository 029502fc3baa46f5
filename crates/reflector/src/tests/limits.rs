//! Bounds: of a state, of tries, of pages, of time.

use expect_test::expect;
use kubestrata_testkit::{Scripted, Thing, things};

use super::{Run, check, check_plain, check_with, seconds};
use crate::{Backoff, Config, Phase, Reflector, ReflectorError};

/// A state of more objects than allowed is given up, by every way of getting it, with growing delays and in sight of the
/// status; it is never delivered in part, and once it is small enough it is delivered.
#[tokio::test(start_paused = true)]
async fn a_state_of_too_many_objects_is_given_up() {
    let config = Config { state_items: 2, ..Config::default() };
    check_with(
        config,
        "watch: +a@3 +b@4 +c@5 | watch: +a@3 ?b@4 ?@5 | watch: +a@3 +b@4 -a@5 +c@6 ~c@7 end@9 +d@10",
        60,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 ! streaming list: the state is larger than allowed: it was given up at 3 objects and 432 bytes; retry after 1.396625406s
            1.397 > watch rv="" match=NotOlderThan initial bookmarks
            1.397 ! streaming list: the state is larger than allowed: it was given up at 3 objects and 144 bytes; retry after 2.310974747s
            3.708 > watch rv="" match=NotOlderThan initial bookmarks
            3.708 replace@9: b@4 c@7
            3.708 +d@10
        "#]],
    )
    .await;
    let config = Config { state_items: 2, streaming: false, ..Config::default() };
    check_with(
        config.clone(),
        "list@5: a b c d | list@5: a more | list@5: b more | list@5: c | list@5: a b | watch: +c@6",
        60,
        expect![[r#"
            0.000 > list rv="0" limit=500
            0.000 ! list: the state is larger than allowed: it was given up at 3 objects and 432 bytes; relist after 1.25324926s
            1.254 > list rv="0" limit=500
            1.254 > list rv="" limit=500 continue=token
            1.254 > list rv="" limit=500 continue=token2
            1.254 ! list: the state is larger than allowed: it was given up at 3 objects and 432 bytes; relist after 2.793250812s
            4.048 > list rv="0" limit=500
            4.048 replace@5: a@5 b@5
            4.048 > watch rv="5" bookmarks
            4.048 +c@6
        "#]],
    )
    .await;

    let mut run = Run::new(&"list@5: a b c | ".repeat(50), config);
    run.run(seconds(600)).await;
    let status = run.status();
    assert_eq!((status.phase, status.states), (Phase::Waiting, 0));
    assert!((15..40).contains(&status.failing.unwrap().count));
    let failure = status.last_failure.unwrap().failure;
    let Some(ReflectorError::StateTooLarge { items: 3, .. }) = failure.finding() else {
        panic!("{failure:?}")
    };
}

/// The same for bytes; what is replaced or deleted does not count.
#[tokio::test(start_paused = true)]
async fn a_state_of_too_many_bytes_is_given_up() {
    let server = Scripted::<Thing>::parse(
        "watch: +a@3{k=0123456789} +b@4{k=0123456789} | list@5: a | watch: \
         | watch: +a@3{k=0123456789} ~a@4{k=x} +b@5{k=0123456789} -b@6 +c@7 end@9",
    )
    .unwrap();
    let config = Config { state_bytes: 30, ..Config::default() };
    let mut reflector = Reflector::new(server.clone(), things(), config).weighed();
    let state = tokio::time::timeout(seconds(60), reflector.next()).await;
    assert!(state.is_err(), "neither the first answer nor what the script has next is a state");
    let status = reflector.status().read();
    let failure = status.last_failure.unwrap().failure;
    let Some(ReflectorError::StateTooLarge { items: 2, bytes: 32..40 }) = failure.finding() else {
        panic!("{failure:?}")
    };
    assert_eq!(server.requests().len(), 2);

    let server = Scripted::<Thing>::parse(
        "watch: +a@3{k=0123456789} ~a@4{k=x} +b@5{k=0123456789} -b@6 +c@7 end@9",
    )
    .unwrap();
    let config = Config { state_bytes: 30, ..Config::default() };
    let mut reflector = Reflector::new(server, things(), config).weighed();
    tokio::time::timeout(seconds(1), reflector.next()).await.unwrap();
}

/// Streaming lists that are tried and tried are given up after a while, even if each of them looks alive.
#[tokio::test(start_paused = true)]
async fn kk138557_streaming_lists_are_bounded_in_time() {
    let config = Config {
        streaming_time: seconds(100),
        streaming_tries: 1000,
        backoff: Backoff { cap: seconds(5), ..Backoff::default() },
        ..Config::default()
    };
    // Something new comes all the time, and the end never does.
    let news: String = (0..100).map(|n| format!(" +k{n}@{} wait=5s", n + 3)).collect();
    check_with(
        config.clone(),
        &format!("watch: wait=30s close | watch:{news} | list@500: a | watch:"),
        300,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            30.000 ! streaming list: the streaming list ended without its end bookmark, after 0 events; retry after 1.396625406s
            31.397 > watch rv="" match=NotOlderThan initial bookmarks
            100.000 ! streaming list: streaming lists gave no state within 100s; fall back to a plain list
            100.000 > list rv="0" limit=500
            100.000 replace@500: a@500
            100.000 > watch rv="500" bookmarks
        "#]],
    )
    .await;
    // Refused by the server each time: the last try is the one after the time.
    let script = format!("{} list@500: a | watch:", "429 |".repeat(16));
    let mut run = Run::new(&script, config.clone());
    run.run(seconds(300)).await;
    assert!(run.text().contains("fall back to a plain list"), "{}", run.text());
    // Time without a server does not count.
    let mut run = Run::new(&format!("{} watch: end@9", "refused |".repeat(40)), config);
    run.run(seconds(400)).await;
    assert!(!run.status().fallback && run.status().states == 1, "{}", run.text());
}

/// Progress is in sight before the state is.
#[tokio::test(start_paused = true)]
async fn progress_is_visible() {
    let mut run = Run::new(
        "watch: +a@3 +b@4 wait=5s +c@5 wait=5s end@9 wait=5s gone | 422 | list@9: a wait=5s b more | list@9: c wait=5s | watch:",
        Config::default(),
    );
    run.run(seconds(1)).await;
    assert_eq!(run.status().gathered, 2);
    run.run(seconds(5)).await;
    assert_eq!(run.status().gathered, 3);
    run.run(seconds(5)).await;
    assert_eq!((run.status().gathered, run.status().states), (0, 1));
    run.run(seconds(7)).await;
    assert_eq!(run.status().gathered, 1);
    run.run(seconds(6)).await;
    assert_eq!(run.status().gathered, 3);
    run.run(seconds(5)).await;
    assert_eq!((run.status().gathered, run.status().states), (0, 2));
}

/// Pages that lead in a circle, at once or after a while.
#[tokio::test(start_paused = true)]
async fn pages_in_a_circle_end() {
    check_plain(
        "list@5: a more=x | list@5: b more=x | list@5: a | watch:",
        expect![[r#"
        0.000 > list rv="0" limit=500
        0.000 > list rv="" limit=500 continue=x
        0.000 ! list: a page of the list leads to itself; relist after 1.25324926s
        1.254 > list rv="0" limit=500
        1.254 replace@5: a@5
        1.254 > watch rv="5" bookmarks
    "#]],
    )
    .await;
    let config = Config { streaming: false, list_pages: 3, ..Config::default() };
    let circle = "list@5: a more=x | list@5: b more=y | list@5: a more=x | ";
    check_with(
        config,
        &format!("{circle} list@5: a | watch:"),
        60,
        expect![[r#"
        0.000 > list rv="0" limit=500
        0.000 > list rv="" limit=500 continue=x
        0.000 > list rv="" limit=500 continue=y
        0.000 ! list: the list has more than 3 pages; relist after 1.25324926s
        1.254 > list rv="0" limit=500
        1.254 replace@5: a@5
        1.254 > watch rv="5" bookmarks
    "#]],
    )
    .await;
}

/// What the server asks for in `Retry-After` is waited for, with every status that says it, up to a bound; and if it asks
/// for less than the ladder's step, the step counts.
#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed() {
    check(
        "429!7s | 429!1s | watch: end@9 wait=2s close | 429!60s | 429!4000s | watch: 503!9s | watch: end@12",
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 7s
            7.000 > watch rv="" match=NotOlderThan initial bookmarks
            7.000 ! streaming list: scripted (TooManyRequests, HTTP 429); retry after 2.310974747s
            9.311 > watch rv="" match=NotOlderThan initial bookmarks
            9.311 replace@9:
            11.311 > watch rv="9" bookmarks
            11.311 ! watch: scripted (TooManyRequests, HTTP 429); retry after 60s
            71.311 > watch rv="9" bookmarks
            71.311 ! watch: scripted (TooManyRequests, HTTP 429); retry after 300s
            371.311 > watch rv="9" bookmarks
            371.311 ! watch: scripted (ServiceUnavailable, HTTP 503); relist after 17.973019764s
            389.285 > watch rv="9" match=NotOlderThan initial bookmarks
            389.285 replace@12:
        "#]],
    )
    .await;
    check_plain(
        "503!20s | 429!50s | list@5: a | watch:",
        expect![[r#"
        0.000 > list rv="0" limit=500
        0.000 ! list: scripted (ServiceUnavailable, HTTP 503); relist after 20s
        20.000 > list rv="0" limit=500
        20.000 ! list: scripted (TooManyRequests, HTTP 429); relist after 50s
        70.000 > list rv="0" limit=500
        70.000 replace@5: a@5
        70.000 > watch rv="5" bookmarks
    "#]],
    )
    .await;
}

/// Dropped at any moment, it leaves nothing open.
#[tokio::test(start_paused = true)]
async fn dropping_it_ends_everything() {
    for script in [
        "hang",
        "watch: +a@3",
        "watch: +a@3 end@9",
        "422 | list@5: a wait=600s",
        "422 | hang",
        "429",
        "watch: end@9 wait=1s close | hang",
    ] {
        let mut run = Run::new(script, Config::default());
        run.run(seconds(5)).await;
        let Run { server, reflector, .. } = run;
        drop(reflector);
        assert_eq!(server.open_streams(), 0, "{script}");
        let requests = server.requests().len();
        tokio::time::sleep(seconds(1000)).await;
        assert_eq!(server.requests().len(), requests, "{script}");
    }
}
