//! Which hardware an engine is asked to use.

use nearfield_balance::EmulatedSpec;
use std::fmt;

/// Hardware an engine runs on.
///
/// Written `auto`, `cpu`, `gpu`, `gpu:1`, `hybrid`, `hybrid:1`, `emulated` or
/// `emulated:speed=8,bandwidth=25` on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Device {
    /// The best there is; the report says what was chosen and why.
    #[default]
    Auto,
    /// The CPU backend.
    Cpu,
    /// The GPU with this number. Needs the cargo feature `gpu`, as [`Hybrid`](Self::Hybrid) does.
    Gpu(u32),
    /// The CPU backend and the GPU with this number together.
    Hybrid(u32),
    /// The CPU backend together with a GPU that does not exist, for trying out how steps are
    /// divided between the two where there is none.
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
