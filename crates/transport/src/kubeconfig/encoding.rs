//! From bytes to text: editors and shells of other systems write kubeconfigs in UTF-16, or begin UTF-8 with a mark.

use secrecy::zeroize::Zeroizing;

/// The text; `None` if it is neither UTF-8 nor UTF-16 with a byte order mark. Allocated once: a text that grows leaves
/// copies behind.
pub(super) fn decode(bytes: &[u8]) -> Option<Zeroizing<String>> {
    let utf8 = match bytes {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => rest,
        all => all,
    };
    std::str::from_utf8(utf8).ok().map(|text| Zeroizing::new(text.to_owned()))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Zeroizing<String>> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let chars = || char::decode_utf16(pairs.clone().map(|pair| unit([pair[0], pair[1]])));
    let length = chars().map(|char| char.map_or(0, char::len_utf8)).sum();
    let mut text = Zeroizing::new(String::with_capacity(length));
    for char in chars() {
        text.push(char.ok()?);
    }
    Some(text)
}
