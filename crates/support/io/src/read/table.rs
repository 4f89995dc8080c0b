//! Reads text tables of numbers with any number of columns.
//!
//! Separators, quotes, comments and blank lines are as in point tables. **Invariant others rely
//! on:** all columns of a [`Table`] that hold numbers are equally long.

use nearfield_grid::memory::{Shortage, collected, filled, make_room_for_one};
use std::{collections::HashSet, path::Path};

use crate::{
    error::{Error, ErrorKind, Fault, Parsed, Place, quoted},
    format::Format,
    number::Number,
};

use super::csv::{Separator, check_width};
use super::open::{check_text, contents, without_mark};
use crate::cursor::Cursor;

const COLUMNS: &str = "the columns of a table";

/// A table of numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    rows: usize,
    /// Rows that do not stand in the line after the row before, and their lines.
    jumps: Vec<(usize, usize)>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// A number in every line.
    Numbers(Vec<f64>),
    /// Something else in at least one line.
    Text {
        /// The first such line, counted from 1.
        line: usize,
        /// The text there.
        text: String,
        /// What stands in that row and those behind it, a line for each.
        rows: String,
    },
}

impl Table {
    /// The columns' names, none when the table does not name them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The place of the column with this name; upper and lower case are the same.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names
            .iter()
            .position(|one| one.eq_ignore_ascii_case(name))
    }

    /// The line of the file, counted from 1, that holds a row of the columns, counted from 0.
    pub fn line(&self, row: usize) -> usize {
        let next = self.jumps.partition_point(|&(from, _)| from <= row);
        match next.checked_sub(1).map(|last| self.jumps[last]) {
            Some((from, line)) => line + (row - from),
            None => row + 1,
        }
    }

    /// Takes a table's lines; without names, everything must be numbers.
    fn push(&mut self, fields: &[&[u8]], line: usize) -> Parsed<()> {
        if fields.len() != self.columns.len() {
            let (found, expected) = (fields.len(), self.columns.len());
            let message = format!("{found} columns where {expected} are expected");
            return Err(Fault::malformed(Place::Line(line), message));
        }
        if line != self.line(self.rows) {
            make_room_for_one(&mut self.jumps, "places of lines")?;
            self.jumps.push((self.rows, line));
        }
        self.rows += 1;
        for (place, (column, field)) in self.columns.iter_mut().zip(fields).enumerate() {
            let numbers = match column {
                Column::Numbers(numbers) => numbers,
                Column::Text { rows, .. } => {
                    add_line(rows, field)?;
                    continue;
                }
            };
            match Number::parse(field) {
                Some(number) => {
                    make_room_for_one(numbers, "numbers of a table")?;
                    numbers.push(number.double);
                }
                None if self.names.is_empty() => {
                    let column = place + 1;
                    let message = format!("{} is not a number", quoted(field));
                    return Err(Fault::malformed(Place::Column { line, column }, message));
                }
                None => {
                    let (text, mut rows) = (quoted(field), String::new());
                    add_line(&mut rows, field)?;
                    *column = Column::Text { line, text, rows };
                }
            }
        }
        Ok(())
    }
}

/// Adds a field as a line.
fn add_line(lines: &mut String, field: &[u8]) -> Result<(), Shortage> {
    let field = String::from_utf8_lossy(field);
    let len = lines.len() + field.len() + 1;
    (lines.try_reserve(field.len() + 1)).map_err(|_| Shortage::of::<u8>(len, COLUMNS))?;
    lines.push_str(&field);
    lines.push('\n');
    Ok(())
}

/// Reads a table of numbers from a text file. The separator is taken from the first line (`;`, `,`,
/// tab, or else white space), and so are the columns' names, unless it is all numbers. `#` begins a
/// comment. Columns with names may hold text.
///
/// # Errors
/// When the file cannot be read, holds no table, names two columns alike, or a line does not fit
/// the first. The message is one line that names the file and the place.
pub fn read_table(path: impl AsRef<Path>) -> Result<Table, Error> {
    let path = path.as_ref();
    let bytes = contents(path)?;
    read(&bytes).map_err(|fault| fault.in_file(path))
}

/// Reads a table from the contents of a file.
///
/// # Errors
/// As [`read_table`], with the format named in place of the file.
///
/// ```
/// use nearfield_io::{Column, parse_table};
/// let table = parse_table(b"name,mass,x\nsun,39.5,0\njupiter,0.04,4.8\n")?;
/// assert_eq!(table.columns()[1], Column::Numbers(vec![39.5, 0.04]));
/// assert_eq!(table.place("X"), Some(2));
/// # Ok::<(), nearfield_io::Error>(())
/// ```
pub fn parse_table(bytes: &[u8]) -> Result<Table, Error> {
    read(bytes).map_err(|fault| fault.in_memory(Format::Csv))
}

fn read(bytes: &[u8]) -> Parsed<Table> {
    check_text(bytes)?;
    let bytes = without_mark(bytes);
    let mut cursor = Cursor::new(bytes);
    let mut found: Option<(Separator, Table)> = None;
    let mut fields = Vec::new();
    for line in 1.. {
        let Some(text) = cursor.next_line() else {
            break;
        };
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        if let Some((separator, table)) = &mut found {
            separator.split(text, &mut fields)?;
            check_width(&fields, line)?;
            table.push(&fields, line)?;
            continue;
        }
        let separator = Separator::of(text);
        separator.split(text, &mut fields)?;
        check_width(&fields, line)?;
        let mut table = Table {
            columns: filled(fields.len(), Column::Numbers(Vec::new()), COLUMNS)?,
            ..Table::default()
        };
        if fields.iter().all(|field| Number::parse(field).is_some()) {
            table.push(&fields, line)?
        } else {
            let name = |field: &&[u8]| String::from_utf8_lossy(field).into_owned();
            table.names = collected(fields.iter().map(name), COLUMNS)?;
            check_names(&table.names, line)?;
        }
        found = Some((separator, table));
    }
    found.map(|(_, table)| table).ok_or_else(|| {
        let message = "the file holds nothing but blanks and comments";
        Fault::new(ErrorKind::Empty, Place::Whole, message)
    })
}

/// Refuses two columns of one name: which of them is meant cannot be known.
fn check_names(names: &[String], line: usize) -> Parsed<()> {
    let mut seen = HashSet::new();
    let room = seen.try_reserve(names.len());
    room.map_err(|_| Shortage::of::<String>(names.len(), COLUMNS))?;
    for (column, name) in names.iter().enumerate() {
        if !name.is_empty() && !seen.insert(name.to_ascii_lowercase()) {
            let column = column + 1;
            let message = format!("a second column is named {}", quoted(name.as_bytes()));
            return Err(Fault::malformed(Place::Column { line, column }, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_optional_and_text_is_set_aside() {
        let bare = parse_table(b"# m x\n-1 0.5\n\n2\t1e3\n").unwrap();
        assert!(bare.names().is_empty());
        let numbers = |values: &[f64]| Column::Numbers(values.to_vec());
        assert_eq!(
            bare.columns(),
            [numbers(&[-1.0, 2.0]), numbers(&[0.5, 1000.0])]
        );
        let named = parse_table(b"name;q\nNa;1\nCl;-1\n").unwrap();
        assert_eq!(named.columns()[1], numbers(&[1.0, -1.0]));
        let text = Column::Text {
            line: 2,
            text: "'Na'".to_owned(),
            rows: "Na\nCl\n".to_owned(),
        };
        assert_eq!(named.columns()[0], text);
        assert_eq!([0, 1].map(|row| bare.line(row)), [2, 4]);
        assert_eq!([0, 1].map(|row| named.line(row)), [2, 3]);
        // It goes into messages, which are one line.
        let odd = parse_table(b"name,q\nN\x7f\x1ba,1\n").unwrap();
        let text = Column::Text {
            line: 2,
            text: r"'N\u{7f}\u{1b}a'".to_owned(),
            rows: "N\x7f\x1ba\n".to_owned(),
        };
        assert_eq!(odd.columns()[0], text);
    }

    #[test]
    fn lines_that_do_not_fit_are_named() {
        let error = parse_table(b"1,2\n3\n").unwrap_err().to_string();
        assert!(
            error.contains("line 2") && error.contains("1 columns where 2"),
            "{error}"
        );
        let error = parse_table(b"1,2\n3,x\n").unwrap_err().to_string();
        assert!(
            error.contains("line 2, column 2") && error.contains("'x'"),
            "{error}"
        );
        assert!(parse_table(b"# nothing\n").is_err());
    }

    #[test]
    fn names_that_occur_twice_and_binary_files_are_refused() {
        let error = parse_table(b"x,y,Q,q\n1,2,3,4\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "CSV data, line 1, column 4: a second column is named 'q'"
        );
        assert!(
            parse_table(b"x,,\"\",y\n1,2,3,4\n").is_ok(),
            "columns without names"
        );
        let error = parse_table(b"\x93NUMPY\x01\0v\0{'descr': '<f8'}\n\0\0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "CSV data: this is a NumPy array (.npy), not text in UTF-8 or ASCII"
        );
    }
}
