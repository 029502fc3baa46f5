//! A scanner over JSON text that finds its way by structure and decodes nothing.
//!
//! It checks brackets only by their number: whoever reads a value decodes it, and that is where it is validated.

mod block;
pub(crate) mod noting;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use self::block::{BLOCK, Marks};

/// The text is not what it must be at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub(crate) struct ScanError {
    pub(crate) offset: usize,
    pub(crate) problem: &'static str,
}

/// Where the contents of a string are, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Str {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

/// Finds the end of one value, over input that may still grow.
///
/// The caller keeps the bytes from the start of the value on, and passes all of them each time, or passes each piece
/// once and says so by [`Skipper::next_piece`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Skipper {
    state: Skip,
    depth: usize,
    /// Where to go on.
    at: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Skip {
    /// Before the first byte of the value; goes to any other.
    #[default]
    Start,
    /// Inside a number or word, which ends before the next byte that cannot belong to it.
    Word,
    /// Inside brackets but not inside a string; ends with the last bracket.
    Open,
    /// Inside a string; back to `Open`, or ends where there are no brackets.
    String,
}

impl Skipper {
    /// A skipper for the value that starts at `at`, which must not be white space.
    pub(crate) fn new(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Goes on with bytes that follow the `length` bytes looked at, instead of all of them.
    pub(crate) fn next_piece(&mut self, length: usize) {
        // A backslash at the end has stopped it: the byte after it is passed over.
        self.at = if self.at < length { self.at + 2 - length } else { self.at - length };
    }

    /// The end of the value, or `None` if the bytes end before it does.
    pub(crate) fn find_end(
        &mut self,
        bytes: &[u8],
        depth_max: usize,
    ) -> Result<Option<usize>, ScanError> {
        loop {
            let Some(&byte) = bytes.get(self.at) else { return Ok(None) };
            match self.state {
                Skip::Start => match byte {
                    b'{' | b'[' => self.state = Skip::Open,
                    b'"' => {
                        self.state = Skip::String;
                        self.at += 1;
                    }
                    b'-' | b'0'..=b'9' | b'a'..=b'z' => self.state = Skip::Word,
                    _ => {
                        return Err(ScanError { offset: self.at, problem: "no JSON value" });
                    }
                },
                Skip::Word => match byte {
                    b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E' => self.at += 1,
                    _ => return Ok(Some(self.at)),
                },
                Skip::Open => {
                    if let Some(end) = self.brackets(bytes, depth_max)? {
                        return Ok(Some(end));
                    }
                }
                Skip::String => match string_end(bytes, self.at) {
                    Ok(end) => {
                        self.at = end + 1;
                        if self.depth == 0 {
                            return Ok(Some(self.at));
                        }
                        self.state = Skip::Open;
                    }
                    Err(at) => {
                        self.at = at;
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// Goes on inside brackets, until the last one closes or the bytes end: then `None`.
    fn brackets(&mut self, bytes: &[u8], depth_max: usize) -> Result<Option<usize>, ScanError> {
        // A local, so that the loop keeps it in registers: this is where most bytes of an object pass.
        let mut at = self.at;
        // From where on whole blocks can be passed over again.
        let mut blocks = at;
        while at < bytes.len() {
            let mut string = None;
            if at >= blocks {
                match self.blocks(bytes, at, depth_max) {
                    Passed::Closed(end) => return Ok(Some(end)),
                    Passed::Open(behind) => at = behind,
                    Passed::String(inside) => string = Some(inside),
                }
                blocks = string.unwrap_or(at) + BLOCK;
            }
            if string.is_none() {
                let Some(&byte) = bytes.get(at) else { break };
                match CLASS[usize::from(byte)] {
                    Class::Other => at += 1,
                    Class::Quote => string = Some(at + 1),
                    Class::Open => {
                        self.depth += 1;
                        if self.depth > depth_max {
                            return Err(ScanError { offset: at, problem: "nested too deep" });
                        }
                        at += 1;
                    }
                    Class::Close => {
                        at += 1;
                        // The first byte was an opening bracket, so there is one to close.
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Ok(Some(at));
                        }
                    }
                }
            }
            if let Some(inside) = string {
                match string_end(bytes, inside) {
                    Ok(end) => at = end + 1,
                    Err(inside) => {
                        (self.at, self.state) = (inside, Skip::String);
                        return Ok(None);
                    }
                }
            }
        }
        (self.at, self.state) = (at, Skip::Open);
        Ok(None)
    }

    /// Passes over whole blocks from `at` on, where no string is open, up to one that needs a closer look.
    fn blocks(&mut self, bytes: &[u8], mut at: usize, depth_max: usize) -> Passed {
        let mut in_string = false;
        while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            let Some(marks) = Marks::of(block, in_string) else { break };
            let (opens, closes) = (marks.opens.count_ones(), marks.closes.count_ones());
            if self.depth + opens as usize > depth_max {
                break;
            }
            if closes as usize >= self.depth {
                if let Some(end) = marks.end(&mut self.depth) {
                    return Passed::Closed(at + end);
                }
            } else {
                self.depth = self.depth + opens as usize - closes as usize;
            }
            in_string = marks.in_string;
            at += BLOCK;
        }
        if in_string { Passed::String(at) } else { Passed::Open(at) }
    }
}

/// Where whole blocks were passed over.
enum Passed {
    /// The last bracket closed in front of this.
    Closed(usize),
    /// Up to here, and no string is open.
    Open(usize),
    /// Up to here, inside a string.
    String(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Quote,
    Open,
    Close,
}

/// What a byte means outside of strings.
const CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    table[b'"' as usize] = Class::Quote;
    table[b'{' as usize] = Class::Open;
    table[b'[' as usize] = Class::Open;
    table[b'}' as usize] = Class::Close;
    table[b']' as usize] = Class::Close;
    table
};

/// Where the string whose contents start at `at` ends, with its closing quote; or, if the bytes end before it, where to
/// go on once there are more.
#[inline]
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        match quote_or_backslash(bytes, at) {
            None => return Err(bytes.len()),
            Some(found) if bytes[found] == b'"' => return Ok(found),
            // The byte after the backslash may not be here yet: then wait in front of both.
            Some(found) if found + 1 < bytes.len() => at = found + 2,
            Some(found) => return Err(found),
        }
    }
}

/// The first quote or backslash from `at` on.
///
/// Most strings of an object are shorter than 16 bytes, where the set-up of a vectorised search costs more than the
/// search: so two words by arithmetic first.
#[inline]
fn quote_or_backslash(bytes: &[u8], mut at: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    for _ in 0..2 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (LOW * b'"' as u64);
        let backslash = word ^ (LOW * b'\\' as u64);
        // The lowest bit set is exact; a borrow can only set further ones above it.
        let zero = ((quote.wrapping_sub(LOW) & !quote)
            | (backslash.wrapping_sub(LOW) & !backslash))
            & HIGH;
        if zero != 0 {
            return Some(at + (zero.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|offset| at + offset)
}

/// A position in one complete JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many more brackets may be open at a time.
    depth_left: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor over text of which so many brackets may be open at a time, from `at` on.
    pub(crate) fn new(bytes: &'a [u8], at: usize, depth_max: usize) -> Self {
        Self { bytes, at, depth_left: depth_max }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn error(&self, problem: &'static str) -> ScanError {
        ScanError { offset: self.at, problem }
    }

    /// The next byte that is no white space, not consumed.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(self.bytes, self.at);
        self.bytes.get(self.at).copied()
    }

    /// Consumes `byte`, if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
            match byte {
                b'{' | b'[' => self.depth_left = self.depth_left.saturating_sub(1),
                b'}' | b']' => self.depth_left = self.depth_left.saturating_add(1),
                _ => {}
            }
        }
        found
    }

    /// Consumes `{` or the like.
    pub(crate) fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), ScanError> {
        if self.depth_left == 0 && matches!(byte, b'{' | b'[') {
            return Err(self.error("nested too deep"));
        }
        if self.take(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    /// The next key of an object whose `{` is consumed, with its colon; `None` and the `}` consumed at its end.
    /// `first` must be true at the first call and is for this method to change.
    pub(crate) fn key(&mut self, first: &mut bool) -> Result<Option<Str>, ScanError> {
        if self.take(b'}') {
            return Ok(None);
        }
        if !std::mem::take(first) {
            self.expect(b',', "no comma between members")?;
        }
        let key = self.string()?;
        self.expect(b':', "no colon after a key")?;
        self.peek();
        Ok(Some(key))
    }

    /// Whether a further element of a list whose `[` is consumed is next; the `]` is consumed at its end.
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool, ScanError> {
        if self.take(b']') {
            return Ok(false);
        }
        if !std::mem::take(first) {
            self.expect(b',', "no comma between elements")?;
        }
        self.peek();
        Ok(true)
    }

    /// Consumes a string.
    pub(crate) fn string(&mut self) -> Result<Str, ScanError> {
        self.expect(b'"', "no string")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match quote_or_backslash(self.bytes, self.at) {
                None => return Err(self.error("string without end")),
                Some(end) if self.bytes[end] == b'"' => {
                    self.at = end + 1;
                    return Ok(Str { start, end, escaped });
                }
                Some(found) => {
                    escaped = true;
                    self.at = found + 2;
                }
            }
        }
    }

    /// Consumes any value and tells where it is.
    pub(crate) fn value(&mut self) -> Result<Range<usize>, ScanError> {
        if self.peek().is_none() {
            return Err(self.error("text ends early"));
        }
        let start = self.at;
        match Skipper::new(start).find_end(self.bytes, self.depth_left)? {
            Some(end) => {
                self.at = end;
                Ok(start..end)
            }
            // A word ends with the text where nothing follows it.
            None if !matches!(self.bytes[start], b'{' | b'[' | b'"') => {
                self.at = self.bytes.len();
                Ok(start..self.at)
            }
            None => Err(ScanError { offset: self.bytes.len(), problem: "text ends early" }),
        }
    }

    /// Consumes any value.
    pub(crate) fn skip(&mut self) -> Result<(), ScanError> {
        self.value().map(|_| ())
    }

    /// Consumes `null`, if it is next.
    pub(crate) fn null(&mut self) -> bool {
        self.peek();
        let found = self.bytes.get(self.at..).unwrap_or_default().starts_with(b"null");
        if found {
            self.at += 4;
        }
        found
    }

    /// The bytes of a value.
    pub(crate) fn raw(&self, value: Range<usize>) -> &'a [u8] {
        &self.bytes[value]
    }

    /// A key for comparisons, not checked to be text: one that is not equals no name.
    pub(crate) fn name(&self, key: Str) -> Result<Cow<'a, [u8]>, ScanError> {
        if key.escaped {
            self.text(key).map(|text| Cow::Owned(text.into_owned().into_bytes()))
        } else {
            Ok(Cow::Borrowed(&self.bytes[key.start..key.end]))
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self, string: Str) -> Result<Cow<'a, str>, ScanError> {
        let error = |problem| ScanError { offset: string.start, problem };
        if string.escaped {
            // With its quotes it is a JSON text of its own.
            let quoted = &self.bytes[string.start - 1..=string.end];
            serde_json::from_slice::<String>(quoted)
                .map(Cow::Owned)
                .map_err(|_| error("malformed string"))
        } else {
            let bytes = &self.bytes[string.start..string.end];
            let text = std::str::from_utf8(bytes).map_err(|_| error("string is not UTF-8"))?;
            if bytes.iter().any(|byte| *byte < 0x20) {
                return Err(error("a control character in a string"));
            }
            Ok(Cow::Borrowed(text))
        }
    }

    /// Fails unless only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.error("text goes on after its value")) }
    }
}

/// The path of the innermost value around `offset`, as in `spec.containers[2].image`; empty for the whole text.
///
/// What is malformed ends the search with what is known by then.
pub(crate) fn path_at(bytes: &[u8], offset: usize) -> String {
    let mut path = String::new();
    let _ = follow(&mut Cursor::new(bytes, 0, usize::MAX), offset, &mut path);
    path
}

/// Appends the steps from the value at the cursor to `offset`.
fn follow(cursor: &mut Cursor<'_>, offset: usize, path: &mut String) -> Result<(), ScanError> {
    loop {
        let mut first = true;
        let mut inner = None;
        match cursor.peek() {
            Some(b'{') => {
                cursor.take(b'{');
                while let Some(key) = cursor.key(&mut first)? {
                    let start = cursor.clone();
                    // A value without end is the one in which the text broke off.
                    if cursor.value().map_or(usize::MAX, |value| value.end) > offset {
                        if start.at <= offset {
                            let dot = if path.is_empty() { "" } else { "." };
                            path.push_str(dot);
                            path.push_str(&cursor.text(key)?);
                            inner = Some(start);
                        }
                        break;
                    }
                }
            }
            Some(b'[') => {
                cursor.take(b'[');
                let mut index = 0_usize;
                while cursor.element(&mut first)? {
                    let start = cursor.clone();
                    if cursor.value().map_or(usize::MAX, |value| value.end) > offset {
                        if start.at <= offset {
                            path.push_str(&format!("[{index}]"));
                            inner = Some(start);
                        }
                        break;
                    }
                    index += 1;
                }
            }
            _ => {}
        }
        match inner {
            Some(start) => *cursor = start,
            None => return Ok(()),
        }
    }
}

/// The first position from `at` on that is no white space.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}
