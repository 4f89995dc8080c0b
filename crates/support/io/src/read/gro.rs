//! Coordinates of GROMACS (`.gro`): a title, a count, one line of fixed columns per atom, and the
//! box; lengths in nm.
//!
//! The distance between decimal points is the width of a number, as GROMACS reads it. Names of
//! atoms are the species. **Invariant others rely on:** a frame has as many rows as it announces,
//! and velocities in all of them or in none.

use super::{
    cell,
    frames::{FrameFormat, Passed},
    lines::{Line, Lines},
    names::Names,
};
use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox},
    cursor::parse,
    error::{Fault, Parsed, quoted},
    number::Number,
    point_data::PointData,
};
use nearfield_grid::memory::with_room;

/// Frames one behind the other.
pub(super) const FRAMES: FrameFormat = FrameFormat { pass, read };

/// Bytes of a row before the position: numbers and names of the residue and the atom.
const NAMES: usize = 20;

/// The title and the count; `None` if only blanks follow.
fn head<'a>(lines: &mut Lines<'a>) -> Parsed<Option<(Line<'a>, usize)>> {
    if lines.cursor().peek_word().is_none() {
        return Ok(None);
    }
    let title = lines.expect("the title")?;
    let count = lines
        .expect("the number of atoms")?
        .count("a number of atoms")?;
    Ok(Some((title, count)))
}

/// Passes over a frame.
fn pass(lines: &mut Lines<'_>, before: usize) -> Parsed<Passed> {
    match head(lines) {
        Ok(None) => Ok(Passed::Nothing),
        Ok(Some((_, count))) => {
            let rows = count.saturating_add(1);
            Ok(if lines.skip(rows) < rows {
                Passed::CutOff
            } else {
                Passed::Frame
            })
        }
        Err(fault) if before > 0 && fault.is_truncated() => Ok(Passed::CutOff),
        Err(fault) => Err(fault),
    }
}

/// Reads the frame at the lines.
fn read(lines: &mut Lines<'_>) -> Parsed<PointCloud> {
    let (title, count) = head(lines)?.ok_or_else(|| lines.ends_before("the title"))?;
    // The narrowest row has three numbers such as "0.000" behind the names.
    lines.check_room(count, NAMES + 3 * 5, "atoms")?;
    let mut columns: Option<Columns> = None;
    let mut positions = Positions::with_capacity(count)?;
    let mut velocities: Vec<f64> = Vec::new();
    let mut names = Names::default();
    for atom in 0..count {
        let line = lines.expect(&format!("atom {atom} of {count}"))?;
        let columns = match &columns {
            Some(columns) => columns,
            None => {
                let found = Columns::of(line)?;
                if found.velocities {
                    velocities = with_room(3 * count, "quantities of a file")?;
                }
                &*columns.insert(found)
            }
        };
        names.add(line.text.get(10..15).unwrap_or_default().trim_ascii())?;
        let mut point = [Number::ZERO; 3];
        for (axis, number) in point.iter_mut().enumerate() {
            *number = columns.number(line, axis)?;
        }
        positions.push(point)?;
        for place in 3..3 + 3 * usize::from(columns.velocities) {
            velocities.push(columns.number(line, place)?.double);
        }
    }
    let simulation_box = bounds(lines.expect("the line of the box")?)?;
    let velocity = PointData::tuples("velocity", 3, velocities);
    Ok(PointCloud {
        simulation_box,
        time: time(title.text),
        species: Some(names.finish()),
        data: velocity
            .filter(|data| data.points() > 0)
            .into_iter()
            .collect(),
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

/// Where the numbers of a row are.
struct Columns {
    width: usize,
    velocities: bool,
}

impl Columns {
    /// The columns of the first row, from its decimal points.
    fn of(line: Line<'_>) -> Parsed<Self> {
        let numbers = line.text.get(NAMES..).unwrap_or_default();
        let mut points = (0..numbers.len()).filter(|&at| numbers[at] == b'.');
        let (Some(first), Some(second)) = (points.next(), points.next()) else {
            let message = "the row has no two decimal points behind its first 20 columns";
            return Err(Fault::malformed(line.place(), message));
        };
        let width = second - first;
        let behind = numbers.get(3 * width..).unwrap_or_default();
        let velocities = !behind.trim_ascii().is_empty();
        Ok(Self { width, velocities })
    }

    /// The number with this place behind the names.
    fn number(&self, line: Line<'_>, place: usize) -> Parsed<Number> {
        let begin = NAMES + place * self.width;
        let end = (begin + self.width).min(line.text.len());
        let text = line.text.get(begin..end).unwrap_or_default().trim_ascii();
        Number::parse(text).ok_or_else(|| {
            let last = begin + self.width;
            let message = format!(
                "{} in columns {} to {last} is not a number",
                quoted(text),
                begin + 1
            );
            Fault::malformed(line.place(), message)
        })
    }
}

/// The box: the lengths, perhaps followed by the components v1(y) v1(z) v2(x) v2(z) v3(x) v3(y).
/// Zeros are no box.
fn bounds(line: Line<'_>) -> Parsed<Option<SimulationBox>> {
    let [xx, yy, zz] = line.numbers("the lengths of the box")?;
    let mut vectors = cell::tilted([xx, yy, zz], [0.0; 3]);
    match line.words().count() {
        3 => {}
        9 => {
            let [_, _, _, xy, xz, yx, yz, zx, zy] = line.numbers::<9>("the box")?;
            vectors = [[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]];
        }
        count => {
            let message = format!("the box has {count} numbers where 3 or 9 are expected");
            return Err(Fault::malformed(line.place(), message));
        }
    }
    let is_box = vectors.as_flattened().iter().any(|&value| value != 0.0);
    Ok(is_box.then(|| cell::periodic(vectors)))
}

/// The time that a title ends with, as in `water t=   1.00000 step= 500`.
fn time(title: &[u8]) -> Option<f64> {
    let at = title.windows(2).rposition(|pair| pair == b"t=")?;
    let mut words = title[at + 2..].split(u8::is_ascii_whitespace);
    parse(words.find(|word| !word.is_empty())?)
}
