//! The prelude and the derives, as users of the facade meet them: no other crate of kubestrata is named here.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kubestrata_controller::prelude::*;

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, Object, Kind)]
#[kubestrata(group = "example.com", version = "v1", plural = "widgets", scope = "Cluster")]
struct Widget {
    metadata: ObjectMeta,
}

struct Nothing;

#[async_trait]
impl Reconciler for Nothing {
    async fn reconcile(&self, context: &Context, key: ObjectKey) -> Result<Action, BoxError> {
        let _ = context.lister::<Widget>()?.get(&key)?;
        Ok(Action::done())
    }
}

#[test]
fn derives_find_the_traits_through_the_facade() {
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let widget = Widget { metadata };
    assert_eq!((widget.name(), widget.key()), ("a", ObjectKey::cluster("a")));
    assert_eq!(Widget::resource().to_string(), "widgets.example.com");
}

#[tokio::test]
async fn a_manager_over_a_transport_takes_controllers_of_all_kinds() {
    let config = Config::new("http://127.0.0.1:1").unwrap();
    let mut manager = Manager::builder(Transport::connect(config).unwrap()).build();
    let widgets = Controller::builder("widgets").for_kind::<Widget>().reconciler(Nothing);
    manager.add(widgets).unwrap();
    let sets = Controller::builder("sets")
        .for_kind::<ReplicaSet>()
        .with_predicate(predicate::generation_changed())
        .reconcile(async |context, key| {
            let _ = context.client().get_opt::<ReplicaSet>(&key).await?;
            Ok(Action::done())
        });
    manager.add(sets).unwrap();
    manager.run(async {}).await.unwrap();
}
