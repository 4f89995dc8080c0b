//! XYZ files: a count, a comment, and one line per point; and their extended form, whose comment
//! holds `key=value` pairs (`Lattice`, `pbc`, `Properties`, `Time`) as ASE and OVITO write it.
//!
//! Only the first frame is read; what follows it is ignored. Without `Properties` a line is
//! `symbol x y z`, or just `x y z`, and further columns are ignored. **Invariant others rely on:**
//! the frame holds exactly the announced number of points.

use nearfield_grid::memory::{Shortage, make_room_for_one};
use std::collections::HashMap;

use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox, Species},
    cursor::{Cursor, parse},
    error::{Fault, Parsed, Place, quoted},
    number::Number,
    point_data::PointData,
};

use super::open::check_text;
use super::xyz_comment::{Column, Comment, Contents};

const SPECIES: &str = "the kinds of points of a file";

/// Reads the first frame.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut cursor = Cursor::new(bytes);
    let count = count(&mut cursor)?;
    let comment = cursor
        .next_line()
        .ok_or_else(|| Fault::truncated(Place::Line(2), "the file ends before the comment line"))?;
    check_room(count, &cursor)?;
    let comment = Comment::parse(comment)?;
    let mut frame = Frame::new(&comment, count, cursor)?;
    for point in 0..count {
        let line = point + 3;
        let text = cursor.next_line().ok_or_else(|| {
            let message = format!("the file ends after {point} of {count} points");
            Fault::truncated(Place::Line(line), message)
        })?;
        frame.add(text, line)?;
    }
    Ok(frame.finish(&comment))
}

fn count(cursor: &mut Cursor<'_>) -> Parsed<usize> {
    let line = cursor.next_line().unwrap_or_default().trim_ascii();
    parse(line).ok_or_else(|| {
        let message = format!("{} is not a number of points", quoted(line));
        Fault::malformed(Place::Line(1), message)
    })
}

/// Refuses a count that the rest of the file cannot hold, before memory is taken.
fn check_room(count: usize, cursor: &Cursor<'_>) -> Parsed<()> {
    // A point takes at least the four bytes of "0 0" and a line end.
    if count > cursor.remaining().div_ceil(4) {
        let message = format!(
            "{count} points are announced, but only {} bytes follow",
            cursor.remaining()
        );
        return Err(Fault::truncated(Place::Line(1), message));
    }
    Ok(())
}

/// The points read so far.
struct Frame {
    columns: Vec<Column>,
    positions: Positions,
    species: Species,
    indices: HashMap<String, u32>,
    reals: Vec<Vec<f64>>,
    integers: Vec<Vec<i64>>,
}

impl Frame {
    /// `cursor` stands at the first point, which decides about symbols when nothing else does.
    fn new(comment: &Comment, count: usize, mut cursor: Cursor<'_>) -> Parsed<Self> {
        let columns = match &comment.columns {
            Some(columns) => columns.clone(),
            None => Column::unnamed(cursor.next_line().unwrap_or_default()),
        };
        let quantities = columns.len();
        Ok(Self {
            columns,
            positions: Positions::with_capacity(count)?,
            species: Species::default(),
            indices: HashMap::new(),
            reals: vec![Vec::new(); quantities],
            integers: vec![Vec::new(); quantities],
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
                Contents::Species => self.add_species(words.next("a symbol")?)?,
                Contents::Real => words.extend(&mut self.reals[index], components)?,
                Contents::Integer => words.extend(&mut self.integers[index], components)?,
                Contents::Ignored => words.skip(components)?,
            }
        }
        Ok(())
    }

    fn add_species(&mut self, name: &[u8]) -> Result<(), Shortage> {
        // Names that differ only in bytes that are no text are one name.
        let name = String::from_utf8_lossy(name);
        let index = self.indices.get(name.as_ref()).copied();
        let index = match index {
            Some(index) => index,
            None => {
                let index = self.species.names.len() as u32;
                make_room_for_one(&mut self.species.names, SPECIES)?;
                let room = self.indices.try_reserve(1);
                room.map_err(|_| Shortage::of::<(String, u32)>(self.indices.len() + 1, SPECIES))?;
                self.species.names.push(name.to_string());
                self.indices.insert(name.into_owned(), index);
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

    fn not_a_number(&self, word: &[u8]) -> Fault {
        let place = Place::Column {
            line: self.line,
            column: self.column,
        };
        Fault::malformed(place, format!("{} is not a number", quoted(word)))
    }
}
