//! Where the points of a set are, and how far they are from where they were.
//!
//! Displacements are computed in `f64` from coordinates of either precision: of `f32` coordinates
//! the difference is then rounded far less than the coordinates themselves are. One pass stores the
//! new positions and finds the largest displacement, so positions are read once. The largest is
//! kept as a square, and the root is taken at the end.
//!
//! Besides how far points have come, it is kept whether *any* coordinate differs. A set without
//! changes need not be sorted again, and its lists hold whatever the skin is.
//!
//! **Invariant:** `moved` is never below the largest displacement, modulo the box, of the
//! differences as `f64` rounds them. That rounding is nothing for `f32` coordinates; for `f64` ones
//! the margin of the module above covers it.

use crate::{Error, Positions, backend::next_stamp};
use nearfield_cpu::Coordinate;
use nearfield_grid::{Bounds, Domain, memory::make_room, parallel::PoolLoops};
use rayon::prelude::*;

/// Far above the rounding of a displacement in `f64`.
///
/// A square, two sums and a root err by a few units of 2⁻⁵³, and 2⁻⁴⁰ is 8,192 of them.
const ABOVE_ROUNDING: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

/// Positions of a set now and when its lists were built, in the caller's order.
#[derive(Debug)]
pub(super) struct TrackedSet<T> {
    now: Vec<[T; 3]>,
    built: Vec<[T; 3]>,
    path: Path,
}

/// How far the points of a set have come since its lists were built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    /// Bounds of the positions of now.
    now_bounds: Bounds,
    /// Bounds of the positions that lists were built from.
    built_bounds: Bounds,
    /// Largest displacement, infinite when the number of points differs.
    moved: f64,
    /// Whether any coordinate differs.
    changed: bool,
    /// Tells the positions of now from others; 0 for none.
    stamp: u64,
}

impl<T> Default for TrackedSet<T> {
    fn default() -> Self {
        Self {
            now: Vec::new(),
            built: Vec::new(),
            path: Path::default(),
        }
    }
}

impl Default for Path {
    fn default() -> Self {
        Self {
            now_bounds: Bounds::EMPTY,
            built_bounds: Bounds::EMPTY,
            moved: 0.0,
            changed: false,
            stamp: 0,
        }
    }
}

impl<T: Coordinate> TrackedSet<T> {
    /// Takes the positions of now, whose checked bounds are `bounds`, and measures the
    /// displacements.
    ///
    /// If there are more points than lists were built from, those beyond count as not moved; the
    /// number alone makes the displacement infinite then.
    ///
    /// # Errors
    /// A shortage of memory; the positions are then those from before.
    pub(super) fn take(
        &mut self,
        positions: Positions<'_>,
        bounds: Bounds,
        domain: &Domain,
    ) -> Result<(), Error> {
        resize(&mut self.now, positions.len())?;
        let built = &self.built;
        let farthest = (self.now.par_iter_mut().with_min_len(1 << 12).enumerate())
            .map(|(index, now)| {
                *now = T::given(&positions, index).unwrap_or_default();
                let old = built.get(index).unwrap_or(now);
                Step {
                    squared: squared_displacement(*old, *now, domain),
                    changed: old != now,
                }
            })
            .combined(Step::default, Step::farther);
        let same_number = self.now.len() == self.built.len();
        self.path.moved = match same_number {
            true => farthest.squared.sqrt() * ABOVE_ROUNDING,
            false => f64::INFINITY,
        };
        self.path.changed = farthest.changed || !same_number;
        self.path.now_bounds = bounds;
        self.path.stamp = next_stamp();
        Ok(())
    }

    /// Lists were built from the positions of now.
    ///
    /// Makes the copies equal, so nothing has moved.
    pub(super) fn was_built(&mut self) -> Result<(), Error> {
        resize(&mut self.built, self.now.len())?;
        self.built.copy_from_slice(&self.now);
        self.path.built_bounds = self.path.now_bounds;
        (self.path.moved, self.path.changed) = (0.0, false);
        Ok(())
    }

    /// Positions of now.
    pub(super) fn now(&self) -> &[[T; 3]] {
        &self.now
    }

    /// How far the points have come.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<[T; 3]>() * (self.now.capacity() + self.built.capacity())
    }
}

impl Path {
    /// The largest displacement since the lists were built, modulo the box; infinite when the
    /// number of points has changed.
    pub(super) fn moved(&self) -> f64 {
        self.moved
    }

    /// Whether any coordinate is not the one that lists were built from.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Tells the positions of now from others.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Bounds of the positions of now.
    pub(super) fn bounds(&self) -> Bounds {
        self.now_bounds
    }

    /// Bounds of the points then and now.
    ///
    /// The rounding of the contract at the build depends on where points were, and that of now on
    /// where they are.
    pub(super) fn reached(&self) -> Bounds {
        self.now_bounds.union(&self.built_bounds)
    }
}

/// How far a point has come.
///
/// The maximum of squares and the `or` of changes do not depend on the order of the points, so
/// neither does the result on the threads.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    squared: f64,
    changed: bool,
}

impl Step {
    fn farther(self, other: Self) -> Self {
        Self {
            squared: self.squared.max(other.squared),
            changed: self.changed | other.changed,
        }
    }
}

/// Squared distance between two positions of a point, through an image that is near; infinite when
/// it overflows.
///
/// The image is the one whose multiples of the box vectors are nearest to the displacement's own.
/// In a tilted box a shorter way may exist; taking the longer one rebuilds lists early and loses no
/// pair.
fn squared_displacement<T: Coordinate>(from: [T; 3], to: [T; 3], domain: &Domain) -> f64 {
    let d: [f64; 3] = std::array::from_fn(|axis| to[axis].into() - from[axis].into());
    let moved = match domain.is_periodic() {
        false => d,
        true => {
            // Any image would do, as lists do not tell images apart.
            let image = domain.inverse().map(|row| {
                row.map_or(0, |[x, y, z]| {
                    -(x * d[0] + y * d[1] + z * d[2]).round() as i64
                })
            });
            let shift = domain.image_vector_f64(image);
            std::array::from_fn(|axis| d[axis] + shift[axis])
        }
    };
    let squared = moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2];
    // A difference that overflowed is a number no more where an image vector is added to it.
    if squared.is_nan() {
        f64::INFINITY
    } else {
        squared
    }
}

/// New places are at the origin until they are written.
fn resize<T: Coordinate>(positions: &mut Vec<[T; 3]>, len: usize) -> Result<(), Error> {
    make_room(positions, len, "positions in the caller's order")?;
    positions.resize(len, [T::default(); 3]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacements_are_taken_through_the_nearest_image() {
        let from = [0.5, 9.75, 1.0];
        let to = [0.75, 0.25, 1.0];
        assert_eq!(squared_displacement(from, to, &Domain::OPEN), 90.3125);
        let domain = Domain::new([Some(10.0), Some(10.0), None]).unwrap();
        assert_eq!(squared_displacement(from, to, &domain), 0.3125);
        let far = [-399.5, 9.75, 1.0];
        assert_eq!(squared_displacement(from, far, &domain), 0.0);
    }

    #[test]
    fn in_a_tilted_box_a_whole_length_along_an_axis_is_no_way_back() {
        let lengths = [Some(8.0), Some(4.0), Some(4.0)];
        let domain = Domain::triclinic(lengths, [3.0, 0.0, 0.0]).unwrap();
        let from = [0.5f32, 0.25, 1.0];
        assert_eq!(squared_displacement(from, [0.5, 4.25, 1.0], &domain), 9.0);
        assert_eq!(squared_displacement(from, [3.5, 4.25, 5.0], &domain), 0.0);
        // As long as the vector that leans, but straight along its axis.
        assert!(squared_displacement(from, [0.5, 5.25, 1.0], &domain) >= 10.0);
    }

    #[test]
    fn a_displacement_that_overflows_is_infinite() {
        let domain = Domain::new([Some(1e305), None, None]).unwrap();
        for domain in [domain, Domain::OPEN] {
            for way in [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0; 3]] {
                let (from, to) = (way.map(|x| -1e308 * x), way.map(|x| 1e308 * x));
                let squared = squared_displacement(from, to, &domain);
                assert_eq!(squared, f64::INFINITY, "{way:?}");
            }
        }
    }

    #[test]
    fn a_set_knows_whether_it_moved_and_how_far() {
        let domain = Domain::OPEN;
        let mut set = TrackedSet::default();
        let take = |set: &mut TrackedSet<f32>, points: &Vec<[f32; 3]>| {
            let bounds = Bounds::of(points.into(), &domain).unwrap();
            set.take(points.into(), bounds, &domain).unwrap();
        };
        let mut points = vec![[0.0f32; 3], [5.0, 0.0, 0.0]];
        take(&mut set, &points);
        assert_eq!(
            (set.path().moved(), set.path().is_changed()),
            (f64::INFINITY, true)
        );
        set.was_built().unwrap();
        assert_eq!((set.path().moved(), set.path().is_changed()), (0.0, false));
        points[1][2] = -3.0;
        take(&mut set, &points);
        assert!(
            set.path().moved() >= 3.0 && set.path().moved() < 3.000_001 && set.path().is_changed()
        );
        points[1][2] = 0.0;
        take(&mut set, &points);
        assert_eq!(
            (set.path().moved(), set.path().is_changed()),
            (0.0, false),
            "it came back"
        );
        points.pop();
        take(&mut set, &points);
        assert_eq!(
            (set.path().moved(), set.path().is_changed()),
            (f64::INFINITY, true)
        );
        assert_eq!(
            set.path().reached().max[0],
            5.0,
            "where points were counts too"
        );
    }
}
