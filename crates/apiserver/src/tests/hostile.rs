//! Small requests that ask for a lot.

use http::Method;
use kubestrata_api_types::{ResourceType, Scope};
use serde_json::{Value, json};

use super::harness::{MAPS, get, map, patch, post, read, send};
use crate::Server;

const FOOS: &str = "/apis/x.io/v1/namespaces/default/foos";

async fn foo() -> Server {
    let ty = ResourceType::new("x.io", "v1", "Foo", "foos", Scope::Namespaced);
    let server = Server::builder().declare(ty).start();
    let body = json!({
        "apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "a"},
        "spec": {"seed": "0123456789", "list": ["0123456789"]},
    });
    assert_eq!(post(&server, FOOS, body).await.code, 201);
    server
}

fn rejected() -> (u16, String, String) {
    let message = "the server rejected our request due to an error in our request";
    (422, "Invalid".to_owned(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn copies_of_copies_are_bounded() {
    let server = foo().await;
    let path = format!("{FOOS}/a");
    let before = get(&server, &path).await.text;
    // Each one doubles the list.
    let double = json!({"op": "copy", "from": "/spec/list", "path": "/spec/list/-"});
    let got = patch(&server, &path, "json-patch", Value::from(vec![double.clone(); 40])).await;
    assert_eq!(got.failure(), rejected());
    assert_eq!(get(&server, &path).await.text, before);
    let got = patch(&server, &path, "json-patch", Value::from(vec![double; 4])).await;
    assert_eq!(got.code, 200, "{}", got.text);
    assert_eq!(got.json()["spec"]["list"].as_array().unwrap().len(), 5);
    assert_eq!(got.json()["spec"]["list"][1], json!(["0123456789"]));
}

#[tokio::test(start_paused = true)]
async fn a_patch_makes_nothing_that_is_too_deep_to_be_read() {
    let server = foo().await;
    let path = format!("{FOOS}/a");
    let deepen = json!({"op": "copy", "from": "/spec", "path": "/spec/below"});
    let got = patch(&server, &path, "json-patch", Value::from(vec![deepen.clone(); 1000])).await;
    assert_eq!(got.failure(), rejected());
    let nest = |depth: usize| {
        let step = |at: usize| json!({"op": "add", "path": format!("/spec{}", "/n".repeat(at)), "value": {}});
        Value::from((1..=depth).map(step).collect::<Vec<_>>())
    };
    assert_eq!(patch(&server, &path, "json-patch", nest(126)).await.failure(), rejected());
    assert_eq!(patch(&server, &path, "json-patch", nest(125)).await.code, 200);
    assert_eq!(get(&server, &path).await.code, 200);
    // Written and read again.
    let got = patch(&server, &path, "merge-patch", json!({"spec": {"seed": "1"}})).await;
    assert_eq!(got.code, 200, "{}", got.text);
}

#[tokio::test(start_paused = true)]
async fn patches_do_not_add_up_to_what_a_body_may_not_be() {
    let server = Server::start_default();
    map(&server, "a").await;
    let path = format!("{MAPS}/a");
    let part = "x".repeat(2 << 20);
    let first = json!({"data": {"a": part}});
    assert_eq!(patch(&server, &path, "merge-patch", first).await.code, 200);
    for kind in ["merge-patch", "strategic-merge-patch"] {
        let got = patch(&server, &path, kind, json!({"data": {"b": part}})).await;
        let message = "Request entity too large: limit is 3145728".to_owned();
        assert_eq!(got.failure(), (413, "RequestEntityTooLarge".to_owned(), message));
    }
    let smaller = json!({"data": {"a": "y", "b": part}});
    assert_eq!(patch(&server, &path, "merge-patch", smaller).await.code, 200);
}

async fn yaml(server: &Server, body: &str) -> super::harness::Got {
    let headers = [("content-type", "application/yaml")];
    read(send(server, Method::POST, MAPS, &headers, body).await).await
}

#[tokio::test(start_paused = true)]
async fn aliases_of_aliases_are_bounded() {
    let server = Server::start_default();
    let mut bomb = "x0: &x0 [secret]\n".to_owned();
    for level in 1..8 {
        let below = vec![format!("*x{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("x{level}: &x{level} [{below}]\n"));
    }
    let large = format!("a: &a {}\nb: [*a, *a, *a, *a]\n", "x".repeat(1 << 20));
    for body in [bomb, large] {
        let (code, reason, message) = yaml(&server, &body).await.failure();
        assert_eq!((code, reason.as_str()), (400, "BadRequest"));
        assert!(message.starts_with("error converting YAML to JSON: "), "{message}");
        assert!(!message.contains("secret") && message.len() < 200, "{message}");
    }
    let fine = "metadata: {name: b}\ndata: &d\n  k: &v w\n  l: *v\nbinaryData: {}\n";
    let got = yaml(&server, fine).await;
    assert_eq!((got.code, &got.json()["data"]["l"]), (201, &json!("w")));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_yaml_is_said_without_showing_it() {
    let server = Server::start_default();
    let (code, _, message) =
        yaml(&server, "metadata:\n  name: a\ndata:\n  k: hush\n  l: [whisper\n").await.failure();
    assert_eq!(code, 400);
    assert!(message.contains("line ") && !message.contains('\n'), "{message}");
    assert!(!message.contains("hush") && !message.contains("whisper"), "{message}");
}
