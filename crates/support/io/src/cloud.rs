//! The contents of a particle file after reading.
//!
//! **Invariant others rely on:** positions, their double-precision copy, the species and every
//! quantity of a [`PointCloud`] have the same number of points.

use nearfield_grid::memory::{Shortage, make_room, make_room_for_one, with_room};
use std::str::FromStr;

use crate::{
    number::{Number, Numbers},
    point_data::PointData,
};

/// The points of a file, with their quantities and the box.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointCloud {
    /// Coordinates, in the file's units: the file's values rounded once to `f32`.
    ///
    /// Two-dimensional points have z = 0. NaN and infinite values are passed on as they are, and
    /// values beyond the range of `f32` become infinite.
    pub positions: Vec<[f32; 3]>,
    /// The coordinates in double precision, present only when the file holds at least one that
    /// `f32` cannot represent.
    pub positions_f64: Option<Vec<[f64; 3]>>,
    /// Number of coordinates per point in the file.
    pub dimensions: Dimensions,
    /// The simulation box, if the format has one (extended XYZ).
    pub simulation_box: Option<SimulationBox>,
    /// The periodic axes of a file without a box (`pbc` without `Lattice`). A search of these
    /// points in an open domain misses pairs, so give a box or refuse them.
    pub periodic_without_box: Option<[bool; 3]>,
    /// The time of the frame, if the file states one (`TimeValue` in VTK, `Time` in extended
    /// XYZ).
    pub time: Option<f64>,
    /// Element symbols or other names of the points' kinds, if the file has them (XYZ).
    pub species: Option<Species>,
    /// Other quantities per point (read from VTK and extended XYZ only).
    pub data: Vec<PointData<'static>>,
    /// The number of this frame, and the number of frames in the file.
    pub frames: Frames,
    /// Names of the file's columns that are not among the data: all columns of CSV and PLY except
    /// coordinates, and columns of extended XYZ that hold text or flags.
    pub unread: Vec<String>,
    /// Notes for users: assumptions that the reader made because the file states nothing, and what
    /// it skipped.
    pub notes: Vec<String>,
}

/// Which frame of a file of several to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The frame with this number, counted from 1.
    Number(usize),
    /// The last complete one.
    Last,
}

impl Frame {
    /// The first.
    pub const FIRST: Self = Self::Number(1);
}

impl FromStr for Frame {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("last", _) => Ok(Self::Last),
            (_, Ok(number)) if number > 0 => Ok(Self::Number(number)),
            _ => Err("a frame is a number, counted from 1, or last".to_owned()),
        }
    }
}

/// The number of a frame, and the number of frames in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// The frame, counted from 1.
    pub number: usize,
    /// Complete frames of the file.
    pub count: usize,
    /// Whether the file ends within one more.
    pub cut_off: bool,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            number: 1,
            count: 1,
            cut_off: false,
        }
    }
}

impl PointCloud {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The quantity with this name, if the file has it.
    pub fn quantity(&self, name: &str) -> Option<&PointData<'static>> {
        self.data.iter().find(|data| data.name() == name)
    }

    pub(crate) fn new(positions: Positions, dimensions: Dimensions) -> Self {
        Self {
            positions: positions.single,
            positions_f64: positions.double,
            dimensions,
            ..Self::default()
        }
    }
}

/// How many coordinates a point has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dimensions {
    /// x and y.
    Two,
    /// x, y and z.
    #[default]
    Three,
}

impl Dimensions {
    /// 2 or 3.
    pub fn count(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// The box a simulation runs in, spanned by three vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulationBox {
    /// The three vectors, one per row, in the units of the positions.
    pub vectors: [[f64; 3]; 3],
    /// Whether the box repeats along each vector.
    pub periodic: [bool; 3],
}

impl SimulationBox {
    /// The lengths along x, y and z when the vectors lie along the positive axes; `None` for
    /// every other box.
    pub fn lengths(&self) -> Option<[f64; 3]> {
        let axes = [0, 1, 2];
        let straight = axes.iter().all(|&row| {
            axes.iter().all(|&column| {
                let value = self.vectors[row][column];
                if row == column {
                    value > 0.0
                } else {
                    value == 0.0
                }
            })
        });
        straight.then(|| axes.map(|axis| self.vectors[axis][axis]))
    }
}

/// The kinds of points, such as chemical elements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Species {
    /// Each name once, in order of first appearance.
    pub names: Vec<String>,
    /// For every point the index of its name.
    pub of_point: Vec<u32>,
}

const POINTS: &str = "the points of a file";

/// Positions being collected; the double-precision copy begins with the first value that needs
/// it.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    single: Vec<[f32; 3]>,
    double: Option<Vec<[f64; 3]>>,
}

impl Positions {
    /// `expected` must be backed by evidence in the file, not only by a declared count.
    pub(crate) fn with_capacity(expected: usize) -> Result<Self, Shortage> {
        Ok(Self {
            single: with_room(expected, POINTS)?,
            double: None,
        })
    }

    pub(crate) fn push(&mut self, point: [Number; 3]) -> Result<(), Shortage> {
        if self.double.is_none() && !point.iter().all(|number| number.is_single()) {
            let mut so_far = with_room(self.single.capacity(), POINTS)?;
            so_far.extend(self.single.iter().map(|point| point.map(f64::from)));
            self.double = Some(so_far);
        }
        make_room_for_one(&mut self.single, POINTS)?;
        self.single.push(point.map(|number| number.single));
        if let Some(double) = &mut self.double {
            make_room_for_one(double, POINTS)?;
            double.push(point.map(|number| number.double));
        }
        Ok(())
    }

    /// Appends `points` points whose coordinates lie one after the other in `numbers`.
    pub(crate) fn extend(&mut self, numbers: &impl Numbers, points: usize) -> Result<(), Shortage> {
        let all = self.single.len() + points;
        make_room(&mut self.single, all, POINTS)?;
        if let Some(double) = &mut self.double {
            make_room(double, all, POINTS)?;
        }
        (0..points)
            .try_for_each(|point| self.push([0, 1, 2].map(|axis| numbers.number(3 * point + axis))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point_data::Values;

    #[test]
    fn the_double_copy_begins_when_a_value_needs_it() {
        let mut positions = Positions::default();
        let push = |positions: &mut Positions, point: [f64; 3]| {
            positions.push(point.map(Number::from)).unwrap();
        };
        push(&mut positions, [1.5, 2.0, f64::NAN]);
        assert_eq!(positions.double, None);
        push(&mut positions, [0.1, 0.0, 0.0]);
        let double = positions.double.unwrap();
        assert_eq!(double[0][..2], [1.5, 2.0]);
        assert!(double[0][2].is_nan());
        assert_eq!(double[1], [0.1, 0.0, 0.0]);
        assert_eq!(positions.single[1], [0.1_f32, 0.0, 0.0]);
    }

    #[test]
    fn flat_values_become_points() {
        let mut positions = Positions::default();
        let values = Values::from(vec![1_i32, 2, 3, 4, 5, 6]);
        positions.extend(&values, 2).unwrap();
        assert_eq!(positions.single, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    }

    #[test]
    fn only_a_box_along_the_axes_has_lengths() {
        let mut simulation_box = SimulationBox {
            vectors: [[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 6.0]],
            periodic: [true; 3],
        };
        assert_eq!(simulation_box.lengths(), Some([4.0, 5.0, 6.0]));
        simulation_box.vectors[1][0] = 0.5;
        assert_eq!(simulation_box.lengths(), None);
    }
}
