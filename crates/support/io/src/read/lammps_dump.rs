//! Trajectories of LAMMPS: `dump atom` and `dump custom` as text, with `ITEM:` lines.
//!
//! Positions are x y z, else xu yu zu, else the scaled xs ys zs or xsu ysu zsu times the box. Atoms
//! stay in the order of the file, which changes between frames unless LAMMPS was told to sort;
//! `id` is among the data. **Invariant others rely on:** a frame has as many rows as it announces,
//! and each row has the columns that `ITEM: ATOMS` names.

use super::{
    cell,
    csv::check_width,
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
use nearfield_grid::memory::{make_room_for_one, with_room};

/// Frames one behind the other.
pub(super) const FRAMES: FrameFormat = FrameFormat { pass, read };

/// What stands before the rows of a frame.
struct Head<'a> {
    atoms: usize,
    time: Option<f64>,
    cell: Option<Cell>,
    columns: Line<'a>,
}

#[derive(Clone, Copy)]
struct Cell {
    simulation_box: SimulationBox,
    corner: [f64; 3],
}

/// Reads up to the rows; `None` if no frame follows.
fn head<'a>(lines: &mut Lines<'a>) -> Parsed<Option<Head<'a>>> {
    let (mut atoms, mut time, mut cell) = (None, None, None);
    let mut begun = false;
    loop {
        let line = match lines.peek() {
            None if !begun => return Ok(None),
            _ => lines.expect("the line ITEM: ATOMS")?,
        };
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        begun = true;
        let item = line.text.strip_prefix(b"ITEM: ").ok_or_else(|| {
            let message = format!("expected a line ITEM: …, found {}", quoted(line.text));
            Fault::malformed(line.place(), message)
        })?;
        match item.trim_ascii() {
            b"TIMESTEP" | b"UNITS" => drop(lines.expect("the value of an item")?),
            b"TIME" => {
                let [value] = lines.expect("the time")?.numbers("the time")?;
                time = Some(value);
            }
            b"NUMBER OF ATOMS" => {
                let line = lines.expect("the number of atoms")?;
                atoms = Some(line.count("a number of atoms")?);
            }
            item if item.starts_with(b"BOX BOUNDS") => cell = Some(bounds(line, lines)?),
            item if item == b"ATOMS" || item.starts_with(b"ATOMS ") => {
                let atoms = atoms.ok_or_else(|| {
                    let message = "ITEM: ATOMS comes before ITEM: NUMBER OF ATOMS";
                    Fault::malformed(line.place(), message)
                })?;
                let columns = line;
                return Ok(Some(Head {
                    atoms,
                    time,
                    cell,
                    columns,
                }));
            }
            item => {
                let message = format!("{} is not an item of a dump of atoms", quoted(item));
                return Err(Fault::unsupported(line.place(), message));
            }
        }
    }
}

/// The box: two bounds for each axis, and a tilt behind them, or three vectors and the corner.
fn bounds(line: Line<'_>, lines: &mut Lines<'_>) -> Parsed<Cell> {
    let words = line.words().skip(3);
    let mut flags = [false; 3];
    // Without flags, as in old files, all axes are periodic.
    let mut count = 0;
    let (mut tilted, mut vectors) = (false, false);
    for word in words.take(8) {
        match word {
            b"xy" | b"xz" | b"yz" => tilted = true,
            b"abc" | b"origin" => vectors = true,
            flag if count < 3 => {
                flags[count] = flag == b"pp";
                count += 1;
            }
            _ => {}
        }
    }
    let periodic = if count == 0 { [true; 3] } else { flags };
    let mut row = || lines.expect("the bounds of the box");
    let rows = [row()?, row()?, row()?];
    let what = "the bounds of an axis";
    let (vectors, corner) = if vectors {
        let rows = [
            rows[0].numbers::<4>(what)?,
            rows[1].numbers::<4>(what)?,
            rows[2].numbers::<4>(what)?,
        ];
        (rows.map(|[x, y, z, _]| [x, y, z]), rows.map(|row| row[3]))
    } else {
        let mut tilts = [0.0; 3];
        let mut bounds = [[0.0; 2]; 3];
        for (axis, row) in rows.iter().enumerate() {
            if tilted {
                let [low, high, tilt] = row.numbers(what)?;
                (bounds[axis], tilts[axis]) = ([low, high], tilt);
            } else {
                bounds[axis] = row.numbers(what)?;
            }
        }
        // The bounds are those of the tilted box as a whole.
        let [xy, xz, yz] = tilts;
        let shifts = [[0.0, xy, xz, xy + xz], [0.0, yz, 0.0, 0.0], [0.0; 4]];
        let least = shifts.map(|all| all.into_iter().fold(0.0, f64::min));
        let most = shifts.map(|all| all.into_iter().fold(0.0, f64::max));
        let corner = std::array::from_fn(|axis| bounds[axis][0] - least[axis]);
        let lengths = std::array::from_fn(|axis| bounds[axis][1] - most[axis] - corner[axis]);
        (cell::tilted(lengths, tilts), corner)
    };
    let simulation_box = SimulationBox { vectors, periodic };
    Ok(Cell {
        simulation_box,
        corner,
    })
}

/// Passes over a frame.
fn pass(lines: &mut Lines<'_>, before: usize) -> Parsed<Passed> {
    match head(lines) {
        Ok(None) => Ok(Passed::Nothing),
        Ok(Some(head)) if lines.skip(head.atoms) < head.atoms => Ok(Passed::CutOff),
        Ok(Some(_)) => Ok(Passed::Frame),
        Err(fault) if before > 0 && fault.is_truncated() => Ok(Passed::CutOff),
        Err(fault) => Err(fault),
    }
}

/// Reads the frame at the lines.
fn read(lines: &mut Lines<'_>) -> Parsed<PointCloud> {
    let head = head(lines)?.ok_or_else(|| lines.ends_before("the line ITEM: TIMESTEP"))?;
    let names: Vec<&[u8]> = names(head.columns)?;
    lines.check_room(head.atoms, 2 * names.len().max(1), "atoms")?;
    let mut rows = Rows::new(&head, &names)?;
    for atom in 0..head.atoms {
        let line = lines.expect(&format!("atom {atom} of {}", head.atoms))?;
        rows.add(line)?;
    }
    Ok(rows.finish(&head))
}

fn names(line: Line<'_>) -> Parsed<Vec<&[u8]>> {
    let mut names = Vec::new();
    for name in line.words().skip(2).take(super::csv::MAX_COLUMNS + 1) {
        make_room_for_one(&mut names, "the columns of a dump")?;
        names.push(name);
    }
    check_width(&names, line.number)?;
    Ok(names)
}

/// What a column holds.
#[derive(Clone, Copy)]
enum Holds {
    Axis(usize),
    Element,
    Text,
    /// A value of the quantity with this place.
    Value(usize),
}

enum Numbers {
    Whole(Vec<i64>),
    Real(Vec<f64>),
}

struct Quantity {
    name: String,
    components: usize,
    numbers: Numbers,
}

/// The atoms read so far.
struct Rows {
    columns: Vec<Holds>,
    positions: Positions,
    /// The box and its corner, if positions are parts of it.
    scale: Option<Cell>,
    elements: Names,
    quantities: Vec<Quantity>,
    unread: Vec<String>,
}

/// Columns of three that make one quantity.
const VECTORS: [(&str, [&[u8]; 3]); 2] = [
    ("velocity", [b"vx", b"vy", b"vz"]),
    ("forces", [b"fx", b"fy", b"fz"]),
];
/// Columns of whole numbers.
const WHOLE: [&[u8]; 8] = [
    b"id", b"mol", b"type", b"proc", b"procp1", b"ix", b"iy", b"iz",
];

impl Rows {
    fn new(head: &Head<'_>, names: &[&[u8]]) -> Parsed<Self> {
        let place = |name: &str| names.iter().position(|one| *one == name.as_bytes());
        let kinds = [("", false), ("u", false), ("s", true), ("su", true)];
        let axes = kinds.iter().find_map(|(kind, scaled)| {
            let places = ["x", "y", "z"].map(|axis| place(&format!("{axis}{kind}")));
            let all = places.iter().all(Option::is_some);
            all.then(|| (places.map(Option::unwrap_or_default), *scaled))
        });
        let (axes, scaled) = axes.ok_or_else(|| {
            let message = "ITEM: ATOMS names no columns x y z, xu yu zu, xs ys zs or xsu ysu zsu";
            Fault::malformed(head.columns.place(), message)
        })?;
        let scale = match (scaled, head.cell) {
            (false, _) => None,
            (true, Some(cell)) => Some(cell),
            (true, None) => {
                let message = "the positions are parts of a box that no ITEM: BOX BOUNDS gives";
                return Err(Fault::malformed(head.columns.place(), message));
            }
        };
        let mut rows = Self {
            columns: Vec::new(),
            positions: Positions::with_capacity(head.atoms)?,
            scale,
            elements: Names::default(),
            quantities: Vec::new(),
            unread: Vec::new(),
        };
        while rows.columns.len() < names.len() {
            let at = rows.columns.len();
            let column = match names[at] {
                _ if axes.contains(&at) => {
                    Holds::Axis(axes.iter().position(|&axis| axis == at).unwrap_or_default())
                }
                b"element" => Holds::Element,
                name @ b"typelabel" => {
                    rows.unread.push(String::from_utf8_lossy(name).into_owned());
                    Holds::Text
                }
                _ => rows.quantity(&names[at..], head.atoms)?,
            };
            make_room_for_one(&mut rows.columns, "the columns of a dump")?;
            rows.columns.push(column);
            if let Holds::Value(place) = column {
                for _ in 1..rows.quantities[place].components {
                    make_room_for_one(&mut rows.columns, "the columns of a dump")?;
                    rows.columns.push(column);
                }
            }
        }
        Ok(rows)
    }

    /// Adds the quantity that begins with the first of these columns.
    fn quantity(&mut self, names: &[&[u8]], atoms: usize) -> Parsed<Holds> {
        let what = "quantities of a file";
        let vector = VECTORS
            .iter()
            .find(|(_, columns)| names.starts_with(columns));
        let (name, components) = match vector {
            Some((name, _)) => ((*name).to_owned(), 3),
            None => (String::from_utf8_lossy(names[0]).into_owned(), 1),
        };
        let numbers = if WHOLE.contains(&names[0]) {
            Numbers::Whole(with_room(atoms, what)?)
        } else {
            Numbers::Real(with_room(atoms.saturating_mul(components), what)?)
        };
        make_room_for_one(&mut self.quantities, what)?;
        self.quantities.push(Quantity {
            name,
            components,
            numbers,
        });
        Ok(Holds::Value(self.quantities.len() - 1))
    }

    fn add(&mut self, line: Line<'_>) -> Parsed<()> {
        let mut point = [Number::ZERO; 3];
        let mut words = line.words().zip(1..);
        for place in 0..self.columns.len() {
            let Some((word, column)) = words.next() else {
                let expected = self.columns.len();
                let message = format!("{place} columns where ITEM: ATOMS names {expected}");
                return Err(Fault::malformed(line.place(), message));
            };
            match self.columns[place] {
                Holds::Axis(axis) => point[axis] = line.number_at(word, column)?,
                Holds::Element => self.elements.add(word)?,
                Holds::Text => {}
                Holds::Value(quantity) => match &mut self.quantities[quantity].numbers {
                    Numbers::Whole(numbers) => numbers.push(parse(word).ok_or_else(|| {
                        let message = format!("{} is not a whole number", quoted(word));
                        Fault::malformed(line.place(), message)
                    })?),
                    Numbers::Real(numbers) => numbers.push(line.number_at(word, column)?.double),
                },
            }
        }
        if let Some((word, _)) = words.next() {
            let message = format!(
                "{} follows the {} columns that ITEM: ATOMS names",
                quoted(word),
                self.columns.len()
            );
            return Err(Fault::malformed(line.place(), message));
        }
        if let Some(Cell {
            simulation_box,
            corner,
        }) = self.scale
        {
            let inside = cell::at(simulation_box.vectors, point.map(|axis| axis.double));
            point = std::array::from_fn(|axis| Number::from(inside[axis] + corner[axis]));
        }
        Ok(self.positions.push(point)?)
    }

    fn finish(self, head: &Head<'_>) -> PointCloud {
        let has_elements = self.columns.iter().any(|one| matches!(one, Holds::Element));
        let data = self.quantities.into_iter().filter_map(|quantity| {
            let (name, components) = (quantity.name, quantity.components);
            match quantity.numbers {
                Numbers::Whole(numbers) => PointData::tuples(name, components, numbers),
                Numbers::Real(numbers) => PointData::tuples(name, components, numbers),
            }
        });
        PointCloud {
            data: data.collect(),
            species: has_elements.then(|| self.elements.finish()),
            simulation_box: head.cell.map(|cell| cell.simulation_box),
            time: head.time,
            unread: self.unread,
            ..PointCloud::new(self.positions, Dimensions::Three)
        }
    }
}
