//! Engines for data that live on a GPU: device pointers in and out, on the caller's stream.

use crate::{
    args::{self, Array, MAX_KERNEL, MAX_NAME, choice},
    call,
    handle::Table,
    kernels::wendland,
    options::periodic_vectors,
    status::{Failure, NfStatus},
};
use nearfield::{
    ListKind, Reduce,
    device::{DeviceEngine, DeviceField, DeviceKernel, DeviceTraversal, Lent, Progress},
    kernels::{Cuda, SphDensity},
};
use std::{
    ffi::{c_char, c_void},
    marker::PhantomData,
    ptr,
};

/// An engine whose points live on a GPU. Made by nf_device_engine_new().
#[derive(Debug)]
pub struct NfDeviceEngine {
    /// Nothing is where a handle seems to point.
    _name: PhantomData<DeviceEngine>,
}

static DEVICE_ENGINES: Table<DeviceEngine> = Table::new("engine on a GPU");

/// Settings of an engine on a GPU; nf_device_options_init() sets all but the radius.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceOptions {
    /// Size of this structure as the program was compiled; set by nf_device_options_init().
    pub struct_size: usize,
    /// Search radius in the unit of the coordinates, rounded to float.
    pub radius: f64,
    /// Number of the GPU, counted from 0.
    pub device: u32,
    /// 0, the default: the engine makes a stream of its own; 1: it uses `stream`.
    pub use_stream: u32,
    /// A CUstream (cudaStream_t) of the GPU's primary context, null for the default stream; it must
    /// stay there for as long as the engine.
    pub stream: *mut c_void,
    /// An nf_list_kind; full lists by default.
    pub lists: u32,
    /// Cells per radius along each axis, 1 to 8; 0, the default, chooses by the points.
    pub subdivision: u32,
    /// For every axis 1 where the domain repeats, 0, the default, where it is open.
    pub periodic: [u32; 3],
    /// For every periodic axis the vector along which the domain repeats; an orthogonal box has its
    /// lengths on the diagonal. Those of open axes are not read.
    pub box_vectors: [[f64; 3]; 3],
}

/// Values on the device, a fixed number per point; those of a point begin `stride` numbers behind
/// those of the point before.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceField {
    /// CUdeviceptr to floats; 0 where a kernel reads nothing.
    pub values: u64,
    /// Number of floats there.
    pub len: usize,
    /// Numbers from one point to the next.
    pub stride: usize,
}

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
}

/// How the contributions of a target's neighbours are combined.
#[repr(u32)]
#[derive(Debug, Clone, Copy)]
pub enum NfReduce {
    /// Added up; 0 without neighbours.
    Sum = 0,
    /// Smallest; infinity without neighbours.
    Min = 1,
    /// Largest; minus infinity without neighbours.
    Max = 2,
}

/// A pair kernel as CUDA C++, compiled into the traversal at run time. The text defines
///
/// void pair(const float* uniform, const Pair& pair, const float* target, const float* source,
///           float* result);
///
/// where `pair.d[3]` is the displacement from target to source and pair.d2 its square.
///
/// The text runs on the GPU as it is, in the context that the whole process shares, and nothing
/// checks what it does there. It must read target and source only below the numbers of channels
/// given here and uniform only below the number of parameters, write all numbers of result and
/// nothing else, and end for every pair, also for numbers that are NaN or infinite. An access to
/// other memory may end the use of CUDA in the process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NfDeviceKernel {
    /// Name of the text in the compiler's messages, such as a file name.
    pub name: *const c_char,
    /// The text.
    pub text: *const c_char,
    /// Parameters of the kernel, at most 160; changing them compiles nothing.
    pub uniforms: *const f32,
    /// Number of parameters.
    pub uniform_count: usize,
    /// Numbers the kernel reads of a target.
    pub target_channels: u32,
    /// Numbers it reads of a source.
    pub source_channels: u32,
    /// Numbers it gives, 1 to 16.
    pub outputs: u32,
    /// An nf_reduce.
    pub reduce: u32,
}

/// An array on the device, lent to the engine.
///
/// # Safety
/// As for [`Lent::new`].
unsafe fn borrow_array<T>(engine: &DeviceEngine, array: &Array<'_, T>) -> Result<Lent<T>, Failure> {
    array.check()?;
    // SAFETY: the caller guarantees that the address is device memory of this length until the
    // stream has used it.
    Ok(unsafe { Lent::new(engine.stream(), array.address() as u64, array.len()) })
}

/// Sets options to their defaults. Pass sizeof(nf_device_options).
///
/// # Safety
/// `options` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_options_init(
    options: *mut NfDeviceOptions,
    size: usize,
) -> NfStatus {
    call::plain(|| {
        let defaults = NfDeviceOptions {
            struct_size: size_of::<NfDeviceOptions>(),
            radius: 0.0,
            device: 0,
            use_stream: 0,
            stream: ptr::null_mut(),
            lists: 0,
            subdivision: 0,
            periodic: [0; 3],
            box_vectors: [[0.0; 3]; 3],
        };
        // SAFETY: the caller promises `size` bytes.
        unsafe { args::put_options(options, size, defaults) }
    })
}

/// Makes an engine on a GPU; free it with nf_device_engine_free(). NF_STATUS_DEVICE where there is
/// none.
///
/// # Safety
/// `options` points to initialised options, `engine` to a place for a handle; the stream is as
/// nf_device_options says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_new(
    options: *const NfDeviceOptions,
    engine: *mut *mut NfDeviceEngine,
) -> NfStatus {
    call::plain(|| {
        args::place(engine, "the place for the engine")?;
        // SAFETY: the caller guarantees that `options` is null or points to a readable structure.
        let options = unsafe { args::options(options)? };
        // SAFETY: `start` needs exactly what the caller of this function guarantees.
        let name = DEVICE_ENGINES.insert(unsafe { options.start()? });
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

impl NfDeviceOptions {
    /// # Safety
    /// The stream is as the structure says.
    unsafe fn start(&self) -> Result<DeviceEngine, Failure> {
        let vectors = periodic_vectors(self.periodic, self.box_vectors)?;
        let mut builder = DeviceEngine::builder(self.radius as f32).box_vectors(vectors);
        if choice("lists", self.lists, 2)? == 1 {
            builder = builder.lists(ListKind::Half);
        }
        let builder = builder.subdivision(choice("subdivision", self.subdivision, 9)?);
        Ok(match choice("use_stream", self.use_stream, 2)? {
            0 => builder.on_gpu(self.device)?,
            // SAFETY: `on_borrowed` needs exactly what the caller of this function guarantees.
            _ => unsafe { builder.on_borrowed(self.device, self.stream.cast())? },
        })
    }
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

/// Adds a point set: CUdeviceptr to three floats a point, which are copied. Waits for the device.
///
/// # Safety
/// `positions` points to 3 * points floats on the engine's GPU, `set` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_add_points(
    engine: *mut NfDeviceEngine,
    positions: u64,
    points: usize,
    number: *mut u32,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        args::place(number, "the place for the set's number")?;
        // SAFETY: `coordinates` needs exactly what the caller of this function guarantees.
        let positions = unsafe { coordinates(engine, positions, points)? };
        let id = engine.add_point_set(&positions.as_view())?;
        // SAFETY: the caller guarantees that `number` is null or points to a writable value.
        unsafe { args::put(number, "the place for the set's number", id.number()) }
    })
}

/// Gives a set new positions, which are copied; does not wait for the device.
///
/// # Safety
/// `positions` points to 3 * points floats on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_update(
    engine: *mut NfDeviceEngine,
    number: u32,
    positions: u64,
    points: usize,
) -> NfStatus {
    call::write(&DEVICE_ENGINES, engine as usize, |engine| {
        // SAFETY: `coordinates` needs exactly what the caller of this function guarantees.
        let positions = unsafe { coordinates(engine, positions, points)? };
        Ok(engine.update(engine.point_set(number)?, &positions.as_view())?)
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

/// # Safety
/// As for [`Lent::new`], of three numbers a point.
unsafe fn coordinates(
    engine: &DeviceEngine,
    pointer: u64,
    points: usize,
) -> Result<Lent<f32>, Failure> {
    let numbers = points
        .checked_mul(3)
        .ok_or_else(|| args::bad(format!("{points} points: more than memory holds")))?;
    let positions = Array::on_device(pointer, numbers, "the array of positions");
    // SAFETY: the caller guarantees that the address is device memory of this length until the
    // stream has used it.
    unsafe { borrow_array(engine, &positions) }
}

/// Waits for the device. `valid` gets 1 when everything computed since the last call may be used,
/// and 0 when points had left their cells or lists their storage: there is room now, repeat what
/// was computed since the updates.
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

/// The lists that nf_device_engine_find_neighbors() wrote; nothing is copied.
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
        let stream = engine.stream();
        let found = NfDeviceLists {
            start: found.start.device_ptr(stream).0,
            count: found.count.device_ptr(stream).0,
            indices: found.entries.device_ptr(stream).0,
            points: found.count.len(),
        };
        // SAFETY: the caller guarantees that `lists` is null or points to a writable value.
        unsafe { args::put(lists, "lists", found) }
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
        let mut counts =
            unsafe { borrow_array::<u32>(engine, &Array::on_device(counts, len, "counts"))? };
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
        let mut order =
            unsafe { borrow_array::<u32>(engine, &Array::on_device(order, len, "order"))? };
        Ok(engine.order(engine.point_set(number)?, &mut order.as_view_mut())?)
    })
}

/// Mass density as nf_sph_density(), all on the device.
///
/// `deliver` is an nf_deliver.
///
/// # Safety
/// `mass` and `density` (with `len` floats) are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_sph_density(
    engine: *const NfDeviceEngine,
    targets: u32,
    sources: u32,
    support: f32,
    dimensions: u32,
    mass: NfDeviceField,
    density: u64,
    len: usize,
    deliver: u32,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        let kernel = SphDensity {
            kernel: wendland(support, dimensions)?,
        };
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        let traversal = engine.traverse(&kernel, targets, sources);
        let results = Array::on_device(density, len, "results");
        // SAFETY: `run` needs exactly what the caller of this function guarantees.
        unsafe { run(engine, traversal, [None, Some(mass)], results, deliver) }
    })
}

/// Evaluates a kernel of the caller's for all pairs, all on the device.
///
/// `deliver` is an nf_deliver.
///
/// # Safety
/// The texts end with a NUL and the parameters are there; fields and `results` (with `len` floats,
/// the outputs of one target after the other) are on the engine's GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_device_engine_traverse(
    engine: *const NfDeviceEngine,
    kernel: *const NfDeviceKernel,
    targets: u32,
    sources: u32,
    target_field: NfDeviceField,
    source_field: NfDeviceField,
    results: u64,
    len: usize,
    deliver: u32,
) -> NfStatus {
    call::read(&DEVICE_ENGINES, engine as usize, |engine, _| {
        // SAFETY: the caller guarantees that `kernel` is null or points to a readable structure.
        let kernel = unsafe { args::one(kernel, "the kernel")?.kernel()? };
        let fields = [
            (kernel.target_channels > 0).then_some(target_field),
            (kernel.source_channels > 0).then_some(source_field),
        ];
        let (targets, sources) = (engine.point_set(targets)?, engine.point_set(sources)?);
        let traversal = engine.traverse_with(&kernel, targets, sources);
        let results = Array::on_device(results, len, "results");
        // SAFETY: `run` needs exactly what the caller of this function guarantees.
        unsafe { run(engine, traversal, fields, results, deliver) }
    })
}

impl NfDeviceKernel {
    /// # Safety
    /// The texts end with a NUL and the parameters are there.
    unsafe fn kernel(&self) -> Result<DeviceKernel, Failure> {
        // SAFETY: the caller guarantees that `self.name` is null or ends with a NUL.
        let name = unsafe { args::text(self.name, MAX_NAME, "the kernel's name")? };
        // SAFETY: the caller guarantees that `self.text` is null or ends with a NUL.
        let text = unsafe { args::text(self.text, MAX_KERNEL, "the kernel's text")? };
        // SAFETY: the caller guarantees that `self.uniforms` is null or holds that many elements.
        let uniforms = unsafe { Array::new(self.uniforms, self.uniform_count, "uniforms").read()? };
        let name = name.unwrap_or("kernel").to_owned();
        let text = text
            .ok_or_else(|| args::null("the kernel's text"))?
            .to_owned();
        if !(1..=16).contains(&self.outputs) {
            return Err(args::bad(format!(
                "the kernel gives {} numbers: 1 to 16 are possible",
                self.outputs
            )));
        }
        Ok(DeviceKernel {
            // SAFETY: the caller promises what the text does, as the structure's documentation
            // says.
            cuda: unsafe { Cuda::new(name, text) }.uniforms(uniforms),
            target_channels: self.target_channels as usize,
            source_channels: self.source_channels as usize,
            outputs: self.outputs as usize,
            reduce: match choice("reduce", self.reduce, 3)? {
                0 => Reduce::Sum,
                1 => Reduce::Min,
                _ => Reduce::Max,
            },
        })
    }
}

/// # Safety
/// Fields and results are on the engine's GPU.
unsafe fn run(
    engine: &DeviceEngine,
    traversal: DeviceTraversal<'_>,
    [of_targets, of_sources]: [Option<NfDeviceField>; 2],
    results: Array<'_, f32>,
    deliver: u32,
) -> Result<(), Failure> {
    let add = choice("deliver", deliver, 2)? == 1;
    let lend = |field: Option<NfDeviceField>, what| {
        let lend = |field: NfDeviceField| {
            let array = Array::on_device(field.values, field.len, what);
            results.apart_from(&array)?;
            // SAFETY: the caller guarantees that the address is device memory of this length until
            // the stream has used it.
            let lent = unsafe { borrow_array(engine, &array)? };
            Ok::<_, Failure>((lent, field.stride))
        };
        field.map(lend).transpose()
    };
    let of_targets = lend(of_targets, "the targets' field")?;
    let of_sources = lend(of_sources, "the sources' field")?;
    // SAFETY: as above, of the results.
    let mut results = unsafe { borrow_array(engine, &results)? };
    // Again, for the lifetime of the loan.
    let mut traversal = traversal;
    if let Some((field, stride)) = &of_targets {
        traversal = traversal.targets(DeviceField::new(field.as_view(), *stride));
    }
    if let Some((field, stride)) = &of_sources {
        traversal = traversal.sources(DeviceField::new(field.as_view(), *stride));
    }
    if add {
        Ok(traversal.add_into(&mut results.as_view_mut())?)
    } else {
        Ok(traversal.run_into(&mut results.as_view_mut())?)
    }
}
