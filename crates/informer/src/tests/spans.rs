//! What is traced: where something happens, never what an object holds.

use std::io;
use std::sync::Arc;

use kubestrata_testkit::Thing;
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

use super::{Log, server, settle, with};
use crate::{Config, HandlerConfig, Transform};

#[derive(Debug, Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn traces_name_informer_and_handler_and_hold_no_contents() {
    let buffer = Buffer::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(buffer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = server(
        "watch: +a@1{password=hunter2} +bad@2{.spec.token=hunter2} ?c@3 end@3 \
         ~a@4{password=hunter2} -a@5{password=hunter2} wait=5s gone | watch: +a@9{password=hunter2} end@9",
    );
    let transform = Transform::new(|thing: Thing| {
        assert_ne!(thing.name, "bad", "hunter2");
        Some(thing)
    });
    let config = Config { name: "mine".into(), transform: Some(transform), ..Config::default() };
    let informer = with(&server, config);
    struct Panics(Log);
    impl crate::Handler<Thing> for Panics {
        fn on_add(&self, _: &Thing, _: bool) {
            panic!("of the test");
        }
        fn on_update(&self, old: &Thing, new: &Thing) {
            self.0.on_update(old, new);
        }
        fn on_delete(&self, _: &Thing, _: bool) {}
    }
    let named = HandlerConfig { name: "watcher".into(), ..HandlerConfig::default() };
    informer.add_handler(Panics(Log::default()), named).unwrap();
    informer.start();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    settle().await;
    informer.stop().await;
    let text = String::from_utf8(buffer.0.lock().clone()).unwrap();
    assert!(text.contains("informer{name=\"mine\" resource=things.test.kubestrata.dev"), "{text}");
    assert!(text.contains("handler=watcher}"), "{text}");
    assert!(text.contains("a handler panicked") && text.contains("an object was left out"));
    assert!(text.contains("batch") && !text.contains("hunter2"), "{text}");
}
