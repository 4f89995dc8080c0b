//! Pairs written to arrays of the caller on the device.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::{NfInteger, borrow_array},
};
use crate::{
    args::{self, Array, bad, choice},
    call,
    status::{Failure, NfStatus},
};
use nearfield::{
    Precision,
    device::{DeviceEngine, DeviceValue, Lent, LentColumns, PointNumber, PositionNumber, Stream},
};

/// Arrays on the device that pairs are written to, by CUdeviceptr; 0 for those that are not wanted.
/// Entry k of every array belongs to the same pair. They must not overlap.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceColumns {
    /// To integers of the type that `integer` says: the point of every pair.
    pub targets: u64,
    /// The same of its neighbour.
    pub sources: u64,
    /// To three int32_t a pair: by how many vectors the neighbour is moved.
    pub images: u64,
    /// To three numbers a pair: from the point to its neighbour, moved so; float or double, as the
    /// positions are.
    pub displacements: u64,
    /// To a number a pair, of the same type: the length of that.
    pub distances: u64,
    /// Pairs that every array has room for.
    pub capacity: usize,
    /// An nf_integer: NF_INTEGER_U32, NF_INTEGER_I32 or NF_INTEGER_I64.
    pub integer: u32,
}

impl NfDeviceColumns {
    /// The type of targets and sources.
    pub(super) fn integer(&self) -> Result<NfInteger, Failure> {
        index_type(self.integer)
    }

    /// # Safety
    /// The arrays that are not 0 are on the GPU of the stream, with room for as many pairs as is
    /// said, until it has written them; `T` and `I` are their types.
    pub(super) unsafe fn lend<T: DeviceValue, I: DeviceValue>(
        &self,
        stream: &Stream,
    ) -> Result<LentColumns<T, I>, Failure> {
        /// # Safety
        /// As for [`Lent::new`], unless the address is 0.
        unsafe fn one<V>(
            stream: &Stream,
            (address, len): (u64, usize),
            what: &str,
        ) -> Result<Option<Lent<V>>, Failure> {
            if address == 0 {
                return Ok(None);
            }
            let array = Array::on_device(address, len, what);
            // SAFETY: `borrow_array` needs exactly what the caller of this function guarantees.
            unsafe { borrow_array(stream, &array).map(Some) }
        }
        let (pairs, numbers) = (self.capacity, self.capacity.saturating_mul(3));
        // SAFETY: the caller guarantees that all arrays have as many elements.
        unsafe {
            Ok(LentColumns {
                targets: one(stream, (self.targets, pairs), "the array of targets")?,
                sources: one(stream, (self.sources, pairs), "the array of sources")?,
                images: one(stream, (self.images, numbers), "the array of images")?,
                displacements: one(
                    stream,
                    (self.displacements, numbers),
                    "the array of displacements",
                )?,
                distances: one(stream, (self.distances, pairs), "the array of distances")?,
            })
        }
    }
}

/// A type that indices of pairs come in.
pub(super) fn index_type(given: u32) -> Result<NfInteger, Failure> {
    match choice("integer", given, 4)? {
        0 => Ok(NfInteger::U32),
        1 => Ok(NfInteger::I32),
        3 => Ok(NfInteger::I64),
        _ => Err(bad(
            "integer is NF_INTEGER_U64: indices of pairs have the type NF_INTEGER_U32, \
             NF_INTEGER_I32 or NF_INTEGER_I64",
        )),
    }
}

/// Writes the pairs of two sets to arrays of the caller, in the order of the points that have them,
/// and returns without waiting. Lists that are there are taken, in a box at most twice as wide as
/// the radius only those with the geometry that is wanted; otherwise it searches. Nothing is
/// written from `capacity` on.
///
/// What is written counts if nf_device_engine_finish() says so and nf_device_engine_pair_count() is
/// at most `capacity`. If the count is larger, write again to longer arrays, which does not search
/// again.
///
/// # Safety
/// `columns` points to a structure whose arrays are on the GPU of the engine, with room for
/// `capacity` pairs, and are not used otherwise before nf_device_engine_finish() has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_write_pairs(
    engine: *mut NfDeviceEngine,
    targets: u32,
    sources: u32,
    columns: *const NfDeviceColumns,
) -> NfStatus {
    /// # Safety
    /// As for [`NfDeviceColumns::lend`].
    unsafe fn write<T: PositionNumber, I: PointNumber>(
        engine: &mut DeviceEngine,
        [targets, sources]: [u32; 2],
        columns: &NfDeviceColumns,
    ) -> Result<(), Failure> {
        let (t, s) = (engine.point_set(targets)?, engine.point_set(sources)?);
        // SAFETY: `lend` needs exactly what the caller of this function guarantees.
        let mut lent = unsafe { columns.lend::<T, I>(engine.stream())? };
        Ok(engine.write_pairs(t, s, &mut lent.views())?)
    }
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        // SAFETY: the caller guarantees that `columns` is null or points to a readable structure.
        let columns = unsafe { args::one(columns, "columns")? };
        let of = [targets, sources];
        // SAFETY: the caller guarantees that the arrays are there, of these types.
        unsafe {
            match (engine.precision(), columns.integer()?) {
                (Precision::Single, NfInteger::I64) => write::<f32, i64>(engine, of, columns),
                (Precision::Single, _) => write::<f32, u32>(engine, of, columns),
                (Precision::Double, NfInteger::I64) => write::<f64, i64>(engine, of, columns),
                (Precision::Double, _) => write::<f64, u32>(engine, of, columns),
            }
        }
    })
}

/// The number of pairs of two sets, as the last nf_device_engine_finish() found it, also of those
/// that had no room.
///
/// # Safety
/// `pairs` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_pair_count(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    pairs: *mut u64,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let found = engine.pair_count(engine.point_set(targets)?, engine.point_set(sources)?)?;
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "pairs", found) }
    })
}
