//! Per-point arrays of the caller, borrowed as channels of `f32`.
//!
//! Nothing is copied: a [`Field`] is a slice, a number of channels and the distance from one
//! point's values to the next point's. Backends that need another order or layout copy what they
//! need, once per traversal.
//!
//! Values are kept as groups of four bytes, because those of a strided field need not be aligned.
//! Distances are multiples of four bytes, so [`Field::value`] is one multiplication, one comparison
//! and one load for packed and for strided fields alike.
//!
//! **Invariant:** the slice begins with the first channel of the first point and ends with the last
//! channel of the last point. A strided field is checked once, when it is made.

use crate::{Error, ErrorKind};
use glam::{Vec2, Vec3};
use std::fmt;

/// A per-point array in the caller's order: one channel for `&[f32]`, two or three for arrays of
/// vectors, or some values of every struct of an array, by [`strided`](Self::strided). Nothing is
/// copied.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Four bytes are a value.
    values: &'a [[u8; 4]],
    channels: usize,
    /// Values from the first channel of a point to that of the next.
    stride: usize,
    /// Number of points.
    len: usize,
}

/// Points, channels and stride, not the values.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            channels,
            stride,
            len,
            ..
        } = self;
        write!(f, "Field({len} points, {channels} channels")?;
        if stride != channels {
            write!(f, ", {} bytes apart", stride * size_of::<f32>())?;
        }
        f.write_str(")")
    }
}

impl<'a> Field<'a> {
    /// `len` points of `channels` values of `f32` each, the first at byte `offset`, each `stride`
    /// bytes after the one before; no alignment is needed. This serves values inside structs, as
    /// `Positions::strided` does for positions:
    ///
    /// ```
    /// use nearfield_pairs::Field;
    /// use std::mem::offset_of;
    /// #[repr(C)]
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// struct Particle { position: [f32; 3], velocity: [f32; 3], mass: f32 }
    /// # let particle = Particle { position: [0.0; 3], velocity: [1.0, 2.0, 3.0], mass: 4.0 };
    /// let particles = [particle; 10];
    /// let bytes = bytemuck::cast_slice(&particles);
    /// let stride = size_of::<Particle>();
    /// let velocity = Field::strided(bytes, offset_of!(Particle, velocity), stride, 10, 3)?;
    /// let mass = Field::strided(bytes, offset_of!(Particle, mass), stride, 10, 1)?;
    /// assert_eq!((velocity.value(9, 2), mass.value(9, 0)), (3.0, 4.0));
    /// # Ok::<(), nearfield_pairs::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::FieldStride`] if there are no channels, or `stride` is not a multiple of 4 or
    /// shorter than the channels, and [`ErrorKind::FieldBytes`] when the last value would end
    /// behind `bytes`.
    pub fn strided(
        bytes: &'a [u8],
        offset: usize,
        stride: usize,
        len: usize,
        channels: usize,
    ) -> Result<Self, Error> {
        let size = size_of::<f32>();
        let of_point = channels
            .checked_mul(size)
            .filter(|of_point| (size..=stride).contains(of_point) && stride.is_multiple_of(size));
        let Some(of_point) = of_point else {
            return Err(ErrorKind::FieldStride { channels, stride }.into());
        };
        let held = match len {
            0 => Ok(&bytes[..0]),
            _ => {
                let end = (len - 1)
                    .checked_mul(stride)
                    .and_then(|span| span.checked_add(of_point)?.checked_add(offset));
                end.and_then(|end| bytes.get(offset..end)).ok_or(end)
            }
        };
        let held = held.map_err(|end| ErrorKind::FieldBytes {
            len,
            channels,
            offset,
            stride,
            needed: end.unwrap_or(usize::MAX),
            bytes: bytes.len(),
        })?;
        Ok(Self {
            values: held.as_chunks().0,
            channels,
            stride: stride / size,
            len,
        })
    }

    /// Stands for [`Indices`] until a traversal knows the number of points. No array has that many.
    const INDICES: Field<'static> = Field {
        values: &[],
        channels: 1,
        stride: 1,
        len: usize::MAX,
    };

    /// Whether this stands for [`Indices`].
    #[doc(hidden)]
    pub fn is_indices(&self) -> bool {
        self.len == usize::MAX
    }

    /// Number of channels per point.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the array holds no points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `channel`, which must be below the number of channels, of point `point`.
    ///
    /// # Panics
    /// If `point` is not below the number of points.
    #[inline(always)]
    pub fn value(&self, point: usize, channel: usize) -> f32 {
        debug_assert!(channel < self.channels, "{channel} of {self:?}");
        f32::from_ne_bytes(self.values[point * self.stride + channel])
    }

    /// Copies `channel` of consecutive points, from point `first` on, until `to` is full.
    ///
    /// # Panics
    /// If there are fewer points, or `channel` is not below the number of channels.
    pub fn copy_channel(&self, first: usize, channel: usize, to: &mut [f32]) {
        assert!(channel < self.channels, "{channel} of {self:?}");
        if to.is_empty() {
            return;
        }
        let begin = first * self.stride + channel;
        let values = &self.values[begin..=begin + (to.len() - 1) * self.stride];
        if self.stride == 1 {
            // Values need not be aligned.
            bytemuck::cast_slice_mut(to).copy_from_slice(values);
            return;
        }
        for (to, from) in to.iter_mut().zip(values.iter().step_by(self.stride)) {
            *to = f32::from_ne_bytes(*from);
        }
    }

    /// Copies `channel` of the points `index`, one for each element of `to`.
    ///
    /// # Panics
    /// If a point is not below the number of points, or `channel` not below the number of channels.
    pub fn pick_channel(&self, index: &[u32], channel: usize, to: &mut [f32]) {
        assert!(channel < self.channels, "{channel} of {self:?}");
        let values = &self.values[channel.min(self.values.len())..];
        // Products by a constant are cheaper, and most fields are numbers or vectors.
        match self.stride {
            1 => pick::<1>(values, index, to),
            3 => pick::<3>(values, index, to),
            stride => {
                for (to, &i) in to.iter_mut().zip(index) {
                    *to = f32::from_ne_bytes(values[i as usize * stride]);
                }
            }
        }
    }

    /// All values, the channels of one point next to each other; `None` if that is not how they lie
    /// in memory.
    pub fn packed(&self) -> Option<&'a [f32]> {
        if self.stride != self.channels {
            return None;
        }
        bytemuck::try_cast_slice(self.values).ok()
    }

    /// Copies values as if they were packed, from number `first` on, until `to` is full. Number k
    /// is channel k % channels of point k / channels.
    ///
    /// # Panics
    /// If there are fewer values.
    pub fn copy_to(&self, first: usize, to: &mut [f32]) {
        let (mut point, mut channel) = (first / self.channels, first % self.channels);
        let mut rest = to;
        while !rest.is_empty() {
            let count = (self.channels - channel).min(rest.len());
            let (here, behind) = rest.split_at_mut(count);
            let from = &self.values[point * self.stride + channel..][..count];
            for (to, from) in here.iter_mut().zip(from) {
                *to = f32::from_ne_bytes(*from);
            }
            (point, channel, rest) = (point + 1, 0, behind);
        }
    }

    /// Returns true if `other` has the same values because it is in the same place of memory, with
    /// the same channels and stride.
    pub fn is_same_place(&self, other: &Field<'_>) -> bool {
        std::ptr::eq(self.values, other.values)
            && (self.channels, self.stride) == (other.channels, other.stride)
    }
}

/// Copies the values at the numbers `index` times `STRIDE`.
fn pick<const STRIDE: usize>(values: &[[u8; 4]], index: &[u32], to: &mut [f32]) {
    for (to, &i) in to.iter_mut().zip(index) {
        *to = f32::from_ne_bytes(values[i as usize * STRIDE]);
    }
}

impl<'a> From<&'a [f32]> for Field<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self {
            values: bytemuck::cast_slice(values),
            channels: 1,
            stride: 1,
            len: values.len(),
        }
    }
}

macro_rules! vector_field {
    ($($vector:ty: $channels:literal),*) => {$(
        impl<'a> From<&'a [$vector]> for Field<'a> {
            fn from(values: &'a [$vector]) -> Self {
                Self {
                    values: bytemuck::cast_slice(values),
                    channels: $channels,
                    stride: $channels,
                    len: values.len(),
                }
            }
        }
    )*};
}
vector_field!(
    [f32; 2]: 2, [f32; 3]: 3, [f32; 4]: 4, Vec2: 2, Vec3: 3,
    u32: 1, [u32; 2]: 2, [u32; 3]: 3, [u32; 4]: 4,
    i32: 1, [i32; 2]: 2, [i32; 3]: 3, [i32; 4]: 4
);

impl<'a, T, const N: usize> From<&'a [T; N]> for Field<'a>
where
    Field<'a>: From<&'a [T]>,
{
    fn from(values: &'a [T; N]) -> Self {
        values.as_slice().into()
    }
}

impl<'a, T> From<&'a Vec<T>> for Field<'a>
where
    Field<'a>: From<&'a [T]>,
{
    fn from(values: &'a Vec<T>) -> Self {
        values.as_slice().into()
    }
}

/// Arrays in the caller's order that give one `T` per point: what [`Traversal::targets`] and
/// [`Traversal::sources`] take for a kernel's [`Target`] and [`Source`].
///
/// | `T` | arrays |
/// | --- | --- |
/// | `()` | `()`, or nothing at all |
/// | `f32` | slices, arrays and `Vec`s of `f32` |
/// | `[f32; 2]`, `[f32; 3]`, `glam::Vec2`, `glam::Vec3` | those of vectors of that length, of either kind |
/// | `[f32; 4]` | those of `[f32; 4]` |
/// | `u32`, `i32`, and arrays of 2 to 4 of them | those of the same type |
/// | `u32` | [`Indices`] |
/// | a tuple of these | a tuple of arrays, one for each part |
///
/// A [`Field`], which may be strided, and a slice of them serve any `T`; whether their channels add
/// up to it is checked when the traversal runs.
///
/// [`Traversal::targets`]: https://docs.rs/nearfield/latest/nearfield/struct.Traversal.html
/// [`Traversal::sources`]: https://docs.rs/nearfield/latest/nearfield/struct.Traversal.html
/// [`Target`]: crate::PairKernel::Target
/// [`Source`]: crate::PairKernel::Source
#[diagnostic::on_unimplemented(
    message = "the kernel reads `{T}` of every point, and `{Self}` does not give it",
    note = "give one array per part of the kernel's type, such as (&velocities, &masses) for (Vec3, f32)"
)]
pub trait FieldsOf<'a, T> {
    /// Appends the arrays to `fields`, in the order of the channels.
    fn append_to(self, fields: &mut Vec<Field<'a>>);
}

/// The index of every point, for a kernel that reads it as a `u32`: its place in the arrays of its
/// set. It stands for an array of 0, 1, 2 and so on, which the traversal makes for the time that it
/// runs.
///
/// Where points change their places or live on several machines, give numbers of your own that
/// stay with them instead, as a `&[u32]`.
///
/// ```
/// use nearfield_pairs::{Indices, Pair, PairKernel};
///
/// /// Number of neighbours with a smaller index.
/// struct Before;
///
/// impl PairKernel for Before {
///     type Target = u32;
///     type Source = u32;
///     type Output = f32;
///
///     fn pair(&self, _: Pair, i: u32, j: u32) -> f32 {
///         if j < i { 1.0 } else { 0.0 }
///     }
/// }
/// // engine.traverse(&Before, set, set).targets(Indices).sources(Indices).run()
/// # let _ = Indices;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Indices;

impl<'a> FieldsOf<'a, u32> for Indices {
    fn append_to(self, fields: &mut Vec<Field<'a>>) {
        fields.push(Field::INDICES);
    }
}

impl<'a> FieldsOf<'a, ()> for () {
    fn append_to(self, _: &mut Vec<Field<'a>>) {}
}

macro_rules! arrays_of {
    ($($value:ty: $($element:ty),*;)*) => {$($(
        impl<'a> FieldsOf<'a, $value> for &'a [$element] {
            fn append_to(self, fields: &mut Vec<Field<'a>>) {
                fields.push(self.into());
            }
        }

        impl<'a> FieldsOf<'a, $value> for &'a Vec<$element> {
            fn append_to(self, fields: &mut Vec<Field<'a>>) {
                fields.push(self.into());
            }
        }

        impl<'a, const POINTS: usize> FieldsOf<'a, $value> for &'a [$element; POINTS] {
            fn append_to(self, fields: &mut Vec<Field<'a>>) {
                fields.push(self.into());
            }
        }
    )*)*};
}
arrays_of! {
    f32: f32;
    [f32; 2]: [f32; 2], Vec2;
    Vec2: [f32; 2], Vec2;
    [f32; 3]: [f32; 3], Vec3;
    Vec3: [f32; 3], Vec3;
    [f32; 4]: [f32; 4];
    u32: u32;
    [u32; 2]: [u32; 2];
    [u32; 3]: [u32; 3];
    [u32; 4]: [u32; 4];
    i32: i32;
    [i32; 2]: [i32; 2];
    [i32; 3]: [i32; 3];
    [i32; 4]: [i32; 4];
}

impl<'a, T> FieldsOf<'a, T> for Field<'a> {
    fn append_to(self, fields: &mut Vec<Field<'a>>) {
        fields.push(self);
    }
}

impl<'a, T> FieldsOf<'a, T> for &[Field<'a>] {
    fn append_to(self, fields: &mut Vec<Field<'a>>) {
        fields.extend_from_slice(self);
    }
}

impl<'a, T, const FIELDS: usize> FieldsOf<'a, T> for &[Field<'a>; FIELDS] {
    fn append_to(self, fields: &mut Vec<Field<'a>>) {
        fields.extend_from_slice(self);
    }
}

macro_rules! tuples_of {
    ($($part:ident $arrays:ident $at:tt),*) => {
        impl<'a, $($part, $arrays: FieldsOf<'a, $part>),*> FieldsOf<'a, ($($part,)*)>
            for ($($arrays,)*)
        {
            fn append_to(self, fields: &mut Vec<Field<'a>>) {
                $(self.$at.append_to(fields);)*
            }
        }
    };
}
tuples_of!(A X 0);
tuples_of!(A X 0, B Y 1);
tuples_of!(A X 0, B Y 1, C Z 2);
tuples_of!(A X 0, B Y 1, C Z 2, D U 3);
tuples_of!(A X 0, B Y 1, C Z 2, D U 3, E V 4);
tuples_of!(A X 0, B Y 1, C Z 2, D U 3, E V 4, G W 5);
