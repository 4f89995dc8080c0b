//! Engines for points that live on a GPU: handles, point sets, counts.

use super::{
    lend::{Coordinates, borrow_array, with_coordinates},
    options::NfDeviceOptions,
};
use crate::{
    args::{self, Array},
    call,
    handle::Table,
    status::NfStatus,
};
use nearfield::device::{DeviceEngine, Progress};
use std::{
    ffi::{c_char, c_void},
    marker::PhantomData,
};

/// An engine whose points live on a GPU. Made by nf_device_engine_new().
#[derive(Debug)]
pub struct NfDeviceEngine {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<DeviceEngine>,
}

pub(super) static DEVICE_ENGINES: Table<DeviceEngine> = Table::new("engine on a GPU");

/// Makes an engine on a GPU; free it with nf_device_engine_free(). NF_STATUS_DEVICE where there is
/// none.
///
/// # Safety
/// `options` points to initialised options whose cut-offs are there and whose text ends with a NUL,
/// `engine` to a place for a handle; the stream is as nf_device_options says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_new(
    options: *const NfDeviceOptions,
    engine: *mut *mut NfDeviceEngine,
) -> NfStatus {
    call::plain(|| {
        args::place(engine, "the place for the engine")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `builder` needs exactly what the caller of this function guarantees.
        let builder = unsafe { options.builder()? };
        let uses_stream = options.uses_stream()?;
        // SAFETY: `start` needs exactly what the caller of this function guarantees.
        let name = DEVICE_ENGINES.insert(unsafe { options.start(builder, uses_stream)? });
        // SAFETY: the caller guarantees that `engine` is null or points to a writable value.
        unsafe {
            args::put(
                engine,
                "the place for the engine",
                name as *mut NfDeviceEngine,
            )
        }
    })
}

/// Frees an engine; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_free(engine: *mut NfDeviceEngine) -> NfStatus {
    call::free(&DEVICE_ENGINES, engine as usize)
}

/// Copies the text of the last failure on this engine, as nf_engine_error() does.
///
/// # Safety
/// As for nf_engine_error().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_error(
    engine: *const NfDeviceEngine,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&DEVICE_ENGINES, engine as usize, buffer, capacity, needed) }
}

/// The CUstream on which the engine does everything.
///
/// # Safety
/// `stream` points to a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_stream(
    engine: *const NfDeviceEngine,
    stream: *mut *mut c_void,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let found = engine.stream().as_raw().cast();
        // SAFETY: the caller guarantees that `stream` is null or points to a writable value.
        unsafe { args::put(stream, "the place for the stream", found) }
    })
}

/// Adds a point set: CUdeviceptr to three numbers a point, which are copied: floats, or doubles in
/// an engine in f64. Waits for the device.
///
/// # Safety
/// `positions` points to 3 * points such numbers on the engine's GPU, `set` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_add_points(
    engine: *mut NfDeviceEngine,
    positions: u64,
    points: usize,
    number: *mut u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        args::place(number, "the place for the set's number")?;
        let (stream, precision) = (engine.stream(), engine.precision());
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let positions = unsafe { Coordinates::new(stream, precision, positions, points)? };
        let id = with_coordinates!(&positions, |positions| engine.add_point_set(positions))?;
        // SAFETY: the caller guarantees that `number` is null or points to a writable value.
        unsafe { args::put(number, "the place for the set's number", id.number()) }
    })
}

/// Gives a set new positions, which are copied; does not wait for the device.
///
/// # Safety
/// As for nf_device_engine_add_points().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_update(
    engine: *mut NfDeviceEngine,
    number: u32,
    positions: u64,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(number)?;
        let (stream, precision) = (engine.stream(), engine.precision());
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let positions = unsafe { Coordinates::new(stream, precision, positions, points)? };
        with_coordinates!(&positions, |positions| Ok(engine.update(set, positions)?))
    })
}

/// Removes a set, with its points and lists, as nf_remove_set() does.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_remove_set(
    engine: *mut NfDeviceEngine,
    number: u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        Ok(engine.remove_point_set(engine.point_set(number)?)?)
    })
}

/// Waits for the device. `valid` gets 1 when everything computed since the last call may be used,
/// and 0 when points had left their cells or lists their storage: there is room now, repeat what
/// was computed since the updates. Also finds what cannot be used of arrays of the device:
/// coordinates that are not finite (NF_STATUS_GPU), radii, types and molecules that there are not
/// (NF_STATUS_BAD_ARGUMENT, or NF_STATUS_GPU for molecules) and indices that no point has
/// (NF_STATUS_UNKNOWN_POINT). The text names the set.
///
/// # Safety
/// `valid` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_finish(
    engine: *mut NfDeviceEngine,
    valid: *mut u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        args::place(valid, "the place for the answer")?;
        let found = u32::from(engine.finish()? == Progress::Valid);
        // SAFETY: the caller guarantees that `valid` is null or points to a writable value.
        unsafe { args::put(valid, "the place for the answer", found) }
    })
}

/// Number of neighbours of every target, into 32-bit numbers on the device.
///
/// # Safety
/// `counts` points to `len` numbers on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_count_neighbors(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    counts: u64,
    len: usize,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that the address is device memory of this length until the
        // stream has used it.
        let mut counts = unsafe {
            borrow_array::<u32>(engine.stream(), &Array::on_device(counts, len, "counts"))?
        };
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        Ok(engine.count_neighbors(targets, sources, &mut counts.as_view_mut())?)
    })
}

/// The order in which the cells hold the points of a set, into 32-bit numbers on the device.
///
/// # Safety
/// `order` points to `len` numbers on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_order(
    engine: *const NfDeviceEngine,
    number: u32,
    order: u64,
    len: usize,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that the address is device memory of this length until the
        // stream has used it.
        let mut order = unsafe {
            borrow_array::<u32>(engine.stream(), &Array::on_device(order, len, "order"))?
        };
        Ok(engine.order(engine.point_set(number)?, &mut order.as_view_mut())?)
    })
}
