//! A chunk of targets against all sources, tile by tile.
//!
//! A lane of a vector is a target; sources are the same for all lanes. So every target's sum runs
//! over the sources in order whatever the width, and no vector is ever added up across its lanes.
//!
//! The inner loop has no self-test. If the sum of a tile is not finite, a source may coincide with
//! a target, and the tile is recomputed with the test.
//!
//! The sources of a tile are added one by one, and the tile's sum to the total with Kahan's
//! compensation, which bounds the error of long sums and costs a percent. At the points of a row of
//! a grid the parts of d² along y and z are the same, so a tile then holds them in the place of y.
//!
//! # Registers
//!
//! Two vectors of targets, or four on rows, share each source that is loaded and broadcast. More
//! would not fit the registers: a pull keeps three coordinates and three sums per vector. The exact
//! form divides, which leaves nothing to gain by sharing.
//!
//! # Exact and fast
//!
//! The exact form uses correctly rounded roots and divisions, so it gives the same bits
//! everywhere. The fast form refines the hardware's estimate of 1/√x by Newton's step; the factor
//! ½ of the step goes into the weights beforehand ([`Vector::UNIT`]).

use super::sums::Sum;
use crate::simd::{LANES, Simd, Task, vector::Vector};
use nearfield_pairs::{Real, Sources, TILE};
use std::marker::PhantomData;

/// Targets that a task works on: their coordinates and sums stay in the first-level cache.
pub(super) const CHUNK: usize = 512;

/// Sources of a tile, an array per coordinate.
///
/// 128 sources, 64-byte aligned; behind the last source weights are zero, so whole vectors of
/// weights can be scaled.
#[repr(align(64))]
struct Tile<T> {
    /// x, y and z; the parts of d² along y and z instead of y where a row of a grid shares them.
    at: [[T; TILE]; 3],
    /// Weight of every source, scaled.
    weight: [T; TILE],
    /// Number of sources.
    len: usize,
}

/// Numbers of the targets of a chunk, padded to whole vectors.
///
/// Padding lanes hold zeros; their sums are computed and dropped.
#[repr(align(64))]
struct Numbers<T>([T; CHUNK]);

/// The vectors of a precision, by level.
pub(crate) trait Levels: Real {
    /// Smallest positive number, subnormal.
    const LEAST: Self;
    /// Smallest positive normal number.
    const MIN_NORMAL: Self;
    /// The vector.
    type Vector<S: Simd>: Vector<Real = Self>;
}

impl Levels for f32 {
    const LEAST: Self = f32::from_bits(1);
    const MIN_NORMAL: Self = f32::MIN_POSITIVE;
    type Vector<S: Simd> = S::Single;
}

impl Levels for f64 {
    const LEAST: Self = f64::from_bits(1);
    const MIN_NORMAL: Self = f64::MIN_POSITIVE;
    type Vector<S: Simd> = S::Double;
}

/// The targets of a task.
///
/// On a row y and z are the same for all targets, so only x is loaded.
pub(super) enum Targets<'a, T> {
    /// Anywhere.
    Points(&'a [[T; 3]]),
    /// At these x on a row along x, at this y and z.
    Row(&'a [T], [T; 2]),
}

/// At most [`CHUNK`] targets and all sources. `ROW` says that the targets are a row; it is a
/// constant, so that combinations that never occur are not compiled.
pub(super) struct ChunkTask<'a, T, O, const C: usize, const EXACT: bool, const ROW: bool> {
    /// The targets, at most [`CHUNK`].
    pub(super) targets: Targets<'a, T>,
    /// All sources.
    pub(super) sources: Sources<'a, T>,
    /// Squared softening.
    pub(super) softening2: T,
    /// `C` numbers a target.
    pub(super) results: &'a mut [T],
    /// The kind of sum.
    pub(super) sum: PhantomData<O>,
}

impl<T: Levels, O: Sum<C>, const C: usize, const EXACT: bool, const ROW: bool> Task
    for ChunkTask<'_, T, O, C, EXACT, ROW>
{
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.on::<T::Vector<S>>() }
    }
}

impl<T: Levels, O: Sum<C>, const C: usize, const EXACT: bool, const ROW: bool>
    ChunkTask<'_, T, O, C, EXACT, ROW>
{
    /// # Safety
    /// The processor has the level of the vectors.
    #[inline(always)]
    unsafe fn on<V: Vector<Real = T>>(self) {
        let zero = || Numbers([T::default(); CHUNK]);
        let mut at = [zero(), zero(), zero()];
        let mut totals: [Numbers<T>; C] = std::array::from_fn(|_| zero());
        let mut errors: [Numbers<T>; C] = std::array::from_fn(|_| zero());
        let (len, row) = match self.targets {
            Targets::Points(points) => {
                for (n, point) in points.iter().enumerate() {
                    for axis in 0..3 {
                        at[axis].0[n] = point[axis];
                    }
                }
                (points.len(), [T::default(); 2])
            }
            Targets::Row(xs, row) => {
                at[0].0[..xs.len()].copy_from_slice(xs);
                (xs.len(), row)
            }
        };
        let scale = if EXACT {
            T::of(1.0)
        } else {
            T::of(V::UNIT.powi(O::POWER))
        };
        let mut tile = Tile {
            at: [[T::default(); TILE]; 3],
            weight: [T::default(); TILE],
            len: 0,
        };
        let all = self.sources;
        for (points, weights) in all.points.chunks(TILE).zip(all.weights.chunks(TILE)) {
            // SAFETY: the caller guarantees the level; arrays of a tile and of a chunk are as long
            // as their types say, which is a whole number of vectors.
            unsafe {
                stage::<V>(&mut tile, points, weights, scale);
                if ROW {
                    share_row::<V>(&mut tile, row, self.softening2);
                }
                let softening2 = V::splat(self.softening2);
                let mut first = 0;
                // Several vectors share what is loaded of a source; the rest go one by one.
                while first < len {
                    let left = (len - first).div_ceil(V::LANES);
                    // Divisions leave nothing to gain by it.
                    let several = if ROW { 4 } else { 2 };
                    macro_rules! meet {
                        ($vectors:literal) => {
                            meet::<V, O, C, EXACT, ROW, $vectors>(
                                &tile,
                                &at,
                                first,
                                softening2,
                                &mut totals,
                                &mut errors,
                            )
                        };
                    }
                    let vectors = match (!EXACT && left >= several, ROW) {
                        (true, true) => meet!(4),
                        (true, false) => meet!(2),
                        _ => meet!(1),
                    };
                    first += vectors * V::LANES;
                }
            }
        }
        for (n, result) in self.results.chunks_exact_mut(C).enumerate() {
            for c in 0..C {
                result[c] = totals[c].0[n];
            }
        }
    }
}

/// Copies sources to a tile and scales their weights.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn stage<V: Vector>(
    tile: &mut Tile<V::Real>,
    points: &[[V::Real; 3]],
    weights: &[V::Real],
    scale: V::Real,
) {
    for (n, (point, weight)) in points.iter().zip(weights).enumerate() {
        for axis in 0..3 {
            tile.at[axis][n] = point[axis];
        }
        tile.weight[n] = *weight;
    }
    tile.len = points.len();
    for first in (0..TILE).step_by(V::LANES) {
        let weights = tile.weight[first..].as_mut_ptr();
        // SAFETY: a tile is a whole number of vectors, and the caller guarantees the level.
        unsafe { V::load(weights).mul(V::splat(scale)).store(weights) };
    }
}

/// Replaces the sources' y by the parts of d² that all points of a row share.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn share_row<V: Vector>(
    tile: &mut Tile<V::Real>,
    [y, z]: [V::Real; 2],
    softening2: V::Real,
) {
    for first in (0..TILE).step_by(V::LANES) {
        let from = |axis: usize| tile.at[axis][first..].as_ptr();
        // SAFETY: a tile is a whole number of vectors, and the caller guarantees the level.
        unsafe {
            let dy = V::load(from(1)).sub(V::splat(y));
            let dz = V::load(from(2)).sub(V::splat(z));
            let shared = dy.mul_add(dy, dz.mul_add(dz, V::splat(softening2)));
            shared.store(tile.at[1][first..].as_mut_ptr());
        }
    }
}

/// Adds a tile to the sums of `G` vectors of targets; returns `G`.
///
/// # Safety
/// The processor has the vector's level, and `first` is a multiple of its lanes below [`CHUNK`].
#[inline(always)]
unsafe fn meet<
    V: Vector,
    O: Sum<C>,
    const C: usize,
    const EXACT: bool,
    const ROW: bool,
    const G: usize,
>(
    tile: &Tile<V::Real>,
    at: &[Numbers<V::Real>; 3],
    first: usize,
    softening2: V,
    totals: &mut [Numbers<V::Real>; C],
    errors: &mut [Numbers<V::Real>; C],
) -> usize
where
    V::Real: Levels,
{
    const { assert!(CHUNK.is_multiple_of(4 * LANES) && TILE.is_multiple_of(LANES)) };
    // SAFETY: the caller guarantees the level; there are `G` vectors from `first` on, because a
    // chunk is a whole number of the largest groups.
    unsafe {
        let targets: [[V; 3]; G] = std::array::from_fn(|g| {
            std::array::from_fn(|axis| V::load(at[axis].0.as_ptr().add(first + g * V::LANES)))
        });
        let mut sums = tile_sums::<V, O, C, EXACT, ROW, false, G>(tile, &targets, softening2);
        for g in 0..G {
            if !sums[g].iter().all(|sum| sum.is_finite()) {
                let alone = [targets[g]];
                [sums[g]] = tile_sums::<V, O, C, EXACT, ROW, true, 1>(tile, &alone, softening2);
            }
        }
        for g in 0..G {
            for c in 0..C {
                let total = totals[c].0.as_mut_ptr().add(first + g * V::LANES);
                let error = errors[c].0.as_mut_ptr().add(first + g * V::LANES);
                // Kahan's compensated addition.
                let before = V::load(total);
                let added = sums[g][c].sub(V::load(error));
                let after = before.add(added);
                after.store(total);
                after.sub(before).sub(added).store(error);
            }
        }
    }
    G
}

/// Sums of a tile for `G` vectors of targets; with `SKIP`, sources that coincide with a target are
/// left out.
///
/// # Safety
/// The processor has the vector's level.
#[inline(always)]
unsafe fn tile_sums<
    V: Vector,
    O: Sum<C>,
    const C: usize,
    const EXACT: bool,
    const ROW: bool,
    const SKIP: bool,
    const G: usize,
>(
    tile: &Tile<V::Real>,
    targets: &[[V; 3]; G],
    softening2: V,
) -> [[V; C]; G]
where
    V::Real: Levels,
{
    // SAFETY: the caller guarantees the level, and a tile has `len` sources at most `TILE`.
    unsafe {
        let least = V::splat(if EXACT {
            V::Real::LEAST
        } else {
            V::Real::MIN_NORMAL
        });
        let mut sums = [[V::splat(V::Real::default()); C]; G];
        for j in 0..tile.len.min(TILE) {
            let source = |axis: usize| V::splat(*tile.at[axis].get_unchecked(j));
            let w = V::splat(*tile.weight.get_unchecked(j));
            for g in 0..G {
                let dx = source(0).sub(targets[g][0]);
                let (d, d2) = if ROW {
                    ([dx; 3], dx.mul_add(dx, source(1)))
                } else {
                    let dy = source(1).sub(targets[g][1]);
                    let dz = source(2).sub(targets[g][2]);
                    let d2 = dx.mul_add(dx, softening2);
                    ([dx, dy, dz], dz.mul_add(dz, dy.mul_add(dy, d2)))
                };
                O::add::<V, EXACT, SKIP>(&mut sums[g], d, d2, w, least);
            }
        }
        sums
    }
}
