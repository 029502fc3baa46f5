//! Which requests a read makes, and what it makes of the answers.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Answer, ApiResponse, Event, Format, ListPart, Object as _, ObjectKey, Status,
};
use kubestrata_codec::{Encoded, EncodedService};
use kubestrata_testkit::{Reply, Scripted, Step, THINGS, Thing, things};
use serde::Deserialize;
use tower::ServiceExt as _;

use crate::{ApiReader, Config, Consistency, Query, ReadError};

/// A thing as the server sends it.
fn encode(thing: &Thing) -> Encoded {
    let object = serde_json::json!({
        "metadata": {
            "name": thing.name, "namespace": thing.namespace, "labels": thing.labels,
            "uid": thing.uid, "resourceVersion": thing.resource_version.to_string(),
        },
        "size": thing.fields.get("size").map(|size| size.parse::<i64>().unwrap()),
    });
    Encoded::read(&Arc::new(THINGS), Format::Json, object.to_string().as_bytes(), &[]).unwrap()
}

fn encoded(response: ApiResponse<Thing>) -> ApiResponse<Encoded> {
    ApiResponse::new(match response.answer {
        Answer::Object(thing) => Answer::Object(encode(&thing)),
        Answer::List(list) => Answer::List(Box::pin(list.map(|part| {
            Ok(match part? {
                ListPart::Item(thing) => ListPart::Item(encode(&thing)),
                ListPart::Unreadable(unreadable) => ListPart::Unreadable(unreadable),
                ListPart::Meta(meta) => ListPart::Meta(meta),
            })
        }))),
        Answer::Watch(watch) => Answer::Watch(Box::pin(
            watch.map(|event| event.map(|event: Event<Thing>| event.map(|thing| encode(&thing)))),
        )),
        Answer::Status(status) => Answer::Status(status),
    })
}

fn reader(server: &Scripted<Thing>) -> ApiReader<impl EncodedService + use<>> {
    ApiReader::new(server.clone().map_response(encoded))
}

#[derive(Deserialize)]
struct Sized {
    size: u8,
}

fn query() -> Query {
    Query::new(things()).page_size(2)
}

/// Lists, and compares the answer in one line and the requests in one line each.
async fn check_list(script: &str, query: Query, expected: Expect) {
    let server = Scripted::parse(script).unwrap();
    let mut text = match reader(&server).list_encoded(&query).await {
        Ok(list) => {
            let items = list.items.iter().map(|item| item.key().to_string());
            let broken = list.unreadable.iter().map(|_| "?".to_owned());
            let all: Vec<_> = items.chain(broken).collect();
            format!("@{}: {}", list.meta.resource_version, all.join(" "))
        }
        Err(error) => error.to_string(),
    };
    for request in server.requests() {
        text.push('\n');
        text.push_str(&request);
    }
    expected.assert_eq(&text);
}

#[tokio::test(start_paused = true)]
async fn pages_have_one_version_and_carry_the_parameters_once() {
    check_list(
        "list@5: a ?b more | list@9: c",
        query().consistency(Consistency::AtLeast(4.into())),
        expect![[r#"
            @5: a c ?
            list rv="4" match=NotOlderThan limit=2
            list rv="" limit=2 continue=token"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_consistency_has_its_parameters() {
    for (consistency, expected) in [
        (Consistency::MostRecent, expect![[r#"list rv="" limit=2"#]]),
        (Consistency::AtLeast(7.into()), expect![[r#"list rv="7" match=NotOlderThan limit=2"#]]),
        (Consistency::Exactly(7.into()), expect![[r#"list rv="7" match=Exact limit=2"#]]),
        (Consistency::Any, expect![[r#"list rv="0" limit=2"#]]),
    ] {
        let server = Scripted::parse("list@5: a").unwrap();
        reader(&server).list_encoded(&query().consistency(consistency)).await.unwrap();
        expected.assert_eq(&server.requests().join("\n"));
    }
}

/// client-go `ListPager.FullListIfExpired`.
#[tokio::test(start_paused = true)]
async fn an_expired_page_costs_one_full_list() {
    check_list(
        "list@5: a more | expired | list@9: a b c",
        query(),
        expect![[r#"
            @9: a b c
            list rv="" limit=2
            list rv="" limit=2 continue=token
            list rv="""#]],
    )
    .await;
    check_list(
        "expired | expired",
        query().consistency(Consistency::Exactly(3.into())),
        expect![[r#"
            the version asked for is no longer available
            list rv="3" match=Exact limit=2
            list rv="3" match=Exact"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn failures_have_a_kind() {
    check_list(
        "toolarge",
        query(),
        expect![[r#"
        the server is behind the version asked for
        list rv="" limit=2"#]],
    )
    .await;
    check_list(
        "403",
        query(),
        expect![[r#"
        the read failed
        list rv="" limit=2"#]],
    )
    .await;
    check_list(
        "list@5: a cut",
        query(),
        expect![[r#"
        the read failed
        list rv="" limit=2"#]],
    )
    .await;
    check_list(
        "list@5: a more | list@5: b more",
        query(),
        expect![[r#"
            no part of the answer came for 60s
            list rv="" limit=2
            list rv="" limit=2 continue=token
            list rv="" limit=2 continue=token2 (the script has ended)"#]],
    )
    .await;
    check_list(
        "hang",
        query(),
        expect![[r#"
        no part of the answer came for 60s
        list rv="" limit=2"#]],
    )
    .await;
    check_list(
        "list@5: a wait=100s b",
        query(),
        expect![[r#"
        no part of the answer came for 60s
        list rv="" limit=2"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_pages_goes_on_inconsistently_only_if_told_to() {
    let offering = Status {
        continue_token: Some("other".to_owned()),
        ..Status::failure(410, "Expired", "too old")
    };
    let script = || {
        let server = Scripted::parse("list@5: a more").unwrap();
        server.extend([Step::from(Reply::Status(offering.clone()))]);
        Scripted::then(&server, "list@9: b").unwrap();
        server
    };
    let server = script();
    let parts: Vec<_> = reader(&server).pages(&query()).collect().await;
    assert!(matches!(&parts[..], [Ok(_), Err(ReadError::Expired(_))]));

    let server = script();
    let parts: Vec<_> = reader(&server).pages(&query()).or_inconsistent().collect().await;
    assert!(matches!(&parts[..], [Ok(_), Ok(_), Ok(ListPart::Meta(_))]));
    assert_eq!(server.requests()[2], r#"list rv="" limit=2 continue=other"#);
}

#[tokio::test(start_paused = true)]
async fn objects_that_do_not_decode_hide_no_others() {
    let server = Scripted::parse("list@5: a{.size=1} b{.size=999} c{.size=3}").unwrap();
    let list = reader(&server).list::<Sized>(&query()).await.unwrap();
    assert_eq!(list.items.iter().map(|item| item.size).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(list.undecodable[0].key, ObjectKey::cluster("b"));
}

#[tokio::test(start_paused = true)]
async fn get_finds_or_does_not() {
    let server =
        Scripted::parse("object: ns/a@5 | 404 | object: a@7 | 403 | list@3: ns/a | list@3:")
            .unwrap();
    let reader = reader(&server);
    let key = ObjectKey::namespaced("ns", "a");
    let get = async |consistency| {
        let found = reader.get_encoded(&THINGS, &key, consistency).await;
        found.map(|found| found.map(|object| object.resource_version().to_string()))
    };
    assert_eq!(get(Consistency::MostRecent).await.unwrap().as_deref(), Some("5"));
    assert_eq!(get(Consistency::Any).await.unwrap(), None);
    assert_eq!(get(Consistency::AtLeast(6.into())).await.unwrap().as_deref(), Some("7"));
    assert!(get(Consistency::MostRecent).await.unwrap_err().status().unwrap().is_forbidden());
    assert_eq!(get(Consistency::Exactly(3.into())).await.unwrap().as_deref(), Some("3"));
    assert_eq!(get(Consistency::Exactly(3.into())).await.unwrap(), None);
    expect![[r#"
        get ns/a
        get ns/a rv="0"
        get ns/a rv="6"
        get ns/a
        list rv="3" match=Exact fields=metadata.name=a
        list rv="3" match=Exact fields=metadata.name=a"#]]
    .assert_eq(&server.requests().join("\n"));
}

/// Reads a snapshot, and compares the answer and the requests.
async fn check_snapshot(script: &str, expected: Expect) {
    let server = Scripted::parse(script).unwrap();
    let snapshot = reader(&server).snapshot(&query()).await;
    let mut text = match snapshot {
        Ok(snapshot) => {
            let items: Vec<_> = snapshot
                .items
                .iter()
                .map(|item| format!("{}@{}", item.key(), item.resource_version()))
                .collect();
            format!("@{}: {}", snapshot.resource_version, items.join(" "))
        }
        Err(error) => error.to_string(),
    };
    for request in server.requests() {
        text.push('\n');
        text.push_str(&request);
    }
    expected.assert_eq(&text);
    assert_eq!(server.open_streams(), 0, "the watch is closed");
}

/// KEP-3157.
#[tokio::test(start_paused = true)]
async fn a_snapshot_is_a_streaming_list_where_the_server_does_one() {
    check_snapshot(
        "watch: +b@2 +a@5 ~a@6 -b@7 +c@8 bookmark@8 end@9",
        expect![[r#"
            @9: a@6 c@8
            watch rv="" match=NotOlderThan initial bookmarks"#]],
    )
    .await;
    for refusal in ["422", "400", "405", "watch: +a@1 close"] {
        let script = format!("{refusal} | list@9: a@6");
        check_snapshot(
            &script,
            expect![[r#"
                @9: a@6
                watch rv="" match=NotOlderThan initial bookmarks
                list rv="" limit=2"#]],
        )
        .await;
    }
    check_snapshot(
        "403",
        expect![[r#"
        the read failed
        watch rv="" match=NotOlderThan initial bookmarks"#]],
    )
    .await;
}

/// k/k#139766: a cache that fills refuses streaming lists for some seconds.
#[tokio::test(start_paused = true)]
async fn a_snapshot_comes_back_when_the_server_says_so() {
    let start = tokio::time::Instant::now();
    check_snapshot(
        "429!3s | 503!2s | watch: +a@5 end@9",
        expect![[r#"
            @9: a@5
            watch rv="" match=NotOlderThan initial bookmarks
            watch rv="" match=NotOlderThan initial bookmarks
            watch rv="" match=NotOlderThan initial bookmarks"#]],
    )
    .await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    // Not for ever, not after an hour, and not where no time is named.
    for (script, requests) in
        [(["429!1s"; 12].join(" | "), 11), ("429!3600s".into(), 1), ("429".into(), 1)]
    {
        let server = Scripted::parse(&script).unwrap();
        let error = reader(&server).snapshot(&query()).await.unwrap_err();
        assert_eq!(error.status().unwrap().code, 429);
        assert_eq!(server.requests().len(), requests, "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_the_callers() {
    let server = Scripted::parse("hang").unwrap();
    let config = Config { idle: Duration::from_secs(1), ..Config::default() };
    let reader = ApiReader::with_config(server.clone().map_response(encoded), config);
    let error = reader.list_encoded(&Query::new(things())).await.unwrap_err();
    assert!(matches!(error, ReadError::Idle(idle) if idle == Duration::from_secs(1)));
    assert_eq!(server.requests(), [r#"list rv="" limit=500"#]);
}
