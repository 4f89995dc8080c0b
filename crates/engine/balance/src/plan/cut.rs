//! The two backends, and how a subregion is split between them.
//!
//! A cut gives a beginning of a subregion's ranking by occupancy to the CPU backend, and
//! everything else to the GPU. It is stated in occupancies and ties rather than as a list of
//! bricks, so it keeps its meaning on the next layout, where bricks are others.

/// The backend that works on a brick.
///
/// Numbered from 0, so that arrays by backend are indexed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The pool of worker threads.
    Cpu,
    /// The GPU.
    Gpu,
}

impl Backend {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
        }
    }
}

/// How the bricks of a subregion are split: the part of the CPU backend.
///
/// Policies `band` and `model` cut by occupancy, `fraction` by order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Bricks of fewer points than `occupancy`, and the first `ties` of those with exactly as many,
    /// in brick order.
    Occupancy {
        /// Points in a brick.
        occupancy: u32,
        /// Bricks with exactly that many points that go to the CPU backend.
        ties: u32,
    },
    /// The first bricks in brick order, whatever they hold.
    Leading(u32),
}

impl Cut {
    /// Nothing to the CPU backend: θ = 0.
    pub const NONE: Self = Self::Occupancy {
        occupancy: 0,
        ties: 0,
    };
    /// Everything to the CPU backend: θ = ∞.
    pub const ALL: Self = Self::Occupancy {
        occupancy: u32::MAX,
        ties: u32::MAX,
    };
}
