//! Cells of a tilted box: whole shares of its vectors.
//!
//! A point `x` has the fractions `f_k = g_k·x`, where `g_k` are the rows of the inverse of the
//! matrix of box vectors `v_k`; its cell along `k` is `floor(f_k·n_k)` with `n_k` cells to a box,
//! wrapped into the box. An open axis has a unit vector that is orthogonal to all periodic vectors
//! and to those of other open axes; it has no box, and its cells are those of an open domain over
//! `f_k`. That is a coordinate unless the box is slanted, that is, some periodic vector leans along
//! an open axis.
//!
//! Why no pair within the radius is lost. Let the contract find a pair within `r` through the
//! image `m`, and let `D = x_j − x_i + Σ m_k·v_k` in real numbers.
//!
//! 1. The three roundings per axis of `fl(fl(x_j − x_i) + S)` and those of `d²` move it by less
//!    than `2⁻²²·(extent + r)`, as in a straight box; computing `S` in `f64` adds at most
//!    `2⁻⁵¹·Σ|m_k|·|v_k|`.
//! 2. The computed fractions of both points belong to a displacement `D' = Σ (f_kj + m_k −
//!    f_ki)·v_k`. It differs from `D` because every fraction is a rounded dot product, off by at
//!    most `2⁻⁵¹·F_k` with `F_k` the farthest fraction, and because the inverse is a little off,
//!    by [`Tilt::drift`] per box.
//! 3. The pair meets only if `|m_k| ≤ 2·F_k + r/w_k`, where the width `w_k = 1/|g_k|` is the
//!    distance between two faces of the box; [`rounding`] adds all this up, and the enlarged radius
//!    `R` is thus at least `|D'|`, with a share of 2⁻²⁰ to spare for everything computed from it
//!    here. In a slanted box all three components are sums with `S`, so that the extent is that of
//!    all of them, and the fraction along an open axis is a rounded dot product too, of up to
//!    `2·F_k` lengths.
//! 4. The cells of the two points are apart by an offset `o_k` with `|n_k·f_k(D') − o_k| < 1`, and
//!    `|f_k(D')| ≤ R/w_k`. So **the perpendicular widths decide how many cells an axis has**: with
//!    `n_k ≤ K·w_k/R`, K cells on either side reach every neighbour.
//!    In double precision the contract rounds in `f64` too: the roundings of step 1 are at most
//!    `2⁻⁵⁰·Σ F_k·|v_k|` then, which a larger factor in step 3 covers, and open axes are as the
//!    module `double` says.
//!    Where the box is [reduced](Domain::reduced), `v_k` are the short vectors, which are rounded
//!    once: the drift has that too. `S` is computed from the given vectors `u_l`, and the pair
//!    meets only if its image in these is at most `2·F_l + r/w_l`, with fractions and widths of the
//!    given box; the rounding of step 1 is that of the given box then, and is added.
//! 5. A row is left out, or its reach along x cut, only where interval arithmetic over everything
//!    its offsets allow (step 4) shows that `|D'| > R`; intervals contain all that is possible.
//!
//! # Cost
//!
//! A tilted lattice has more rows than a straight one of the same volume, because the sphere of
//! the radius is a tilted ellipsoid in fractions. Pruning by the box of the targets removes most
//! of the additional candidates.

use super::{
    axis::{Axis, FARTHEST_CELL, Period, floor, open_cell},
    rows::{MAX_IMAGES, ROWS, Row, cells_reached, enlargement, images_within},
};
use crate::{
    Bounds, Domain, Error, ErrorKind, Precision, Radius, domain::tilt::Tilt, domain::tilt::norm,
    error::axis_name, memory::make_room_for_one,
};

/// Bits of a cell offset that rounding may make too large: keeps `K` from becoming `K + 1`, and is
/// far inside the enlargement of the radius, also in the flattest box.
const NUDGE: f64 = 1.0 / (1u64 << 36) as f64;

/// The axes and rows of the lattice of a tilted box.
pub(super) struct Cells {
    pub(super) axes: [Axis; 3],
    pub(super) rows: Vec<Row>,
    /// The enlarged radius.
    pub(super) reach: f64,
    /// What rounding adds to the radius.
    pub(super) rounding: f64,
}

/// The cells of a tilted box, with a number of cells to the radius along each axis.
///
/// # Errors
/// [`ErrorKind::TooManyImages`] and [`ErrorKind::OutOfMemory`].
pub(super) fn cells(
    radius: Radius,
    domain: &Domain,
    tilt: &Tilt,
    subdivision: [f64; 3],
    bounds: &Bounds,
) -> Result<Cells, Error> {
    let rounding = rounding(radius, domain, tilt, bounds);
    let enlarged = (radius.value_f64() + rounding) * enlargement(radius.precision());
    for k in (0..3).filter(|&k| domain.lengths()[k].is_some()) {
        let width = tilt.width(k);
        if enlarged / width > MAX_IMAGES {
            return Err(ErrorKind::TooManyImages {
                axis: axis_name(k),
                length: width,
                radius: radius.as_given(),
                images: images_within(radius, enlarged, width),
            }
            .into());
        }
    }
    let axes = axes(enlarged, domain, tilt, subdivision);
    Ok(Cells {
        rows: rows(enlarged, tilt, &axes)?,
        axes,
        reach: enlarged,
        rounding,
    })
}

/// The axes of cells for an enlarged radius.
fn axes(enlarged: f64, domain: &Domain, tilt: &Tilt, subdivision: [f64; 3]) -> [Axis; 3] {
    std::array::from_fn(|k| {
        let Some(length) = domain.lengths()[k] else {
            let inverse_edge = subdivision[k] / enlarged;
            return Axis {
                inverse_edge,
                period: None,
            };
        };
        let width = tilt.width(k);
        let cells = (subdivision[k] * width / enlarged)
            .floor()
            .clamp(1.0, FARTHEST_CELL);
        Axis {
            inverse_edge: cells / width,
            period: Some(Period {
                length,
                cells: cells as i64,
            }),
        }
    })
}

/// The rows within an enlarged radius of a cell.
fn rows(enlarged: f64, tilt: &Tilt, axes: &[Axis; 3]) -> Result<Vec<Row>, Error> {
    let per_box = axes.map(|axis| {
        axis.period
            .map_or(axis.inverse_edge, |period| period.cells as f64)
    });
    Stencil::new(enlarged, tilt, per_box).rows()
}

/// Cells for one radius and the rows within another; rounding adds up to `rounding` to either.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
pub(super) fn nested(
    [cells, reach]: [Radius; 2],
    domain: &Domain,
    tilt: &Tilt,
    rounding: f64,
) -> Result<Cells, Error> {
    let enlarged =
        |radius: Radius| (radius.value_f64() + rounding) * enlargement(radius.precision());
    let axes = axes(enlarged(cells), domain, tilt, [1.0; 3]);
    Ok(Cells {
        rows: rows(enlarged(reach), tilt, &axes)?,
        axes,
        reach: enlarged(reach),
        rounding,
    })
}

/// The vectors from a cell to the next along each axis, [rotated].
pub(super) fn cell_vectors(axes: &[Axis; 3], tilt: &Tilt) -> [[f64; 3]; 3] {
    let vectors = rotated(tilt.vectors);
    std::array::from_fn(|k| {
        // Vectors of open axes have length 1.
        let cells = axes[k]
            .period
            .map_or(axes[k].inverse_edge, |period| period.cells as f64);
        vectors[k].map(|component| component / cells)
    })
}

/// Cell and whole boxes along one axis of a position.
#[inline]
pub(super) fn place(axis: &Axis, tilt: &Tilt, k: usize, position: [f64; 3]) -> (i64, i64) {
    match axis.period {
        None if tilt.slanted => {
            let across = tilt.fraction(k, position);
            (open_cell(across * axis.inverse_edge), 0)
        }
        None => (open_cell(position[k] * axis.inverse_edge), 0),
        Some(period) => {
            let fraction = tilt.fraction(k, position);
            let wraps = floor(fraction);
            let cell = floor((fraction - wraps as f64) * period.cells as f64);
            (cell.clamp(0, period.cells - 1), wraps)
        }
    }
}

/// [`place`] of the two corners of `bounds` between whose fractions those of all points lie.
pub(super) fn places_within(
    axis: &Axis,
    tilt: &Tilt,
    k: usize,
    bounds: &Bounds,
) -> [(i64, i64); 2] {
    let (min, max) = (bounds.min, bounds.max);
    // Each product, and so their rounded sum, never falls from the low corner to the high one.
    let corner = |low: bool| {
        std::array::from_fn(|i| {
            if (tilt.inverse[k][i] >= 0.0) == low {
                min[i]
            } else {
                max[i]
            }
        })
    };
    match axis.period {
        None if !tilt.slanted => [min, max].map(|at| place(axis, tilt, k, at)),
        _ => [corner(true), corner(false)].map(|at| place(axis, tilt, k, at)),
    }
}

/// The largest rounding of a distance (steps 1 to 3 of the module's comment), from numbers of
/// boxes that are rounded up to powers of two, so that moving points keep their lattice.
fn rounding(radius: Radius, domain: &Domain, tilt: &Tilt, bounds: &Bounds) -> f64 {
    let power_of_two = |boxes: f64| boxes.max(1.0).log2().ceil().exp2();
    let magnitudes = std::array::from_fn(|axis| bounds.magnitude(axis));
    let periodic = || (0..3).filter(|&k| domain.lengths()[k].is_some());
    let longest = periodic()
        .map(|k| norm(tilt.vectors[k]))
        .fold(0.0, f64::max);
    let extent = (0..3)
        .filter(|&k| tilt.slanted || domain.lengths()[k].is_some())
        .map(|k| bounds.extent()[k])
        .fold(0.0, f64::max);
    let in_single = longest * (1.0 + power_of_two(extent / longest));
    let in_boxes: f64 = periodic()
        .map(|k| {
            let images = 2.0 * tilt.farthest_fraction(k, magnitudes) + MAX_IMAGES + 1.0;
            power_of_two(images) * norm(tilt.vectors[k])
        })
        .sum();
    let across: f64 = (0..3)
        .filter(|&k| tilt.slanted && domain.lengths()[k].is_none())
        .map(|k| {
            let radii = 2.0 * tilt.farthest_fraction(k, magnitudes) / radius.value_f64();
            power_of_two(radii) * radius.value_f64()
        })
        .sum();
    let in_given: f64 = domain.given().map_or(0.0, |given| {
        let of = |k: usize| {
            let images = 2.0 * given.tilt.farthest_fraction(k, magnitudes)
                + radius.value_f64() / given.tilt.width(k);
            power_of_two(images + 1.0) * norm(given.tilt.vectors[k])
        };
        periodic().map(of).sum()
    });
    let in_double = in_boxes + across;
    let of_images = in_given * 2f64.powi(-49);
    match radius.precision() {
        Precision::Single => {
            in_single * 2f64.powi(-22) + in_double * (3.0 * tilt.drift + 2f64.powi(-49)) + of_images
        }
        Precision::Double => in_double * (3.0 * tilt.drift + 2f64.powi(-47)) + 4.0 * of_images,
    }
}

/// All real numbers from `low` to `high`. Its operations return intervals that contain every
/// result, so a row that an interval rules out holds no pair.
#[derive(Debug, Clone, Copy)]
struct Interval {
    /// Smallest number.
    low: f64,
    /// Largest number.
    high: f64,
}

impl Interval {
    /// The numbers of magnitude up to `half`.
    fn around_zero(half: f64) -> Self {
        Self {
            low: -half,
            high: half,
        }
    }

    /// All products with `factor`.
    fn times(self, factor: f64) -> Self {
        let [a, b] = [self.low * factor, self.high * factor];
        Self {
            low: a.min(b),
            high: a.max(b),
        }
    }

    /// All sums of a number of either.
    fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    /// The numbers that are in both; empty if `low` is then above `high`.
    fn and(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    /// Smallest magnitude in it.
    fn gap(self) -> f64 {
        self.low.max(-self.high).max(0.0)
    }
}

/// The geometry that decides which rows reach.
///
/// In a rotated frame the first vector lies along x and the second in the xy plane, so the
/// distance of a row from the origin depends on the fractions along b and c alone.
struct Stencil {
    /// Enlarged radius.
    radius: f64,
    /// Largest fraction along each vector of a displacement within the radius.
    max: [f64; 3],
    /// Cells per box; on open axes, where the vector has length 1, cells per unit length.
    per_box: [f64; 3],
    /// The box vectors, rotated so that the first lies along x and the second in the xy plane.
    rotated: [[f64; 3]; 3],
}

impl Stencil {
    /// The geometry of a box that is cut into `per_box` cells per vector.
    fn new(radius: f64, tilt: &Tilt, per_box: [f64; 3]) -> Self {
        Self {
            radius,
            max: std::array::from_fn(|k| radius / tilt.width(k)),
            per_box,
            rotated: rotated(tilt.vectors),
        }
    }

    /// Rows by ascending (z, y).
    fn rows(&self) -> Result<Vec<Row>, Error> {
        let reach = |k: usize| cells_reached(self.max[k] * self.per_box[k], NUDGE);
        let (ry, rz) = (reach(1), reach(2));
        let mut rows = Vec::new();
        for z in -rz..=rz {
            for y in -ry..=ry {
                if let Some(reach) = self.reach(y, z) {
                    make_room_for_one(&mut rows, ROWS)?;
                    rows.push(Row { y, z, reach });
                }
            }
        }
        Ok(rows)
    }

    /// Largest offset along x in row (y, z), or `None` when the row is out of reach.
    ///
    /// Intervals along c give the gap along z, those along b and c the gap along y; the chord that
    /// is left bounds the displacement along x, from which the sideways parts of b and c are taken
    /// off.
    fn reach(&self, y: i64, z: i64) -> Option<i64> {
        let [a, b, c] = self.rotated;
        let fb = self.fractions(1, y);
        let fc = self.fractions(2, z);
        let gap_z = fc.times(c[2]).gap();
        let gap_y = fb.times(b[1]).plus(fc.times(c[1])).gap();
        let chord = self.radius * self.radius - gap_y * gap_y - gap_z * gap_z;
        if chord < 0.0 {
            return None;
        }
        let sideways = fb.times(b[0]).plus(fc.times(c[0]));
        let fa = Interval::around_zero(chord.sqrt())
            .plus(sideways.times(-1.0))
            .times(1.0 / a[0])
            .and(Interval::around_zero(self.max[0]));
        let farthest = fa.high.max(-fa.low) * self.per_box[0];
        (fa.low <= fa.high).then(|| cells_reached(farthest, NUDGE))
    }

    /// Fractions along vector `k` between points whose cells are `offset` apart.
    fn fractions(&self, k: usize, offset: i64) -> Interval {
        let offset = offset as f64;
        Interval {
            low: (offset - 1.0) / self.per_box[k],
            high: (offset + 1.0) / self.per_box[k],
        }
        .and(Interval::around_zero(self.max[k]))
    }
}

/// The vectors in an orthonormal frame whose first axis is along the first vector and whose second
/// is in the plane of the first two (Gram and Schmidt). Distances are the same in it. The third is
/// made orthogonal twice, which removes the rounding of a flat box.
fn rotated(vectors: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    use crate::domain::tilt::dot;
    let unit = |v: [f64; 3]| v.map(|component| component / norm(v));
    let without = |v: [f64; 3], direction: [f64; 3]| {
        let share = dot(v, direction);
        std::array::from_fn(|axis| v[axis] - share * direction[axis])
    };
    let [a, b, c] = vectors;
    let first = unit(a);
    let second = unit(without(b, first));
    let third = unit(without(without(c, first), second));
    vectors.map(|v| [dot(v, first), dot(v, second), dot(v, third)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lattice, domain::tilt::dot};

    const BOXES: [[[f64; 3]; 3]; 8] = [
        [[6.0, 0.0, 0.0], [3.0, 5.0, 0.0], [-3.0, 2.5, 4.0]],
        [[5.0, 0.0, 0.0], [-5.0, 5.0, 0.0], [5.0, 5.0, 5.0]],
        [[4.0, 0.0, 0.0], [23.0, 4.5, 0.0], [-9.0, 11.0, 5.0]],
        [[0.9, 0.0, 0.0], [0.4, 1.1, 0.0], [-0.3, 0.5, 1.05]],
        [[0.3, 0.0, 0.0], [0.6, 7.0, 0.0], [1.3, 4.0, 0.5]],
        [[0.0, 1.5, 1.5], [1.5, 0.0, 1.5], [1.5, 1.5, 0.0]],
        [[0.0, 0.0, -2.4], [3.1, 0.1, 0.0], [0.2, 9.0, 1.0]],
        [[1.02, 0.0, 0.0], [0.5, 3.03, 0.0], [0.0, 0.0, 2.01]],
    ];

    fn lattice(vectors: [[f64; 3]; 3], subdivision: u32) -> Lattice {
        let domain = Domain::from_vectors(vectors.map(Some)).unwrap();
        let bounds = Bounds {
            min: [0.0; 3],
            max: [1.0; 3],
        };
        Lattice::new(Radius::new(1.0).unwrap(), domain, subdivision, &bounds).unwrap()
    }

    /// Directions of all kinds, those across the faces of the box among them.
    fn directions(tilt: &Tilt) -> Vec<[f64; 3]> {
        let mut all: Vec<[f64; 3]> = tilt.inverse.to_vec();
        for i in 0..4000 {
            let turn = |step: f64| (f64::from(i) * step).fract() * 2.0 - 1.0;
            all.push([0.618_034, 0.414_214, 0.732_051].map(turn));
        }
        all.extend(all.clone().into_iter().map(|v| v.map(|part| -part)));
        all.into_iter()
            .map(|v| v.map(|part| part / norm(v)))
            .collect()
    }

    #[test]
    fn every_displacement_of_one_radius_is_in_the_stencil() {
        for vectors in BOXES {
            for subdivision in [1, 2, 3, 5] {
                let lattice = lattice(vectors, subdivision);
                let tilt = *lattice.domain().tilt().unwrap();
                let cells = [0, 1, 2].map(|axis| lattice.period(axis).unwrap() as f64);
                for (i, direction) in directions(&tilt).into_iter().enumerate() {
                    let apart: [f64; 3] =
                        std::array::from_fn(|k| dot(tilt.inverse[k], direction) * cells[k]);
                    // The cells farthest apart belong to points that start at the near face.
                    let place = [1e-9, 1.0 - 1e-9, (i as f64 * 0.3247).fract()][i % 3];
                    let offset = apart.map(|by| {
                        let start = if by > 0.0 { 1.0 - place } else { place };
                        (start + by).floor() as i64
                    });
                    let row = (lattice.rows().iter())
                        .find(|row| row.y == offset[1] && row.z == offset[2]);
                    assert!(
                        row.is_some_and(|row| offset[0].abs() <= row.reach),
                        "{direction:?} leads {offset:?} cells away in {vectors:?}, K {subdivision}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_axis_reaches_farther_than_its_subdivision_where_the_box_is_wide() {
        for subdivision in [1, 2, 4] {
            let lattice = lattice(BOXES[0], subdivision);
            let k = i64::from(subdivision);
            let rows = lattice.rows();
            assert!(rows.iter().all(|row| row.y.abs() <= k && row.z.abs() <= k));
            assert!(rows.iter().all(|row| row.reach <= k));
            assert!(lattice.edges().iter().all(|edge| *edge >= 1.0 / k as f64));
        }
    }

    #[test]
    fn a_position_is_in_the_cell_of_its_fractions() {
        let lattice = lattice(BOXES[0], 1);
        let cells = [0, 1, 2].map(|axis| lattice.period(axis).unwrap());
        assert_eq!(cells, [3, 4, 3]);
        let [a, b, c] = BOXES[0];
        let place = |n: [f64; 3]| {
            std::array::from_fn(|axis| (n[0] * a[axis] + n[1] * b[axis] + n[2] * c[axis]) as f32)
        };
        assert_eq!(lattice.cell(place([0.8, 0.55, 0.4])), [2, 2, 1]);
        assert_eq!(lattice.wraps(place([0.8, 0.55, 0.4])), [0; 3]);
        assert_eq!(lattice.cell(place([2.8, -0.45, 7.4])), [2, 2, 1]);
        assert_eq!(lattice.wraps(place([2.8, -0.45, 7.4])), [2, -1, 7]);
    }

    #[test]
    fn a_tilted_box_with_more_than_a_thousand_images_is_refused() {
        let domain = Domain::triclinic([Some(1.0); 3], [0.0, 0.0, 500.0]).unwrap();
        let radius = Radius::new(3.0).unwrap();
        let error = Lattice::new(radius, domain, 1, &Bounds::EMPTY).unwrap_err();
        let ErrorKind::TooManyImages {
            axis: 'y', images, ..
        } = error.kind()
        else {
            panic!("{error}");
        };
        assert!((1500..1502).contains(images), "{images}");
    }
}
