//! What is traced: where something happens, never what an object holds. In a program of its own: tests beside it could
//! reach a line first and make tracing remember that nobody listens.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_informer::{Config, Handler, HandlerConfig, Informer, Transform};
use kubestrata_testkit::{Scripted, Thing, things};
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

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

struct Panics;

impl Handler<Thing> for Panics {
    fn on_add(&self, _: &Thing, _: bool) {
        panic!("of the test");
    }
    fn on_update(&self, _: &Thing, _: &Thing) {}
    fn on_delete(&self, _: &Thing, _: bool) {}
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
    let server: Scripted<Thing> = Scripted::parse(
        "watch: +a@1{password=hunter2} +bad@2{.spec.token=hunter2} ?c@3 end@3 \
         ~a@4{password=hunter2} -a@5{password=hunter2} wait=5s gone | watch: +a@9{password=hunter2} end@9",
    )
    .unwrap();
    let transform = Transform::new(|thing: Thing| {
        assert_ne!(thing.name, "bad", "hunter2");
        Some(thing)
    });
    let config = Config { name: "mine".into(), transform: Some(transform), ..Config::default() };
    let informer = Informer::new(Arc::new(server), things(), config);
    let named = HandlerConfig { name: "watcher".into(), ..HandlerConfig::default() };
    informer.add_handler(Panics, named).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(31)).await;
    informer.stop().await;
    let text = String::from_utf8(buffer.0.lock().clone()).unwrap();
    assert!(text.contains("informer{name=\"mine\" resource=things.test.kubestrata.dev"), "{text}");
    assert!(text.contains("handler=watcher}"), "{text}");
    assert!(text.contains("a handler panicked") && text.contains("an object was left out"));
    assert!(text.contains("batch") && !text.contains("hunter2"), "{text}");
}
