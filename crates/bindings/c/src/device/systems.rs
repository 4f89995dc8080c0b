//! Pairs of many systems whose points live on a GPU.

use super::{
    columns::{NfDeviceColumns, index_type},
    lend::{NfInteger, address, borrow_array},
};
use crate::{
    args::{self, Array, bad, choice},
    call,
    handle::Table,
    options::{NfPrecision, list_kind, precision},
    pairs::quantities,
    status::{Failure, NfStatus},
};
use nearfield::{
    Error, ListKind, Precision,
    device::{
        DevicePairsView, DeviceSkinSearch, DeviceSystemSearch, DeviceSystems, Lent, PointNumber,
        PositionNumber, Progress, Stream,
    },
    systems::{PairIndex, Quantities, SystemReal},
};
use std::{
    ffi::{c_char, c_void},
    fmt,
    marker::PhantomData,
    ptr,
};

/// A search of many systems on a GPU: nf_device_systems_new().
#[derive(Debug)]
pub struct NfDeviceSystems {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<Systems>,
}

static SYSTEMS: Table<Systems> = Table::new("search of systems on a GPU");

/// Settings of a search of systems on a GPU; nf_device_systems_options_init() sets all of them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceSystemsOptions {
    /// Size of this structure as the program was compiled; set by nf_device_systems_options_init().
    pub struct_size: usize,
    /// Number of the GPU, counted from 0.
    pub device: u32,
    /// 0, the default: the search makes a stream of its own; 1: it uses `stream`.
    pub use_stream: u32,
    /// A CUstream, as in nf_device_options; it must stay there for as long as the search.
    pub stream: *mut c_void,
    /// An nf_precision, that of the positions; NF_PRECISION_F32 by default.
    pub precision: u32,
    /// An nf_list_kind; full lists by default.
    pub lists: u32,
    /// An nf_integer, the type of targets and sources: NF_INTEGER_U32, the default, or I32 or I64.
    pub integer: u32,
    /// 1: pairs exactly as far apart as the radius are not neighbours. 0 by default.
    pub strict: u32,
    /// In the unit of the coordinates; 0, the default: every call searches. Otherwise lists of
    /// radius + skin are kept, as nf_systems_options says, and pairs are found by
    /// nf_device_systems_neighbors_into() alone.
    pub skin: f64,
}

/// Systems whose points lie behind each other in one array on the device; all pointers are
/// CUdeviceptr.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceSystemsInput {
    /// To three numbers a point, in the precision of the search.
    pub positions: u64,
    /// Number of points of all systems.
    pub points: usize,
    /// Number of systems.
    pub systems: usize,
    /// To int64_t: the first point of every system, and the number of points behind the last:
    /// `systems` + 1 numbers.
    pub offsets: u64,
    /// To doubles: a radius of every system, or one for all.
    pub radii: u64,
    /// 1, or `systems`.
    pub radius_count: usize,
    /// To nine doubles a cell, the rows being its vectors: of every system, or one for all. Vectors
    /// of open axes are not read. 0 where everything is open.
    pub cells: u64,
    /// 0, 1 or `systems`.
    pub cell_count: usize,
    /// To three bytes a system, or three for all: not 0 where it repeats along that vector. 0 where
    /// everything is open.
    pub periodic: u64,
    /// 0, 1 or `systems`.
    pub periodic_count: usize,
}

/// Pairs of many systems on the device, by CUdeviceptr, valid until the next search or until this
/// one is freed. Entry k of every array belongs to the same pair; pairs are sorted by point,
/// neighbour and image. Arrays that were not asked for are 0; others may have room behind the last
/// pair.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceSystemPairs {
    /// Number of points.
    pub points: usize,
    /// Number of pairs.
    pub pairs: u64,
    /// To 64-bit numbers: the first pair of every point, and behind them the number of pairs.
    pub offsets: u64,
    /// To integers of the type of the options: the point of every pair, by its place in the array
    /// of all systems.
    pub targets: u64,
    /// The same of its neighbour.
    pub sources: u64,
    /// To three int32_t a pair: by how many vectors the neighbour is moved.
    pub images: u64,
    /// To three numbers a pair: from the point to its neighbour, moved so; float or double, as
    /// `precision` says.
    pub displacements: u64,
    /// To a number a pair, of the same type: the length of that.
    pub distances: u64,
    /// An nf_precision: that of the search.
    pub precision: u32,
    /// An nf_integer: the type of targets and sources.
    pub integer: u32,
}

/// What a handle names.
struct Systems {
    search: Box<dyn Search>,
    /// The systems of the last search, whose arrays stay until it is finished.
    last: Option<NfDeviceSystemsInput>,
    integer: NfInteger,
    strict: bool,
}

impl fmt::Debug for Systems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Systems").finish_non_exhaustive()
    }
}

impl Systems {
    /// What a call searches.
    fn of(&self, input: NfDeviceSystemsInput) -> StrictInput {
        let strict = self.strict;
        StrictInput { input, strict }
    }
}

/// A search whose precision and type of indices are known when the program runs.
trait Search: Send + Sync {
    fn stream(&self) -> &Stream;

    /// # Safety
    /// The arrays are on the GPU of the search until the stream has used them.
    unsafe fn neighbors(&mut self, input: &StrictInput, wanted: Quantities) -> Result<(), Failure>;

    /// # Safety
    /// As for [`neighbors`](Self::neighbors).
    unsafe fn finish(&mut self, input: &StrictInput) -> Result<Progress, Failure>;

    /// Writes the pairs to arrays of the caller, waits, and returns their number.
    ///
    /// # Safety
    /// As for [`neighbors`](Self::neighbors) and [`NfDeviceColumns::lend`].
    unsafe fn neighbors_into(
        &mut self,
        input: &StrictInput,
        columns: &NfDeviceColumns,
    ) -> Result<u64, Failure>;

    /// How often lists with a skin were built; None without a skin.
    fn builds(&self) -> Option<u64>;

    /// The pairs; of `points` points, with this type of indices.
    fn pairs(&self, points: usize, integer: NfInteger) -> Option<NfDeviceSystemPairs>;
}

/// Systems of a call, and whether pairs at the radius are left out.
struct StrictInput {
    input: NfDeviceSystemsInput,
    strict: bool,
}

impl<T, I> Search for DeviceSystemSearch<T, I>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    fn stream(&self) -> &Stream {
        self.stream()
    }

    unsafe fn neighbors(&mut self, input: &StrictInput, wanted: Quantities) -> Result<(), Failure> {
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let lent = unsafe { LentSystems::new(self.stream(), input)? };
        Ok(self.neighbors(&lent.systems(), wanted)?)
    }

    unsafe fn finish(&mut self, input: &StrictInput) -> Result<Progress, Failure> {
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let lent = unsafe { LentSystems::new(self.stream(), input)? };
        Ok(self.finish(&lent.systems())?)
    }

    unsafe fn neighbors_into(
        &mut self,
        input: &StrictInput,
        columns: &NfDeviceColumns,
    ) -> Result<u64, Failure> {
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let lent = unsafe { LentSystems::new(self.stream(), input)? };
        // SAFETY: `lend` needs exactly what the caller of this function guarantees.
        let mut to = unsafe { columns.lend::<T, I>(self.stream())? };
        self.neighbors_into(&lent.systems(), &mut to.views())?;
        // Whether they had room is for the caller, who knows the room, to see.
        let _ = self.finish(&lent.systems())?;
        Ok(self.counted())
    }

    fn builds(&self) -> Option<u64> {
        None
    }

    fn pairs(&self, points: usize, integer: NfInteger) -> Option<NfDeviceSystemPairs> {
        let found: DevicePairsView<'_, T, I> = self.pairs()?;
        let stream = self.stream();
        let precision = match size_of::<T>() {
            4 => NfPrecision::F32,
            _ => NfPrecision::F64,
        };
        Some(NfDeviceSystemPairs {
            points,
            pairs: found.count,
            offsets: address(Some(&found.offsets), stream),
            targets: address(found.targets.as_ref(), stream),
            sources: address(found.sources.as_ref(), stream),
            images: address(found.images.as_ref(), stream),
            displacements: address(found.displacements.as_ref(), stream),
            distances: address(found.distances.as_ref(), stream),
            precision: precision as u32,
            integer: integer as u32,
        })
    }
}

impl<T, I> Search for DeviceSkinSearch<T, I>
where
    T: SystemReal + PositionNumber,
    I: PairIndex + PointNumber,
{
    fn stream(&self) -> &Stream {
        self.stream()
    }

    unsafe fn neighbors(&mut self, _: &StrictInput, _: Quantities) -> Result<(), Failure> {
        Err(bad(
            "a search with a skin has no arrays of its own: call nf_device_systems_neighbors_into",
        ))
    }

    unsafe fn finish(&mut self, _: &StrictInput) -> Result<Progress, Failure> {
        Ok(Progress::Valid)
    }

    unsafe fn neighbors_into(
        &mut self,
        input: &StrictInput,
        columns: &NfDeviceColumns,
    ) -> Result<u64, Failure> {
        // SAFETY: `new` needs exactly what the caller of this function guarantees.
        let lent = unsafe { LentSystems::new(self.stream(), input)? };
        // SAFETY: `lend` needs exactly what the caller of this function guarantees.
        let mut to = unsafe { columns.lend::<T, I>(self.stream())? };
        Ok(self.neighbors_into(&lent.systems(), &mut to.views())?)
    }

    fn builds(&self) -> Option<u64> {
        Some(self.builds())
    }

    fn pairs(&self, _: usize, _: NfInteger) -> Option<NfDeviceSystemPairs> {
        None
    }
}

/// Systems of the caller, lent to work on a stream.
struct LentSystems<T> {
    strict: bool,
    positions: Lent<T>,
    offsets: Lent<i64>,
    radii: Lent<f64>,
    cells: Option<Lent<f64>>,
    periodic: Option<Lent<u8>>,
}

impl<T> LentSystems<T> {
    /// # Safety
    /// The arrays are on the GPU of the stream until it has used them.
    unsafe fn new(
        stream: &Stream,
        StrictInput { input, strict }: &StrictInput,
    ) -> Result<Self, Failure> {
        /// # Safety
        /// As for [`Lent::new`].
        unsafe fn lend<T>(
            stream: &Stream,
            (first, len, each): (u64, usize, usize),
            what: &str,
        ) -> Result<Lent<T>, Failure> {
            // Too many for the address space stay too many.
            let array = Array::on_device(first, len.saturating_mul(each), what);
            // SAFETY: `borrow_array` needs exactly what the caller of this function guarantees.
            unsafe { borrow_array(stream, &array) }
        }
        let offsets = (input.offsets, input.systems.saturating_add(1), 1);
        let cells = (input.cells, input.cell_count, 9);
        let periodic = (input.periodic, input.periodic_count, 3);
        // SAFETY: the caller guarantees that all arrays have as many elements as is said.
        unsafe {
            Ok(Self {
                strict: *strict,
                positions: lend(stream, (input.positions, input.points, 3), "positions")?,
                offsets: lend(stream, offsets, "offsets")?,
                radii: lend(stream, (input.radii, input.radius_count, 1), "radii")?,
                cells: (input.cell_count > 0)
                    .then(|| lend(stream, cells, "cells"))
                    .transpose()?,
                periodic: (input.periodic_count > 0)
                    .then(|| lend(stream, periodic, "periodic"))
                    .transpose()?,
            })
        }
    }

    fn systems(&self) -> DeviceSystems<'_, T> {
        DeviceSystems {
            positions: self.positions.as_view(),
            offsets: self.offsets.as_view(),
            radii: self.radii.as_view(),
            cells: self.cells.as_ref().map(|cells| cells.as_view()),
            periodic: self.periodic.as_ref().map(|flags| flags.as_view()),
            strict: self.strict,
        }
    }
}

/// Sets options to their defaults. Pass sizeof(nf_device_systems_options).
///
/// # Safety
/// `options` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_options_init(
    options: *mut NfDeviceSystemsOptions,
    size: usize,
) -> NfStatus {
    let defaults = NfDeviceSystemsOptions {
        struct_size: size_of::<NfDeviceSystemsOptions>(),
        device: 0,
        use_stream: 0,
        stream: ptr::null_mut(),
        precision: 0,
        lists: 0,
        integer: NfInteger::U32 as u32,
        strict: 0,
        skin: 0.0,
    };
    // SAFETY: `put_options` needs exactly what the caller of this function guarantees.
    call::plain(|| unsafe { args::put_options(options, size, defaults) })
}

/// Makes a search of many systems on a GPU; free it with nf_device_systems_free().
///
/// # Safety
/// `options` points to initialised options, whose stream is as they say, `systems` to a place for a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_new(
    options: *const NfDeviceSystemsOptions,
    systems: *mut *mut NfDeviceSystems,
) -> NfStatus {
    call::plain(|| {
        args::place(systems, "the place for the search")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `start` needs exactly what the caller of this function guarantees.
        let name = SYSTEMS.insert(unsafe { options.start()? });
        // SAFETY: the caller guarantees that `systems` is null or points to a writable value.
        unsafe {
            args::put(
                systems,
                "the place for the search",
                name as *mut NfDeviceSystems,
            )
        }
    })
}

impl NfDeviceSystemsOptions {
    /// # Safety
    /// The stream is as the structure says.
    unsafe fn start(&self) -> Result<Systems, Failure> {
        let kind = list_kind(self.lists)?;
        let (integer, strict) = (index_type(self.integer)?, choice("strict", self.strict, 2)?);
        // SAFETY: `search` needs exactly what the caller of this function guarantees.
        let search = unsafe {
            match (precision(self.precision)?, integer) {
                (Precision::Single, NfInteger::I32) => self.search::<f32, i32>(kind)?,
                (Precision::Single, NfInteger::I64) => self.search::<f32, i64>(kind)?,
                (Precision::Single, _) => self.search::<f32, u32>(kind)?,
                (Precision::Double, NfInteger::I32) => self.search::<f64, i32>(kind)?,
                (Precision::Double, NfInteger::I64) => self.search::<f64, i64>(kind)?,
                (Precision::Double, _) => self.search::<f64, u32>(kind)?,
            }
        };
        Ok(Systems {
            search,
            last: None,
            integer,
            strict: strict == 1,
        })
    }

    /// # Safety
    /// As for [`start`](Self::start).
    unsafe fn search<T, I>(&self, kind: ListKind) -> Result<Box<dyn Search>, Failure>
    where
        T: SystemReal + PositionNumber,
        I: PairIndex + PointNumber,
    {
        let started: Result<_, Error> = match choice("use_stream", self.use_stream, 2)? {
            0 => DeviceSystemSearch::on_gpu(self.device),
            // SAFETY: `on_borrowed` needs exactly what the caller of this function guarantees.
            _ => unsafe { DeviceSystemSearch::on_borrowed(self.device, self.stream) },
        };
        let search: DeviceSystemSearch<T, I> = started?.lists(kind);
        if self.skin == 0.0 {
            return Ok(Box::new(search));
        }
        Ok(Box::new(search.with_skin(self.skin)?))
    }
}

/// Frees a search of systems; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn nf_device_systems_free(systems: *mut NfDeviceSystems) -> NfStatus {
    call::free(&SYSTEMS, systems as usize)
}

/// Copies the text of the last failure on this search, as nf_engine_error() does.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_error(
    systems: *const NfDeviceSystems,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> NfStatus {
    // SAFETY: `copy_error` needs exactly what the caller of this function guarantees.
    unsafe { call::copy_error(&SYSTEMS, systems as usize, buffer, capacity, needed) }
}

/// The CUstream on which the search does everything.
///
/// # Safety
/// `stream` points to a place for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_stream(
    systems: *const NfDeviceSystems,
    stream: *mut *mut c_void,
) -> NfStatus {
    call::read(&SYSTEMS, systems as usize, |systems, _| {
        let found = systems.search.stream().as_raw().cast();
        // SAFETY: the caller guarantees that `stream` is null or points to a writable value.
        unsafe { args::put(stream, "the place for the stream", found) }
    })
}

/// Starts to find the pairs of all systems within their radii, and returns without waiting; there
/// are none between systems. `quantities` is a sum of nf_quantity, as for
/// nf_systems_neighbors_f32(). What is in the arrays is checked by the device; call
/// nf_device_systems_finish() next.
///
/// # Safety
/// `input` points to a structure whose arrays are on the GPU of the search and are not freed or
/// overwritten before nf_device_systems_finish() has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_neighbors(
    systems: *mut NfDeviceSystems,
    input: *const NfDeviceSystemsInput,
    quantities: u32,
) -> NfStatus {
    call::write(&SYSTEMS, systems as usize, |systems| {
        let wanted = self::quantities(quantities)?;
        // SAFETY: the caller guarantees that `input` is null or points to a readable structure.
        let input = unsafe { args::one(input, "input")? };
        systems.last = None;
        let of = systems.of(*input);
        // SAFETY: the caller guarantees that the arrays are there until the search is finished.
        unsafe { systems.search.neighbors(&of, wanted)? };
        systems.last = Some(*input);
        Ok(())
    })
}

/// Waits for the last search. `valid` gets 1 when its pairs count, and 0 when there was too little
/// room for them: there is enough now, repeat the search. The text of a failure names the system
/// that cannot be searched. NF_STATUS_NO_LISTS when no search was started.
///
/// # Safety
/// `valid` points to a number; the arrays of the search are still there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_finish(
    systems: *mut NfDeviceSystems,
    valid: *mut u32,
) -> NfStatus {
    call::write(&SYSTEMS, systems as usize, |systems| {
        args::place(valid, "the place for the answer")?;
        let Some(input) = systems.last else {
            return Err(Failure::new(
                NfStatus::NoLists,
                "no search was started: call nf_device_systems_neighbors first",
            ));
        };
        let of = systems.of(input);
        // SAFETY: the caller guarantees that the arrays are there.
        let found = u32::from(unsafe { systems.search.finish(&of)? } == Progress::Valid);
        // SAFETY: the caller guarantees that `valid` is null or points to a writable value.
        unsafe { args::put(valid, "the place for the answer", found) }
    })
}

/// Finds the pairs of all systems, writes them to arrays of the caller, and waits for it. `pairs`
/// gets their number: all of them are written if that is at most `capacity`, and otherwise nothing
/// counts and the arrays have to be longer. Pairs are sorted by point, neighbour and image; their
/// indices have the type of the options. nf_device_systems_pairs() has none afterwards.
///
/// # Safety
/// `input` points to a structure whose arrays are on the GPU of the search, `columns` to one whose
/// arrays are there with room for `capacity` pairs, `pairs` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_neighbors_into(
    systems: *mut NfDeviceSystems,
    input: *const NfDeviceSystemsInput,
    columns: *const NfDeviceColumns,
    pairs: *mut u64,
) -> NfStatus {
    call::write(&SYSTEMS, systems as usize, |systems| {
        args::place(pairs, "the place for the number of pairs")?;
        // SAFETY: the caller guarantees that both are null or point to readable structures.
        let (input, columns) =
            unsafe { (args::one(input, "input")?, args::one(columns, "columns")?) };
        if columns.integer()? as u32 != systems.integer as u32 {
            return Err(bad(format!(
                "integer of the columns is {}, but the search was made for {}: they must agree",
                columns.integer, systems.integer as u32
            )));
        }
        systems.last = None;
        let of = systems.of(*input);
        // SAFETY: the caller guarantees that the arrays are there.
        let found = unsafe { systems.search.neighbors_into(&of, columns)? };
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "the place for the number of pairs", found) }
    })
}

/// How often the lists of a search with a skin were built, the first time included;
/// NF_STATUS_BAD_ARGUMENT for a search without a skin.
///
/// # Safety
/// `builds` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_builds(
    systems: *const NfDeviceSystems,
    builds: *mut u64,
) -> NfStatus {
    call::read(&SYSTEMS, systems as usize, |systems, _| {
        let found = systems.search.builds().ok_or_else(|| {
            bad("this search has no skin and keeps no lists: set skin in its options")
        })?;
        // SAFETY: the caller guarantees that `builds` is null or points to a writable value.
        unsafe { args::put(builds, "builds", found) }
    })
}

/// The pairs of the last search, once nf_device_systems_finish() said that they count; nothing is
/// copied. NF_STATUS_NO_LISTS otherwise.
///
/// # Safety
/// `pairs` points to a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_systems_pairs(
    systems: *const NfDeviceSystems,
    pairs: *mut NfDeviceSystemPairs,
) -> NfStatus {
    call::read(&SYSTEMS, systems as usize, |systems, _| {
        let points = systems.last.map_or(0, |input| input.points);
        let found = systems.search.pairs(points, systems.integer);
        let found = found.ok_or_else(|| {
            Failure::new(
                NfStatus::NoLists,
                "there are no pairs: call nf_device_systems_neighbors, and \
                 nf_device_systems_finish until it says that they are valid",
            )
        })?;
        // SAFETY: the caller guarantees that `pairs` is null or points to a writable value.
        unsafe { args::put(pairs, "pairs", found) }
    })
}
