//! Per-point arrays of the caller, borrowed as channels of `f32`.
//!
//! Nothing is copied: a [`Field`] is a slice and a number of channels. Backends that need another
//! order or layout copy what they need, once per traversal.

use glam::{Vec2, Vec3};
use std::fmt;

/// A per-point array in the caller's order: one channel for `&[f32]`, two or three for arrays of
/// vectors. Nothing is copied.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    values: &'a [f32],
    channels: usize,
}

/// Points and channels, not the values.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Field({} points, {} channels)",
            self.len(),
            self.channels
        )
    }
}

impl<'a> Field<'a> {
    /// Number of channels per point.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.values.len() / self.channels
    }

    /// Returns true if the array holds no points.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values, the channels of one point next to each other.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }
}

impl<'a> From<&'a [f32]> for Field<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self {
            values,
            channels: 1,
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
                }
            }
        }
    )*};
}
vector_field!([f32; 2]: 2, [f32; 3]: 3, [f32; 4]: 4, Vec2: 2, Vec3: 3);

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
/// | a tuple of these | a tuple of arrays, one for each part |
///
/// A slice of [`Field`]s serves any `T`; whether their channels add up to it is checked when the
/// traversal runs.
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
