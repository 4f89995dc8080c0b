//! Where the points of a set are, and how far they are from where they were.

use crate::{Error, Positions};
use nearfield_grid::{Bounds, Domain};
use rayon::prelude::*;

/// Far above the rounding of a displacement in `f64`.
const ABOVE_ROUNDING: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

/// Positions of a set now and when its lists were built, in the caller's order.
#[derive(Debug)]
pub(super) struct Tracked {
    now: Vec<[f32; 3]>,
    built: Vec<[f32; 3]>,
    now_bounds: Bounds,
    built_bounds: Bounds,
    /// Largest displacement, infinite when the number of points differs.
    moved: f64,
    /// Whether any coordinate differs.
    changed: bool,
}

impl Default for Tracked {
    fn default() -> Self {
        Self {
            now: Vec::new(),
            built: Vec::new(),
            now_bounds: Bounds::EMPTY,
            built_bounds: Bounds::EMPTY,
            moved: 0.0,
            changed: false,
        }
    }
}

impl Tracked {
    /// Takes the positions of now, whose checked bounds are `bounds`, and measures the
    /// displacements.
    pub(super) fn take(
        &mut self,
        positions: Positions<'_>,
        bounds: Bounds,
        domain: &Domain,
    ) -> Result<(), Error> {
        resize(&mut self.now, positions.len())?;
        let lengths = domain.lengths();
        let built = &self.built;
        let farthest = (self.now.par_iter_mut().with_min_len(1 << 12).enumerate())
            .map(|(index, now)| {
                *now = positions.get(index).unwrap_or_default();
                let old = built.get(index).unwrap_or(now);
                Step {
                    squared: squared_displacement(*old, *now, lengths),
                    changed: old != now,
                }
            })
            .reduce(Step::default, Step::farther);
        let same_number = self.now.len() == self.built.len();
        self.moved = match same_number {
            true => farthest.squared.sqrt() * ABOVE_ROUNDING,
            false => f64::INFINITY,
        };
        self.changed = farthest.changed || !same_number;
        self.now_bounds = bounds;
        Ok(())
    }

    /// Lists were built from the positions of now.
    pub(super) fn was_built(&mut self) -> Result<(), Error> {
        resize(&mut self.built, self.now.len())?;
        self.built.copy_from_slice(&self.now);
        self.built_bounds = self.now_bounds;
        (self.moved, self.changed) = (0.0, false);
        Ok(())
    }

    /// Positions of now.
    pub(super) fn now(&self) -> &[[f32; 3]] {
        &self.now
    }

    /// The largest displacement since the lists were built, modulo the box; infinite when the
    /// number of points has changed.
    pub(super) fn moved(&self) -> f64 {
        self.moved
    }

    /// Whether any coordinate is not the one that lists were built from.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Bounds of the points then and now.
    pub(super) fn reached(&self) -> Bounds {
        self.now_bounds.union(&self.built_bounds)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<[f32; 3]>() * (self.now.capacity() + self.built.capacity())
    }
}

/// How far a point has come.
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

/// Squared distance between two positions of a point, through its nearest image.
fn squared_displacement(from: [f32; 3], to: [f32; 3], lengths: [Option<f64>; 3]) -> f64 {
    let along = |axis: usize| {
        let d = f64::from(to[axis]) - f64::from(from[axis]);
        lengths[axis].map_or(d, |length| d - (d / length).round() * length)
    };
    (0..3).map(|axis| along(axis) * along(axis)).sum()
}

fn resize(positions: &mut Vec<[f32; 3]>, len: usize) -> Result<(), Error> {
    let more = len.saturating_sub(positions.len());
    positions.try_reserve_exact(more).map_err(|_| {
        Error::Cpu(nearfield_cpu::Error::OutOfMemory {
            bytes: size_of::<[f32; 3]>().saturating_mul(len),
            what: "positions in the caller's order",
        })
    })?;
    positions.resize(len, [0.0; 3]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displacements_are_taken_through_the_nearest_image() {
        let from = [0.5, 9.75, 1.0];
        let to = [0.75, 0.25, 1.0];
        assert_eq!(squared_displacement(from, to, [None; 3]), 90.3125);
        let lengths = [Some(10.0), Some(10.0), None];
        assert_eq!(squared_displacement(from, to, lengths), 0.3125);
        let far = [-399.5, 9.75, 1.0];
        assert_eq!(squared_displacement(from, far, lengths), 0.0);
    }

    #[test]
    fn a_set_knows_whether_it_moved_and_how_far() {
        let domain = Domain::OPEN;
        let mut set = Tracked::default();
        let take = |set: &mut Tracked, points: &Vec<[f32; 3]>| {
            let bounds = Bounds::of(points.into(), &domain).unwrap();
            set.take(points.into(), bounds, &domain).unwrap();
        };
        let mut points = vec![[0.0f32; 3], [5.0, 0.0, 0.0]];
        take(&mut set, &points);
        assert_eq!((set.moved(), set.is_changed()), (f64::INFINITY, true));
        set.was_built().unwrap();
        assert_eq!((set.moved(), set.is_changed()), (0.0, false));
        points[1][2] = -3.0;
        take(&mut set, &points);
        assert!(set.moved() >= 3.0 && set.moved() < 3.000_001 && set.is_changed());
        points[1][2] = 0.0;
        take(&mut set, &points);
        assert_eq!(
            (set.moved(), set.is_changed()),
            (0.0, false),
            "it came back"
        );
        points.pop();
        take(&mut set, &points);
        assert_eq!((set.moved(), set.is_changed()), (f64::INFINITY, true));
        assert_eq!(set.reached().max[0], 5.0, "where points were counts too");
    }
}
