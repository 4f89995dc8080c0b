//! Lists on the device, and the geometry of their pairs.

use super::{
    engine::{DEVICE_ENGINES, NfDeviceEngine},
    lend::address,
};
use crate::{
    args::{self, choice},
    call,
    options::NfPrecision,
    pairs::NfQuantity,
    status::{Failure, NfStatus},
};
use nearfield::device::{DeviceListsView, DeviceView, GeometryQuantities, PairViews, Stream};

/// Lists on the device: as nf_lists, by CUdeviceptr. Valid until the engine is next changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceLists {
    /// To 64-bit numbers: the first entry of the list of every point.
    pub start: u64,
    /// To 32-bit numbers: its length.
    pub count: u64,
    /// To 32-bit numbers: the lists.
    pub indices: u64,
    /// Number of points.
    pub points: usize,
    /// Numbers at `indices`: those of the lists, and room that belongs to none.
    pub entries: usize,
}

/// Lists on the device with numbers of every pair: entry k of an array belongs to entry k of
/// `lists.indices`, and every array has as many elements as that. Arrays that were not asked for
/// are 0. Valid until the engine is next changed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDevicePairs {
    /// The lists, whose entries are the neighbours.
    pub lists: NfDeviceLists,
    /// To 32-bit numbers: the point that has the neighbour.
    pub targets: u64,
    /// To three int32_t a pair: by how many box vectors the neighbour is moved.
    pub images: u64,
    /// To three numbers a pair, in the precision of the engine: the vector by which it is moved.
    pub shifts: u64,
    /// To three numbers a pair: from the point to its neighbour, moved so.
    pub displacements: u64,
    /// To a number a pair: the square of the length of that.
    pub squares: u64,
    /// To a number a pair: the length.
    pub distances: u64,
    /// An nf_precision: that of the engine.
    pub precision: u32,
}

impl NfDeviceLists {
    pub(super) fn of(found: &DeviceListsView<'_>, stream: &Stream) -> Self {
        Self {
            start: address(Some(&found.start), stream),
            count: address(Some(&found.count), stream),
            indices: address(Some(&found.entries), stream),
            points: found.count.len(),
            entries: found.entries.len(),
        }
    }
}

impl NfDevicePairs {
    pub(super) fn of(
        lists: &DeviceListsView<'_>,
        pairs: &PairViews<'_>,
        (stream, precision): (&Stream, NfPrecision),
    ) -> Self {
        fn either<S, D>(
            single: &Option<DeviceView<'_, S>>,
            double: &Option<DeviceView<'_, D>>,
            stream: &Stream,
        ) -> u64 {
            match double {
                Some(_) => address(double.as_ref(), stream),
                None => address(single.as_ref(), stream),
            }
        }
        let double = &pairs.double;
        Self {
            lists: NfDeviceLists::of(lists, stream),
            targets: address(pairs.targets.as_ref(), stream),
            images: address(pairs.images.as_ref(), stream),
            shifts: either(&pairs.shifts, &double.shifts, stream),
            displacements: either(&pairs.displacements, &double.displacements, stream),
            squares: either(&pairs.squares, &double.squares, stream),
            distances: either(&pairs.distances, &double.distances, stream),
            precision: precision as u32,
        }
    }
}

/// The quantities of a sum of `NfQuantity`; sources are the entries of lists.
pub(super) fn quantities(given: u32) -> Result<GeometryQuantities, Failure> {
    choice("quantities", given, 128)?;
    let has = |quantity: NfQuantity| given & quantity as u32 != 0;
    Ok(GeometryQuantities {
        targets: has(NfQuantity::Targets),
        images: has(NfQuantity::Images),
        shifts: has(NfQuantity::Shifts),
        displacements: has(NfQuantity::Displacements),
        squares: has(NfQuantity::Squares),
        distances: has(NfQuantity::Distances),
    })
}

/// Writes the lists of a pair of sets into memory of the engine on the device.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_find_neighbors(
    engine: *mut NfDeviceEngine,
    targets: u32,
    sources: u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        Ok(engine.find_neighbors(engine.point_set(targets)?, engine.point_set(sources)?)?)
    })
}

/// The lists that nf_device_engine_find_neighbors() wrote; nothing is copied. NF_STATUS_NO_LISTS
/// when there are none, or a set has been updated since.
///
/// # Safety
/// `lists` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_neighbors(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    lists: *mut NfDeviceLists,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let found = engine.neighbors(engine.point_set(targets)?, engine.point_set(sources)?)?;
        let found = NfDeviceLists::of(&found, engine.stream());
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "lists", found) }
    })
}

/// Writes the lists of a pair of sets and, beside their entries, numbers of every pair.
/// `quantities` is a sum of nf_quantity, in which NF_QUANTITY_SOURCES changes nothing: the entries
/// are the sources. Displacements have the bits that nf_pair_geometry() computes. Replaces the
/// lists that were found of these sets.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_engine_pair_geometry(
    engine: *mut NfDeviceEngine,
    targets: u32,
    sources: u32,
    quantities: u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        let wanted = self::quantities(quantities)?;
        if wanted.is_none() {
            return Err(args::bad(
                "quantities has none of pairs: name one, or find lists alone with \
                 nf_device_engine_find_neighbors",
            ));
        }
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        Ok(engine.pair_geometry(sets[0], sets[1], wanted)?)
    })
}

/// The lists and arrays that nf_device_engine_pair_geometry() wrote; nothing is copied.
/// NF_STATUS_NO_LISTS when there are none, a set has been updated since, or lists alone were found.
///
/// # Safety
/// `pairs` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_geometry(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    pairs: *mut NfDevicePairs,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
        let found = engine.geometry(sets[0], sets[1])?;
        let with = (engine.stream(), engine.precision().into());
        let found = NfDevicePairs::of(&found.lists, &found.pairs, with);
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "pairs", found) }
    })
}
