//! A view of the caller's coordinates: packed, planar, or strided inside the caller's structs.
//!
//! Callers keep positions in many layouts, and copying a million points costs as much as sorting
//! them. So a view holds the caller's slice and the layout, and loops are compiled for each layout
//! through a [`Visitor`]. Points in the plane have z = 0.
//!
//! **Invariant:** a view never reads outside its slice. A strided view is checked once, when it is
//! made; its reads are unaligned.
//!
//! # Visitors
//!
//! A loop over positions is generic over a [`Source`], and [`Positions::with`] calls it with the
//! concrete layout, so it is compiled for packed, planar and strided points and has no branch per
//! point. For `f64` it is compiled for packed points and once for all other layouts, which saves
//! code where speed matters less.
//!
//! # Strided views
//!
//! A solver that keeps particles as structs hands over its memory as bytes, with the offset of the
//! position and the size of a struct. The view checks once that the last position ends within the
//! bytes; no alignment is needed.

use crate::{Error, ErrorKind, Precision, Value, memory::with_room};
use bytemuck::Pod;
use glam::{DVec2, DVec3, Vec2, Vec3};
use std::{borrow::Cow, marker::PhantomData, ops::Range};

/// Borrowed positions of a point set: `len` points of three `f32` or three `f64`.
///
/// Made from `&[[f32; 3]]`, `&[glam::Vec3]`, `&[[f32; 2]]` or `&[glam::Vec2]` (then z = 0), or the
/// same in `f64` (`glam::DVec3`, `glam::DVec2`), by `into()`, or from any struct array by
/// [`strided`](Self::strided) and [`strided_f64`](Self::strided_f64). Nothing is copied.
///
/// A search in double precision takes both, one in single precision refuses `f64`
/// ([`ErrorKind::Precision`]) rather than round it.
///
/// Positions in `f64` are never rounded in silence: a search in single precision refuses them by
/// name.
#[derive(Debug, Clone, Copy)]
pub struct Positions<'a>(Layout<'a>);

/// The layouts, in either precision.
#[derive(Debug, Clone, Copy)]
enum Layout<'a> {
    Packed(&'a [[f32; 3]]),
    Planar(&'a [[f32; 2]]),
    Strided(Strided<'a, f32>),
    PackedDouble(&'a [[f64; 3]]),
    PlanarDouble(&'a [[f64; 2]]),
    StridedDouble(Strided<'a, f64>),
}

/// Positions at equal distances in bytes.
#[derive(Debug)]
struct Strided<'a, T> {
    /// The caller's memory from the first position on.
    bytes: &'a [u8],
    /// Bytes from one position to the next.
    stride: usize,
    /// Number of positions.
    len: usize,
    /// The type of the coordinates.
    coordinates: PhantomData<T>,
}

impl<T> Clone for Strided<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Strided<'_, T> {}

impl<'a, T> Strided<'a, T> {
    /// Checks that the last position ends within `bytes`.
    fn new(bytes: &'a [u8], offset: usize, stride: usize, len: usize) -> Result<Self, Error> {
        let size = size_of::<[T; 3]>();
        let needed = match len {
            0 => Some(0),
            _ => (len - 1)
                .checked_mul(stride)
                .and_then(|span| span.checked_add(offset)?.checked_add(size)),
        };
        match needed {
            Some(needed) if needed <= bytes.len() => Ok(Self {
                bytes: if len == 0 { &[] } else { &bytes[offset..] },
                stride,
                len,
                coordinates: PhantomData,
            }),
            _ => Err(ErrorKind::Stride {
                len,
                size,
                offset,
                stride,
                needed: needed.unwrap_or(usize::MAX),
                bytes: bytes.len(),
            }
            .into()),
        }
    }
}

impl<'a> Positions<'a> {
    /// `len` positions of three `f32` each, the first at byte `offset`, each `stride` bytes after
    /// the one before; no alignment is needed.
    ///
    /// ```
    /// use nearfield_grid::Positions;
    /// #[repr(C)]
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// struct Particle { mass: f32, position: [f32; 3] }
    /// let particles = [Particle { mass: 1.0, position: [0.5, 0.25, 0.0] }; 4];
    /// let view = Positions::strided(bytemuck::cast_slice(&particles), 4, 16, 4)?;
    /// assert_eq!(view.get(3), Some([0.5, 0.25, 0.0]));
    /// # Ok::<(), nearfield_grid::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Stride`] when the last position would end behind `bytes`.
    pub fn strided(
        bytes: &'a [u8],
        offset: usize,
        stride: usize,
        len: usize,
    ) -> Result<Self, Error> {
        Strided::new(bytes, offset, stride, len).map(|view| Self(Layout::Strided(view)))
    }

    /// `len` positions of three `f64` each, otherwise as [`strided`](Self::strided).
    ///
    /// # Errors
    /// [`ErrorKind::Stride`] when the last position would end behind `bytes`.
    pub fn strided_f64(
        bytes: &'a [u8],
        offset: usize,
        stride: usize,
        len: usize,
    ) -> Result<Self, Error> {
        Strided::new(bytes, offset, stride, len).map(|view| Self(Layout::StridedDouble(view)))
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match self.0 {
            Layout::Packed(points) => points.len(),
            Layout::Planar(points) => points.len(),
            Layout::Strided(points) => points.len,
            Layout::PackedDouble(points) => points.len(),
            Layout::PlanarDouble(points) => points.len(),
            Layout::StridedDouble(points) => points.len,
        }
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The precision the coordinates are given in.
    pub fn precision(&self) -> Precision {
        match self.0 {
            Layout::Packed(_) | Layout::Planar(_) | Layout::Strided(_) => Precision::Single,
            _ => Precision::Double,
        }
    }

    /// Refuses coordinates that a search in `precision` would have to round.
    ///
    /// # Errors
    /// [`ErrorKind::Precision`] for `f64` in a search in single precision.
    ///
    /// Rounding in silence would move points by up to 2⁻²⁵ of their coordinates and change results
    /// near the radius.
    pub fn check_precision(&self, precision: Precision) -> Result<(), Error> {
        match (self.precision(), precision) {
            (Precision::Double, Precision::Single) => Err(ErrorKind::Precision.into()),
            _ => Ok(()),
        }
    }

    /// Position of point `index`, if there is such a point; rounded when it was given in `f64`.
    pub fn get(&self, index: usize) -> Option<[f32; 3]> {
        self.get_f64(index).map(|at| at.map(|x| x as f32))
    }

    /// Position of point `index`, if there is such a point.
    pub fn get_f64(&self, index: usize) -> Option<[f64; 3]> {
        (index < self.len()).then(|| self.with_f64(At(index)))
    }

    /// Coordinates of point `index` in the precision they were given in, if there is such a point.
    pub(crate) fn as_given(&self, index: usize) -> Option<[Value; 3]> {
        let position = self.get_f64(index)?;
        Some(match self.precision() {
            Precision::Single => position.map(|x| Value::Single(x as f32)),
            Precision::Double => position.map(Value::Double),
        })
    }

    /// All positions side by side, copied only where they are not so already.
    ///
    /// # Errors
    /// [`ErrorKind::Precision`] when the coordinates are `f64`, and [`ErrorKind::OutOfMemory`].
    ///
    /// For backends that need three numbers per point side by side, such as a GPU's upload.
    pub fn to_packed(&self) -> Result<Cow<'a, [[f32; 3]]>, Error> {
        match self.0 {
            Layout::Packed(points) => Ok(Cow::Borrowed(points)),
            _ => self.with(Pack(self.len()))?.map(Cow::Owned),
        }
    }

    /// As [`to_packed`](Self::to_packed) in `f64`, to which `f32` is converted.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn to_packed_f64(&self) -> Result<Cow<'a, [[f64; 3]]>, Error> {
        match self.0 {
            Layout::PackedDouble(points) => Ok(Cow::Borrowed(points)),
            _ => self.with_f64(Pack(self.len())).map(Cow::Owned),
        }
    }

    /// The bytes of strided positions from the first one on, in their own
    /// [precision](Self::precision), and the stride. None of other layouts.
    ///
    /// For backends that copy positions by several threads, which [`to_packed`](Self::to_packed)
    /// does not.
    pub fn strided_bytes(&self) -> Option<(&'a [u8], usize)> {
        match self.0 {
            Layout::Strided(points) => Some((points.bytes, points.stride)),
            Layout::StridedDouble(points) => Some((points.bytes, points.stride)),
            _ => None,
        }
    }

    /// Runs `visitor` with the concrete layout, so that its loops are compiled for each.
    ///
    /// # Errors
    /// [`ErrorKind::Precision`] when the coordinates are `f64`.
    pub(crate) fn with<V: Visitor<f32>>(&self, visitor: V) -> Result<V::Output, Error> {
        match self.0 {
            Layout::Packed(points) => Ok(visitor.visit(points)),
            Layout::Planar(points) => Ok(visitor.visit(points)),
            Layout::Strided(points) => Ok(visitor.visit(points)),
            _ => Err(ErrorKind::Precision.into()),
        }
    }

    /// The same in `f64`, to which `f32` is converted. Compiled for packed positions and once for
    /// all other layouts, which are told apart point by point.
    ///
    /// Loops in double precision wait for memory more than for branches, so fewer copies of the
    /// code do.
    pub(crate) fn with_f64<V: Visitor<f64>>(&self, visitor: V) -> V::Output {
        match self.0 {
            Layout::PackedDouble(points) => visitor.visit(points),
            layout => visitor.visit(layout),
        }
    }
}

/// Conversions from slices of three or two coordinates, and of vectors that are laid out like them.
macro_rules! from_slices {
    ($($scalar:ty: $packed:ident $three:ty, $planar:ident $two:ty;)*) => {$(
        impl<'a> From<&'a [[$scalar; 3]]> for Positions<'a> {
            fn from(points: &'a [[$scalar; 3]]) -> Self {
                Self(Layout::$packed(points))
            }
        }

        impl<'a> From<&'a [$three]> for Positions<'a> {
            fn from(points: &'a [$three]) -> Self {
                Self(Layout::$packed(bytemuck::cast_slice(points)))
            }
        }

        impl<'a> From<&'a [[$scalar; 2]]> for Positions<'a> {
            fn from(points: &'a [[$scalar; 2]]) -> Self {
                Self(Layout::$planar(points))
            }
        }

        impl<'a> From<&'a [$two]> for Positions<'a> {
            fn from(points: &'a [$two]) -> Self {
                Self(Layout::$planar(bytemuck::cast_slice(points)))
            }
        }
    )*};
}
from_slices! {
    f32: Packed Vec3, Planar Vec2;
    f64: PackedDouble DVec3, PlanarDouble DVec2;
}

/// Slices, arrays and vectors of three or two coordinates, and [`Positions`] themselves.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no positions of points",
    note = "positions are a slice, an array or a vector of [f32; 3], [f32; 2], glam vectors or the same in f64",
    note = "positions inside your own structs are read by `Positions::strided`"
)]
pub trait IntoPositions<'a> {
    /// The positions.
    fn into_positions(self) -> Positions<'a>;
}

// Errors name this trait, not the conversions behind it.
#[diagnostic::do_not_recommend]
impl<'a, T: Into<Positions<'a>>> IntoPositions<'a> for T {
    fn into_positions(self) -> Positions<'a> {
        self.into()
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Positions<'a>
where
    Positions<'a>: From<&'a [T]>,
{
    fn from(points: &'a [T; N]) -> Self {
        points.as_slice().into()
    }
}

impl<'a, T> From<&'a Vec<T>> for Positions<'a>
where
    Positions<'a>: From<&'a [T]>,
{
    fn from(points: &'a Vec<T>) -> Self {
        points.as_slice().into()
    }
}

/// Random access to positions in coordinates of type `T`, one implementation per layout.
pub(crate) trait Source<T>: Copy + Send + Sync {
    /// Position of point `index`, which must be below the number of points.
    fn position(&self, index: usize) -> [T; 3];

    /// Coordinates of the points `range` one after the other, where that is how they lie.
    #[inline(always)]
    fn flat(&self, _range: Range<usize>) -> Option<&[T]> {
        None
    }
}

/// Code that is compiled once per layout.
pub(crate) trait Visitor<T> {
    type Output;
    fn visit<S: Source<T>>(self, source: S) -> Self::Output;
}

impl<T: Copy + Send + Sync> Source<T> for &[[T; 3]] {
    #[inline(always)]
    fn position(&self, index: usize) -> [T; 3] {
        self[index]
    }

    #[inline(always)]
    fn flat(&self, range: Range<usize>) -> Option<&[T]> {
        Some(self[range].as_flattened())
    }
}

impl<T: Copy + Default + Send + Sync> Source<T> for &[[T; 2]] {
    #[inline(always)]
    fn position(&self, index: usize) -> [T; 3] {
        let [x, y] = self[index];
        [x, y, T::default()]
    }
}

impl<T: Pod + Send + Sync> Source<T> for Strided<'_, T> {
    #[inline(always)]
    fn position(&self, index: usize) -> [T; 3] {
        let at = index * self.stride;
        bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<[T; 3]>()])
    }
}

impl Source<f64> for Layout<'_> {
    #[inline(always)]
    fn position(&self, index: usize) -> [f64; 3] {
        match self {
            Self::Packed(points) => points.position(index).map(f64::from),
            Self::Planar(points) => points.position(index).map(f64::from),
            Self::Strided(points) => points.position(index).map(f64::from),
            Self::PackedDouble(points) => points.position(index),
            Self::PlanarDouble(points) => points.position(index),
            Self::StridedDouble(points) => points.position(index),
        }
    }
}

struct Pack(usize);

impl<T> Visitor<T> for Pack {
    type Output = Result<Vec<[T; 3]>, Error>;

    fn visit<S: Source<T>>(self, source: S) -> Self::Output {
        let mut packed = with_room(self.0, "packed positions")?;
        packed.extend((0..self.0).map(|index| source.position(index)));
        Ok(packed)
    }
}

struct At(usize);

impl Visitor<f64> for At {
    type Output = [f64; 3];
    fn visit<S: Source<f64>>(self, source: S) -> [f64; 3] {
        source.position(self.0)
    }
}
