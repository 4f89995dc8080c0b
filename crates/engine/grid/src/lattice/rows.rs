//! Which rows of cells can hold a neighbour of a point: the stencil of a lattice.
//!
//! Cells at offset o along an axis are at least (|o| − 1)·edge apart. A row at offset (y, z) is
//! left out where the gaps along y and z together exceed the enlarged radius; otherwise the chord
//! that they leave bounds the offset along x. With K cells per radius that is (2K + 1)² rows at
//! most, each one contiguous run of sorted points, in place of (2K + 1)³ cells.
//!
//! # What the enlargement covers
//!
//! The contract rounds x_j − x_i, adds S and rounds again, and S itself was rounded once. Together
//! that is at most 2⁻²² of the numbers involved: the box length and the extent of the coordinates,
//! a power of two of boxes. Where it is less than a 64th of the radius it is added to all axes
//! alike, which keeps cells cubes. Beyond that, in a vast box or far from it, each axis gets its
//! own, so that one long box does not enlarge the cells along the others.

use super::double;
use crate::{Bounds, Domain, Error, Precision, Radius, memory::make_room_for_one};

/// One neighbour row of a cell, as offsets: cells `x − reach ..= x + reach` at `(y, z)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Offset along y in cells.
    pub y: i64,
    /// Offset along z in cells.
    pub z: i64,
    /// Largest offset along x in cells.
    pub reach: i64,
}

/// Images searched on each side of a periodic axis before the box is refused as absurdly small.
pub(super) const MAX_IMAGES: f64 = 1000.0;

/// How far a search reaches, with everything that rounding could add to a distance (see the
/// module's comment).
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// In any direction.
    radius: f64,
    /// Added along single axes.
    extra: [f64; 3],
}

impl Reach {
    /// Where rounding adds less than a 64th of the radius, it is taken to add the same along all
    /// axes, which keeps cells cubes. Beyond that every axis gets its own: one long box must not
    /// enlarge the cells along the others.
    pub(super) fn new(radius: Radius, domain: &Domain, bounds: &Bounds) -> Self {
        Self::with_slack(radius, slack(radius.precision(), domain, bounds))
    }

    /// With this much added along each axis by rounding.
    pub(super) fn with_slack(radius: Radius, slack: [f64; 3]) -> Self {
        Self::enlarged(radius.value_f64(), enlargement(radius.precision()), slack)
    }

    /// A radius with what rounding adds to it.
    fn enlarged(value: f64, enlargement: f64, slack: [f64; 3]) -> Self {
        let largest = slack.into_iter().fold(0.0, f64::max);
        if largest <= value / 64.0 {
            return Self {
                radius: (value + largest) * enlargement,
                extra: [0.0; 3],
            };
        }
        Self {
            radius: value * enlargement,
            extra: slack.map(|slack| slack * enlargement),
        }
    }

    /// Along an axis.
    pub(super) fn along(&self, axis: usize) -> f64 {
        self.radius + self.extra[axis]
    }

    /// In any direction, what is added along single axes included: at most √3 times the largest.
    pub(super) fn largest(&self) -> f64 {
        self.radius + 2.0 * self.extra.into_iter().fold(0.0, f64::max)
    }
}

/// Share by which a radius is enlarged in single precision.
const SINGLE_ENLARGEMENT: f64 = 1.0 + 1.0 / (1 << 20) as f64;

/// Share by which a radius is enlarged.
pub(super) fn enlargement(precision: Precision) -> f64 {
    match precision {
        Precision::Single => SINGLE_ENLARGEMENT,
        Precision::Double => double::ENLARGEMENT,
    }
}

/// What rounding may add to a distance along each axis.
pub(super) fn slack(precision: Precision, domain: &Domain, bounds: &Bounds) -> [f64; 3] {
    match precision {
        Precision::Single => single_slack(domain, bounds),
        Precision::Double => double::slack(domain, bounds),
    }
}

/// What rounding may add to a distance along each axis in single precision: a share of the length
/// of the box and of the extent of the points in whole boxes, a power of two of them; 0 where it is
/// open.
fn single_slack(domain: &Domain, bounds: &Bounds) -> [f64; 3] {
    let (lengths, extent) = (domain.lengths(), bounds.extent());
    std::array::from_fn(|axis| {
        lengths[axis].map_or(0.0, |length| {
            let boxes = (extent[axis] / length).max(1.0).log2().ceil().exp2();
            (length + boxes * length) * 2f64.powi(-22)
        })
    })
}

/// How many images, a box `length` apart, an enlarged radius reaches: too many already without the
/// enlargement, unless it is what far coordinates add that makes them too many.
pub(super) fn images_within(radius: Radius, reach: f64, length: f64) -> u64 {
    let given = (radius.value_f64() / length).ceil();
    if given > MAX_IMAGES {
        given as u64
    } else {
        (reach / length).ceil() as u64
    }
}

/// Largest offset between the cells of points whose cell coordinates differ by up to `difference`,
/// from which a tiny `nudge` may be taken off.
pub(super) fn cells_reached(difference: f64, nudge: f64) -> i64 {
    (difference - nudge).ceil().max(0.0) as i64
}

/// The name of the memory for rows in messages.
pub(crate) const ROWS: &str = "the neighbour rows of a cell";

/// Rows within `reach` of a cell, each cut to the chord it leaves along x.
///
/// Where rounding has a share of its own along each axis, a pair that is found differs from one
/// within the enlarged radius by at most that much along each axis; gaps are therefore less by it,
/// and rows reach farther by it.
pub(super) fn stencil(reach: &Reach, edges: [f64; 3]) -> Result<Vec<Row>, Error> {
    let Reach { radius, extra } = *reach;
    // Cells at offset o are at least (|o| − 1)·edge apart. The tiny share taken off keeps
    // reach/edge = K from rounding up to K + 1; it is far inside the enlargement of the radius.
    let cells = |distance: f64, axis: usize| cells_reached(distance / edges[axis], 1e-9);
    // As shares of the radius, whose square may be no number that `f64` has in a vast box.
    let gap = |offset: i64, axis: usize| {
        let apart = (offset.abs() - 1).max(0) as f64 * (edges[axis] / radius);
        (apart - extra[axis] / radius).max(0.0)
    };
    let (ry, rz) = (cells(reach.along(1), 1), cells(reach.along(2), 2));
    let mut rows = Vec::new();
    for z in -rz..=rz {
        for y in -ry..=ry {
            let chord = 1.0 - gap(y, 1).powi(2) - gap(z, 2).powi(2);
            if chord >= 0.0 {
                let reach = cells(radius * chord.sqrt() + extra[0], 0);
                make_room_for_one(&mut rows, ROWS)?;
                rows.push(Row { y, z, reach });
            }
        }
    }
    Ok(rows)
}
