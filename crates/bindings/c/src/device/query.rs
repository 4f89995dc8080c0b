//! Neighbours of free positions and of some points, on the device.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::{Coordinates, Integers, NfDeviceIntegers, with_coordinates, with_integers},
    lists::NfDeviceLists,
};
use crate::{
    args::{self, Array},
    call,
    status::NfStatus,
};

/// Finds the neighbours of free positions in a set. `queried` gets the number of the set that the
/// positions are, for nf_device_engine_neighbors() and everything else that can be asked of a set.
/// All queries of an engine are this one set; the lists are those of this query until the next.
/// Otherwise as nf_query_f32(): lists are full, and cut-offs of types are refused.
///
/// # Safety
/// `positions` points to 3 * points numbers in the engine's precision on the engine's GPU,
/// `queried` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_query(
    engine: *mut NfDeviceEngine,
    positions: u64,
    points: usize,
    sources: u32,
    queried: *mut u32,
) -> NfStatus {
    // SAFETY: `query` needs exactly what the caller of this function guarantees.
    unsafe { query(engine, (positions, points), None, sources, queried) }
}

/// The same for positions with search radii of their own, one for each, on the host: in engines
/// with the nf_radius_rule gather or symmetric, and no others.
///
/// # Safety
/// As for nf_device_engine_query(), and `radii` points to `radius_count` numbers of the host, which
/// must be as many as there are positions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_query_radii(
    engine: *mut NfDeviceEngine,
    positions: u64,
    points: usize,
    radii: *const f32,
    radius_count: usize,
    sources: u32,
    queried: *mut u32,
) -> NfStatus {
    let radii = Some(Array::new(radii, radius_count, "radii"));
    // SAFETY: `query` needs exactly what the caller of this function guarantees.
    unsafe { query(engine, (positions, points), radii, sources, queried) }
}

/// # Safety
/// The positions are on the engine's GPU, `radii` on the host; `queried` points to a number.
unsafe fn query(
    engine: *mut NfDeviceEngine,
    (positions, points): (u64, usize),
    radii: Option<Array<'_, f32>>,
    sources: u32,
    queried: *mut u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        args::place(queried, "the place for the set's number")?;
        let (sources, precision) = (engine.point_set(sources)?, engine.precision());
        if let Some(radii) = &radii {
            args::check_len("radii", radii.len(), points)?;
        }
        // SAFETY: the caller guarantees that they are there.
        let radii = radii.map(|radii| unsafe { radii.read() }).transpose()?;
        // SAFETY: the caller guarantees that the positions are memory of the device until the
        // stream has used them.
        let positions = unsafe { Coordinates::new(engine.stream(), precision, positions, points)? };
        let set = with_coordinates!(&positions, |positions| match radii {
            None => engine.query(positions, sources),
            Some(radii) => engine.query_with_radii(positions, radii, sources),
        })?;
        // SAFETY: the caller guarantees that `queried` is null or points to a writable value.
        unsafe { args::put(queried, "the place for the set's number", set.number()) }
    })
}

/// Writes the neighbours in `sources` of some points of `targets`, given by their indices on the
/// device in any order, which are copied: list k is that of point `points[k]`. Otherwise as
/// nf_query_points(). An index that no point has is found by nf_device_engine_finish(), which
/// returns NF_STATUS_UNKNOWN_POINT.
///
/// # Safety
/// `points` are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_find_neighbors_of(
    engine: *mut NfDeviceEngine,
    targets: u32,
    sources: u32,
    points: NfDeviceIntegers,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        // SAFETY: the caller guarantees that the indices are memory of the device until the stream
        // has used them.
        let points = unsafe { Integers::new(engine.stream(), points, "points")? };
        Ok(with_integers!(&points, |points| {
            engine.find_neighbors_of(sets[0], sets[1], points)
        })?)
    })
}

/// The lists that nf_device_engine_find_neighbors_of() wrote last, one for each index; nothing is
/// copied. Valid until its next call too. NF_STATUS_NO_LISTS if it found none of these sets, or one
/// of them has changed since.
///
/// # Safety
/// `lists` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_neighbors_of(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    lists: *mut NfDeviceLists,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        let found = engine.neighbors_of(sets[0], sets[1])?;
        let found = NfDeviceLists::of(&found, engine.stream());
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "lists", found) }
    })
}
