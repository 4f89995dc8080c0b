//! Lays out the pairs of a target's stored list, by loops compiled once per precision and SIMD
//! level.
//!
//! A kernel is generic and is compiled in the program that defines it, together with every loop
//! that it is inlined into. The loops that find the pairs of a list do not depend on the kernel,
//! so they are kept behind a trait object ([`Lists`]) and functions that are not generic
//! ([`Sealed`](sealed::Sealed)); a program with ten kernels compiles them not once.
//!
//! # Two ways
//!
//! Where only the nearest image can be within the radius, sources are taken sixteen at a time and
//! none is dropped; those beyond the radius become infinitely far away. That keeps the order of
//! the list and needs no compression. Otherwise pairs are pushed one by one as the walk finds
//! them, which may be several per source.

use super::{coordinate::PairArithmetic, listed::ListedPairs, pairs::ListWalk};
use crate::{
    error::{Error, ErrorKind},
    pool::CpuBackend,
    simd::{LANES, Simd, Task, level::SimdLevel, with_level},
};
use nearfield_grid::{Grid, SharedMut, parallel::PoolLoops};
use rayon::prelude::*;
use sealed::Sealed;

/// A coordinate that points may be given in: `f32` or `f64`. Sealed.
pub trait Coordinate: PairArithmetic + Sealed {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}

mod sealed {
    use super::{LayOut, SimdLevel};

    /// Implemented by functions that are not generic, so that no other crate compiles the loops.
    #[expect(private_interfaces, reason = "no other crate can call it")]
    pub trait Sealed: Sized {
        /// Lays out the pairs of a target's list.
        fn lay_out(level: SimdLevel, work: LayOut<'_, Self>);
    }
}

/// Lists of targets in either precision, as a trait object that kernels' loops do not depend on.
///
/// Object-safe: a traversal is compiled once for both precisions.
pub(super) trait Lists: Sync {
    /// Lays out the pairs of a target; none where it has no list.
    fn lay_out(&self, level: SimdLevel, target: usize, listed: &mut ListedPairs);
}

impl<T: Coordinate> Lists for ListWalk<'_, T> {
    fn lay_out(&self, level: SimdLevel, target: usize, listed: &mut ListedPairs) {
        let work = LayOut {
            walk: self,
            target,
            listed,
        };
        T::lay_out(level, work);
    }
}

/// One target whose pairs are to be laid out.
pub(crate) struct LayOut<'a, T> {
    /// The lists.
    walk: &'a ListWalk<'a, T>,
    /// The target.
    target: usize,
    /// Where its pairs go.
    listed: &'a mut ListedPairs,
}

impl<T: Coordinate> Task for LayOut<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, target, listed) = (self.walk, self.target, self.listed);
        listed.len = 0;
        match &walk.nearest {
            Some(nearest) => {
                let list = walk.list(target);
                if !listed.grow(list.len()) {
                    return;
                }
                for block in list.chunks(LANES) {
                    listed.push_block(block, &nearest.block(walk.pairs, target, block));
                }
            }
            None => {
                let mut seen = std::mem::take(&mut listed.seen);
                let visited = walk.visit(target, &mut seen, &mut |source, pair| {
                    listed.push(source, pair);
                });
                listed.seen = seen;
                if let Err(shortage) = visited {
                    listed.failed = Some(shortage);
                    return;
                }
            }
        }
        // The lanes behind the last pair count for nothing.
        if !listed.grow(listed.len) {
            return;
        }
        for lane in 0..LANES {
            listed.d2[listed.len + lane] = f32::INFINITY;
        }
    }
}

#[expect(private_interfaces, reason = "no other crate can call it")]
impl Sealed for f32 {
    fn lay_out(level: SimdLevel, work: LayOut<'_, f32>) {
        with_level(level, work);
    }
}

#[expect(private_interfaces, reason = "no other crate can call it")]
impl Sealed for f64 {
    fn lay_out(level: SimdLevel, work: LayOut<'_, f64>) {
        with_level(level, work);
    }
}

impl CpuBackend {
    /// Positions of a grid's points in the caller's order, in the precision of its lattice.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn positions<T: Coordinate>(&self, grid: &Grid) -> Result<Vec<[T; 3]>, Error> {
        let points = grid.points();
        let mut positions = Vec::new();
        positions
            .try_reserve_exact(points.len())
            .map_err(|_| ErrorKind::OutOfMemory {
                bytes: size_of::<[T; 3]>().saturating_mul(points.len()),
                what: "positions in the caller's order",
            })?;
        positions.resize(points.len(), [T::default(); 3]);
        let shared = SharedMut::new(&mut positions);
        self.install_for(points.len(), || {
            (0..points.len())
                .into_par_iter()
                .with_min_len(1 << 12)
                .run(|slot| {
                    let index = points.index()[slot] as usize;
                    // SAFETY: every index stands once among the sorted points, and all are below
                    // their number.
                    unsafe { shared.write(index, T::sorted(points, slot)) };
                });
        });
        Ok(positions)
    }
}
