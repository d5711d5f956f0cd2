//! Zstandard data. `pzstd` and `cat a.zst b.zst` write several frames.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{
    BlockDecodingStrategy, DEFAULT_MAX_WINDOW_SIZE as MAX_WINDOW, FrameDecoder,
};

/// Reads the content of frames, one after the other.
///
/// A window has 128 MiB at most, as `zstd` has it.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> Frames<R> {
    /// `window` limits the window of a frame to fewer bytes.
    pub fn new(source: R, window: Option<u64>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window.map_or(MAX_WINDOW, |window| window.min(MAX_WINDOW)));
        Frames {
            source,
            decoder,
            inside: false,
        }
    }

    /// Starts the next frame that is not skippable; `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.source).take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if out.is_empty() || (!self.inside && !self.next_frame()?) {
                return Ok(0);
            }
            self.inside = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    // The decoder's errors speak of its own states, which tell a user nothing.
                    .map_err(|_| io::Error::other("invalid block"))?;
            }
            let len = self.decoder.read(out)?;
            if len > 0 {
                return Ok(len);
            }
            self.inside = false;
            let stored = self.decoder.get_checksum_from_data();
            if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum"));
            }
        }
    }
}
