//! The recorded objects.
//!
//! Each set is one collection of a real server, in both formats: `NAME.pb` and `NAME.json` are its lists.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::{Collection, FieldPath, Format, ListPart, Object as _, ResourceType};
use kubestrata_codec::{Encoded, Limits, ListDecoder};

use crate::Result;

/// Recorded objects of one kind.
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) resource: Arc<ResourceType>,
    pub(super) api_version: String,
    /// In protobuf; empty for custom resources.
    pub(super) protobuf: Objects,
    pub(super) json: Objects,
}

/// The same objects as they came, and without their `managedFields`.
#[derive(Default)]
pub(super) struct Objects {
    /// The body of the list.
    pub(super) list: Bytes,
    pub(super) whole: Vec<Vec<u8>>,
    pub(super) stripped: Vec<Vec<u8>>,
}

/// The recorded objects are not what they should be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the recorded set {0} has no objects, or some that cannot be read, or not the same in both formats"
)]
struct Unfit(&'static str);

impl Set {
    /// Reads a set from `folder`.
    pub(super) fn read(folder: &Path, name: &'static str, resource: ResourceType) -> Result<Self> {
        let resource = Arc::new(resource);
        let json = objects(folder, name, &resource, Format::Json)?;
        let protobuf = if kubestrata_codec::schema::resource(&resource).is_some() {
            objects(folder, name, &resource, Format::Protobuf)?
        } else {
            Objects::default()
        };
        let lengths = [protobuf.whole.len(), json.whole.len()];
        if json.whole.is_empty() || (lengths[0] != lengths[1] && lengths[0] != 0) {
            return Err(Unfit(name).into());
        }
        let api_version = resource.api_version().into_owned();
        Ok(Self { name, resource, api_version, protobuf, json })
    }

    /// Objects.
    pub(super) fn len(&self) -> usize {
        self.json.whole.len()
    }
}

fn objects(
    folder: &Path,
    name: &'static str,
    resource: &ResourceType,
    format: Format,
) -> Result<Objects> {
    let list = Bytes::from(std::fs::read(folder.join(file(name, format)))?);
    let read = |prune: &[FieldPath]| -> Result<Vec<Encoded>> {
        let collection = Collection::new(resource.clone()).prune(Arc::from(prune));
        let mut decoder = ListDecoder::new(collection, format, Limits::DEFAULT);
        decoder.push(list.clone());
        let mut items = Vec::new();
        while let Some(part) = decoder.next()? {
            match part {
                ListPart::Item(item) => items.push(item),
                ListPart::Unreadable(_) => return Err(Unfit(name).into()),
                ListPart::Meta(_) => {}
            }
        }
        decoder.finish()?;
        items.sort_by_key(|item: &Encoded| item.key());
        Ok(items)
    };
    let bytes = |items: Vec<Encoded>| items.iter().map(|item| item.bytes().to_vec()).collect();
    let (whole, stripped) = (bytes(read(&[])?), bytes(read(&[FieldPath::managed_fields()])?));
    Ok(Objects { list, whole, stripped })
}

/// The name of the file of a set.
pub(super) fn file(name: &str, format: Format) -> String {
    match format {
        Format::Json => format!("{name}.json"),
        Format::Protobuf => format!("{name}.pb"),
    }
}
