//! Pairs of systems whose points have moved little since an earlier search.
//!
//! [`GpuBackend::build_candidates`] searches within larger radii and keeps what it found, with
//! copies of what it was given. [`GpuBackend::keep_pairs`] tests these candidates at the points of
//! now. By the same reading of the device it learns how far points have moved, and whether anything
//! else has changed; whether the candidates then still hold all pairs is the caller's to judge. So
//! a step starts two kernels and waits once.
//!
//! **Invariant:** candidates are of points below the number of points that they were built for, and
//! are tested only for as many.

use super::{
    columns::{DeviceColumns, PairQuantities},
    given_data::PointNumber,
    given_systems::{DeviceSystems, SystemsInUse},
    gpu::GpuBackend,
    systems::{DevicePairs, SystemsOutcome, program},
};
use crate::{
    error::Error,
    handles::{DeviceValue, DeviceView, PositionNumber},
    launch::{PairOutput, SkinCandidates, SkinKernels, SkinStatus, SystemArrays, sources},
    memory::Buffer,
};
use nearfield_pairs::{ListKind, Real};

/// The pairs that a search within larger radii has found, with copies of its systems.
#[derive(Debug)]
pub struct DeviceCandidates<T> {
    kernels: Option<SkinKernels>,
    /// The search.
    found: DevicePairs,
    /// Its radii.
    list_radii: Buffer<f64>,
    /// Cells of the systems, with their true radii.
    boxes: Buffer<u8>,
    positions: Buffer<T>,
    offsets: Buffer<i64>,
    radii: Buffer<f64>,
    cells: Buffer<f64>,
    periodic: Buffer<u8>,
    sums: Buffer<u64>,
    /// A single one.
    status: Buffer<SkinStatus>,
    built: Option<Built>,
}

/// What candidates were built for, and their number.
#[derive(Debug, Clone, Copy)]
struct Built {
    shape: Shape,
    wanted: PairQuantities,
    count: u64,
}

/// The lengths of arrays of systems.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    positions: usize,
    offsets: usize,
    radii: usize,
    cells: Option<usize>,
    periodic: Option<usize>,
    strict: bool,
}

impl Shape {
    fn of<T: DeviceValue>(systems: &DeviceSystems<'_, T>) -> Self {
        Self {
            positions: systems.positions.len(),
            offsets: systems.offsets.len(),
            radii: systems.radii.len(),
            cells: systems.cells.as_ref().map(DeviceView::len),
            periodic: systems.periodic.as_ref().map(DeviceView::len),
            strict: systems.strict,
        }
    }
}

/// What a test of candidates has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptPairs {
    /// Candidates within the radius, also those that had no room.
    pub count: u64,
    /// The largest displacement of a point since the search; infinite if a coordinate is not
    /// finite.
    pub moved: f64,
    /// The extent of all coordinates along each axis, then and now.
    pub extent: [f64; 3],
    /// Nothing but the points has changed since.
    pub is_same: bool,
}

impl<T: DeviceValue> Default for DeviceCandidates<T> {
    fn default() -> Self {
        Self {
            kernels: None,
            found: DevicePairs::default(),
            list_radii: Buffer::new("radii of lists with a skin"),
            boxes: Buffer::new("cells of systems with a skin"),
            positions: Buffer::new("positions at the last search"),
            offsets: Buffer::new("offsets at the last search"),
            radii: Buffer::new("radii at the last search"),
            cells: Buffer::new("cells at the last search"),
            periodic: Buffer::new("periodicities at the last search"),
            sums: Buffer::new("pairs of blocks of candidates"),
            status: Buffer::new("the status of a test of candidates"),
            built: None,
        }
    }
}

impl GpuBackend {
    /// Searches systems within other radii than theirs, one for all or one each, and keeps the
    /// pairs as candidates. Waits for the search. The outcome is valid, or the fault of a system
    /// with its larger radius: there are no candidates then, as after an error.
    ///
    /// # Errors
    /// As [`start_systems`](Self::start_systems) and [`finish_systems`](Self::finish_systems).
    pub fn build_candidates<T: Real + DeviceValue>(
        &self,
        systems: &DeviceSystems<'_, T>,
        list_radii: &[f64],
        kind: ListKind,
        candidates: &mut DeviceCandidates<T>,
    ) -> Result<SystemsOutcome, Error> {
        let stream = &self.stream;
        let shape = Shape::of(systems);
        candidates.built = None;
        candidates.list_radii.upload(stream, list_radii)?;
        let wanted = PairQuantities {
            kind,
            targets: true,
            sources: true,
            images: true,
            displacements: false,
            distances: false,
            wide: false,
        };
        let mut outcome = SystemsOutcome::Repeat;
        if let Some(radii) = candidates.list_radii.view(list_radii.len()) {
            let wide = DeviceSystems {
                positions: systems.positions.as_view(),
                offsets: systems.offsets.as_view(),
                radii: DeviceView(radii),
                cells: systems.cells.as_ref().map(DeviceView::as_view),
                periodic: systems.periodic.as_ref().map(DeviceView::as_view),
                strict: false,
            };
            // The second time there is room for as many pairs as the first has counted.
            while outcome == SystemsOutcome::Repeat {
                self.start_systems(&wide, wanted, &mut candidates.found)?;
                outcome = self.finish_systems(&mut candidates.found)?;
            }
        }
        let SystemsOutcome::Valid(count) = outcome else {
            return Ok(outcome);
        };
        self.prepare_boxes(systems, &mut candidates.boxes, &mut candidates.found)?;
        candidates.copy(self, systems)?;
        candidates.built = Some(Built {
            shape,
            wanted,
            count,
        });
        Ok(outcome)
    }

    /// Tests the candidates at the points of now, writes those within the radius to arrays of the
    /// caller, as far as there is room, in the order in which they were found, and waits.
    ///
    /// None if there are no candidates, or none for systems of these lengths: nothing is written
    /// then. Otherwise what was written counts if nothing but the points has changed, and these
    /// have moved little enough.
    ///
    /// # Errors
    /// As [`start_systems`](Self::start_systems).
    pub fn keep_pairs<T: Real + PositionNumber, I: PointNumber>(
        &self,
        systems: &DeviceSystems<'_, T>,
        to: &mut DeviceColumns<'_, T, I>,
        candidates: &mut DeviceCandidates<T>,
    ) -> Result<Option<KeptPairs>, Error> {
        let Some(built) = candidates.built else {
            return Ok(None);
        };
        if built.shape != Shape::of(systems) {
            return Ok(None);
        }
        let started = self.start_test(systems, to, candidates, built);
        if started.is_err() {
            // Arrays of the caller may be in use by the first kernel.
            let _ = self.wait();
        }
        started?;
        let mut status = [SkinStatus::default()];
        candidates.status.download(&self.stream, 0, &mut status)?;
        let [status] = status;
        Ok(Some(KeptPairs {
            count: status.pairs,
            moved: status.farthest(),
            extent: status.extent(),
            is_same: status.changed == 0,
        }))
    }

    /// Starts the kernels of a test.
    fn start_test<T: Real + PositionNumber, I: PointNumber>(
        &self,
        systems: &DeviceSystems<'_, T>,
        to: &mut DeviceColumns<'_, T, I>,
        candidates: &mut DeviceCandidates<T>,
        built: Built,
    ) -> Result<(), Error> {
        if candidates.kernels.is_none() {
            let program = program(&sources::SKIN_PAIRS, size_of::<T>() == 8);
            candidates.kernels = Some(SkinKernels::load(&*self.load(&program)?)?);
        }
        let stream = &self.stream;
        let SystemsInUse { arrays, shape, .. } = &systems.lend(self)?;
        let to = to.lend(stream)?;
        candidates.status.upload(stream, &[SkinStatus::default()])?;
        let sums = SkinKernels::sums(built.count as usize);
        candidates.sums.reserve(stream, sums)?;
        candidates.sums.zero(stream, 0..sums)?;
        let arrays = SystemArrays {
            boxes: candidates.boxes.address(),
            count: shape[0] as u32,
            points: shape[1] as u32,
            ..*arrays
        };
        let tested = candidates.arrays(built);
        if let (Some(kernels), 1..) = (&candidates.kernels, shape[0]) {
            let before = SystemArrays {
                positions: candidates.positions.address(),
                offsets: candidates.offsets.address(),
                radii: candidates.radii.address(),
                cells: candidates.cells.address(),
                periodic: candidates.periodic.address(),
                ..arrays
            };
            kernels.measure(stream, [&arrays, &before], &tested)?;
            kernels.keep(stream, &arrays, &tested, &to.output)?;
        }
        Ok(())
    }
}

impl<T: Real + DeviceValue> DeviceCandidates<T> {
    /// Keeps copies of the systems.
    fn copy(&mut self, backend: &GpuBackend, systems: &DeviceSystems<'_, T>) -> Result<(), Error> {
        let stream = &backend.stream;
        self.positions.copy_from(stream, &systems.positions.0)?;
        self.offsets.copy_from(stream, &systems.offsets.0)?;
        self.radii.copy_from(stream, &systems.radii.0)?;
        if let Some(cells) = &systems.cells {
            self.cells.copy_from(stream, &cells.0)?;
        }
        if let Some(periodic) = &systems.periodic {
            self.periodic.copy_from(stream, &periodic.0)?;
        }
        Ok(())
    }

    /// Forgets the candidates, so the next test says that there are none.
    pub fn clear(&mut self) {
        self.built = None;
    }

    /// The candidates as kernels read them.
    fn arrays(&self, built: Built) -> SkinCandidates {
        let PairOutput {
            targets,
            sources,
            images,
            ..
        } = self.found.output(built.wanted, built.count);
        SkinCandidates {
            targets,
            sources,
            images,
            sums: self.sums.address(),
            status: self.status.address(),
            count: built.count,
        }
    }
}
