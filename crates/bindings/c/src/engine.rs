//! Engines: creation, point sets, updates and reports.

use crate::{
    args::{self, Array, Coordinate, check_len, choice},
    call,
    handle::Table,
    options::NfOptions,
    status::NfStatus,
};
use nearfield::Engine;
use std::{ffi::c_char, marker::PhantomData};

/// An engine: one radius, one domain, any number of point sets. Made by nf_engine_new().
#[derive(Debug)]
pub struct NfEngine {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Engine>,
}

pub(crate) static ENGINES: Table<Engine> = Table::new("engine");

/// Makes an engine; free it with nf_engine_free().
///
/// # Safety
/// `options` points to initialised options whose texts end with a NUL and whose cut-offs are there,
/// `engine` to a place for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_engine_new(
    options: *const NfOptions,
    engine: *mut *mut NfEngine,
) -> NfStatus {
    call::plain(|| {
        args::place(engine, "the place for the engine")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `builder` needs exactly what the caller of this function guarantees.
        let built = unsafe { options.builder()? }.build()?;
        let name = ENGINES.insert(built);
        // SAFETY: the caller guarantees that `engine` is null or points to a writable value.
        unsafe { args::put(engine, "the place for the engine", name as *mut NfEngine) }
    })
}

/// Frees an engine; a null pointer is ignored. Lists got from the engine are gone.
#[unsafe(no_mangle)]
pub extern "C" fn nf_engine_free(engine: *mut NfEngine) -> NfStatus {
    call::free(&ENGINES, engine as usize)
}

/// Copies the text of the last failure on this engine, "" before the first, with its NUL. `needed`,
/// unless null, gets the bytes it takes; with a null buffer and capacity 0 nothing is copied.
///
/// # Safety
/// `buffer` is null or points to `capacity` bytes, `needed` is null or points to a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_engine_error(
    engine: *const NfEngine,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&ENGINES, engine as usize, buffer, capacity, needed) }
}

/// Adds a point set: `points` points of three coordinates, `stride` bytes from one to the next (12
/// where they are packed). Sets are numbered from 0 in the order
/// added until one is removed. The new set searches all
/// sets and is searched by all, itself included. The coordinates are copied.
///
/// # Safety
/// `positions` points to `points` points, `set` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_add_points_f32(
    engine: *mut NfEngine,
    positions: *const f32,
    points: usize,
    stride: usize,
    set: *mut u32,
) -> NfStatus {
    // SAFETY: `add` needs exactly what the caller of this function guarantees.
    unsafe { add(engine, positions, points, stride, set) }
}

/// The same in double precision, for engines in f64 (which take floats too); 24 bytes is the stride
/// of packed points.
///
/// # Safety
/// As for nf_add_points_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_add_points_f64(
    engine: *mut NfEngine,
    positions: *const f64,
    points: usize,
    stride: usize,
    set: *mut u32,
) -> NfStatus {
    // SAFETY: `add` needs exactly what the caller of this function guarantees.
    unsafe { add(engine, positions, points, stride, set) }
}

unsafe fn add<T: Coordinate>(
    engine: *mut NfEngine,
    data: *const T,
    points: usize,
    stride: usize,
    number: *mut u32,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        args::place(number, "the place for the set's number")?;
        // SAFETY: the caller guarantees that `data` is null or holds that many positions at this
        // stride.
        let positions = unsafe { args::positions(data, points, stride)? };
        let id = engine.add_point_set(positions)?;
        // SAFETY: the caller guarantees that `number` is null or points to a writable value.
        unsafe { args::put(number, "the place for the set's number", id.number()) }
    })
}

/// Gives a set new positions; their number may differ from before. Lists that involve the set are
/// gone until nf_find_neighbors(). Refused positions leave the set as it was.
///
/// # Safety
/// `positions` points to `points` points.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_update_f32(
    engine: *mut NfEngine,
    set: u32,
    positions: *const f32,
    points: usize,
    stride: usize,
) -> NfStatus {
    // SAFETY: `update` needs exactly what the caller of this function guarantees.
    unsafe { update(engine, set, positions, points, stride) }
}

/// The same in double precision.
///
/// # Safety
/// As for nf_update_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_update_f64(
    engine: *mut NfEngine,
    set: u32,
    positions: *const f64,
    points: usize,
    stride: usize,
) -> NfStatus {
    // SAFETY: `update` needs exactly what the caller of this function guarantees.
    unsafe { update(engine, set, positions, points, stride) }
}

unsafe fn update<T: Coordinate>(
    engine: *mut NfEngine,
    number: u32,
    data: *const T,
    points: usize,
    stride: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        // SAFETY: the caller guarantees that `data` is null or holds that many positions at this
        // stride.
        let positions = unsafe { args::positions(data, points, stride)? };
        Ok(engine.update(engine.point_set(number)?, positions)?)
    })
}

/// Gives every point of a set a search radius of its own, positive and at most the engine's radius,
/// for engines with an nf_radius_rule other than uniform. Radii stay with the numbers of the
/// points, and nf_retain_points() keeps them; after an update to another number of points they are
/// gone. Lists that involve the set are gone until nf_find_neighbors(). Refused radii leave the set
/// as it was.
///
/// # Safety
/// `radii` points to `points` numbers; `points` is the number of points of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_radii(
    engine: *mut NfEngine,
    set: u32,
    radii: *const f32,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("radii", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a radius for every point.
        let radii = unsafe { Array::new(radii, points, "radii").read()? };
        Ok(engine.set_radii(set, radii)?)
    })
}

/// The same with radii in double precision; an engine in single precision rounds them, as it does
/// with its own radius.
///
/// # Safety
/// As for nf_set_radii().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_set_radii_f64(
    engine: *mut NfEngine,
    set: u32,
    radii: *const f64,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("radii", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a radius for every point.
        let radii = unsafe { Array::new(radii, points, "radii").read()? };
        Ok(engine.set_radii(set, radii)?)
    })
}

/// Removes a set, with its points and lists: its number is refused from then on, and other sets
/// keep theirs. A set that is added later gets a number that was not given before.
#[unsafe(no_mangle)]
pub extern "C" fn nf_remove_set(engine: *mut NfEngine, set: u32) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        Ok(engine.remove_point_set(engine.point_set(set)?)?)
    })
}

/// Keeps the points of a set whose entry in `keep`, one byte a point, is not 0, and removes all
/// others. Points that are kept stay in their order and are renumbered from 0. Lists that involve
/// the set are gone until nf_find_neighbors(), unless no point was removed.
///
/// # Safety
/// `keep` points to `points` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_retain_points(
    engine: *mut NfEngine,
    set: u32,
    keep: *const u8,
    points: usize,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let set = engine.point_set(set)?;
        check_len("keep", points, engine.points(set)?)?;
        // SAFETY: the caller guarantees that there is a byte for every point.
        let keep = unsafe { Array::new(keep, points, "keep").read()? };
        engine.retain_points(set, |point| keep[point] != 0)?;
        Ok(())
    })
}

/// Number of points in an array of `numbers` coordinates, three per point; numbers that are not
/// whole points are refused.
///
/// # Safety
/// `points` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_whole_points(numbers: usize, points: *mut usize) -> NfStatus {
    call::plain(|| {
        if !numbers.is_multiple_of(3) {
            return Err(args::bad(format!(
                "{numbers} numbers are not whole points, which have three coordinates each"
            )));
        }
        // SAFETY: the caller guarantees that `points` is null or points to a writable value.
        unsafe { args::put(points, "the place for the number of points", numbers / 3) }
    })
}

/// Number of point sets.
///
/// # Safety
/// `sets` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_point_sets(engine: *const NfEngine, sets: *mut usize) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that `sets` is null or points to a writable value.
        unsafe {
            args::put(
                sets,
                "the place for the number of sets",
                engine.point_sets(),
            )
        }
    })
}

/// Number of points of a set.
///
/// # Safety
/// `points` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_points(
    engine: *const NfEngine,
    number: u32,
    points: *mut usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let found = engine.points(engine.point_set(number)?)?;
        // SAFETY: the caller guarantees that `points` is null or points to a writable value.
        unsafe { args::put(points, "the place for the number of points", found) }
    })
}

/// Whether `targets` search among `sources`: 1, as for every pair at first, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn nf_set_active(
    engine: *mut NfEngine,
    targets: u32,
    sources: u32,
    active: u32,
) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        let active = choice("active", active, 2)? == 1;
        Ok(engine.set_active(
            engine.point_set(targets)?,
            engine.point_set(sources)?,
            active,
        )?)
    })
}

/// Whether every set searches among every set, later ones included: 1, as at first, or 0;
/// nf_set_active() then sets single pairs. For many sets that meet few others each, such as the
/// bodies of a scene.
#[unsafe(no_mangle)]
pub extern "C" fn nf_set_all_active(engine: *mut NfEngine, active: u32) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        engine.set_all_active(choice("active", active, 2)? == 1);
        Ok(())
    })
}

/// Reads the setting of nf_set_active() and nf_set_all_active().
///
/// # Safety
/// `active` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_is_active(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    active: *mut u32,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let found = engine.is_active(engine.point_set(targets)?, engine.point_set(sources)?)?;
        // SAFETY: the caller guarantees that `active` is null or points to a writable value.
        unsafe { args::put(active, "the place for the answer", u32::from(found)) }
    })
}

/// Changes the search radius; all lists are gone until nf_find_neighbors(). An engine in f32 rounds
/// it to float.
#[unsafe(no_mangle)]
pub extern "C" fn nf_set_radius(engine: *mut NfEngine, radius: f64) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| {
        Ok(engine.set_radius(radius)?)
    })
}

/// The search radius.
///
/// # Safety
/// `radius` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_radius(engine: *const NfEngine, radius: *mut f64) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that `radius` is null or points to a writable value.
        unsafe { args::put(radius, "the place for the radius", engine.radius()) }
    })
}

/// Makes ready now what later steps would otherwise make when they first need it, for the jobs that
/// the engine has done so far: the GPU of NF_DEVICE_AUTO, compiled programs, and page-locked
/// memory. Returns when all of it is there. Before any job it is the lists of all active pairs of
/// sets. Results are dropped, and lists are asked for again by nf_neighbors(). Without a GPU there
/// is nothing to make ready.
#[unsafe(no_mangle)]
pub extern "C" fn nf_warm_up(engine: *mut NfEngine) -> NfStatus {
    call::write(&ENGINES, engine as usize, |engine| Ok(engine.warm_up()?))
}

/// The order that makes a set local in memory: the present index of the point to be put at every
/// place. Apply it to all arrays of the set and update the set, every few dozen steps.
///
/// # Safety
/// `order` points to `len` numbers; `len` is the number of points.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_z_sort(
    engine: *const NfEngine,
    number: u32,
    order: *mut u32,
    len: usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        let found = engine.z_sort(engine.point_set(number)?)?;
        let found = found.order();
        check_len("order", len, found.len())?;
        // SAFETY: the caller guarantees that `order` is null or has room for that many elements,
        // for this call alone.
        unsafe { Array::new(order, len, "order").write()? }.copy_from_slice(found);
        Ok(())
    })
}

/// The report of the engine's last step, as JSON: the device and the reason for it, milliseconds
/// of each stage, point sets, pairs, bytes. Copied as nf_engine_error() copies.
///
/// # Safety
/// As for nf_engine_error().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_report(
    engine: *const NfEngine,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        // SAFETY: `put_text` needs exactly what the caller of this function guarantees.
        unsafe { args::put_text(&engine.report().to_json(), buffer, capacity, needed) }
    })
}
