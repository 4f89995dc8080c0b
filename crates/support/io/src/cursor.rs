//! A position in a file's bytes that moves by lines, words and blocks.
//!
//! **Invariant others rely on:** `at` never passes the end of the bytes, and nothing is allocated
//! for what a file merely announces.

use nearfield_grid::memory::with_room;

use crate::{
    error::{Fault, Parsed, Place, quoted},
    number::parse_number,
    point_data::Values,
    raw::Scalar,
};

/// Where reading has come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A word of a text, and where it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A cursor over `bytes[start..end]` that still counts places from the start of the file.
    pub(crate) fn over(bytes: &'a [u8], start: usize, end: usize) -> Self {
        let bytes = bytes.get(..end).unwrap_or(bytes);
        Self {
            bytes,
            at: start.min(bytes.len()),
        }
    }

    /// A cursor at the start of the file.
    pub(crate) fn rewound(&self) -> Self {
        Self::new(self.bytes)
    }

    /// The offset from the start of the file.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The number of the line the cursor is in, from 1; counted, so not for inner loops.
    pub(crate) fn line_number(&self) -> usize {
        1 + self.bytes[..self.at]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
    }

    /// The line the cursor is in.
    pub(crate) fn line(&self) -> Place {
        Place::Line(self.line_number())
    }

    /// The line that holds the byte at `offset`.
    pub(crate) fn line_of(&self, offset: usize) -> Place {
        Self::over(self.bytes, offset, self.bytes.len()).line()
    }

    /// The rest of the current line without its end, or `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|&byte| byte == b'\n');
        self.at += end.map_or(rest.len(), |end| end + 1);
        let line = &rest[..end.unwrap_or(rest.len())];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// The next word, across line ends; `None` when only white space is left.
    pub(crate) fn next_word(&mut self) -> Option<Word<'a>> {
        let rest = &self.bytes[self.at..];
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let length = rest[start..].iter().position(u8::is_ascii_whitespace);
        let end = length.map_or(rest.len(), |length| start + length);
        let at = self.at + start;
        self.at += end;
        Some(Word {
            text: &rest[start..end],
            at,
        })
    }

    /// The next word without moving.
    pub(crate) fn peek_word(&self) -> Option<Word<'a>> {
        let mut ahead = *self;
        ahead.next_word()
    }

    /// Whether only blanks are left in the current line.
    pub(crate) fn is_at_line_end(&self) -> bool {
        let mut ahead = *self;
        ahead
            .next_line()
            .unwrap_or_default()
            .trim_ascii()
            .is_empty()
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// The next word, or a fault that names the missing part.
    pub(crate) fn expect_word(&mut self, what: &str) -> Parsed<Word<'a>> {
        self.next_word().ok_or_else(|| {
            Fault::truncated(
                self.line_of(self.bytes.len()),
                format!("the file ends before {what}"),
            )
        })
    }

    /// The next word as a count.
    pub(crate) fn expect_count(&mut self, what: &str) -> Parsed<usize> {
        let word = self.expect_word(what)?;
        parse(word.text).ok_or_else(|| {
            let message = format!("{} is not {what}", quoted(word.text));
            Fault::malformed(self.line_of(word.at), message)
        })
    }

    /// The next `count` words as numbers of the declared type.
    pub(crate) fn expect_values(
        &mut self,
        scalar: Scalar,
        count: usize,
        what: &str,
    ) -> Parsed<Values<'static>> {
        self.check_room_for_words(count, what)?;
        Ok(match scalar {
            Scalar::I8 | Scalar::I16 | Scalar::I32 => self.numbers::<i32>(count, what)?.into(),
            Scalar::U8 | Scalar::U16 | Scalar::U32 => self.numbers::<u32>(count, what)?.into(),
            Scalar::I64 => self.numbers::<i64>(count, what)?.into(),
            Scalar::U64 => self.numbers::<u64>(count, what)?.into(),
            Scalar::F16 | Scalar::F32 => self.numbers::<f32>(count, what)?.into(),
            Scalar::F64 => self.numbers::<f64>(count, what)?.into(),
        })
    }

    /// Refuses a declared count that the rest of the file cannot hold, before memory is taken: a
    /// number and the space before the next take at least two bytes.
    pub(crate) fn check_room_for_words(&self, count: usize, what: &str) -> Parsed<()> {
        if count > self.remaining().div_ceil(2) {
            let message = format!(
                "{count} numbers are announced for {what}, but only {} bytes follow",
                self.remaining()
            );
            return Err(Fault::truncated(self.line(), message));
        }
        Ok(())
    }

    fn numbers<T: std::str::FromStr>(&mut self, count: usize, what: &str) -> Parsed<Vec<T>> {
        let mut numbers = with_room(count, "an array of a file")?;
        for index in 0..count {
            let Some(word) = self.next_word() else {
                let message = format!("the file ends after {index} of {count} numbers of {what}");
                return Err(Fault::truncated(self.line_of(self.bytes.len()), message));
            };
            numbers.push(
                parse(word.text).ok_or_else(|| {
                    Fault::malformed(self.line_of(word.at), not_a_number(word.text))
                })?,
            );
        }
        Ok(numbers)
    }
}

/// The message for text that should have been a number.
pub(crate) fn not_a_number(text: &[u8]) -> String {
    format!("{} is not a number of the type expected here", quoted(text))
}

/// Reads ASCII text as any type with a text form; numbers as [`parse_number`] does.
pub(crate) fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    parse_number(std::str::from_utf8(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lines_and_blocks_are_found_in_turn() {
        let mut cursor = Cursor::new(b"POINTS 2 float\r\n\x01\x02\x03\x04\nlast");
        assert_eq!(cursor.next_word().unwrap().text, b"POINTS");
        assert_eq!(cursor.expect_count("a count").unwrap(), 2);
        assert_eq!(cursor.next_line().unwrap(), b" float");
        assert_eq!(cursor.take(4).unwrap(), [1, 2, 3, 4]);
        assert_eq!(cursor.take(6), None);
        assert_eq!(cursor.peek_word().unwrap().text, b"last");
        assert_eq!(cursor.line(), Place::Line(2));
        assert_eq!(cursor.next_word().unwrap().at, 21);
        assert!(cursor.next_word().is_none());
        assert!(cursor.next_line().is_none());
    }

    #[test]
    fn an_absurd_count_of_words_is_refused_before_memory_is_taken() {
        let mut cursor = Cursor::new(b"1 2 3");
        let fault = cursor
            .expect_values(Scalar::F32, usize::MAX, "points")
            .unwrap_err();
        assert_eq!(
            fault.in_memory(crate::Format::Csv).kind(),
            crate::ErrorKind::Truncated
        );
    }

    #[test]
    fn a_number_beyond_its_type_is_refused() {
        assert!(
            Cursor::new(b"300 4294967296")
                .expect_values(Scalar::U32, 2, "ids")
                .is_err()
        );
        assert!(
            Cursor::new(b"-1")
                .expect_values(Scalar::U64, 1, "ids")
                .is_err()
        );
    }
}
