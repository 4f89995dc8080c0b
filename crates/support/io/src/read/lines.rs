//! The lines of a text with their numbers, and the words of a line with their columns.

use crate::{
    cursor::Cursor,
    error::{Fault, Parsed, Place, quoted},
    number::Number,
};

/// The lines from a place on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    cursor: Cursor<'a>,
    /// The number of the next line, from 1.
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let cursor = Cursor::new(bytes);
        Self { cursor, number: 1 }
    }

    /// All lines of the file.
    pub(super) fn rewound(&self) -> Self {
        Self {
            cursor: self.cursor.rewound(),
            number: 1,
        }
    }

    /// The number of the next line.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Bytes from the next line on.
    pub(super) fn remaining(&self) -> usize {
        self.cursor.remaining()
    }

    /// The place of the next line.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.number)
    }

    /// A cursor at the beginning of the next line.
    pub(super) fn cursor(&self) -> Cursor<'a> {
        self.cursor
    }

    /// The next line without its end; `None` behind the last.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.cursor.next_line()?;
        self.number += 1;
        Some(line)
    }

    /// The next line without moving.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        ahead.next()
    }

    /// Passes over `count` lines; returns the number of those that are there.
    pub(super) fn skip(&mut self, count: usize) -> usize {
        (0..count).take_while(|_| self.next().is_some()).count()
    }

    /// The next line, or a fault that names the missing part.
    pub(super) fn expect(&mut self, what: &str) -> Parsed<Line<'a>> {
        let number = self.number;
        match self.next() {
            Some(text) => Ok(Line { text, number }),
            None => Err(self.ends_before(what)),
        }
    }

    /// The fault of a file that ends too early.
    pub(super) fn ends_before(&self, what: &str) -> Fault {
        Fault::truncated(self.place(), format!("the file ends before {what}"))
    }

    /// Refuses a count of lines that the rest of the file cannot hold, before memory is taken:
    /// each takes at least `least` bytes.
    pub(super) fn check_room(&self, count: usize, least: usize, what: &str) -> Parsed<()> {
        if count > self.remaining().div_ceil(least) {
            let left = self.remaining();
            let message = format!("{count} {what} are announced, but only {left} bytes follow");
            return Err(Fault::truncated(self.place(), message));
        }
        Ok(())
    }
}

/// A line and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) number: usize,
}

impl<'a> Line<'a> {
    pub(super) fn place(self) -> Place {
        Place::Line(self.number)
    }

    pub(super) fn words(self) -> impl Iterator<Item = &'a [u8]> {
        let words = self.text.split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    }

    /// The first `N` words as numbers, and nothing about what follows.
    pub(super) fn numbers<const N: usize>(self, what: &str) -> Parsed<[f64; N]> {
        let mut words = self.words().zip(1..);
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            let (word, column) = words.next().ok_or_else(|| {
                let message = format!("expected {N} numbers: {what}");
                Fault::malformed(self.place(), message)
            })?;
            *number = self.number_at(word, column)?.double;
        }
        Ok(numbers)
    }

    /// The word of this column as a number.
    pub(super) fn number_at(self, word: &[u8], column: usize) -> Parsed<Number> {
        Number::parse(word).ok_or_else(|| {
            let line = self.number;
            let message = format!("{} is not a number", quoted(word));
            Fault::malformed(Place::Column { line, column }, message)
        })
    }

    /// The line as a single count.
    pub(super) fn count(self, what: &str) -> Parsed<usize> {
        let text = self.text.trim_ascii();
        crate::cursor::parse(text).ok_or_else(|| {
            let message = format!("{} is not {what}", quoted(text));
            Fault::malformed(self.place(), message)
        })
    }
}
