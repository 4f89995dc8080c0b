//! Compressed traces: Zstandard frames one behind the other.
//!
//! A recording writes a frame whenever it would flush, so that a program that is killed loses the
//! records since the last one and no others. `zstd -d` reads such a file, and a trace that `zstd`
//! has compressed is read here.
//!
//! **Invariant:** a frame is written as a whole, or an error says that the file is not complete.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
};

/// Bytes that make a frame even if nobody flushes.
const FRAME: usize = 1 << 20;

/// Whether a trace with this path is written compressed: the path ends with `.zst`.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str) == Some("zst")
}

/// Compresses what is written to it.
#[derive(Debug)]
pub struct Compressor<W: Write> {
    to: W,
    waiting: Vec<u8>,
}

impl<W: Write> Compressor<W> {
    /// Compresses into `to`.
    pub fn new(to: W) -> Self {
        let waiting = Vec::new();
        Self { to, waiting }
    }

    /// Where frames go. What was written since the last flush is not there yet.
    pub(crate) fn output(&mut self) -> &mut W {
        &mut self.to
    }

    /// Writes what waits as a frame.
    fn end_frame(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let frame = compress_to_vec(&self.waiting[..], CompressionLevel::Fastest);
        self.waiting.clear();
        self.to.write_all(&frame)
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= FRAME {
            self.end_frame()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_frame()?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_files::zstd::{Decompressor, MAGIC};
    use std::io::Read;

    fn frames(parts: &[&[u8]]) -> Vec<u8> {
        let mut compressor = Compressor::new(Vec::new());
        for part in parts {
            compressor.write_all(part).unwrap();
            compressor.flush().unwrap();
        }
        compressor.to
    }

    fn read(bytes: &[u8]) -> (Vec<u8>, io::Result<usize>) {
        let mut all = Vec::new();
        let read = Decompressor::new(bytes).read_to_end(&mut all);
        (all, read)
    }

    #[test]
    fn what_was_written_is_read_frame_by_frame() {
        let long: Vec<u8> = (0..3_000_000u32).map(|k| (k * k / 7) as u8).collect();
        let parts: [&[u8]; 5] = [b"one\n", b"", &long, b"two\n", b"three"];
        let bytes = frames(&parts);
        assert_eq!(bytes[..4], MAGIC);
        let (all, read) = read(&bytes);
        assert_eq!(read.unwrap(), all.len());
        assert!(all == parts.concat());
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_gives_what_comes_before_and_says_so() {
        let bytes = frames(&[b"first\n", b"second\n"]);
        let first = frames(&[b"first\n"]).len();
        for cut in first + 1..bytes.len() {
            let (all, read) = read(&bytes[..cut]);
            assert_eq!(all[..6], *b"first\n");
            assert_eq!(
                read.unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "cut at {cut}"
            );
        }
        for at in first..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            let (all, read) = read(&bytes);
            assert!(all.starts_with(b"first\n"));
            if let Err(error) = read {
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{at}: {error}");
            }
        }
    }
}
