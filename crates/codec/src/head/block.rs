//! An object in memory: its head and its bytes, in one allocation.

use std::sync::Arc;

use kubestrata_api_types::{Format, KeyRef, OwnerRef, ResourceType, ResourceVersion, Timestamp};
use triomphe::ThinArc;

use super::{HeadBuilder, OWNER_TEXTS, Text, offset};

/// How an object is kept, beside what its bytes say.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) resource: &'a Arc<ResourceType>,
    pub(crate) format: Format,
    /// The bytes are the whole object, apart from `managedFields`.
    pub(crate) whole: bool,
}

/// The fixed part of a block. What follows it in memory: the positions of the texts, the object's own bytes, and the
/// texts that do not stand in those as they read.
#[derive(Debug)]
struct Head {
    resource: Arc<ResourceType>,
    /// The resource version, where it is a number.
    version: u64,
    /// 0 is none.
    generation: i64,
    /// Seconds of the deletion timestamp, and nanoseconds below.
    deletion: i64,
    /// Where the metadata is in the object's bytes, from here to there.
    metadata: (u32, u32),
    /// Size of the object's bytes.
    body: u32,
    labels: u32,
    owners: u32,
    deletion_nanos: i32,
    format: Format,
    version_is: Version,
    /// Of the constants below.
    flags: u8,
}

/// See [`Kept::whole`].
const WHOLE: u8 = 1;
/// Positions take eight bytes, not four.
const WIDE: u8 = 2;
/// There is a deletion timestamp.
const DELETION: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Unset,
    Number,
    /// The last of the texts.
    Text,
}

/// The texts that every object has, at these places; labels, owners and the version follow.
const NAMESPACE: usize = 0;
const NAME: usize = 1;
const UID: usize = 2;
const FIXED: usize = 3;

/// An object: head and bytes, shared. A clone is a reference count.
#[derive(Debug, Clone)]
pub(crate) struct Block(ThinArc<Head, u8>);

impl Block {
    /// The block of an object whose bytes are `pieces`, one after another, and whose positions `builder` knows.
    pub(crate) fn new(builder: &HeadBuilder<'_>, kept: &Kept<'_>, pieces: &[&[u8]]) -> Self {
        let body: usize = pieces.iter().map(|piece| piece.len()).sum();
        let version = builder.version.as_u64();
        let version_is = match version {
            Some(_) => Version::Number,
            None if builder.version.is_unset() => Version::Unset,
            None => Version::Text,
        };
        let count = FIXED
            + 2 * builder.labels.len()
            + OWNER_TEXTS * builder.owners.len()
            + usize::from(version_is == Version::Text);
        // What stands in so few bytes has a short position.
        let wide = body + builder.extra.len() > usize::from(u16::MAX);
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        let head = Head {
            resource: Arc::clone(kept.resource),
            version: version.unwrap_or_default(),
            generation: builder.generation.unwrap_or_default(),
            deletion: builder.deletion_timestamp.map_or(0, Timestamp::as_second),
            metadata: (builder.metadata.start, builder.metadata.end),
            body: offset(body),
            labels: offset(builder.labels.len()),
            owners: offset(builder.owners.len()),
            deletion_nanos: builder.deletion_timestamp.map_or(0, Timestamp::subsec_nanosecond),
            format: kept.format,
            version_is,
            flags: flag(kept.whole, WHOLE)
                | flag(wide, WIDE)
                | flag(builder.deletion_timestamp.is_some(), DELETION),
        };
        let table = count * if wide { 8 } else { 4 };
        let size = table + body + builder.extra.len();
        // Zeros first: a slice that is made of pieces cannot be had otherwise without `unsafe`.
        let mut block = ThinArc::from_header_and_iter(head, (0..size).map(|_| 0));
        block.with_arc_mut(|block| {
            let block = triomphe::Arc::get_mut(block).expect("nobody else has seen it yet");
            let mut rest = &mut *block.slice_mut();
            let mut place = |text: Text| {
                let text = text.behind(body);
                if wide {
                    put(&mut rest, &text.at.to_le_bytes());
                    put(&mut rest, &text.length.to_le_bytes());
                } else {
                    #[expect(clippy::cast_possible_truncation, reason = "none is wide")]
                    let (at, length) = (text.at as u16, text.length as u16);
                    put(&mut rest, &at.to_le_bytes());
                    put(&mut rest, &length.to_le_bytes());
                }
            };
            place(builder.namespace);
            place(builder.name);
            place(builder.uid);
            for (key, value) in &builder.labels {
                place(*key);
                place(*value);
            }
            builder.owners.iter().flatten().copied().for_each(&mut place);
            if version_is == Version::Text {
                place(builder.resource_version);
            }
            for piece in pieces {
                put(&mut rest, piece);
            }
            put(&mut rest, builder.extra.as_bytes());
        });
        Self(block)
    }

    fn head(&self) -> &Head {
        &self.0.header.header
    }

    /// How many texts there are.
    fn texts(&self) -> usize {
        let head = self.head();
        FIXED
            + 2 * head.labels as usize
            + OWNER_TEXTS * head.owners as usize
            + usize::from(head.version_is == Version::Text)
    }

    fn flag(&self, flag: u8) -> bool {
        self.head().flags & flag != 0
    }

    /// Positions, and what they are positions in.
    fn split(&self) -> (&[u8], &[u8]) {
        let width = if self.flag(WIDE) { 8 } else { 4 };
        self.0.slice.split_at(self.texts() * width)
    }

    /// Position and length of one text.
    fn position(&self, table: &[u8], index: usize) -> (usize, usize) {
        if self.flag(WIDE) {
            let number = |at: usize| {
                let bytes = table[at..].first_chunk().expect("the table has all its positions");
                u32::from_le_bytes(*bytes) as usize
            };
            (number(index * 8), number(index * 8 + 4))
        } else {
            let number = |at: usize| {
                let bytes = table[at..].first_chunk().expect("the table has all its positions");
                usize::from(u16::from_le_bytes(*bytes))
            };
            (number(index * 4), number(index * 4 + 2))
        }
    }

    /// The bytes of a text, for comparisons.
    fn raw(&self, index: usize) -> &[u8] {
        let (table, rest) = self.split();
        let (at, length) = self.position(table, index);
        &rest[at..at + length]
    }

    fn text(&self, index: usize) -> &str {
        std::str::from_utf8(self.raw(index)).expect("the head scan has checked each text")
    }

    pub(crate) fn resource(&self) -> &Arc<ResourceType> {
        &self.head().resource
    }

    pub(crate) fn format(&self) -> Format {
        self.head().format
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.flag(WHOLE)
    }

    /// The object's own bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.split().1[..self.head().body as usize]
    }

    /// The metadata's own bytes, empty if there is none, and where they start.
    pub(crate) fn metadata(&self) -> (&[u8], usize) {
        let (start, end) = self.head().metadata;
        (&self.bytes()[start as usize..end as usize], start as usize)
    }

    /// Bytes on the heap: a counter, a length, the head and all that follows it.
    pub(crate) fn size(&self) -> usize {
        let size = 2 * size_of::<usize>() + size_of::<Head>() + self.0.slice.len();
        size.next_multiple_of(align_of::<Head>())
    }

    pub(crate) fn key(&self) -> KeyRef<'_> {
        // Both were checked by the scan.
        KeyRef::from_bytes(self.raw(NAMESPACE), self.raw(NAME))
    }

    pub(crate) fn name(&self) -> &str {
        self.text(NAME)
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        Some(self.text(NAMESPACE)).filter(|namespace| !namespace.is_empty())
    }

    pub(crate) fn uid(&self) -> Option<&str> {
        Some(self.text(UID)).filter(|uid| !uid.is_empty())
    }

    pub(crate) fn resource_version(&self) -> ResourceVersion {
        match self.head().version_is {
            Version::Unset => ResourceVersion::UNSET,
            Version::Number => ResourceVersion::from(self.head().version),
            Version::Text => ResourceVersion::new(self.text(self.texts() - 1)),
        }
    }

    pub(crate) fn generation(&self) -> Option<i64> {
        Some(self.head().generation).filter(|generation| *generation != 0)
    }

    pub(crate) fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.flag(DELETION).then(|| {
            Timestamp::new(self.head().deletion, self.head().deletion_nanos)
                .expect("it was taken from a timestamp")
        })
    }

    /// Where the texts of each label are: its key there, its value behind it.
    fn labels(&self) -> impl Iterator<Item = usize> {
        (FIXED..).step_by(2).take(self.head().labels as usize)
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels().find(|at| self.raw(*at) == key.as_bytes())?;
        Some(self.text(at + 1))
    }

    pub(crate) fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        for at in self.labels() {
            f(self.text(at), self.text(at + 1));
        }
    }

    pub(crate) fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        let head = self.head();
        let first = FIXED + 2 * head.labels as usize;
        for at in (first..).step_by(OWNER_TEXTS).take(head.owners as usize) {
            let (_, controller) = self.position(self.split().0, at + 4);
            let text = |index: usize| self.text(at + index);
            f(OwnerRef::new(text(0), text(1), text(2), text(3), controller != 0));
        }
    }
}

/// Writes to the front of `rest`, and leaves what is behind.
fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (front, behind) = std::mem::take(rest).split_at_mut(bytes.len());
    front.copy_from_slice(bytes);
    *rest = behind;
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn a_head_is_one_line_of_the_cache() {
        assert_eq!(size_of::<Head>(), 64);
    }
}
