//! Pairs of many systems in one search.

use crate::{
    args::{self, Array, MAX_NAME, bad, choice},
    call,
    handle::Table,
    options::{list_kind, list_order},
    pairs::{NfPairs, PAIRS, Pairs, none_after_an_error, quantities},
    status::{Failure, NfStatus},
};
use nearfield::{
    Device, Error,
    systems::{
        Quantities, SkinSearch, SystemPairs, SystemReal, SystemSearch, SystemSearchBuilder, Systems,
    },
};
use std::{ffi::c_char, marker::PhantomData, ptr};

/// A search of many systems at once: nf_systems_new().
#[derive(Debug)]
pub struct NfSystems {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Search>,
}

static SYSTEMS: Table<Search> = Table::new("search of systems");

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
    /// In the unit of the coordinates; 0, the default: every call searches. Otherwise lists of
    /// radius + skin are kept, and a call tests only their pairs until a point has moved by half
    /// the skin, or anything but the points has changed, which is when it searches anew. Pairs are
    /// the same, bit for bit. On the CPU only.
    pub skin: f64,
    /// 1: pairs exactly as far apart as the radius are not neighbours. 0 by default.
    pub strict: u32,
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

/// What a handle names.
#[derive(Debug)]
struct Search {
    by: SearchBy,
    strict: bool,
}

#[derive(Debug)]
enum SearchBy {
    Plain(Box<SystemSearch>),
    Skin(Box<SkinSearches>),
}

/// Searches with a skin, one for each precision, each made when it is first needed.
#[derive(Debug)]
struct SkinSearches {
    builder: SystemSearchBuilder,
    skin: f64,
    single: Option<SkinSearch<f32>>,
    double: Option<SkinSearch<f64>>,
}

/// Numbers of a precision that has a search with a skin.
trait SkinReal: SystemReal {
    fn kept(searches: &mut SkinSearches) -> &mut Option<SkinSearch<Self>>;
}

impl SkinReal for f32 {
    fn kept(searches: &mut SkinSearches) -> &mut Option<SkinSearch<f32>> {
        &mut searches.single
    }
}

impl SkinReal for f64 {
    fn kept(searches: &mut SkinSearches) -> &mut Option<SkinSearch<f64>> {
        &mut searches.double
    }
}

impl Search {
    fn neighbors<T: SkinReal>(
        &mut self,
        systems: &Systems<'_, T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, u32>,
    ) -> Result<(), Error> {
        let systems = &Systems {
            strict: self.strict,
            ..*systems
        };
        match &mut self.by {
            SearchBy::Plain(search) => search.neighbors(systems, wanted, pairs),
            SearchBy::Skin(searches) => {
                let search = match T::kept(searches).take() {
                    Some(search) => search,
                    None => searches.builder.clone().with_skin(searches.skin)?,
                };
                let search = T::kept(searches).insert(search);
                search.neighbors(systems, wanted, pairs)
            }
        }
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
        skin: 0.0,
        strict: 0,
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
        // SAFETY: `start` needs exactly what the caller of this function guarantees.
        let name = SYSTEMS.insert(unsafe { options.start()? });
        // SAFETY: the caller guarantees that `systems` is null or points to a writable value.
        unsafe { args::put(systems, "the place for the search", name as *mut NfSystems) }
    })
}

impl NfSystemsOptions {
    /// # Safety
    /// The text is null or ends with a NUL.
    unsafe fn start(&self) -> Result<Search, Failure> {
        let mut builder = SystemSearch::builder()
            .threads(self.threads as usize)
            .lists(list_kind(self.lists)?)
            .list_order(list_order(self.order)?);
        // SAFETY: the caller guarantees that `self.device` is null or ends with a NUL.
        if let Some(device) = unsafe { args::text(self.device, MAX_NAME, "device")? } {
            let device: Device = device.parse().map_err(|error| bad(format!("{error}")))?;
            builder = builder.device(device);
        }
        let strict = choice("strict", self.strict, 2)? == 1;
        let by = if self.skin == 0.0 {
            SearchBy::Plain(Box::new(builder.build()?))
        } else {
            SearchBy::Skin(Box::new(SkinSearches {
                skin: self.skin,
                single: Some(builder.clone().with_skin(self.skin)?),
                double: None,
                builder,
            }))
        };
        Ok(Search { by, strict })
    }
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

/// How often the lists of a search with a skin were built, the first time included, by the calls in
/// float and in double together; NF_STATUS_BAD_ARGUMENT for a search without a skin.
///
/// # Safety
/// `builds` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_systems_builds(
    systems: *const NfSystems,
    builds: *mut u64,
) -> NfStatus {
    call::read(&SYSTEMS, systems as usize, |search, _| {
        let SearchBy::Skin(search) = &search.by else {
            return Err(bad(
                "this search has no skin and keeps no lists: set skin in its options",
            ));
        };
        let single = search.single.as_ref().map_or(0, SkinSearch::builds);
        let double = search.double.as_ref().map_or(0, SkinSearch::builds);
        // SAFETY: the caller guarantees that `builds` is null or points to a writable value.
        unsafe { args::put(builds, "builds", single + double) }
    })
}

unsafe fn find<T: SkinReal>(
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
