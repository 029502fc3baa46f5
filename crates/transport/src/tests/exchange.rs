//! What comes out for what goes in.

use std::io::Write as _;

use bytes::Bytes;
use expect_test::expect;
use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Answer, ApiRequest, Collection, DeleteOptions, Event, FieldPath, ListOptions, ListPart,
    ListWatch as _, Object as _, Operation, ResourceType, Scope, WatchOptions,
};
use tower::ServiceExt as _;

use super::server::{End, answer, json, over, pieces};
use super::{create, frame, get, pod, pods};
use crate::{Compression, Config};

/// Events of a watch, one per line.
async fn events(
    watch: &mut kubestrata_api_types::WatchStream<kubestrata_codec::Encoded>,
) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = watch.next().await {
        lines.push(match event {
            Ok(Event::Added(object)) => format!("+{}@{}", object.name(), object.resource_version()),
            Ok(Event::Modified(object)) => {
                format!("~{}@{}", object.name(), object.resource_version())
            }
            Ok(Event::Deleted(object)) => {
                format!("-{}@{}", object.name(), object.resource_version())
            }
            Ok(Event::Bookmark(bookmark)) => format!("bookmark@{}", bookmark.resource_version),
            Ok(Event::Unreadable(unreadable)) => format!("unreadable: {}", unreadable.problem),
            Err(error) => format!("error: {error}"),
        });
    }
    lines
}

#[tokio::test]
async fn a_get_gives_the_object_and_the_warnings() {
    let (transport, log) = over(Config::in_process(), |_| async {
        let mut response = json(pod("a", 5));
        for text in [r#"299 - "old \"API\"""#, r#"110 - "stale""#, r#"299 - "b", 299 - "c""#] {
            response.headers_mut().append("warning", text.parse().unwrap());
        }
        response
    });
    let response = transport.oneshot(get("a")).await.unwrap();
    assert_eq!(response.warnings, [r#"old "API""#, "b", "c"]);
    let object = response.into_object().unwrap();
    assert_eq!((object.name(), object.resource_version().as_u64()), ("a", Some(5)));
    let seen = log.last();
    assert_eq!(seen.target, "/api/v1/namespaces/d/pods/a");
    assert!(seen.headers["user-agent"].to_str().unwrap().starts_with("kubestrata/"));
    assert!(!seen.headers.contains_key("accept-encoding"));
}

#[tokio::test]
async fn warnings_go_to_a_hook_whatever_the_answer_is() {
    let heard = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut config = Config::in_process();
    let to = std::sync::Arc::clone(&heard);
    config.warnings = crate::WarningHook::new(move |resource, text| {
        to.lock().push(format!("{resource}: {text}"));
    });
    assert_eq!(format!("{:?}", config.warnings), "WarningHook(set)");
    let (transport, _) = over(config, |seen| async move {
        let failed = seen.target.ends_with("/bad");
        let mut response = if failed { answer(400, "text/plain", "no") } else { json(pod("a", 5)) };
        let dated = r#"299 - "one" "Wed, 21 Oct 2015 07:28:00 GMT", 299 - "old API""#;
        response.headers_mut().append("warning", dated.parse().unwrap());
        response
    });
    transport.clone().oneshot(get("good")).await.unwrap();
    transport.oneshot(get("bad")).await.unwrap_err();
    let heard = heard.lock().join(", ");
    assert!(heard.ends_with(": old API") && heard.matches("old API").count() == 2, "{heard}");
}

#[tokio::test]
async fn a_list_is_streamed() {
    let text = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{},{}]}}"#,
        pod("a", 1),
        pod("b", 2)
    );
    // Cut anywhere, and the server never ends it: what is there can be read all the same.
    let cut: Vec<Bytes> =
        text.as_bytes()[..text.len() - 2].chunks(7).map(Bytes::copy_from_slice).collect();
    let (transport, _) = over(Config::in_process(), move |_| {
        let cut = cut.clone();
        async move { pieces(cut, End::Silent) }
    });
    let mut list = transport.list(&pods(), ListOptions::default()).await.unwrap();
    let mut names = Vec::new();
    while names.len() < 2 {
        if let ListPart::Item(item) = list.next().await.unwrap().unwrap() {
            names.push(item.name().to_owned());
        }
    }
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn a_list_that_breaks_off_is_an_error() {
    for end in [End::Clean, End::Broken] {
        let text = format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{},"#, pod("a", 1));
        let (transport, _) = over(Config::in_process(), move |_| {
            let text = Bytes::from(text.clone());
            async move { pieces(vec![text], end) }
        });
        let list = transport.list(&pods(), ListOptions::default()).await.unwrap();
        let parts: Vec<_> = list.collect().await;
        assert!(parts.last().unwrap().is_err(), "{end:?}");
        assert_eq!(parts.iter().filter(|part| part.is_err()).count(), 1);
    }
}

#[tokio::test]
async fn a_watch_gives_events_and_ends_with_the_server() {
    let text = [
        frame("ADDED", &pod("a", 1)),
        frame("MODIFIED", &pod("a", 2)),
        frame("ADDED", r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"}}"#),
        frame("DELETED", &pod("a", 3)),
        frame("BOOKMARK", r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}"#),
    ]
    .concat();
    let (transport, log) = over(Config::in_process(), move |_| {
        let cut: Vec<_> = text.as_bytes().chunks(11).map(Bytes::copy_from_slice).collect();
        async move { pieces(cut, End::Clean) }
    });
    let options = WatchOptions { allow_bookmarks: true, ..WatchOptions::default() };
    let mut watch = transport.watch(&pods(), options).await.unwrap();
    expect![[r#"
        +a@1
        ~a@2
        unreadable: foreign kind Secret of v1
        -a@3
        bookmark@7"#]]
    .assert_eq(&events(&mut watch).await.join("\n"));
    let target = "/api/v1/namespaces/d/pods?watch=true&allowWatchBookmarks=true";
    assert_eq!(log.last().target, target);
}

#[tokio::test]
async fn a_watch_that_breaks_in_the_middle_of_an_event_is_an_error() {
    let whole = frame("ADDED", &pod("a", 1));
    for (end, want) in [
        (End::Clean, "error: the watch ended in the middle of an event, after 20 bytes of it"),
        (End::Broken, "error: the answer broke off"),
    ] {
        let text = Bytes::from(format!("{whole}{}", &whole[..20]));
        let (transport, _) = over(Config::in_process(), move |_| {
            let text = text.clone();
            async move { pieces(vec![text], end) }
        });
        let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
        assert_eq!(events(&mut watch).await, ["+a@1", want]);
    }
}

#[tokio::test]
async fn an_event_over_the_limit_is_an_error() {
    let mut config = Config::in_process();
    config.decoding.frame_bytes = 100;
    let (transport, _) = over(config, |_| async {
        pieces(vec![frame("ADDED", &pod(&"a".repeat(200), 1)).into()], End::Silent)
    });
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    assert_eq!(
        events(&mut watch).await,
        ["error: a watch event is larger than the limit of 100 bytes"]
    );
}

/// kube#2079: each flush of a compressed watch ends a gzip member.
#[tokio::test]
async fn all_members_of_a_compressed_watch_are_read() {
    let member = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let members: Vec<u8> =
        (1..=3).flat_map(|n| member(&frame("ADDED", &pod(&format!("p{n}"), n)))).collect();
    for piece in [1, 13, members.len()] {
        let cut: Vec<_> = members.chunks(piece).map(Bytes::copy_from_slice).collect();
        let mut config = Config::in_process();
        config.compression = Compression::Always;
        let (transport, log) = over(config, move |_| {
            let cut = cut.clone();
            async move {
                // Silent: the events must come before the end of the body.
                let mut response = pieces(cut, End::Silent);
                response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
                response
            }
        });
        let options = WatchOptions { send_initial_events: Some(true), ..WatchOptions::default() };
        let mut watch = transport.watch(&pods(), options).await.unwrap();
        for n in 1..=3 {
            let event = watch.next().await.unwrap().unwrap();
            assert_eq!(event.object().unwrap().name(), format!("p{n}"));
        }
        assert_eq!(log.last().headers["accept-encoding"], "gzip");
    }
}

/// A server that flushes within one member is followed as well: each event is there at its flush.
#[tokio::test]
async fn an_event_is_delivered_at_its_flush() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut flushes = Vec::new();
    for n in 1..=3 {
        encoder.write_all(frame("ADDED", &pod(&format!("p{n}"), n)).as_bytes()).unwrap();
        encoder.flush().unwrap();
        flushes.push(std::mem::take(encoder.get_mut()));
    }
    for sent in 1..=3 {
        let pieces_sent: Vec<Bytes> = flushes[..sent].iter().cloned().map(Bytes::from).collect();
        let (transport, _) = over(Config::in_process(), move |_| {
            let mut response = pieces(pieces_sent.clone(), End::Silent);
            response.headers_mut().insert("content-encoding", "GZIP".parse().unwrap());
            async move { response }
        });
        let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
        for n in 1..=sent {
            let event = watch.next().await.unwrap().unwrap();
            assert_eq!(event.object().unwrap().name(), format!("p{n}"));
        }
        let more = tokio::time::timeout(std::time::Duration::from_millis(20), watch.next()).await;
        assert!(more.is_err(), "{more:?}");
    }
}

/// A thousand bytes for each one that is sent.
fn bomb(before: &str, after: &str, megabytes: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(before.as_bytes()).unwrap();
    for _ in 0..megabytes {
        encoder.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    encoder.write_all(after.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_bomb_is_bounded() {
    let bytes = bomb(r#"{"kind":"Pod","metadata":{"name":""#, "\"}}", 32);
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let (list, event) = (
        bomb(
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":""#,
            "\"}}]}",
            32,
        ),
        bomb(r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":""#, "\"}}}", 32),
    );
    let mut config = Config::in_process();
    config.limits.body_bytes = 1 << 20;
    (config.decoding.item_bytes, config.decoding.frame_bytes) = (1 << 20, 1 << 20);
    let (transport, _) = over(config, move |seen| {
        let bytes = match () {
            () if seen.target.contains("watch=true") => event.clone(),
            () if seen.target.ends_with("/pods") => list.clone(),
            () => bytes.clone(),
        };
        let mut response = pieces(vec![bytes.into()], End::Silent);
        response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        async move { response }
    });
    // That the body never ends shows that each is refused before its end.
    let error = transport.clone().oneshot(get("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "the answer has more than 1048576 bytes");
    let mut items = transport.list(&pods(), ListOptions::default()).await.unwrap();
    let error = loop {
        if let Err(error) = items.next().await.unwrap() {
            break error.to_string();
        }
    };
    assert!(error.contains("limit of 1048576 bytes"), "{error}");
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("limit of 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn damaged_compression_is_an_error() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(pod("a", 1).as_bytes()).unwrap();
    let good = encoder.finish().unwrap();
    let truncated = good[..good.len() - 4].to_vec();
    let mut flipped = good.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    for bytes in [truncated, flipped, b"no gzip at all".to_vec()] {
        let (transport, _) = over(Config::in_process(), move |_| {
            let mut response = answer(200, "application/json", bytes.clone());
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            async move { response }
        });
        let error = transport.oneshot(get("a")).await.unwrap_err().to_string();
        assert!(error.starts_with("the answer cannot be decompressed"), "{error}");
    }
}

#[tokio::test]
async fn writes_carry_their_bodies() {
    let (transport, log) = over(Config::in_process(), |seen| async move {
        if seen.method == "DELETE" {
            json(r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#)
        } else {
            json(pod("a", 1))
        }
    });
    transport.clone().oneshot(create()).await.unwrap();
    assert_eq!(log.last().body, pod("a", 0));
    assert_eq!(log.last().headers["content-type"], "application/json");
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    let delete = ApiRequest::new(pods(), Operation::Delete { name: "a".into(), options });
    let response = transport.oneshot(delete).await.unwrap();
    assert!(matches!(response.answer, Answer::Status(status) if status.is_success()));
    assert_eq!(
        log.last().body,
        r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}"#
    );
    assert_eq!(
        log.targets(),
        ["POST /api/v1/namespaces/d/pods", "DELETE /api/v1/namespaces/d/pods/a"]
    );
}

#[tokio::test]
async fn a_delete_collection_gives_what_was_deleted() {
    let (transport, _) = over(Config::in_process(), |_| async {
        json(format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
            pod("a", 1)
        ))
    });
    let (list, options) = (ListOptions::default(), DeleteOptions::default());
    let request = ApiRequest::new(pods(), Operation::DeleteCollection { list, options });
    let list = transport.oneshot(request).await.unwrap().into_list().unwrap();
    let parts: Vec<_> = list.map(Result::unwrap).collect().await;
    let items = parts.iter().filter(|part| matches!(part, ListPart::Item(_))).count();
    assert_eq!((items, parts.len()), (1, 2));
}

#[tokio::test]
async fn a_raw_get_gives_the_body_within_its_limit() {
    let mut config = Config::in_process();
    config.limits.body_bytes = 10;
    let (transport, log) = over(config, |seen| async move {
        match seen.target.as_str() {
            "/readyz?verbose" => pieces(vec!["o".into(), "k".into()], End::Clean),
            "/exact" => answer(200, "text/plain", "0123456789"),
            _ => answer(200, "text/plain", "0123456789a"),
        }
    });
    assert_eq!(transport.raw_get("/readyz?verbose").await.unwrap(), "ok");
    assert_eq!(transport.raw_get("/exact").await.unwrap(), "0123456789");
    let error = transport.raw_get("/large").await.unwrap_err();
    assert_eq!(error.to_string(), "the answer has more than 10 bytes");
    assert!(transport.raw_get("no/slash").await.is_err());
    assert_eq!(log.len(), 3);
}

#[tokio::test]
async fn paths_of_the_base_url_are_kept() {
    let mut config = Config::new("https://host:1/k8s/clusters/c/").unwrap();
    config.compression = Compression::Never;
    let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
    let deployments = Collection::new(ResourceType::from_static(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        Scope::Namespaced,
    ));
    let request = ApiRequest::new(
        deployments.in_namespace("d"),
        Operation::Get { name: "a".into(), options: Default::default() },
    );
    transport.oneshot(request.subresource("scale")).await.unwrap();
    let target = "/k8s/clusters/c/apis/apps/v1/namespaces/d/deployments/a/scale";
    assert_eq!(log.last().target, target);
}

#[tokio::test]
async fn a_table_comes_as_one_object_and_managed_fields_can_be_left_out() {
    let mut config = Config::in_process();
    config.negotiation.drop_managed_fields = true;
    let (transport, log) = over(config, |_| async {
        json(
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},
            "columnDefinitions":[{"name":"Name","type":"string"}],"rows":[{"cells":["a"]}]}"#
                .to_owned(),
        )
    });
    let collection = pods().prune([FieldPath::managed_fields()]);
    // Its `watch` would stand beside that of `ListWatch`.
    let table = kubestrata_codec::Client::table(&transport, collection, ListOptions::default())
        .await
        .unwrap();
    assert_eq!(table.rows[0].cells, ["a"]);
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1;drop=metadata.managedFields";
    assert_eq!(log.last().headers["accept"], accept);
}
