//! Reading kubeconfig files.

mod writing;

use std::path::Path;

use expect_test::{Expect, expect};

use super::Kubeconfig;
use crate::Config;

const GOOD: &str = "\
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: dev
clusters:
- name: dev
  cluster:
    server: https://dev.example:6443/base
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    extensions: [{name: x, extension: {a: b}}]
- name: local
  cluster: {server: 'http://127.0.0.1:8080', disable-compression: true}
users:
- name: token
  user: {token: s3cret-token}
- name: files
  user: {client-certificate: a.crt, client-key: /abs/a.key, tokenFile: run/token}
- name: basic
  user: {username: me, password: s3cret-password}
- name: acting
  user: {token: t, as: jane, as-groups: [dev]}
contexts:
- name: dev
  context: {cluster: dev, user: token, namespace: team}
- name: files
  context: {cluster: dev, user: files}
- name: basic
  context: {cluster: local, user: basic}
- name: acting
  context: {cluster: local, user: acting}
- name: anonymous
  context: {cluster: local}
";

fn parse(text: &str) -> Result<Kubeconfig, super::KubeconfigError> {
    Kubeconfig::parse(text, Path::new("/home/me/.kube/config"))
}

fn show(config: &Config) -> String {
    format!(
        "{} {:?} {:?} {:?} ns={} name={:?} insecure={} {:?}",
        config.server,
        config.auth,
        config.tls.authority,
        config.tls.identity,
        config.namespace,
        config.tls.server_name,
        config.tls.insecure,
        config.compression
    )
}

#[test]
fn contexts_become_configurations() {
    let file = parse(GOOD).unwrap();
    assert_eq!(file.current_context(), Some("dev"));
    assert_eq!(file.contexts().count(), 5);
    let shown: Vec<_> = [None, Some("files"), Some("basic"), Some("anonymous")]
        .into_iter()
        .map(|context| show(&file.config(context).unwrap()))
        .collect();
    expect![[r#"
        https://dev.example:6443/base Token Some(Pem(/home/me/.kube/pki/ca.crt)) None ns=team name=Some("kubernetes") insecure=false Auto
        https://dev.example:6443/base TokenFile(/home/me/.kube/run/token) Some(Pem(/home/me/.kube/pki/ca.crt)) Some(Identity { certificate: Pem(/home/me/.kube/a.crt), key: Pem(/abs/a.key) }) ns=default name=Some("kubernetes") insecure=false Auto
        http://127.0.0.1:8080/ None None None ns=default name=None insecure=false Never
        http://127.0.0.1:8080/ None None None ns=default name=None insecure=false Never"#]]
    .assert_eq(&shown.join("\n"));
    let acting = file.config(Some("acting")).unwrap().impersonate.unwrap();
    assert_eq!((acting.user.as_str(), acting.groups), ("jane", vec!["dev".to_owned()]));
    let all = format!("{file:?} {shown:?}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn json_is_yaml_too() {
    let file = parse(
        r#"{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":""}}],
            "clusters":[{"name":"a","cluster":{"server":"https://a"}}],"users":null}"#,
    );
    assert_eq!(file.unwrap().config(None).unwrap().server, "https://a");
}

#[test]
fn the_first_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let one = write(
        "one/config",
        "clusters: [{name: c, cluster: {server: 'https://one', certificate-authority: ca}}]\n",
    );
    let two = write(
        "two/config",
        "current-context: x\n\
         clusters: [{name: c, cluster: {server: 'https://two'}}, {name: d, cluster: {server: 'https://d', certificate-authority: ca}}]\n\
         contexts: [{name: x, context: {cluster: c}}, {name: y, context: {cluster: d}}]\n",
    );
    let three = write("three/config", "current-context: y\n");
    let missing = folder.path().join("missing");
    let merged = Kubeconfig::read_all([&missing, &one, &two, &three, &one]).unwrap();
    assert_eq!(merged.files().count(), 3);
    assert_eq!(merged.current_context(), Some("x"));
    assert_eq!(merged.config(None).unwrap().server, "https://one");
    // Paths are relative to the file that names them.
    let authority = format!("{:?}", merged.config(Some("y")).unwrap().tls.authority.unwrap());
    assert_eq!(authority, format!("Pem({})", folder.path().join("two/ca").display()));
    let error = Kubeconfig::read_all([&missing]).unwrap_err().to_string();
    assert_eq!(error, format!("no kubeconfig found; tried {}", missing.display()));
    assert!(Kubeconfig::read(&missing).is_err());
}

fn check(text: &str, want: &Expect) {
    let error = parse(text).and_then(|file| file.config(None)).unwrap_err().to_string();
    assert!(!error.contains("s3cret"), "{error}");
    want.assert_eq(&error);
}

/// A file with one context, cluster and user; the fields of the last two in lines 6 and 9.
fn with(cluster: &str, user: &str) -> String {
    format!(
        "current-context: a\ncontexts:\n- {{name: a, context: {{cluster: a, user: a}}}}\nclusters:\n- cluster:\n    {cluster}\n  name: a\nusers:\n- user:\n    {user}\n  name: a\n"
    )
}

#[test]
fn errors_name_file_line_and_field() {
    check(
        "",
        &expect![
            "no context chosen: the kubeconfig has no current-context (/home/me/.kube/config)"
        ],
    );
    check(
        "current-context: prod\ncontexts: [{name: dev, context: {cluster: a}}]",
        &expect![[r#"/home/me/.kube/config:1: context "prod" is not defined; known: dev"#]],
    );
    check(
        "current-context: a\ncontexts:\n- name: a\n  context:\n    cluster: nowhere\n",
        &expect![[r#"/home/me/.kube/config:5: cluster "nowhere" is not defined; known: none"#]],
    );
    check(
        "current-context: a\ncontexts:\n- name: a\n  context:\n    cluster: a\n    user: nobody\nclusters: [{name: a, cluster: {server: 'https://a'}}]\n",
        &expect![[r#"/home/me/.kube/config:6: user "nobody" is not defined; known: none"#]],
    );
    check(
        "current-context: a\ncontexts:\n- context: {}\n  name: a\n",
        &expect![[r#"/home/me/.kube/config:4: field "cluster": is required"#]],
    );
    check(
        "users:\n- name: a\n- name: b\n- {name: a, user: {token: s3cret}}\n",
        &expect![[r#"/home/me/.kube/config:4: field "name": is the name of an earlier entry too"#]],
    );
    check(
        "users:\n- name: a\n  user:\n    token: [s3cret]\n",
        &expect![[r#"/home/me/.kube/config:4: field "token": expected string scalar"#]],
    );
    check(
        "users:\n- name: a\n  user: s3cret\n",
        &expect![[r#"/home/me/.kube/config:3: field "user": expected mapping start"#]],
    );
    check(
        "users:\n- name: a\n  user:\n   token: \"s3cret\n",
        &expect![[r#"/home/me/.kube/config:4: field "token": not valid YAML"#]],
    );
    check(
        &with("server: ftp://a", "token: t"),
        &expect![[
            r#"/home/me/.kube/config:6: field "server": is no server URL: the scheme must be http or https"#
        ]],
    );
    check(
        &with("server: https://me:s3cret@a", "token: t"),
        &expect![[
            r#"/home/me/.kube/config:6: field "server": is no server URL: credentials do not belong into the URL"#
        ]],
    );
    check(
        &with("certificate-authority-data: '%%'\n    server: https://a", "token: t"),
        &expect![[r#"/home/me/.kube/config:6: field "certificate-authority-data": is not base64"#]],
    );
    check(
        &with("server: https://a", "client-key-data: s3cret!"),
        &expect![[r#"/home/me/.kube/config:10: field "client-key-data": is not base64"#]],
    );
    check(
        &with("server: https://a", "client-certificate: a.crt"),
        &expect![[r#"/home/me/.kube/config:11: field "client-key": is missing"#]],
    );
    check(
        &with("server: https://a\n    proxy-url: ftp://me:s3cret@proxy:3128", "token: t"),
        &expect![[
            r#"/home/me/.kube/config:7: field "proxy-url": a proxy must have scheme http, https or socks5"#
        ]],
    );
    check(
        &with("server: https://a", "auth-provider: {name: gcp, config: {access-token: s3cret}}"),
        &expect![[
            r#"/home/me/.kube/config:10: field "auth-provider" is not supported: Kubernetes removed it in 1.26; use an exec plugin"#
        ]],
    );
    check(
        &with("server: https://a", "as-groups: [system:masters]"),
        &expect![[
            r#"/home/me/.kube/config:11: field "as": is missing, but other as-* fields are set"#
        ]],
    );
    check(
        &with(
            "insecure-skip-tls-verify: true\n    server: https://a\n    certificate-authority: ca",
            "token: t",
        ),
        &expect![[
            r#"/home/me/.kube/config:9: field "insecure-skip-tls-verify": cannot be combined with certificate-authority"#
        ]],
    );
    check(
        &with(
            "server: https://a",
            "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1alpha1}",
        ),
        &expect![[
            r#"/home/me/.kube/config:10: field "apiVersion": is no known version of exec plugins"#
        ]],
    );
    for (exec, want) in [
        (
            "apiVersion: client.authentication.k8s.io/v1",
            expect![[r#"/home/me/.kube/config:10: field "interactiveMode": is required"#]],
        ),
        (
            "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always",
            expect![[
                r#"/home/me/.kube/config:10: field "interactiveMode" is not supported: a plugin that asks a person cannot serve a controller"#
            ]],
        ),
        (
            "apiVersion: client.authentication.k8s.io/v1, interactiveMode: s3cret",
            expect![[
                r#"/home/me/.kube/config:10: field "interactiveMode": must be Never, IfAvailable or Always"#
            ]],
        ),
        (
            "apiVersion: client.authentication.k8s.io/v1beta1, env: [{name: '', value: s3cret}]",
            expect![[r#"/home/me/.kube/config:10: field "env": has a variable without a name"#]],
        ),
    ] {
        check(&with("server: https://a", &format!("exec: {{command: aws, {exec}}}")), &want);
    }
    check(
        &with("server: https://a", "token: s3cret\n    username: me\n    password: s3cret"),
        &expect![[r#"/home/me/.kube/config:11: field "username": cannot be combined with token"#]],
    );
}

#[test]
fn a_plugin_is_not_asked_where_there_is_something_else() {
    let exec = "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1beta1}";
    for (more, want) in [
        ("", "Exec(aws)"),
        ("\n    token: t", "Token"),
        ("\n    username: me", "Basic"),
        ("\n    client-certificate: c\n    client-key: k", "None"),
    ] {
        let config = parse(&with("server: https://a", &format!("{exec}{more}")));
        let config = config.unwrap().config(None).unwrap();
        assert_eq!(format!("{:?}", config.auth), want);
    }
}

/// Go, into whose types kubectl reads a file, takes null for the zero value, wherever it is.
#[test]
fn null_is_nothing_everywhere() {
    for text in ["null", "~\n", "# nothing\n", "---\n", "contexts:\nusers: ~\nclusters: null\n"] {
        assert_eq!(parse(text).unwrap().contexts().count(), 0, "{text:?}");
    }
    let cluster = "{server: 'https://a', tls-server-name: , insecure-skip-tls-verify: , certificate-authority: ~, \
                   certificate-authority-data: null, proxy-url: , disable-compression: , \
                   extensions: [~, {name: , extension: }]}";
    let nothing = "client-certificate: , client-certificate-data: , client-key: , client-key-data: , token: , tokenFile: , \
                   username: , password: , as: , as-uid: , as-groups: , as-user-extra: , exec: , auth-provider: ";
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [a, ~], \
                env: [{name: X, value: }, {name: Y}], installHint: , provideClusterInfo: , interactiveMode: }";
    let text = |user: &str| {
        format!(
            "current-context: a\nkind:\npreferences:\nextensions:\n\
             contexts: [~, {{name: a, context: {{cluster: a, user: a, namespace: }}}}]\n\
             clusters: [{{name: a, cluster: {cluster}}}]\nusers: [{{name: a, user: {user}}}]\n"
        )
    };
    let mut shown = Vec::new();
    for user in [
        "~".to_owned(),
        format!("{{{nothing}}}"),
        format!("{{{exec}}}"),
        "{token: t, as: jane, as-uid: ~, as-groups: [dev, ~], as-user-extra: {a: , b: [~, c]}}"
            .to_owned(),
        "{username: me, password: }".to_owned(),
    ] {
        let config = parse(&text(&user)).unwrap().config(None).unwrap();
        shown.push(format!("{} {:?}", show(&config), config.impersonate));
    }
    expect![[r#"
        https://a/ None None None ns=default name=None insecure=false Auto None
        https://a/ None None None ns=default name=None insecure=false Auto None
        https://a/ Exec(aws) None None ns=default name=None insecure=false Auto None
        https://a/ Token None None ns=default name=None insecure=false Auto Some(Impersonation { user: "jane", uid: None, groups: ["dev", ""], extra: {"a": [], "b": ["", "c"]} })
        https://a/ Basic None None ns=default name=None insecure=false Auto None"#]].assert_eq(&shown.join("\n"));
}

/// kubectl's rule, and everybody on the way could read them.
#[test]
fn a_server_without_tls_gets_no_credentials() {
    for (server, auth) in [("http://a", "None"), ("https://a", "Token")] {
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: a, user: {{token: t, as: jane}}}}]\n"
        );
        let config = parse(&text).unwrap().config(None).unwrap();
        assert_eq!(format!("{:?}", config.auth), auth, "{server}");
        assert!(config.impersonate.is_some());
    }
}

/// What kubectl refuses must not switch verification off.
#[test]
fn a_boolean_is_no_string() {
    let flag = |flag: &str| {
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a}}}}]\n\
             clusters:\n- name: a\n  cluster: {{server: 'https://a', insecure-skip-tls-verify: {flag}}}\n"
        );
        parse(&text).and_then(|file| file.config(None)).map(|config| config.tls.insecure)
    };
    for (text, insecure) in
        [("true", true), ("false", false), ("yes", true), ("off", false), ("", false)]
    {
        assert_eq!(flag(text).unwrap(), insecure, "{text}");
    }
    for text in ["'true'", "\"true\"", "'false'", "1", "maybe", "[true]"] {
        let error = flag(text).unwrap_err().to_string();
        assert!(error.contains("config:5"), "{text}: {error}");
    }
}
