//! What is written for the pairs of systems, and in which type of index.
//!
//! A program that only needs both ends of every pair should not pay for five arrays, of which
//! images and displacements are the longest. So each quantity is an array of its own, and a search
//! computes those that are asked for.
//!
//! Indices are those of the array of all systems. Libraries that take them as tensors want `i64` or
//! `i32`; [`PairIndex`] is the type that they are written in, so nothing is converted afterwards.
//!
//! **Invariant:** an index type holds every index below its
//! [`MAX_POINTS`](PairIndex::MAX_POINTS); searches refuse more points than that.

/// Which arrays are written for the pairs of systems. Offsets always are, so that nothing more has
/// to be asked for to count neighbours.
///
/// ```
/// use nearfield_cpu::Quantities;
/// let edges = Quantities { targets: true, sources: true, ..Quantities::NONE };
/// assert_eq!(edges, Quantities::EDGES);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quantities {
    /// The point whose neighbour it is: i.
    pub targets: bool,
    /// The neighbour: j.
    pub sources: bool,
    /// By how many vectors of its cell the neighbour is moved: S.
    pub images: bool,
    /// From the point to the image of its neighbour: D = x_j + S·cell − x_i.
    pub displacements: bool,
    /// The length of the displacement: d.
    pub distances: bool,
}

impl Quantities {
    /// Offsets only, which are the counts of neighbours.
    pub const NONE: Self = Self {
        targets: false,
        sources: false,
        images: false,
        displacements: false,
        distances: false,
    };
    /// Lists: the neighbours of every point between its offsets.
    pub const LISTS: Self = Self {
        sources: true,
        ..Self::NONE
    };
    /// Both ends of every pair.
    pub const EDGES: Self = Self {
        targets: true,
        ..Self::LISTS
    };
    /// Everything: `i j S D d`.
    pub const ALL: Self = Self {
        targets: true,
        sources: true,
        images: true,
        displacements: true,
        distances: true,
    };

    /// Returns true if images, displacements or distances are wanted.
    pub(super) fn needs_geometry(self) -> bool {
        self.images || self.displacements || self.distances
    }
}

/// A type of indices: `i32`, `i64` or `u32`. Sealed.
pub trait PairIndex: bytemuck::Pod + Send + Sync + sealed::Sealed {
    /// Name in messages.
    const NAME: &'static str;
    /// The largest number of points that it can name.
    const MAX_POINTS: usize;

    /// An index below [`MAX_POINTS`](Self::MAX_POINTS).
    fn of(index: usize) -> Self;
}

mod sealed {
    /// Implemented here only.
    pub trait Sealed {}
}

/// Implements [`PairIndex`] for an integer.
macro_rules! pair_index {
    ($($integer:ident: $max:expr),*) => {$(
        impl sealed::Sealed for $integer {}

        impl PairIndex for $integer {
            const NAME: &'static str = stringify!($integer);
            const MAX_POINTS: usize = $max;

            #[inline(always)]
            fn of(index: usize) -> Self {
                index as Self
            }
        }
    )*};
}
pair_index!(i32: i32::MAX as usize, u32: u32::MAX as usize, i64: i64::MAX as usize);
