//! Arrays on a GPU as other libraries describe them: a tensor of DLPack, or the entries of
//! `__cuda_array_interface__`. The file that reads them is that of the Python package, which holds
//! no Python.

#[allow(dead_code, unreachable_pub, unused)]
#[path = "../../../bindings/python/src/device/layout.rs"]
mod layout;

use arbitrary::Arbitrary;
use layout::{ArrayError, DLDataType, DLDevice, DLTensor, Dtype, Layout, TensorFields};
use std::ptr;

/// A description.
#[derive(Debug, Clone, Arbitrary)]
pub struct Given {
    /// Where it is said to lie.
    pub address: u64,
    /// Bytes from there to the first element, in a tensor.
    pub byte_offset: u64,
    /// Kind and number of the device, in a tensor.
    pub device: (i32, i32),
    /// Code, bits and backends of the type, in a tensor.
    pub dtype: (u8, u8, u16),
    /// The type, in an interface.
    pub typestr: String,
    /// Which of the types that are understood comes in place of these, or none.
    pub usual: Option<bool>,
    /// The lengths of the axes; in a tensor none where this is none.
    pub shape: Option<Vec<Length>>,
    /// The strides; those that fit where this is none.
    pub strides: Strides,
    /// Whether the tensor announces another number of axes than it has, fewer or below zero.
    pub axes: Option<i32>,
}

/// The length of an axis, mostly a small one.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Length {
    /// Three, as coordinates have it.
    Three,
    /// Few.
    Few(u8),
    /// Any number.
    Any(i64),
}

/// Strides.
#[derive(Debug, Clone, Arbitrary)]
pub enum Strides {
    /// None given.
    Absent,
    /// Those of rows one behind the other.
    Packed,
    /// These.
    Given(Vec<i64>),
}

impl Length {
    fn get(self) -> i64 {
        match self {
            Self::Three => 3,
            Self::Few(few) => i64::from(few),
            Self::Any(any) => any,
        }
    }
}

/// Reads both descriptions and checks what is accepted.
///
/// # Panics
/// When something is accepted that cannot be worked on.
pub fn check(given: &Given) {
    let mut shape: Option<Vec<i64>> = given
        .shape
        .as_ref()
        .map(|shape| shape.iter().map(|length| length.get()).collect());
    let lengths = shape.clone().unwrap_or_default();
    let mut strides = match &given.strides {
        Strides::Absent => None,
        Strides::Packed => Some(packed(&lengths)),
        Strides::Given(strides) => Some(strides.clone()),
    };
    interface(given, &lengths, strides.as_deref());

    // A tensor has as many strides as axes: its maker guarantees that.
    if let Some(strides) = &mut strides {
        strides.resize(lengths.len(), 1);
    }
    let axes = given
        .axes
        .map_or(lengths.len() as i32, |axes| axes.min(lengths.len() as i32));
    let dtype = match given.usual {
        None => DLDataType {
            code: given.dtype.0,
            bits: given.dtype.1,
            backends: given.dtype.2,
        },
        Some(floats) => (if floats { Dtype::F32 } else { Dtype::U32 }).dlpack(),
    };
    let tensor = DLTensor {
        data: ptr::without_provenance_mut(given.address as usize),
        device: DLDevice {
            kind: given.device.0,
            id: given.device.1,
        },
        axes,
        dtype,
        shape: shape
            .as_mut()
            .map_or(ptr::null_mut(), |shape| shape.as_mut_ptr()),
        strides: strides
            .as_mut()
            .map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
        byte_offset: given.byte_offset,
    };
    // SAFETY: the axes are at most as many as there are lengths and strides.
    let found = unsafe { TensorFields::of(&tensor, true) };
    let found = match found {
        Ok(found) => found,
        Err(text) => return crate::message::check_line(&text),
    };
    assert_eq!(found.shape, lengths[..axes as usize]);
    let expected = given.address.checked_add(given.byte_offset);
    assert_eq!(Some(found.pointer), expected);
    let strides = found.strides.clone();
    accept(
        Layout::of_tensor(&found, "points"),
        &found.shape,
        strides.as_deref(),
        1,
    );
}

fn interface(given: &Given, lengths: &[i64], strides: Option<&[i64]>) {
    let typestr = match given.usual {
        None => given.typestr.as_str(),
        Some(floats) => (if floats { Dtype::F32 } else { Dtype::U64 }).typestr(),
    };
    let layout = Layout::of_interface("points", given.address, lengths, typestr, strides);
    accept(layout, lengths, strides, 4);
}

/// Strides in elements of rows one behind the other.
fn packed(lengths: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; lengths.len()];
    for axis in (1..lengths.len()).rev() {
        strides[axis - 1] = strides[axis].wrapping_mul(lengths[axis]);
    }
    strides
}

/// Checks that accepted points lie where they can, and as they must. `size` is in the unit of
/// strides.
fn accept(layout: Result<Layout, ArrayError>, given: &[i64], strides: Option<&[i64]>, size: i64) {
    let refused = |refused: ArrayError| match refused {
        ArrayError::Type(text) | ArrayError::Value(text) => crate::message::check_line(&text),
    };
    let layout = match layout {
        Ok(layout) => layout,
        Err(error) => return refused(error),
    };
    for error in [layout.field(7).err(), layout.shaped(Dtype::U64, &[3]).err()] {
        error.map(refused);
    }
    for (dtype, number) in [(Dtype::F32, 4usize), (Dtype::F64, 8)] {
        let points = match layout.points(dtype) {
            Err(error) => {
                refused(error);
                continue;
            }
            Ok(points) => points,
        };
        assert_eq!(given, [points as i64, 3]);
        let bytes = points
            .checked_mul(3 * number)
            .expect("the size in bytes was accepted");
        assert!(layout.pointer.checked_add(bytes as u64).is_some());
        assert!(layout.pointer.is_multiple_of(number as u64));
        assert!(layout.pointer != 0 || points == 0);
        if let (Some(strides), true) = (strides, points > 1) {
            assert_eq!(strides, [3 * size, size]);
        }
    }
}
