//! The engine of one rank whose data live on a GPU.

use super::{
    border::Border,
    kernels::{FOUND, Kernels, Survey},
    pool::{keep_freed_memory, open_to_peers},
    set::{DeviceSet, ID, POSITION, PartIds},
    staging::{Staging, download, driver, exactly, zeros},
};
use crate::{
    Error, HaloTimes, RankedBuilder, RankedSet,
    balance::{Balance, shares},
    cell_classes::CellClasses,
    communicator::Communicator,
    cut::{Work, equally},
    division::Division,
    domains::Domains,
    error::{Failure, Refusal},
    gpus,
    transport::{Transport, contexts},
};
use nearfield::{
    Device, ListKind, RadiusRule,
    device::{
        DeviceBuffer, DeviceEngine, DeviceValue, DeviceView, DeviceViewMut, Event, Progress,
        copies::HostCopy,
    },
};
use nearfield_grid::{Bounds, Domain, Lattice, OfProcess, Radius, memory::filled};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// An engine over all ranks whose data live on GPUs; the [module](super) has an example.
///
/// Methods that take `&mut self` are collective, as those of
/// [`RankedEngine`](crate::RankedEngine).
pub struct DeviceRankedEngine {
    pub(crate) comm: Communicator,
    /// The engine of this rank.
    pub(super) engine: DeviceEngine,
    /// The ids of the sets; their points are on the device.
    pub(super) sets: Vec<RankedSet>,
    pub(super) division: Division,
    /// How often space was divided so far.
    pub(super) divided: u64,
    balance: Balance,
    /// Time spent on the last move of domains and points that [`Self::balance_by`] started; `None`
    /// from its next call on.
    pub(super) moving: Option<Duration>,
    /// Neither used nor dropped in a forked child of this process.
    pub(super) device: OfProcess<OnDevice>,
}

/// The part of an engine that is on the device.
pub(super) struct OnDevice {
    /// Dropped first: it waits for all streams.
    pub(super) staging: Staging,
    pub(super) kernels: Kernels,
    pub(super) border: Border,
    pub(super) survey: Survey,
    /// Numbers of the last survey, and the memory they are copied to.
    pub(super) found: Vec<u32>,
    pub(super) copy: HostCopy<u32>,
    /// An event behind the last survey, if nothing was written since.
    pub(super) surveyed: Option<Arc<Event>>,
    pub(super) sets: Vec<DeviceSet>,
}

/// The rank, the number of ranks and the engine of this rank.
impl std::fmt::Debug for DeviceRankedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceRankedEngine")
            .field("rank", &self.rank())
            .field("ranks", &self.ranks())
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// Refuses settings that need data on the host.
fn check(settings: &RankedBuilder, gpu: Option<u32>) -> Result<(u32, Radius, Domain), Refusal> {
    let number = match (settings.device, gpu) {
        (Device::Gpu(number), _) => number,
        (Device::Auto, Some(number)) => number,
        (device, _) => {
            return Err(Refusal::new(format!(
                "data on a GPU with the device {device}: choose a GPU, or RankedEngine for data on \
                 the host"
            )));
        }
    };
    let refused = [
        (settings.deterministic, "deterministic(true)"),
        (settings.lists == ListKind::Half, "lists(ListKind::Half)"),
        (settings.rule != RadiusRule::Uniform, "radii(…)"),
        (settings.types.is_some(), "cutoffs(…)"),
        (settings.nearest, "nearest(…)"),
    ];
    if let Some((_, what)) = refused.iter().find(|(asked, _)| *asked) {
        return Err(Refusal::new(format!(
            "ranks with data on a GPU do not have {what}: leave it out, or take RankedEngine"
        )));
    }
    let radius = Radius::new(settings.radius as f32).map_err(Refusal::new)?;
    Ok((
        number,
        radius,
        settings.domain.clone().map_err(Refusal::new)?,
    ))
}

impl DeviceRankedEngine {
    /// Starts the engine of this rank, by the settings that
    /// [`RankedEngine::builder`](crate::RankedEngine::builder) makes. Without a GPU number the
    /// ranks of a machine take its GPUs in turn.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if a rank's settings ask for
    /// what data on a GPU do not have, or a GPU cannot be used, and
    /// [`ErrorKind::Fault`](crate::ErrorKind::Fault).
    pub fn start(
        settings: RankedBuilder,
        transport: impl Transport + 'static,
    ) -> Result<Self, Error> {
        let mut transport = transport;
        let turn = gpus::in_turn(&mut transport, settings.device == Device::Auto)?;
        let mut comm = Communicator::new(Box::new(transport));
        let parts = || -> Result<_, Refusal> {
            // First, because this needs no GPU.
            if settings.gpu_messages {
                comm.takes_device_memory()?;
            }
            let (gpu, radius, domain) = check(&settings, turn)?;
            let builder = DeviceEngine::builder(radius.value());
            let builder = if domain.is_tilted() {
                builder.box_vectors(domain.vectors())
            } else {
                builder.periodic(domain.lengths())
            };
            let builder = match settings.strict {
                true => builder.strictly_within(),
                false => builder,
            };
            let builder = builder.strategy(settings.strategy);
            let engine = builder.clone().on_gpu(gpu)?;
            let border = Border::start(&engine, builder)?;
            if settings.gpu_messages {
                contexts::hold(&engine.stream().context());
            }
            keep_freed_memory(&engine)?;
            let device = OnDevice {
                kernels: Kernels::load(&engine)?,
                survey: Survey::new(&engine)?,
                found: filled(FOUND + 1, 0, "numbers of points")?,
                copy: engine.host_copy(FOUND + 1)?,
                surveyed: None,
                staging: Staging::new(&engine, &border.engine, settings.gpu_messages)?,
                border,
                sets: Vec::new(),
            };
            Ok((radius, domain, engine, device))
        };
        let made = parts();
        let asked = f64::from(u8::from(settings.gpu_messages));
        let mut all = [asked, -asked];
        let (radius, domain, engine, mut device) = comm.agree(made, &mut all)?;
        if all[0] != -all[1] {
            let text = "gpu_messages(true) is said on some ranks alone: say it on all or none";
            return Err(Refusal::new(text).by(0));
        }
        if comm.hands_over() && comm.ranks() > 1 {
            let gpus = comm.gather_number(u64::from(engine.device().index))?;
            let open = open_to_peers(&engine, &gpus);
            let mut all = [open.as_ref().map_or(0.0, |open| f64::from(u8::from(*open)))];
            comm.agree(open, &mut all)?;
            if all[0] == 1.0 {
                device.staging.share();
            } else {
                tracing::warn!(
                    "a GPU cannot read the memory of another one: messages pass through the host"
                );
            }
        }
        Ok(Self {
            division: Division::new(radius, domain, CellClasses::new(comm.rank(), false)),
            balance: Balance::default(),
            moving: None,
            comm,
            engine,
            sets: Vec::new(),
            divided: 0,
            device: OfProcess::new(device),
        })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.comm.ranks()
    }

    /// The engine of this rank: its stream, its queue, its device and what it holds there.
    pub fn engine(&self) -> &DeviceEngine {
        &self.engine
    }

    /// A new array of the device with these values.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank.
    pub fn upload<T: DeviceValue>(&self, values: &[T]) -> Result<DeviceBuffer<T>, Error> {
        let usable = self.engine.usable().map_err(Refusal::from);
        let made = usable.and_then(|()| {
            let mut made = exactly(&self.engine, values.len())?;
            let queue = self.engine.queue();
            queue.copy_to_device("values", values, &mut made.as_view_mut())?;
            Ok(made)
        });
        self.local(made)
    }

    /// A new array of the device with this number of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank.
    pub fn zeros<T: DeviceValue>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        let usable = self.engine.usable().map_err(Refusal::from);
        self.local(usable.and_then(|()| exactly(&self.engine, len)))
    }

    /// A set of points with these ids, without positions.
    pub(super) fn make_set(&mut self, at: usize, ids: &[u64]) -> Result<DeviceSet, Refusal> {
        let names = PartIds::add(&mut self.engine, &mut self.device.border)?;
        let set = || {
            let mut set = DeviceSet::new(&self.engine, names, at)?;
            let words: Vec<u32> = nearfield_grid::memory::collected(
                ids.iter().flat_map(|id| [*id as u32, (*id >> 32) as u32]),
                "global ids",
            )?;
            set.ids = self.engine.queue().array("global ids", &words)?;
            set.positions = zeros(&self.engine, POSITION * ids.len())?;
            set.points = words.len() / ID;
            Ok(set)
        };
        let made = set();
        if made.is_err() {
            names.remove(&mut self.engine, &mut self.device.border);
        }
        made
    }

    /// Refuses positions that are not three numbers per point, and any in a forked child.
    pub(super) fn whole(&self, positions: &DeviceView<'_, f32>) -> Result<(), Refusal> {
        self.engine.usable()?;
        if positions.len().is_multiple_of(POSITION) {
            return Ok(());
        }
        Err(Refusal::new(format!(
            "{} numbers are not positions: give three per point",
            positions.len()
        )))
    }

    /// Global ids of the points of a set that this rank owns, in the order of its points. Copies
    /// them from the device and waits. Not collective.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank.
    pub fn ids(&self, set: RankedSet) -> Result<Vec<u64>, Error> {
        self.local(self.known(set).and_then(|_| self.ids_on_host(set.0)))
    }

    /// The same on the device: two words per point, the low one first. Not collective.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn id_words(&self, set: RankedSet) -> Result<DeviceView<'_, u32>, Error> {
        self.local(self.known(set).map(DeviceSet::id_words))
    }

    /// Returns true if the points of a set are on the ranks that own them. After space was divided
    /// anew, by a new set or by [`rebalance`](Self::rebalance), this is false until they are
    /// [migrated](Self::migrate). The same on all ranks.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn is_placed(&self, set: RankedSet) -> Result<bool, Error> {
        self.local(self.known(set).map(|set| set.domains == self.divided))
    }

    /// Sorts the points of a set that this rank owns into the order of the cells after the last
    /// migration, which makes later steps faster. The caller then sorts its arrays with
    /// [`reorder`](Self::reorder) and passes positions to [`migrate`](Self::migrate); until then
    /// the set is refused.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if there is no such set or memory is
    /// short; the set is as before then.
    pub fn sort(&mut self, set: RankedSet) -> Result<(), Error> {
        // The border may still read positions in their order before.
        let joined = self.known(set).map(drop).and_then(|()| self.join_border());
        let sorted = joined.and_then(|()| {
            let own = self.known(set)?;
            let (engine, owned) = (&self.engine, own.names.owned);
            let mut positions = zeros(engine, POSITION * own.points)?;
            let mut ids = zeros(engine, ID * own.points)?;
            let mut to = positions.slice_mut(0..POSITION * own.points);
            engine.reorder(owned, POSITION, &own.view(), &mut to)?;
            let mut to = ids.slice_mut(0..ID * own.points);
            engine.reorder(owned, ID, &own.id_words(), &mut to)?;
            Ok((positions, ids))
        });
        let (positions, ids) = self.comm.agree(sorted, &mut [])?;
        let set = &mut self.device.sets[set.0];
        (set.positions, set.ids) = (positions, ids);
        set.broken = Some("its points were sorted".to_owned());
        Ok(())
    }

    /// Sorts values of the points of a set that this rank owns, `channels` of each, into the order
    /// of the cells after the last migration; see [`sort`](Self::sort). Not collective.
    ///
    /// # Errors
    /// As [`ids`](Self::ids), and when an array has another length.
    pub fn reorder<T: DeviceValue>(
        &self,
        set: RankedSet,
        channels: usize,
        from: &DeviceView<'_, T>,
        to: &mut DeviceViewMut<'_, T>,
    ) -> Result<(), Error> {
        let sorted = self.known(set).and_then(|own| {
            let owned = own.names.owned;
            Ok(self.engine.reorder(owned, channels, from, to)?)
        });
        self.local(sorted)
    }

    /// The positions of the points of a set that this rank owns. Not collective.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn positions(&self, set: RankedSet) -> Result<DeviceView<'_, f32>, Error> {
        self.local(self.known(set).map(DeviceSet::view))
    }

    /// Number of points of a set that this rank owns, and number of its halo points as of the last
    /// search or traversal.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn points(&self, set: RankedSet) -> Result<[usize; 2], Error> {
        self.local(self.known(set).map(|set| [set.points, set.halo_points]))
    }

    /// Divides space anew, so that ranks have equal predicted work. Copies all positions to the
    /// host. All sets are refused afterwards until they are [migrated](Self::migrate).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if memory is short; space is divided as
    /// before then.
    pub fn rebalance(&mut self) -> Result<(), Error> {
        let Some(lattice) = self
            .division
            .domains
            .as_ref()
            .map(|domains| domains.lattice().clone())
        else {
            return Ok(());
        };
        let domains = self.undivided(lattice);
        let numbers = || {
            self.engine.usable()?;
            let sets = self.device.sets.iter();
            let numbers: Result<Vec<Vec<f32>>, Refusal> = sets
                .map(|set| download(&self.engine, "positions of points", &set.view()))
                .collect();
            numbers
        };
        let work = numbers().and_then(|numbers| {
            let points = numbers.iter().flat_map(|numbers| numbers.as_chunks().0);
            Ok(Work::of_cells(&domains, points.copied())?)
        });
        self.divide(domains, work, equally)
    }

    /// Divides space anew, so that ranks have equal numbers of points of one set. It uses a sample
    /// of 262,144 points of each rank, or all points, as exactly as cells allow, if there are
    /// fewer. Otherwise as [`rebalance`](Self::rebalance).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if there is no such set or memory is
    /// short; space is divided as before then.
    pub fn divide_evenly(&mut self, set: RankedSet) -> Result<(), Error> {
        self.divide_by_points_of(set, equally)
    }

    /// Divides space anew if the times of the ranks show that it pays; returns true if it did. All
    /// ranks call it at the same place, every few steps. Otherwise as
    /// [`divide_evenly`](Self::divide_evenly).
    ///
    /// `time` is the time that the GPU of this rank took for a step, without waiting for other
    /// ranks, and `steps` is the number of steps since the last call. A rank that took longer than
    /// the mean gets a proportionally smaller share of the points of `set`. The time to move points
    /// is measured, and must be saved within as many steps as space has stayed divided.
    ///
    /// # Errors
    /// As [`divide_evenly`](Self::divide_evenly).
    pub fn balance_by(
        &mut self,
        set: RankedSet,
        time: Duration,
        steps: u32,
    ) -> Result<bool, Error> {
        let seconds = |times: Vec<u64>| times.into_iter().map(|time| time as f64 * 1e-9);
        let times = self.comm.gather_number(time.as_nanos() as u64)?;
        // All ranks have moved, or none.
        if let Some(moving) = self.moving.take() {
            let moving = self.comm.gather_number(moving.as_nanos() as u64)?;
            self.balance.took(seconds(moving).fold(0.0, f64::max));
        }
        let times: Vec<f64> = seconds(times).collect();
        let Some(factors) = self.balance.next(&times, steps) else {
            return Ok(false);
        };
        let begin = Instant::now();
        self.divide_by_points_of(set, |work| shares(work, &factors))?;
        self.balance.moved(&factors);
        self.moving = Some(begin.elapsed());
        Ok(true)
    }

    /// Divides space by numbers of the points of a set.
    fn divide_by_points_of(
        &mut self,
        set: RankedSet,
        shares: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        let lattice = self
            .division
            .domains
            .as_ref()
            .map(|domains| domains.lattice());
        let Some(lattice) = lattice.cloned() else {
            return Ok(());
        };
        let domains = self.undivided(lattice);
        let of_set = (self.known(set)).and_then(|set| self.sample(&set.view()));
        let work = of_set.and_then(|sample| Ok(Work::of_points(&domains, sample.points())?));
        self.divide(domains, work, shares)
    }

    /// Waits for the devices, and says whether the results since the last call are valid on all
    /// ranks; see [`nearfield::device::DeviceEngine::finish`].
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if memory runs out on a rank; the results
    /// since the last call are then invalid.
    pub fn finish(&mut self) -> Result<Progress, Error> {
        let waited = self.wait().map_err(Refusal::from);
        self.finish_with(waited, &mut [], &mut [])
    }

    /// Waits for the border, which has less to do, and then for owned points; says whether the
    /// results are valid on this rank.
    pub(crate) fn wait(&mut self) -> Result<Progress, nearfield::Error> {
        self.engine.usable()?;
        let border = self.device.border.engine.finish();
        let interior = self.engine.finish()?;
        self.device.staging.clock.read(self.engine.queue());
        Ok(match border? {
            Progress::Valid => interior,
            Progress::Repeat => Progress::Repeat,
        })
    }

    /// Whether the results are valid on all ranks. Numbers become sums and minima over all ranks,
    /// even if one refuses.
    pub(crate) fn finish_with(
        &mut self,
        waited: Result<Progress, Refusal>,
        sums: &mut [f64],
        minima: &mut [f64],
    ) -> Result<Progress, Error> {
        let repeats = matches!(waited, Ok(Progress::Repeat));
        let mut all = [&[f64::from(u8::from(!repeats))], &*minima].concat();
        let agreed = self.comm.agree_on(waited.map(drop), sums, &mut all);
        minima.copy_from_slice(&all[1..]);
        agreed?;
        Ok(match all[0] {
            0.0 => Progress::Repeat,
            _ => Progress::Valid,
        })
    }

    /// Makes the stream of owned points wait for that of the border.
    pub(super) fn join_border(&mut self) -> Result<(), Refusal> {
        if self.ranks() == 1 {
            return Ok(());
        }
        let device = &mut *self.device;
        let end = device.staging.mark(&device.border.engine)?;
        let waits = self.engine.stream().wait(&end);
        waits.map_err(|error| driver("joining streams", error))
    }

    /// Starts or stops timing halos by events of the device, which nothing waits for. Not
    /// collective.
    pub fn time_halos(&mut self, timed: bool) {
        // In a forked child what was timed is the parent's.
        if !self.device.is_inherited() {
            self.device.staging.clock.ask(timed);
        }
    }

    /// The times of the halos since [`time_halos`](Self::time_halos), up to the last
    /// [`finish`](Self::finish). Not collective.
    pub fn halo_times(&self) -> HaloTimes {
        self.device.staging.clock.times()
    }

    /// The result of a call that is not collective.
    pub(super) fn local<R>(&self, result: Result<R, Refusal>) -> Result<R, Error> {
        result.map_err(|refusal| refusal.by(self.rank()))
    }

    /// A set by its id.
    pub(super) fn known(&self, set: RankedSet) -> Result<&DeviceSet, Refusal> {
        self.engine.usable()?;
        set.of(&self.device.sets)
    }

    /// A set by its id, if its points are on the ranks that own them.
    pub(super) fn placed(&self, set: RankedSet) -> Result<&DeviceSet, Refusal> {
        let own = self.known(set)?;
        let why = match &own.broken {
            None if own.domains == self.divided => return Ok(own),
            None => "space was divided anew",
            Some(broken) => broken,
        };
        let message = format!(
            "point set {} is not on its ranks ({why}): migrate it",
            set.0
        );
        Err(Refusal::new(message))
    }

    /// The lattice for set `at` within `bounds` and the others; the same on all ranks.
    pub(super) fn lattice_with(&self, at: usize, bounds: &Bounds) -> Result<Lattice, Error> {
        let others = self.device.sets.iter().enumerate();
        let others = others.filter(|(set, _)| *set != at);
        let bounds = others.fold(*bounds, |all, (_, set)| all.union(&set.bounds));
        self.division.lattice(&bounds)
    }

    /// Domains that are still to be cut.
    pub(super) fn undivided(&self, lattice: Lattice) -> Domains {
        let sets = self.device.sets.iter();
        let bounds = sets.fold(Bounds::EMPTY, |all, set| all.union(&set.bounds));
        Domains::new(lattice, &bounds, self.ranks())
    }

    /// Divides space by the work that this rank and the others know. `shares` computes the shares
    /// of the ranks from the work that they have now, the same on all.
    pub(super) fn divide(
        &mut self,
        domains: Domains,
        work: Result<Work, Refusal>,
        shares: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        if (self.division).cut(&mut self.comm, domains, work, shares)? {
            self.divided += 1;
            for set in &mut self.device.sets {
                set.links.renew();
                set.fresh = true;
            }
        }
        Ok(())
    }

    /// Waits for the halos that are under way, and brings them into the engine. A set whose halo
    /// fails cannot be used.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let mut settled = Ok(());
        for at in 0..self.sets.len() {
            let Some(exchange) = self.device.sets[at].pending.take() else {
                continue;
            };
            if let Err(failure) = self.receive_halo(at, exchange) {
                let set = &mut self.device.sets[at];
                set.broken.get_or_insert_with(|| failure.to_string());
                settled = Err(failure);
            }
        }
        settled
    }
}
