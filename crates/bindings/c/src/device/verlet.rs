//! Lists with a skin on the device.

use super::{
    kernels::{NfDeviceField, NfDeviceKernel, fields_of, run},
    lend::{Coordinates, Integers, NfDeviceIntegers, with_coordinates, with_integers},
    lists::NfDeviceLists,
    options::NfDeviceOptions,
};
use crate::{
    args::{self, Array, check_len, choice},
    call,
    filters::Excluded,
    handle::Table,
    status::{Failure, NfStatus},
};
use nearfield::{
    PointSetId,
    device::{DeviceVerletLists, Progress},
    lists::Refresh,
};
use std::{
    ffi::{c_char, c_void},
    marker::PhantomData,
};

/// Lists with a skin on a GPU: found within radius + skin, kept while points move little, and found
/// anew when a pair within the radius could be missing. Made by nf_device_verlet_new().
#[derive(Debug)]
pub struct NfDeviceVerlet {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<DeviceVerletLists>,
}

static LISTS: Table<DeviceVerletLists> = Table::new("row of lists with a skin on a GPU");

/// Makes lists with a skin, in the unit of the coordinates, for an engine of these options, whose
/// radius is the one within which pairs are found; free them with nf_device_verlet_free(). Without
/// half lists, k nearest and radii of single points.
///
/// # Safety
/// As for nf_device_engine_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_new(
    options: *const NfDeviceOptions,
    skin: f32,
    lists: *mut *mut NfDeviceVerlet,
) -> NfStatus {
    call::plain(|| {
        args::place(lists, "the place for the lists")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `builder` needs exactly what the caller of this function guarantees.
        let builder = unsafe { options.builder()? };
        let uses_stream = options.uses_stream()?;
        let made = DeviceVerletLists::new(builder, skin, |builder| {
            // SAFETY: `start` needs exactly what the caller of this function guarantees.
            unsafe { options.start(builder, uses_stream) }
        })?;
        let name = LISTS.insert(made);
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe {
            args::put(
                lists,
                "the place for the lists",
                name as *mut NfDeviceVerlet,
            )
        }
    })
}

/// Frees lists with a skin; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_verlet_free(lists: *mut NfDeviceVerlet) -> NfStatus {
    call::free(&LISTS, lists as usize)
}

/// Copies the text of the last failure on these lists, as nf_engine_error() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_error(
    lists: *const NfDeviceVerlet,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&LISTS, lists as usize, buffer, capacity, needed) }
}

/// The CUstream on which everything is done.
///
/// # Safety
/// `stream` points to a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_stream(
    lists: *const NfDeviceVerlet,
    stream: *mut *mut c_void,
) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        let found = lists.engine().stream().as_raw().cast();
        // SAFETY: the caller guarantees that `stream` is null or points to a writable value.
        unsafe { args::put(stream, "the place for the stream", found) }
    })
}

/// Adds a point set, as nf_device_engine_add_points() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_add_points(
    lists: *mut NfDeviceVerlet,
    positions: u64,
    points: usize,
    set: *mut u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        args::place(set, "the place for the set's number")?;
        // SAFETY: `coordinates` needs exactly what the caller of this function guarantees.
        let positions = unsafe { coordinates(lists, positions, points)? };
        let id = with_coordinates!(&positions, |positions| lists.add_point_set(positions))?;
        // SAFETY: the caller guarantees that `set` is null or points to a writable value.
        unsafe { args::put(set, "the place for the set's number", id.number()) }
    })
}

/// Gives a set new positions, which are copied. The lists stay as they are until
/// nf_device_verlet_refresh() or nf_device_verlet_finish(). Another number of points is a new set
/// of points, as by nf_device_verlet_replace().
///
/// # Safety
/// As for nf_device_engine_add_points().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_update(
    lists: *mut NfDeviceVerlet,
    set: u32,
    positions: u64,
    points: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        // SAFETY: `coordinates` needs exactly what the caller of this function guarantees.
        let positions = unsafe { coordinates(lists, positions, points)? };
        with_coordinates!(&positions, |positions| Ok(lists.update(set, positions)?))
    })
}

/// Gives a set other points, or the same in another order: their lists are built anew.
///
/// # Safety
/// As for nf_device_engine_add_points().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_replace(
    lists: *mut NfDeviceVerlet,
    set: u32,
    positions: u64,
    points: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        // SAFETY: `coordinates` needs exactly what the caller of this function guarantees.
        let positions = unsafe { coordinates(lists, positions, points)? };
        with_coordinates!(&positions, |positions| Ok(lists.replace(set, positions)?))
    })
}

/// Removes a set, with its points and lists; other sets keep their numbers.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_verlet_remove_set(lists: *mut NfDeviceVerlet, set: u32) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        Ok(lists.remove_point_set(named(lists, set)?)?)
    })
}

/// Says whether a set searches in another: 1, as all do at first, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_verlet_set_active(
    lists: *mut NfDeviceVerlet,
    targets: u32,
    sources: u32,
    active: u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let sets = [named(lists, targets)?, named(lists, sources)?];
        let active = choice("active", active, 2)? == 1;
        Ok(lists.set_active(sets[0], sets[1], active)?)
    })
}

/// Gives every point of a set a type, as nf_device_engine_set_types() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_set_types(
    lists: *mut NfDeviceVerlet,
    set: u32,
    types: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        check_len("types", points, lists.engine().points(set)?)?;
        // SAFETY: the caller guarantees that there is a type for every point.
        let types = unsafe { Array::new(types, points, "types").read()? };
        Ok(lists.set_types(set, types)?)
    })
}

/// The same from an array of the device. Types that there are not are found by
/// nf_device_verlet_refresh() and nf_device_verlet_finish().
///
/// # Safety
/// `types` are on the GPU of the lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_set_types_from_device(
    lists: *mut NfDeviceVerlet,
    set: u32,
    types: NfDeviceIntegers,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        // SAFETY: the caller guarantees that they are memory of the device until the stream has
        // used them.
        let types = unsafe { Integers::new(lists.engine().stream(), types, "types")? };
        Ok(with_integers!(&types, |types| lists.set_types_from_device(set, types))?)
    })
}

/// Leaves out pairs of points of a set, as nf_device_engine_exclude_pairs() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_exclude_pairs(
    lists: *mut NfDeviceVerlet,
    set: u32,
    points: *const u32,
    pairs: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        // SAFETY: the caller guarantees two numbers for every pair.
        let pairs = unsafe { Array::new(points.cast::<[u32; 2]>(), pairs, "pairs").read()? };
        Ok(lists.exclude_pairs(set, pairs)?)
    })
}

/// Leaves out pairs of a set by lists, as nf_device_engine_set_exclusions() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_set_exclusions(
    lists: *mut NfDeviceVerlet,
    set: u32,
    offsets: *const u64,
    points: usize,
    indices: *const u32,
    count: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        let given = Excluded {
            offsets,
            points,
            indices,
            count,
        };
        // SAFETY: `read` needs exactly what the caller of this function guarantees.
        let (offsets, indices) = unsafe { given.read(lists.engine().points(set)?)? };
        Ok(lists.set_exclusions(set, offsets, indices)?)
    })
}

/// Leaves out pairs of points of the same molecule, as nf_device_engine_set_molecules() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_set_molecules(
    lists: *mut NfDeviceVerlet,
    set: u32,
    molecules: *const u32,
    points: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        check_len("molecules", points, lists.engine().points(set)?)?;
        // SAFETY: the caller guarantees that there is a molecule for every point.
        let molecules = unsafe { Array::new(molecules, points, "molecules").read()? };
        Ok(lists.set_molecules(set, molecules)?)
    })
}

/// The same from an array of the device. Numbers that cannot be used are found by
/// nf_device_verlet_refresh() and nf_device_verlet_finish().
///
/// # Safety
/// `molecules` are on the GPU of the lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_set_molecules_from_device(
    lists: *mut NfDeviceVerlet,
    set: u32,
    molecules: NfDeviceIntegers,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = named(lists, set)?;
        let stream = lists.engine().stream();
        // SAFETY: the caller guarantees that they are memory of the device until the stream has
        // used them.
        let molecules = unsafe { Integers::new(stream, molecules, "molecules")? };
        Ok(with_integers!(&molecules, |molecules| {
            lists.set_molecules_from_device(set, molecules)
        })?)
    })
}

/// Leaves out no pair of a set any longer.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_verlet_clear_exclusions(
    lists: *mut NfDeviceVerlet,
    set: u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        Ok(lists.clear_exclusions(named(lists, set)?)?)
    })
}

/// Builds the lists anew if a pair within the radius could be missing. Waits for the displacements
/// of the last updates. `rebuilt`, unless null, gets 1 if they were built and 0 if they were kept.
///
/// # Safety
/// `rebuilt` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_refresh(
    lists: *mut NfDeviceVerlet,
    rebuilt: *mut u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let built = u32::from(lists.refresh()? == Refresh::Rebuilt);
        if rebuilt.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees that `rebuilt` points to a writable value.
        unsafe { args::put(rebuilt, "rebuilt", built) }
    })
}

/// Whether kernels that were started since the last updates have computed anything. `valid` gets 1
/// if so, and 0 when a pair could be missing from the lists: the kernels did nothing, the lists
/// were built anew, and the kernels are to be started again. Waits for the displacements of the
/// last updates, and for no kernel behind them unless lists are built.
///
/// # Safety
/// `valid` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_finish(
    lists: *mut NfDeviceVerlet,
    valid: *mut u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        args::place(valid, "the place for the answer")?;
        let found = u32::from(lists.finish()? == Progress::Valid);
        // SAFETY: the caller guarantees that `valid` is null or points to a writable value.
        unsafe { args::put(valid, "the place for the answer", found) }
    })
}

/// Evaluates a kernel of the caller's for all pairs within the radius at the positions of now, over
/// the lists; otherwise as nf_device_engine_traverse(). NF_STATUS_OUT_OF_DATE for sets without
/// lists: call nf_device_verlet_refresh() first.
///
/// # Safety
/// As for nf_device_engine_traverse().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_traverse(
    lists: *const NfDeviceVerlet,
    kernel: *const NfDeviceKernel,
    targets: u32,
    sources: u32,
    target_field: NfDeviceField,
    source_field: NfDeviceField,
    results: u64,
    len: usize,
    deliver: u32,
) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        // SAFETY: the caller guarantees that `kernel` is null or points to a readable structure.
        let kernel = unsafe { args::one(kernel, "the kernel")?.kernel()? };
        let fields = fields_of(&kernel, target_field, source_field);
        let sets = [named(lists, targets)?, named(lists, sources)?];
        let traversal = lists.traverse_with(&kernel, sets[0], sets[1]);
        let (stream, results) = (
            lists.engine().stream(),
            Array::on_device(results, len, "results"),
        );
        // SAFETY: `run` needs exactly what the caller of this function guarantees.
        unsafe { run(stream, traversal, fields, results, deliver) }
    })
}

/// The lists as they were built: every source that was within radius + skin then, and so, while the
/// lists are complete, every one within the radius now. NF_STATUS_OUT_OF_DATE when there are none.
///
/// # Safety
/// `found` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_candidates(
    lists: *const NfDeviceVerlet,
    targets: u32,
    sources: u32,
    found: *mut NfDeviceLists,
) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        let sets = [named(lists, targets)?, named(lists, sources)?];
        let stream = lists.engine().stream();
        let candidates = NfDeviceLists::of(&lists.candidates(sets[0], sets[1])?, stream);
        // SAFETY: the caller guarantees that `found` is null or points to a writable value.
        unsafe { args::put(found, "found", candidates) }
    })
}

/// The largest displacement of a point of a set since its lists were built, modulo the box, rounded
/// up. Waits for the last update.
///
/// # Safety
/// `displacement` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_displacement(
    lists: *mut NfDeviceVerlet,
    set: u32,
    displacement: *mut f64,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let found = lists.displacement(named(lists, set)?)?;
        // SAFETY: the caller guarantees that `displacement` is null or points to a writable value.
        unsafe { args::put(displacement, "displacement", found) }
    })
}

/// How often lists were built, the first time included.
///
/// # Safety
/// `builds` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_verlet_builds(
    lists: *const NfDeviceVerlet,
    builds: *mut u64,
) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        // SAFETY: the caller guarantees that `builds` is null or points to a writable value.
        unsafe { args::put(builds, "builds", lists.builds()) }
    })
}

fn named(lists: &DeviceVerletLists, set: u32) -> Result<PointSetId, Failure> {
    Ok(lists.engine().point_set(set)?)
}

/// # Safety
/// As for [`Coordinates::new`].
unsafe fn coordinates(
    lists: &DeviceVerletLists,
    positions: u64,
    points: usize,
) -> Result<Coordinates, Failure> {
    let engine = lists.engine();
    // SAFETY: `new` needs exactly what the caller of this function guarantees.
    unsafe { Coordinates::new(engine.stream(), engine.precision(), positions, points) }
}
