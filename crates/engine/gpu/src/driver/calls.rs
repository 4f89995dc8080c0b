//! The CUDA driver: every raw call to it that finding devices and loading programs needs.
//!
//! The bindings panic where the driver's library is missing, so all that touches them goes through
//! a [`Driver`], which only exists where the library is there, has started, and is new enough.
//! Results of the driver that say that there is no device count as zero devices, not as failures,
//! so messages can say what is missing.
//!
//! Contexts are primary ones: every library of a process that uses the CUDA runtime shares them, so
//! arrays of other libraries can be used without copies.

use crate::{
    error::{Error, ErrorKind},
    handles::{Context, is_present},
    version::{Arch, Version},
};
use cudarc::{
    driver::{
        CudaContext, CudaModule,
        result::{self, DriverError},
        sys,
    },
    nvrtc::Ptx,
};
use nearfield_grid::PerProcess;
use std::{
    ffi::{CStr, CString, c_void},
    fs,
    path::Path,
    ptr, slice,
    sync::Arc,
};

/// The oldest driver that has all the calls we make and launches kernels from kernels as CUDA 12
/// and 13 do.
const OLDEST: Version = Version::new(12, 0);

/// The driver, started. Holding one means that calls to it cannot panic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver {
    /// The newest CUDA whose programs it loads.
    cuda: Version,
}

/// A GPU, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Number by which the GPU is asked for, from 0.
    pub index: u32,
    /// As the maker calls it.
    pub name: String,
    /// Architecture that programs are compiled for.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in bytes.
    pub memory: usize,
    /// Place on the PCI bus, as `0000:1b:00.0`.
    pub pci: String,
}

/// Tells a context from those that had or will have its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextId(u64);

impl ContextId {
    /// That of a context.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] if the context was destroyed.
    pub(crate) fn of(context: &CudaContext) -> Result<Self, Error> {
        let mut id = 0;
        // SAFETY: it writes one number, and knows which handles are contexts.
        let status = unsafe { sys::cuCtxGetId(context.cu_ctx(), &mut id) }.result();
        status.map_err(|error| Error::of_call("cuCtxGetId", error))?;
        Ok(Self(id))
    }
}

/// Opens GPU `device`, numbered from 0.
///
/// # Errors
///
/// [`ErrorKind::NoDriver`], [`ErrorKind::DriverTooOld`] or [`ErrorKind::NoDevice`] where it is not
/// there, and [`ErrorKind::Driver`] where it is but cannot be used.
pub fn open(device: u32) -> Result<Context, Error> {
    Driver::open()?.context(device).map(Context)
}

impl Context {
    /// Opens a GPU, numbered from 0: its primary context, which all libraries of a process share.
    ///
    /// # Errors
    /// [`ErrorKind::NoDriver`], [`ErrorKind::DriverTooOld`] or [`ErrorKind::NoDevice`] where it is
    /// not there, and [`ErrorKind::Driver`] where it is but cannot be used.
    pub fn open(gpu: u32) -> Result<Self, Error> {
        open(gpu)
    }
}

/// Whether there is a driver, and so perhaps a GPU. Quick: nothing is started.
///
/// # Errors
///
/// [`ErrorKind::NoDriver`] and [`ErrorKind::DriverTooOld`].
pub fn find_driver() -> Result<(), Error> {
    Driver::find().map(drop)
}

/// Describes every GPU that the driver shows this process, by number. Starts the driver.
///
/// # Errors
///
/// [`ErrorKind::NoDriver`], [`ErrorKind::DriverTooOld`] and [`ErrorKind::Driver`]; that there is no
/// GPU is no error.
pub fn visible() -> Result<Vec<DeviceInfo>, Error> {
    let driver = Driver::open()?;
    let numbers = 0..driver.device_count()?;
    numbers.map(|number| driver.device(number)).collect()
}

/// Describes GPU `device`, numbered from 0; errors as those of [`open`].
pub(crate) fn describe(device: u32) -> Result<DeviceInfo, Error> {
    Driver::open()?.device(device)
}

/// Whether the driver was started, and by which process.
static STARTED: PerProcess<()> = PerProcess::empty();

impl Driver {
    /// Loads and starts the driver. The first call of a process initialises the driver and takes
    /// long; later ones return at once.
    ///
    /// # Errors
    /// [`ErrorKind::NoDriver`], [`ErrorKind::DriverTooOld`], and [`ErrorKind::Forked`] in a child
    /// of a process that had started it.
    pub(crate) fn open() -> Result<Self, Error> {
        let driver = Self::find()?;
        if STARTED.is_inherited() {
            return Err(Error::from(ErrorKind::Forked));
        }
        match result::init() {
            Ok(()) => {
                STARTED.get_or_make(|| ());
                Ok(driver)
            }
            // Without a GPU the driver refuses to start; that there is none is all it means.
            Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(driver),
            Err(error) => Err(refused("cuInit", error)),
        }
    }

    /// Loads the driver, which is quick, and does not start it: nothing but its version may be
    /// asked.
    ///
    /// # Errors
    /// [`ErrorKind::NoDriver`] and [`ErrorKind::DriverTooOld`].
    pub(crate) fn find() -> Result<Self, Error> {
        if !is_present() {
            let reason = "its library libcuda.so.1 cannot be loaded".to_owned();
            return Err(Error::from(ErrorKind::NoDriver { reason }));
        }
        let cuda = version().map_err(|error| refused("cuDriverGetVersion", error))?;
        if cuda < OLDEST {
            let (found, needed) = (cuda, OLDEST);
            return Err(Error::from(ErrorKind::DriverTooOld { found, needed }));
        }
        Ok(Self { cuda })
    }

    /// The newest CUDA whose programs it loads.
    pub(crate) fn cuda(self) -> Version {
        self.cuda
    }

    /// How many GPUs it shows: those of the machine, less those that `CUDA_VISIBLE_DEVICES` hides.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`]; that there is no GPU is no error.
    pub(crate) fn device_count(self) -> Result<u32, Error> {
        match result::device::get_count() {
            Ok(count) => Ok(u32::try_from(count).unwrap_or(0)),
            Err(DriverError(
                sys::CUresult::CUDA_ERROR_NO_DEVICE | sys::CUresult::CUDA_ERROR_NOT_INITIALIZED,
            )) => Ok(0),
            Err(error) => Err(Error::of_call("cuDeviceGetCount", error)),
        }
    }

    /// Describes GPU `index`, without making a context on it, which would take memory there.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] and [`ErrorKind::Driver`].
    pub(crate) fn device(self, index: u32) -> Result<DeviceInfo, Error> {
        use sys::CUdevice_attribute as Attribute;
        let device = self.handle(index)?;
        let attribute = |attribute| {
            // SAFETY: the device came from cuDeviceGet.
            let value = unsafe { result::device::get_attribute(device, attribute) };
            let value = value.map_err(|error| Error::of_call("cuDeviceGetAttribute", error))?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: as above.
        let memory = unsafe { result::device::total_mem(device) };
        Ok(DeviceInfo {
            index,
            name: result::device::get_name(device)
                .map_err(|error| Error::of_call("cuDeviceGetName", error))?,
            arch: Arch::new(10 * major + minor),
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: memory.map_err(|error| Error::of_call("cuDeviceTotalMem", error))?,
            pci: pci(device)?,
        })
    }

    /// A context on GPU `index`: the primary one, which a process shares. Making it takes long, and
    /// memory of the GPU, unless the process has it already.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] and [`ErrorKind::Driver`].
    pub(crate) fn context(self, index: u32) -> Result<Arc<CudaContext>, Error> {
        self.handle(index)?;
        let context = CudaContext::new(index as usize);
        context.map_err(|error| Error::of_call(format!("making a context on GPU {index}"), error))
    }

    /// The driver's handle of GPU `index`.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] with the number of GPUs there are.
    fn handle(self, index: u32) -> Result<sys::CUdevice, Error> {
        let count = self.device_count()?;
        match i32::try_from(index) {
            Ok(ordinal) if index < count => {
                result::device::get(ordinal).map_err(|error| Error::of_call("cuDeviceGet", error))
            }
            _ => Err(Error::from(ErrorKind::NoDevice {
                device: index,
                count,
            })),
        }
    }
}

/// The newest CUDA whose programs the driver loads. Needs the library, but not that it has started.
fn version() -> Result<Version, DriverError> {
    let mut number = 0;
    // SAFETY: it writes one number.
    unsafe { sys::cuDriverGetVersion(&mut number) }.result()?;
    Ok(Version::from_driver(u32::try_from(number).unwrap_or(0)))
}

/// The driver's own version, such as 580.95.05, where the system tells it.
pub(crate) fn release() -> Option<String> {
    let text = fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_owned())
}

/// A driver that does not start.
fn refused(call: &str, error: DriverError) -> Error {
    Error::from(ErrorKind::NoDriver {
        reason: Error::of_call(call, error).to_string(),
    })
}

/// Where a GPU is on the PCI bus, in lower case as Linux writes it.
fn pci(device: sys::CUdevice) -> Result<String, Error> {
    let mut text = [0u8; 32];
    // SAFETY: at most as many bytes are written as there is room for.
    let status =
        unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), text.len() as i32, device) };
    let status = status.result();
    status.map_err(|error| Error::of_call("cuDeviceGetPCIBusId", error))?;
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    Ok(text.to_string_lossy().to_lowercase())
}

/// Loads machine code into a context. None if it is no ELF file: the driver would take it for the
/// text of a program and read on to a NUL, wherever that is.
///
/// # Errors
/// The driver's, for code of another architecture or of a CUDA that is too new for it.
pub(crate) fn load(
    context: &Arc<CudaContext>,
    code: Vec<u8>,
) -> Option<Result<Arc<CudaModule>, DriverError>> {
    let is_elf = code.starts_with(b"\x7fELF");
    is_elf.then(|| context.load_module(Ptx::from_binary(code)))
}

/// Links relocatable machine code with a static library in a context.
///
/// # Errors
/// The call that failed, with the driver's name for the error and the linker's log.
pub(crate) fn link(
    context: &Arc<CudaContext>,
    code: &[u8],
    with: &Path,
) -> Result<Vec<u8>, String> {
    let failed = |call: &str, error| Error::of_call(call, error).to_string();
    context
        .bind_to_thread()
        .map_err(|error| failed("cuCtxSetCurrent", error))?;
    let file = CString::new(with.to_string_lossy().as_bytes())
        .map_err(|_| format!("{} holds a NUL", with.display()))?;
    let mut session = Session::new().map_err(|error| failed("cuLinkCreate", error))?;
    session
        .add_code(code)
        .map_err(|error| session.log("cuLinkAddData", error))?;
    session
        .add_library(&file)
        .map_err(|error| session.log("cuLinkAddFile", error))?;
    session
        .complete()
        .map_err(|error| session.log("cuLinkComplete", error))
}

/// One link by the driver under way, destroyed when it is dropped, with all that it made.
struct Session {
    state: sys::CUlinkState,
    /// Boxed, as the driver keeps its address until the session ends.
    messages: Box<[u8; LOG_BYTES]>,
}

/// Room for the messages of a link; what does not fit is cut off by the driver.
const LOG_BYTES: usize = 16 << 10;

impl Session {
    /// Begins a link whose errors go to a buffer of the session.
    fn new() -> Result<Self, DriverError> {
        let mut messages = Box::new([0u8; LOG_BYTES]);
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [
            messages.as_mut_ptr().cast(),
            // The driver reads this "pointer" as a number.
            ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut state = ptr::null_mut();
        // SAFETY: two options with their two values; the log's buffer has the size told and
        // lives as long as the session.
        unsafe { sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut state) }
            .result()?;
        Ok(Self { state, messages })
    }

    /// Adds relocatable machine code.
    fn add_code(&mut self, code: &[u8]) -> Result<(), DriverError> {
        // SAFETY: the driver copies the code, which it does not write despite the pointer's type;
        // no options.
        unsafe {
            sys::cuLinkAddData_v2(
                self.state,
                sys::CUjitInputType::CU_JIT_INPUT_CUBIN,
                code.as_ptr().cast_mut().cast(),
                code.len(),
                c"program".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        }
        .result()
    }

    /// Adds a static library by its path.
    fn add_library(&mut self, file: &CStr) -> Result<(), DriverError> {
        // SAFETY: the name is NUL-terminated; no options.
        unsafe {
            sys::cuLinkAddFile_v2(
                self.state,
                sys::CUjitInputType::CU_JIT_INPUT_LIBRARY,
                file.as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        }
        .result()
    }

    /// Links, and copies the machine code out of the session.
    fn complete(&mut self) -> Result<Vec<u8>, DriverError> {
        let (mut code, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: the session lives; on success the code belongs to it.
        unsafe { sys::cuLinkComplete(self.state, &mut code, &mut bytes) }.result()?;
        // SAFETY: the driver made `bytes` bytes of code, valid until the session ends.
        Ok(unsafe { slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
    }

    /// A failure with what the linker said about it.
    fn log(&self, call: &str, error: DriverError) -> String {
        let messages = CStr::from_bytes_until_nul(&self.messages[..]).unwrap_or_default();
        let error = Error::of_call(call, error);
        format!("{error}; {}", messages.to_string_lossy().trim())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the state came from cuLinkCreate and is given back once. That this could fail
        // would change nothing for anyone.
        let _ = unsafe { sys::cuLinkDestroy(self.state) };
    }
}
