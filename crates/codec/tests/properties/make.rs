//! Inputs: objects of any kind, written by what the table says, and what damage leaves of them.

use std::collections::HashMap;

use kubestrata_api_types::{Format, ListMeta, ResourceVersion};
use kubestrata_codec::frame::EventType;
use kubestrata_codec::schema::{Kind, Message};
use kubestrata_codec::{collection, envelope, frame, proto, transcode};

use crate::checks::resource;
use crate::dice::Dice;

/// What a field can hold, beside messages of the table. Which of these a field takes is found out by trying.
const CONTENTS: [&[u8]; 26] = [
    // Numbers, as varints.
    b"\x00\x00",
    b"\x00\x01",
    b"\x00\x2a",
    b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x00\xff\xff\xff\xff\x07",
    b"\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    // Floating point.
    b"\x01\0\0\0\0\0\0\0\0",
    b"\x01\0\0\0\0\0\0\xf8\x3f",
    b"\x01\x9a\x99\x99\x99\x99\x99\xb9\x3f",
    // Text and bytes, of which some are the first field of a message, as in a quantity or in JSON.
    b"\x02\x00",
    b"\x02\x01a",
    b"\x02\x05a/b-c",
    b"\x02\x06\xc3\xa9\"\\\n<",
    b"\x02\x02\xff\xfe",
    b"\x02\x032Gi",
    b"\x02\x05\x0a\x03100",
    b"\x02\x06\x0a\x041.5k",
    b"\x02\x09\x0a\x07{\"a\":1}",
    b"\x02\x0b\x0a\x09[ null,2 ]",
    // Times.
    b"\x02\x06\x08\x80\x94\xeb\xdc\x03",
    b"\x02\x0c\x08\x80\x94\xeb\xdc\x03\x10\x80\x89\x7a",
    b"\x02\x0b\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01",
    // A message of nothing but a field that nobody knows.
    b"\x02\x03\x80\x03\x31",
    // Integer or text, schema or boolean.
    b"\x02\x04\x08\x00\x10\x50",
    b"\x02\x08\x08\x01\x10\x00\x1a\x0250",
    b"\x02\x02\x08\x01",
];

/// Makes inputs. It remembers what fields take.
#[derive(Default)]
pub(crate) struct Maker {
    /// By message and field number: positions in [`CONTENTS`].
    takes: HashMap<(&'static str, u32), Vec<u8>>,
}

impl Maker {
    /// A message: whole, damaged, or arbitrary bytes.
    pub(crate) fn protobuf(&mut self, dice: &mut Dice, message: &'static Message) -> Vec<u8> {
        if dice.once_in(16) {
            return arbitrary(dice);
        }
        let whole = self.message(dice, message);
        if dice.once_in(3) { whole } else { damaged(dice, &whole, &[0, 1, 2, 0x7f, 0x80, 0xff]) }
    }

    /// JSON text of an object: whole, damaged, or arbitrary bytes.
    pub(crate) fn json(&mut self, dice: &mut Dice, kind: &'static Kind) -> Vec<u8> {
        const MARKS: &[u8] = b"\"\\{}[],:0-.eEn \x00\x80\xff";
        if dice.once_in(16) {
            let mut text = arbitrary(dice);
            text.iter_mut().for_each(|byte| *byte = MARKS[usize::from(*byte) % MARKS.len()]);
            return text;
        }
        let whole = self.whole_json(dice, kind);
        if dice.once_in(3) { whole } else { damaged(dice, &whole, MARKS) }
    }

    fn whole_json(&mut self, dice: &mut Dice, kind: &'static Kind) -> Vec<u8> {
        let message = self.message(dice, kind.message());
        let api_version = resource(kind).api_version().into_owned();
        let options = proto::Options::of(&api_version, kind.kind);
        let mut text = Vec::new();
        match transcode::to_json(&message, kind.message(), &options, &mut text) {
            Ok(_) => text,
            // A few fields take what has no JSON form beside others.
            Err(_) => b"{\"metadata\":{\"name\":\"a\"}}".to_vec(),
        }
    }

    /// A watch of up to four events.
    pub(crate) fn watch(
        &mut self,
        dice: &mut Dice,
        kind: &'static Kind,
        format: Format,
    ) -> Vec<u8> {
        use EventType::{Added, Bookmark, Deleted, Error, Modified};
        let resource = resource(kind);
        let mut stream = Vec::new();
        for _ in 0..dice.below(5) {
            let event = dice.of(&[Added, Added, Modified, Modified, Deleted, Bookmark, Error]);
            let object = match format {
                Format::Json => self.whole_json(dice, kind),
                Format::Protobuf => self.message(dice, kind.message()),
            };
            stream.extend(frame::encode(*event, format, &resource, &object));
        }
        if dice.once_in(2) { stream } else { damaged(dice, &stream, b"\"{}[],:\x00\x01\x7f\x80") }
    }

    /// A list of up to four items.
    pub(crate) fn list(&mut self, dice: &mut Dice, kind: &'static Kind, format: Format) -> Vec<u8> {
        let resource = resource(kind);
        let (api_version, list) = (resource.api_version(), format!("{}List", kind.kind));
        let meta = ListMeta {
            resource_version: ResourceVersion::new("9"),
            continue_token: dice.once_in(2).then(|| "t".to_owned()),
            remaining_item_count: dice.once_in(2).then_some(300),
        };
        let count = dice.below(5);
        let stream = match format {
            Format::Json => {
                let items: Vec<_> = (0..count).map(|_| self.whole_json(dice, kind)).collect();
                let style =
                    dice.of(&[collection::JsonStyle::Typed, collection::JsonStyle::Unstructured]);
                let frame = collection::json(*style, &api_version, &list, &meta);
                let items = items.join(collection::JSON_SEPARATOR);
                [frame.head, items, frame.tail].concat()
            }
            Format::Protobuf => {
                let items: Vec<_> =
                    (0..count).map(|_| self.message(dice, kind.message())).collect();
                let size = items.iter().map(|item| collection::protobuf_item_size(item.len()));
                let mut out = collection::protobuf_head(&api_version, &list, &meta, size.sum());
                for item in &items {
                    out.extend(collection::protobuf_item_head(item.len()));
                    out.extend(item);
                }
                out.extend(collection::PROTOBUF_TAIL);
                out
            }
        };
        if dice.once_in(2) { stream } else { damaged(dice, &stream, b"\"{}[],:\x00\x01\x7f\x80") }
    }

    /// A message that is right but for what single fields mean.
    fn message(&mut self, dice: &mut Dice, message: &'static Message) -> Vec<u8> {
        let mut out = Vec::new();
        // Few fields of many: most are absent, as in life.
        let share = 1 + dice.below(6);
        self.fill(dice, message, share, 6, &mut out);
        out
    }

    fn fill(
        &mut self,
        dice: &mut Dice,
        message: &'static Message,
        share: usize,
        depth: u32,
        out: &mut Vec<u8>,
    ) {
        // Metadata is what most checks look at.
        let share = if message.name().ends_with(".ObjectMeta") { share.min(2) } else { share };
        for field in message.fields() {
            if !dice.once_in(share) && field.name() != "metadata" || out.len() > 4_000 {
                continue;
            }
            let times = if field.is_list() || field.is_map() { 1 + dice.below(3) } else { 1 };
            for _ in 0..times {
                let mut value = match field.message() {
                    Some(inner) if depth > 0 => {
                        let mut contents = Vec::new();
                        self.fill(dice, inner, share + 1, depth - 1, &mut contents);
                        length_delimited(&contents)
                    }
                    _ => self.content(dice, message, field.number()).to_vec(),
                };
                if field.is_map() {
                    let key = [&b"k"[..], b"a/b", b"", b"x.y"][dice.below(4)];
                    let mut entry = vec![0x0a];
                    entry.extend(&length_delimited(key)[1..]);
                    put_field(&mut entry, 2, &value);
                    value = length_delimited(&entry);
                }
                put_field(out, field.number(), &value);
            }
        }
    }

    /// Something that the field takes, nearly always.
    fn content(
        &mut self,
        dice: &mut Dice,
        message: &'static Message,
        number: u32,
    ) -> &'static [u8] {
        if dice.once_in(200) {
            return CONTENTS[dice.below(CONTENTS.len())];
        }
        let takes = self.takes.entry((message.name(), number)).or_insert_with(|| {
            let fits = |content: &&[u8]| {
                let field = message.by_number(number);
                let mut value = content.to_vec();
                if field.is_some_and(|field| field.is_map()) {
                    let mut entry = Vec::new();
                    put_field(&mut entry, 2, &value);
                    value = length_delimited(&entry);
                }
                let mut bytes = Vec::new();
                put_field(&mut bytes, number, &value);
                let options = proto::Options::default();
                transcode::to_json(&bytes, message, &options, &mut Vec::new()).is_ok()
            };
            let positions = (0..CONTENTS.len()).filter(|at| fits(&CONTENTS[*at]));
            positions.filter_map(|at| u8::try_from(at).ok()).collect()
        });
        match takes.len() {
            0 => CONTENTS[9],
            some => CONTENTS[usize::from(takes[dice.below(some)])],
        }
    }
}

/// A value of [`CONTENTS`]'s form: wire type, and what follows the tag.
fn length_delimited(contents: &[u8]) -> Vec<u8> {
    let mut value = vec![2];
    put_varint(&mut value, contents.len() as u64);
    value.extend(contents);
    value
}

fn put_field(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(out, u64::from(number) << 3 | u64::from(value[0]));
    out.extend(&value[1..]);
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn arbitrary(dice: &mut Dice) -> Vec<u8> {
    let length = dice.below(64);
    let mut bytes: Vec<u8> = (0..length).map(|_| dice.byte()).collect();
    if dice.once_in(4) {
        bytes.splice(..0, envelope::MAGIC);
    }
    bytes
}

/// A copy of `bytes` with one to four injuries. `marks` are bytes that mean something in the encoding.
fn damaged(dice: &mut Dice, bytes: &[u8], marks: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        let some = !bytes.is_empty();
        match dice.below(8) {
            0 => bytes.truncate(at),
            1 if some => bytes[at] ^= 1 << dice.below(8),
            2 if some => bytes[at] = marks[dice.below(marks.len())],
            3 => bytes.insert(at, dice.byte()),
            4 => drop(bytes.drain(at..(at + dice.below(64)).min(bytes.len()))),
            5 if some => bytes[at] = dice.byte(),
            6 if some => drop(bytes.remove(at)),
            _ => {
                // A piece of the input once more, somewhere else.
                let piece = bytes[at..(at + dice.below(256)).min(bytes.len())].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}
