//! Decompresses Zstandard data: frames one behind the other, and skippable frames between them.
//!
//! **Invariant others rely on:** a frame that is not complete, or whose checksum differs from its
//! contents, is an error of the kind [`InvalidData`](io::ErrorKind::InvalidData).

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use std::{
    fmt,
    io::{self, BufRead, Read},
};

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads the contents of frames one behind the other.
#[derive(Debug)]
pub struct Decompressor<R: BufRead> {
    from: R,
    frame: Frame,
    /// Whether a frame has begun that was not read to its end.
    inside: bool,
}

/// The library's decoder, which has no text for `Debug`.
struct Frame(FrameDecoder);

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameDecoder")
    }
}

impl<R: BufRead> Decompressor<R> {
    /// Reads frames from `from`.
    pub fn new(from: R) -> Self {
        Self {
            from,
            frame: Frame(FrameDecoder::new()),
            inside: false,
        }
    }

    /// Refuses frames that need more memory than `bytes` for their window, the part of the contents
    /// that later parts refer to. 128 MiB is the limit unless this is called.
    #[must_use]
    pub fn max_window(mut self, bytes: u64) -> Self {
        self.frame.0.set_max_window_size(bytes);
        self
    }

    /// Begins the next frame, or passes over a skippable one.
    fn begin(&mut self) -> io::Result<()> {
        match self.frame.0.reset(&mut self.from) {
            Ok(()) => self.inside = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = u64::from(length);
                let passed = io::copy(&mut self.from.by_ref().take(length), &mut io::sink())?;
                if passed < length {
                    return Err(damaged("it ends inside a skippable frame"));
                }
            }
            Err(error) => return Err(damaged(error)),
        }
        Ok(())
    }

    /// Compares the checksum of a frame that has ended, if it has one.
    fn check(&self) -> io::Result<()> {
        let frame = &self.frame.0;
        match (
            frame.get_checksum_from_data(),
            frame.get_calculated_checksum(),
        ) {
            (Some(there), Some(found)) if there != found => {
                Err(damaged("the checksum of a frame differs from its contents"))
            }
            _ => Ok(()),
        }
    }
}

fn damaged(why: impl fmt::Display) -> io::Error {
    let why = format!("the Zstandard data are damaged: {why}");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl<R: BufRead> Read for Decompressor<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !to.is_empty() && self.frame.0.can_collect() == 0 {
            if self.inside && self.frame.0.is_finished() {
                self.inside = false;
                self.check()?;
            } else if self.inside {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                (self.frame.0)
                    .decode_blocks(&mut self.from, one)
                    .map_err(damaged)?;
            } else if self.from.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.begin()?;
            }
        }
        self.frame.0.read(to)
    }
}
