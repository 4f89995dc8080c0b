//! Files of the Protein Data Bank (format 3.3): `ATOM` and `HETATM` records, and the cell of
//! `CRYST1`; lengths in ångström.
//!
//! A frame ends with `ENDMDL` or `END`. A `CRYST1` before the first atom holds for all frames
//! without one of their own. Every record is read, alternative positions too; symmetry is not
//! applied, and a note says so. **Invariant others rely on:** every such record is a point or is
//! refused.

use super::{
    cell,
    frames::{FrameFormat, Passed},
    lines::{Line, Lines},
    names::Names,
};
use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox},
    error::{Fault, Parsed, quoted},
    number::Number,
};

/// Frames one behind the other.
pub(super) const FRAMES: FrameFormat = FrameFormat { pass, read };

fn is_atom(line: &[u8]) -> bool {
    line.starts_with(b"ATOM  ") || line.starts_with(b"HETATM")
}

fn is_end(line: &[u8]) -> bool {
    line.starts_with(b"ENDMDL") || line.trim_ascii_end() == b"END"
}

/// The bytes of columns that are counted from 1, as the standard counts them; less at the end of
/// a line.
fn columns(line: &[u8], first: usize, last: usize) -> &[u8] {
    let last = last.min(line.len());
    line.get(first - 1..last).unwrap_or_default().trim_ascii()
}

/// Passes over a frame. The file's last line ends a frame too.
fn pass(lines: &mut Lines<'_>, before: usize) -> Parsed<Passed> {
    let mut atoms = false;
    while let Some(line) = lines.next() {
        atoms |= is_atom(line);
        if atoms && is_end(line) {
            return Ok(Passed::Frame);
        }
    }
    Ok(if atoms || before == 0 {
        Passed::Frame
    } else {
        Passed::Nothing
    })
}

/// Reads the frame at the lines.
fn read(lines: &mut Lines<'_>) -> Parsed<PointCloud> {
    let mut positions = Positions::default();
    let mut names = Names::default();
    let mut unit = None;
    let (mut nameless, mut alternatives) = (0_usize, 0_usize);
    while lines.peek().is_some() {
        let line = lines.expect("an atom")?;
        if is_atom(line.text) {
            positions.push(position(line)?)?;
            let element = columns(line.text, 77, 78);
            nameless += usize::from(element.is_empty());
            alternatives += usize::from(!matches!(columns(line.text, 17, 17), b"" | b"A"));
            names.add(if element.is_empty() {
                columns(line.text, 13, 16)
            } else {
                element
            })?;
        } else if line.text.starts_with(b"CRYST1") {
            unit = Some(line);
        } else if !names.is_empty() && is_end(line.text) {
            break;
        }
    }
    if names.is_empty() {
        let message = "the file has no ATOM or HETATM record";
        return Err(Fault::malformed(lines.place(), message));
    }
    let unit = unit.or_else(|| first_unit(lines));
    let mut notes = Vec::new();
    if nameless > 0 {
        notes.push(format!(
            "{nameless} atoms have no element in columns 77 and 78: their species is their name"
        ));
    }
    if alternatives > 0 {
        notes.push(format!(
            "{alternatives} records are alternative positions of atoms: all are read"
        ));
    }
    let group = unit.map_or(&b""[..], |line| columns(line.text, 56, 66));
    if !matches!(group, b"" | b"1" | b"P 1" | b"P1") {
        notes.push(format!(
            "the space group {} is not applied: the cell repeats with the atoms of the file alone",
            quoted(group)
        ));
    }
    Ok(PointCloud {
        simulation_box: unit.map(simulation_box).transpose()?.flatten(),
        species: Some(names.finish()),
        notes,
        ..PointCloud::new(positions, Dimensions::Three)
    })
}

fn position(line: Line<'_>) -> Parsed<[Number; 3]> {
    let mut point = [Number::ZERO; 3];
    for (axis, number) in point.iter_mut().enumerate() {
        *number = fixed(line, 31 + 8 * axis, 38 + 8 * axis)?;
    }
    Ok(point)
}

fn fixed(line: Line<'_>, first: usize, last: usize) -> Parsed<Number> {
    let text = columns(line.text, first, last);
    Number::parse(text).ok_or_else(|| {
        let message = format!(
            "{} in columns {first} to {last} is not a number",
            quoted(text)
        );
        Fault::malformed(line.place(), message)
    })
}

/// The first `CRYST1` of the file, if it comes before the first atom.
fn first_unit<'a>(lines: &Lines<'a>) -> Option<Line<'a>> {
    let mut lines = lines.rewound();
    loop {
        let line = lines.expect("a cell").ok()?;
        if is_atom(line.text) {
            return None;
        }
        if line.text.starts_with(b"CRYST1") {
            return Some(line);
        }
    }
}

/// The cell; none for the unit cube and for zeros, which files without a cell have.
fn simulation_box(line: Line<'_>) -> Parsed<Option<SimulationBox>> {
    let number = |first, last| fixed(line, first, last).map(|number| number.double);
    let lengths = [number(7, 15)?, number(16, 24)?, number(25, 33)?];
    let angles = [number(34, 40)?, number(41, 47)?, number(48, 54)?];
    if (lengths == [1.0; 3] && angles == [90.0; 3]) || lengths == [0.0; 3] {
        return Ok(None);
    }
    let vectors = cell::of_angles(lengths, angles).ok_or_else(|| {
        let message =
            format!("there is no cell with the lengths {lengths:?} and the angles {angles:?}");
        Fault::malformed(line.place(), message)
    })?;
    Ok(Some(cell::periodic(vectors)))
}
