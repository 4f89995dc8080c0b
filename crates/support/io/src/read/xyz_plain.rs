//! Determines the columns of an XYZ frame whose comment does not name them: `species x y z` or
//! `x y z`, with further columns that are not read.
//!
//! A first word that is not a number is a species. If any row begins with a number that is not
//! written as an integer, first words are x. If all first words are integers, they may be either:
//! three columns are `x y z`; atomic numbers before words that can only be coordinates are species;
//! anything else is refused. **Invariant others rely on:** the decision takes all rows of the frame
//! into account.

use crate::{
    cursor::Cursor,
    error::{Fault, Parsed, Place, quoted},
    number::Number,
};

use super::xyz_comment::{Column, Contents};

/// A survey of the first words of a frame's rows.
#[derive(Default)]
struct Survey<'a> {
    rows: usize,
    /// The first row that begins with a name, and the first that begins with a number that is not
    /// whole: line and word.
    name: Option<(usize, &'a [u8])>,
    fraction: Option<(usize, &'a [u8])>,
    /// True if every first word can be an atomic number.
    elements: bool,
    /// Whether a second to fourth word is not a whole number.
    decimals: bool,
    fewest: usize,
    most: usize,
}

impl<'a> Survey<'a> {
    fn of(mut cursor: Cursor<'a>, rows: usize, first_line: usize) -> Self {
        let mut survey = Self {
            elements: true,
            fewest: usize::MAX,
            ..Self::default()
        };
        for line in first_line..first_line.saturating_add(rows) {
            let Some(text) = cursor.next_line() else {
                break;
            };
            survey.add(text, line);
        }
        survey
    }

    fn add(&mut self, text: &'a [u8], line: usize) {
        let mut words = text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let Some(first) = words.next() else {
            // Said when the row is read.
            return;
        };
        let mut columns = 1;
        for word in words {
            self.decimals |= columns < 4 && whole(word).is_none();
            columns += 1;
        }
        self.rows += 1;
        (self.fewest, self.most) = (self.fewest.min(columns), self.most.max(columns));
        match whole(first) {
            Some(number) => self.elements &= (1..=118).contains(&number),
            None if Number::parse(first).is_some() => {
                self.fraction.get_or_insert((line, first));
            }
            None => {
                self.name.get_or_insert((line, first));
            }
        }
    }
}

/// The value of a word that is written as an integer; 0, which is not an element, for a large one.
pub(super) fn whole(word: &[u8]) -> Option<u32> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    let (minus, digits) = match digits.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(digits).ok()?.parse().unwrap_or(0);
    is_whole.then_some(if minus { 0 } else { value })
}

/// The columns, and notes about them. `cursor` is at the first row.
pub(super) fn columns(
    cursor: Cursor<'_>,
    rows: usize,
    first_line: usize,
) -> Parsed<(Vec<Column>, Vec<String>)> {
    let survey = Survey::of(cursor, rows, first_line);
    let mut notes = Vec::new();
    let species = match (survey.name, survey.fraction) {
        (Some(name), Some(fraction)) => return Err(both(name, fraction)),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) if survey.most <= 3 => survey.rows == 0,
        (None, None) if survey.is_numbered() => {
            notes.push(
                "the first column, whole numbers from 1 to 118, is taken for the species"
                    .to_owned(),
            );
            true
        }
        (None, None) => return Err(survey.ambiguous(first_line)),
    };
    let position = Column::new("pos", Contents::Position, 3);
    let (columns, needed) = if species {
        (
            vec![Column::new("species", Contents::Species, 1), position],
            4,
        )
    } else {
        (vec![position], 3)
    };
    if survey.most > needed {
        let which = if survey.most == needed + 1 {
            format!("column {} has no name and is not read", survey.most)
        } else {
            format!(
                "columns {} to {} have no names and are not read",
                needed + 1,
                survey.most
            )
        };
        let kind = if species {
            "species:S:1:pos:R:3"
        } else {
            "pos:R:3"
        };
        notes.push(format!(
            "{which}: Properties={kind}:… in the comment names them"
        ));
    }
    Ok((columns, notes))
}

impl Survey<'_> {
    /// Whether whole numbers at the beginning are species: numbers of elements before x, y and z
    /// alone, or before decimals.
    fn is_numbered(&self) -> bool {
        self.elements && self.fewest >= 4 && (self.most == 4 || self.decimals)
    }

    fn ambiguous(&self, line: usize) -> Fault {
        let message = format!(
            "rows of {} columns begin with whole numbers, which may be species or x: say which in \
             line {}, by Properties=species:S:1:pos:R:3 or Properties=pos:R:3 with :name:R:1 for \
             each further column",
            self.most,
            line - 1
        );
        Fault::malformed(Place::Line(line), message)
    }
}

fn both(name: (usize, &[u8]), fraction: (usize, &[u8])) -> Fault {
    let message = format!(
        "a row begins with {} in line {} and with {} in line {}: rows are 'species x y z' or \
         'x y z', the same in all lines",
        quoted(name.1),
        name.0,
        quoted(fraction.1),
        fraction.0
    );
    Fault::malformed(Place::Line(name.0.max(fraction.0)), message)
}
