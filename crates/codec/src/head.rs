//! The head of an object: what `Object` returns, as positions in the object's own bytes.

mod block;
mod json;
mod protobuf;

pub(crate) use self::block::{Block, Kept};

use std::borrow::Cow;
use std::ops::Range;

use kubestrata_api_types::{
    Format, ObjectKey, ResourceType, ResourceVersion, Timestamp, Unreadable,
};
use smallvec::SmallVec;

use crate::json::ScanError;

/// Fills `builder` from an object's bytes. On an error it holds what was found before it.
pub(crate) fn scan<'a>(
    resource: &ResourceType,
    format: Format,
    bytes: &'a [u8],
    depth_max: usize,
    builder: &mut HeadBuilder<'a>,
) -> Result<(), ScanError> {
    match format {
        Format::Json => json::scan(bytes, depth_max, builder),
        Format::Protobuf => protobuf::scan(resource, bytes, builder),
    }?;
    builder.sort_labels();
    builder.version = ResourceVersion::new(&builder.text(builder.resource_version));
    Ok(())
}

/// A string of the head: a position in the object's bytes, or, for one that does not stand there as it reads, in
/// [`HeadBuilder::extra`]. Absent and empty are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// Offset; the highest bit says that it is one in `extra`.
    at: u32,
    length: u32,
}

const IN_EXTRA: u32 = 1 << 31;

/// Objects of more bytes are refused: the highest bit of an offset is taken, and texts that are not UTF-8 grow to three
/// times their size.
pub(crate) const OBJECT_BYTES_MAX: usize = IN_EXTRA as usize / 4;

/// How many texts an owner takes: apiVersion, kind, name, uid, and one whose length says whether it is the controller.
const OWNER_TEXTS: usize = 5;

impl Text {
    /// A text that stands in the bytes.
    pub(crate) fn in_bytes(start: usize, end: usize) -> Self {
        Self { at: offset(start), length: offset(end - start) }
    }

    /// The marker for the fifth text of an owner.
    pub(crate) fn flag(on: bool) -> Self {
        Self { at: 0, length: on.into() }
    }

    /// The same where `extra` stands behind a body of this size.
    fn behind(self, body: usize) -> Self {
        if self.at & IN_EXTRA == 0 {
            return self;
        }
        Self { at: offset((self.at & !IN_EXTRA) as usize + body), ..self }
    }
}

/// What an object says that it is, where it does. In protobuf the message says nothing: its envelope does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SelfType<'a> {
    pub(crate) api_version: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
}

/// What a scan has found so far.
///
/// Both scanners fill it; a later value of a field replaces an earlier one, as every decoder does it. It is as large as
/// the usual object needs, so that a scan allocates nothing.
#[derive(Debug)]
pub(crate) struct HeadBuilder<'a> {
    bytes: &'a [u8],
    pub(crate) name: Text,
    pub(crate) namespace: Text,
    pub(crate) uid: Text,
    pub(crate) resource_version: Text,
    /// The same, read once the scan is over.
    version: ResourceVersion,
    pub(crate) generation: Option<i64>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) labels: SmallVec<[(Text, Text); 8]>,
    pub(crate) owners: SmallVec<[[Text; OWNER_TEXTS]; 1]>,
    pub(crate) extra: String,
    pub(crate) metadata: Range<u32>,
    /// Where the tag of the metadata stands, in protobuf.
    pub(crate) metadata_field: usize,
    /// What the object says of itself.
    pub(crate) own: SelfType<'a>,
    /// Where `metadata.managedFields` is: in JSON with one comma beside it, in protobuf all its entries.
    pub(crate) managed_fields: Option<Range<usize>>,
    /// It is there more than once, or not in one piece.
    pub(crate) managed_fields_twice: bool,
}

impl<'a> HeadBuilder<'a> {
    /// For the scan of these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            name: Text::default(),
            namespace: Text::default(),
            uid: Text::default(),
            resource_version: Text::default(),
            version: ResourceVersion::UNSET,
            generation: None,
            deletion_timestamp: None,
            labels: SmallVec::new(),
            owners: SmallVec::new(),
            extra: String::new(),
            metadata: 0..0,
            metadata_field: 0,
            own: SelfType::default(),
            managed_fields: None,
            managed_fields_twice: false,
        }
    }

    /// A text that does not stand in the bytes.
    pub(crate) fn in_extra(&mut self, text: &str) -> Text {
        let at = offset(self.extra.len()) | IN_EXTRA;
        self.extra.push_str(text);
        Text { at, length: offset(text.len()) }
    }

    fn raw(&self, text: Text) -> &[u8] {
        let range = |at: u32| at as usize..at as usize + text.length as usize;
        if text.at & IN_EXTRA == 0 {
            &self.bytes[range(text.at)]
        } else {
            &self.extra.as_bytes()[range(text.at & !IN_EXTRA)]
        }
    }

    /// A text that was found. Before anything is cut.
    fn text(&self, text: Text) -> Cow<'_, str> {
        String::from_utf8_lossy(self.raw(text))
    }

    /// Bytes of the longest string found, or of all the metadata: all that is asked is whether it is beyond a limit, and
    /// metadata rarely is.
    pub(crate) fn longest_text(&self, limit: usize) -> usize {
        let own = [&self.own.api_version, &self.own.kind].into_iter().flatten();
        let own = own.map(|text| text.len()).max().unwrap_or_default();
        if self.metadata.len() <= limit {
            return own.max(self.metadata.len());
        }
        let labels = self.labels.iter().flat_map(|(key, value)| [key, value]);
        let fixed = [&self.name, &self.namespace, &self.uid, &self.resource_version];
        let texts = labels.chain(self.owners.iter().flatten()).chain(fixed);
        texts.map(|text| text.length as usize).max().unwrap_or_default().max(own)
    }

    /// The report on an object whose scan has failed here.
    pub(crate) fn unreadable(&self, problem: impl Into<String>) -> Unreadable {
        let (namespace, name) = (self.text(self.namespace), self.text(self.name));
        Unreadable {
            key: (!name.is_empty()).then(|| ObjectKey::new(Some(&namespace), &name)),
            resource_version: ResourceVersion::new(&self.text(self.resource_version)),
            problem: problem.into(),
        }
    }

    /// Adapts the positions to bytes from which `cut`, a part of the metadata, was taken out, and in which the metadata
    /// itself starts `before` bytes earlier. Nothing can be read by them after that.
    fn cut(&mut self, cut: &Range<usize>, before: usize) {
        let (end, length, before) = (offset(cut.end), offset(cut.len()), offset(before));
        let start = self.metadata.start;
        self.metadata.start -= before;
        self.metadata.end -= length + before;
        let fixed =
            [&mut self.name, &mut self.namespace, &mut self.uid, &mut self.resource_version];
        let labels = self.labels.iter_mut().flat_map(|(key, value)| [key, value]);
        for text in fixed.into_iter().chain(labels).chain(self.owners.iter_mut().flatten()) {
            // An empty text and an owner's flag stand nowhere in the metadata.
            if text.at & IN_EXTRA == 0 && text.at >= start {
                text.at -= before + if text.at >= end { length } else { 0 };
            }
        }
    }

    /// The object as it is.
    pub(crate) fn keep(&self, kept: &Kept<'_>) -> Block {
        Block::new(self, kept, &[self.bytes])
    }

    /// The object without its managed fields, if they are in one piece.
    pub(crate) fn keep_without_managed_fields(&mut self, kept: &Kept<'_>) -> Option<Block> {
        if self.managed_fields_twice {
            return None;
        }
        let Some(cut) = self.managed_fields.take() else { return Some(self.keep(kept)) };
        let bytes = self.bytes;
        let (before, after) = (&bytes[..cut.start], &bytes[cut.end..]);
        match kept.format {
            Format::Json => {
                self.cut(&cut, 0);
                Some(Block::new(self, kept, &[before, after]))
            }
            Format::Protobuf => {
                let (field, start) = (self.metadata_field, self.metadata.start as usize);
                let prefix = prefix_of_message(1, self.metadata.len() - cut.len());
                // What a server writes does not grow; what somebody wrote with a longer tag or length shrinks to the
                // shortest.
                self.cut(&cut, start - field - prefix.len());
                let pieces = [&bytes[..field], &prefix, &before[start..], after];
                Some(Block::new(self, kept, &pieces))
            }
        }
    }

    /// Sorts by key, and of equal keys keeps the last. Servers send them sorted, so this mostly only looks.
    fn sort_labels(&mut self) {
        if self.labels.is_sorted_by(|a, b| self.raw(a.0) < self.raw(b.0)) {
            return;
        }
        let mut labels = std::mem::take(&mut self.labels);
        labels.sort_by(|a, b| self.raw(a.0).cmp(self.raw(b.0)));
        // The sort is stable: from behind, the first of equal keys is the one that was last.
        labels.reverse();
        labels.dedup_by(|a, b| self.raw(a.0) == self.raw(b.0));
        labels.reverse();
        self.labels = labels;
    }
}

/// Tag and length of a message.
fn prefix_of_message(number: u8, mut length: usize) -> SmallVec<[u8; 8]> {
    let mut prefix = SmallVec::from_slice(&[number << 3 | 2]);
    while length >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits are meant")]
        prefix.push(length as u8 | 0x80);
        length >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
    prefix.push(length as u8);
    prefix
}

/// An offset as the head keeps it.
pub(crate) fn offset(offset: usize) -> u32 {
    u32::try_from(offset)
        .expect("objects of more than 512 MiB are refused before their head is scanned")
}
