//! What is told to people: spans and log lines. In a program of its own: tests beside it could reach a line first and make
//! tracing remember that nobody listens.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use kubestrata_api_types::Event;
use kubestrata_reflector::{Config, Consistency, Reflector};
use kubestrata_testkit::{FakeWorld, Scripted, Thing, things};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// Writes down every span and event.
#[derive(Default, Clone)]
struct Tape(Arc<Mutex<Written>>);

/// The text, the names of all spans by number, and the spans that are entered.
type Written = (String, Vec<&'static str>, Vec<u64>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Tape {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("kubestrata_reflector")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut tape = self.0.lock().unwrap();
        let (text, names, _) = &mut *tape;
        let parent = span.parent().map_or("-", |id| names[id.into_u64() as usize - 1]);
        write!(text, "span {parent}/{}", span.metadata().name()).unwrap();
        span.record(&mut Fields(text));
        text.push('\n');
        names.push(span.metadata().name());
        Id::from_u64(names.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut tape = self.0.lock().unwrap();
        let (text, names, _) = &mut *tape;
        write!(text, "{}:", names[span.into_u64() as usize - 1]).unwrap();
        values.record(&mut Fields(text));
        text.push('\n');
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut tape = self.0.lock().unwrap();
        let (text, names, entered) = &mut *tape;
        let within = entered.last().map_or("-", |id| names[*id as usize - 1]);
        let level = *event.metadata().level();
        if level <= Level::WARN {
            write!(text, "{level} in {within}:").unwrap();
            event.record(&mut Fields(text));
            text.push('\n');
        }
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().2.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().2.pop();
    }
}

/// One span for each epoch, list, watch and comparison; and nowhere anything of an object but its key.
#[tokio::test(start_paused = true)]
async fn spans_tell_the_story_without_contents() {
    let tape = Tape::default();
    let _guard = tracing::subscriber::set_default(tape.clone());
    let server = Scripted::<Thing>::parse(
        "watch: +a/x@3{token=hunter2} ?a/bad@4 end@9 ~a/x@10{token=hunter2,.data.p=hunter2} wait=2s close \
         | list@9: a/y@3{token=hunter2} | watch: wait=5s gone | toolarge | watch: +a/x@2{token=hunter2} end@5 wait=9s gone \
         | list@5: a/x@2 | 422 | list@6: a/x@2{token=hunter2} more | list@6: a/y@4{token=hunter2}",
    )
    .unwrap();
    let config = Config {
        consistency: Consistency::Report,
        world: Arc::new(FakeWorld::new(1)),
        ..Config::default()
    };
    let mut reflector = Reflector::new(server, things().in_namespace("a"), config)
        .transform(|event: Event<Thing>| event);
    let _ = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            reflector.next().await;
        }
    })
    .await;
    let text = tape.0.lock().unwrap().0.clone();
    assert!(!text.contains("hunter2"), "{text}");
    expect![[r#"
        span -/epoch resource=things.test.kubestrata.dev namespace="a" epoch=0
        span epoch/streaming_list version=
        WARN in streaming_list: resource=things.test.kubestrata.dev unreadable=object a/bad cannot be read: scripted
        streaming_list: items=2
        span epoch/comparison version=9
        ERROR in streaming_list: message=the streamed state is wrong resource=things.test.kubestrata.dev resource_version=9 difference=1 missing, 2 extra, 0 different, as in a/y a/bad a/x
        streaming_list: items=4
        span epoch/watch version=10
        watch: items=0
        WARN in watch: resource=things.test.kubestrata.dev during=watch recovery=relist after 1.576802203s error=too old resource version (Gone, HTTP 410)
        span epoch/streaming_list version=10
        streaming_list: items=0
        WARN in streaming_list: resource=things.test.kubestrata.dev during=streaming list recovery=ask for the latest error=Timeout: Too large resource version: 9, current: 5 (Timeout, HTTP 504)
        span epoch/streaming_list version=
        streaming_list: items=1
        WARN in streaming_list: message=the server went back in time resource=things.test.kubestrata.dev before=10 version=5
        span epoch/comparison version=5
        streaming_list: items=2
        WARN in streaming_list: resource=things.test.kubestrata.dev during=watch recovery=relist after 2.820631027s error=too old resource version (Gone, HTTP 410)
        span -/epoch resource=things.test.kubestrata.dev namespace="a" epoch=1
        span epoch/streaming_list version=5
        streaming_list: items=0
        WARN in streaming_list: resource=things.test.kubestrata.dev during=streaming list recovery=fall back to a plain list error=scripted (Invalid, HTTP 422)
        span epoch/list version=5
        list: items=2
        span epoch/watch version=6
    "#]].assert_eq(&text);
    assert!(tape.0.lock().unwrap().2.is_empty(), "every span that was entered was left");
}
