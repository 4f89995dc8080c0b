//! A view of the caller's coordinates, packed, planar or strided inside the caller's structs.

use crate::Error;
use glam::{Vec2, Vec3};
use std::borrow::Cow;

/// Borrowed positions of a point set: `len` points of three `f32`.
///
/// Made from `&[[f32; 3]]`, `&[glam::Vec3]`, `&[[f32; 2]]` or `&[glam::Vec2]` (then z = 0) by
/// `into()`, or from any struct array by [`strided`](Self::strided). Nothing is copied.
#[derive(Debug, Clone, Copy)]
pub struct Positions<'a>(Layout<'a>);

#[derive(Debug, Clone, Copy)]
enum Layout<'a> {
    Packed(&'a [[f32; 3]]),
    Planar(&'a [[f32; 2]]),
    Strided(Strided<'a>),
}

#[derive(Debug, Clone, Copy)]
struct Strided<'a> {
    bytes: &'a [u8],
    stride: usize,
    len: usize,
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
    /// [`Error::Stride`] when the last position would end behind `bytes`.
    pub fn strided(
        bytes: &'a [u8],
        offset: usize,
        stride: usize,
        len: usize,
    ) -> Result<Self, Error> {
        const SIZE: usize = size_of::<[f32; 3]>();
        let needed = match len {
            0 => Some(0),
            _ => (len - 1)
                .checked_mul(stride)
                .and_then(|span| span.checked_add(offset)?.checked_add(SIZE)),
        };
        match needed {
            Some(needed) if needed <= bytes.len() => Ok(Self(Layout::Strided(Strided {
                bytes: if len == 0 { &[] } else { &bytes[offset..] },
                stride,
                len,
            }))),
            _ => Err(Error::Stride {
                len,
                size: SIZE,
                offset,
                stride,
                needed: needed.unwrap_or(usize::MAX),
                bytes: bytes.len(),
            }),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match self.0 {
            Layout::Packed(points) => points.len(),
            Layout::Planar(points) => points.len(),
            Layout::Strided(points) => points.len,
        }
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position of point `index`, if there is such a point.
    pub fn get(&self, index: usize) -> Option<[f32; 3]> {
        (index < self.len()).then(|| self.with(At(index)))
    }

    /// All positions side by side, copied only where they are not so already.
    pub fn to_packed(&self) -> Cow<'a, [[f32; 3]]> {
        match self.0 {
            Layout::Packed(points) => Cow::Borrowed(points),
            _ => Cow::Owned(self.with(Pack(self.len()))),
        }
    }

    /// Runs `visitor` with the concrete layout, so that its loops are compiled for each.
    pub(crate) fn with<V: Visitor>(&self, visitor: V) -> V::Output {
        match self.0 {
            Layout::Packed(points) => visitor.visit(points),
            Layout::Planar(points) => visitor.visit(points),
            Layout::Strided(points) => visitor.visit(points),
        }
    }
}

impl<'a> From<&'a [[f32; 3]]> for Positions<'a> {
    fn from(points: &'a [[f32; 3]]) -> Self {
        Self(Layout::Packed(points))
    }
}

impl<'a> From<&'a [Vec3]> for Positions<'a> {
    fn from(points: &'a [Vec3]) -> Self {
        Self(Layout::Packed(bytemuck::cast_slice(points)))
    }
}

impl<'a> From<&'a [[f32; 2]]> for Positions<'a> {
    fn from(points: &'a [[f32; 2]]) -> Self {
        Self(Layout::Planar(points))
    }
}

impl<'a> From<&'a [Vec2]> for Positions<'a> {
    fn from(points: &'a [Vec2]) -> Self {
        Self(Layout::Planar(bytemuck::cast_slice(points)))
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

/// Random access to positions, one implementation per layout.
pub(crate) trait Source: Copy + Send + Sync {
    /// Position of point `index`, which must be below the number of points.
    fn position(&self, index: usize) -> [f32; 3];
}

/// Code that is compiled once per layout.
pub(crate) trait Visitor {
    type Output;
    fn visit<S: Source>(self, source: S) -> Self::Output;
}

impl Source for &[[f32; 3]] {
    #[inline(always)]
    fn position(&self, index: usize) -> [f32; 3] {
        self[index]
    }
}

impl Source for &[[f32; 2]] {
    #[inline(always)]
    fn position(&self, index: usize) -> [f32; 3] {
        let [x, y] = self[index];
        [x, y, 0.0]
    }
}

impl Source for Strided<'_> {
    #[inline(always)]
    fn position(&self, index: usize) -> [f32; 3] {
        let at = index * self.stride;
        bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<[f32; 3]>()])
    }
}

struct Pack(usize);

impl Visitor for Pack {
    type Output = Vec<[f32; 3]>;

    fn visit<S: Source>(self, source: S) -> Self::Output {
        (0..self.0).map(|index| source.position(index)).collect()
    }
}

struct At(usize);

impl Visitor for At {
    type Output = [f32; 3];
    fn visit<S: Source>(self, source: S) -> [f32; 3] {
        source.position(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_gives_the_same_points() {
        let packed = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0f32]];
        let vectors = packed.map(Vec3::from);
        let bytes: &[u8] = bytemuck::cast_slice(&packed);
        let strided = Positions::strided(bytes, 0, 12, 2).unwrap();
        for index in 0..2 {
            let expected = Some(packed[index]);
            assert_eq!(Positions::from(&packed).get(index), expected);
            assert_eq!(Positions::from(&vectors).get(index), expected);
            assert_eq!(strided.get(index), expected);
        }
        assert_eq!(strided.get(2), None);
        assert_eq!(
            Positions::from(&[[7.0f32, 8.0]]).get(0),
            Some([7.0, 8.0, 0.0])
        );
    }

    #[test]
    fn a_strided_view_that_does_not_fit_is_refused() {
        let bytes = [0u8; 40];
        assert!(Positions::strided(&bytes, 4, 24, 2).is_ok());
        let error = Positions::strided(&bytes, 5, 24, 2).unwrap_err();
        assert!(matches!(error, Error::Stride { needed: 41, .. }), "{error}");
        assert!(Positions::strided(&bytes, usize::MAX, usize::MAX, 3).is_err());
        assert!(Positions::strided(&bytes, 100, 4, 0).unwrap().is_empty());
    }
}
