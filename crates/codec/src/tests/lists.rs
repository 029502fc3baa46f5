//! Lists as kube-apiserver sent them: what the streaming encoders join, and what the transcoder makes of the whole list as
//! one message, are its bytes.

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Answer, Collection, Format, Kind as _, ListMeta, ListPart, Object as _, Operation, ResourceType,
};

use super::client::service;
use super::{read_list, recorded};
use crate::collection::{self, JsonStyle};
use crate::proto::Options;
use crate::{
    Client as _, ClientError, Encoded, Limits, ListDecoder, Table, decode_object, envelope, schema,
    transcode,
};

/// Reads a list that arrives in small pieces.
fn read(resource: &ResourceType, format: Format, body: &[u8]) -> (Vec<Encoded>, ListMeta) {
    read_list(Collection::new(resource.clone()), format, body, 13)
}

#[test]
fn streamed_lists_are_what_a_server_sends_and_what_one_message_gives() {
    for plural in [
        "configmaps",
        "deployments",
        "namespaces",
        "pods",
        "priorityclasses",
        "prioritylevelconfigurations",
        "services",
    ] {
        let builtin = schema::resources().iter();
        let mut found = builtin.filter(|known| known.resource.plural == plural);
        let resource = &found.next().unwrap().resource;
        let (api_version, kind) = (resource.api_version(), format!("{}List", resource.kind));
        let text = recorded(&format!("lists/{plural}.json"));
        let bytes = recorded(&format!("lists/{plural}.pb"));

        let (items, meta) = read(resource, Format::Json, &text);
        let frame = collection::json(JsonStyle::Typed, &api_version, &kind, &meta);
        let joined: Vec<&[u8]> = items.iter().map(Encoded::bytes).collect();
        let streamed =
            [&frame.head[..], &joined.join(collection::JSON_SEPARATOR), &frame.tail].concat();
        assert_eq!(String::from_utf8_lossy(&streamed), String::from_utf8_lossy(&text), "{plural}");

        let (messages, meta) = read(resource, Format::Protobuf, &bytes);
        let size = messages.iter().map(|item| collection::protobuf_item_size(item.bytes().len()));
        let mut streamed = collection::protobuf_head(&api_version, &kind, &meta, size.sum());
        for item in &messages {
            streamed.extend(collection::protobuf_item_head(item.bytes().len()));
            streamed.extend(item.bytes());
        }
        streamed.extend(collection::PROTOBUF_TAIL);
        assert_eq!(streamed, bytes, "{plural}");

        // The same list as one message, in both directions.
        let message = schema::kind(&resource.group, &resource.version, &kind).unwrap();
        let whole = envelope::open(&bytes).unwrap().message;
        let mut buffered = Vec::new();
        transcode::to_json(whole, message, &Options::of(&api_version, &kind), &mut buffered)
            .unwrap();
        buffered.push(b'\n');
        // Protobuf does not tell an empty list from none, and Go shows none as null.
        let shown =
            String::from_utf8(text.clone()).unwrap().replace(r#""items":[]}"#, r#""items":null}"#);
        assert_eq!(String::from_utf8_lossy(&buffered), shown, "{plural}");
        let mut buffered = Vec::new();
        transcode::to_protobuf(&text, message, &mut buffered).unwrap();
        assert_eq!(envelope::close(&api_version, &kind, &buffered), bytes, "{plural}");

        // And item by item.
        for (json, protobuf) in items.iter().zip(&messages) {
            let message = schema::resource(resource).unwrap();
            let mut text = Vec::new();
            transcode::to_json(protobuf.bytes(), message, &Options::default(), &mut text).unwrap();
            assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(json.bytes()));
        }
        assert_eq!(items.len(), messages.len());
    }
}

#[tokio::test]
async fn a_table_is_read_by_whoever_asks_for_one() {
    let (client, log) = service(|request| {
        let collection = &request.collection;
        Ok(decode_object(collection, Format::Json, &recorded("table.json")).unwrap())
    });
    let pods = Collection::new(Pod::resource().clone());
    let table = client.table(pods.clone(), Default::default()).await.unwrap();
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    assert_eq!(names[..4], ["Name", "Ready", "Status", "Restarts"]);
    assert_eq!((table.columns[0].format.as_str(), table.columns[5].priority), ("name", 1));
    assert_eq!(table.meta.resource_version.as_u64(), Some(82));
    let [row] = &table.rows[..] else { panic!("{} rows", table.rows.len()) };
    assert_eq!((row.cells[0].as_str(), row.cells[2].as_str()), (Some("p"), Some("Pending")));
    assert!(!row.completed);
    assert_eq!(row.object.as_ref().unwrap().metadata.name.as_deref(), Some("p"));
    let asked = log.lock().unwrap()[0].clone();
    assert_eq!(asked.collection, pods.clone().as_table());
    assert!(matches!(asked.operation, Operation::List(_)));

    let (client, _) = service(|request| {
        let text = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let Ok(Answer::Object(object)) = decode_object(&request.collection, Format::Json, text)
        else {
            panic!("no object")
        };
        Ok(Answer::Object(object))
    });
    let error = client.table(pods, Default::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Undecodable(error) if error.problem.contains("Table")));
    let completed =
        br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":null,
        "rows":[{"cells":[],"conditions":[{"type":"Completed","status":"True"}]},{"cells":[1]}]}"#;
    let collection = Collection::new(Pod::resource().clone()).as_table();
    let answer = decode_object(&collection, Format::Json, completed).unwrap();
    let Answer::Object(object) = answer else { panic!("no object") };
    let table = Table::decode(&object).unwrap();
    assert_eq!(table.rows.iter().map(|row| row.completed).collect::<Vec<_>>(), [true, false]);
}

/// Bug row 27 (k/k#102718): an object that outlives its list keeps its own bytes and no others, in whatever pieces the list
/// came. Objects that shared the list's bytes would be as far from each other in memory as in the list.
#[test]
fn k27_each_object_of_a_list_owns_its_bytes() {
    let mut known = schema::resources().iter().map(|known| &known.resource);
    let namespaces = known.find(|resource| resource.plural == "namespaces").unwrap();
    for (format, file) in
        [(Format::Json, "lists/namespaces.json"), (Format::Protobuf, "lists/namespaces.pb")]
    {
        let body = recorded(file);
        let read = |size: usize| {
            let mut decoder =
                ListDecoder::new(Collection::new(namespaces.clone()), format, Limits::default());
            let mut items = Vec::new();
            for piece in body.chunks(size) {
                decoder.push(Bytes::copy_from_slice(piece));
                while let Some(part) = decoder.next().unwrap() {
                    if let ListPart::Item(item) = part {
                        items.push(item);
                    }
                }
            }
            items
        };
        let items = read(body.len());
        for size in [1, 64, 700] {
            let pieces = read(size);
            assert!(pieces.iter().map(Encoded::bytes).eq(items.iter().map(Encoded::bytes)));
        }
        assert!(items.len() > 1);
        let place = |bytes: &[u8]| {
            body.windows(bytes.len()).position(|window| window == bytes).expect("it is in the list")
        };
        for pair in items.windows(2) {
            let [first, second] = [pair[0].bytes(), pair[1].bytes()];
            let apart = place(second).wrapping_sub(place(first));
            let in_memory = (second.as_ptr() as usize).wrapping_sub(first.as_ptr() as usize);
            assert_ne!(in_memory, apart, "{format:?}: {} and its neighbour", pair[0].key_ref());
        }
    }
}
