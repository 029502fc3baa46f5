//! Each part that can be swapped, swapped: the same changes, the same end.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use kubestrata_api_types::{
    ApiRequest, ApiResponse, BoxError, Operation, Status, WatchOptions, reason,
};
use kubestrata_codec::{DecodeLayer, Decoded, Encoded, Item};
use kubestrata_store_index::{Reader, Stored};
use kubestrata_transport::{Config, Protocol, Transport};
use libtest_mimic::Trial;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::bed::{Bed, Stack, eventually, singles};
use crate::follow::{churn, informer, state};
use crate::kinds::Form;
use crate::target::Target;

pub(crate) fn trials() -> Vec<Trial> {
    singles![
        json_and_protobuf,
        sockets_and_no_sockets,
        encoded_and_decoded,
        http1_and_http2,
        streaming_list_and_list_with_watch,
        a_history_that_is_gone_is_listed_again,
    ]
}

type Model = BTreeMap<String, i32>;

async fn follows<T: Stored + Item<ReplicaSet>>(reader: &Reader<T>, model: &Model) {
    eventually("the copy equals the model", async || state(reader) == *model).await;
}

async fn json_and_protobuf() {
    let json = Bed::<ReplicaSet>::new(Target::InProcess, Form::Json).await;
    let mut protobuf = json.clone();
    protobuf.form = Form::Protobuf;
    let a = informer::<_, Encoded>(&json, Arc::new(json.stack.clone())).await;
    let b = informer::<_, Encoded>(&protobuf, Arc::new(json.stack.clone())).await;
    let (model, _) = churn(&protobuf).await;
    follows(&a.reader(), &model).await;
    follows(&b.reader(), &model).await;
    for item in a.reader().list() {
        use kubestrata_api_types::Object as _;
        let other = b.reader().get(&item.key()).unwrap();
        assert_ne!(item.format(), other.format());
        assert_eq!(item.decode::<ReplicaSet>().unwrap(), other.decode::<ReplicaSet>().unwrap());
    }
}

async fn sockets_and_no_sockets() {
    let bed = Bed::<ReplicaSet>::new(Target::Plain, Form::Protobuf).await;
    let server = bed.live.server.clone().unwrap();
    let direct = Transport::over(server, Config::in_process()).unwrap();
    let a = informer::<_, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let b = informer::<_, Encoded>(&bed, Arc::new(direct)).await;
    let (model, _) = churn(&bed).await;
    follows(&a.reader(), &model).await;
    follows(&b.reader(), &model).await;
}

async fn encoded_and_decoded() {
    let bed = Bed::<ReplicaSet>::new(Target::InProcess, Form::Protobuf).await;
    let decoded = DecodeLayer::<ReplicaSet>::new().layer(bed.stack.clone());
    let a = informer::<_, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let b = informer::<_, Decoded<ReplicaSet>>(&bed, Arc::new(decoded)).await;
    let (model, _) = churn(&bed).await;
    follows(&a.reader(), &model).await;
    follows(&b.reader(), &model).await;
}

async fn http1_and_http2() {
    let bed = Bed::<ReplicaSet>::new(Target::Tls, Form::Json).await;
    let mut config = bed.live.config();
    config.protocol = Protocol::Http1;
    let http1 = Transport::connect(config).unwrap();
    let a = informer::<_, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let b = informer::<_, Encoded>(&bed, Arc::new(http1)).await;
    let (model, _) = churn(&bed).await;
    follows(&a.reader(), &model).await;
    follows(&b.reader(), &model).await;
}

/// The same service, as a server that is too old for streaming lists.
fn without_streaming_lists(stack: Stack) -> Stack {
    BoxCloneSyncService::new(service_fn(move |request: ApiRequest| {
        let stack = stack.clone();
        async move {
            if let Operation::Watch(WatchOptions { send_initial_events: Some(_), .. }) =
                request.operation
            {
                let text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
                let refused: BoxError = Status::failure(422, reason::INVALID, text).into();
                return Err(refused);
            }
            let answer: Result<ApiResponse<Encoded>, BoxError> = stack.oneshot(request).await;
            answer
        }
    }))
}

async fn streaming_list_and_list_with_watch() {
    let bed = Bed::<ReplicaSet>::new(Target::InProcess, Form::Json).await;
    let old = without_streaming_lists(bed.stack.clone());
    let a = informer::<_, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let b = informer::<_, Encoded>(&bed, Arc::new(old)).await;
    let (model, _) = churn(&bed).await;
    follows(&a.reader(), &model).await;
    follows(&b.reader(), &model).await;
}

async fn a_history_that_is_gone_is_listed_again() {
    let bed = Bed::<ReplicaSet>::new(Target::InProcess, Form::Json).await;
    let informer = informer::<_, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let (model, _) = churn(&bed).await;
    let first = bed.get("a").await.unwrap();
    bed.live.server.as_ref().unwrap().compact().await;
    // A watch from before the compaction is refused with the one answer that makes clients list again.
    let options = WatchOptions {
        resource_version: kubestrata_api_types::ResourceVersion::from(1),
        ..WatchOptions::default()
    };
    let refused = match bed.watch(options).await {
        Err(error) => kubestrata_api_types::cause_ref::<Status>(error.as_ref()).cloned(),
        Ok(mut watch) => match watch.raw().await {
            Some(Err(error)) => kubestrata_api_types::cause_ref::<Status>(error.as_ref()).cloned(),
            other => panic!("an old version is served: {other:?}"),
        },
    };
    assert!(refused.expect("a Status").is_expired());
    // The informer does not care.
    follows(&informer.reader(), &model).await;
    bed.delete(first.metadata.name.as_deref().unwrap()).await.unwrap();
    let mut model = model;
    model.remove("a");
    follows(&informer.reader(), &model).await;
}
