//! What is measured: one case for each set, kind of work and peer.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubestrata_api_types::{Collection, FieldPath, Format, ListPart, View as _};
use kubestrata_codec::{Encoded, Limits, ListDecoder, Tracked, proto, schema, transcode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::custom::Widget;
use super::data::{Objects, Set};
use crate::Result;
use crate::counting::counted;

/// One piece of work of one peer.
pub(super) struct Case<'a> {
    pub(super) set: &'static str,
    pub(super) what: &'static str,
    pub(super) by: &'static str,
    /// `work` takes an index below this.
    pub(super) calls: usize,
    /// Objects that one call handles.
    pub(super) per_call: usize,
    /// Bytes that go in, of all calls together.
    pub(super) input: usize,
    pub(super) work: Box<dyn Fn(usize) + 'a>,
}

/// The names of the work.
pub(super) mod what {
    /// To a Rust value without managedFields: our decoder passes over them, the others get bytes without them.
    pub(crate) const DECODE: &str = "decode";
    /// To a Rust value, from bytes without managedFields for all.
    pub(crate) const DECODE_STRIPPED: &str = "decode stripped";
    /// To a Rust value, managedFields included.
    pub(crate) const DECODE_WHOLE: &str = "decode whole";
    /// To a Rust value that can be sent back, from the bytes of a store: with a count of the fields that it has no place for.
    pub(crate) const DECODE_TRACKED: &str = "decode tracked";
    /// From a Rust value without managedFields.
    pub(crate) const ENCODE: &str = "encode";
    /// The head, and a copy of the bytes: what arrives at a store.
    pub(crate) const HEAD: &str = "head";
    /// The same with managedFields cut out.
    pub(crate) const HEAD_CUT: &str = "head, cut";
    /// A further path cut out, in a second pass.
    pub(crate) const PRUNE: &str = "prune path";
    /// One field read from the bytes.
    pub(crate) const VIEW: &str = "view field";
    /// To the other format, managedFields included.
    pub(crate) const TRANSCODE: &str = "transcode";
    /// A list, in chunks of 16 KiB, to heads and bytes without managedFields.
    pub(crate) const LIST: &str = "list";
}

const OURS: &str = "kubestrata";
const OURS_JSON: &str = "kubestrata json";
const SERDE_JSON: &str = "serde_json";
/// No format at all: a tree of `serde_json` in memory.
const TREE: &str = "tree";

/// How much of a list comes at a time.
const CHUNK: usize = 16 << 10;

/// All cases of all sets.
pub(super) fn all(sets: &[Set]) -> Result<Vec<Case<'_>>> {
    let mut cases = Vec::new();
    for set in sets {
        let mut add = Adder { set, cases: &mut cases };
        match set.name {
            "configmaps" => add.built_in::<ConfigMap>()?,
            "endpointslices" => add.built_in::<EndpointSlice>()?,
            "widgets" => add.json::<Widget>()?,
            _ => add.built_in::<Pod>()?,
        }
        #[cfg(feature = "prost")]
        match set.name {
            "configmaps" => add.prost::<k8s_pb::api::core::v1::ConfigMap>()?,
            "endpointslices" => add.prost::<k8s_pb::api::discovery::v1::EndpointSlice>()?,
            "widgets" => {}
            _ => add.prost::<k8s_pb::api::core::v1::Pod>()?,
        }
    }
    Ok(cases)
}

struct Adder<'a, 'c> {
    set: &'a Set,
    cases: &'c mut Vec<Case<'a>>,
}

impl<'a> Adder<'a, '_> {
    /// A case that handles one object of `inputs` at a call.
    fn each(
        &mut self,
        what: &'static str,
        by: &'static str,
        inputs: &'a [Vec<u8>],
        work: impl Fn(&'a [u8]) + 'a,
    ) {
        let input = inputs.iter().map(Vec::len).sum();
        let work = Box::new(move |index: usize| work(&inputs[index]));
        let set = self.set.name;
        self.cases.push(Case { set, what, by, calls: inputs.len(), per_call: 1, input, work });
    }

    /// The cases of a kind that has protobuf.
    fn built_in<K: DeserializeOwned + Serialize + 'a>(&mut self) -> Result<()> {
        let set = self.set;
        let message = schema::resource(&set.resource).ok_or("a kind without protobuf")?;
        let options = proto::Options::of(&set.api_version, &set.resource.kind);
        let decode = move |bytes: &'a [u8], options: &proto::Options<'_>| {
            black_box(
                proto::from_slice::<K>(bytes, message, options).expect("recorded objects decode"),
            );
        };
        let skipping = options.without_managed_fields();
        let Objects { whole, stripped, .. } = &set.protobuf;
        self.each(what::DECODE, OURS, whole, move |bytes| decode(bytes, &skipping));
        self.each(what::DECODE_STRIPPED, OURS, stripped, move |bytes| decode(bytes, &options));
        self.each(what::DECODE_WHOLE, OURS, whole, move |bytes| decode(bytes, &options));
        let values = stripped.iter().map(|bytes| proto::from_slice::<K>(bytes, message, &options));
        let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
        self.encode(OURS, stripped, values, move |value| {
            black_box(proto::to_vec(value, message).expect("what was decoded can be encoded"));
        });
        self.each(what::TRANSCODE, OURS, whole, move |bytes| {
            let mut out = Vec::new();
            transcode::to_json(bytes, message, &options, &mut out)
                .expect("recorded objects decode");
            black_box(out);
        });
        self.each(what::TRANSCODE, OURS_JSON, &set.json.whole, move |bytes| {
            let mut out = Vec::new();
            transcode::to_protobuf(bytes, message, &mut out).expect("recorded objects decode");
            black_box(out);
        });
        self.tracked::<K>(OURS, Format::Protobuf, &set.protobuf.stripped)?;
        self.scans(OURS, Format::Protobuf, &set.protobuf)?;
        self.json::<K>()
    }

    /// The cases of JSON.
    fn json<K: DeserializeOwned + Serialize + 'a>(&mut self) -> Result<()> {
        let set = self.set;
        let decode = |bytes: &'a [u8]| {
            black_box(serde_json::from_slice::<K>(bytes).expect("recorded objects decode"));
        };
        let Objects { whole, stripped, .. } = &set.json;
        self.each(what::DECODE, SERDE_JSON, stripped, decode);
        self.each(what::DECODE_WHOLE, SERDE_JSON, whole, decode);
        self.tree::<K>(stripped)?;
        let values = stripped.iter().map(|bytes| serde_json::from_slice::<K>(bytes));
        let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
        self.encode(SERDE_JSON, stripped, values, |value| {
            black_box(serde_json::to_vec(value).expect("what was decoded can be encoded"));
        });
        self.tracked::<K>(OURS_JSON, Format::Json, stripped)?;
        self.scans(OURS_JSON, Format::Json, &set.json)
    }

    /// The visitors and allocations of the type alone, driven from what is in memory already: no format is faster.
    fn tree<K: DeserializeOwned + 'a>(&mut self, inputs: &'a [Vec<u8>]) -> Result<()> {
        let trees = inputs.iter().map(|bytes| serde_json::from_slice::<Value>(bytes));
        let trees = trees.collect::<std::result::Result<Vec<_>, _>>()?;
        let (set, what, calls) = (self.set.name, what::DECODE, trees.len());
        let input = inputs.iter().map(Vec::len).sum();
        let work = Box::new(move |index: usize| {
            black_box(K::deserialize(&trees[index]).expect("recorded objects decode"));
        });
        self.cases.push(Case { set, what, by: TREE, calls, per_call: 1, input, work });
        Ok(())
    }

    /// What a typed read of a stored object does.
    fn tracked<K: DeserializeOwned + 'a>(
        &mut self,
        by: &'static str,
        format: Format,
        inputs: &'a [Vec<u8>],
    ) -> Result<()> {
        let stored = self.stored(format, inputs)?;
        let (set, calls, input) = (self.set.name, stored.len(), inputs.iter().map(Vec::len).sum());
        let work = Box::new(move |index: usize| {
            black_box(Tracked::<K>::decode(&stored[index]).expect("recorded objects decode"));
        });
        let what = what::DECODE_TRACKED;
        self.cases.push(Case { set, what, by, calls, per_call: 1, input, work });
        Ok(())
    }

    fn stored(&self, format: Format, inputs: &[Vec<u8>]) -> Result<Vec<Encoded>> {
        let read = |bytes: &Vec<u8>| Encoded::read(&self.set.resource, format, bytes, &[]);
        let stored = inputs.iter().map(read).collect::<std::result::Result<_, _>>();
        Ok(stored.map_err(|_| "unreadable")?)
    }

    fn encode<K: 'a>(
        &mut self,
        by: &'static str,
        inputs: &'a [Vec<u8>],
        values: Vec<K>,
        work: impl Fn(&K) + 'a,
    ) {
        let input = inputs.iter().map(Vec::len).sum();
        let (set, what, calls) = (self.set.name, what::ENCODE, values.len());
        let work = Box::new(move |index: usize| work(&values[index]));
        self.cases.push(Case { set, what, by, calls, per_call: 1, input, work });
    }

    /// What is done without decoding, in either format.
    fn scans(&mut self, by: &'static str, format: Format, objects: &'a Objects) -> Result<()> {
        let set = self.set;
        let read = move |bytes: &[u8], prune: &[FieldPath]| {
            let read = Encoded::read(&set.resource, format, bytes, prune);
            black_box(read.expect("recorded objects can be read"));
        };
        let managed = [FieldPath::managed_fields()];
        let labels: [FieldPath; 2] =
            ["metadata.managedFields".parse()?, "metadata.labels".parse()?];
        self.each(what::HEAD, by, &objects.whole, move |bytes| read(bytes, &[]));
        self.each(what::HEAD_CUT, by, &objects.whole, move |bytes| read(bytes, &managed));
        self.each(what::PRUNE, by, &objects.whole, move |bytes| read(bytes, &labels));
        if set.resource.kind == "Pod" {
            let path: FieldPath = "spec.nodeName".parse()?;
            let stored = self.stored(format, &objects.stripped)?;
            let input = objects.stripped.iter().map(Vec::len).sum();
            let calls = stored.len();
            let work = Box::new(move |index: usize| {
                let mut length = 0;
                let found = stored[index].field(&path, &mut |text| length += text.len());
                found.expect("recorded objects can be read");
                assert!(black_box(length) > 0, "every recorded pod has a node");
            });
            self.cases.push(Case {
                set: set.name,
                what: what::VIEW,
                by,
                calls,
                per_call: 1,
                input,
                work,
            });
        }
        let (count, input) = (set.len(), objects.list.len());
        let work = Box::new(move |_: usize| {
            assert_eq!(black_box(read_list(set, format, &objects.list)), count, "all items come");
        });
        self.cases.push(Case {
            set: set.name,
            what: what::LIST,
            by,
            calls: 1,
            per_call: count,
            input,
            work,
        });
        Ok(())
    }

    /// The cases of prost, on bytes without managedFields and with them.
    #[cfg(feature = "prost")]
    fn prost<P: prost::Message + Default + 'a>(&mut self) -> Result<()> {
        const PROST: &str = "prost";
        let decode = |bytes: &'a [u8]| {
            black_box(P::decode(bytes).expect("recorded objects decode"));
        };
        let Objects { whole, stripped, .. } = &self.set.protobuf;
        self.each(what::DECODE, PROST, stripped, decode);
        self.each(what::DECODE_WHOLE, PROST, whole, decode);
        let values = stripped.iter().map(|bytes| P::decode(bytes.as_slice()));
        let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
        self.encode(PROST, stripped, values, |value| {
            black_box(value.encode_to_vec());
        });
        Ok(())
    }
}

/// Reads a list as it would arrive, and drops each item as it comes.
fn read_list(set: &Set, format: Format, list: &Bytes) -> usize {
    let prune = Arc::from([FieldPath::managed_fields()]);
    let collection = Collection::new((*set.resource).clone()).prune(prune);
    let mut decoder = ListDecoder::new(collection, format, Limits::DEFAULT);
    let mut items = 0;
    for start in (0..list.len()).step_by(CHUNK) {
        decoder.push(list.slice(start..list.len().min(start + CHUNK)));
        while let Some(part) = decoder.next().expect("recorded lists can be read") {
            items += usize::from(matches!(part, ListPart::Item(_)));
        }
    }
    items
}

/// The most that decoding a list held at one time, beside the largest item.
pub(super) fn list_memory(sets: &[Set]) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for set in sets {
        for (format, objects) in [(Format::Protobuf, &set.protobuf), (Format::Json, &set.json)] {
            let Some(largest) = objects.whole.iter().map(Vec::len).max() else { continue };
            let (_, seen) = counted(|| read_list(set, format, &objects.list));
            found.push(json!({
                "set": set.name,
                "format": format!("{format:?}").to_lowercase(),
                "peak": seen.peak,
                "chunk": CHUNK,
                "largest_item": largest,
            }));
        }
    }
    Ok(found)
}
