//! Why the GPU backend cannot start or could not finish.
//!
//! There is one opaque [`Error`] and one list of causes, [`ErrorKind`]. Each cause carries the
//! numbers of its case, and its message says what to do about it where something can be done. The
//! kinds fall into four groups, by what a caller can do:
//!
//! - *Not available*: no driver, no device, no compiler. The message has the remedy; the work can
//!   go to the CPU.
//! - *Refused*: lengths, devices, orders of calls that do not fit. No result was written.
//! - *Short of memory*: [`Error::is_out_of_memory`]. A smaller request may succeed.
//! - *Failed*: [`ErrorKind::Driver`]. After a fault of a kernel the context is unusable, and every
//!   later call fails too.
//!
//! An error is one pointer, so a `Result` of a call that is made thousands of times stays small.

use crate::{
    handles::{DriverError, FailedCall},
    version::{Arch, Version},
};
use cudarc::driver::result::DriverError as RawError;
use nearfield_grid::Precision;
use std::{
    ffi::CStr,
    path::{Path, PathBuf},
};

/// Why the GPU backend refused or could not finish a request; [`kind`](Self::kind) tells the causes
/// apart.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<ErrorKind>);

impl Error {
    /// The cause, with its numbers.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Returns true if memory was short, on the device or on the host: a smaller request may
    /// succeed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::OutOfMemory { .. } | ErrorKind::HostMemory(_)
        )
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

impl From<UnsafeFolder> for Error {
    fn from(folder: UnsafeFolder) -> Self {
        Self::from(ErrorKind::UnsafeCache(folder))
    }
}

impl From<nearfield_grid::memory::Shortage> for Error {
    fn from(shortage: nearfield_grid::memory::Shortage) -> Self {
        Self::from(ErrorKind::HostMemory(shortage))
    }
}

/// A folder of machine code that is not used, because other users could have put code there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}, which is not safe for GPU code: {reason}; take these rights away (chmod go-w, chown), or \
     name a folder of your own by NEARFIELD_CACHE_DIR",
    named(*named_by, folder)
)]
pub struct UnsafeFolder {
    /// The variable of the environment that names the folder, if one does.
    pub named_by: Option<&'static str>,
    /// The folder.
    pub folder: PathBuf,
    /// Which owner or mode was found, and what was expected.
    pub reason: String,
}

/// A folder, with the variable of the environment that names it.
fn named(variable: Option<&str>, folder: &Path) -> String {
    let folder = folder.display();
    match variable {
        Some(variable) => format!("{variable} names {folder}"),
        None => format!("the cache is in {folder}"),
    }
}

/// The causes of an [`Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The driver's library cannot be loaded or does not start.
    #[error(
        "no NVIDIA driver: {reason}; install one for CUDA 12.0 or newer (driver 525 or newer), for \
         example the apt package nvidia-driver-580"
    )]
    NoDriver {
        /// The attempts and their outcomes.
        reason: String,
    },
    /// The driver lacks calls that the GPU backend needs.
    #[error(
        "the NVIDIA driver supports CUDA {found}, but {needed} is needed; install a newer driver"
    )]
    DriverTooOld {
        /// Version that the driver supports.
        found: Version,
        /// The least that will do.
        needed: Version,
    },
    /// The driver was started by the parent of this process.
    #[error(
        "the driver was started by the process that this one was forked from, and CUDA does not \
         work in a forked child: start children by spawn or forkserver, or use the GPU in the \
         children only"
    )]
    Forked,
    /// There is no GPU of that number.
    #[error(
        "there is no GPU {device}: the driver shows {count}, numbered from 0; the environment \
         variable CUDA_VISIBLE_DEVICES may hide some"
    )]
    NoDevice {
        /// Number asked for.
        device: u32,
        /// GPUs there are.
        count: u32,
    },
    /// A library that is needed to compile or to link was not found. Programs from the cache run
    /// without it.
    #[error("{library} was not found in {searched}; {remedy}")]
    NoLibrary {
        /// Name of the missing library.
        library: &'static str,
        /// Where it was looked for.
        searched: String,
        /// How to get it.
        remedy: String,
    },
    /// A library was found, but cannot be used: it does not load, or lacks a function.
    #[error("{} cannot be used: {reason}", path.display())]
    BadLibrary {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The cache that was named lies where other users could put code.
    #[error(transparent)]
    UnsafeCache(UnsafeFolder),
    /// The box repeats along vectors that lean along open axes.
    ///
    /// A search by the GPU alone takes such boxes; what names bricks of cells, or takes extents
    /// along single axes, does not.
    #[error(
        "the GPU backend has no lists with a skin, and shares no work with the CPU, in boxes in which \
         a box vector leans along an open axis: let it search alone, or make that axis periodic with \
         a box vector longer than the points extend"
    )]
    SlantedBox,
    /// Positions are not in the precision of the engine.
    #[error(
        "positions are in {found}, and the engine is in {expected}: convert them on the device, or \
         build the engine with Precision::{}",
        match found {
            Precision::Single => "Single",
            Precision::Double => "Double",
        }
    )]
    Precision {
        /// Of the positions.
        found: Precision,
        /// Of the engine.
        expected: Precision,
    },
    /// A system has too many points or images to test all of its pairs.
    #[error(
        "system {system} has more than {} points, or more images than the GPU backend tests: search \
         it on the CPU (device cpu), or as a point set of an engine of its own",
        crate::constants::SYSTEM_MAX
    )]
    LargeSystem {
        /// The first such system.
        system: usize,
    },
    /// The domain is [reduced](nearfield_grid::Domain::reduced).
    #[error(
        "the GPU backend does not search boxes by other vectors than those they were given by: \
         make the lattice of the domain before it was reduced"
    )]
    ReducedBox,
    /// The program cannot be handed to the compiler, or the compiler failed for a reason that is
    /// not in the text.
    #[error("the GPU program {program} cannot be compiled: {reason}")]
    BadProgram {
        /// Name of the program.
        program: String,
        /// Why.
        reason: String,
    },
    /// The compiler found does not know the architecture: it is older than the device, or so new
    /// that it has dropped it.
    #[error(
        "NVRTC {nvrtc} cannot compile for {arch}; it knows {}; a newer one may",
        list(known)
    )]
    UnknownArch {
        /// Asked for.
        arch: Arch,
        /// The compiler's version.
        nvrtc: Version,
        /// Architectures that it can compile for.
        known: Vec<Arch>,
    },
    /// The compiler refused the program's text.
    #[error("the GPU program {program} does not compile for {arch}:\n{log}")]
    Compile {
        /// Name of the program.
        program: String,
        /// Its architecture.
        arch: Arch,
        /// The compiler's messages, with files and lines.
        log: String,
    },
    /// The compiler refused a text that the library translated from Rust.
    #[error(
        "the CUDA text that #[pair_kernel] made of {kernel} does not compile for {arch}, in the \
         program {program}: this is a bug of Nearfield's translation; please report it with the \
         text, which nearfield::kernels::cuda_source(&kernel) returns, and these messages. \
         Until it is mended, use the device cpu or override PairKernel::cuda:\n{log}"
    )]
    Translation {
        /// Type of the kernel.
        kernel: String,
        /// Name of the program.
        program: String,
        /// Its architecture.
        arch: Arch,
        /// The compiler's messages, with the lines of the text.
        log: String,
    },
    /// The linker refused the program.
    #[error("the GPU program {program} does not link for {arch} ({linker}): {log}")]
    Link {
        /// Name of the program.
        program: String,
        /// Its architecture.
        arch: Arch,
        /// Which linker.
        linker: &'static str,
        /// The linker's messages.
        log: String,
    },
    /// A module has no kernel of that name.
    #[error("the GPU program {program} has no kernel {kernel}")]
    NoKernel {
        /// Name of the program.
        program: String,
        /// Asked for.
        kernel: String,
    },
    /// A call to the driver failed; after a kernel's fault every later call does.
    #[error("{call}: {name} ({code}), {text}")]
    Driver {
        /// The call or the kernel.
        call: String,
        /// The driver's number.
        code: u32,
        /// The driver's name for it, such as `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// The driver's sentence about it.
        text: String,
    },
    /// The device has no room. The buffer in question keeps the memory it has, so a smaller step
    /// can follow.
    #[error(
        "out of GPU memory: {bytes} bytes are needed for {what}; take fewer points or a smaller \
         radius, end other programs that use the GPU, or use the CPU (device cpu)"
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Use of the memory.
        what: String,
    },
    /// The host has no room.
    #[error(transparent)]
    HostMemory(nearfield_grid::memory::Shortage),
    /// A set has more points than can be numbered in 32 bits, the largest number being kept for "no
    /// index".
    #[error("{0} points are too many: a set holds fewer than 4294967295")]
    TooManyPoints(usize),
    /// Coordinates on the device are NaN or infinite. Results since the positions were given are
    /// those of points that nothing finds.
    #[error("{count} points have coordinates that are not finite, the first of them point {first}")]
    NotFinite {
        /// Index of the first of them.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Whole numbers of points on the device do not fit into 32 bits.
    #[error(
        "{count} {what} are negative or larger than 4294967295, the first of them that of point \
         {first}"
    )]
    PointNumbers {
        /// Which numbers.
        what: &'static str,
        /// Index of the first such point.
        first: u32,
        /// How many.
        count: u64,
    },
    /// A set was to be sorted again, or traversed, that has no cells yet or has new positions.
    #[error("the points have not been sorted into cells yet: sort them first")]
    Unsorted,
    /// A set was sorted into the cells of another lattice than it is used with.
    #[error(
        "the points are sorted into the cells of another lattice: sort them with this one first"
    )]
    OtherLattice,
    /// A share was made of other targets, before they were sorted last, or without the cell table
    /// that the strategy needs.
    #[error(
        "the share of the targets was not made of the points as they are sorted now, or not for the \
         strategy {strategy}: make it anew"
    )]
    OtherShare {
        /// The strategy asked for.
        strategy: &'static str,
    },
    /// Filters read data of other points, or that were not arranged since these were sorted last.
    #[error("the data of filters are not those of the points as they are sorted now: arrange them")]
    OtherFilter,
    /// A strategy that goes from cell to cell was asked for pairs that filters leave out.
    #[error("the strategy {strategy} has no filters: use Strategy::Flat or Strategy::Auto")]
    FilteredStrategy {
        /// The strategy asked for.
        strategy: &'static str,
    },
    /// Lists of exclusions do not lie one behind the other.
    #[error(
        "the starts of exclusions do not ascend from 0 to the number of indices, or a list is \
         longer than 2^32 - 1"
    )]
    ExclusionLists,
    /// Lists are to be delivered that were measured for other points, or before these were sorted
    /// last.
    #[error(
        "the lists were not measured for the points as they are sorted now: measure them first"
    )]
    OtherLists,
    /// A pair kernel has more channels than programs are made for.
    #[error("the pair kernel {kernel} has {found} channels of {what}, at most {most} are possible")]
    TooManyChannels {
        /// Type of the kernel.
        kernel: String,
        /// Of what: a target, a source or a result.
        what: &'static str,
        /// Channels it has.
        found: usize,
        /// Channels it may have.
        most: usize,
    },
    /// Points have left the box that their cells cover: the set must be sorted into new bounds.
    #[error("{count} points have left the box of cells around {bounds:?}: sort them anew")]
    Outside {
        /// How many.
        count: u32,
        /// Bounds that the box was made for.
        bounds: nearfield_grid::Bounds,
    },
    /// Lists on the device did not fit into the storage of an earlier search. Entries behind its
    /// end were not written.
    #[error("lists of {pairs} neighbours do not fit into the room for {room}: search anew")]
    ListsOverflow {
        /// Neighbours found.
        pairs: u64,
        /// Entries there is room for.
        room: u64,
    },
    /// Lists on the device would take more than they may. Nothing was written.
    #[error("entries of lists would take {needed} bytes of the GPU, but the limit is {limit}")]
    ListsLimit {
        /// Bytes of the entries, and of what is written beside them.
        needed: u64,
        /// Bytes that they may take.
        limit: u64,
    },
    /// Pairs were found through images whose numbers exceed 32 bits: points lie 2³¹ boxes apart.
    /// Their images on the device are not these numbers.
    #[error(
        "at least {pairs} pairs have images whose numbers exceed 32 bits: bring the points nearer to \
         the box, or ask for shifts and displacements without images"
    )]
    FarImages {
        /// Pairs of such an image.
        pairs: u32,
    },
    /// Kernels could not launch their children, so results lack the pairs of some cells.
    #[error(
        "{failed} launches from kernels failed (code {error} of the device runtime): raise the \
         limit of pending launches, or choose the strategy flat"
    )]
    Launches {
        /// Launches that failed.
        failed: u32,
        /// Largest error code among them.
        error: u32,
    },
    /// A pair kernel without CUDA text.
    #[error(
        "the pair kernel {kernel} has no CUDA text, so it runs on the CPU alone: implement \
         PairKernel::cuda, or use the device cpu"
    )]
    NoCuda {
        /// Type of the kernel.
        kernel: String,
    },
    /// A pair kernel has more parameters than a launch carries.
    #[error("the pair kernel {kernel} has {found} uniforms, at most {most} can be passed")]
    TooManyUniforms {
        /// Type of the kernel.
        kernel: String,
        /// Uniforms it has.
        found: usize,
        /// Uniforms it may have.
        most: usize,
    },
    /// Work is divided into more parts than shares are told apart in.
    #[error("work is divided into {found} parts, at most {most} are possible")]
    TooManyParts {
        /// Parts there are.
        found: usize,
        /// Parts there may be.
        most: usize,
    },
    /// An array lies on another GPU than the backend works on.
    #[error("{what} are on GPU {found}, but the backend works on GPU {expected}")]
    OtherDevice {
        /// Which array.
        what: &'static str,
        /// Number of its GPU.
        found: usize,
        /// Number of the backend's.
        expected: usize,
    },
    /// An array is made and freed in the order of another stream.
    #[error(
        "{what} belong to another stream than the one that copies them; use an array of this stream"
    )]
    OtherStream {
        /// Which array.
        what: &'static str,
    },
    /// An array does not fit the points and the kernel.
    #[error("{what}: {found} values, but {expected} are needed")]
    FieldLength {
        /// Which array.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The expected value.
        expected: usize,
    },
    /// A result is for a target that there is not.
    #[error("a result for target {target}: there are {targets}")]
    UnknownTarget {
        /// Its index.
        target: u32,
        /// Number of targets.
        targets: usize,
    },
}

impl Error {
    /// A failed call to the driver, which must be there to have failed: its names and sentences for
    /// errors are asked of the library.
    pub fn driver(call: impl Into<String>, error: DriverError) -> Self {
        Self::of_call(call, error.0)
    }

    /// As [`driver`](Self::driver), for calls that are made past the handles.
    pub(crate) fn of_call(call: impl Into<String>, error: impl FailedCall) -> Self {
        let error = error.raw();
        let text = |text: Result<&CStr, RawError>| match text {
            Ok(text) => text.to_string_lossy().into_owned(),
            Err(_) => "the driver has no word for it".to_owned(),
        };
        Self::from(ErrorKind::Driver {
            call: call.into(),
            code: error.0 as u32,
            name: text(error.error_name()),
            text: text(error.error_string()),
        })
    }
}

/// Refuses an array of another length than the points and the kernel need.
///
/// # Errors
/// [`ErrorKind::FieldLength`], which calls the array `what`.
pub(crate) fn fits(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::from(ErrorKind::FieldLength {
        what,
        found,
        expected,
    }))
}

/// An empty vector with room for `len` values.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`], which calls them `what`.
pub(crate) fn reserved<T>(len: usize, what: &'static str) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    match values.try_reserve_exact(len) {
        Ok(()) => Ok(values),
        Err(_) => Err(Error::from(ErrorKind::OutOfMemory {
            bytes: len.saturating_mul(size_of::<T>()),
            what: what.to_owned(),
        })),
    }
}

/// Architectures, as `sm_80, sm_90`.
fn list(archs: &[Arch]) -> String {
    let names: Vec<_> = archs.iter().map(Arch::to_string).collect();
    names.join(", ")
}
