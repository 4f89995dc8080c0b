//! The kernels of integrate.cu, one typed function each, and the only unsafe code of this crate.
//!
//! **What the functions rely on:** arrays are at least as long as the counts passed with them say
//! (their owner, [`DeviceBody`](super::DeviceBody), ensures this when the counts change), and all
//! work is on the engine's stream.

use nearfield::device::{
    DeviceBuffer, DeviceEngine, DeviceViewMut,
    copies::Queue,
    programs::{KernelArgument, LaunchShape, Program, UserKernel},
};

use nearfield_shared::{Header, Source, shared_structs};

use crate::constants::{self, THREADS, TOTAL_THREADS};
use crate::{Config, Dimensions, Error, FrontRule, state::MAX_STRETCHED};

/// Maximum number of blocks that write sums.
pub(super) const MAX_BLOCKS: usize = constants::MAX_BLOCKS as usize;
/// Sums of a kick.
pub(super) const KICK_SLOTS: usize = constants::KICK_SLOTS as usize;
/// Bits of the sums that are maxima.
const KICK_MAXIMA: u32 = 1 << constants::SPEED | 1 << constants::ACCELERATION;
/// Sums of a compression.
pub(super) const COMPRESSION_SLOTS: usize = constants::COMPRESSION_SLOTS as usize;
/// Sums of energies and momentum.
pub(super) const MEASURE_SLOTS: usize = constants::MEASURE_SLOTS as usize;
/// Sums of a probe.
pub(super) const PROBE_SLOTS: usize = constants::PROBE_SLOTS as usize;
/// Sums of a step: of the first kick, the compression and the second kick.
pub(super) const TOTALS: usize = 2 * KICK_SLOTS + COMPRESSION_SLOTS;
/// First slot of the second kick.
pub(super) const SECOND_KICK: usize = KICK_SLOTS + COMPRESSION_SLOTS;
/// Bits of the sums of a step that are maxima.
pub(super) const STEP_MAXIMA: u32 = KICK_MAXIMA | KICK_MAXIMA << SECOND_KICK;

shared_structs! {
    /// `Settings` of integrate.cu.
    #[derive(Debug, Clone, Copy)]
    struct Settings {
        gravity: [f32; 3],
        stiffness: f32,
        max_stretched: f32,
        low: [f32; 3],
        high: [f32; 3],
    }

    /// `Meter` of integrate.cu.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Meter {
        half_inverse_length: f32,
        normalization: f32,
        points: u32,
        space: u32,
    }
}

// SAFETY: plain numbers, as integrate.cu declares them: its program asserts it.
unsafe impl KernelArgument for Settings {}
// SAFETY: as above.
unsafe impl KernelArgument for Meter {}

/// A fluid between the traversals of a step (crate `nearfield-sph`): kicks, compression, walls.
pub const FLUID: Source = Source {
    name: "integrate",
    text: include_str!("../../../../../kernels/cuda/sph/integrate.cu"),
    headers: &[Header::new("constants.cuh", constants::HEADER)],
    layouts: &[Settings::LAYOUT, Meter::LAYOUT],
    launches_children: false,
    kernels: &[
        "kick",
        "compress",
        "press_walls",
        "measure",
        "tally",
        "probe",
        "total",
    ],
};

/// The program of the fluid's kernels, for checks and for caches that are filled in advance.
pub fn programs() -> Vec<Program> {
    vec![Program::from(&FLUID)]
}

impl Meter {
    /// For probes that begin with `points` points.
    pub(super) fn of(config: &Config, points: usize) -> Self {
        let kernel = config.kernel();
        Self {
            half_inverse_length: 1.0 / kernel.support(),
            normalization: kernel.value(0.0),
            points: points as u32,
            space: u32::from(config.dimensions == Dimensions::Three),
        }
    }
}

/// The arrays that probes read.
pub(super) struct Probed<'a> {
    pub(super) position: &'a DeviceBuffer<f32>,
    pub(super) moving: &'a DeviceBuffer<f32>,
    pub(super) count: usize,
    /// Four numbers per probe, as ProbeArrays makes them.
    pub(super) places: &'a DeviceBuffer<f32>,
    pub(super) probes: usize,
    pub(super) meter: Meter,
}

/// The kernels, loaded.
pub(super) struct Kernels {
    queue: Queue,
    settings: Settings,
    /// Number of blocks that write sums. It does not depend on the number of particles of this
    /// rank, because particles move between ranks between the first kick and the reading of its
    /// sums.
    blocks: u32,
    kick: UserKernel,
    compress: UserKernel,
    press_walls: UserKernel,
    measure: UserKernel,
    tally: UserKernel,
    probe: UserKernel,
    total: UserKernel,
}

/// The arrays that a kick changes.
pub(super) struct Kicked<'a> {
    pub(super) position: &'a mut DeviceBuffer<f32>,
    pub(super) moving: &'a mut DeviceBuffer<f32>,
    pub(super) forces: &'a DeviceBuffer<f32>,
    pub(super) wall_forces: &'a DeviceBuffer<f32>,
    pub(super) count: usize,
}

/// The arrays that a compression changes.
pub(super) struct Compressed<'a> {
    pub(super) moving: &'a mut DeviceBuffer<f32>,
    /// Gets the old `moving`.
    pub(super) before: &'a mut DeviceBuffer<f32>,
    /// The quantities that forces read.
    pub(super) pressed: &'a mut DeviceBuffer<f32>,
    pub(super) rates: &'a DeviceBuffer<f32>,
    pub(super) wall_rates: &'a DeviceBuffer<f32>,
    pub(super) count: usize,
}

/// The place for the sums of a kernel's blocks.
pub(super) struct Partials<'a> {
    pub(super) values: &'a mut DeviceBuffer<f64>,
    /// The first sum of the kernel.
    pub(super) slot: usize,
}

impl Kernels {
    /// For at most `particles` particles.
    pub(super) fn load(
        engine: &DeviceEngine,
        config: &Config,
        particles: usize,
    ) -> Result<Self, Error> {
        let module = engine.load(&Program::from(&FLUID))?;
        let kernel = |name| UserKernel::of(&module, name, engine.queue()).map_err(Error::from);
        Ok(Self {
            queue: engine.queue().clone(),
            blocks: particles.div_ceil(THREADS as usize).clamp(1, MAX_BLOCKS) as u32,
            settings: Settings {
                gravity: config.gravity.to_array(),
                stiffness: config.water_state().stiffness(),
                max_stretched: MAX_STRETCHED,
                low: config.domain.low.to_array(),
                high: config.domain.high.to_array(),
            },
            kick: kernel("kick")?,
            compress: kernel("compress")?,
            press_walls: kernel("press_walls")?,
            measure: kernel("measure")?,
            tally: kernel("tally")?,
            probe: kernel("probe")?,
            total: kernel("total")?,
        })
    }

    /// The engine's queue.
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Kicks over `step`, then drifts over `drift` seconds.
    pub(super) fn kick(
        &self,
        fluid: Kicked<'_>,
        step: f32,
        drift: f32,
        partials: Partials<'_>,
    ) -> Result<(), Error> {
        let count = fluid.count as u32;
        let mut partials = partials.values.slice_mut(partials.slot * MAX_BLOCKS..);
        let arguments = (
            fluid.position,
            fluid.moving,
            fluid.forces,
            fluid.wall_forces,
            &count,
            &step,
            &drift,
            &self.settings,
            &mut partials,
        );
        // SAFETY: the arguments are those that integrate.cu declares; DeviceBody makes the arrays
        // as long as the count.
        Ok(unsafe {
            self.kick
                .start(LaunchShape::of(self.blocks, THREADS), arguments)
        }?)
    }

    /// Changes compressions over `step` seconds.
    pub(super) fn compress(
        &self,
        fluid: Compressed<'_>,
        step: f32,
        partials: Partials<'_>,
    ) -> Result<(), Error> {
        let count = fluid.count as u32;
        let mut partials = partials.values.slice_mut(partials.slot * MAX_BLOCKS..);
        let arguments = (
            fluid.moving,
            fluid.before,
            fluid.pressed,
            fluid.rates,
            fluid.wall_rates,
            &count,
            &step,
            &self.settings,
            &mut partials,
        );
        // SAFETY: as above.
        Ok(unsafe {
            self.compress
                .start(LaunchShape::of(self.blocks, THREADS), arguments)
        }?)
    }

    /// Adds up all sums of a step.
    pub(super) fn step_totals(
        &self,
        partials: &DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        self.total(self.blocks, TOTALS, STEP_MAXIMA, partials, totals)
    }

    pub(super) fn press_walls(
        &self,
        still: &mut DeviceBuffer<f32>,
        extrapolated: &DeviceBuffer<f32>,
        count: usize,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let (walls, blocks) = (count as u32, (count as u32).div_ceil(THREADS));
        let arguments = (still, extrapolated, &walls, &self.settings.stiffness);
        // SAFETY: as above.
        Ok(unsafe {
            self.press_walls
                .start(LaunchShape::of(blocks, THREADS), arguments)
        }?)
    }

    /// Sums Σv², Σg·x, internal energies over the mass, and Σv.
    pub(super) fn measure(
        &self,
        position: &DeviceBuffer<f32>,
        moving: &DeviceBuffer<f32>,
        count: usize,
        partials: &mut DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let fluid = count as u32;
        let arguments = (position, moving, &fluid, &self.settings, &mut *partials);
        // SAFETY: as above.
        unsafe {
            self.measure
                .start(LaunchShape::of(self.blocks, THREADS), arguments)
        }?;
        self.total(self.blocks, MEASURE_SLOTS, 0, partials, totals)
    }

    /// Counts the particles by the bins of `rule`, into zeros.
    pub(super) fn tally(
        &self,
        position: &DeviceBuffer<f32>,
        count: usize,
        rule: &FrontRule,
        counts: &mut DeviceBuffer<u32>,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let fluid = count as u32;
        let blocks = fluid.div_ceil(THREADS).min(self.blocks);
        let (low, scale) = (rule.low, rule.scale());
        let arguments = (position, &fluid, &low, &scale, counts);
        // SAFETY: as above; the kernel adds to FRONT_BINS counts, as many as Notes makes.
        Ok(unsafe {
            self.tally
                .start(LaunchShape::of(blocks, THREADS), arguments)
        }?)
    }

    /// Sums of probes over the fluid.
    pub(super) fn probe(
        &self,
        fluid: Probed<'_>,
        partials: &mut DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let (count, blocks) = (fluid.count as u32, constants::PROBE_BLOCKS);
        let probes = fluid.probes as u32;
        let arguments = (
            fluid.position,
            fluid.moving,
            &count,
            fluid.places,
            &fluid.meter,
            &self.settings,
            &mut *partials,
        );
        // SAFETY: as above; ProbeArrays makes four numbers and the slots of a probe for each.
        unsafe {
            self.probe
                .start(LaunchShape::of(blocks * probes, THREADS), arguments)
        }?;
        self.total(blocks, PROBE_SLOTS * fluid.probes, 0, partials, totals)
    }

    fn total(
        &self,
        blocks: u32,
        slots: usize,
        maxima: u32,
        partials: &DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let arguments = (partials, &blocks, &maxima, totals);
        // SAFETY: as above.
        Ok(unsafe {
            self.total
                .start(LaunchShape::of(slots as u32, TOTAL_THREADS), arguments)
        }?)
    }
}
