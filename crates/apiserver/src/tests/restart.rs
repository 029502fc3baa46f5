use super::harness::{MAPS, Watch, delete, get, map, post};
use crate::{Config, Server};

fn from(version: u64) -> String {
    format!("{MAPS}?watch=1&resourceVersion={version}")
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_objects_and_forgets_what_watches_could_resume_from() {
    let server = Server::start_default();
    let first = map(&server, "a").await;
    let last = map(&server, "b").await;
    let mut before = Watch::open(&server, &from(last)).await;
    let next = server.restart();
    assert_eq!(before.next().await, "EOF", "the watches of the old server end");

    assert_eq!(get(&next, MAPS).await.names(), ["default/a", "default/b"]);
    let mut old = Watch::open(&next, &from(first)).await;
    assert!(old.next().await.starts_with("ERROR 410"), "the watch cache starts empty");
    let mut resumed = Watch::open(&next, &from(last)).await;
    assert_eq!(map(&next, "c").await, last + 1, "revisions go on");
    assert_eq!(resumed.next().await, format!("ADDED c@{}", last + 1));
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_declared_resources() {
    use kubestrata_api_types::{ResourceType, Scope};
    let widgets = ResourceType::new("x.io", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder().declare(widgets).start();
    let path = "/apis/x.io/v1/namespaces/default/widgets";
    let body =
        serde_json::json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert_eq!(post(&server, path, body).await.code, 201);
    assert_eq!(get(&server.restart(), path).await.names(), ["default/w"]);
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_has_the_objects_of_the_backup() {
    let server = Server::start_default();
    let kept = map(&server, "a").await;
    let backup = server.backup().await.unwrap();
    assert_eq!(backup.revision(), kept);
    let lost = map(&server, "b").await;
    delete(&server, &format!("{MAPS}/a")).await;

    let again = server.restore(&backup, backup.revision());
    assert_eq!(get(&again, MAPS).await.names(), ["default/a"]);
    assert_eq!(map(&again, "c").await, lost, "the revision is given a second time");

    let above = server.restore(&backup, 1_000);
    assert_eq!(get(&above, MAPS).await.names(), ["default/a"]);
    let mut old = Watch::open(&above, &from(lost)).await;
    assert!(old.next().await.starts_with("ERROR 410"), "no revision means two things");
    assert_eq!(map(&above, "c").await, 1_001);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_begin_above_the_revisions_of_an_earlier_one() {
    let earlier = Server::start_default();
    let known = map(&earlier, "a").await;
    let mut config = Config::default();
    config.storage.first_revision = 1_000_000;
    let server = Server::builder().config(config).start();
    assert!(map(&server, "b").await > 1_000_000);
    let mut old = Watch::open(&server, &from(known)).await;
    assert!(old.next().await.starts_with("ERROR 410"), "the client must list again");
    let list = get(&server, &format!("{MAPS}?resourceVersion={known}")).await;
    assert_eq!(list.names(), ["default/b"]);
}
