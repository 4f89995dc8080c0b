//! Lists that stay on the device, and points that have moved since they were found.
//!
//! Lists that the host asks for leave the device as they are written, part by part. A kernel over
//! lists needs them there, whole and full: half lists name a pair for one of its points alone. So
//! the first kernel over the lists of a pair of sets has them found on the device
//! ([`KeptLists`]), which is less work than sending those of the host, and all kernels read them
//! until the points are sorted anew or filters change. From then on a search of full lists leaves
//! them here itself. It does not matter where the host's lists were found: the contract decides
//! every pair, so they hold the same ones.
//!
//! Lists with a skin outlive the positions that they were found at. The host follows the points
//! and sends where they are now with the first kernel of a step ([`MovedSet`]). The geometry of
//! their pairs is searched for at these positions, sorted apart ([`SetsOfNow`]): on a device that
//! takes no longer than to go through lists, which hold more pairs.
//!
//! **Invariant:** what is read with lists is in the order of the sort that they were found by; the
//! backend refuses any other.

use crate::{
    backend::{
        accelerator,
        transfer::{StagedUpload, numbers_of, words_of},
    },
    balance::Strategy,
};
use nearfield_cpu::CpuBackend;
use nearfield_gpu::{
    self as gpu, DeviceFilter, DeviceLattice, DeviceLists, DevicePoints, GpuBackend, HostBuffer,
    ListedPairs, MovedPoints, PairOfPoints, Since, SlotsOfLists,
};
use nearfield_grid::{Bounds, Lattice};
use nearfield_pairs::{Field, ListKind};

/// The GPU, and the workers that copy for it.
pub(super) type Workers<'a> = (&'a GpuBackend, &'a CpuBackend);
/// Positions on their way, and their bounds.
type Placed<'a> = (Field<'a>, Bounds);

/// Full lists of a pair of sets on the device.
#[derive(Debug, Default)]
pub(super) struct KeptLists {
    lists: DeviceLists,
    /// Their entries as kernels read them.
    slots: SlotsOfLists,
}

impl KeptLists {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.lists.bytes() + self.slots.bytes()
    }

    /// The lists, for a search that leaves them here.
    pub(super) fn lists(&mut self) -> &mut DeviceLists {
        &mut self.lists
    }

    /// Finds the lists, unless they are those of the sets as they are.
    pub(super) fn find(
        &mut self,
        backend: &GpuBackend,
        of: PairOfPoints<'_>,
        strategy: Strategy,
    ) -> Result<(), gpu::Error> {
        if self.lists.are_of(&of) {
            return Ok(());
        }
        let _span = tracing::debug_span!("gpu.search").entered();
        self.lists.keep(true);
        backend.search(of, ListKind::Full, strategy, &mut self.lists)
    }

    /// The lists as a kernel over them takes them.
    pub(super) fn of<'a>(
        &'a mut self,
        of: PairOfPoints<'a>,
        since: Option<Since<'a>>,
    ) -> ListedPairs<'a> {
        ListedPairs {
            of,
            lists: &self.lists,
            slots: &mut self.slots,
            since,
        }
    }
}

/// Where the points of a set are now, and the memory by which they came.
#[derive(Debug, Default)]
pub(super) struct MovedSet {
    points: MovedPoints,
    copy: Option<HostBuffer<f32>>,
    /// Tells the positions from others; 0 for none.
    stamp: u64,
}

impl MovedSet {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.points.bytes()
    }

    /// Where the points are now.
    pub(super) fn points(&self) -> &MovedPoints {
        &self.points
    }

    /// Sends positions of now, unless they are there in the order of the present sort.
    pub(super) fn take(
        &mut self,
        (backend, cpu): Workers<'_>,
        (points, lattice): (&DevicePoints, &DeviceLattice),
        now: accelerator::MovedSet<'_>,
    ) -> Result<(), gpu::Error> {
        if self.stamp == now.stamp && self.points.are_of(points) {
            return Ok(());
        }
        self.stamp = 0;
        let numbers = numbers_of(&now.positions);
        let bytes = size_of::<f32>() * numbers;
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        backend.expect_moved(points, &mut self.points)?;
        // The job that sent others has waited for its results, and so for their copy.
        let mut copy = backend.host_room(self.copy.take(), numbers)?;
        let upload = StagedUpload::new(&[now.positions], &mut copy, |_| ());
        let sent = upload.send(cpu, |first, piece| {
            backend.receive_moved(&mut self.points, first, piece)
        });
        self.copy = Some(copy);
        sent?;
        backend.arrange_moved(points, lattice, &mut self.points)?;
        self.stamp = now.stamp;
        Ok(())
    }
}

/// Sets at other positions, and their pairs on the way; memory that is kept.
#[derive(Debug, Default)]
pub(super) struct SetsOfNow {
    lattice: Option<DeviceLattice>,
    /// Targets and sources; the latter are empty if both are one set.
    sets: [SetOfNow; 2],
    lists: DeviceLists,
}

/// A set at other positions.
#[derive(Debug, Default)]
struct SetOfNow {
    points: Option<DevicePoints>,
    copy: Option<HostBuffer<f32>>,
}

impl SetsOfNow {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        let points = self.sets.iter().filter_map(|set| set.points.as_ref());
        points.map(DevicePoints::bytes).sum::<usize>() + self.lists.bytes()
    }

    /// Sends positions of targets and sources and sorts them into cells of a lattice; no sources
    /// are given if both are one set. Returns the sets, and memory for their pairs.
    pub(super) fn place(
        &mut self,
        by: Workers<'_>,
        (wanted, per_radius): (Lattice, u32),
        targets: Placed<'_>,
        sources: Option<Placed<'_>>,
    ) -> Result<(PairOfPoints<'_>, &mut DeviceLists), gpu::Error> {
        let lattice = match self.lattice.take() {
            Some(old) if *old.lattice() == wanted => self.lattice.insert(old),
            _ => self.lattice.insert(by.0.lattice(&wanted, per_radius)?),
        };
        let [of_targets, of_sources] = &mut self.sets;
        let targets = of_targets.place(by, lattice, targets)?;
        let pair = PairOfPoints {
            lattice,
            targets,
            sources: match sources {
                Some(sources) => of_sources.place(by, lattice, sources)?,
                None => targets,
            },
            same_set: sources.is_none(),
            share: None,
            filter: DeviceFilter::default(),
        };
        Ok((pair, &mut self.lists))
    }
}

impl SetOfNow {
    /// Sends positions and sorts them.
    fn place(
        &mut self,
        (backend, cpu): Workers<'_>,
        lattice: &DeviceLattice,
        (positions, bounds): Placed<'_>,
    ) -> Result<&DevicePoints, gpu::Error> {
        let numbers = numbers_of(&positions);
        let bytes = size_of::<f32>() * numbers;
        let precision = lattice.lattice().radius().precision();
        let points = (self.points).get_or_insert_with(|| backend.points_in(precision));
        {
            let _span = tracing::debug_span!("gpu.upload", bytes).entered();
            backend.expect(points, numbers / words_of(precision))?;
            // The job before has waited for its copies, and one that failed for the device.
            let mut copy = backend.host_room(self.copy.take(), numbers)?;
            let upload = StagedUpload::new(&[positions], &mut copy, |_| ());
            let sent = upload.send(cpu, |first, piece| backend.receive(points, first, piece));
            self.copy = Some(copy);
            sent?;
        }
        backend.begin_sort(points, lattice, &bounds)?;
        if !points.is_empty() {
            backend.finish(points, lattice, &bounds)?;
        }
        Ok(points)
    }
}
