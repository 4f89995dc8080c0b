//! Tables of numbers as text.
//!
//! The separator is taken from the first line (`;`, `,`, tab, or else white space), and the
//! columns from its names, when it has any. Lines are split here, not by a CSV crate, because a
//! message must name the exact line even after blank lines and comments. **Invariant others rely
//! on:** every line yields one point, is blank, is a comment beginning with `#`, or is refused.

use nearfield_grid::memory::{Shortage, make_room_for_one};

use crate::{
    cloud::{Dimensions, PointCloud, Positions},
    cursor::Cursor,
    error::{ErrorKind, Fault, Parsed, Place, quoted},
    number::Number,
};

use super::open::check_text;

/// Maximum number of columns of a table and of properties of a point. It bounds the memory for
/// columns, which would otherwise be many times that of a line of separators.
pub(super) const MAX_COLUMNS: usize = 1 << 16;

/// Reads a table with a header naming x, y and perhaps z, or with two or three unnamed columns.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut cursor = Cursor::new(bytes);
    let mut table: Option<Table> = None;
    let mut positions = Positions::default();
    let mut fields = Vec::new();
    for line in 1.. {
        let Some(text) = cursor.next_line() else {
            break;
        };
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let table = match &table {
            Some(table) => table,
            None => match Table::of_first_line(text, line, Style::Table)? {
                Some((first, Row::Names)) => {
                    table = Some(first);
                    continue;
                }
                Some((first, Row::Numbers)) => &*table.insert(first),
                None => continue,
            },
        };
        if !text.starts_with(b"#") {
            table.separator.split(text, &mut fields)?;
            check_width(&fields, line)?;
            positions.push(table.point(&fields, line)?)?;
        }
    }
    let mut table = table.ok_or_else(|| {
        let message = "the file holds nothing but blanks and comments";
        Fault::new(ErrorKind::Empty, Place::Whole, message)
    })?;
    Ok(PointCloud {
        unread: std::mem::take(&mut table.unread),
        ..PointCloud::new(positions, table.dimensions())
    })
}

/// What is taken for granted where nothing names the columns, and what begins a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Two or three columns; `#`.
    Table,
    /// Two columns or more, of which the first three are x, y and z; `#` or `//`.
    Cloud,
}

impl Style {
    /// The text of a comment.
    pub(super) fn comment(self, line: &[u8]) -> Option<&[u8]> {
        let slashes = || line.strip_prefix(b"//").filter(|_| self == Self::Cloud);
        line.strip_prefix(b"#").or_else(slashes)
    }
}

/// How the lines of a file are to be understood.
pub(super) struct Table {
    pub(super) separator: Separator,
    /// The fields that hold x, y and z, counted from 0.
    columns: [Option<usize>; 3],
    /// The number of fields every line must have, when nothing names them.
    pub(super) unnamed: Option<usize>,
    /// Names of the other columns.
    pub(super) unread: Vec<String>,
}

/// Kind of the first line.
pub(super) enum Row {
    Names,
    Numbers,
}

impl Table {
    /// `None` for a comment. A comment that names x and y counts as a header, since that is how
    /// NumPy writes one.
    pub(super) fn of_first_line(
        text: &[u8],
        line: usize,
        style: Style,
    ) -> Parsed<Option<(Self, Row)>> {
        let comment = style.comment(text);
        let text = comment.unwrap_or(text).trim_ascii();
        let separator = Separator::of(text);
        let mut fields = Vec::new();
        separator.split(text, &mut fields)?;
        check_width(&fields, line)?;
        let numbers = fields.iter().all(|field| Number::parse(field).is_some());
        if comment.is_none() && numbers {
            return Self::unnamed(separator, fields.len(), line, style)
                .map(|table| Some((table, Row::Numbers)));
        }
        let columns = [0, 1, 2].map(|axis| find_axis(&fields, axis));
        for (axis, column) in AXES.iter().zip(columns) {
            check_alone(&fields, column, line, axis)?;
        }
        let named = columns[0].is_some() && columns[1].is_some();
        match (named, comment) {
            (false, Some(_)) => return Ok(None),
            (false, None) => return Err(neither_names_nor_numbers(&fields, line)),
            (true, _) => {}
        }
        let others = fields.iter().enumerate().filter(|(place, name)| {
            let read = columns.contains(&Some(*place));
            !read && !name.is_empty()
        });
        let unread = others.map(|(_, name)| String::from_utf8_lossy(name).into_owned());
        Ok(Some((
            Self {
                separator,
                columns,
                unnamed: None,
                unread: unread.collect(),
            },
            Row::Names,
        )))
    }

    fn unnamed(separator: Separator, count: usize, line: usize, style: Style) -> Parsed<Self> {
        let z = match count {
            2 => None,
            3 => Some(2),
            4.. if style == Style::Cloud => Some(2),
            _ => {
                let message = format!(
                    "{count} columns without names: 2 or 3 are needed, \
                     or a first line that names x, y and z"
                );
                return Err(Fault::malformed(Place::Line(line), message));
            }
        };
        Ok(Self {
            separator,
            columns: [Some(0), Some(1), z],
            unnamed: Some(count),
            unread: Vec::new(),
        })
    }

    pub(super) fn dimensions(&self) -> Dimensions {
        match self.columns[2] {
            Some(_) => Dimensions::Three,
            None => Dimensions::Two,
        }
    }

    pub(super) fn point(&self, fields: &[&[u8]], line: usize) -> Parsed<[Number; 3]> {
        if let Some(expected) = self.unnamed.filter(|&expected| expected != fields.len()) {
            let message = format!("{} columns where {expected} are expected", fields.len());
            return Err(Fault::malformed(Place::Line(line), message));
        }
        let mut point = [Number::ZERO; 3];
        for (axis, column) in self.columns.iter().enumerate() {
            if let Some(column) = *column {
                point[axis] = self.number(fields, column, line, AXES[axis])?;
            }
        }
        Ok(point)
    }

    fn number(&self, fields: &[&[u8]], column: usize, line: usize, axis: &str) -> Parsed<Number> {
        let Some(field) = fields.get(column) else {
            let message = format!(
                "{} columns, but {axis} is in column {}",
                fields.len(),
                column + 1
            );
            return Err(Fault::malformed(Place::Line(line), message));
        };
        Number::parse(field).ok_or_else(|| {
            let remedy = if field.contains(&b',') {
                "; write decimals with a point"
            } else {
                ""
            };
            let message = format!("{} is not a number{remedy}", quoted(field));
            Fault::malformed(
                Place::Column {
                    line,
                    column: column + 1,
                },
                message,
            )
        })
    }
}

/// Refuses lines of more columns than [`MAX_COLUMNS`].
pub(super) fn check_width(fields: &[&[u8]], line: usize) -> Parsed<()> {
    if fields.len() <= MAX_COLUMNS {
        return Ok(());
    }
    let message = format!("more than {MAX_COLUMNS} columns");
    Err(Fault::unsupported(Place::Line(line), message))
}

const AXES: [&str; 3] = ["x", "y", "z"];

/// The first column named x, y or z, or as ParaView names the coordinates of points.
fn find_axis(fields: &[&[u8]], axis: usize) -> Option<usize> {
    let names = [
        AXES[axis].to_owned(),
        format!("points:{axis}"),
        format!("points_{axis}"),
    ];
    let is_called = |name: &str| {
        fields
            .iter()
            .position(|field| field.eq_ignore_ascii_case(name.as_bytes()))
    };
    names.iter().find_map(|name| is_called(name))
}

/// Refuses a second column with the same name.
fn check_alone(fields: &[&[u8]], column: Option<usize>, line: usize, axis: &str) -> Parsed<()> {
    let Some(first) = column else {
        return Ok(());
    };
    let same = |field: &&[u8]| field.eq_ignore_ascii_case(fields[first]);
    let Some(other) = fields[first + 1..].iter().position(same) else {
        return Ok(());
    };
    let column = first + other + 2;
    let message = format!("a second column of {axis}, after column {}", first + 1);
    Err(Fault::malformed(Place::Column { line, column }, message))
}

fn neither_names_nor_numbers(fields: &[&[u8]], line: usize) -> Fault {
    const SHOWN: usize = 5;
    let found: Vec<String> = fields
        .iter()
        .take(SHOWN)
        .map(|field| quoted(field))
        .collect();
    let more = if fields.len() > SHOWN { ", …" } else { "" };
    let message = format!(
        "neither numbers nor column names with x and y: {}{more}",
        found.join(", ")
    );
    Fault::malformed(Place::Line(line), message)
}

/// The sign between the fields of a line.
#[derive(Clone, Copy)]
pub(super) enum Separator {
    Byte(u8),
    Blanks,
}

impl Separator {
    pub(super) fn of(line: &[u8]) -> Self {
        [b';', b',', b'\t']
            .into_iter()
            .find(|byte| line.contains(byte))
            .map_or(Self::Blanks, Self::Byte)
    }

    /// Replaces `fields` by the fields of `line`, without quotes and surrounding blanks; an empty
    /// field after a last separator does not count.
    pub(super) fn split<'a>(
        self,
        line: &'a [u8],
        fields: &mut Vec<&'a [u8]>,
    ) -> Result<(), Shortage> {
        fields.clear();
        // One more than is allowed, so that callers see it.
        let most = MAX_COLUMNS + 1;
        let mut quoted = false;
        let parts = line.split(|&byte| {
            quoted ^= byte == b'"';
            !quoted && self.separates(byte)
        });
        let blanks = matches!(self, Self::Blanks);
        let parts = parts.map(unquote);
        for field in parts
            .filter(|field| !blanks || !field.is_empty())
            .take(most)
        {
            make_room_for_one(fields, "the fields of a line")?;
            fields.push(field);
        }
        if fields.len() < most && fields.last().is_some_and(|last| last.is_empty()) {
            fields.pop();
        }
        Ok(())
    }

    fn separates(self, byte: u8) -> bool {
        match self {
            Self::Byte(separator) => byte == separator,
            Self::Blanks => byte.is_ascii_whitespace(),
        }
    }
}

fn unquote(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let inner = field
        .strip_prefix(b"\"")
        .and_then(|field| field.strip_suffix(b"\""));
    inner.unwrap_or(field).trim_ascii()
}
