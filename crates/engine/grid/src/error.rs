//! Errors of a grid's input, with the numbers that locate them.
//!
//! A message names the point, the axis and the value, and says how to repair the input. Points are
//! named by the caller's index, so the message can be looked up in the caller's own arrays.
//!
//! # Adding a cause
//!
//! A cause is a variant of [`ErrorKind`] with the first offender, the number of offenders where
//! that is known, and the limit that was passed.
//!
//! **Invariant:** a refusal leaves grids, lattices and bounds as they were.

use crate::{
    Value,
    memory::{Shortage, remedy},
};

/// Why positions, a radius or a domain were refused; [`kind`](Self::kind) tells the causes apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ErrorKind);

impl Error {
    /// The cause, with the numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The same error for points that stand behind `begin` others in the caller's array.
    #[must_use]
    pub fn at(mut self, begin: usize) -> Self {
        if let ErrorKind::NotFinite { index, .. }
        | ErrorKind::TooFarFromBox { index, .. }
        | ErrorKind::TooFarFromTiltedBox { index, .. } = &mut self.0
        {
            *index += begin;
        }
        self
    }
}

/// The causes for which positions, a radius, a domain or an array are refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A coordinate is NaN or infinite.
    #[error(
        "point {index} has {axis} = {value}: coordinates must be finite \
         ({count} of {points} points are not); remove or repair them"
    )]
    NotFinite {
        /// First offending point in the caller's order.
        index: usize,
        /// Axis of its first offending coordinate: `x`, `y` or `z`.
        axis: char,
        /// The coordinate.
        value: Value,
        /// How many points have such a coordinate.
        count: usize,
        /// Points in the set.
        points: usize,
    },
    /// The radius is not a positive finite number whose square is a normal `f32`.
    #[error(
        "radius {0} cannot be searched: it must be finite, positive and between 2^-50 and 2^63 \
         (about 8.9e-16 to 9.2e18); rescale the coordinates if it is not"
    )]
    Radius(Value),
    /// A periodic box length is not a positive finite number.
    #[error("the box length along {axis} is {}: it must be finite and positive", Value::from(*.length))]
    BoxLength {
        /// Axis of the length.
        axis: char,
        /// The length given.
        length: f64,
    },
    /// A box vector is zero, or so long or short that it has no length in `f64`.
    #[error("box vector {name} is {vector:?}: its length must be finite and not zero")]
    BoxVector {
        /// Name of the vector: `a`, `b` or `c`.
        name: char,
        /// Its components.
        vector: [f64; 3],
    },
    /// A tilt was given for the vector of an axis that is open, which has none.
    #[error(
        "box vector {vector} leans by {value} along {along} (tilt {along}{tilted}), but the {tilted} \
         axis is open and has no box vector: make the axis periodic, or the tilt zero"
    )]
    OpenTilt {
        /// The vector that leans: `a`, `b` or `c`.
        vector: char,
        /// Axis along which it leans.
        along: char,
        /// Axis whose vector it is, which is open.
        tilted: char,
        /// Its component along the former.
        value: f64,
    },
    /// The box vectors nearly lie in one plane, or the two that there are in one line.
    #[error(
        "box vector {vector} is {length} long, but the box is only {width} wide in its direction: \
         the vectors nearly lie in one plane, or in one line; describe the box by shorter vectors, multiples of \
         the others taken off"
    )]
    FlatBox {
        /// The vector: `a`, `b` or `c`.
        vector: char,
        /// Its length.
        length: f64,
        /// Distance between the two faces of the box that it connects.
        width: f64,
    },
    /// A point lies so many boxes away that its images cannot be counted.
    #[error(
        "point {index} has {axis} = {value}, more than 2^30 box lengths ({}) from the \
         origin: images are not counted that far; wrap the coordinates",
        Value::from(*.length)
    )]
    TooFarFromBox {
        /// First offending point in the caller's order.
        index: usize,
        /// Axis of the coordinate.
        axis: char,
        /// The coordinate.
        value: Value,
        /// Box length along that axis.
        length: f64,
    },
    /// The same in a tilted box, where several coordinates say how far away a point is.
    #[error(
        "point {index} at {position:?} is {boxes:e} box vectors {vector} from the origin, more \
         than 2^30: images are not counted that far; wrap the coordinates"
    )]
    TooFarFromTiltedBox {
        /// First offending point in the caller's order.
        index: usize,
        /// Its coordinates.
        position: [Value; 3],
        /// The box vector: `a`, `b` or `c`.
        vector: char,
        /// How many of them lead to the point.
        boxes: f64,
    },
    /// The box is so small compared with the radius that a point has too many images.
    #[error(
        "the box measures {} across its {axis} faces, so a radius of {radius} reaches {} images of \
         every point on either side; at most 1000 are searched: enlarge the box to a thousandth of \
         the radius at least (is it in another unit?), leave the axis open, or take a smaller radius",
        Value::from(*.length),
        counted(*.images)
    )]
    TooManyImages {
        /// Axis of the box.
        axis: char,
        /// Distance between the two faces of the box along that axis; the box length, unless the
        /// box is tilted.
        length: f64,
        /// The radius.
        radius: Value,
        /// Images within the radius along that axis, on each side; [`u64::MAX`] for more than
        /// that.
        images: u64,
    },
    /// More points than 32-bit indices can name.
    #[error("{0} points in one set: at most 4294967294 can be indexed; split the set")]
    TooManyPoints(usize),
    /// Positions in double precision were given to a search in single precision.
    #[error(
        "the positions are f64, but the search is in f32 and would have to round them: search in \
         f64, or round them to f32 first"
    )]
    Precision,
    /// A strided view does not fit its bytes.
    #[error(
        "{len} points of {size} bytes at offset {offset}, stride {stride} need {needed} bytes, \
         but the slice holds {bytes}"
    )]
    Stride {
        /// Points asked for.
        len: usize,
        /// Bytes of one position.
        size: usize,
        /// Bytes before the first position.
        offset: usize,
        /// Bytes from one position to the next.
        stride: usize,
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that are there.
        bytes: usize,
    },
    /// The allocator refused.
    #[error("out of memory: {bytes} bytes are needed for {what}; {}", remedy(.what))]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The purpose of the memory.
        what: &'static str,
    },
    /// A permutation and a slice differ in length.
    #[error("a permutation of {expected} points cannot reorder a slice of {found}")]
    PermutationLength {
        /// Points of the permutation.
        expected: usize,
        /// Elements of the slice.
        found: usize,
    },
}

/// A number of images, as a message gives it: exact, or that it is beyond counting.
fn counted(images: u64) -> String {
    if images == u64::MAX {
        "more than 10^19".to_owned()
    } else {
        images.to_string()
    }
}

/// Name of an axis by number.
pub(crate) fn axis_name(axis: usize) -> char {
    ['x', 'y', 'z'][axis]
}

impl From<Shortage> for Error {
    fn from(Shortage { bytes, what }: Shortage) -> Self {
        Self(ErrorKind::OutOfMemory { bytes, what })
    }
}

/// Grows `vec` to hold `len` elements without aborting when memory is short. Memory that grows gets
/// an eighth more, so that a number of points that changes a little every step does not take it
/// anew.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, len: usize, what: &'static str) -> Result<(), Error> {
    let room = match vec.capacity() {
        0 => len,
        held if held < len => len + len / 8,
        _ => return Ok(()),
    };
    vec.try_reserve_exact(room.saturating_sub(vec.len()))
        .map_err(|_| {
            let bytes = len.saturating_mul(size_of::<T>());
            Shortage { bytes, what }.into()
        })
}
