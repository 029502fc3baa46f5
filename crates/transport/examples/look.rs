//! Looks at a server: `cargo run -p kubestrata-transport --example look -- [KUBECONFIG] [SECONDS] [gzip]`.
//!
//! Makes a config map, reads it, lists and watches config maps in JSON and in protobuf, as a streaming list too, changes it
//! by a merge patch and deletes it. Without a path it takes what kubectl would take. With SECONDS the watches stay
//! open for as long, for a look at how they end. With `gzip` lists and streaming lists may come compressed, also over loopback.

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Accept, ApiRequest, BoxError, Collection, DeleteOptions, Event, Format, GetOptions,
    ListOptions, ListPart, ListWatch as _, Object as _, Operation, PatchKind, Payload,
    ResourceType, Scope, Status, VersionMatch, WatchOptions, WriteOptions, cause_ref,
};
use kubestrata_transport::{Compression, Config, Transport};
use tower::ServiceExt as _;

const CONFIG_MAPS: ResourceType =
    ResourceType::from_static("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);
const NAME: &str = "kubestrata-look";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let mut config = match args.next() {
        Some(path) => Config::from_kubeconfig(path)?,
        None => Config::infer()?,
    };
    let seconds = args.next().map_or(Ok(1), |text| text.parse())?;
    if args.next().as_deref() == Some("gzip") {
        config.compression = Compression::Always;
    }
    println!("server    {} (namespace {})", config.server, config.namespace);
    let namespace = config.namespace.clone();
    let transport = Transport::connect(config)?;
    println!("version   {:?}", transport.raw_get("/version").await?);
    println!("readyz    {:?}", transport.raw_get("/readyz").await?);
    for format in [Format::Json, Format::Protobuf] {
        let collection =
            Collection::new(CONFIG_MAPS).in_namespace(&namespace).accept(Accept::Only(format));
        println!("--- {format:?}");
        look(&transport, &collection, seconds).await?;
    }
    println!("{:?}", transport.connections());
    Ok(())
}

async fn look(
    transport: &Transport,
    collection: &Collection,
    seconds: u64,
) -> Result<(), BoxError> {
    let call = |operation| {
        let request = ApiRequest::new(collection.clone(), operation);
        transport.clone().oneshot(request)
    };
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{NAME}"}},"data":{{"a":"b"}}}}"#
    );
    let name = || NAME.into();
    let body = Payload::json(text.clone());
    let create = Operation::Create { name: None, body, options: WriteOptions::default() };
    let made = call(create.clone()).await?.into_object()?;
    println!("created   {} at {}", made.name(), made.resource_version());
    let again = call(create).await.map(drop);
    println!("again     {:?}", again.map_err(|error| status(&error)));
    let get = Operation::Get { name: name(), options: GetOptions::default() };
    println!("got       {} bytes", call(get).await?.into_object()?.bytes().len());
    let mut list = transport.list(collection, ListOptions::default()).await?;
    while let Some(part) = list.next().await {
        match part? {
            ListPart::Item(item) => println!("listed    {}", item.name()),
            other => println!("listed    {other:?}"),
        }
    }
    let options = WatchOptions {
        resource_version: made.resource_version(),
        timeout: Some(Duration::from_secs(seconds)),
        ..WatchOptions::default()
    };
    let watch = transport.watch(collection, options).await?;
    let options = WatchOptions {
        version_match: Some(VersionMatch::NotOlderThan),
        send_initial_events: Some(true),
        allow_bookmarks: true,
        timeout: Some(Duration::from_secs(seconds)),
        ..WatchOptions::default()
    };
    let streaming = transport.watch(collection, options).await?;
    let options =
        WriteOptions { field_manager: Some("look".to_owned()), ..WriteOptions::default() };
    let body = text.replace("\"b\"", "\"c\"").into();
    let patch = Operation::Patch { name: name(), kind: PatchKind::Merge, body, options };
    let changed = call(patch).await?;
    println!("patched   {:?} {:?}", changed.answer, changed.warnings);
    let delete = Operation::Delete { name: name(), options: DeleteOptions::default() };
    println!("deleted   {:?}", call(delete).await?.answer);
    for (title, mut events) in [("watch", watch), ("streaming", streaming)] {
        while let Some(event) = events.next().await {
            match event? {
                Event::Added(object) => println!("{title:<10}+{}", object.name()),
                Event::Modified(object) => println!("{title:<10}~{}", object.name()),
                Event::Deleted(object) => println!("{title:<10}-{}", object.name()),
                Event::Bookmark(bookmark) => println!("{title:<10}{bookmark:?}"),
                Event::Unreadable(unreadable) => println!("{title:<10}{unreadable}"),
            }
        }
        println!("{title:<10}ended by the server");
    }
    Ok(())
}

/// What the server said, without the rest.
fn status(error: &BoxError) -> String {
    cause_ref::<Status>(&**error).map_or_else(|| error.to_string(), ToString::to_string)
}
