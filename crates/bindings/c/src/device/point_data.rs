//! What filters read of the points of sets on the device, from arrays of the host or the device.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::{Integers, NfDeviceIntegers, borrow_array, with_integers},
};
use crate::{
    args::{Array, check_len},
    call,
    filters::{Excluded, chosen},
    status::NfStatus,
};

/// Gives every point of a set a search radius of its own, from an array of the host, as
/// nf_set_radii() does.
///
/// # Safety
/// `radii` points to `points` numbers of the host; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_radii(
    engine: *mut NfDeviceEngine,
    set: u32,
    radii: *const f32,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("radii", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a radius for every point.
        let radii = unsafe { Array::new(radii, points, "radii").read()? };
        Ok(engine.set_radii(set, radii)?)
    })
}

/// The same from CUdeviceptr to floats, which are copied without waiting: for radii that adapt in
/// every step. Radii that cannot be used are found by nf_device_engine_finish(); the set then has
/// none.
///
/// # Safety
/// `radii` points to `points` floats on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_radii_from_device(
    engine: *mut NfDeviceEngine,
    set: u32,
    radii: u64,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        let radii = Array::on_device(radii, points, "radii");
        // SAFETY: the caller guarantees that the address is device memory of this length until the
        // stream has used it.
        let radii = unsafe { borrow_array::<f32>(engine.stream(), &radii)? };
        Ok(engine.set_radii_from_device(set, &radii.as_view())?)
    })
}

/// Gives every point of a set a type, from an array of the host, as nf_set_types() does.
///
/// # Safety
/// `types` points to `points` numbers of the host; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_types(
    engine: *mut NfDeviceEngine,
    set: u32,
    types: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("types", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a type for every point.
        let types = unsafe { Array::new(types, points, "types").read()? };
        Ok(engine.set_types(set, types)?)
    })
}

/// The same from an array of the device, which is copied without waiting. Types that there are not
/// are found by nf_device_engine_finish(); the set then has none.
///
/// # Safety
/// `types` are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_types_from_device(
    engine: *mut NfDeviceEngine,
    set: u32,
    types: NfDeviceIntegers,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees that they are memory of the device until the stream has
        // used them.
        let types = unsafe { Integers::new(engine.stream(), types, "types")? };
        Ok(with_integers!(&types, |types| engine.set_types_from_device(set, types))?)
    })
}

/// Leaves out pairs of points of a set, from an array of the host, as nf_exclude_pairs() does.
///
/// # Safety
/// `points` points to twice `pairs` numbers of the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_exclude_pairs(
    engine: *mut NfDeviceEngine,
    set: u32,
    points: *const u32,
    pairs: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees two numbers for every pair.
        let pairs = unsafe { Array::new(points.cast::<[u32; 2]>(), pairs, "pairs").read()? };
        Ok(engine.exclude_pairs(set, pairs)?)
    })
}

/// Leaves out pairs of a set by a list for every point, from arrays of the host, as
/// nf_set_exclusions() does.
///
/// # Safety
/// As for nf_set_exclusions().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_exclusions(
    engine: *mut NfDeviceEngine,
    set: u32,
    offsets: *const u64,
    points: usize,
    indices: *const u32,
    count: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        let given = Excluded {
            offsets,
            points,
            indices,
            count,
        };
        // SAFETY: `read` needs exactly what the caller of this function guarantees.
        let (offsets, indices) = unsafe { given.read(engine.points(set)?)? };
        Ok(engine.set_exclusions(set, offsets, indices)?)
    })
}

/// Leaves out pairs of points of the same molecule, from an array of the host, as
/// nf_set_molecules() does.
///
/// # Safety
/// `molecules` points to `points` numbers of the host; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_molecules(
    engine: *mut NfDeviceEngine,
    set: u32,
    molecules: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("molecules", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a molecule for every point.
        let molecules = unsafe { Array::new(molecules, points, "molecules").read()? };
        Ok(engine.set_molecules(set, molecules)?)
    })
}

/// The same from an array of the device, which is copied without waiting. Negative numbers and
/// those of more than 32 bits are found by nf_device_engine_finish(); jobs of the set are then
/// refused until it has exclusions again, or these are cleared.
///
/// # Safety
/// `molecules` are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_molecules_from_device(
    engine: *mut NfDeviceEngine,
    set: u32,
    molecules: NfDeviceIntegers,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees that they are memory of the device until the stream has
        // used them.
        let molecules = unsafe { Integers::new(engine.stream(), molecules, "molecules")? };
        Ok(with_integers!(&molecules, |molecules| {
            engine.set_molecules_from_device(set, molecules)
        })?)
    })
}

/// Leaves out no pair of a set any longer.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_clear_exclusions(
    engine: *mut NfDeviceEngine,
    set: u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        Ok(engine.clear_exclusions(engine.point_set(set)?)?)
    })
}

/// Searches for `count` points of a set only, by their numbers on the host in any order, as
/// nf_set_targets() does. While targets are chosen, an update of the set waits for the device.
///
/// # Safety
/// `indices` points to `count` numbers of the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_targets(
    engine: *mut NfDeviceEngine,
    set: u32,
    indices: *const u32,
    count: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        // SAFETY: the caller guarantees that many numbers.
        let indices = unsafe { Array::new(indices, count, "indices").read()? };
        Ok(engine.set_targets(set, indices)?)
    })
}

/// The same by one byte a point on the host, 0 for the points that are not searched for.
///
/// # Safety
/// `mask` points to `points` bytes of the host; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_target_mask(
    engine: *mut NfDeviceEngine,
    set: u32,
    mask: *const u8,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("the mask", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a byte for every point.
        let mask = unsafe { Array::new(mask, points, "the mask").read()? };
        Ok(engine.set_target_mask(set, &chosen(mask)?)?)
    })
}

/// The same by CUdeviceptr to one byte a point. Waits for the device, to learn how many targets
/// there are.
///
/// # Safety
/// `mask` points to `points` bytes on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_set_target_mask_from_device(
    engine: *mut NfDeviceEngine,
    set: u32,
    mask: u64,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        let mask = Array::on_device(mask, points, "the mask");
        // SAFETY: the caller guarantees that the address is device memory of this length until the
        // stream has used it.
        let mask = unsafe { borrow_array::<u8>(engine.stream(), &mask)? };
        Ok(engine.set_target_mask_from_device(set, &mask.as_view())?)
    })
}

/// Searches for all points of a set again.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_clear_targets(
    engine: *mut NfDeviceEngine,
    set: u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        Ok(engine.clear_targets(engine.point_set(set)?)?)
    })
}
