//! XYZ files: a count, a comment, and one line per point; and their extended form, whose comment
//! holds `key=value` pairs (`Lattice`, `pbc`, `Properties`, `Time`) as ASE and OVITO write it.
//!
//! Frames follow each other. All are counted, and one is read. Without `Properties` the rows say
//! what a row is (`xyz_plain`). **Invariant others rely on:** the frame holds exactly the announced
//! number of points, and behind a frame there is another one or nothing.

use nearfield_grid::memory::make_room_for_one;

use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox},
    cursor::parse,
    error::{Fault, Parsed, Place, quoted},
    number::Number,
    point_data::PointData,
};

use super::{
    frames::{FrameFormat, Passed},
    lines::{Line, Lines},
    names::Names,
    xyz_comment::{Column, Comment, Contents},
    xyz_plain,
};

/// Frames one behind the other.
pub(super) const FRAMES: FrameFormat = FrameFormat { pass, read };

/// Reads the frame at the lines, which may begin with blank ones behind another frame.
fn read(lines: &mut Lines<'_>) -> Parsed<PointCloud> {
    let head = loop {
        let head = lines.expect("the number of points")?;
        if head.number == 1 || !head.text.trim_ascii().is_empty() {
            break head;
        }
    };
    let count = count(head, lines)?;
    let comment = lines.expect("the comment line")?;
    // A point takes at least the four bytes of "0 0" and a line end.
    lines.check_room(count, 4, "points")?;
    let (text, behind) = (comment.text, *lines);
    let comment = Comment::parse(text, comment.number)?;
    let mut rows = Rows::new(&comment, count, *lines)?;
    for point in 0..count {
        if lines.cursor().peek_word().is_none() {
            let message = format!("the file ends after {point} of {count} points");
            let hint = no_comment(text, behind, count - point);
            return Err(Fault::truncated(lines.place(), message + hint));
        }
        let row = lines.expect("a point")?;
        rows.add(row.text, row.number)?;
    }
    Ok(rows.finish(&comment))
}

/// Passes over a frame.
fn pass(lines: &mut Lines<'_>, before: usize) -> Parsed<Passed> {
    let head = loop {
        if lines.peek().is_none() {
            return Ok(Passed::Nothing);
        }
        let head = lines.expect("a frame")?;
        if before == 0 || !head.text.trim_ascii().is_empty() {
            break head;
        }
    };
    let rows = count(head, lines).map_err(|fault| match before {
        0 => fault,
        before => trailing_line(head.text, head.number, before),
    })?;
    let rows = rows.saturating_add(1);
    Ok(if lines.skip(rows) < rows {
        Passed::CutOff
    } else {
        Passed::Frame
    })
}

/// The number of points that a line announces.
fn count(line: Line<'_>, behind: &Lines<'_>) -> Parsed<usize> {
    let text = line.text.trim_ascii();
    parse(text).ok_or_else(|| {
        let rows = is_row(text) || behind.peek().is_some_and(is_row) && line.number == 1;
        let hint = if rows {
            ": these are rows without a count, as point clouds have them: call the file .txt"
        } else {
            ""
        };
        let message = format!("{} is not a number of points{hint}", quoted(text));
        Fault::malformed(line.place(), message)
    })
}

/// Refuses a line after a frame that does not begin another frame.
fn trailing_line(line: &[u8], number: usize, frames: usize) -> Fault {
    let message = format!(
        "{} follows frame {frames} and is not the number of points of another: a frame has as \
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
fn no_comment(comment: &[u8], behind: Lines<'_>, missing: usize) -> &'static str {
    let words = |line: &[u8]| {
        let words = line.split(u8::is_ascii_whitespace);
        words
            .filter(|word| !word.is_empty())
            .take(MAX_LOOKED_AT)
            .count()
    };
    let first = behind.peek().unwrap_or_default();
    if missing == 1 && is_row(comment) && (first.is_empty() || words(first) == words(comment)) {
        ". The second line looks like a row, as in a point cloud without a comment line: call the \
         file .pts, or put an empty line behind the number of points"
    } else {
        ""
    }
}

/// The points read so far.
struct Rows {
    columns: Vec<Column>,
    positions: Positions,
    species: Names,
    reals: Vec<Vec<f64>>,
    integers: Vec<Vec<i64>>,
    notes: Vec<String>,
    /// Whether the comment names the columns: then it names all of them.
    named: bool,
}

impl Rows {
    fn new(comment: &Comment, count: usize, lines: Lines<'_>) -> Parsed<Self> {
        let (columns, notes) = match &comment.columns {
            Some(columns) => (columns.clone(), Vec::new()),
            None => xyz_plain::columns(lines.cursor(), count, lines.number())?,
        };
        let quantities = columns.len();
        Ok(Self {
            columns,
            positions: Positions::with_capacity(count)?,
            species: Names::default(),
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
        if Number::parse(name).is_some() && xyz_plain::whole(name).is_none() {
            let message = format!("expected a species, found {}", quoted(name));
            return Err(Fault::malformed(Place::Line(line), message));
        }
        Ok(self.species.add(name)?)
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
            species: has_species.then_some(self.species.finish()),
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
