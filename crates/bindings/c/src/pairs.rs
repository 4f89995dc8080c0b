//! Pairs with their geometry, and those of many systems: compact arrays of the library.

use crate::{
    args::{self, Array, MAX_NAME, bad, choice},
    call,
    engine::{ENGINES, NfEngine},
    handle::Table,
    status::{Failure, NfStatus},
};
use nearfield::{
    Device, ListKind, ListOrder, Precision,
    lists::{PairArrays, PairGeometry},
    systems::{Quantities, SystemPairs, SystemReal, SystemSearch, Systems},
};
use std::{
    ffi::{c_char, c_void},
    marker::PhantomData,
    ptr,
};

/// Quantities of pairs, to be added up: what is not asked for is not computed.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfQuantity {
    /// i, the point that has the neighbour.
    Targets = 1,
    /// j, the neighbour.
    Sources = 2,
    /// S, by how many box vectors the neighbour is moved.
    Images = 4,
    /// D, from the point to its neighbour, moved so.
    Displacements = 8,
    /// d, the length of that.
    Distances = 16,
}

/// Pairs and the memory that they are in, used again by later searches: nf_pairs_new().
#[derive(Debug)]
pub struct NfPairs {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Pairs>,
}

/// A search of many systems at once: nf_systems_new().
#[derive(Debug)]
pub struct NfSystems {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<SystemSearch>,
}

/// What a handle names.
#[derive(Debug, Default)]
struct Pairs {
    single: SystemPairs<f32, u32>,
    double: SystemPairs<f64, u32>,
    /// Which of them a search has written.
    precision: Precision,
    geometry: PairGeometry,
}

static PAIRS: Table<Pairs> = Table::new("set of pairs");
static SYSTEMS: Table<SystemSearch> = Table::new("search of systems");

/// Pairs, viewed where the library keeps them, valid until their handle is next used for a search
/// or freed. Entry k of every array belongs to the same pair; pairs are in the order of `targets`.
/// Arrays that were not asked for are null.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfPairArrays {
    /// Number of points that have neighbours looked for.
    pub points: usize,
    /// Number of pairs.
    pub pairs: usize,
    /// The first pair of every point, and behind them the number of pairs.
    pub offsets: *const u64,
    /// The point of every pair, and its neighbour.
    pub targets: *const u32,
    /// By its index in the array that was searched.
    pub sources: *const u32,
    /// Three counts a pair.
    pub images: *const i32,
    /// Three numbers a pair: float or double, as `precision` says.
    pub displacements: *const c_void,
    /// A number a pair, of the same type.
    pub distances: *const c_void,
    /// An nf_precision: that of the engine, or of the positions of systems.
    pub precision: u32,
}

/// Settings of a search of systems; nf_systems_options_init() sets all of them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfSystemsOptions {
    /// Size of this structure as the program was compiled; set by nf_systems_options_init().
    pub struct_size: usize,
    /// An nf_list_kind; full lists by default.
    pub lists: u32,
    /// An nf_list_order; unspecified by default. Pairs of a point ascend by neighbour and image.
    pub order: u32,
    /// Worker threads; 0, the default, for one per core.
    pub threads: u32,
    /// "cpu", "gpu", "gpu:1"; null, the default, is the CPU, as are "auto" and "hybrid".
    pub device: *const c_char,
}

/// Cells and radii of systems whose points lie behind each other in one array.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfSystemsInput {
    /// Number of systems.
    pub systems: usize,
    /// The first point of every system, and the number of points behind the last: `systems` + 1
    /// numbers.
    pub offsets: *const i64,
    /// A radius of every system, or one for all.
    pub radii: *const f64,
    /// 1, or `systems`.
    pub radius_count: usize,
    /// Nine numbers a cell, the rows being its vectors: of every system, or one for all. Vectors of
    /// open axes are not read. Null where everything is open.
    pub cells: *const f64,
    /// 0, 1 or `systems`.
    pub cell_count: usize,
    /// Three bytes a system, or three for all: 1 where it repeats along that vector. Null where
    /// everything is open.
    pub periodic: *const u8,
    /// 0, 1 or `systems`.
    pub periodic_count: usize,
}

/// The quantities of a sum of `NfQuantity`.
fn quantities(given: u32) -> Result<Quantities, Failure> {
    choice("quantities", given, 32)?;
    let has = |quantity: NfQuantity| given & quantity as u32 != 0;
    Ok(Quantities {
        targets: has(NfQuantity::Targets),
        sources: has(NfQuantity::Sources),
        images: has(NfQuantity::Images),
        displacements: has(NfQuantity::Displacements),
        distances: has(NfQuantity::Distances),
    })
}

/// Makes a place for pairs, which searches fill; free it with nf_pairs_free().
///
/// # Safety
/// `pairs` points to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_pairs_new(pairs: *mut *mut NfPairs) -> NfStatus {
    call::plain(|| {
        args::place(pairs, "the place for the pairs")?;
        let name = PAIRS.insert(Pairs::default());
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "the place for the pairs", name as *mut NfPairs) }
    })
}

/// Frees pairs; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_pairs_free(pairs: *mut NfPairs) -> NfStatus {
    call::free(&PAIRS, pairs as usize)
}

/// The arrays of the last search; nothing is copied.
///
/// # Safety
/// `arrays` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_pairs_arrays(
    pairs: *const NfPairs,
    arrays: *mut NfPairArrays,
) -> NfStatus {
    call::read(&PAIRS, pairs as usize, |pairs, _| {
        let found = match pairs.precision {
            Precision::Single => view(&pairs.single, 0),
            Precision::Double => view(&pairs.double, 1),
        };
        // SAFETY: the caller guarantees that `arrays` is null or points to a writable value.
        unsafe { args::put(arrays, "arrays", found) }
    })
}

fn view<T>(pairs: &SystemPairs<T, u32>, precision: u32) -> NfPairArrays {
    fn of<E>(array: &[E]) -> *const E {
        if array.is_empty() {
            ptr::null()
        } else {
            array.as_ptr()
        }
    }
    NfPairArrays {
        points: pairs.offsets().len().saturating_sub(1),
        pairs: pairs.len(),
        offsets: of(pairs.offsets()),
        targets: of(pairs.targets()),
        sources: of(pairs.sources()),
        images: of(pairs.images().as_flattened()),
        displacements: of(pairs.displacements().as_flattened()).cast(),
        distances: of(pairs.distances()).cast(),
        precision,
    }
}

/// Finds the neighbours of every point of one set in another with the geometry of each pair.
/// `quantities` is a sum of nf_quantity. No lists are written or needed. Where it fails there are
/// no pairs. `pairs` keeps the memory of the engine's pairs too, for the next call.
#[unsafe(no_mangle)]
pub extern "C" fn nf_pair_geometry(
    engine: *const NfEngine,
    targets: u32,
    sources: u32,
    quantities: u32,
    pairs: *mut NfPairs,
) -> NfStatus {
    call::read(&ENGINES, engine as usize, |engine, _| {
        geometry_into(pairs, quantities, |geometry| {
            let sets = [engine.point_set(targets)?, engine.point_set(sources)?];
            engine.pair_geometry(sets[0], sets[1], geometry)
        })
    })
}

/// Fills pairs with the quantities that are wanted of the geometry that `find` writes.
pub(crate) fn geometry_into(
    pairs: *mut NfPairs,
    quantities: u32,
    find: impl FnOnce(&mut PairGeometry) -> Result<(), nearfield::Error>,
) -> Result<(), Failure> {
    none_after_an_error(pairs, || {
        let wanted = self::quantities(quantities)?;
        PAIRS.get(pairs as usize)?.write(|pairs| {
            find(&mut pairs.geometry)?;
            let copied = match pairs.geometry.arrays() {
                PairArrays::Single { .. } => {
                    pairs.precision = Precision::Single;
                    pairs.single.copy_geometry(&pairs.geometry, wanted)
                }
                PairArrays::Double { .. } => {
                    pairs.precision = Precision::Double;
                    pairs.double.copy_geometry(&pairs.geometry, wanted)
                }
            };
            Ok(copied.map_err(nearfield::Error::from)?)
        })
    })
}

/// Does `work`, which writes pairs; empties them if it fails, for whatever reason. Not before it:
/// arrays of as many pairs as the last time need not be filled with zeros.
fn none_after_an_error(
    pairs: *mut NfPairs,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let done = work();
    if done.is_err()
        && let Ok(pairs) = PAIRS.get(pairs as usize)
    {
        pairs.write(|pairs| {
            pairs.clear();
            Ok(())
        })?;
    }
    done
}

impl Pairs {
    /// Pairs in single precision, which a search is about to write.
    fn in_single(&mut self) -> &mut SystemPairs<f32, u32> {
        self.precision = Precision::Single;
        &mut self.single
    }

    /// The same in double precision.
    fn in_double(&mut self) -> &mut SystemPairs<f64, u32> {
        self.precision = Precision::Double;
        &mut self.double
    }

    fn clear(&mut self) {
        self.single.clear();
        self.double.clear();
    }
}

/// Sets options to their defaults. Pass sizeof(nf_systems_options).
///
/// # Safety
/// `options` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_options_init(
    options: *mut NfSystemsOptions,
    size: usize,
) -> NfStatus {
    let defaults = NfSystemsOptions {
        struct_size: size_of::<NfSystemsOptions>(),
        lists: 0,
        order: 0,
        threads: 0,
        device: ptr::null(),
    };
    // SAFETY: `put_options` needs exactly what the caller of this function guarantees.
    call::plain(|| unsafe { args::put_options(options, size, defaults) })
}

/// Makes a search of many systems; free it with nf_systems_free().
///
/// # Safety
/// `options` points to initialised options whose text ends with a NUL, `systems` to a place for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_new(
    options: *const NfSystemsOptions,
    systems: *mut *mut NfSystems,
) -> NfStatus {
    call::plain(|| {
        args::place(systems, "the place for the search")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        let mut builder = SystemSearch::builder().threads(options.threads as usize);
        if choice("lists", options.lists, 2)? == 1 {
            builder = builder.lists(ListKind::Half);
        }
        if choice("order", options.order, 2)? == 1 {
            builder = builder.list_order(ListOrder::Ascending);
        }
        // SAFETY: the caller guarantees that `options.device` is null or ends with a NUL.
        if let Some(device) = unsafe { args::text(options.device, MAX_NAME, "device")? } {
            let device: Device = device.parse().map_err(|error| bad(format!("{error}")))?;
            builder = builder.device(device);
        }
        let name = SYSTEMS.insert(builder.build()?);
        // SAFETY: the caller guarantees that `systems` is null or points to a writable value.
        unsafe { args::put(systems, "the place for the search", name as *mut NfSystems) }
    })
}

/// Frees a search of systems; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_systems_free(systems: *mut NfSystems) -> NfStatus {
    call::free(&SYSTEMS, systems as usize)
}

/// Copies the text of the last failure on this search, as nf_engine_error() does.
///
/// # Safety
/// `buffer` is null or points to `capacity` bytes, `needed` is null or points to a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_error(
    systems: *const NfSystems,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&SYSTEMS, systems as usize, buffer, capacity, needed) }
}

/// Finds the pairs of all systems within their radii; there are none between systems. `positions`
/// has three numbers for each of `points` points, one behind the other. `quantities` is a sum of
/// nf_quantity; targets and sources are places in the whole array. The text of a failure names the
/// system; there are no pairs then.
///
/// # Safety
/// `positions` points to `points` points, `input` to a structure whose arrays are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_neighbors_f32(
    systems: *mut NfSystems,
    positions: *const f32,
    points: usize,
    input: *const NfSystemsInput,
    quantities: u32,
    pairs: *mut NfPairs,
) -> NfStatus {
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe {
        find(
            systems,
            positions,
            points,
            input,
            quantities,
            pairs,
            Pairs::in_single,
        )
    }
}

/// The same in double precision.
///
/// # Safety
/// As for nf_systems_neighbors_f32().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_neighbors_f64(
    systems: *mut NfSystems,
    positions: *const f64,
    points: usize,
    input: *const NfSystemsInput,
    quantities: u32,
    pairs: *mut NfPairs,
) -> NfStatus {
    // SAFETY: `find` needs exactly what the caller of this function guarantees.
    unsafe {
        find(
            systems,
            positions,
            points,
            input,
            quantities,
            pairs,
            Pairs::in_double,
        )
    }
}

unsafe fn find<T: SystemReal>(
    systems: *mut NfSystems,
    positions: *const T,
    points: usize,
    input: *const NfSystemsInput,
    quantities: u32,
    pairs: *mut NfPairs,
    of: impl FnOnce(&mut Pairs) -> &mut SystemPairs<T, u32>,
) -> NfStatus {
    call::write(&SYSTEMS, systems as usize, |search| {
        none_after_an_error(pairs, || {
            let wanted = self::quantities(quantities)?;
            // SAFETY: the caller guarantees that `input` is null or points to a readable structure.
            let input = unsafe { args::one(input, "input")? };
            let offsets = Array::new(input.offsets, input.systems.saturating_add(1), "offsets");
            let cells = Array::new(
                input.cells.cast::<[[f64; 3]; 3]>(),
                input.cell_count,
                "cells",
            );
            let flags = input.periodic.cast::<[u8; 3]>();
            let flags = Array::new(flags, input.periodic_count, "periodic");
            // SAFETY: the caller guarantees that all arrays have as many elements as is said.
            let (positions, offsets, radii, cells, flags) = unsafe {
                (
                    Array::new(positions.cast::<[T; 3]>(), points, "positions").read()?,
                    offsets.read()?,
                    Array::new(input.radii, input.radius_count, "radii").read()?,
                    cells.read()?,
                    flags.read()?,
                )
            };
            let mut periodic = Vec::new();
            periodic.try_reserve_exact(flags.len()).map_err(|_| {
                Failure::new(NfStatus::OutOfMemory, "there is no memory for the flags")
            })?;
            for (system, flags) in flags.iter().enumerate() {
                if let Some(axis) = flags.iter().position(|&flag| flag > 1) {
                    return Err(bad(format!(
                        "periodic of system {system} is {} along axis {axis}: it must be 0 or 1",
                        flags[axis]
                    )));
                }
                periodic.push(flags.map(|flag| flag == 1));
            }
            let systems = Systems::new(positions, offsets, radii).in_cells(cells, &periodic);
            PAIRS
                .get(pairs as usize)?
                .write(|pairs| Ok(search.neighbors(&systems, wanted, of(pairs))?))
        })
    })
}
