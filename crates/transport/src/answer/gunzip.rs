//! Decompression of any number of gzip members, each byte as soon as it can be known.
//!
//! kube-apiserver ends a member at each flush of a compressed watch (KEP-3157), so the body of one watch has as many
//! members as it has flushes. A decoder that stops after the first loses all events but the first.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;

use crate::error::TransportError;

/// Compressed bytes that are decompressed at once. Deflate expands by 1,032 at most, so this bounds a piece to 4 MiB.
const STEP: usize = 4096;

#[derive(Default)]
pub(super) struct Gunzip {
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    input: Bytes,
}

impl Gunzip {
    /// Takes further bytes. [`Gunzip::next`] must have given `None` before.
    pub(super) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.input.is_empty(), "pushed before all was taken");
        self.input = bytes;
    }

    /// The next decompressed piece; `None` if more bytes are needed.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        while !self.input.is_empty() {
            let decoder = self.decoder.get_or_insert_with(|| MultiGzDecoder::new(Vec::new()));
            let step = self.input.len().min(STEP);
            let written = decoder
                .write_all(&self.input[..step])
                .and_then(|()| decoder.flush())
                .map_err(|error| damaged(&error));
            self.input.advance(step);
            written?;
            let output = std::mem::take(decoder.get_mut());
            if !output.is_empty() {
                return Ok(Some(output.into()));
            }
        }
        Ok(None)
    }

    /// At the end of the body: whether the last member is complete and has the right checksum.
    pub(super) fn finish(&mut self) -> Result<(), TransportError> {
        match self.decoder.take() {
            None => Ok(()),
            Some(decoder) => decoder.finish().map(drop).map_err(|error| damaged(&error)),
        }
    }
}

fn damaged(error: &std::io::Error) -> TransportError {
    TransportError::Compression { problem: format!("damaged gzip: {error}") }
}
