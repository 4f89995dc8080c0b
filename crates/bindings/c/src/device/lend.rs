//! Arrays of the caller on the device, by their address.
//!
//! An address is checked as that of an array of the host is: not null, aligned, within the address
//! space. That memory of the stream's GPU is there is what the caller guarantees.

use crate::{
    args::{self, Array},
    status::Failure,
};
use nearfield::{
    Precision,
    device::{DeviceView, Lent, Stream},
};

/// A type of whole numbers.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfInteger {
    /// uint32_t
    U32 = 0,
    /// int32_t
    I32 = 1,
    /// uint64_t
    U64 = 2,
    /// int64_t
    I64 = 3,
}

/// Whole numbers on the device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceIntegers {
    /// CUdeviceptr to the numbers.
    pub values: u64,
    /// How many they are.
    pub len: usize,
    /// An nf_integer: their type.
    pub integer: u32,
}

/// An array on the device, lent to work on `stream`.
///
/// # Safety
/// As for [`Lent::new`].
pub(super) unsafe fn borrow_array<T>(
    stream: &Stream,
    array: &Array<'_, T>,
) -> Result<Lent<T>, Failure> {
    array.check()?;
    // SAFETY: the caller guarantees that the address is device memory of this length until the
    // stream has used it.
    Ok(unsafe { Lent::new(stream, array.address() as u64, array.len()) })
}

/// Coordinates on the device, three numbers a point.
pub(super) enum Coordinates {
    Single(Lent<f32>),
    Double(Lent<f64>),
}

impl Coordinates {
    /// The coordinates of `points` points in this precision.
    ///
    /// # Safety
    /// As for [`Lent::new`], of three numbers a point.
    pub(super) unsafe fn new(
        stream: &Stream,
        precision: Precision,
        address: u64,
        points: usize,
    ) -> Result<Self, Failure> {
        let numbers = (points.checked_mul(3))
            .ok_or_else(|| args::bad(format!("{points} points: more than memory holds")))?;
        let what = "the array of positions";
        // SAFETY: the caller guarantees that the address is device memory of this length until the
        // stream has used it.
        unsafe {
            Ok(match precision {
                Precision::Single => {
                    let array = Array::on_device(address, numbers, what);
                    Self::Single(borrow_array(stream, &array)?)
                }
                Precision::Double => {
                    let array = Array::on_device(address, numbers, what);
                    Self::Double(borrow_array(stream, &array)?)
                }
            })
        }
    }
}

/// Does something with coordinates of either precision.
macro_rules! with_coordinates {
    ($coordinates:expr, |$view:ident| $work:expr) => {
        match $coordinates {
            $crate::device::lend::Coordinates::Single(lent) => {
                let $view = &lent.as_view();
                $work
            }
            $crate::device::lend::Coordinates::Double(lent) => {
                let $view = &lent.as_view();
                $work
            }
        }
    };
}
pub(super) use with_coordinates;

/// Whole numbers on the device, lent to work on a stream.
pub(super) enum Integers {
    U32(Lent<u32>),
    I32(Lent<i32>),
    U64(Lent<u64>),
    I64(Lent<i64>),
}

impl Integers {
    /// # Safety
    /// As for [`Lent::new`].
    pub(super) unsafe fn new(
        stream: &Stream,
        given: NfDeviceIntegers,
        what: &str,
    ) -> Result<Self, Failure> {
        let NfDeviceIntegers { values, len, .. } = given;
        // SAFETY: the caller guarantees that the address is device memory of this length and type
        // until the stream has used it.
        unsafe {
            Ok(match args::choice("integer", given.integer, 4)? {
                0 => Self::U32(borrow_array(stream, &Array::on_device(values, len, what))?),
                1 => Self::I32(borrow_array(stream, &Array::on_device(values, len, what))?),
                2 => Self::U64(borrow_array(stream, &Array::on_device(values, len, what))?),
                _ => Self::I64(borrow_array(stream, &Array::on_device(values, len, what))?),
            })
        }
    }
}

/// Does something with whole numbers of any type.
macro_rules! with_integers {
    ($integers:expr, |$view:ident| $work:expr) => {{
        use $crate::device::lend::Integers;
        match $integers {
            Integers::U32(lent) => {
                let $view = &lent.as_view();
                $work
            }
            Integers::I32(lent) => {
                let $view = &lent.as_view();
                $work
            }
            Integers::U64(lent) => {
                let $view = &lent.as_view();
                $work
            }
            Integers::I64(lent) => {
                let $view = &lent.as_view();
                $work
            }
        }
    }};
}
pub(super) use with_integers;

/// The address of an array of an engine, for the caller; 0 if there is none.
pub(super) fn address<T>(array: Option<&DeviceView<'_, T>>, stream: &Stream) -> u64 {
    array.map_or(0, |array| array.device_ptr(stream).0)
}
