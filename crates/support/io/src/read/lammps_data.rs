//! Data files of LAMMPS (`read_data`): the header's counts and box, and the section `Atoms`.
//!
//! The style behind `Atoms #` says where the positions are. Without it they are the last three
//! columns, before three whole numbers that count images, if those are there: that holds for the
//! styles atomic, bond, angle, molecular, charge, full and sphere. Other sections are not read.
//! **Invariant others rely on:** there are as many atoms as the header says.

use super::{
    cell,
    lines::{Line, Lines},
    open::check_text,
};
use crate::{
    cloud::{Dimensions, PointCloud, Positions, SimulationBox},
    cursor::parse,
    error::{Fault, Parsed, Place, quoted},
    number::Number,
    point_data::PointData,
};
use nearfield_grid::memory::with_room;

/// Reads the atoms.
pub(crate) fn read(bytes: &[u8]) -> Parsed<PointCloud> {
    check_text(bytes)?;
    let mut lines = Lines::new(bytes);
    // The first line is a comment, whatever it says.
    lines.next();
    let (header, mut section) = Header::read(&mut lines)?;
    let count = header.atoms.ok_or_else(|| {
        let message = "no line 'N atoms' comes before the first section: this is not LAMMPS data";
        Fault::malformed(Place::Whole, message)
    })?;
    let mut unread = Vec::new();
    let mut found = None;
    while let Some(line) = section {
        let (text, comment) = split(line.text);
        if text == b"Atoms" {
            if found.is_some() {
                let message = "a second section Atoms";
                return Err(Fault::malformed(line.place(), message));
            }
            found = Some(Atoms::read(&mut lines, count, comment)?);
        } else if text == b"Velocities" {
            unread.push("Velocities".to_owned());
        }
        section = next_section(&mut lines);
    }
    let atoms = found.ok_or_else(|| lines.ends_before("the section Atoms"))?;
    let mut notes = atoms.notes;
    notes.push(
        "data files do not say which axes are periodic: all are, unless --periodic names others"
            .to_owned(),
    );
    let mut data = vec![PointData::scalars("id", atoms.ids)];
    data.extend(atoms.kinds.map(|kinds| PointData::scalars("type", kinds)));
    Ok(PointCloud {
        simulation_box: Some(header.simulation_box()),
        data,
        unread,
        notes,
        ..PointCloud::new(atoms.positions, Dimensions::Three)
    })
}

/// A line without its comment, and the comment.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|&byte| byte == b'#');
    let (text, comment) = line.split_at(end.unwrap_or(line.len()));
    let comment = comment.strip_prefix(b"#").unwrap_or_default();
    (text.trim_ascii(), comment.trim_ascii())
}

/// The next line that begins with a letter, as only names of sections do.
fn next_section<'a>(lines: &mut Lines<'a>) -> Option<Line<'a>> {
    loop {
        let line = lines.expect("a section").ok()?;
        if line.text.first().is_some_and(u8::is_ascii_uppercase) {
            return Some(line);
        }
    }
}

#[derive(Default)]
struct Header {
    atoms: Option<usize>,
    bounds: [Option<[f64; 2]>; 3],
    tilts: [f64; 3],
    vectors: [Option<[f64; 3]>; 3],
}

impl Header {
    /// The header, and the first section's line.
    fn read<'a>(lines: &mut Lines<'a>) -> Parsed<(Self, Option<Line<'a>>)> {
        let mut header = Self::default();
        loop {
            let Ok(line) = lines.expect("a section") else {
                return Ok((header, None));
            };
            let (text, _) = split(line.text);
            if text.first().is_some_and(u8::is_ascii_uppercase) {
                return Ok((header, Some(line)));
            }
            header.take(Line { text, ..line })?;
        }
    }

    fn take(&mut self, line: Line<'_>) -> Parsed<()> {
        let ends = |end: &str| line.text.ends_with(end.as_bytes());
        for (axis, name) in ["xlo xhi", "ylo yhi", "zlo zhi"].iter().enumerate() {
            if ends(name) {
                self.bounds[axis] = Some(line.numbers("the bounds of an axis")?);
            }
        }
        for (axis, name) in ["avec", "bvec", "cvec"].iter().enumerate() {
            if ends(name) {
                self.vectors[axis] = Some(line.numbers("a vector of the box")?);
            }
        }
        if ends("xy xz yz") {
            self.tilts = line.numbers("the tilts of the box")?;
        }
        let mut words = line.words();
        if let (Some(count), Some(b"atoms"), None) = (words.next(), words.next(), words.next()) {
            let message = format!("{} is not a number of atoms", quoted(count));
            let count = parse(count).ok_or_else(|| Fault::malformed(line.place(), message))?;
            self.atoms = Some(count);
        }
        Ok(())
    }

    fn simulation_box(&self) -> SimulationBox {
        // What the header leaves out is from -0.5 to 0.5.
        let lengths = self
            .bounds
            .map(|bounds| bounds.map_or(1.0, |[low, high]| high - low));
        let tilted = cell::tilted(lengths, self.tilts);
        let vectors = std::array::from_fn(|axis| self.vectors[axis].unwrap_or(tilted[axis]));
        cell::periodic(vectors)
    }
}

/// The styles that are known: name, columns without image flags, and the column of x.
const STYLES: [(&str, usize, usize); 11] = [
    ("atomic", 5, 2),
    ("bond", 6, 3),
    ("angle", 6, 3),
    ("molecular", 6, 3),
    ("charge", 6, 3),
    ("full", 7, 4),
    ("sphere", 7, 4),
    ("dipole", 9, 3),
    ("ellipsoid", 7, 4),
    ("body", 7, 4),
    ("dpd", 6, 3),
];
/// Styles with the molecule before the type.
const WITH_MOLECULE: [&str; 4] = ["bond", "angle", "molecular", "full"];

struct Atoms {
    positions: Positions,
    ids: Vec<i64>,
    /// The types, if it is known which column they are.
    kinds: Option<Vec<i64>>,
    notes: Vec<String>,
}

/// Where an atom's numbers are.
struct Layout {
    /// Columns before those that count images.
    columns: usize,
    /// The column of x; y and z follow.
    x: usize,
    /// The column of the type, if that is known.
    kind: Option<usize>,
}

impl Atoms {
    fn read(lines: &mut Lines<'_>, count: usize, comment: &[u8]) -> Parsed<Self> {
        // The least row is "1 1 0 0 0" and a line end.
        lines.check_room(count, 10, "atoms")?;
        while lines
            .peek()
            .is_some_and(|line| line.trim_ascii().is_empty())
        {
            lines.next();
        }
        let style = comment.split(u8::is_ascii_whitespace).next();
        let (layout, notes) = match style.filter(|style| !style.is_empty()) {
            Some(style) => (styled(style, lines)?, Vec::new()),
            None => guessed(*lines, count)?,
        };
        let mut atoms = Self {
            positions: Positions::with_capacity(count)?,
            ids: with_room(count, "quantities of a file")?,
            kinds: match layout.kind {
                Some(_) => Some(with_room(count, "quantities of a file")?),
                None => None,
            },
            notes,
        };
        for atom in 0..count {
            let line = lines.expect(&format!("atom {atom} of {count}"))?;
            atoms.add(line, &layout, atom, count)?;
        }
        Ok(atoms)
    }

    fn add(&mut self, line: Line<'_>, layout: &Layout, atom: usize, count: usize) -> Parsed<()> {
        let line = Line {
            text: split(line.text).0,
            ..line
        };
        if line.text.is_empty() {
            let message = format!("the section Atoms ends after {atom} of {count} atoms");
            return Err(Fault::malformed(line.place(), message));
        }
        let whole = |word: &[u8]| {
            let message = format!("{} is not a whole number", quoted(word));
            parse(word).ok_or_else(|| Fault::malformed(line.place(), message))
        };
        let mut point = [Number::ZERO; 3];
        let mut found = 0;
        for (place, word) in line.words().enumerate() {
            found += 1;
            if place == 0 {
                self.ids.push(whole(word)?);
            } else if let Some(kinds) = self.kinds.as_mut().filter(|_| layout.kind == Some(place)) {
                kinds.push(whole(word)?);
            } else if (layout.x..layout.x + 3).contains(&place) {
                point[place - layout.x] = line.number_at(word, place + 1)?;
            }
        }
        if found != layout.columns && found != layout.columns + 3 {
            let message = format!(
                "{found} columns where {}, or {} with image flags, are expected",
                layout.columns,
                layout.columns + 3
            );
            return Err(Fault::malformed(line.place(), message));
        }
        Ok(self.positions.push(point)?)
    }
}

fn styled(style: &[u8], lines: &Lines<'_>) -> Parsed<Layout> {
    let known = STYLES.iter().find(|(name, ..)| name.as_bytes() == style);
    let Some(&(name, columns, x)) = known else {
        let names: Vec<&str> = STYLES.iter().map(|(name, ..)| *name).collect();
        let message = format!(
            "the atom style {} is not read; {} are",
            quoted(style),
            names.join(", ")
        );
        return Err(Fault::unsupported(lines.place(), message));
    };
    let kind = Some(if WITH_MOLECULE.contains(&name) { 2 } else { 1 });
    Ok(Layout { columns, x, kind })
}

/// The layout of a section without a style, from its first rows.
fn guessed(mut lines: Lines<'_>, count: usize) -> Parsed<(Layout, Vec<String>)> {
    const LOOKED_AT: usize = 1000;
    let place = lines.place();
    let mut columns = None;
    let mut flags = true;
    for _ in 0..count.min(LOOKED_AT) {
        let Ok(line) = lines.expect("an atom") else {
            break;
        };
        let line = Line {
            text: split(line.text).0,
            ..line
        };
        let words = line.words().count();
        columns.get_or_insert(words);
        let mut last = line.words().skip(words.saturating_sub(3));
        flags &= words >= 8 && last.all(|word| parse::<i32>(word).is_some());
    }
    let columns = columns.unwrap_or(5);
    let columns = if flags { columns - 3 } else { columns };
    if !(5..=7).contains(&columns) {
        let message = format!(
            "the rows of Atoms have {columns} columns and no style says which are x, y and z: \
             write 'Atoms # full', or the style that it is"
        );
        return Err(Fault::malformed(place, message));
    }
    let note = format!(
        "Atoms has no style: x, y and z are taken from columns {} to {columns}",
        columns - 2
    );
    // Of six and seven columns the second or the third is the type.
    let (x, kind) = (columns - 3, (columns == 5).then_some(1));
    Ok((Layout { columns, x, kind }, vec![note]))
}
