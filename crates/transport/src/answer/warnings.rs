//! `Warning` headers (RFC 7234, 5.5), as kube-apiserver sends them: `299 - "text"`.

use http::HeaderMap;
use http::header::WARNING;

/// How many are kept; the server sends a few.
const WARNINGS_MAX: usize = 64;

/// The texts of all warnings with code 299. Others come from proxies and are about caching.
pub(super) fn texts(headers: &HeaderMap) -> Vec<String> {
    let mut texts = Vec::new();
    for value in headers.get_all(WARNING) {
        let mut rest = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
        while let Some((code, text, after)) = one(rest) {
            if code == "299" && texts.len() < WARNINGS_MAX {
                texts.push(text);
            }
            rest = after;
        }
    }
    texts
}

/// Code, text, and what follows the next comma.
fn one(header: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = header.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let quoted = rest.trim_start().strip_prefix('"')?;
    let (mut text, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                text.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => {
                // A date may stand before the comma; nothing reads it.
                // In quotes, and with a comma of its own.
                let rest = quoted[at + 1..].trim_start();
                let dated = rest.strip_prefix('"').and_then(|date| date.split_once('"'));
                let rest = dated.map_or(rest, |(_, rest)| rest);
                let after = rest.split_once(',').map_or("", |(_, after)| after);
                return Some((code, text, after));
            }
            c => text.push(c),
        }
    }
    None
}
