//! Which hardware an engine is asked to use.
//!
//! A device is a request. `backend::support` decides once per job what an engine makes of it, and
//! the report tells. `docs/backends.md` has the table.
//!
//! An engine has at most one device besides the CPU backend. [`Device::Hybrid`] and
//! [`Device::Emulated`] have a plan of bricks that both backends share; [`Device::Gpu`] has none
//! and gives the GPU whole jobs; [`Device::Auto`] becomes a hybrid engine when its GPU is ready.
//!
//! **Invariant:** a number that follows a name is the driver's number of the GPU, and the text that
//! [`Device`] prints is read as the same value.

use nearfield_balance::EmulatedSpec;
use std::fmt;

/// Hardware an engine runs on.
///
/// A device that is named is used or refused: an engine that was asked for [`Gpu`](Self::Gpu) never
/// runs on the CPU because something is missing, unless the GPU fails in the middle of its work.
/// [`Auto`](Self::Auto) takes what there is.
///
/// Written `auto`, `cpu`, `gpu`, `gpu:1`, `hybrid`, `hybrid:1`, `emulated` or
/// `emulated:speed=8,bandwidth=25` on command lines.
///
/// ```
/// use nearfield::prelude::*;
/// assert_eq!("gpu:1".parse::<Device>()?, Device::Gpu(1));
/// assert_eq!(Device::Hybrid(0).to_string(), "hybrid:0");
/// assert!("tpu".parse::<Device>().is_err());
/// # Ok::<(), nearfield::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Device {
    /// The best there is; the report says what was chosen and why. It begins with the CPU backend
    /// and takes a GPU in when steps repeat, see [`Builder::device`](crate::Builder::device).
    ///
    /// A job that the GPU backend cannot do goes to the CPU backend without an error.
    #[default]
    Auto,
    /// The CPU backend, which can do everything.
    ///
    /// It starts no driver and needs neither a GPU nor the cargo feature.
    Cpu,
    /// The GPU with this number. Needs the cargo feature `gpu`, as [`Hybrid`](Self::Hybrid) does.
    ///
    /// The engine cannot be built without it. Jobs that the GPU backend does not do are
    /// [refused](crate::ErrorKind::Unsupported). If the GPU fails in the middle of a job, the CPU
    /// backend does that job again, and the GPU is tried again later; the report says so.
    Gpu(u32),
    /// The CPU backend and the GPU with this number together. Jobs that the GPU cannot do are left
    /// to the CPU backend.
    ///
    /// The GPU must be there when the engine is built. Settings that concern all jobs and by which
    /// the two cannot share any, such as [`Precision::Double`](crate::Precision::Double), are
    /// refused: the GPU would never be used.
    Hybrid(u32),
    /// The CPU backend together with a GPU that does not exist, for trying out how steps are
    /// divided between the two where there is none. Results are computed for real, on a thread of
    /// their own; times are those of the described machine.
    Emulated(EmulatedSpec),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(number) => write!(f, "gpu:{number}"),
            Self::Hybrid(number) => write!(f, "hybrid:{number}"),
            Self::Emulated(spec) => write!(f, "emulated:{spec}"),
        }
    }
}
