//! The input that a check was about, when it fails.

use kubestrata_codec::schema::Kind;

/// Shows the input when a check panics, so that it can be repeated.
pub(crate) struct Shown<'a> {
    pub(crate) what: &'a str,
    pub(crate) number: u64,
    pub(crate) kind: &'a Kind,
    pub(crate) input: &'a [u8],
}

impl Drop for Shown<'_> {
    #[expect(clippy::print_stderr, reason = "an input that fails must be shown")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { what, number, kind, input } = self;
            eprintln!("{what} {number} of {kind:?}: b\"{}\"", input.escape_ascii());
        }
    }
}
