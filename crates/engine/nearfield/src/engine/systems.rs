//! Many systems of points in one search.
//!
//! Systems are arguments of a call, as the points of sums over all pairs are, and not point sets of
//! an engine: a program that trains a potential brings other molecules with every call. What is
//! kept from call to call is memory and threads.
//!
//! **Invariant:** the pairs of a system are those that an engine of this system alone finds, bit
//! for bit, on every device.

use crate::{
    Device, Error, ErrorKind, ListKind, ListOrder,
    backend::{
        DeviceError,
        gpu::GpuSystems,
        support::{Choice, Feature, choose, in_build},
    },
    report::SimdLevel,
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, Systems},
};
use nearfield_cpu::CpuBackend;

/// The pairs of all systems within their radii, with the quantities that are asked for. Pairs of a
/// point are sorted by (neighbour, image).
///
/// ```
/// use nearfield::systems::{self, Quantities, Systems};
/// // A molecule of two atoms, and a chain that repeats along x.
/// let positions = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.1], [0.25, 0.0, 0.0f64]];
/// let cells = [[[0.0; 3]; 3], [[1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]]];
/// let systems = Systems::new(&positions, &[0, 2, 3], &[1.5])
///     .in_cells(&cells, &[[false; 3], [true, false, false]]);
/// let pairs = systems::neighbors(&systems, Quantities::ALL)?;
/// assert_eq!(pairs.targets(), [0, 1, 2, 2]);
/// assert_eq!(pairs.sources(), [1, 0, 2, 2]);
/// assert_eq!(pairs.images()[2..], [[-1, 0, 0], [1, 0, 0]]);
/// assert_eq!(pairs.displacements()[2], [-1.0, 0.0, 0.0]);
/// assert_eq!(pairs.distances(), [1.1, 1.1, 1.0, 1.0]);
/// # Ok::<(), nearfield::Error>(())
/// ```
///
/// Runs on the CPU. Programs that search again and again keep a [`SystemSearch`], which keeps its
/// threads, and the [`SystemPairs`], which keep their memory.
///
/// # Errors
/// As [`SystemSearch::neighbors`].
pub fn neighbors<T: SystemReal>(
    systems: &Systems<'_, T>,
    quantities: Quantities,
) -> Result<SystemPairs<T>, Error> {
    let mut search = SystemSearch::builder()
        .list_order(ListOrder::Ascending)
        .build()?;
    let mut pairs = SystemPairs::default();
    search.neighbors(systems, quantities, &mut pairs)?;
    Ok(pairs)
}

/// Settings of a search of many systems, made by [`SystemSearch::builder`].
///
/// Cells and radii are not settings: every call brings them with its systems.
#[derive(Debug, Clone, Default)]
#[must_use = "settings do nothing until build() is called"]
pub struct SystemSearchBuilder {
    pub(super) device: Device,
    threads: usize,
    simd: Option<SimdLevel>,
    lists: ListKind,
    order: ListOrder,
}

impl SystemSearchBuilder {
    /// Hardware to use; [`Device::Auto`], the default, is the CPU backend, as is
    /// [`Device::Hybrid`]: systems are not divided between backends.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Worker threads; 0, the default, for one per core. They are started once there has been work
    /// that is worth it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Holds the CPU backend to an instruction set, for tests and measurements; a level that the
    /// processor lacks is ignored.
    pub fn simd(mut self, level: SimdLevel) -> Self {
        self.simd = Some(level);
        self
    }

    /// Full lists (the default) or half lists, in which each pair stands once: i < j, or i = j
    /// through an image that is lexicographically positive.
    pub fn lists(mut self, kind: ListKind) -> Self {
        self.lists = kind;
        self
    }

    /// Order of the pairs of a point. [`ListOrder::Ascending`] sorts them by (neighbour, image);
    /// [`ListOrder::Unspecified`], the default, may spare a sort of systems of many points.
    pub fn list_order(mut self, order: ListOrder) -> Self {
        self.order = order;
        self
    }

    /// Starts the backend.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a device that cannot search
    /// systems, [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) for one that
    /// is not there, and [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) for too many threads.
    pub fn build(self) -> Result<SystemSearch, Error> {
        let reason = match choose(self.device, &Feature::Systems)? {
            Choice::AsAsked => "asked for".to_owned(),
            Choice::Cpu(unsupported) => unsupported.to_string(),
        };
        in_build(self.device)?;
        let device = self.device;
        let gpu = match device {
            Device::Gpu(number) => Some(GpuSystems::start(number).map_err(|missing| {
                Error::from(ErrorKind::DeviceUnavailable { device, missing })
            })?),
            _ => None,
        };
        let cpu = CpuBackend::new(self.threads)?;
        Ok(SystemSearch {
            cpu: match self.simd {
                Some(level) => cpu.with_level(level),
                None => cpu,
            },
            settings: self,
            gpu,
            reason,
        })
    }
}

/// Searches many systems at once, again and again; see [`crate::systems`].
#[derive(Debug)]
pub struct SystemSearch {
    settings: SystemSearchBuilder,
    cpu: CpuBackend,
    /// Of [`Device::Gpu`], though it may have failed since.
    gpu: Option<GpuSystems>,
    reason: String,
}

/// Where the searches of a [`SystemSearch`] run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SystemsReport {
    /// Device asked for.
    pub requested: Device,
    /// Device that runs.
    pub device: Device,
    /// Why that one.
    pub reason: String,
    /// The GPU's name, where there is one to run on.
    pub gpu: Option<String>,
    /// Why the CPU backend does the work instead, after the GPU failed.
    pub failed: Option<String>,
    /// Worker threads of the CPU backend.
    pub threads: usize,
    /// Instruction set of the CPU backend.
    pub simd: SimdLevel,
}

impl SystemSearch {
    /// Settings of a search.
    pub fn builder() -> SystemSearchBuilder {
        SystemSearchBuilder::default()
    }

    /// Finds the pairs of all systems and writes the quantities that are asked for into `pairs`,
    /// whose memory is used again.
    ///
    /// ```
    /// use nearfield::systems::{Quantities, SystemPairs, SystemSearch, Systems};
    /// let mut search = SystemSearch::builder().threads(2).build()?;
    /// // Indices as 32-bit numbers, and only both ends of every pair.
    /// let mut pairs = SystemPairs::<f32, i32>::default();
    /// for step in 0..3 {
    ///     let positions = [[0.1 * step as f32, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.5, 0.0]];
    ///     let systems = Systems::new(&positions, &[0, 3], &[0.75]);
    ///     search.neighbors(&systems, Quantities::EDGES, &mut pairs)?;
    ///     assert_eq!((pairs.targets(), pairs.sources()), (&[1, 2][..], &[2, 1][..]));
    ///     assert_eq!(pairs.offsets(), [0, 0, 1, 2]);
    /// }
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// # Errors
    /// A GPU refuses systems of more than 32,768 points, and such with millions of images, by name.
    /// If it fails, the CPU backend does the search, and the [report](Self::report) says so.
    ///
    /// [`ErrorKind::Cpu`] with [`cpu::ErrorKind::SystemOffsets`], [`cpu::ErrorKind::SystemsLength`]
    /// or [`cpu::ErrorKind::IndexType`] for arrays that do not fit each other; with
    /// [`cpu::ErrorKind::System`], which names the first system with a cell, a radius or a point
    /// that cannot be used, and why; and where memory is short. `pairs` is empty then.
    ///
    /// [`cpu::ErrorKind::SystemOffsets`]: crate::error::cpu::ErrorKind::SystemOffsets
    /// [`cpu::ErrorKind::SystemsLength`]: crate::error::cpu::ErrorKind::SystemsLength
    /// [`cpu::ErrorKind::IndexType`]: crate::error::cpu::ErrorKind::IndexType
    /// [`cpu::ErrorKind::System`]: crate::error::cpu::ErrorKind::System
    pub fn neighbors<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let found = self.search(systems, quantities, pairs);
        // Not before: arrays of as many pairs as the last time need not be filled with zeros.
        if found.is_err() {
            pairs.clear();
        }
        found
    }

    /// The same; `pairs` is unspecified after an error.
    fn search<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let SystemSearchBuilder { lists, order, .. } = self.settings;
        if let Some(gpu) = &mut self.gpu {
            gpu.usable()?;
            systems.check_for::<I>()?;
            if gpu.may_try() {
                match gpu.run(systems, lists, quantities, pairs) {
                    Ok(()) => return Ok(()),
                    Err(DeviceError::Host(error)) => return Err(error),
                    // The CPU backend does the search.
                    Err(DeviceError::Fault(_)) => {}
                }
            }
        }
        self.cpu
            .search_systems(systems, lists, order, quantities, pairs)
            .map_err(|error| ErrorKind::Cpu(error).into())
    }

    /// The CPU backend.
    pub(super) fn cpu(&self) -> &CpuBackend {
        &self.cpu
    }

    /// Where searches run, and why there.
    pub fn report(&self) -> SystemsReport {
        let failed = self.gpu.as_ref().and_then(GpuSystems::failed);
        let is_on_gpu = self.gpu.is_some() && failed.is_none();
        SystemsReport {
            requested: self.settings.device,
            device: if is_on_gpu {
                self.settings.device
            } else {
                Device::Cpu
            },
            reason: match failed {
                Some(_) => "the GPU has failed".to_owned(),
                None => self.reason.clone(),
            },
            gpu: self.gpu.as_ref().map(|gpu| gpu.name().to_owned()),
            failed,
            threads: self.cpu.threads(),
            simd: self.cpu.level(),
        }
    }
}
