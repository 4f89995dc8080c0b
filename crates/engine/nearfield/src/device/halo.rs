//! Halos: the points that the CPU backend needs of data that live on a GPU, copied for one
//! traversal.
//!
//! A halo holds the points of the CPU backend's bricks and those within reach of them, gathered on
//! the GPU by a map of bricks, with the channels that a kernel reads. On the host they are a set of
//! their own, sorted anew; their indices are places in the halo.
//!
//! Only the halo crosses the bus, 16 bytes a point and four per channel, through page-locked memory
//! that is kept between steps. It is gathered anew for every traversal, so it never holds old
//! values.
//!
//! **Invariant:** every pair whose target is in a brick of the CPU backend has both of its points
//! in the halo.
//!
//! The halo holds more than the targets because each of them needs all of its neighbours. The price
//! is the surface of the CPU backend's bricks: the more compact they are, the fewer points are in
//! the halo only because they are near. Plans for a GPU with the flat strategy order bricks
//! accordingly.
//!
//! The device is waited for at least twice per set, for the number of points and for the points
//! themselves. These waits lie before the part of either backend begins, so they count for both.
//!
//! Maps of bricks stay on the device by the plan's version and what they select. At 32 of them all
//! are dropped; those still in use are sent again.

use crate::{
    Error, ErrorKind,
    backend::{gpu::KEPT_PLANS, split::BrickPlan},
    balance::Strategy,
};
use nearfield_cpu::{CpuBackend, PairOfSets, SetRadii};
use nearfield_gpu::{
    DeviceField, DeviceFields, DeviceParts, DeviceShare, DeviceValue, GpuBackend, HaloField,
    HaloScratch, HostBuffer, PairOfPoints,
};
use nearfield_grid::{
    Bounds, BrickParts, Grid, Lattice,
    memory::{Shortage, make_room},
};
use nearfield_pairs::Field;
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};
use tracing::field::Empty;

/// Buffers for gathering points.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// Maps of bricks on the device.
    pub(super) parts: PartsOfBricks,
    pub(super) scratch: HaloScratch,
}

/// Bricks whose points are gathered.
pub(super) enum BrickSelection<'a> {
    All,
    /// The points that the CPU backend needs.
    Needed(&'a BrickPlan),
    /// The GPU's, subregion by subregion.
    Gpu(&'a BrickPlan),
}

/// Tells maps of bricks on the device from each other.
type PartsKey = (u64, u8);

/// Maps of bricks on the device.
pub(super) type PartsOfBricks = HashMap<PartsKey, DeviceParts>;

/// Halos that were copied for a step.
#[derive(Debug)]
pub(super) struct Halos {
    pub(super) targets: Halo,
    /// Not used where targets and sources are one set.
    pub(super) sources: Halo,
    /// Of the targets, and of the sources.
    fields: [HaloFields; 2],
}

/// Points of a set that have come over.
#[derive(Debug)]
pub(super) struct Halo {
    pub(super) share: DeviceShare,
    /// Position and the caller's index.
    points: Option<HostBuffer<[f32; 4]>>,
    positions: Vec<[f32; 3]>,
    /// Sorted; their indices are places in the halo.
    grid: Grid,
}

/// Channels of such points, one behind the other.
#[derive(Debug, Default)]
struct HaloFields {
    values: Option<HostBuffer<f32>>,
    points: usize,
    channels: usize,
}

/// Two sets on the device whose points are gathered.
#[derive(Clone, Copy)]
pub(super) struct SortedPair<'a> {
    pub(super) backend: &'a GpuBackend,
    pub(super) of: PairOfPoints<'a>,
    pub(super) strategy: Strategy,
}

impl SortedPair<'_> {
    /// Gathers the points of some bricks of the targets.
    ///
    /// `known` is filled with the map if it is not there. Cost: two passes over the sorted targets
    /// on the device, and one wait for the number of points.
    pub(super) fn gather(
        &self,
        share: &mut DeviceShare,
        known: &mut PartsOfBricks,
        bricks: &BrickSelection<'_>,
    ) -> Result<(), Error> {
        let (of, key) = (&self.of, bricks.key());
        if known.len() >= 2 * KEPT_PLANS && !known.contains_key(&key) {
            known.clear();
        }
        let parts = match known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (parts, count) = bricks.parts()?;
                let made = self.backend.parts(&parts, count, of.lattice.cubic());
                new.insert(made?)
            }
        };
        // Strategies that go from cell to cell need a table of the cells of what they work on.
        let grouped =
            !matches!(bricks, BrickSelection::Gpu(_)) || self.strategy.of_share() == Strategy::Flat;
        self.backend
            .share(of.targets, of.lattice, parts, grouped, share)
            .map_err(Error::from)
    }
}

impl BrickSelection<'_> {
    /// Tells the map of these bricks from others; a plan that was cut anew has another version.
    fn key(&self) -> PartsKey {
        match self {
            Self::All => (0, 0),
            Self::Needed(planned) => (planned.version(), 1),
            Self::Gpu(planned) => (planned.version(), 2),
        }
    }

    /// The map of bricks, and how many of its parts are gathered.
    fn parts(&self) -> Result<(Cow<'_, BrickParts>, usize), Shortage> {
        let everywhere = || Cow::Owned(BrickParts::everywhere(0));
        Ok(match self {
            Self::Gpu(planned) => (Cow::Borrowed(planned.parts()), planned.subregions()),
            Self::Needed(planned) => match planned.needed() {
                Some(needed) => (Cow::Owned(needed.only(|part| part == 1)?), 1),
                None => (everywhere(), 1),
            },
            Self::All => (everywhere(), 1),
        })
    }
}

impl Halos {
    /// Halos without points; they get the lattice of the step that they are fetched for.
    pub(super) fn new(lattice: Lattice) -> Self {
        Self {
            targets: Halo::new(lattice.clone()),
            sources: Halo::new(lattice),
            fields: Default::default(),
        }
    }

    /// Brings the points of some bricks of both sets over, and sorts them.
    pub(super) fn fetch(
        &mut self,
        cpu: &CpuBackend,
        gathered: SortedPair<'_>,
        packing: &mut Packing,
        bricks: &BrickSelection<'_>,
    ) -> Result<(), Error> {
        let Packing { parts, .. } = packing;
        self.targets.fetch(cpu, gathered, parts, bricks)?;
        if !gathered.of.same_set {
            let of = PairOfPoints {
                targets: gathered.of.sources,
                ..gathered.of
            };
            let sources = SortedPair { of, ..gathered };
            self.sources.fetch(cpu, sources, parts, bricks)?;
        }
        Ok(())
    }

    /// Brings the channels of those points over; `channels` are their numbers.
    pub(super) fn fetch_fields(
        &mut self,
        gathered: SortedPair<'_>,
        fields: &DeviceFields<'_>,
        channels: [usize; 2],
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        let sources = if gathered.of.same_set {
            &self.targets
        } else {
            &self.sources
        };
        let of = gathered.of;
        let of_targets = FieldOfSet {
            what: "fields of targets",
            fields: &fields.targets,
            points: of.targets.len(),
            channels: channels[0],
        };
        let of_sources = FieldOfSet {
            what: "fields of sources",
            fields: &fields.sources,
            points: of.sources.len(),
            channels: channels[1],
        };
        let [to_targets, to_sources] = &mut self.fields;
        to_targets.fetch(gathered.backend, &self.targets, of_targets, scratch)?;
        to_sources.fetch(gathered.backend, sources, of_sources, scratch)
    }

    /// The channels of targets and of sources, one field each.
    pub(super) fn fields(&self) -> [Vec<Field<'_>>; 2] {
        self.fields.each_ref().map(HaloFields::channels)
    }

    /// The points that have come over, as the CPU backend takes them.
    pub(super) fn pair(&self, same_set: bool) -> PairOfSets<'_> {
        let sources = if same_set {
            &self.targets
        } else {
            &self.sources
        };
        PairOfSets {
            targets: &self.targets.grid,
            sources: &sources.grid,
            same_set,
            radii: SetRadii::Uniform,
            filter: Default::default(),
            share: None,
        }
    }
}

impl Halo {
    fn new(lattice: Lattice) -> Self {
        Self {
            share: DeviceShare::default(),
            points: None,
            positions: Vec::new(),
            grid: Grid::new(lattice),
        }
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Gathers the points of some bricks on the device, copies them, and sorts them here.
    fn fetch(
        &mut self,
        cpu: &CpuBackend,
        gathered: SortedPair<'_>,
        parts: &mut PartsOfBricks,
        bricks: &BrickSelection<'_>,
    ) -> Result<(), Error> {
        let _span = tracing::debug_span!("gpu.download", bytes = Empty).entered();
        gathered.gather(&mut self.share, parts, bricks)?;
        let backend = gathered.backend;
        let points = room(backend, &mut self.points, self.share.len())?;
        backend.fetch_points(&self.share, points)?;
        tracing::Span::current().record("bytes", size_of_val(points));
        self.positions.clear();
        make_room(&mut self.positions, points.len(), "positions of a device")?;
        self.positions
            .extend(points.iter().map(|&[x, y, z, _]| [x, y, z]));
        // The device has checked them; what it has sorted is finite and not too far away.
        let lattice = gathered.of.lattice.cubic();
        let sorted = cpu.install(|| {
            let bounds = Bounds::of((&self.positions).into(), lattice.domain());
            bounds.and_then(|bounds| self.grid.build((&self.positions).into(), bounds, lattice))
        });
        sorted.map_err(|source| Error::from(ErrorKind::Setup(source)))
    }

    /// The caller's index of a point.
    ///
    /// `u32::MAX`, which is never an index, for a place that the halo does not have.
    pub(super) fn index(&self, place: usize) -> u32 {
        let points = self.points.as_deref().unwrap_or_default();
        points
            .get(place)
            .map_or(u32::MAX, |point| point[3].to_bits())
    }
}

/// The fields of a set on the device, which are gathered for a halo.
#[derive(Clone, Copy)]
struct FieldOfSet<'a> {
    /// In a message.
    what: &'static str,
    /// None for a kernel that reads none of the set.
    fields: &'a [DeviceField<'a>],
    /// Points of the whole set.
    points: usize,
    /// Numbers that the kernel reads of a point.
    channels: usize,
}

impl HaloFields {
    /// Gathers the channels of the points of a halo on the device and copies them to the host.
    fn fetch(
        &mut self,
        backend: &GpuBackend,
        halo: &Halo,
        of: FieldOfSet<'_>,
        scratch: &mut HaloScratch,
    ) -> Result<(), Error> {
        (self.points, self.channels) = (halo.len(), of.channels);
        let values = room(backend, &mut self.values, self.points * of.channels)?;
        let field = HaloField {
            what: of.what,
            values: of.fields,
            points: of.points,
        };
        backend
            .fetch_fields(&halo.share, field, values, scratch)
            .map_err(Error::from)
    }

    /// The channels that were fetched last, one field each.
    fn channels(&self) -> Vec<Field<'_>> {
        let values = self.values.as_deref().unwrap_or_default();
        let channel = |k: usize| Field::from(&values[k * self.points..(k + 1) * self.points]);
        (0..self.channels).map(channel).collect()
    }
}

/// Page-locked memory for `len` elements, kept from before where it suffices.
fn room<'a, T: DeviceValue>(
    backend: &GpuBackend,
    buffer: &'a mut Option<HostBuffer<T>>,
    len: usize,
) -> Result<&'a mut [T], Error> {
    let kept = backend.host_room(buffer.take(), len)?;
    Ok(&mut buffer.insert(kept)[..len])
}
