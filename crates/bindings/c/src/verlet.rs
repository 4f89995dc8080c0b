//! Lists with a skin.

use crate::{
    args::{self, Coordinate, choice},
    call,
    handle::Table,
    options::NfOptions,
    pairs::{NfPairs, geometry_into},
    status::NfStatus,
};
use nearfield::lists::{Refresh, VerletLists};
use std::{ffi::c_char, marker::PhantomData};

/// Neighbour lists with a skin: found within radius + skin, kept while points move little, and
/// found anew when a pair within the radius could be missing. Made by nf_verlet_new().
#[derive(Debug)]
pub struct NfVerlet {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<VerletLists>,
}

static LISTS: Table<VerletLists> = Table::new("row of lists with a skin");

/// Makes lists with a skin, in the unit of the coordinates, for an engine of these options, whose
/// radius is the one within which pairs are found; free them with nf_verlet_free(). With one radius
/// for all points, and without cut-offs and k nearest. A GPU that the options name alone builds the
/// lists, and nf_verlet_pair_geometry() searches there at the positions of now.
///
/// # Safety
/// `options` points to initialised options whose texts end with a NUL, `lists` to a place for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_new(
    options: *const NfOptions,
    skin: f32,
    lists: *mut *mut NfVerlet,
) -> NfStatus {
    call::plain(|| {
        args::place(lists, "the place for the lists")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `builder` needs exactly what the caller of this function guarantees.
        let made = VerletLists::new(unsafe { options.builder()? }, skin)?;
        let name = LISTS.insert(made);
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "the place for the lists", name as *mut NfVerlet) }
    })
}

/// Frees lists with a skin; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_verlet_free(lists: *mut NfVerlet) -> NfStatus {
    call::free(&LISTS, lists as usize)
}

/// Copies the text of the last failure on these lists, as nf_engine_error() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_error(
    lists: *const NfVerlet,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&LISTS, lists as usize, buffer, capacity, needed) }
}

/// Adds a point set, as nf_add_points_f32() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_add_points_f32(
    lists: *mut NfVerlet,
    positions: *const f32,
    points: usize,
    stride: usize,
    set: *mut u32,
) -> NfStatus {
    // SAFETY: `add` needs exactly what the caller of this function guarantees.
    unsafe { add(lists, positions, points, stride, set) }
}

/// The same in double precision.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_add_points_f64(
    lists: *mut NfVerlet,
    positions: *const f64,
    points: usize,
    stride: usize,
    set: *mut u32,
) -> NfStatus {
    // SAFETY: `add` needs exactly what the caller of this function guarantees.
    unsafe { add(lists, positions, points, stride, set) }
}

unsafe fn add<T: Coordinate>(
    lists: *mut NfVerlet,
    data: *const T,
    points: usize,
    stride: usize,
    number: *mut u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        args::place(number, "the place for the set's number")?;
        // SAFETY: the caller guarantees that `data` is null or holds that many positions at this
        // stride.
        let positions = unsafe { args::positions(data, points, stride)? };
        let id = lists.add_point_set(positions)?;
        // SAFETY: the caller guarantees that `number` is null or points to a writable value.
        unsafe { args::put(number, "the place for the set's number", id.number()) }
    })
}

/// Gives a set new positions, as nf_update_f32() does. The lists stay as they are until
/// nf_verlet_refresh().
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_update_f32(
    lists: *mut NfVerlet,
    set: u32,
    positions: *const f32,
    points: usize,
    stride: usize,
) -> NfStatus {
    // SAFETY: `update` needs exactly what the caller of this function guarantees.
    unsafe { update(lists, set, positions, points, stride) }
}

/// The same in double precision.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_update_f64(
    lists: *mut NfVerlet,
    set: u32,
    positions: *const f64,
    points: usize,
    stride: usize,
) -> NfStatus {
    // SAFETY: `update` needs exactly what the caller of this function guarantees.
    unsafe { update(lists, set, positions, points, stride) }
}

unsafe fn update<T: Coordinate>(
    lists: *mut NfVerlet,
    number: u32,
    data: *const T,
    points: usize,
    stride: usize,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = lists.engine().point_set(number)?;
        // SAFETY: the caller guarantees that `data` is null or holds that many positions at this
        // stride.
        let positions = unsafe { args::positions(data, points, stride)? };
        Ok(lists.update(set, positions)?)
    })
}

/// Builds the lists anew if a pair within the radius could be missing; call it after the updates of
/// every step. `rebuilt`, unless null, gets 1 if they were built and 0 if they were kept.
///
/// # Safety
/// `rebuilt` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_refresh(lists: *mut NfVerlet, rebuilt: *mut u32) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let built = u32::from(lists.refresh()? == Refresh::Rebuilt);
        if rebuilt.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees that `rebuilt` points to a writable value.
        unsafe { args::put(rebuilt, "rebuilt", built) }
    })
}

/// Finds the pairs within the radius at the positions of now, with their geometry, as
/// nf_pair_geometry() does: from the stored lists, without a search. NF_STATUS_OUT_OF_DATE if
/// nf_verlet_refresh() has to be called first.
#[unsafe(no_mangle)]
pub extern "C" fn nf_verlet_pair_geometry(
    lists: *const NfVerlet,
    targets: u32,
    sources: u32,
    quantities: u32,
    pairs: *mut NfPairs,
) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        geometry_into(pairs, quantities, |geometry| {
            let set = |number| lists.engine().point_set(number);
            lists.pair_geometry(set(targets)?, set(sources)?, geometry)
        })
    })
}

/// Says whether a set searches in another: 1, as all do at first, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn nf_verlet_set_active(
    lists: *mut NfVerlet,
    targets: u32,
    sources: u32,
    active: u32,
) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = |number| lists.engine().point_set(number);
        let sets = [set(targets)?, set(sources)?];
        let active = choice("active", active, 2)? == 1;
        Ok(lists.set_active(sets[0], sets[1], active)?)
    })
}

/// Removes a set, with its points and lists; other sets keep their numbers.
#[unsafe(no_mangle)]
pub extern "C" fn nf_verlet_remove_set(lists: *mut NfVerlet, set: u32) -> NfStatus {
    call::write(&LISTS, lists as usize, |lists| {
        let set = lists.engine().point_set(set)?;
        Ok(lists.remove_point_set(set)?)
    })
}

/// How often lists were built, the first time included. Steps divided by it are the steps that a
/// list lasts; the skin is chosen by that.
///
/// # Safety
/// `builds` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_verlet_builds(lists: *const NfVerlet, builds: *mut u64) -> NfStatus {
    call::read(&LISTS, lists as usize, |lists, _| {
        // SAFETY: the caller guarantees that `builds` is null or points to a writable value.
        unsafe { args::put(builds, "builds", lists.builds()) }
    })
}
