//! Named quantities per point, as read from a file or handed to a writer.

use std::borrow::Cow;

use nearfield_grid::memory::{Shortage, make_room};

use crate::number::{Number, Numbers};

/// A named quantity with one or more numbers per point: a density, a velocity, an index.
///
/// Readers return owned data (`PointData<'static>`); for writing the values can be borrowed:
///
/// ```
/// use nearfield_io::PointData;
///
/// let density = vec![1000.0_f32, 998.5];
/// let velocity = [[0.0_f32, 0.0, -1.0], [0.5, 0.0, 0.0]];
/// let data = [
///     PointData::scalars("density", &density),
///     PointData::vectors("velocity", &velocity),
///     PointData::scalars("id", vec![7_u32, 9]),
/// ];
/// assert_eq!(data[1].components(), 3);
/// assert_eq!(data[1].points(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PointData<'a> {
    name: Cow<'a, str>,
    components: usize,
    values: Values<'a>,
}

impl<'a> PointData<'a> {
    /// One number per point, from a `Vec`, a reference to one, or a slice of `f32`, `f64`, `i32`,
    /// `u32`, `i64` or `u64`.
    pub fn scalars(name: impl Into<Cow<'a, str>>, values: impl Into<Values<'a>>) -> Self {
        Self {
            name: name.into(),
            components: 1,
            values: values.into(),
        }
    }

    /// Three numbers per point.
    pub fn vectors(name: impl Into<Cow<'a, str>>, values: impl Into<Cow<'a, [[f32; 3]]>>) -> Self {
        let flat = match values.into() {
            Cow::Borrowed(values) => Cow::Borrowed(values.as_flattened()),
            Cow::Owned(values) => Cow::Owned(values.into_flattened()),
        };
        Self {
            name: name.into(),
            components: 3,
            values: Values::F32(flat),
        }
    }

    /// Any number of components per point, point after point in `values`.
    ///
    /// Returns `None` when `components` is zero or `values` does not divide by it.
    pub fn tuples(
        name: impl Into<Cow<'a, str>>,
        components: usize,
        values: impl Into<Values<'a>>,
    ) -> Option<Self> {
        let values = values.into();
        let whole = components > 0 && values.len().is_multiple_of(components);
        whole.then(|| Self {
            name: name.into(),
            components,
            values,
        })
    }

    /// The quantity's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers per point.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Points the values are for.
    pub fn points(&self) -> usize {
        self.values.len() / self.components
    }

    /// The same quantity without its own copy of the values.
    pub fn borrowed(&self) -> PointData<'_> {
        PointData {
            name: Cow::Borrowed(&self.name),
            components: self.components,
            values: self.values.borrowed(),
        }
    }

    /// The numbers, point after point.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// The values as `f32`, rounded once, if there is one per point.
    pub fn scalars_of(&self) -> Option<impl ExactSizeIterator<Item = f32> + '_> {
        let scalar = |i| self.values.number(i).single;
        (self.components == 1).then(|| (0..self.points()).map(scalar))
    }

    /// The values as `f32`, rounded once, if there are three per point.
    pub fn vectors_of(&self) -> Option<impl ExactSizeIterator<Item = [f32; 3]> + '_> {
        let vector = |i| [0, 1, 2].map(|axis| self.values.number(3 * i + axis).single);
        (self.components == 3).then(|| (0..self.points()).map(vector))
    }

    /// All values in double precision, point after point.
    pub fn doubles(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.values.len()).map(|i| self.values.number(i).double)
    }

    /// [`scalars_of`](Self::scalars_of) collected, which ends the process if memory is short.
    pub fn to_scalars(&self) -> Option<Vec<f32>> {
        Some(self.scalars_of()?.collect())
    }

    /// [`vectors_of`](Self::vectors_of) collected, which ends the process if memory is short.
    pub fn to_vectors(&self) -> Option<Vec<[f32; 3]>> {
        Some(self.vectors_of()?.collect())
    }

    /// [`doubles`](Self::doubles) collected, which ends the process if memory is short.
    pub fn to_doubles(&self) -> Vec<f64> {
        self.doubles().collect()
    }

    /// Appends another piece's values; `false` when it is not the same quantity.
    ///
    /// # Errors
    /// [`Shortage`]; nothing is appended then.
    pub(crate) fn append(&mut self, other: Self) -> Result<bool, Shortage> {
        if self.name != other.name || self.components != other.components {
            return Ok(false);
        }
        self.values.append(other.values)
    }
}

/// The numbers of a [`PointData`], in the type the file or the caller has them in.
///
/// Readers widen types narrower than 32 bits, which loses nothing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Values<'a> {
    /// Single precision.
    F32(Cow<'a, [f32]>),
    /// Double precision.
    F64(Cow<'a, [f64]>),
    /// Signed integers.
    I32(Cow<'a, [i32]>),
    /// Unsigned integers.
    U32(Cow<'a, [u32]>),
    /// Wide signed integers.
    I64(Cow<'a, [i64]>),
    /// Wide unsigned integers.
    U64(Cow<'a, [u64]>),
}

macro_rules! values {
    ($($variant:ident $type:ty),*) => {
        impl Values<'_> {
            /// Number of values: points times components.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                }
            }

            fn borrowed(&self) -> Values<'_> {
                match self {
                    $(Self::$variant(values) => Values::$variant(Cow::Borrowed(values)),)*
                }
            }

            /// The numbers' bytes in this machine's byte order.
            pub(crate) fn bytes(&self) -> &[u8] {
                match self {
                    $(Self::$variant(values) => bytemuck::cast_slice(values),)*
                }
            }

            fn append(&mut self, other: Self) -> Result<bool, Shortage> {
                match (self, other) {
                    $((Self::$variant(values), Self::$variant(more)) => {
                        let all = values.len() + more.len();
                        let values = values.to_mut();
                        make_room(values, all, "quantities of a file")?;
                        values.extend_from_slice(&more);
                    })*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl Numbers for Values<'_> {
            fn number(&self, index: usize) -> Number {
                match self {
                    $(Self::$variant(values) => values.get(index).copied().map(Number::from),)*
                }
                .unwrap_or(Number::ZERO)
            }
        }

        $(
            impl From<Vec<$type>> for Values<'_> {
                fn from(values: Vec<$type>) -> Self {
                    Self::$variant(Cow::Owned(values))
                }
            }

            impl<'a> From<&'a Vec<$type>> for Values<'a> {
                fn from(values: &'a Vec<$type>) -> Self {
                    Self::$variant(Cow::Borrowed(values))
                }
            }

            impl<'a> From<&'a [$type]> for Values<'a> {
                fn from(values: &'a [$type]) -> Self {
                    Self::$variant(Cow::Borrowed(values))
                }
            }

            impl<'a, const N: usize> From<&'a [$type; N]> for Values<'a> {
                fn from(values: &'a [$type; N]) -> Self {
                    Self::$variant(Cow::Borrowed(values))
                }
            }
        )*
    };
}
values!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);

impl Values<'_> {
    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_vectors_are_not_copied() {
        let velocity = vec![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let data = PointData::vectors("velocity", &velocity);
        assert!(matches!(data.values(), Values::F32(Cow::Borrowed(_))));
        assert_eq!(data.to_vectors(), Some(velocity.clone()));
        assert_eq!(data.to_scalars(), None);
    }

    #[test]
    fn tuples_that_do_not_divide_are_refused() {
        assert!(PointData::tuples("stress", 6, vec![0.0_f64; 12]).is_some());
        assert!(PointData::tuples("stress", 6, vec![0.0_f64; 13]).is_none());
        assert!(PointData::tuples("stress", 0, vec![0.0_f64; 12]).is_none());
    }

    #[test]
    fn pieces_join_only_when_they_are_the_same_quantity() {
        let mut ids = PointData::scalars("id", vec![1_u32]);
        assert_eq!(ids.append(PointData::scalars("id", vec![2_u32])), Ok(true));
        assert_eq!(ids, PointData::scalars("id", &[1_u32, 2]));
        assert_eq!(ids.append(PointData::scalars("id", vec![2_i32])), Ok(false));
        assert_eq!(
            ids.append(PointData::scalars("mass", vec![2_u32])),
            Ok(false)
        );
    }
}
