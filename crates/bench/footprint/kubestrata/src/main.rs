//! Ten kinds, a controller for each, which decodes the object from its cache: what is built to compare size and time.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
use k8s_openapi::serde::de::DeserializeOwned;
use kubestrata_controller::prelude::*;

fn add<K: Kind + DeserializeOwned + Debug>(
    manager: &mut Manager,
    name: &'static str,
) -> Result<(), BoxError> {
    let controller = Controller::builder(name).for_kind::<K>();
    manager.add(controller.reconcile(async |context, key| {
        if let Some(object) = context.client().get_opt::<K>(&key).await? {
            println!("{object:?}");
        }
        Ok(Action::done())
    }))?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut manager = Manager::builder(Transport::connect(Config::infer()?)?).build();
    add::<ConfigMap>(&mut manager, "configmaps")?;
    add::<Deployment>(&mut manager, "deployments")?;
    add::<Job>(&mut manager, "jobs")?;
    add::<Namespace>(&mut manager, "namespaces")?;
    add::<Node>(&mut manager, "nodes")?;
    add::<Pod>(&mut manager, "pods")?;
    add::<ReplicaSet>(&mut manager, "replicasets")?;
    add::<Secret>(&mut manager, "secrets")?;
    add::<Service>(&mut manager, "services")?;
    add::<StatefulSet>(&mut manager, "statefulsets")?;
    manager.run(async { tokio::signal::ctrl_c().await.expect("signals can be waited for") }).await?;
    Ok(())
}
