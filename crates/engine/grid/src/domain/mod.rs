//! The space the points live in: open or periodic along each axis.
//!
//! A straight box has a length per periodic axis. A tilted (triclinic) one has a vector per
//! periodic axis, as molecular dynamics uses them; [`tilt`] holds the vectors and their inverse.
//! Straight boxes do not pass through any of that: a branch on `tilt` is all they pay.
//!
//! # Images
//!
//! Coordinates stay as the caller gave them, inside the box or not. A pair is seen through an
//! image n, and the contract adds the image vector S = n·L to the difference of the coordinates. S
//! is computed in `f64` and rounded once per component, so all backends add the same number.
//! Wrapping coordinates instead would round them, and would change results when a point crosses a
//! face.
//!
//! **Invariant:** opposite images have exactly opposite vectors, so a pair has the same distance
//! from either side.
//!
//! # Open axes of tilted boxes
//!
//! Where one or two vectors are given, the domain repeats along them only. If they lean along an
//! open axis, the directions without images are not those of coordinates: the box is *slanted*,
//! unit vectors across the given ones stand in for the open axes, and cells along those are those
//! of an open domain.
//!
//! # Boxes that lean far
//!
//! The vectors are used as given, unless [`Domain::reduced`] is asked for. A box that leans by
//! several of its lengths is then enumerated by short vectors of the same lattice; [`reduce`] has
//! the method. `lengths`, `vectors`, `inverse` and all counts of boxes are those of the short
//! vectors then. Image vectors are computed from the given ones all the same, and results name
//! images by counts of the given vectors ([`Domain::given_image`]).

pub(crate) mod images;
mod reduce;
pub(crate) mod tilt;

use crate::{Error, ErrorKind, error::axis_name};
use reduce::Transform;
use tilt::{Tilt, VECTOR_NAMES, along, norm, sum};

/// Boxes whose vectors are longer than this many times the distance between the faces that they
/// connect are enumerated by shorter ones. Boxes that simulations use lie far below: a hexagonal
/// one has 1.2, and one that leans by half of its lengths at most 1.6.
const MAX_LEAN: f64 = 4.0;

/// Open or periodic along each axis; a periodic axis has a box vector, which lies along the axis
/// in a straight box and leans away from it in a tilted (triclinic) one.
///
/// Coordinates need not lie inside the box: they are used unwrapped, and the image vector of a
/// pair is computed in `f64` and rounded once to `f32` ([`image_vector`](Self::image_vector)).
///
/// `Copy`, because it is passed along with every search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    /// Length of the vector of every periodic axis.
    lengths: [Option<f64>; 3],
    /// Present when some box vector does not point along its own axis.
    tilt: Option<Tilt>,
    /// Present when the vectors are short ones of a lattice that was given by others.
    given: Option<GivenBox>,
}

/// The vectors that a box was given by, where it is enumerated by shorter ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GivenBox {
    /// The given vectors with their inverse.
    pub(crate) tilt: Tilt,
    /// How many given vectors make up each short one.
    transform: Transform,
}

impl GivenBox {
    /// Numbers of given vectors that are as many short ones.
    ///
    /// Costs nine products, in loops over candidates that lie in different boxes, and once per
    /// image elsewhere.
    ///
    /// Exact: every product and sum is a whole number below 2⁵³. Zeros are not below zero, as those
    /// of counts that are given as whole numbers are not.
    #[inline(always)]
    fn boxes(&self, short: [f64; 3]) -> [f64; 3] {
        let [a, b, c] = self.transform;
        std::array::from_fn(|l| {
            short[0] * a[l] as f64 + short[1] * b[l] as f64 + short[2] * c[l] as f64 + 0.0
        })
    }
}

impl Domain {
    /// All of space: any finite coordinate, no images.
    pub const OPEN: Self = Self {
        lengths: [None; 3],
        tilt: None,
        given: None,
    };

    /// A domain that is periodic with the given length where there is one, open elsewhere.
    ///
    /// # Errors
    /// [`ErrorKind::BoxLength`] when a length is NaN, infinite, zero or negative.
    pub fn new(lengths: [Option<f64>; 3]) -> Result<Self, Error> {
        for (axis, length) in lengths.iter().enumerate() {
            if let Some(length) = *length
                && !(length.is_finite() && length > 0.0)
            {
                return Err(ErrorKind::BoxLength {
                    axis: axis_name(axis),
                    length,
                }
                .into());
            }
        }
        Ok(Self {
            lengths,
            tilt: None,
            given: None,
        })
    }

    /// A box in the form that LAMMPS and GROMACS use: vectors a = (lx, 0, 0), b = (xy, ly, 0) and
    /// c = (xz, yz, lz), from the lengths along the periodic axes and the tilts `[xy, xz, yz]`.
    /// A tilt may be larger than the box.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new) and of [`from_vectors`](Self::from_vectors), and
    /// [`ErrorKind::OpenTilt`] when the vector that is tilted is that of an open axis, which has
    /// none.
    ///
    /// LAMMPS writes the tilts as `xy xz yz`, in this order.
    pub fn triclinic(lengths: [Option<f64>; 3], tilts: [f64; 3]) -> Result<Self, Error> {
        Self::new(lengths)?;
        let [xy, xz, yz] = tilts;
        for (tilted, along, value) in [(1, 0, xy), (2, 0, xz), (2, 1, yz)] {
            if lengths[tilted].is_none() && value != 0.0 {
                return Err(ErrorKind::OpenTilt {
                    vector: VECTOR_NAMES[tilted],
                    along: axis_name(along),
                    tilted: axis_name(tilted),
                    value,
                }
                .into());
            }
        }
        let [lx, ly, lz] = lengths;
        Self::from_vectors([
            lx.map(|lx| [lx, 0.0, 0.0]),
            ly.map(|ly| [xy, ly, 0.0]),
            lz.map(|lz| [xz, yz, lz]),
        ])
    }

    /// A box spanned by any vectors a, b and c, one for each periodic axis, `None` where the axis
    /// is open. They need not form a triangular matrix nor a right-handed system. Where axes are
    /// open, the one or two vectors may point anywhere: the domain repeats along them, and has no
    /// images in the directions across them.
    ///
    /// # Errors
    /// [`ErrorKind::BoxVector`](crate::ErrorKind::BoxVector) when a vector is zero or not finite,
    /// and [`ErrorKind::FlatBox`](crate::ErrorKind::FlatBox) when they nearly lie in one plane, or
    /// two of them in one line.
    pub fn from_vectors(vectors: [Option<[f64; 3]>; 3]) -> Result<Self, Error> {
        let points_along = |k: usize, v: [f64; 3]| v[k] > 0.0 && v == along(k, v[k]);
        if (0..3).all(|k| vectors[k].is_none_or(|v| points_along(k, v))) {
            return Self::new(std::array::from_fn(|k| vectors[k].map(|v| v[k])));
        }
        for (k, vector) in vectors.into_iter().enumerate() {
            let Some(vector) = vector else { continue };
            if !norm(vector).is_normal() {
                return Err(ErrorKind::BoxVector {
                    name: VECTOR_NAMES[k],
                    vector,
                }
                .into());
            }
        }
        Ok(Self {
            lengths: vectors.map(|vector| vector.map(norm)),
            tilt: Some(Tilt::of(vectors)?),
            given: None,
        })
    }

    /// The same domain, enumerated by short vectors of its lattice where the given ones lean so far
    /// that searches by them would be slow: where one is more than four times as long as the
    /// distance between the faces that it connects. Other domains are returned as they are.
    ///
    /// The same pairs are found, with the same bits. Lists may be in another order, and
    /// [`vectors`](Self::vectors), [`lengths`](Self::lengths), [`inverse`](Self::inverse) and
    /// counts of boxes are those of the short vectors. Backends that compute image vectors
    /// themselves cannot search such a domain.
    pub fn reduced(self) -> Self {
        let (Some(tilt), None) = (self.tilt, self.given) else {
            return self;
        };
        if reduce::stretch(self.vectors(), tilt.inverse) <= MAX_LEAN {
            return self;
        }
        let short = || {
            let (vectors, transform) = reduce::short_vectors(self.vectors())?;
            Some((vectors, transform, Tilt::of(vectors).ok()?.of_rounded()))
        };
        // None where a vector is that of too many others, which no box of a simulation is.
        short().map_or(self, |(vectors, transform, short)| Self {
            lengths: vectors.map(|vector| vector.map(norm)),
            tilt: Some(short),
            given: Some(GivenBox { tilt, transform }),
        })
    }

    /// Returns true if the domain is enumerated by other vectors than those it was given by.
    ///
    /// Backends that cannot search such a domain ask this first.
    pub fn is_reduced(&self) -> bool {
        self.given.is_some()
    }

    /// The image in numbers of the vectors as given. Others count in the vectors that the domain
    /// is enumerated by, which are the same unless it is [reduced](Self::reduced).
    #[inline]
    pub fn given_image(&self, image: [i64; 3]) -> [i64; 3] {
        match &self.given {
            None => image,
            Some(given) => given
                .boxes(image.map(|n| n as f64))
                .map(|boxes| boxes as i64),
        }
    }

    /// The vectors as given, where the domain is enumerated by others.
    ///
    /// The lattice bounds with them what rounding adds to image vectors.
    pub(crate) fn given(&self) -> Option<&GivenBox> {
        self.given.as_ref()
    }

    /// Length of the box vector of every periodic axis, `None` where the axis is open.
    pub fn lengths(&self) -> [Option<f64>; 3] {
        self.lengths
    }

    /// The lengths of a box whose vectors lie along the axes, 0 along open ones; `None` if a vector
    /// does not. Image vectors are then counts times lengths.
    #[inline(always)]
    pub fn straight_lengths(&self) -> Option<[f64; 3]> {
        let [x, y, z] = self.lengths;
        let length = Option::unwrap_or_default;
        (self.tilt.is_none()).then(|| [length(x), length(y), length(z)])
    }

    /// Box vector of every periodic axis, `None` where the axis is open.
    pub fn vectors(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|k| {
            let straight = self.lengths[k].map(|length| along(k, length));
            match &self.tilt {
                Some(tilt) => straight.map(|_| tilt.vectors[k]),
                None => straight,
            }
        })
    }

    /// Returns true if any axis is periodic.
    pub fn is_periodic(&self) -> bool {
        self.lengths.iter().any(Option::is_some)
    }

    /// Returns true if some box vector does not point along its own axis.
    pub fn is_tilted(&self) -> bool {
        self.tilt.is_some()
    }

    /// Returns true if some axis is open and a box vector leans along it, so that the directions
    /// without images are not those of coordinates.
    pub fn is_slanted(&self) -> bool {
        self.tilt.as_ref().is_some_and(|tilt| tilt.slanted)
    }

    /// The image vector of image `n`, computed in `f64` and rounded once per component; zero along
    /// open axes.
    ///
    /// In a straight box that is `n·length` per axis. In a tilted one every component is
    /// `(n_a·a + n_b·b) + n_c·c`, with each of these operations rounded to `f64` in this order
    /// and none of them fused.
    ///
    /// Counts may need more than 32 bits: two points 2³⁰ boxes on either side of the origin are 2³¹
    /// boxes apart.
    #[inline]
    pub fn image_vector(&self, n: [impl Into<i64>; 3]) -> [f32; 3] {
        self.image_vector_f64(n).map(|component| component as f32)
    }

    /// The same without the last rounding, for searches in double precision.
    #[inline]
    pub fn image_vector_f64(&self, n: [impl Into<i64>; 3]) -> [f64; 3] {
        // Exact: counts are far below 2⁵³.
        // Spelt out: `map` is not always inlined, and this is asked for every run of candidates.
        let [x, y, z] = n;
        let n = [x.into() as f64, y.into() as f64, z.into() as f64];
        let Some(tilt) = &self.tilt else {
            let mut vector = [0.0; 3];
            for axis in 0..3 {
                if let Some(length) = self.lengths[axis] {
                    vector[axis] = n[axis] * length;
                }
            }
            return vector;
        };
        match &self.given {
            None => self.combined(tilt, n),
            Some(given) => self.combined(&given.tilt, given.boxes(n)),
        }
    }

    /// The vector of an image in numbers of the vectors as given
    /// ([`given_image`](Self::given_image)), bit for bit that of
    /// [`image_vector_f64`](Self::image_vector_f64).
    pub fn given_image_vector_f64(&self, n: [i64; 3]) -> [f64; 3] {
        match &self.given {
            None => self.image_vector_f64(n),
            Some(given) => self.combined(&given.tilt, n.map(|n| n as f64)),
        }
    }

    /// The sum of `n` times each periodic vector of `tilt`.
    #[inline(always)]
    fn combined(&self, tilt: &Tilt, n: [f64; 3]) -> [f64; 3] {
        // An open axis adds no zero below zero, as the negative parts of a vector across the others
        // would.
        let (mut vectors, mut boxes) = ([[0.0; 3]; 3], [0.0; 3]);
        for k in 0..3 {
            if self.lengths[k].is_some() {
                (vectors[k], boxes[k]) = (tilt.vectors[k], n[k]);
            }
        }
        sum(vectors, boxes)
    }

    /// The image vectors of many images at once, in either precision.
    ///
    /// Points that lie in many boxes are seen through an image each, and a search moves all of them
    /// at once with this. The vector of the image with the counts `counts[axis][k] + more[axis]`
    /// goes to `to[axis][k]`. Bit for bit they are those of
    /// [`image_vector`](Self::image_vector) and [`image_vector_f64`](Self::image_vector_f64).
    ///
    /// Counts are whole numbers below 2²⁴, with `more` added too, so `f32` holds them exactly; they
    /// are kept in `f32` because candidates are moved by them as well. The arrays are as long as
    /// the shortest of them. Loops are left to the compiler to vectorise, so this is inlined into
    /// code that is compiled for a level.
    #[inline(always)]
    pub fn image_vectors<T: Rounded>(
        &self,
        counts: [&[f32]; 3],
        more: [f32; 3],
        to: [&mut [T]; 3],
    ) {
        let [x, y, z] = to;
        let [nx, ny, nz] = counts;
        let Some(tilt) = &self.tilt else {
            for (axis, (counts, to)) in [(nx, x), (ny, y), (nz, z)].into_iter().enumerate() {
                match self.lengths[axis] {
                    None => to.fill(T::rounded(0.0)),
                    Some(length) => {
                        for (to, n) in to.iter_mut().zip(counts) {
                            *to = T::rounded(f64::from(n + more[axis]) * length);
                        }
                    }
                }
            }
            return;
        };
        if let Some(given) = &self.given {
            for (((((x, y), z), na), nb), nc) in x.iter_mut().zip(y).zip(z).zip(nx).zip(ny).zip(nz)
            {
                let n = [na + more[0], nb + more[1], nc + more[2]].map(f64::from);
                let open = |k: usize| self.lengths[k].is_none();
                let vectors = std::array::from_fn(|k| match open(k) {
                    true => [0.0; 3],
                    false => given.tilt.vectors[k],
                });
                let vector = sum(vectors, given.boxes(n));
                [*x, *y, *z] = vector.map(T::rounded);
            }
            return;
        }
        let mut vectors = [[0.0; 3]; 3];
        for k in 0..3 {
            if self.lengths[k].is_some() {
                vectors[k] = tilt.vectors[k];
            }
        }
        for (axis, to) in [x, y, z].into_iter().enumerate() {
            let [a, b, c] = [vectors[0][axis], vectors[1][axis], vectors[2][axis]];
            for (((to, na), nb), nc) in to.iter_mut().zip(nx).zip(ny).zip(nz) {
                // Spelt out: `map` is not always inlined.
                let (na, nb) = (f64::from(na + more[0]), f64::from(nb + more[1]));
                let nc = f64::from(nc + more[2]);
                *to = T::rounded((na * a + nb * b) + nc * c);
            }
        }
    }

    /// Per periodic axis the vector whose dot product with a position is the number of box vectors
    /// of that axis that lead there; its length is one over the width of the box across that axis.
    ///
    /// A displacement within r is at most r times the length of such a vector long along that
    /// axis.
    pub fn inverse(&self) -> [Option<[f64; 3]>; 3] {
        std::array::from_fn(|axis| {
            let length = self.lengths[axis]?;
            Some(match &self.tilt {
                Some(tilt) => tilt.inverse[axis],
                None => std::array::from_fn(|k| if k == axis { 1.0 / length } else { 0.0 }),
            })
        })
    }

    /// The vectors and their inverse, when the box is tilted.
    #[inline(always)]
    pub(crate) fn tilt(&self) -> Option<&Tilt> {
        self.tilt.as_ref()
    }
}

/// A number that an `f64` is rounded to: `f32`, or `f64` itself, which stays as it is.
///
/// Image vectors are computed in `f64` and rounded once, so the same loop serves both precisions.
pub trait Rounded: Copy {
    /// The nearest number to `value`.
    fn rounded(value: f64) -> Self;
}

impl Rounded for f32 {
    #[inline(always)]
    fn rounded(value: f64) -> Self {
        value as f32
    }
}

impl Rounded for f64 {
    #[inline(always)]
    fn rounded(value: f64) -> Self {
        value
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::OPEN
    }
}
