//! The part of the CUDA driver that the engine calls, for machines without a GPU: memory of the
//! device is memory of the host, copies are made and counted, and kernels do nothing.
//!
//! A test that puts this library in the driver's place (as `libcuda.so.1`) runs the production code
//! of everything that the host does: what it copies, what it waits for and how much it starts. As
//! kernels do nothing, arrays hold zeros unless they were copied there, and results say nothing.
//!
//! Names, arguments and status codes are those of the CUDA driver API. A handle is a number or an
//! address that means nothing to the caller.

#![allow(non_snake_case, reason = "the names are those of the CUDA driver")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
    time::Instant,
};

/// Status of a call: `CUDA_SUCCESS`, or a code of `CUresult`.
type Status = c_uint;
type Address = u64;
type Handle = *mut c_void;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const OUT_OF_MEMORY: Status = 2;
const NOT_FOUND: Status = 500;
const ILLEGAL_ADDRESS: Status = 700;

/// Calls so far.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counts {
    /// Bytes copied from the device to the host.
    pub to_host: u64,
    /// Bytes copied from the host to the device.
    pub to_device: u64,
    /// Kernels started.
    pub kernels: u64,
    /// Bytes of shared memory per block that kernels were started with by `cuLaunchKernel`.
    pub shared: u64,
    /// Calls that wait for the device.
    pub waits: u64,
    /// Times that primary contexts are held now.
    pub contexts: u64,
    /// Bytes of page-locked memory that were made.
    pub page_locked: u64,
    /// Modules loaded.
    pub modules: u64,
}

static TO_HOST: AtomicU64 = AtomicU64::new(0);
static TO_DEVICE: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);
static SHARED: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
static CONTEXTS: AtomicU64 = AtomicU64::new(0);
static PAGE_LOCKED: AtomicU64 = AtomicU64::new(0);
static MODULES: AtomicU64 = AtomicU64::new(0);

/// Calls so far.
///
/// # Safety
/// `counts` has room for one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nullGpuCounts(counts: *mut Counts) {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let now = Counts {
        to_host: read(&TO_HOST),
        to_device: read(&TO_DEVICE),
        kernels: read(&KERNELS),
        shared: read(&SHARED),
        waits: read(&WAITS),
        contexts: read(&CONTEXTS),
        page_locked: read(&PAGE_LOCKED),
        modules: read(&MODULES),
    };
    // SAFETY: the caller's promise.
    unsafe { counts.write(now) };
}

/// Blocks of memory by address, with their sizes in bytes.
static BLOCKS: Mutex<BTreeMap<Address, usize>> = Mutex::new(BTreeMap::new());

fn blocks() -> std::sync::MutexGuard<'static, BTreeMap<Address, usize>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), 256).ok()
}

fn allocate(bytes: usize) -> Option<Address> {
    // SAFETY: the layout has at least one byte.
    let place = unsafe { alloc_zeroed(layout(bytes)?) };
    let address = (!place.is_null()).then_some(place.expose_provenance() as Address)?;
    blocks().insert(address, bytes);
    Some(address)
}

fn page_locked(bytes: usize) -> Option<Handle> {
    PAGE_LOCKED.fetch_add(bytes as u64, Ordering::Relaxed);
    allocate(bytes).map(place)
}

fn loaded() -> Handle {
    MODULES.fetch_add(1, Ordering::Relaxed);
    MODULE
}

fn free(address: Address) -> Status {
    let Some(bytes) = blocks().remove(&address) else {
        return INVALID_VALUE;
    };
    if let Some(layout) = layout(bytes) {
        // SAFETY: `allocate` made the block with this layout, and it is freed once.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address as usize), layout) };
    }
    SUCCESS
}

/// Returns true if a block holds `bytes` bytes from `address` on.
fn holds(address: Address, bytes: usize) -> bool {
    let blocks = blocks();
    let block = blocks.range(..=address).next_back();
    block.is_some_and(|(&begin, &size)| {
        usize::try_from(address - begin).is_ok_and(|from| from.saturating_add(bytes) <= size)
    })
}

/// Copies bytes from or to a block.
///
/// # Safety
/// The other end has as many bytes.
unsafe fn copy(to: *mut c_void, from: *const c_void, bytes: usize, held: Address) -> Status {
    if !holds(held, bytes) {
        return INVALID_VALUE;
    }
    // SAFETY: one end was checked, the other is the caller's promise. Both may be one array.
    unsafe { ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) };
    SUCCESS
}

fn place(address: Address) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// A call that answers by writing a value to `$to`, which the caller has room for.
macro_rules! answers {
    ($($name:ident($to:ident: $type:ty $(, $other:ident: $other_type:ty)*) = $value:expr;)*) => {$(
        /// As in the CUDA driver.
        ///
        /// # Safety
        /// There is room for the answer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($to: *mut $type $(, $other: $other_type)*) -> Status {
            $(let _ = &$other;)*
            let value: Option<$type> = $value;
            let Some(value) = value else { return OUT_OF_MEMORY };
            // SAFETY: the caller's promise.
            unsafe { $to.write(value) };
            SUCCESS
        }
    )*};
}

/// A call that has nothing to do.
macro_rules! does_nothing {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// As in the CUDA driver; nothing is to be done.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> Status {
            $(let _ = $argument;)*
            SUCCESS
        }
    )*};
}

/// GPUs that there are: one, or as many as the variable `NEARFIELD_NULL_GPUS` says.
fn count_of_gpus() -> c_int {
    let given = std::env::var("NEARFIELD_NULL_GPUS").ok();
    given.and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// The one context of all devices, and the stream that every stream is.
const CONTEXT: Handle = ptr::without_provenance_mut(0x10);
const STREAM: Handle = ptr::without_provenance_mut(0x20);
const MODULE: Handle = ptr::without_provenance_mut(0x30);
const FUNCTION: Handle = ptr::without_provenance_mut(0x40);
const POOL: Handle = ptr::without_provenance_mut(0x50);

answers! {
    cuDriverGetVersion(version: c_int) = Some(13_000);
    cuDeviceGetCount(count: c_int) = Some(count_of_gpus());
    cuDeviceGet(device: c_int, ordinal: c_int) = Some(ordinal);
    cuDeviceGetAttribute(value: c_int, attribute: c_uint, device: c_int) = Some(attribute_of(attribute));
    cuDeviceTotalMem_v2(bytes: usize, device: c_int) = Some(64 << 30);
    cuDevicePrimaryCtxRetain(context: Handle, device: c_int) = Some(retained());
    cuDeviceGetMemPool(pool: Handle, device: c_int) = Some(POOL);
    cuDeviceCanAccessPeer(can: c_int, device: c_int, peer: c_int) = Some(1);
    cuCtxGetCurrent(context: Handle) = Some(CONTEXT);
    cuCtxGetLimit(limit: usize, which: c_uint) = Some(1 << 20);
    cuStreamCreate(stream: Handle, flags: c_uint) = Some(STREAM);
    cuStreamCreateWithPriority(stream: Handle, flags: c_uint, priority: c_int) = Some(STREAM);
    cuMemAllocAsync(address: Address, bytes: usize, stream: Handle) = allocate(bytes);
    cuMemAlloc_v2(address: Address, bytes: usize) = allocate(bytes);
    cuMemHostAlloc(memory: Handle, bytes: usize, flags: c_uint) = page_locked(bytes);
    cuModuleLoadData(module: Handle, image: *const c_void) = Some(loaded());
    cuModuleGetFunction(function: Handle, module: Handle, name: *const c_char) = Some(FUNCTION);
    cuEventCreate(event: Handle, flags: c_uint) = Some(Box::into_raw(Box::new(Event::new())).cast());
    cuGetErrorString(text: *const c_char, status: c_uint) = Some(c"refused by the null GPU".as_ptr());
}

does_nothing! {
    cuInit(flags: c_uint);
    cuCtxSetCurrent(context: Handle);
    cuCtxSetLimit(which: c_uint, limit: usize);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuModuleUnload(module: Handle);
    cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int);
    cuEventQuery(event: Handle);
    cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAccess(pool: Handle, access: *const c_void, count: usize);
}

/// As in the CUDA driver: there is one priority.
///
/// # Safety
/// Both are places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(
    least: *mut c_int,
    most: *mut c_int,
) -> Status {
    for place in [least, most] {
        // SAFETY: the caller's promise.
        unsafe { place.write(0) };
    }
    SUCCESS
}

/// Which context the devices have now: a reset gives them another one of the same handle.
static CONTEXT_ID: AtomicU64 = AtomicU64::new(1);

/// As in the CUDA driver.
///
/// # Safety
/// `id` has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetId(_context: Handle, id: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe { id.write(CONTEXT_ID.load(Ordering::Relaxed)) };
    SUCCESS
}

/// As in the CUDA driver: nobody holds the context that the device has from now on.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(_device: c_int) -> Status {
    CONTEXT_ID.fetch_add(1, Ordering::Relaxed);
    CONTEXTS.store(0, Ordering::Relaxed);
    SUCCESS
}

/// Whether a kernel has failed: the context answers no more, until nobody holds it.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Ends the context as a kernel's fault does.
#[unsafe(no_mangle)]
pub extern "C" fn nullGpuFail() {
    FAILED.store(true, Ordering::Relaxed);
}

/// As in the CUDA driver: half of the memory is free.
///
/// # Safety
/// Both are places for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status {
    if FAILED.load(Ordering::Relaxed) {
        return ILLEGAL_ADDRESS;
    }
    // SAFETY: the caller's promise.
    unsafe {
        free.write(32 << 30);
        total.write(64 << 30);
    }
    SUCCESS
}

/// The context, held once more.
fn retained() -> Handle {
    CONTEXTS.fetch_add(1, Ordering::Relaxed);
    CONTEXT
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Status {
    if CONTEXTS.fetch_sub(1, Ordering::Relaxed) == 1 {
        FAILED.store(false, Ordering::Relaxed);
    }
    SUCCESS
}

fn attribute_of(attribute: c_uint) -> c_int {
    match attribute {
        // Multiprocessors; compute capability 9.0; memory in the order of a stream.
        16 => 8,
        75 => 9,
        115 => 1,
        _ => 0,
    }
}

/// When an event was recorded, microseconds since the first one.
struct Event(AtomicI32);

impl Event {
    fn new() -> Self {
        Self(AtomicI32::new(0))
    }

    fn record(&self) {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let elapsed = START.get_or_init(Instant::now).elapsed().as_micros();
        let elapsed = i32::try_from(elapsed).unwrap_or(i32::MAX);
        self.0.store(elapsed, Ordering::Relaxed);
    }
}

/// As in the CUDA driver.
///
/// # Safety
/// The event is one of cuEventCreate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventRecord(event: Handle, _stream: Handle) -> Status {
    // SAFETY: the caller's promise.
    unsafe { (*event.cast::<Event>()).record() };
    SUCCESS
}

/// As in the CUDA driver.
///
/// # Safety
/// The event is one of cuEventCreate, and destroyed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventDestroy_v2(event: Handle) -> Status {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(event.cast::<Event>()) });
    SUCCESS
}

/// As in the CUDA driver.
///
/// # Safety
/// The events are those of cuEventCreate; there is room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(
    milliseconds: *mut f32,
    begin: Handle,
    end: Handle,
) -> Status {
    // SAFETY: the caller's promise.
    let at = |event: Handle| unsafe { (*event.cast::<Event>()).0.load(Ordering::Relaxed) };
    // SAFETY: the caller's promise.
    unsafe { milliseconds.write((at(end) - at(begin)) as f32 * 1e-3) };
    SUCCESS
}

/// Waits, which is done at once.
fn waited() -> Status {
    WAITS.fetch_add(1, Ordering::Relaxed);
    SUCCESS
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_stream: Handle) -> Status {
    waited()
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Status {
    waited()
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(_event: Handle) -> Status {
    waited()
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: Address, _stream: Handle) -> Status {
    free(address)
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: Address) -> Status {
    free(address)
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(memory: Handle) -> Status {
    free(memory.expose_provenance() as Address)
}

/// As in the CUDA driver; all errors have one name.
///
/// # Safety
/// There is room for the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(_status: Status, name: *mut *const c_char) -> Status {
    // SAFETY: the caller's promise.
    unsafe { name.write(c"CUDA_ERROR".as_ptr()) };
    SUCCESS
}

/// As in the CUDA driver.
///
/// # Safety
/// There are as many bytes at `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: Address,
    bytes: usize,
    _stream: Handle,
) -> Status {
    TO_HOST.fetch_add(bytes as u64, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { copy(to, place(from), bytes, from) }
}

/// As in the CUDA driver.
///
/// # Safety
/// There are as many bytes at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: Address,
    from: *const c_void,
    bytes: usize,
    _stream: Handle,
) -> Status {
    TO_DEVICE.fetch_add(bytes as u64, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { copy(place(to), from, bytes, to) }
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(
    to: Address,
    from: Address,
    bytes: usize,
    _stream: Handle,
) -> Status {
    if !holds(from, bytes) {
        return INVALID_VALUE;
    }
    // SAFETY: the source was checked.
    unsafe { copy(place(to), place(from), bytes, to) }
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: Address,
    _of: Handle,
    from: Address,
    _there: Handle,
    bytes: usize,
    stream: Handle,
) -> Status {
    cuMemcpyDtoDAsync_v2(to, from, bytes, stream)
}

/// As in the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: Address, value: u8, bytes: usize, _: Handle) -> Status {
    if !holds(to, bytes) {
        return INVALID_VALUE;
    }
    // SAFETY: a block has those bytes.
    unsafe { place(to).cast::<u8>().write_bytes(value, bytes) };
    SUCCESS
}

/// As in the CUDA driver, for the kind of memory, the GPU, and whether the driver moves it.
///
/// # Safety
/// There is room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(
    value: *mut c_void,
    attribute: c_uint,
    address: Address,
) -> Status {
    const KIND: c_uint = 2;
    const MANAGED: c_uint = 8;
    const ORDINAL: c_uint = 9;
    const DEVICE_MEMORY: c_uint = 2;
    if !holds(address, 1) {
        return INVALID_VALUE;
    }
    let number = match attribute {
        KIND => DEVICE_MEMORY,
        MANAGED | ORDINAL => 0,
        _ => return INVALID_VALUE,
    };
    // SAFETY: the caller's promise.
    unsafe { value.cast::<c_uint>().write(number) };
    SUCCESS
}

/// Writes a text and its NUL.
///
/// # Safety
/// There is room for `room` bytes.
unsafe fn answer(to: *mut c_char, room: c_int, text: &CStr) -> Status {
    let bytes = text.to_bytes_with_nul();
    if usize::try_from(room).is_ok_and(|room| room >= bytes.len()) {
        // SAFETY: there is room.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, bytes.len()) };
        return SUCCESS;
    }
    INVALID_VALUE
}

/// As in the CUDA driver.
///
/// # Safety
/// There is room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, room: c_int, _: c_int) -> Status {
    // SAFETY: the caller's promise.
    unsafe { answer(name, room, c"null GPU") }
}

/// As in the CUDA driver.
///
/// # Safety
/// There is room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(bus: *mut c_char, room: c_int, _: c_int) -> Status {
    // SAFETY: the caller's promise.
    unsafe { answer(bus, room, c"0000:00:00.0") }
}

/// As in the CUDA driver: NVRTC asks for tables that this one does not have.
///
/// # Safety
/// There is room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetExportTable(table: *mut *const c_void, _: *const c_void) -> Status {
    // SAFETY: the caller's promise.
    unsafe { table.write(ptr::null()) };
    NOT_FOUND
}

/// As in the CUDA driver, but the kernel does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernelEx(
    _config: *const c_void,
    _function: Handle,
    _arguments: *mut Handle,
    _extra: *mut Handle,
) -> Status {
    KERNELS.fetch_add(1, Ordering::Relaxed);
    SUCCESS
}

/// As in the CUDA driver, but the kernel does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    _function: Handle,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    shared_bytes: c_uint,
    _stream: Handle,
    _arguments: *mut Handle,
    _extra: *mut Handle,
) -> Status {
    KERNELS.fetch_add(1, Ordering::Relaxed);
    SHARED.fetch_add(shared_bytes.into(), Ordering::Relaxed);
    SUCCESS
}
