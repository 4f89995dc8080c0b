//! The check every set of positions passes before anything is built from it.
//!
//! One pass over the coordinates finds the bounding box and whether all of them are finite. `min`
//! and `max` skip NaN, so finiteness is found by a sum of 0·x per lane, which stays 0 only if
//! every x is finite; that costs a multiplication and an addition and no branch. The loop runs at
//! the speed of memory. Only when something is wrong are the points looked at one by one, to name
//! the first offender and to count all.
//!
//! **Invariant:** after [`Bounds::of`] every coordinate is finite, there are fewer than 2³² − 1
//! points, and no point is more than 2³⁰ boxes from the origin along a periodic axis, so cells,
//! images and indices fit their types.
//!
//! # Why bounds are kept
//!
//! The lattice needs the extent of the coordinates along periodic axes, the dense table needs the
//! smallest and largest cell, and double precision needs a centre. All of them follow from the
//! bounding box, in `f64` so that it is exact in either precision.
//!
//! # Chunks
//!
//! Tasks of 16,384 points are measured by vectors, in groups of 24 numbers where coordinates are
//! packed: that is a whole number of points and of vectors of every width. The minima of a group
//! belong to the three axes in turn and are folded at the end.
//!
//! # Far points
//!
//! A point more than 2³⁰ boxes away along a periodic axis is refused: `f32` cannot resolve a box
//! there, and the counts of boxes of two points have to be added in 32 bits. In a tilted box the
//! corners of the bounding box bound the fractions of all points; only if a corner is too far are
//! points looked at one by one.

use crate::{
    Domain, Error, ErrorKind, Positions, Precision, Value,
    domain::tilt::{Tilt, VECTOR_NAMES},
    error::axis_name,
    input::positions::{Source, Visitor},
    parallel::PoolLoops,
    sort::widest::{Loops, widest},
};
use rayon::prelude::*;
use std::{
    marker::PhantomData,
    ops::{AddAssign, Mul, Range},
};

/// Smallest box that holds all points of a set; empty sets have `min > max`. In `f64` whatever the
/// precision of the points, so it is exact.
///
/// Bounds of several sets are joined by [`union`](Self::union), so that one lattice serves them
/// all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Smallest coordinate per axis.
    pub min: [f64; 3],
    /// Largest coordinate per axis.
    pub max: [f64; 3],
}

/// Number of points that one task checks: a few microseconds of work.
const CHUNK: usize = 1 << 14;

/// Box lengths from the origin beyond which images are not counted: `f32` cannot resolve a box
/// there, and the counts of two points have to be added.
const FARTHEST_BOX: f64 = (1u64 << 30) as f64;

impl Bounds {
    /// The box of no points.
    pub const EMPTY: Self = Self {
        min: [f64::INFINITY; 3],
        max: [f64::NEG_INFINITY; 3],
    };

    /// Checks every coordinate and measures the box.
    ///
    /// # Errors
    /// [`ErrorKind::NotFinite`] naming the first NaN or infinite coordinate,
    /// [`ErrorKind::TooManyPoints`], or [`ErrorKind::TooFarFromBox`]
    /// ([`ErrorKind::TooFarFromTiltedBox`] in a tilted box) when a point lies more than 2³⁰ boxes
    /// away along a periodic axis.
    pub fn of(positions: Positions<'_>, domain: &Domain) -> Result<Self, Error> {
        if positions.len() >= u32::MAX as usize {
            return Err(ErrorKind::TooManyPoints(positions.len()).into());
        }
        let len = positions.len();
        let (bounds, all_finite) = match positions.precision() {
            Precision::Single => positions.with(Measure { len })?,
            Precision::Double => positions.with_f64(Measure { len }),
        };
        if !all_finite {
            return Err(find_bad(positions));
        }
        bounds.check(positions, domain)?;
        Ok(bounds)
    }

    /// Checks that no point lies too far away along a periodic axis, for bounds that were measured
    /// elsewhere; all coordinates are finite.
    ///
    /// # Errors
    /// [`ErrorKind::TooFarFromBox`] and [`ErrorKind::TooFarFromTiltedBox`], as [`of`](Self::of).
    ///
    /// An engine that measures coordinates while it copies them elsewhere, as the GPU backend
    /// does, checks its bounds here.
    pub fn check(&self, positions: Positions<'_>, domain: &Domain) -> Result<(), Error> {
        match domain.tilt() {
            None => self.check_distance_from_box(positions, domain),
            Some(tilt) => self.check_distance_from_tilted_box(positions, domain, tilt),
        }
    }

    /// Length of the box per axis; 0 when it is empty.
    pub fn extent(&self) -> [f64; 3] {
        std::array::from_fn(|axis| (self.max[axis] - self.min[axis]).max(0.0))
    }

    /// The smallest box that holds both.
    pub fn union(&self, other: &Self) -> Self {
        Self {
            min: std::array::from_fn(|axis| self.min[axis].min(other.min[axis])),
            max: std::array::from_fn(|axis| self.max[axis].max(other.max[axis])),
        }
    }

    /// Refuses points that are too far from a straight box.
    fn check_distance_from_box(
        &self,
        positions: Positions<'_>,
        domain: &Domain,
    ) -> Result<(), Error> {
        for (axis, length) in domain.lengths().into_iter().enumerate() {
            let Some(length) = length else { continue };
            let limit = FARTHEST_BOX * length;
            let too_far = |value: f64| value.abs() > limit;
            if self.min[axis] <= self.max[axis]
                && (too_far(self.min[axis]) || too_far(self.max[axis]))
            {
                let (index, value) = (0..positions.len())
                    .filter_map(|index| Some((index, positions.as_given(index)?[axis])))
                    .find(|(_, value)| too_far(value.get()))
                    .unwrap_or((0, self.max[axis].into()));
                return Err(ErrorKind::TooFarFromBox {
                    index,
                    axis: axis_name(axis),
                    value,
                    length,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Largest distance from 0 of any coordinate along an axis; 0 when there is no point.
    pub(crate) fn magnitude(&self, axis: usize) -> f64 {
        if self.min[axis] <= self.max[axis] {
            self.min[axis].abs().max(self.max[axis].abs())
        } else {
            0.0
        }
    }

    /// Points are looked at one by one only when the corners of their bounding box, which may lie
    /// much farther out than any of them, are too far.
    fn check_distance_from_tilted_box(
        &self,
        positions: Positions<'_>,
        domain: &Domain,
        tilt: &Tilt,
    ) -> Result<(), Error> {
        let periodic = |k: &usize| domain.lengths()[*k].is_some();
        let magnitudes = std::array::from_fn(|axis| self.magnitude(axis));
        if (0..3)
            .filter(periodic)
            .all(|k| tilt.farthest_fraction(k, magnitudes) <= FARTHEST_BOX)
        {
            return Ok(());
        }
        for index in 0..positions.len() {
            let Some(position) = positions.as_given(index) else {
                continue;
            };
            for k in (0..3).filter(periodic) {
                let boxes = tilt.fraction(k, position.map(Value::get));
                if boxes.abs() > FARTHEST_BOX {
                    return Err(ErrorKind::TooFarFromTiltedBox {
                        index,
                        position,
                        vector: VECTOR_NAMES[k],
                        boxes: boxes.abs(),
                    }
                    .into());
                }
            }
        }
        Ok(())
    }
}

/// The measurement of all points, in chunks on all workers.
struct Measure {
    /// Number of points.
    len: usize,
}

impl<T: Real> Visitor<T> for Measure {
    type Output = (Bounds, bool);

    fn visit<S: Source<T>>(self, source: S) -> Self::Output {
        (0..self.len.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(self.len);
                let coordinates = PhantomData;
                widest(MeasureChunk {
                    source,
                    range,
                    coordinates,
                })
            })
            .combined(
                || (Bounds::EMPTY, true),
                |a, b| (a.0.union(&b.0), a.1 && b.1),
            )
    }
}

/// The numbers that are measured: `f32` and `f64`.
trait Real: Copy + PartialOrd + Into<f64> + Mul<Output = Self> + AddAssign + Send + Sync {
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;
}

/// Bounds of one chunk, and whether all of it is finite. `min` and `max` skip NaN, so finiteness
/// is found out by a sum of `0·x`, which stays 0 only if every x is finite.
///
/// Coordinates that lie one after the other are taken as one row of numbers, whole vectors at a
/// time; other layouts point by point.
struct MeasureChunk<S, T> {
    /// The positions.
    source: S,
    /// The points of the chunk.
    range: Range<usize>,
    /// The type of the coordinates.
    coordinates: PhantomData<T>,
}

/// Numbers that are looked at together where they lie one after the other: whole points, and whole
/// vectors.
const TOGETHER: usize = 24;

impl<T: Real, S: Source<T>> Loops for MeasureChunk<S, T> {
    type Output = (Bounds, bool);

    #[inline(always)]
    fn run(self) -> Self::Output {
        if let Some(numbers) = self.source.flat(self.range.clone()) {
            let mut seen = RunningExtent::<T, TOGETHER>::NOTHING;
            let (whole, rest) = numbers.as_chunks::<TOGETHER>();
            for numbers in whole {
                seen.look_at(numbers);
            }
            seen.look_at(rest);
            return seen.bounds();
        }
        let mut seen = RunningExtent::<T, 3>::NOTHING;
        for index in self.range {
            seen.look_at(&self.source.position(index));
        }
        seen.bounds()
    }
}

/// Extremes of numbers that belong to the three axes in turn, and a sum that stays zero while all
/// are finite.
struct RunningExtent<T, const N: usize> {
    /// Smallest numbers.
    min: [T; N],
    /// Largest numbers.
    max: [T; N],
    /// Sums of 0·x.
    zero: [T; N],
}

impl<T: Real, const N: usize> RunningExtent<T, N> {
    const NOTHING: Self = Self {
        min: [T::INFINITY; N],
        max: [T::NEG_INFINITY; N],
        zero: [T::ZERO; N],
    };

    /// Looks at up to `N` numbers that begin with an x.
    #[inline(always)]
    fn look_at(&mut self, numbers: &[T]) {
        for place in 0..numbers.len().min(N) {
            let value = numbers[place];
            let (min, max) = (&mut self.min[place], &mut self.max[place]);
            *min = if value < *min { value } else { *min };
            *max = if value > *max { value } else { *max };
            self.zero[place] += value * T::ZERO;
        }
    }

    /// The bounds, and whether all numbers were finite.
    #[inline(always)]
    fn bounds(&self) -> (Bounds, bool) {
        let (mut bounds, mut finite) = (Bounds::EMPTY, true);
        for place in 0..N {
            let axis = place % 3;
            bounds.min[axis] = bounds.min[axis].min(self.min[place].into());
            bounds.max[axis] = bounds.max[axis].max(self.max[place].into());
            finite &= self.zero[place] == T::ZERO;
        }
        (bounds, finite)
    }
}

/// The error that names the first coordinate that is not finite, and counts the points that have
/// one. Called only when there is one, so it may be slow.
fn find_bad(positions: Positions<'_>) -> Error {
    let points = positions.len();
    let is_bad = |index: usize| {
        let position = positions.get_f64(index).unwrap_or_default();
        position.iter().any(|x| !x.is_finite())
    };
    let count = (0..points)
        .into_par_iter()
        .map(|index| usize::from(is_bad(index)))
        .combined(|| 0, |a, b| a + b);
    let index = (0..points).find(|&index| is_bad(index)).unwrap_or(0);
    let position = positions.as_given(index).unwrap_or([Value::Double(0.0); 3]);
    let axis = position.iter().position(|x| !x.get().is_finite());
    let axis = axis.unwrap_or(0);
    Error::from(ErrorKind::NotFinite {
        index,
        axis: axis_name(axis),
        value: position[axis],
        count,
        points,
    })
}
