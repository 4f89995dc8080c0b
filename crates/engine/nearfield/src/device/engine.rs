//! The engine for data that live on a GPU: its sets, lists and state.
//!
//! Calls put work on the stream and return. So the host cannot know whether points were still
//! within their cells or lists within their storage; the device notes it, and
//! [`DeviceEngine::finish`] reads all notes with one wait. Until then results are provisional, and
//! kernels are written so that provisional work never writes out of place.
//!
//! **Invariant:** every note that is not yet read belongs to a set or a list that is marked as
//! provisional, and nothing that was computed from it counts before `finish` has said so.
//!
//! Calls that wait do so because the host needs a number before it can go on. The first search
//! needs the number of neighbours to take storage, a new set needs its bounds to make cells, and
//! `finish` needs the notes. A traversal with a helper waits for both backends.
//!
//! After an error of one set all others are as they were, and so is the set that failed, with its
//! last good positions. After a fault from which the driver does not recover nothing on the device
//! counts any more, and calls that need it return the driver's error.

use super::{
    builder::DeviceEngineBuilder,
    filters::{EngineFilters, with_nearest},
    lists::{DeviceListsView, NamedLists, OverLists, search, settle_lists},
    set::DeviceSetId,
};
use crate::{
    Error, ErrorKind, ListOrder, PointSetId,
    backend::gpu_report::GpuReport,
    balance::Strategy,
    error::{MissingLists, Unsupported},
    slots::Slots,
};
use nearfield_gpu::{
    DeviceInfo, DeviceLattice, DeviceLists, Error as GpuError, ErrorKind as GpuErrorKind,
    GeometryQuantities, GpuBackend, HostBuffer, HostCopy, Module, PairOfPoints, PairScratch,
    Program, Queue, Transfers,
};
use nearfield_gpu::{DeviceValue, DeviceView, DeviceViewMut, PositionNumber, Stream};
use nearfield_grid::{OfProcess, Precision};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Result of [`DeviceEngine::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "results are not valid when the step has to be repeated"]
pub enum Progress {
    /// Everything computed since the last call is valid.
    Valid,
    /// Points had left their cells, or lists their storage, or radii from the device ask for other
    /// cells. These are there now: repeat what was computed since the updates; they stand.
    Repeat,
}

/// A neighbour engine on one stream of one GPU; see the [module's documentation](super) for a
/// program. Exists with the cargo feature `gpu` only.
///
/// Arrays go in and out as views of device memory, with three numbers a point for positions and
/// the channels of a point side by side for fields; all are in the caller's order and on the
/// engine's GPU. Methods that do not say that they wait for the device return as soon as their work
/// is on the [stream](Self::stream).
pub struct DeviceEngine {
    pub(super) settings: DeviceEngineBuilder,
    /// Device memory is neither used nor dropped in a forked child: CUDA does not work there, and
    /// its calls may wait.
    pub(super) lattice: OfProcess<Option<DeviceLattice>>,
    pub(super) slots: Slots,
    /// By slot.
    /// A slot whose set was removed has no points until it is used again.
    pub(super) sets: OfProcess<Vec<DeviceSetId>>,
    /// By the slots of targets and sources.
    pub(super) lists: OfProcess<BTreeMap<(usize, usize), Lists>>,
    /// Of points that were named by their indices.
    pub(super) named: OfProcess<NamedLists>,
    pub(super) scratch: OfProcess<Mutex<PairScratch>>,
    pub(super) backend: OfProcess<GpuBackend>,
    pub(super) filters: OfProcess<EngineFilters>,
    /// Since the last [`finish`](Self::finish), something was computed from points that were not in
    /// their cells: the step is to be repeated.
    pub(super) sorted_anew: bool,
    /// The set of free positions, if there were any.
    pub(super) queries: Option<PointSetId>,
    /// Positions that were found unusable while another set was worked on, for the next `finish` to
    /// say.
    pub(super) refused: Option<Error>,
}

/// The GPU, the radius, and the number of points of every set.
impl fmt::Debug for DeviceEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self
            .slots
            .used()
            .map(|set| self.sets[set.slot()].points.len());
        f.debug_struct("DeviceEngine")
            .field("gpu", &self.device().name)
            .field("radius", &self.settings.radius)
            .field("points", &points.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Two sets on the lattice, and what it takes to traverse them.
pub(crate) struct Traversable<'a> {
    pub(crate) backend: &'a GpuBackend,
    pub(crate) of: PairOfPoints<'a>,
    pub(crate) strategy: Strategy,
    pub(crate) scratch: &'a Mutex<PairScratch>,
}

/// Lists of one pair of sets.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// On the device, kept between searches.
    pub(super) storage: DeviceLists,
    /// Not looked at since they were written.
    pub(super) provisional: bool,
    /// What was asked for beside them.
    pub(super) quantities: GeometryQuantities,
    /// Of the sets as they are.
    pub(super) current: bool,
    /// Why they are not, where they are not.
    pub(super) missing: MissingLists,
    /// Of traversals over them, which borrow the engine shared.
    pub(super) over: Mutex<OverLists>,
}

impl Lists {
    fn over_mut(&mut self) -> &mut OverLists {
        self.over.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceEngine {
    /// Settings for an engine with this search radius, in the unit of the coordinates. A radius
    /// that is not positive and finite is refused when the engine is started.
    pub fn builder(radius: impl Into<f64>) -> DeviceEngineBuilder {
        DeviceEngineBuilder::new(radius.into())
    }

    /// Adds a set of points whose coordinates, three numbers a point, are copied. Waits for the
    /// device, to measure them. Cells are made for the points and room around them; if the new set
    /// lies outside of those of the others, all sets are sorted again.
    ///
    /// # Errors
    /// [`ErrorKind::OnDevice`] when coordinates are not finite, not three a point or not in the
    /// engine's [precision](DeviceEngineBuilder::precision), the array is on another GPU or memory
    /// runs out; nothing is added then. [`ErrorKind::Setup`] when the box
    /// is too small for coordinates so far from it.
    pub fn add_point_set<T: PositionNumber>(
        &mut self,
        positions: &DeviceView<'_, T>,
    ) -> Result<PointSetId, Error> {
        self.usable()?;
        let id = self.slots.next()?;
        let (before, sorted_anew) = (self.sets.len(), self.sorted_anew);
        if id.slot() == before {
            let precision = self.settings.precision;
            self.sets.push(DeviceSetId::new(&self.backend, precision));
        }
        if let Err(error) = self.place(id, positions) {
            self.sets.truncate(before);
            // Coordinates are looked at before anything is sorted.
            let unsorted =
                |source: &GpuError| matches!(source.kind(), GpuErrorKind::NotFinite { .. });
            if matches!(error.kind(), ErrorKind::OnDevice { source, .. } if unsorted(source)) {
                self.sorted_anew = sorted_anew;
            }
            return Err(error);
        }
        self.slots.take(id);
        Ok(id)
    }

    /// Removes a set, with its points and lists. Its name is refused from then on, and other sets
    /// keep theirs. Points leave by an [`update`](Self::update) with those that stay.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::RemovedPointSet`] and
    /// [`ErrorKind::OtherEngine`]; [`ErrorKind::OnDevice`] when the GPU fails.
    pub fn remove_point_set(&mut self, set: PointSetId) -> Result<(), Error> {
        self.known(set)?;
        match self.settings.precision {
            Precision::Single => self.place_none::<f32>(set),
            Precision::Double => self.place_none::<f64>(set),
        }?;
        let slot = set.slot();
        self.lists
            .retain(|(targets, sources), _| *targets != slot && *sources != slot);
        // The next set in this slot has data of its own.
        let left = &mut self.sets[slot];
        (left.data, left.given, left.radii) = Default::default();
        self.slots.free(set);
        Ok(())
    }

    /// Takes all points out of a set.
    fn place_none<T: PositionNumber>(&mut self, set: PointSetId) -> Result<(), Error> {
        let none = self.stream().null::<T>();
        let none = none.map_err(|error| GpuError::driver("making an empty array", error))?;
        self.place(set, &none.as_view())
    }

    /// The set with a [number](PointSetId::number), for programs in which only numbers name sets.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`] and [`ErrorKind::RemovedPointSet`].
    pub fn point_set(&self, number: u32) -> Result<PointSetId, Error> {
        self.slots.with_number(number)
    }

    /// Gives a set new coordinates, which are copied; their number may differ from before. Does not
    /// wait for the device, but where points lie so far apart that cells are hashed and their
    /// number has changed.
    ///
    /// # Errors
    /// As [`add_point_set`](Self::add_point_set); the set then has its last good positions.
    /// Coordinates that are not finite are found by [`finish`](Self::finish).
    pub fn update<T: PositionNumber>(
        &mut self,
        set: PointSetId,
        positions: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        self.known(set)?;
        self.place(set, positions)
    }

    /// Copies coordinates and sorts them into the cells there are; measures them if there are none.
    ///
    /// A set that has no table of cells yet is measured, which waits for the device; so is one
    /// whose points have left their cells, in [`settle_all`](Self::settle_all).
    fn place<T: PositionNumber>(
        &mut self,
        set: PointSetId,
        positions: &DeviceView<'_, T>,
    ) -> Result<(), Error> {
        let on_device = |source| Error::from(ErrorKind::OnDevice { set, source });
        let DeviceSetId { points, .. } = &mut self.sets[set.slot()];
        let unlooked = points.is_provisional();
        self.backend.place(points, positions).map_err(on_device)?;
        let sorted = match &*self.lattice {
            Some(lattice) if points.has_table() => {
                self.backend.sort_again(points, lattice).map_err(on_device)
            }
            _ => {
                // This forgets how the sort before went.
                self.sorted_anew |= unlooked;
                self.make_room(set)
            }
        };
        self.outdate(set);
        let arranged = sorted.and_then(|()| self.arrange(set));
        arranged.inspect_err(|_| self.take_back(set))
    }

    /// The search radius, rounded to `f32` in an engine in `f64`.
    pub fn radius(&self) -> f32 {
        self.settings.radius as f32
    }

    /// The precision of positions and of the decision about pairs.
    pub fn precision(&self) -> Precision {
        self.settings.precision
    }

    /// Number of neighbours of every target among `sources`, in the caller's order. `counts` has
    /// one number per target, and is provisional until [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::Gpu`] when `counts` has not one number per
    /// target or the GPU fails.
    pub fn count_neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        counts: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Error> {
        self.usable()?;
        let of = self.pair(targets, sources)?;
        let nearest = self.filters.nearest(&self.backend, of)?;
        let of = with_nearest(of, &nearest);
        let (kind, strategy) = (self.settings.lists, self.settings.strategy);
        self.backend
            .count_on_device(of, kind, strategy, counts, &mut self.scratch())
            .map_err(Error::from)
    }

    /// Writes the neighbour lists of `targets` among `sources` into storage of the engine. Waits
    /// for the device the first time, to learn how much there is to store. Later searches write
    /// into the storage there is, and [`finish`](Self::finish) says if it was too small.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::MemoryLimit`] for lists that exceed the
    /// [limit](DeviceEngineBuilder::memory_limit), and [`ErrorKind::Gpu`] when memory runs out or
    /// the GPU fails.
    pub fn find_neighbors(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<(), Error> {
        self.find(targets, sources, GeometryQuantities::NONE)
    }

    /// Writes lists, and these numbers of every pair beside them.
    pub(super) fn find(
        &mut self,
        targets: PointSetId,
        sources: PointSetId,
        quantities: GeometryQuantities,
    ) -> Result<(), Error> {
        self.usable()?;
        let with = (&self.sets[..], &*self.filters);
        let of = pair(&self.slots, &self.lattice, with, targets, sources)?;
        let nearest = self.filters.nearest(&self.backend, of)?;
        let of = with_nearest(of, &nearest);
        let how = (self.settings.lists, self.settings.strategy);
        let lists = self
            .lists
            .entry((targets.slot(), sources.slot()))
            .or_default();
        lists.current = false;
        lists.provisional = true;
        lists.quantities = quantities;
        let storage = &mut lists.storage;
        if self.filters.has_nearest() {
            storage.nearest_first(true);
        } else {
            storage.ascend(self.settings.order == ListOrder::Ascending);
        }
        storage.want(quantities);
        search(&self.backend, of, how, storage, self.settings.memory_limit)?;
        lists.current = true;
        Ok(())
    }

    /// The lists that [`find_neighbors`](Self::find_neighbors) or
    /// [`pair_geometry`](Self::pair_geometry) wrote.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] when there are none, or a set has been updated since.
    pub fn neighbors(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<DeviceListsView<'_>, Error> {
        let lists = self.current_lists(targets, sources)?;
        let view = DeviceListsView::of(&lists.storage);
        view.ok_or_else(|| no_lists(targets, sources, MissingLists::NotFound))
    }

    /// The lists of two sets as these are.
    ///
    /// # Errors
    /// [`ErrorKind::NoLists`] when there are none, and what names of sets can be wrong.
    pub(super) fn current_lists(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<&Lists, Error> {
        self.known(targets)?;
        self.known(sources)?;
        let lists = self.lists.get(&(targets.slot(), sources.slot()));
        lists.filter(|lists| lists.current).ok_or_else(|| {
            let why = lists.map_or(MissingLists::NotFound, |lists| lists.missing);
            no_lists(targets, sources, why)
        })
    }

    /// Waits for the device and looks whether what was computed since the last call is valid. When
    /// it is not, makes room, so that the step can be repeated.
    ///
    /// # Errors
    /// [`ErrorKind::OnDevice`] naming the set when coordinates are not finite or memory runs out,
    /// and [`ErrorKind::Gpu`] when the GPU fails. The set then has its last good positions, what
    /// was computed since the last call does not stand, and the next call says
    /// [`Progress::Repeat`]. The same holds for data of points that came from the device and cannot
    /// be used ([`set_radii_from_device`](Self::set_radii_from_device)): the set then has none. If
    /// such data were replaced or cleared since, there is no error, but [`Progress::Repeat`].
    /// [`ErrorKind::UnknownPoint`] names an index that no point has, of those
    /// [asked for](Self::find_neighbors_of).
    pub fn finish(&mut self) -> Result<Progress, Error> {
        self.usable()?;
        // One wait for all that the device is asked.
        for set in self
            .sets
            .iter_mut()
            .filter(|set| set.points.is_provisional())
        {
            set.points.ask(&self.backend)?;
        }
        for set in self.sets.iter_mut() {
            self.backend.ask_about_data(&mut set.data)?;
        }
        for lists in self.lists.values_mut() {
            if lists.provisional {
                lists.storage.ask(&self.backend)?;
            }
            if let Some(whole) = lists.over_mut().provisional() {
                whole.ask(&self.backend)?;
            }
        }
        self.named.ask(&self.backend)?;
        self.settle_all()?;
        let data = self.settle_data();
        let named = self.settle_indices();
        data.and(named)?;
        let mut progress = if std::mem::take(&mut self.sorted_anew) {
            Progress::Repeat
        } else {
            Progress::Valid
        };
        let mut failed = None;
        let mut looked = |settled| match settled {
            Ok(true) => {}
            Ok(false) => progress = Progress::Repeat,
            Err(error) => drop(failed.get_or_insert(error)),
        };
        for lists in self.lists.values_mut() {
            let provisional = std::mem::take(&mut lists.provisional);
            let own = provisional.then(|| settle_lists(&self.backend, &mut lists.storage));
            let over = lists.over_mut();
            let whole = over.provisional();
            let whole = whole.map(|whole| settle_lists(&self.backend, whole));
            over.settle();
            for settled in own.into_iter().chain(whole) {
                lists.current &= matches!(settled, Ok(true));
                looked(settled);
            }
        }
        looked(self.named.settle(&self.backend));
        if let Some(error) = failed {
            // What else was computed since the last call is to be repeated all the same.
            self.sorted_anew = progress == Progress::Repeat;
            return Err(ErrorKind::Gpu(error).into());
        }
        self.backend.wait()?;
        Ok(progress)
    }

    /// Number of point sets.
    pub fn point_sets(&self) -> usize {
        self.slots.count()
    }

    /// Number of points of a set.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`].
    pub fn points(&self, set: PointSetId) -> Result<usize, Error> {
        self.known(set)?;
        Ok(self.sets[set.slot()].points.len())
    }

    /// The order in which the cells hold the points of a set: the caller's index of each. Arrays
    /// in that order make everything that follows faster; see [`reorder`](Self::reorder).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::OnDevice`] when `order` has not one number
    /// a point.
    pub fn order(&self, set: PointSetId, order: &mut DeviceViewMut<'_, u32>) -> Result<(), Error> {
        self.known(set)?;
        self.backend
            .order_into(&self.sets[set.slot()].points, order)
            .map_err(|source| Error::from(ErrorKind::OnDevice { set, source }))
    }

    /// Brings values of a set, `channels` of them a point, from the caller's order into that of the
    /// cells.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], and [`ErrorKind::OnDevice`] when an array has another
    /// length.
    pub fn reorder<T: DeviceValue>(
        &self,
        set: PointSetId,
        channels: usize,
        from: &DeviceView<'_, T>,
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        self.known(set)?;
        self.backend
            .reorder(&self.sets[set.slot()].points, channels, from, to)
            .map_err(|source| Error::from(ErrorKind::OnDevice { set, source }))
    }

    /// The stream on which everything is done.
    pub fn stream(&self) -> &Stream {
        self.backend.stream()
    }

    /// The same stream, with kernels and copies of the caller's counted and timed as the engine's
    /// own: what goes through it appears in traces and in [`transfers`](Self::transfers).
    pub fn queue(&self) -> &Queue {
        self.backend.queue()
    }

    /// Bytes copied between host and device so far, by the engine and through its
    /// [`queue`](Self::queue).
    pub fn transfers(&self) -> Transfers {
        self.backend.queue().transfers()
    }

    /// Page-locked memory of the host for `len` elements, all zero: copies to it overlap with other
    /// work. Making it takes about half a millisecond a mebibyte, so keep it.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] when the system has none to give.
    pub fn host_buffer<T: DeviceValue>(&self, len: usize) -> Result<HostBuffer<T>, Error> {
        self.usable()?;
        self.backend.host_buffer(len).map_err(Error::from)
    }

    /// Page-locked memory that `len` values are copied to again and again.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] when the system has none to give.
    pub fn host_copy<T: DeviceValue>(&self, len: usize) -> Result<HostCopy<T>, Error> {
        self.usable()?;
        self.backend.host_copy(len).map_err(Error::from)
    }

    /// The GPU.
    pub fn device(&self) -> &DeviceInfo {
        self.backend.device()
    }

    /// How cells and targets are mapped to threads.
    pub fn strategy(&self) -> Strategy {
        match self.settings.strategy {
            Strategy::Auto => Strategy::Flat,
            strategy => strategy,
        }
    }

    /// A program of the caller's, compiled (or found in the cache) and loaded for this GPU.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] with the compiler's messages.
    pub fn load(&self, program: &Program) -> Result<Arc<Module>, Error> {
        self.usable()?;
        self.backend.load(program).map_err(Error::from)
    }

    /// The GPU, how the work is mapped to its threads, and what the engine holds there.
    pub fn report(&self) -> GpuReport {
        GpuReport {
            name: self.device().name.clone(),
            strategy: self.settings.strategy,
            subdivision: self.lattice.as_ref().map_or(1, DeviceLattice::subdivision),
            bytes: self.bytes(),
            trials: Vec::new(),
            busy: 0,
            failed: None,
            faults: 0,
            last_fault: None,
            cache_refused: self.backend.cache_refused(),
        }
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        let sets = self.sets.iter();
        let sets = sets.map(|set| set.points.bytes() + set.data.bytes());
        let lists = self.lists.values().map(|lists| {
            let over = lists.over.lock().unwrap_or_else(PoisonError::into_inner);
            lists.storage.bytes() + over.bytes()
        });
        let others = self.scratch().bytes() + self.filters.bytes() + self.named.bytes();
        sets.chain(lists).sum::<usize>() + others
    }

    /// Input of a traversal by both backends.
    pub(crate) fn traversable(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<Traversable<'_>, Error> {
        self.usable()?;
        let of = self.pair(targets, sources)?;
        if !of.filter.is_none() || of.share.is_some() || self.filters.has_nearest() {
            return Err(ErrorKind::Unsupported(Unsupported {
                feature: Some("filters and radii of single points".into()),
                backend: "shared CPU and GPU",
                remedy: "traverse without with_cpu",
            })
            .into());
        }
        Ok(Traversable {
            backend: &self.backend,
            of,
            strategy: self.settings.strategy,
            scratch: &self.scratch,
        })
    }

    /// Two sets on the lattice, with the filters that all jobs of them have but for the nearest.
    pub(super) fn pair(
        &self,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Result<PairOfPoints<'_>, Error> {
        let with = (&self.sets[..], &*self.filters);
        pair(&self.slots, &self.lattice, with, targets, sources)
    }

    /// Memory of traversals, which one call at a time uses.
    pub(super) fn scratch(&self) -> MutexGuard<'_, PairScratch> {
        // State left by a panic is overwritten by the next user.
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the engine can be used in this process: not in a forked child of the one that
    /// started it. Programs with arrays of their own on the device ask before they use these; all
    /// calls of the engine ask by themselves.
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] with [`GpuErrorKind::Forked`].
    pub fn usable(&self) -> Result<(), Error> {
        if self.backend.is_inherited() {
            Err(ErrorKind::Gpu(GpuErrorKind::Forked.into()).into())
        } else {
            Ok(())
        }
    }

    /// Refuses names of sets that this engine does not have.
    pub(super) fn known(&self, set: PointSetId) -> Result<(), Error> {
        self.usable()?;
        self.slots.check(set)
    }
}

/// The error of lists that are not there.
pub(super) fn no_lists(targets: PointSetId, sources: PointSetId, why: MissingLists) -> Error {
    let kind = ErrorKind::NoLists {
        targets,
        sources,
        why,
    };
    kind.into()
}

/// Two sets on the lattice; unsorted ones are refused. A function and not a method, because callers
/// borrow other fields of the engine at the same time.
pub(super) fn pair<'a>(
    slots: &Slots,
    lattice: &'a Option<DeviceLattice>,
    (sets, filters): (&'a [DeviceSetId], &'a EngineFilters),
    targets: PointSetId,
    sources: PointSetId,
) -> Result<PairOfPoints<'a>, Error> {
    slots.check(targets)?;
    slots.check(sources)?;
    let (of_targets, of_sources) = (&sets[targets.slot()], &sets[sources.slot()]);
    for (set, of_set) in [(targets, of_targets), (sources, of_sources)] {
        if !of_set.points.is_sorted() {
            let source = GpuErrorKind::Unsorted.into();
            return Err(ErrorKind::OnDevice { set, source }.into());
        }
    }
    let unknown = Error::from(ErrorKind::UnknownPointSet {
        set: targets,
        sets: 0,
    });
    let (filter, share) = filters.of_pair([(targets, of_targets), (sources, of_sources)])?;
    Ok(PairOfPoints {
        // There is a lattice as soon as there is a set.
        lattice: lattice.as_ref().ok_or(unknown)?,
        targets: &of_targets.points,
        sources: &of_sources.points,
        same_set: targets == sources,
        share,
        filter,
    })
}
