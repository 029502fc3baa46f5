//! The same ten kinds with kube's runtime: what is built to compare size and time.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};

fn run<K>(client: &Client) -> BoxFuture<'static, ()>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Debug + Unpin + Send + Sync,
{
    let api: Api<K> = Api::all(client.clone());
    let reconcile = |object: Arc<K>, _: Arc<()>| async move {
        println!("{object:?}");
        Ok::<_, std::io::Error>(Action::await_change())
    };
    Controller::new(api, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(()))
        .for_each(|_| async {})
        .boxed()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    join_all([
        run::<ConfigMap>(&client),
        run::<Deployment>(&client),
        run::<Job>(&client),
        run::<Namespace>(&client),
        run::<Node>(&client),
        run::<Pod>(&client),
        run::<ReplicaSet>(&client),
        run::<Secret>(&client),
        run::<Service>(&client),
        run::<StatefulSet>(&client),
    ])
    .await;
    Ok(())
}
