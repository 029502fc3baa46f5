//! Encodings, and files that are written back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use secrecy::ExposeSecret as _;

use crate::kubeconfig::tree::Node;
use crate::kubeconfig::{EntryName, Kubeconfig, KubeconfigError};

fn show(node: &Node) -> String {
    match node {
        Node::Null => "null".to_owned(),
        Node::Plain(text) => text.expose_secret().to_owned(),
        Node::Text(text) => format!("{:?}", text.expose_secret()),
        Node::List(items) => format!("{:?}", items.iter().map(show).collect::<Vec<_>>()),
        Node::Map(entries) => {
            format!(
                "{:?}",
                entries.iter().map(|(key, value)| (key, show(value))).collect::<Vec<_>>()
            )
        }
    }
}

const TEXT: &str = "current-context: ü\ncontexts: [{name: ü, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]\n";

#[test]
fn files_may_have_byte_order_marks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let units = |big: bool| {
        let pair = move |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        format!("\u{feff}{TEXT}").encode_utf16().flat_map(pair).collect::<Vec<u8>>()
    };
    for bytes in [TEXT.into(), format!("\u{feff}{TEXT}").into_bytes(), units(true), units(false)] {
        std::fs::write(&path, &bytes).unwrap();
        let file = Kubeconfig::read(&path).unwrap();
        assert_eq!(file.current_context(), Some("ü"));
        assert_eq!(file.config(None).unwrap().server, "https://a");
        // Lines are counted all the same.
        let mut broken = bytes.clone();
        broken.truncate(bytes.len() / 2);
        std::fs::write(&path, broken).unwrap();
        assert!(Kubeconfig::read(&path).is_err());
    }
    for bytes in [&b"a: \xff"[..], &b"\xff\xfea"[..], &b"\xff\xfe\x00\xd8"[..]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Kubeconfig::read(&path).unwrap_err();
        assert!(matches!(error, KubeconfigError::Encoding { .. }), "{error}");
    }
    assert!(Kubeconfig::parse(&format!("\u{feff}{TEXT}"), Path::new("x")).is_ok());
}

const RICH: &str = "\
# Somebody's comment.
apiVersion: v1
kind: Config
x-unknown: {deep: [1, -2, 2.5, null, true, 'no', \"1\", ~, {a: []}, [[b]]], empty: {}}
preferences: {colors: true}
current-context: dev
clusters:
- name: dev
  cluster:
    server: https://dev.example:6443
    certificate-authority-data: |
      QUJD
      REVG
    extensions: [{name: minikube.sigs.k8s.io, extension: {last-update: 'Mon, 01 Jan 2026', version: 'v1.0: x'}}]
users:
- name: me
  user: {token: \"s3cret: 'with' \\\"quotes\\\" \\u263a \\t\", unknown-method: {key: s3cret}}
contexts:
- {name: dev, context: {cluster: dev, user: me, x: y}}
- {name: other, context: {cluster: dev}}
";

fn tree(text: &str) -> Node {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn what_is_written_back_has_lost_nothing() {
    let rich = RICH;
    let folder = tempfile::tempdir().unwrap();
    let (path, second) = (folder.path().join("config"), folder.path().join("second"));
    std::fs::write(&path, rich).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::write(&second, "users: [{name: two, user: {token: t}}] # stays\n").unwrap();
    let mut file = Kubeconfig::read_all([&path, &second]).unwrap();
    // Nothing has changed: nothing is written.
    file.save().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), rich);

    file.set_current_context("other").unwrap();
    file.set(EntryName::Context("other"), &["namespace"], Some("team")).unwrap();
    file.set(EntryName::Context("dev"), &["x"], None).unwrap();
    file.set(EntryName::User("new"), &["exec", "command"], Some("true")).unwrap();
    let config = file.config(None).unwrap();
    assert_eq!(config.namespace, "team");
    file.save().unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::fs::read_to_string(&second).unwrap().contains("# stays"));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no lock or other file is left"
    );

    // The same, but for what was asked for.
    let mut want = tree(rich);
    *want.entry("current-context") = Node::text("other");
    let contexts = want.entry("contexts");
    *contexts.named("other").unwrap().entry("context").entry("namespace") = Node::text("team");
    contexts.named("dev").unwrap().entry("context").remove("x");
    if let Node::List(users) = want.entry("users") {
        users.push(tree("{name: new, user: {exec: {command: 'true'}}}"));
    }
    assert_eq!(show(&tree(&written)), show(&want));
    assert_eq!(Kubeconfig::read(&path).unwrap().current_context(), Some("other"));

    // An entry is changed in the file that it is from.
    file.set(EntryName::User("two"), &["token"], Some("t2")).unwrap();
    file.save().unwrap();
    assert_eq!(
        std::fs::read_to_string(&second).unwrap(),
        "users:\n- name: two\n  user:\n    token: t2\n"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}

#[test]
fn what_cannot_be_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, RICH).unwrap();
    let mut file = Kubeconfig::read(&path).unwrap();
    assert!(matches!(file.set_current_context("nowhere"), Err(KubeconfigError::Unknown { .. })));
    let no_path = file.set(EntryName::User("me"), &[], Some("x"));
    assert!(matches!(no_path, Err(KubeconfigError::NoField)));
    let wrong = file.set(EntryName::Cluster("dev"), &["insecure-skip-tls-verify"], Some("s3cret"));
    let error = wrong.unwrap_err();
    assert!(
        matches!(error, KubeconfigError::Malformed { .. }) && !error.to_string().contains("s3cret")
    );
    // It is as it was.
    assert_eq!(file.config(None).unwrap().server, "https://dev.example:6443");
    file.set_current_context("other").unwrap();
    // kubectl is at work.
    let lock = folder.path().join("config.lock");
    std::fs::write(&lock, "").unwrap();
    assert!(matches!(file.save(), Err(KubeconfigError::Locked { .. })));
    std::fs::remove_file(&lock).unwrap();
    file.save().unwrap();
    assert_eq!(Kubeconfig::read(&path).unwrap().current_context(), Some("other"));
}

#[test]
fn what_others_write_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    let written = || std::fs::read_to_string(&path).unwrap();
    write(
        "current-context: a\npreferences: {colors: true}\ngone: 1\n\
         clusters: [{name: a, cluster: {server: 'https://a'}}]\n\
         users:\n- {name: one, user: {token: t1}}\n- {name: two, user: {token: t2}}\n- {name: three, user: {token: t3}}\n\
         contexts: [{name: a, context: {cluster: a, user: one}}, {name: b, context: {cluster: a}}]\n",
    );
    let mut ours = Kubeconfig::read(&path).unwrap();
    ours.set_current_context("b").unwrap();
    ours.set(EntryName::User("two"), &["token"], Some("ours")).unwrap();
    ours.set(EntryName::User("three"), &["token"], Some("ours")).unwrap();
    ours.set(EntryName::Context("new"), &["cluster"], Some("a")).unwrap();
    // Others change one and two, remove three, and add what nobody had; and the contexts are all gone.
    write(
        "current-context: a\npreferences: {colors: false}\nmore: [1]\n\
         clusters: [{name: a, cluster: {server: 'https://a2'}}, {name: z, cluster: {server: 'https://z'}}]\n\
         users:\n- {name: four, user: {token: theirs}}\n- {name: two, user: {username: theirs}}\n- {name: one, user: {token: theirs}}\n\
         contexts: ~\n",
    );
    ours.save().unwrap();
    let want = "current-context: b\npreferences:\n  colors: false\nmore:\n- 1\n\
        clusters:\n- name: a\n  cluster:\n    server: \"https://a2\"\n- name: z\n  cluster:\n    server: \"https://z\"\n\
        users:\n- name: four\n  user:\n    token: theirs\n- name: two\n  user:\n    token: ours\n\
        - name: one\n  user:\n    token: theirs\n- name: three\n  user:\n    token: ours\n\
        contexts:\n- name: new\n  context:\n    cluster: a\n";
    assert_eq!(show(&tree(&written())), show(&tree(want)), "{}", written());
    // It is known here too, and what was changed before is no change any more.
    assert_eq!(ours.contexts().collect::<Vec<_>>(), ["new"]);
    assert_eq!(ours.config(Some("new")).unwrap().server, "https://a2");
    write(&written().replace("token: ours", "token: later"));
    ours.set(EntryName::Context("new"), &["namespace"], Some("ns")).unwrap();
    ours.save().unwrap();
    assert_eq!(
        written(),
        format!("{want}    namespace: ns\n")
            .replace("token: ours", "token: later")
            .replace('"', "")
    );

    // What they have broken is told, and not made worse.
    ours.set(EntryName::Context("new"), &["namespace"], Some("m")).unwrap();
    for broken in ["users: [", "users: {}", "users: [{name: a}, {name: a}]"] {
        write(broken);
        let error = ours.save().unwrap_err();
        assert!(matches!(error, KubeconfigError::Malformed { .. }), "{error}");
        assert_eq!(written(), broken);
    }
    // A file that is gone is made, with all that was in it.
    std::fs::remove_file(&path).unwrap();
    ours.save().unwrap();
    assert!(written().contains("token: theirs") && written().contains("namespace: m"));
}

/// Many programs, each with a user of its own, as `kubectl config set-credentials`.
#[test]
fn writers_at_a_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, RICH).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut file = Kubeconfig::read(path).unwrap();
                for n in 0..10 {
                    let name = format!("user-{writer}-{n}");
                    file.set(EntryName::User(&name), &["token"], Some(&name)).unwrap();
                    while let Err(error) = file.save() {
                        assert!(matches!(error, KubeconfigError::Locked { .. }), "{error}");
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let written = tree(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(written.get("users").unwrap().items().len(), 41);
}

#[test]
fn what_is_written_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // In a folder that is not there yet.
    let path = folder.path().join(".kube/config");
    let mut file = Kubeconfig::parse(RICH, &path).unwrap();
    file.set_current_context("other").unwrap();
    file.save().unwrap();
    assert_eq!(mode(&path), 0o600);
    // Somebody was ended while he wrote, and had less care.
    let new = folder.path().join(".kube/config.new");
    std::fs::write(&new, "old").unwrap();
    allow(&new, 0o666);
    let open = std::fs::File::open(&new).unwrap();
    file.set_current_context("dev").unwrap();
    file.save().unwrap();
    assert_eq!((mode(&path), new.exists()), (0o600, false));
    assert_eq!(std::io::read_to_string(open).unwrap(), "old");
    // Or made a link of it, to have something else overwritten.
    let other = folder.path().join("other");
    std::fs::write(&other, "other").unwrap();
    std::os::unix::fs::symlink(&other, &new).unwrap();
    allow(&path, 0o400);
    file.set_current_context("other").unwrap();
    file.save().unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "other");
    assert_eq!((mode(&path), new.exists()), (0o400, false));
    // The file may be a link, which stays.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut linked = Kubeconfig::read(&link).unwrap();
    linked.set_current_context("dev").unwrap();
    linked.save().unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Kubeconfig::read(&path).unwrap().current_context(), Some("dev"));
}

#[test]
fn a_file_has_a_size_even_if_it_does_not_tell() {
    let error = Kubeconfig::read("/dev/zero").unwrap_err();
    assert!(matches!(error, KubeconfigError::TooLarge { limit: 16_777_216, .. }), "{error}");
}

#[test]
fn keys_that_are_no_text_become_text() {
    let file =
        Kubeconfig::parse("x: {1: a, true: b, -2.5: c, ~: d}\ncontexts: []\n", Path::new("x"));
    assert_eq!(file.unwrap().contexts().count(), 0);
    let node = tree("{1: a, true: b, -2.5: c, ~: d}");
    assert_eq!(node.render().expose_secret(), "\"1\": a\n\"true\": b\n\"-2.5\": c\n\"null\": d\n");
}

/// Trees at random, from a fixed seed: what is rendered reads as what it was.
#[test]
fn any_tree_survives() {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..400 {
        let node = Node::Map(vec![("root".to_owned(), random(4, &mut next))]);
        let text = node.render();
        let again = tree(text.expose_secret());
        assert_eq!(show(&again), show(&node), "{}", text.expose_secret());
    }
}

const TEXTS: [&str; 24] = [
    "",
    "a",
    "true",
    "Null",
    "no",
    "1",
    "1.5",
    "0x1f",
    "1e3",
    ".inf",
    "~",
    "- a",
    "a: b",
    "a:",
    "#a",
    "a #b",
    " a ",
    "{a",
    "'",
    "\"\\",
    "a\nb\n",
    "\t\r\u{7}\u{85}\u{2028}",
    "ü☺😀\u{feff}",
    "2026-01-01",
];

fn random(depth: u32, next: &mut impl FnMut(u64) -> u64) -> Node {
    let text =
        |next: &mut dyn FnMut(u64) -> u64| TEXTS[usize::try_from(next(24)).unwrap()].to_owned();
    match next(if depth == 0 { 6 } else { 8 }) {
        0 => Node::Null,
        1 => Node::Plain((next(2) == 1).to_string().into()),
        2 => Node::Plain(next(1 << 31).to_string().into()),
        3 => Node::Plain((-1 - i64::try_from(next(1 << 31)).unwrap()).to_string().into()),
        4 => {
            let float = f64::from(u32::try_from(next(1 << 20)).unwrap()) / 64.0;
            Node::Plain(format!("{float:?}").into())
        }
        5 => Node::Text(text(next).into()),
        6 => Node::List((0..next(4)).map(|_| random(depth - 1, next)).collect()),
        _ => {
            // Keys are texts, and no key is there twice.
            let mut entries: Vec<(String, Node)> = Vec::new();
            for n in 0..next(4) {
                entries.push((format!("{}{n}", text(next)), random(depth - 1, next)));
            }
            Node::Map(entries)
        }
    }
}

/// A password or a name may look like a number.
#[test]
fn what_looks_like_a_number_is_written_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    for text in [
        "0123456",
        "123456789012345678901234",
        "1e5",
        "1_000",
        "0x1F",
        "0o17",
        "+1",
        "1.10",
        "00",
        "yes",
        "True",
        "-0",
        "1.",
        "no",
    ] {
        let file = format!(
            "current-context: {text}\ncontexts: [{{name: {text}, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://a'}}}}]\n\
             users: [{{name: a, user: {{username: me, password: {text}}}}}]\n{text}: [{text}]\n"
        );
        std::fs::write(&path, file).unwrap();
        let mut file = Kubeconfig::read(&path).unwrap_or_else(|error| panic!("{text}: {error}"));
        let name = file.current_context().unwrap().to_owned();
        assert_eq!(name, text);
        file.set(EntryName::Context(&name), &["namespace"], Some("n")).unwrap();
        file.save().unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        for line in [
            format!("current-context: {text}\n"),
            format!("- name: {text}\n"),
            format!("password: {text}\n"),
            format!("- {text}\n"),
        ] {
            assert!(written.contains(&line), "{line:?} is not in {written}");
        }
        let again = Kubeconfig::read(&path).unwrap();
        assert_eq!(again.config(None).unwrap().namespace, "n", "{written}");
        assert_eq!(again.contexts().count(), 1, "{written}");
    }
}
