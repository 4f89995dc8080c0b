//! The trait that a pair interaction implements.
//!
//! # Evaluation
//!
//! A backend evaluates [`PairKernel::pair`] for sixteen candidates at a time and drops the
//! contributions of those beyond the radius, because a select is cheaper than a branch. So a
//! kernel must not panic, and NaN or infinity beyond the radius is harmless.
//!
//! # Sums
//!
//! Contributions are combined channel by channel by [`Reduce`], in a fixed order that depends on
//! the sorted points and not on threads or vectors. [`PairKernel::PACKED`] and
//! [`PairKernel::SYMMETRIC`] choose other algorithms with another order: results differ in the
//! last bits, and are reproducible within each.
//!
//! # Both points at once
//!
//! A kernel that sets [`PairKernel::SYMMETRIC`] says that evaluating a pair once for both points
//! costs less than evaluating it twice. The typical case is a force that is equal and opposite.

use crate::{Channels, Cuda};

/// Geometry of a pair that is within the radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// From the target to the source, x_j − x_i, periodic image included.
    pub d: [f32; 3],
    /// Squared length of `d`, at most r²; 0 for coincident points.
    pub d2: f32,
}

impl Pair {
    /// The pair as the source sees it.
    #[inline(always)]
    pub fn reversed(self) -> Self {
        let [x, y, z] = self.d;
        Self {
            d: [-x, -y, -z],
            d2: self.d2,
        }
    }
}

/// How the contributions of a target's neighbours are combined, channel by channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Added up; 0 without neighbours.
    Sum,
    /// Smallest; +∞ without neighbours.
    Min,
    /// Largest; −∞ without neighbours.
    Max,
}

impl Reduce {
    /// The result of a target without neighbours.
    #[inline(always)]
    pub const fn identity(self) -> f32 {
        match self {
            Self::Sum => 0.0,
            Self::Min => f32::INFINITY,
            Self::Max => f32::NEG_INFINITY,
        }
    }

    /// Combines two contributions.
    #[inline(always)]
    pub fn combine(self, a: f32, b: f32) -> f32 {
        match self {
            Self::Sum => a + b,
            Self::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Self::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

/// An interaction between a target and the sources within the radius, itself left out.
///
/// Fields of the kernel (smoothing length, time step, coefficients) are its uniforms.
///
/// ```
/// use nearfield_pairs::{Pair, PairKernel};
///
/// /// Sum of masses weighted by 1 − (d/r)².
/// struct Occupancy { radius: f32 }
///
/// impl PairKernel for Occupancy {
///     type Target = ();
///     type Source = f32; // mass
///     type Output = f32;
///
///     #[inline(always)]
///     fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
///         mass * (1.0 - pair.d2 / (self.radius * self.radius))
///     }
/// }
/// ```
pub trait PairKernel: Sync {
    /// The values read per target, in the order of the target fields.
    type Target: Channels;
    /// The values read per source, in the order of the source fields.
    type Source: Channels;
    /// The contribution of a pair and the result of a target, at most 16 channels. A traversal
    /// with a kernel that gives more does not compile; use two kernels.
    type Output: Channels;

    /// How contributions are combined.
    const REDUCE: Reduce = Reduce::Sum;

    /// Whether neighbours are packed together before the kernel is evaluated.
    ///
    /// Packing costs a little per candidate and channel, and saves evaluating the kernel for the
    /// two thirds or so of the candidates that turn out not to be neighbours. It pays for kernels
    /// that divide or take several square roots; the default takes it for those that read more than
    /// two channels per source. Which one is chosen changes the order of summation.
    const PACKED: bool = Self::Source::COUNT > 2;

    /// The contribution of one source to one target.
    ///
    /// Mark it `#[inline(always)]`, and prefer `max`, `min` and multiplications over branches and
    /// library functions. It may also be evaluated for candidates beyond the radius, whose results
    /// are thrown away, so it must not panic; NaN and infinity are harmless there.
    fn pair(&self, pair: Pair, target: Self::Target, source: Self::Source) -> Self::Output;

    /// The distance beyond which [`pair`](Self::pair) gives nothing, in the unit of the
    /// coordinates.
    ///
    /// A kernel whose support exceeds the search radius would lose the terms in between without a
    /// word, so engines refuse it. `None`, the default, says that nothing is known, and infinity
    /// that there is no such distance: the kernel is then cut off at the search radius on purpose,
    /// as interactions of molecules usually are.
    fn support(&self) -> Option<f32> {
        None
    }

    /// The same function as CUDA C++, for the GPU backend; `None`, the default, leaves the kernel
    /// to the CPU backend.
    fn cuda(&self) -> Option<Cuda> {
        None
    }

    /// Whether [`symmetric`](Self::symmetric) costs less than two calls of [`pair`](Self::pair).
    /// Pairs of points of one set may then be evaluated once for both points (Newton's third law),
    /// which changes the order of summation.
    const SYMMETRIC: bool = false;

    /// The contributions of both points of a pair to each other: of j to i, as
    /// [`pair`](Self::pair) gives it for `pair`, and of i to j, for the pair
    /// [`reversed`](Pair::reversed). `i` and `j` hold the values of a point as a target and as a
    /// source.
    ///
    /// Kernels that set [`SYMMETRIC`](Self::SYMMETRIC) share the computation between the two here.
    #[inline(always)]
    fn symmetric(
        &self,
        pair: Pair,
        i: (Self::Target, Self::Source),
        j: (Self::Target, Self::Source),
    ) -> (Self::Output, Self::Output) {
        (
            self.pair(pair, i.0, j.1),
            self.pair(pair.reversed(), j.0, i.1),
        )
    }
}
