//! How many allocations an object costs on its way into a store, and how much a list decoder holds.

#![expect(unsafe_code, reason = "an allocator can be counted only by being one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::{
    Collection, FieldPath, Format, ListPart, ResourceType, Scope, Weigh as _,
};
use kubestrata_codec::{Encoded, Limits, ListDecoder};
use kubestrata_store_index::{Change, store};

/// The system's allocator, which counts for each thread.
struct Counting;

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    calls: usize,
    live: isize,
    peak: isize,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { calls: 0, live: 0, peak: 0 }) };
}

fn count(calls: usize, bytes: usize, sign: isize) {
    // A thread that ends has no counters any more.
    let _ = COUNTS.try_with(|counts| {
        let Counts { calls: before, live, peak } = counts.get();
        let live = live + bytes.cast_signed() * sign;
        counts.set(Counts { calls: before + calls, live, peak: peak.max(live) });
    });
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 1);
        // SAFETY: as the caller of this.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size(), -1);
        // SAFETY: as the caller of this.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Where the block moves, both are held for a moment.
        count(1, size, 1);
        count(0, layout.size(), -1);
        // SAFETY: as the caller of this.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` allocated: calls, what is left of it in bytes, and the most at one time.
fn counted<R>(work: impl FnOnce() -> R) -> (R, Counts) {
    let before = COUNTS.get();
    COUNTS.set(Counts { peak: before.live, ..before });
    let result = work();
    let after = COUNTS.get();
    let counts = Counts {
        calls: after.calls - before.calls,
        live: after.live - before.live,
        peak: after.peak - before.live,
    };
    (result, counts)
}

/// Recorded objects.
struct Set {
    name: &'static str,
    resource: ResourceType,
}

fn sets() -> Vec<Set> {
    let set = |name, group, version, kind, plural| {
        let resource = ResourceType::from_static(group, version, kind, plural, Scope::Namespaced);
        Set { name, resource }
    };
    vec![
        set("pods", "", "v1", "Pod", "pods"),
        set("running-pods", "", "v1", "Pod", "pods"),
        set("configmaps", "", "v1", "ConfigMap", "configmaps"),
        set("endpointslices", "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
        set("widgets", "bench.example", "v1", "Widget", "widgets"),
    ]
}

impl Set {
    fn list(&self, format: Format) -> Option<Bytes> {
        let ending = match format {
            Format::Json => "json",
            Format::Protobuf => "pb",
        };
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        std::fs::read(data.join(format!("{}.{ending}", self.name))).ok().map(Bytes::from)
    }

    fn decoder(&self, format: Format, prune: &[FieldPath]) -> ListDecoder {
        let collection = Collection::new(self.resource.clone()).prune(Arc::from(prune));
        ListDecoder::new(collection, format, Limits::DEFAULT)
    }

    fn items(&self, format: Format, prune: &[FieldPath]) -> Vec<Encoded> {
        let mut items = Vec::new();
        let mut decoder = self.decoder(format, prune);
        decoder.push(self.list(format).expect("the list was recorded"));
        while let Some(part) = decoder.next().expect("recorded lists can be read") {
            if let ListPart::Item(item) = part {
                items.push(item);
            }
        }
        assert!(!items.is_empty(), "{} has items", self.name);
        items
    }
}

const FORMATS: [Format; 2] = [Format::Protobuf, Format::Json];

/// Whatever the pieces in which a list comes: beside them, the decoder holds the beginning of an item, and for a moment
/// the item joined, or the item joined and what is made of it.
#[test]
fn a_list_takes_twice_its_largest_item() {
    for set in sets() {
        for format in FORMATS {
            let Some(list) = set.list(format) else { continue };
            let sizes = set.items(format, &[]);
            let largest = sizes.iter().map(|item| item.bytes().len()).max().unwrap();
            for piece in [100, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20] {
                // The pieces share the list, so what they hold is not counted.
                let (items, counts) = counted(|| {
                    let mut decoder = set.decoder(format, &[FieldPath::managed_fields()]);
                    let mut items = 0;
                    for start in (0..list.len()).step_by(piece) {
                        decoder.push(list.slice(start..list.len().min(start + piece)));
                        while let Some(part) = decoder.next().unwrap() {
                            items += usize::from(matches!(part, ListPart::Item(_)));
                        }
                    }
                    decoder.finish().unwrap();
                    items
                });
                let peak = counts.peak.cast_unsigned();
                let what = format!("{} {format:?} by {piece}", set.name);
                println!("{what}: {peak} bytes, largest item {largest}");
                assert_eq!(items, sizes.len(), "{what}");
                // Beside it, the decoder's own fields, and for tiny pieces what it takes to hold many of them.
                let beside = 1024 + if piece < 4096 { largest / 16 } else { 0 };
                assert!(
                    peak <= 2 * largest + beside,
                    "{what}: {peak} bytes for items of {largest}"
                );
            }
        }
    }
}

/// Head, key and bytes are one allocation, and its size is told exactly.
#[test]
fn an_object_is_one_allocation() {
    for set in sets() {
        for format in FORMATS {
            if set.list(format).is_none() {
                continue;
            }
            for item in set.items(format, &[]).iter().take(10) {
                let resource = item.resource();
                for prune in [&[][..], &[FieldPath::managed_fields()][..]] {
                    let read = || Encoded::read(resource, format, item.bytes(), prune).unwrap();
                    let (object, counts) = counted(read);
                    assert_eq!(counts.calls, 1, "{} {format:?}", set.name);
                    assert_eq!(counts.live.cast_unsigned(), object.size());
                    assert_eq!(counts.peak, counts.live, "nothing is held beside it");
                    let head = object.weight().head;
                    println!("{} {format:?}: head of {head} bytes", set.name);
                    assert!(head <= 192, "{} {format:?}: a head of {head} bytes", set.name);
                }
            }
        }
    }
}

/// A store of many objects has no allocation for each, and a change of one makes none either.
#[test]
fn a_store_adds_no_allocation_to_an_object() {
    const OBJECTS: usize = 10_000;
    let resource = Arc::new(ResourceType::from_static("", "v1", "Pod", "pods", Scope::Namespaced));
    let pod = |number: usize, version: usize| {
        let text = format!(
            r#"{{"metadata":{{"namespace":"ns","name":"pod-{number}","resourceVersion":"{version}"}}}}"#
        );
        Encoded::read(&resource, Format::Json, text.as_bytes(), &[]).unwrap()
    };
    let all = |version: usize| -> Vec<Change<Encoded>> {
        (0..OBJECTS).map(|number| Change::Upsert(pod(number, version + number))).collect()
    };
    let (first, second) = (all(1), all(OBJECTS + 1));
    let (mut writer, reader) = store();
    let ((), filling) = counted(|| drop(writer.apply(first)));
    println!("filling: {filling:?}");
    assert!(filling.calls < OBJECTS / 20, "{filling:?}");
    let (_, changing) = counted(|| writer.apply(second));
    println!("changing: {changing:?}");
    assert!(changing.calls < 60, "{changing:?}");
    assert_eq!(reader.len(), OBJECTS);
}
