//! kube-apiserver says farewell to connections all day (`--goaway-chance`), so that clients spread over its replicas.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{Format, ObjectKey};
use kubestrata_codec::Client as _;
use kubestrata_testkit::FaultProxy;
use kubestrata_transport::{Retry, Transport};
use tokio::time::timeout;

use super::pair::Pair;
use super::{NAMESPACE, RECOVERY, bin, live};

/// The most that kube-apiserver accepts: one request in fifty.
const CHANCE: &str = "--goaway-chance=0.02";
const CALLERS: usize = 10;
/// Each makes one write and one read.
const ROUNDS: usize = 200;
/// Of 4,000 requests some 80 are answered with a farewell.
const FAREWELLS_MIN: usize = 30;

/// Nobody notices: no call fails, though none is ever retried for its answer, and no write is done twice.
pub(super) async fn goaway() {
    let pair = Pair::start_with(&bin(), &[CHANCE]).await;
    let proxy = FaultProxy::start(pair.address()).await.unwrap();
    let mut config = pair.config_through(proxy.port());
    config.retry = Retry::never();
    let transport = Transport::connect(config).unwrap();
    let callers = (0..CALLERS).map(|caller| {
        let transport = transport.clone();
        async move {
            for round in 0..ROUNDS {
                let made = transport.create(&made_by(caller)).await;
                let made = made.unwrap_or_else(|error| panic!("write {round}: {error:?}"));
                let name = made.metadata.name.clone().expect("the server gives a name");
                let key = ObjectKey::namespaced(NAMESPACE, &name);
                let read = transport.get::<ConfigMap>(&key).await;
                read.unwrap_or_else(|error| panic!("read {round}: {error:?}"));
            }
        }
    });
    timeout(RECOVERY, join_all(callers)).await.expect("all callers are done in time");
    let mut made = BTreeMap::<String, usize>::new();
    for key in live::<ConfigMap>(&pair, Format::Protobuf).await.into_keys() {
        if let Some((caller, _)) = key.name().split_once("-made-") {
            *made.entry(caller.to_owned()).or_default() += 1;
        }
    }
    let expected = (0..CALLERS).map(|caller| (caller.to_string(), ROUNDS)).collect();
    assert_eq!(made, expected, "each write is done once");
    let connections = proxy.accepted();
    println!("farewells: {connections} connections for {} requests", 2 * CALLERS * ROUNDS);
    assert!(connections > FAREWELLS_MIN, "{connections}");
    pair.stop().await;
}

fn made_by(caller: usize) -> ConfigMap {
    let metadata = ObjectMeta {
        generate_name: Some(format!("{caller}-made-")),
        namespace: Some(NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}
