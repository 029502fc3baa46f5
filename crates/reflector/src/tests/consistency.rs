//! The comparison of a streamed state with a list at its version.

use expect_test::expect;
use kubestrata_api_types::{Event, ObjectKey, Update};
use kubestrata_telemetry::Memory;
use kubestrata_testkit::{Scripted, Thing, show_update, things};

use super::{Run, check_with, seconds};
use crate::{Checked, Config, Consistency, Difference, Metrics, Reflector};

fn config(consistency: Consistency) -> Config {
    Config { consistency, ..Config::default() }
}

async fn checked(script: &str) -> Checked {
    let mut run = Run::new(script, config(Consistency::Report));
    run.run(seconds(300)).await;
    let last = run.status().last_check.expect("a comparison has ended");
    assert_eq!(last.resource_version, 9.into());
    assert_eq!(run.server.open_streams(), 1, "only the watch is open: {}", run.text());
    last.found
}

/// Nothing is delayed by it: state and events come while the list runs. In pages, the first at the exact version.
#[tokio::test(start_paused = true)]
async fn a_state_that_is_right() {
    check_with(
        config(Consistency::Report),
        "watch: +a@3 +b@7 -b@8 +c@5 end@9 wait=1s ~a@10 | list@9: a@3 wait=5s more | list@9: c@5 | refused",
        20,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3 c@5
            0.000 > list rv="9" match=Exact limit=500
            1.000 ~a@10
            5.000 > list rv="" limit=500 continue=token
        "#]],
    )
    .await;
    let found = checked("watch: +a@3 +b@7 -b@8 +c@5 end@9 | list@9: a@3 more | list@9: c@5").await;
    assert!(matches!(found, Checked::Equal(2)), "{found:?}");
}

/// Whatever differs is found: an object too few, one too many, another version, another uid.
#[tokio::test(start_paused = true)]
async fn a_state_that_is_wrong() {
    for (list, missing, extra, different, keys) in [
        ("a@3 b@7 c@5", 1, 0, 0, vec!["c"]),
        ("a@3", 0, 1, 0, vec!["b"]),
        ("a@4 b@7", 0, 0, 1, vec!["a"]),
        ("a@3#other b@7", 0, 0, 1, vec!["a"]),
        ("a@2 c@5", 1, 1, 1, vec!["a", "c", "b"]),
        ("", 0, 2, 0, vec!["a", "b"]),
    ] {
        let found = checked(&format!("watch: +a@3 +b@7 end@9 | list@9: {list}")).await;
        let Checked::Differs(found) = found else { panic!("{list}: {found:?}") };
        let keys = keys.into_iter().map(ObjectKey::cluster).collect();
        assert_eq!(found, Difference { missing, extra, different, keys }, "{list}");
    }
}

/// Only some of the keys are named.
#[tokio::test(start_paused = true)]
async fn a_difference_names_some_keys() {
    let many: String = (10..60).map(|n| format!(" k{n}@5")).collect();
    let Checked::Differs(found) = checked(&format!("watch: end@9 | list@9:{many}")).await else {
        panic!("it differs")
    };
    assert_eq!((found.missing, found.keys.len()), (50, Difference::KEYS_MAX));
    assert_eq!(
        found.to_string(),
        "50 missing, 0 extra, 0 different, as in k10 k11 k12 k13 k14 k15 k16 k17 k18 k19"
    );
}

/// What cannot be read is there, and no more is known; what cannot even be named may be anything.
#[tokio::test(start_paused = true)]
async fn unreadable_objects_are_no_difference() {
    for (stream, list) in [("+a@3 ?b@4", "a@3 b@4"), ("+a@3 +b@4", "a@3 ?b@4"), ("?a@3", "?a@3")] {
        let found = checked(&format!("watch: {stream} end@9 | list@9: {list}")).await;
        assert!(matches!(found, Checked::Equal(_)), "{stream} {list}: {found:?}");
    }
    let found = checked("watch: +a@3 ? end@9 | list@9: a@3 b@4").await;
    assert!(matches!(found, Checked::Unknown(_)), "{found:?}");
    let found = checked("watch: +a@3 ? end@9 | list@9: a@3 b@4 c@5").await;
    assert!(matches!(found, Checked::Differs(_)), "{found:?}");
}

/// The list fails: tried again, some times; a version that is gone is not asked for again.
#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_had() {
    let stream = "watch: +a@3 end@9";
    let found =
        checked(&format!("{stream} | 429!5s | list@9: b cut | refused | hang | list@9: a@3")).await;
    assert!(matches!(found, Checked::Equal(1)), "{found:?}");
    let found = checked(&format!("{stream} {}", "| 500".repeat(5))).await;
    assert!(matches!(found, Checked::Unknown(_)), "{found:?}");
    for gone in ["gone", "expired", "list@9: more | expired", "list@9: more=x | list@9: more=x"] {
        let found = checked(&format!("{stream} | {gone}")).await;
        assert!(matches!(found, Checked::Unknown(_)), "{gone}: {found:?}");
    }
}

/// If so configured, a wrong state is replaced by a plain list of the most recent one, and streaming lists rest a while.
#[tokio::test(start_paused = true)]
async fn a_wrong_state_is_replaced() {
    check_with(
        config(Consistency::Relist),
        "watch: +a@3 end@9 | list@9: a@3 b@5 | list@12: a@3 b@5 | watch: wait=5s gone | list@13: a@3 b@5 | watch:",
        60,
        expect![[r#"
            0.000 > watch rv="" match=NotOlderThan initial bookmarks
            0.000 replace@9: a@3
            0.000 > list rv="9" match=Exact limit=500
            0.000 ! comparison: the streamed state of version 9 differs from a list: 1 missing, 0 extra, 0 different, as in b; relist after 1.396625406s
            1.397 > list rv="" limit=500
            1.397 replace@12: a@3 b@5
            1.397 > watch rv="12" bookmarks
            6.397 ! watch: too old resource version (Gone, HTTP 410); relist after 2.310974747s
            8.708 > list rv="12"
            8.708 replace@13: a@3 b@5
            8.708 > watch rv="13" bookmarks
        "#]],
    )
    .await;
}

/// Without being asked it compares nothing; a plain list is not compared; a new state ends the comparison of the old.
#[tokio::test(start_paused = true)]
async fn what_is_not_compared() {
    let mut run = Run::new("watch: +a@3 end@9 wait=5s close | watch:", Config::default());
    run.run(seconds(60)).await;
    assert!(run.status().last_check.is_none() && run.server.requests().len() == 2);
    let mut run = Run::new("422 | list@5: a | watch:", config(Consistency::Report));
    run.run(seconds(60)).await;
    assert!(run.status().last_check.is_none() && run.server.requests().len() == 3);
    let mut run = Run::new(
        "watch: +a@3 end@9 wait=5s gone | hang | watch: end@10 | list@10:",
        config(Consistency::Report),
    );
    run.run(seconds(300)).await;
    assert_eq!(run.status().last_check.unwrap().resource_version, 10.into(), "{}", run.text());
}

/// It compares what the server sent, whatever a transform makes of it, and tells the metrics.
#[tokio::test(start_paused = true)]
async fn a_transform_has_no_part_in_it() {
    let memory = Memory::new();
    let config = Config { metrics: Metrics::new(&memory, &[]), ..config(Consistency::Report) };
    let server = Scripted::parse("watch: +a@3 +b@4 end@9 | list@9: a@3 b@4").unwrap();
    let mut reflector =
        Reflector::new(server, things(), config).transform(|event: Event<Thing>| match event {
            Event::Added(object) if object.name == "a" => Event::Deleted(object),
            other => other,
        });
    let update = reflector.next().await;
    assert_eq!(show_update(&update), "replace@9: b@4");
    assert!(tokio::time::timeout(seconds(1), reflector.next()).await.is_err());
    let found = reflector.status().read().last_check.unwrap().found;
    assert!(matches!(found, Checked::Equal(2)), "{found:?}");
    let text = memory.render();
    assert!(text.contains("reflector_consistency_checks_total{result=\"equal\"} 1"), "{text}");
    assert!(matches!(update, Update::Replace(_)));
}
