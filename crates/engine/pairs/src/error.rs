//! Errors of the numbers of a kernel, a field or a grid, and the limits that messages name.

/// Kinds of atoms that a table of coefficients may hold.
pub const MAX_TYPES: usize = 8;

/// Why the numbers of a kernel, a field or a grid were refused; [`kind`](Self::kind) tells the
/// causes apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }
}

/// The causes for which the numbers of a kernel, a field or a grid are refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An exponent of a [`PowerLaw`](crate::PowerLaw) that is too small or too large.
    #[error("the exponent {0} is not in 2 to 63")]
    Exponent(u32),
    /// A floor of a [`PowerLaw`](crate::PowerLaw) that is not positive.
    #[error("the floor {0} is not a positive distance")]
    Floor(f32),
    /// Coefficients of a [`PowerLaw`](crate::PowerLaw) that are not finite.
    #[error("the coefficients {0} and {1} are not finite")]
    PowerLaw(f32, f32),
    /// Too many kinds of atoms for [`LennardJones`](crate::LennardJones), or none.
    #[error("{0} kinds of atoms; a table holds 1 to {MAX_TYPES}")]
    Types(usize),
    /// Coefficients that are not finite or negative, or a sigma of 0 where epsilon is not.
    #[error(
        "types {} and {}: epsilon {epsilon} and sigma {sigma}; both must be finite and not \
         negative, and sigma positive unless epsilon is 0 too, which means no interaction",
        .types[0], .types[1]
    )]
    LennardJones {
        /// The two kinds of atoms.
        types: [usize; 2],
        /// Depth of the well, an energy.
        epsilon: f64,
        /// Where the energy is 0, a distance.
        sigma: f64,
    },
    /// A cut-off that is not a positive number.
    #[error("the cut-off {0} is not a positive number")]
    Cutoff(f64),
    /// A stride of a [`Field`](crate::Field) that no values can have: see [`Field::strided`].
    ///
    /// [`Field::strided`]: crate::Field::strided
    #[error(
        "a field of {channels} channels with a stride of {stride} bytes: it needs at least one \
         channel, and a stride that is a multiple of 4 bytes and holds all channels"
    )]
    FieldStride {
        /// Values per point.
        channels: usize,
        /// Bytes from one point's values to the next point's.
        stride: usize,
    },
    /// A strided [`Field`](crate::Field) does not fit its bytes.
    #[error(
        "a field of {len} points with {channels} values of f32 at offset {offset}, stride \
         {stride} needs {needed} bytes, but the slice holds {bytes}"
    )]
    FieldBytes {
        /// Points asked for.
        len: usize,
        /// Values per point.
        channels: usize,
        /// Bytes before the first value.
        offset: usize,
        /// Bytes from one point's values to the next point's.
        stride: usize,
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that are there.
        bytes: usize,
    },
    /// The distance between the points of a [`SampleGrid`](crate::SampleGrid) is zero, negative or
    /// not finite.
    #[error("the grid's spacing is {0}: it must be finite and positive")]
    GridSpacing(f64),
    /// The first point of a [`SampleGrid`](crate::SampleGrid) is nowhere.
    #[error("the grid's origin is ({}, {}, {}): coordinates must be finite", .0[0], .0[1], .0[2])]
    GridOrigin([f64; 3]),
    /// A [`SampleGrid`](crate::SampleGrid) has no point.
    #[error("a grid of {} x {} x {} points has none: every axis needs at least one", .0[0], .0[1], .0[2])]
    EmptyGrid([usize; 3]),
    /// A [`SampleGrid`](crate::SampleGrid) has more points than can be counted.
    #[error("a grid of {} x {} x {} points has more than 2^40", .0[0], .0[1], .0[2])]
    LargeGrid([usize; 3]),
}
