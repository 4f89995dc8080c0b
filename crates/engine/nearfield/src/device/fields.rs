//! Arrays of the device as the fields of a traversal.
//!
//! Arrays of the host know how many channels they have by their type. An array of the device is
//! numbers, so the number of its channels is that of its stride, or what the caller says.

use crate::kernels::Indices;
use nearfield_gpu::DeviceField;

/// Fields on the device that give a kernel the channels of one side: what
/// [`DeviceTraversal::targets`] and [`DeviceTraversal::sources`] take.
///
/// | type | channels |
/// | --- | --- |
/// | [`DeviceField`] alone | as many as the kernel reads, from the first of a point on |
/// | [`DeviceField`] among several | its stride, or what [`DeviceField::channels`] says |
/// | [`Indices`] | one, the index of the point as a `u32` |
/// | a tuple of one to six of these, or of tuples | those of its parts, in their order |
/// | `Vec<DeviceField>` | those of its elements |
/// | an `Option` of one of these | those of its value; none |
///
/// ```no_run
/// # use nearfield::{PairKernel, PointSetId, Error};
/// use nearfield::device::{DeviceEngine, DeviceField, DeviceBuffer};
/// use nearfield::kernels::Indices;
///
/// /// A kernel whose points are `(u32, [f32; 3], f32)`: index, velocity and mass. Mass is the
/// /// last of four numbers.
/// fn step(
///     engine: &DeviceEngine,
///     kernel: &impl PairKernel<Target = (u32, [f32; 3], f32), Source = (u32, [f32; 3], f32)>,
///     points: PointSetId,
///     [velocity, state]: [&DeviceBuffer<f32>; 2],
///     forces: &mut DeviceBuffer<f32>,
/// ) -> Result<(), Error> {
///     let fields = || {
///         let velocity = DeviceField::new(velocity.as_view(), 3);
///         let mass = DeviceField::new(state.slice(3..), 4).channels(1);
///         (Indices, velocity, mass)
///     };
///     let traversal = engine.traverse(kernel, points, points);
///     traversal.targets(fields()).sources(fields()).run_into(&mut forces.as_view_mut())
/// }
/// ```
///
/// [`DeviceTraversal::targets`]: super::DeviceTraversal::targets
/// [`DeviceTraversal::sources`]: super::DeviceTraversal::sources
pub trait DeviceFieldsOf<'a> {
    /// Appends the fields to `fields`, in the order of the channels.
    fn append_to(self, fields: &mut Vec<DeviceField<'a>>);
}

impl<'a> DeviceFieldsOf<'a> for DeviceField<'a> {
    fn append_to(self, fields: &mut Vec<DeviceField<'a>>) {
        fields.push(self);
    }
}

impl<'a> DeviceFieldsOf<'a> for Indices {
    fn append_to(self, fields: &mut Vec<DeviceField<'a>>) {
        fields.push(DeviceField::indices());
    }
}

impl<'a> DeviceFieldsOf<'a> for Vec<DeviceField<'a>> {
    fn append_to(mut self, fields: &mut Vec<DeviceField<'a>>) {
        fields.append(&mut self);
    }
}

impl<'a, F: DeviceFieldsOf<'a>> DeviceFieldsOf<'a> for Option<F> {
    fn append_to(self, fields: &mut Vec<DeviceField<'a>>) {
        if let Some(field) = self {
            field.append_to(fields);
        }
    }
}

macro_rules! tuples {
    ($($fields:ident $at:tt),*) => {
        impl<'a, $($fields: DeviceFieldsOf<'a>),*> DeviceFieldsOf<'a> for ($($fields,)*) {
            fn append_to(self, fields: &mut Vec<DeviceField<'a>>) {
                $(self.$at.append_to(fields);)*
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
