//! ZIP archives of files that are stored, not compressed.
//!
//! The layout is that of PKWARE's APPNOTE.TXT 6.3.10. All lengths and positions are written as
//! 64-bit numbers (zip64), however small, so that archives of any size are laid out in one way. A
//! checksum stands before each file, so a file's content has to be in memory.

use std::io::{self, Write};

/// The version of the format that can read zip64.
const VERSION: [u8; 2] = 45_u16.to_le_bytes();
/// In the place of a 32-bit number: zip64 holds it.
const IN_ZIP64: [u8; 4] = [0xff; 4];
/// Time and date of every file: midnight, 1 January 1980, the first that can be written.
const TIME: [u8; 4] = [0, 0, 0x21, 0];

/// An archive that is being written, front to back.
pub(super) struct Archive<W> {
    output: W,
    /// Bytes written so far.
    written: u64,
    /// The list of files, which stands at the end.
    directory: Vec<u8>,
    files: u16,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(output: W) -> Self {
        Self {
            output,
            written: 0,
            directory: Vec::new(),
            files: 0,
        }
    }

    /// Adds a file with these parts as its content, one after the other.
    pub(super) fn add(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mut sum = flate2::Crc::new();
        parts.iter().for_each(|part| sum.update(part));
        let length = parts.iter().map(|part| part.len() as u64).sum();
        let begin = self.written;
        // What both headers of a file have in common, from the version to the length of `extra`.
        let shared = |extra: &[u8]| {
            let lengths = [name.len(), extra.len()].map(|length| (length as u16).to_le_bytes());
            let checksum = sum.sum().to_le_bytes();
            // Neither flags nor compression.
            let none = [0; 4];
            let words = [none, TIME, checksum, IN_ZIP64, IN_ZIP64];
            [&VERSION[..], words.as_flattened(), lengths.as_flattened()].concat()
        };
        let extra = zip64(&[length, length]);
        self.write(&[b"PK\x03\x04", &shared(&extra), name.as_bytes(), &extra])?;
        self.write(parts)?;
        let extra = zip64(&[length, length, begin]);
        // No comment, the first disk, no attributes.
        let none = [0; 2 + 2 + 2 + 4];
        let parts: [&[u8]; 7] = [
            b"PK\x01\x02",
            &VERSION,
            &shared(&extra),
            &none,
            &IN_ZIP64,
            name.as_bytes(),
            &extra,
        ];
        self.directory.extend(parts.concat());
        self.files += 1;
        Ok(())
    }

    /// Writes the list of files.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let (begin, directory) = (self.written, std::mem::take(&mut self.directory));
        self.write(&[&directory])?;
        let end = self.written;
        let files = u64::from(self.files);
        let numbers = [files, files, end - begin, begin].map(u64::to_le_bytes);
        // The length of what follows it: two versions, two disks and the numbers.
        let length = (4 + 8 + size_of_val(&numbers) as u64).to_le_bytes();
        let disks = [0; 8];
        let numbers = numbers.as_flattened();
        self.write(&[b"PK\x06\x06", &length, &VERSION, &VERSION, &disks, numbers])?;
        // Where the record above begins, on the first of one disk.
        let (first, all) = (0_u32.to_le_bytes(), 1_u32.to_le_bytes());
        self.write(&[b"PK\x06\x07", &first, &end.to_le_bytes(), &all])?;
        let files = self.files.to_le_bytes();
        let (disks, comment) = ([0; 4], [0; 2]);
        let counts = [files, files];
        let counts = counts.as_flattened();
        self.write(&[
            b"PK\x05\x06",
            &disks,
            counts,
            &IN_ZIP64,
            &IN_ZIP64,
            &comment,
        ])
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.output.write_all(part)?;
            self.written += part.len() as u64;
        }
        Ok(())
    }
}

/// The field of a header that holds 64-bit numbers.
fn zip64(numbers: &[u64]) -> Vec<u8> {
    let mut field = [1, 8 * numbers.len() as u16].map(u16::to_le_bytes).concat();
    field.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    field
}
