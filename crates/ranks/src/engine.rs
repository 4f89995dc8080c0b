//! The engine of one rank among many: point sets, their owners, and what can be asked of them.
//!
//! Each rank has a [`nearfield::Engine`] that holds the points it owns and those of its halo, with
//! their coordinates as given and in the order of their global ids. The rank's own points are
//! targets; the halo is there to be found. [`set`](crate::set) says how, and
//! [`placing`](crate::placing) how the points come there.

use crate::{
    Error, RankedBuilder, Scalar, StepTimes,
    balance::Balance,
    cell_classes::CellClasses,
    communicator::Communicator,
    complete::Surrounded,
    division::Division,
    error::Refusal,
    gpus,
    parts::PartIds,
    plan::{Accepted, Placement},
    set::{ActivePairs, Set},
    times::Clock,
    transport::Transport,
};
use nearfield::{Device, Engine, ListKind};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// Identifies a point set of an engine on ranks; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RankedSet(pub(crate) usize);

impl RankedSet {
    /// The set among those of an engine.
    pub(crate) fn of<S>(self, sets: &[S]) -> Result<&S, Refusal> {
        sets.get(self.0).ok_or_else(|| {
            let (at, sets) = (self.0, sets.len());
            Refusal::new(format!("there is no point set {at}: the engine has {sets}"))
        })
    }
}

/// A fixed-radius neighbour engine over all ranks of a [transport](crate::transport); the
/// [crate](crate) has an example.
///
/// Methods that take `&mut self` are collective: all ranks call them, in the same order, with the
/// same sets and kernels. Each returns the same error on all ranks, or none on any. After a
/// [refusal](crate::ErrorKind::Refused) the engine is usable; after a
/// [fault](crate::ErrorKind::Fault) it is not. If memory was short while points travelled, the next
/// search, traversal or query brings them to their ranks again before it does its own work.
pub struct RankedEngine<T: Scalar = f32> {
    pub(crate) comm: Communicator,
    pub(crate) settings: RankedBuilder,
    /// The engine of this rank.
    pub(crate) engine: Engine,
    /// True if the engine of some rank may have a wrong radius; the same on all ranks.
    pub(crate) radius_lost: bool,
    pub(crate) sets: Vec<Set<T>>,
    pub(crate) division: Division,
    pub(crate) active: ActivePairs,
    /// Pairs of sets that deterministic sums were taken over, which have lists at the border.
    pub(crate) summed: HashSet<[usize; 2]>,
    pub(crate) clock: Clock,
    /// Decides when domains move.
    pub(crate) balance: Balance,
    /// When times were last compared, and the time spent waiting until then.
    pub(crate) measured: Option<(Instant, Duration)>,
}

/// The rank, the number of ranks and the engine of this rank.
impl<T: Scalar> std::fmt::Debug for RankedEngine<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RankedEngine")
            .field("rank", &self.rank())
            .field("ranks", &self.ranks())
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl RankedEngine {
    /// Settings for an engine with this search radius, in the unit of the coordinates: the maximum
    /// radius if points have radii of their own. The engine's type parameter is the type of the
    /// coordinates: `RankedEngine::builder(r).build::<f64>(transport)` takes `f64`.
    pub fn builder(radius: impl Into<f64>) -> RankedBuilder {
        RankedBuilder::new(radius.into())
    }
}

impl RankedBuilder {
    /// Starts the engine of this rank. All ranks call it.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if a rank's settings or
    /// device cannot be used, and [`ErrorKind::Fault`](crate::ErrorKind::Fault).
    pub fn build<T: Scalar>(
        self,
        transport: impl Transport + 'static,
    ) -> Result<RankedEngine<T>, Error> {
        RankedEngine::start(self, Box::new(transport))
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Starts the engine of this rank, with settings that all ranks accept.
    pub(crate) fn start(
        settings: RankedBuilder,
        transport: Box<dyn Transport>,
    ) -> Result<Self, Error> {
        let mut transport = transport;
        let turn = gpus::turn_of_auto(&mut *transport, settings.device == Device::Auto)?;
        let mut comm = Communicator::new(transport);
        let parts = || {
            if settings.deterministic && settings.lists == ListKind::Half {
                return Err(Refusal::new(
                    "half lists give a pair to one rank, so sums over them depend on the ranks: \
                     leave out deterministic(true) or lists(ListKind::Half)",
                ));
            }
            if settings.gpu_messages {
                return Err(Refusal::new(
                    "messages from the memory of GPUs need data that live there: leave out \
                     gpu_messages(true), or take DeviceRankedEngine",
                ));
            }
            let radius = T::radius(settings.radius).map_err(Refusal::new)?;
            let domain = settings.domain.clone().map_err(Refusal::new)?;
            let engine = settings.engine.clone().precision(T::PRECISION);
            let mut engine = engine.auto_gpu(turn).build()?;
            // Pairs of parts are switched on when their lists are wanted.
            engine.set_all_active(false);
            Ok((radius, domain, engine))
        };
        let (radius, domain, engine) = comm.agree(parts(), &mut [])?;
        let near = Surrounded::by(&settings) != Surrounded::Never;
        let cell_classes = CellClasses::new(comm.rank(), near);
        Ok(Self {
            comm,
            division: Division::new(radius, domain, cell_classes),
            settings,
            engine,
            radius_lost: false,
            sets: Vec::new(),
            active: ActivePairs::default(),
            summed: HashSet::new(),
            clock: Clock::new(),
            balance: Balance::default(),
            measured: None,
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

    /// Adds a point set. `positions` are this rank's share of the points: any of them, wherever
    /// they are, or none. `ids` are the global ids of these points, unique among all ranks; without
    /// them points are numbered rank after rank. The first set with points determines how space is
    /// divided among the ranks; [`rebalance`](Self::rebalance) divides it anew.
    ///
    /// The set searches every set and is searched by every set, itself included, until
    /// [`set_active`](Self::set_active) says otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point of a position that
    /// cannot be used, or an id that was given twice; nothing is added then.
    pub fn add_point_set(
        &mut self,
        positions: &[[T; 3]],
        ids: Option<&[u64]>,
    ) -> Result<RankedSet, Error> {
        let names = PartIds::add::<T>(&mut self.engine, &self.settings);
        let added = names.as_ref().ok().copied();
        let at = self.sets.len();
        let placed = self
            .comm
            .agree(names, &mut [])
            .map(|names| self.sets.push(Set::new(names, at, &self.settings)))
            .and_then(|()| self.home(positions, ids))
            .and_then(|home| self.take_in(at, home));
        if let Err(error) = placed {
            self.sets.truncate(at);
            if let Some(names) = added {
                names.remove(&mut self.engine);
            }
            return Err(error);
        }
        Ok(RankedSet(at))
    }

    /// Gives the points of a set new positions, in the caller's order and as many as before. Lists
    /// that involve the set are out of date afterwards.
    ///
    /// The caller keeps its points. If other ranks own some of them, positions, fields and results
    /// travel at every step; [`migrate`](Self::migrate) moves the caller's arrays to the owners.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point; the set then keeps
    /// its positions. If memory is short on a rank after all have accepted the positions, the set
    /// has the new ones, and the next call that needs them brings them to their ranks again. The
    /// call that needs the halo waits for it, and may return such an error.
    pub fn update(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<(), Error> {
        match self.accept(set, positions)? {
            Accepted::Kept(plan) => match plan.placement {
                Placement::Away => {
                    let placed = self.place_abroad(set.0, &plan.destinations);
                    self.agree_placed(set.0, placed)
                }
                home => Ok(self.send_home(set.0, plan.destinations, home)?),
            },
            Accepted::Outgrown(domains) => self.cut(*domains),
        }
    }

    /// Gives a set other points, as [`add_point_set`](Self::add_point_set). Radii and other
    /// data of its points are forgotten.
    ///
    /// # Errors
    /// As [`add_point_set`](Self::add_point_set); the set then keeps its points.
    pub fn replace(
        &mut self,
        set: RankedSet,
        positions: &[[T; 3]],
        ids: Option<&[u64]>,
    ) -> Result<(), Error> {
        let known = self.known(set).map(drop);
        self.comm.agree(known, &mut [])?;
        let home = self.home(positions, ids)?;
        let had = std::mem::take(&mut self.sets[set.0].carried);
        self.sets[set.0].links.renew();
        self.sets[set.0].fresh = true;
        let placed = self.take_in(set.0, home);
        placed.inspect_err(|_| self.sets[set.0].carried = had)
    }

    /// Global ids of the points of a set that this rank gave, in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on this rank for a set of another engine.
    pub fn ids(&self, set: RankedSet) -> Result<&[u64], Error> {
        Ok(&self.named(set)?.home.ids)
    }

    /// Number of points of a set that this rank owns, and number of its halo points as of the last
    /// search or traversal.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn points(&self, set: RankedSet) -> Result<[usize; 2], Error> {
        let set = self.named(set)?;
        Ok([set.owned().len(), set.halo.len()])
    }

    /// Where the time of the step went: the calls since positions were first given after the last
    /// search or traversal.
    pub fn last_step(&self) -> StepTimes {
        self.clock.times(self.comm.agreed)
    }

    /// Whether `targets` search among `sources` in [`find_neighbors`](Self::find_neighbors); see
    /// [`nearfield::Engine::set_active`].
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a set of another engine.
    pub fn set_active(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
        active: bool,
    ) -> Result<(), Error> {
        let known = self.known(targets).and(self.known(sources)).map(drop);
        self.comm.agree(known, &mut [])?;
        self.active.set([targets.0, sources.0], active);
        let switched = self.switch_pairs();
        self.comm.agree(switched, &mut [])
    }

    /// Switches all pairs of sets on or off, also those of sets that are added later; see
    /// [`nearfield::Engine::set_all_active`]. [`set_active`](Self::set_active) then switches single
    /// ones.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if memory is short on a rank.
    pub fn set_all_active(&mut self, active: bool) -> Result<(), Error> {
        self.active = ActivePairs::all(active);
        let switched = self.switch_pairs();
        self.comm.agree(switched, &mut [])
    }

    /// A set by its id, for collective calls.
    pub(crate) fn known(&self, set: RankedSet) -> Result<&Set<T>, Refusal> {
        set.of(&self.sets)
    }

    /// A set by its id, for calls that are not collective.
    pub(crate) fn named(&self, set: RankedSet) -> Result<&Set<T>, Error> {
        self.known(set).map_err(|refusal| refusal.by(self.rank()))
    }

    /// A set by its id, if it is placed.
    pub(crate) fn placed(&self, set: RankedSet) -> Result<&Set<T>, Refusal> {
        let own = self.known(set)?;
        match &own.broken {
            None => Ok(own),
            Some(_) => Err(own.unplaced(set.0)),
        }
    }
}
