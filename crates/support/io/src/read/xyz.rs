//! XYZ files: a count, a comment, and one line per point; and their extended form, whose comment
//! holds `key=value` pairs (`Lattice`, `pbc`, `Properties`, `Time`) as ASE and OVITO write it.
//!
//! Frames follow each other. All are counted, and one is read. Without `Properties` the rows say
//! what a row is (`xyz_plain`). **Invariant others rely on:** the frame holds exactly the announced
//! number of points, and behind a frame there is another one or nothing.

use nearfield_grid::memory::{Shortage, make_room_for_one};
use std::collections::HashMap;

use crate::{
    cloud::{Dimensions, Frame, Frames, PointCloud, Positions, SimulationBox, Species},
    cursor::{Cursor, parse},
    error::{Fault, Parsed, Place, quoted},
    number::Number,
    point_data::PointData,
};

use super::{
    open::{check_text, no_frame},
    xyz_comment::{Column, Comment, Contents},
    xyz_plain,
};

const SPECIES: &str = "the kinds of points of a file";

/// Reads one frame.
pub(crate) fn read(bytes: &[u8], which: Frame) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let (mut cursor, line, frames) = find(bytes, which)?;
    let count = count(cursor.next_line().unwrap_or_default(), line, cursor)?;
    let comment = cursor.next_line().ok_or_else(|| {
        let message = "the file ends before the comment line";
        Fault::truncated(Place::Line(line + 1), message)
    })?;
    check_room(count, line, &cursor)?;
    let text = comment;
    let comment = Comment::parse(text, line + 1)?;
    let mut rows = Rows::new(&comment, count, cursor, line + 2)?;
    for point in 0..count {
        let line = line + 2 + point;
        if cursor.peek_word().is_none() {
            let message = format!("the file ends after {point} of {count} points");
            let hint = no_comment(text, bytes, count - point);
            return Err(Fault::truncated(Place::Line(line), message + hint));
        }
        let row = cursor.next_line().unwrap_or_default();
        rows.add(row, line)?;
    }
    Ok(PointCloud {
        frames,
        ..rows.finish(&comment)
    })
}

/// Finds a frame: a cursor at its beginning, its line, and which of how many it is.
fn find(bytes: &[u8], which: Frame) -> Parsed<(Cursor<'_>, usize, Frames)> {
    let mut cursor = Cursor::new(bytes);
    let mut frames = Frames {
        number: 0,
        count: 0,
        cut_off: false,
    };
    let mut found = None;
    let mut line = 1;
    loop {
        let (start, first) = (cursor, line);
        let Some(text) = cursor.next_line() else {
            break;
        };
        line += 1;
        if text.trim_ascii().is_empty() && frames.count > 0 {
            continue;
        }
        let rows = count(text, first, cursor).map_err(|fault| match frames.count {
            0 => fault,
            before => trailing_line(text, first, before),
        })?;
        let lines = rows.saturating_add(1);
        let present = (0..lines)
            .take_while(|_| cursor.next_line().is_some())
            .count();
        line += present;
        frames.cut_off = present < lines;
        frames.count += usize::from(!frames.cut_off);
        let number = frames.count + usize::from(frames.cut_off);
        let is_asked_for = match which {
            Frame::Number(asked) => asked == number,
            Frame::Last => !frames.cut_off || number == 1,
        };
        if is_asked_for {
            found = Some((start, first, number));
        }
        if frames.cut_off {
            break;
        }
    }
    let Some((start, line, number)) = found else {
        return Err(match which {
            Frame::Number(asked) if frames.count > 0 => no_frame(asked, frames.count),
            _ => Fault::malformed(Place::Line(1), "there is no frame"),
        });
    };
    Ok((start, line, Frames { number, ..frames }))
}

/// The number of points that a line announces; `cursor` is after the line.
fn count(line: &[u8], number: usize, cursor: Cursor<'_>) -> Parsed<usize> {
    let text = line.trim_ascii();
    parse(text).ok_or_else(|| {
        let hint = if is_row(text) || { cursor }.next_line().is_some_and(is_row) && number == 1 {
            ": these are rows without a count, as point clouds have them: begin the file with a \
             line of names (x y z …) and call it .csv, or with the count and a comment"
        } else {
            ""
        };
        let message = format!("{} is not a number of points{hint}", quoted(text));
        Fault::malformed(Place::Line(number), message)
    })
}

/// Refuses a line after a frame that does not begin another frame.
fn trailing_line(line: &[u8], number: usize, frames: usize) -> Fault {
    let message = format!(
        "{} follows {frames} frame(s) and is not the number of points of another: a frame has as \
         many rows as its first line says",
        quoted(line.trim_ascii())
    );
    Fault::malformed(Place::Line(number), message)
}

/// Whether a line is of three numbers or more.
fn is_row(line: &[u8]) -> bool {
    let words = line
        .split(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';'))
        .filter(|word| !word.is_empty());
    let mut numbers = 0;
    for word in words.take(MAX_LOOKED_AT) {
        if Number::parse(word).is_none() {
            return false;
        }
        numbers += 1;
    }
    numbers >= 3
}

/// Number of words by which a line is recognised as a row.
const MAX_LOOKED_AT: usize = 64;

/// The hint for a frame that lacks one row while its comment looks like one.
fn no_comment(comment: &[u8], bytes: &[u8], missing: usize) -> &'static str {
    let words = |line: &[u8]| {
        let words = line.split(u8::is_ascii_whitespace);
        words
            .filter(|word| !word.is_empty())
            .take(MAX_LOOKED_AT)
            .count()
    };
    let mut lines = Cursor::new(bytes);
    lines.next_line();
    lines.next_line();
    let first = lines.next_line().unwrap_or_default();
    if missing == 1 && is_row(comment) && (first.is_empty() || words(first) == words(comment)) {
        ". The second line looks like a row, as in a point cloud (.pts) without a comment line: put \
         an empty line behind the number of points"
    } else {
        ""
    }
}

/// Refuses a count that the rest of the file cannot hold, before memory is taken.
fn check_room(count: usize, line: usize, cursor: &Cursor<'_>) -> Parsed<()> {
    // A point takes at least the four bytes of "0 0" and a line end.
    if count > cursor.remaining().div_ceil(4) {
        let message = format!(
            "{count} points are announced, but only {} bytes follow",
            cursor.remaining()
        );
        return Err(Fault::truncated(Place::Line(line), message));
    }
    Ok(())
}

/// The points read so far.
struct Rows {
    columns: Vec<Column>,
    positions: Positions,
    species: Species,
    indices: HashMap<String, u32>,
    reals: Vec<Vec<f64>>,
    integers: Vec<Vec<i64>>,
    notes: Vec<String>,
    /// Whether the comment names the columns: then it names all of them.
    named: bool,
}

impl Rows {
    /// `cursor` is at the first row, which has this line number.
    fn new(comment: &Comment, count: usize, cursor: Cursor<'_>, line: usize) -> Parsed<Self> {
        let (columns, notes) = match &comment.columns {
            Some(columns) => (columns.clone(), Vec::new()),
            None => xyz_plain::columns(cursor, count, line)?,
        };
        let quantities = columns.len();
        Ok(Self {
            columns,
            positions: Positions::with_capacity(count)?,
            species: Species::default(),
            indices: HashMap::new(),
            reals: vec![Vec::new(); quantities],
            integers: vec![Vec::new(); quantities],
            notes,
            named: comment.columns.is_some(),
        })
    }

    fn add(&mut self, text: &[u8], line: usize) -> Parsed<()> {
        let mut words = Words {
            rest: text,
            line,
            column: 0,
        };
        for index in 0..self.columns.len() {
            let Column {
                contents,
                components,
                ..
            } = self.columns[index];
            match contents {
                Contents::Position => self.positions.push(words.point(components)?)?,
                Contents::Species => self.add_species(words.next("a symbol")?, line)?,
                Contents::Real => words.extend(&mut self.reals[index], components)?,
                Contents::Integer => words.extend(&mut self.integers[index], components)?,
                Contents::Ignored => words.skip(components)?,
            }
        }
        words.end(self.named)
    }

    fn add_species(&mut self, name: &[u8], line: usize) -> Parsed<()> {
        // Names that differ only in invalid bytes count as one name.
        let text = String::from_utf8_lossy(name);
        let known = self.indices.get(text.as_ref()).copied();
        let index = match known {
            Some(index) => index,
            None if Number::parse(name).is_some() && xyz_plain::whole(name).is_none() => {
                let message = format!("expected a species, found {}", quoted(name));
                return Err(Fault::malformed(Place::Line(line), message));
            }
            None => {
                let index = self.species.names.len() as u32;
                make_room_for_one(&mut self.species.names, SPECIES)?;
                let room = self.indices.try_reserve(1);
                room.map_err(|_| Shortage::of::<(String, u32)>(self.indices.len() + 1, SPECIES))?;
                self.species.names.push(text.to_string());
                self.indices.insert(text.into_owned(), index);
                index
            }
        };
        make_room_for_one(&mut self.species.of_point, SPECIES)?;
        self.species.of_point.push(index);
        Ok(())
    }

    fn finish(self, comment: &Comment) -> PointCloud {
        let flat = self.columns.iter().any(|column| column.is_flat_position());
        let dimensions = if flat {
            Dimensions::Two
        } else {
            Dimensions::Three
        };
        let has_species = self
            .columns
            .iter()
            .any(|column| column.contents == Contents::Species);
        let ignored = |column: &&Column| column.contents == Contents::Ignored;
        let unread = self.columns.iter().filter(ignored);
        let unread = unread.map(|column| column.name.clone()).collect();
        let values = self.reals.into_iter().zip(self.integers);
        let data = self
            .columns
            .iter()
            .zip(values)
            .filter_map(|(column, (reals, integers))| {
                let (name, components) = (column.name.clone(), column.components);
                match column.contents {
                    Contents::Real => PointData::tuples(name, components, reals),
                    Contents::Integer => PointData::tuples(name, components, integers),
                    _ => None,
                }
            });
        PointCloud {
            simulation_box: comment.simulation_box(),
            time: comment.time,
            data: data.collect(),
            species: has_species.then_some(self.species),
            periodic_without_box: comment.periodic.filter(|_| comment.vectors.is_none()),
            unread,
            notes: self.notes,
            ..PointCloud::new(self.positions, dimensions)
        }
    }
}

impl Comment {
    fn simulation_box(&self) -> Option<SimulationBox> {
        let vectors = self.vectors?;
        Some(SimulationBox {
            vectors,
            periodic: self.periodic.unwrap_or([true; 3]),
        })
    }
}

/// The words of a line, counted.
struct Words<'a> {
    rest: &'a [u8],
    line: usize,
    column: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Parsed<&'a [u8]> {
        let text = self.rest.trim_ascii_start();
        if text.is_empty() {
            let message = format!("the line ends after {} columns, before {what}", self.column);
            return Err(Fault::malformed(Place::Line(self.line), message));
        }
        let end = text
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(text.len());
        self.rest = &text[end..];
        self.column += 1;
        Ok(&text[..end])
    }

    fn point(&mut self, components: usize) -> Parsed<[Number; 3]> {
        let mut point = [Number::ZERO; 3];
        for coordinate in point.iter_mut().take(components) {
            let word = self.next("a coordinate")?;
            *coordinate = Number::parse(word).ok_or_else(|| self.not_a_number(word))?;
        }
        Ok(point)
    }

    fn extend<T: std::str::FromStr>(&mut self, values: &mut Vec<T>, count: usize) -> Parsed<()> {
        for _ in 0..count {
            let word = self.next("a value")?;
            make_room_for_one(values, "quantities of a file")?;
            values.push(parse(word).ok_or_else(|| self.not_a_number(word))?);
        }
        Ok(())
    }

    fn skip(&mut self, count: usize) -> Parsed<()> {
        (0..count).try_for_each(|_| self.next("a value").map(drop))
    }

    /// Refuses words behind those that are `named`.
    fn end(&mut self, named: bool) -> Parsed<()> {
        let rest = self.rest.trim_ascii();
        if !named || rest.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} follows the {} columns that Properties name",
            quoted(rest),
            self.column
        );
        Err(Fault::malformed(Place::Line(self.line), message))
    }

    fn not_a_number(&self, word: &[u8]) -> Fault {
        let place = Place::Column {
            line: self.line,
            column: self.column,
        };
        Fault::malformed(place, format!("{} is not a number", quoted(word)))
    }
}
