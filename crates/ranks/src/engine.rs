//! The engine of one rank among many: point sets, their owners, and migration.
//!
//! Each rank has a [`nearfield::Engine`] that holds the points it owns and those of its halo, with
//! their coordinates as given and in the order of their global ids. The rank's own points are
//! targets; the halo is there to be found. Everything that one engine can do, it then does.
//!
//! # A step
//!
//! 1. Every rank checks its positions, and all agree: a bad one on any rank is refused on all,
//!    before anything has changed. The same reduction finds the extent of all points.
//! 2. The lattice follows from the extent. If it has changed, domains are cut anew.
//! 3. Every rank finds out who sees its points, and all agree on memory and partners.
//! 4. Positions go to owners and halos, from the caller straight to each rank that needs them.
//! 5. Every rank sorts what has come by id and updates its engine; all agree on the outcome.
//!
//! **Invariant:** all sets are placed by the same domains, or are marked as broken and refused. All
//! decisions that concern the order of messages follow from reduced numbers, so ranks never
//! disagree about the next message.

use crate::{
    Error, ErrorKind, RankedBuilder, Scalar,
    communicator::{Communicator, IDS},
    cut::Work,
    domains::Domains,
    error::Refusal,
    routes,
    set::{Arrived, Home, Set},
    transport::Transport,
};
use nearfield::{Engine, ListKind, RadiusRule};
use nearfield_grid::{
    Bounds, Lattice, Radius,
    memory::{copied, make_room},
};

/// Names a point set of a [`RankedEngine`]; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RankedSet(pub(crate) usize);

/// A fixed-radius neighbour engine over all ranks of a [transport](crate::transport); the
/// [crate](crate) has an example.
///
/// Methods that take `&mut self` are collective: all ranks call them, in the same order, with the
/// same sets and kernels. Each returns the same error on all ranks, or none on any. After a
/// [refusal](ErrorKind::Refused) the engine is usable; after a [fault](ErrorKind::Fault) it is not.
pub struct RankedEngine<T: Scalar = f32> {
    pub(crate) comm: Communicator,
    pub(crate) settings: RankedBuilder,
    radius: Radius,
    domain: nearfield_grid::Domain,
    /// The engine of this rank.
    pub(crate) engine: Engine,
    pub(crate) sets: Vec<Set<T>>,
    /// None before the first set.
    domains: Option<Domains>,
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
    /// Settings for an engine with this search radius, in the unit of the coordinates; the largest
    /// if points have radii of their own. The type of the coordinates is that of the engine:
    /// `RankedEngine::builder(r).build::<f64>(transport)` takes `f64`.
    pub fn builder(radius: impl Into<f64>) -> RankedBuilder {
        RankedBuilder::new(radius.into())
    }
}

impl RankedBuilder {
    /// Starts the engine of this rank. All ranks call it.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] on all ranks if a rank's settings or device
    /// cannot be used, and [`ErrorKind::Fault`].
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
        let mut comm = Communicator::new(transport);
        let parts = || {
            if settings.deterministic && settings.lists == ListKind::Half {
                return Err(Refusal::new(
                    "half lists give a pair to one rank, so sums over them depend on the ranks: \
                     leave out deterministic(true) or lists(ListKind::Half)",
                ));
            }
            let radius = T::radius(settings.radius).map_err(Refusal::new)?;
            let domain = settings.domain.clone().map_err(Refusal::new)?;
            let engine = settings.engine.clone().precision(T::PRECISION).build()?;
            Ok((radius, domain, engine))
        };
        let (radius, domain, engine) = comm.agree(parts(), &mut [])?;
        Ok(Self {
            comm,
            settings,
            radius,
            domain,
            engine,
            sets: Vec::new(),
            domains: None,
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

    /// Adds a point set, and this rank's share of it, `positions`: any of the points, wherever
    /// they lie, or none. `ids` are the global ids of these points, each once among all ranks;
    /// without them points are numbered rank after rank. The first set that has points decides how
    /// space is divided among the ranks; [`rebalance`](Self::rebalance) divides it anew.
    ///
    /// The set searches every set and is searched by every set, itself included, until
    /// [`set_active`](Self::set_active) says otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] naming rank and point of a position that cannot be used, or an id
    /// that was given twice; nothing is added then.
    pub fn add_point_set(
        &mut self,
        positions: &[[T; 3]],
        ids: Option<&[u64]>,
    ) -> Result<RankedSet, Error> {
        let empty: &[[T; 3]] = &[];
        let local = self.engine.add_point_set(T::positions(empty));
        let added = local.as_ref().ok().copied();
        let set = local
            .map_err(Refusal::from)
            .and_then(|id| Ok(Set::new(id)?));
        let at = self.sets.len();
        let placed = self
            .comm
            .agree(set, &mut [])
            .map(|set| self.sets.push(set))
            .and_then(|()| self.home(positions, ids))
            .and_then(|home| self.place(at, home));
        if let Err(error) = placed {
            self.sets.truncate(at);
            if let Some(id) = added {
                // The set is there, so this cannot fail; an empty set would change no result.
                self.engine.remove_point_set(id).ok();
            }
            return Err(error);
        }
        Ok(RankedSet(at))
    }

    /// Gives the points of a set new positions, in the caller's order: the same points as before,
    /// and as many. Lists that involve the set are out of date afterwards.
    ///
    /// The points stay where their caller is; if owners change, positions, fields and results
    /// travel. [`migrate`](Self::migrate) takes the caller's arrays along.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] naming rank and point; the set then keeps its positions. If memory is
    /// short on a rank after positions have travelled, the set cannot be used until it gets
    /// positions that can.
    pub fn update(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<(), Error> {
        let home = self.known(set).and_then(|set| {
            let (found, expected) = (positions.len(), set.home.ids.len());
            if found != expected {
                return Err(Refusal::new(format!(
                    "{found} positions for {expected} points: give other points to replace()"
                )));
            }
            Ok(Home {
                ids: copied(&set.home.ids, "global ids")?,
                positions: copied(positions, "positions of the caller")?,
                radii: copied(&set.home.radii, "radii of the caller")?,
            })
        });
        let home = self.comm.agree(home, &mut [])?;
        self.place(set.0, home)
    }

    /// Gives a set other points; as [`add_point_set`](Self::add_point_set). Radii of single points
    /// are forgotten.
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
        let had_radii = std::mem::take(&mut self.sets[set.0].has_radii);
        self.sets[set.0].links.renew();
        self.sets[set.0].fresh = true;
        let placed = self.place(set.0, home);
        self.sets[set.0].has_radii |= had_radii && placed.is_err();
        placed
    }

    /// Gives every point of a set a radius of its own, in the caller's order; see
    /// [`nearfield::Engine::set_radii`]. Radii stay with the points, also when they change their
    /// rank.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] naming rank and point of a radius that is not positive or larger than
    /// that of the engine, and if all points have the same radius by the engine's rule.
    pub fn set_radii(&mut self, set: RankedSet, radii: &[f32]) -> Result<(), Error> {
        let (largest, rule) = (self.radius.value(), self.settings.rule);
        let checked = self.known(set).and_then(|set| {
            if rule == RadiusRule::Uniform {
                return Err(Refusal::new(format!(
                    "points have no radii of their own by the rule {rule}: choose another with \
                     RankedBuilder::radii"
                )));
            }
            let (found, expected) = (radii.len(), set.home.ids.len());
            if found != expected {
                let message = format!("{found} radii for {expected} points");
                return Err(Refusal::new(message));
            }
            let usable = Radius::MIN..=largest;
            if let Some(index) = radii.iter().position(|radius| !usable.contains(radius)) {
                let radius = radii[index];
                let message = format!(
                    "point {index} has the radius {radius}: it must be positive and at most {largest}"
                );
                return Err(set.home.refuse(message, Some(index)));
            }
            Ok(copied(radii, "radii of the caller")?)
        });
        let radii = self.comm.agree(checked, &mut [])?;
        let own = &mut self.sets[set.0];
        let before = std::mem::replace(&mut own.home.radii, radii);
        let had = std::mem::replace(&mut own.has_radii, true);
        self.place_set(set.0).inspect_err(|_| {
            let own = &mut self.sets[set.0];
            (own.home.radii, own.has_radii) = (before, had);
        })
    }

    /// Divides space among the ranks anew, by the work that the points as they are will take. The
    /// caller's arrays stay; [`migrate`](Self::migrate) takes them along.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if a rank is short of memory. Sets that have not got to their new
    /// owners cannot be used then until they get new positions.
    pub fn rebalance(&mut self) -> Result<(), Error> {
        match self.domains.take() {
            Some(domains) if self.ranks() > 1 => self.cut_by_work(domains),
            domains => {
                self.domains = domains;
                Ok(())
            }
        }
    }

    /// Global ids of the points of a set that this rank gave, in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] on this rank for a set of another engine.
    pub fn ids(&self, set: RankedSet) -> Result<&[u64], Error> {
        Ok(&self.named(set)?.home.ids)
    }

    /// Number of points of a set that this rank owns, and number of its halo points.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn points(&self, set: RankedSet) -> Result<[usize; 2], Error> {
        let local = &self.named(set)?.local;
        let owned = local.owned.len();
        Ok([owned, local.ids.len() - owned])
    }

    /// Whether `targets` search among `sources` in [`find_neighbors`](Self::find_neighbors); see
    /// [`nearfield::Engine::set_active`].
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] for a set of another engine.
    pub fn set_active(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
        active: bool,
    ) -> Result<(), Error> {
        let mut set = || {
            let (targets, sources) = (self.known(targets)?.id, self.known(sources)?.id);
            Ok(self.engine.set_active(targets, sources, active)?)
        };
        let set = set();
        self.comm.agree(set, &mut [])
    }

    /// The set with a name, for collective calls.
    pub(crate) fn known(&self, set: RankedSet) -> Result<&Set<T>, Refusal> {
        let sets = self.sets.len();
        self.sets.get(set.0).ok_or_else(|| {
            Refusal::new(format!(
                "there is no point set {}: the engine has {sets}",
                set.0
            ))
        })
    }

    /// The set with a name, for calls of this rank alone.
    pub(crate) fn named(&self, set: RankedSet) -> Result<&Set<T>, Error> {
        self.known(set)
            .map_err(|refusal| Refusal::read(self.rank(), &refusal.to_bytes()))
    }

    /// The set with a name, if it is placed.
    pub(crate) fn placed(&self, set: RankedSet) -> Result<&Set<T>, Refusal> {
        let own = self.known(set)?;
        match &own.broken {
            None => Ok(own),
            Some(error) => Err(Refusal::new(format!(
                "point set {} has no positions since an update failed ({error}): update it",
                set.0
            ))),
        }
    }

    /// The caller's points, numbered if there are no `ids`.
    fn home(&mut self, positions: &[[T; 3]], ids: Option<&[u64]>) -> Result<Home<T>, Error> {
        let checked = match ids {
            Some(ids) if ids.len() != positions.len() => Err(Refusal::new(format!(
                "{} ids for {} points: give one to each, or none at all",
                ids.len(),
                positions.len()
            ))),
            _ => Ok(()),
        };
        let given = f64::from(u8::from(ids.is_some()));
        let mut ends = [given, -given];
        self.comm.agree(checked, &mut ends)?;
        if ends[0] != -ends[1] {
            return Err(Error::from(ErrorKind::Refused {
                rank: 0,
                point: None,
                message: "some ranks give ids and some do not: give them on all ranks or on none"
                    .to_owned(),
            }));
        }
        let counts = self.comm.gather_number(positions.len() as u64)?;
        let first: u64 = counts[..self.rank()].iter().sum();
        let home = || {
            let mut home = Home {
                ids: Vec::new(),
                positions: copied(positions, "positions of the caller")?,
                radii: Vec::new(),
            };
            make_room(&mut home.ids, positions.len(), "global ids")?;
            match ids {
                Some(ids) => home.ids.extend_from_slice(ids),
                None => home.ids.extend(first..first + positions.len() as u64),
            }
            Ok(home)
        };
        let home = self.comm.agree(home(), &mut [])?;
        if ids.is_some() {
            self.check_ids(&home.ids)?;
        }
        Ok(home)
    }

    /// Refuses ids that stand twice, on this rank or on two. Every id is looked up by the rank that
    /// its remainder names.
    fn check_ids(&mut self, ids: &[u64]) -> Result<(), Error> {
        let ranks = self.ranks() as u64;
        for rank in 0..ranks {
            let mine = ids.iter().filter(|id| **id % ranks == rank);
            let message = mine.flat_map(|id| id.to_ne_bytes()).collect();
            self.comm.post(rank as usize, IDS, message)?;
        }
        let mut found: Vec<(u64, usize)> = Vec::new();
        for rank in 0..self.ranks() {
            let message = self.comm.receive(rank, IDS)?;
            let (ids, _) = message.as_chunks();
            found.extend(ids.iter().map(|id| (u64::from_ne_bytes(*id), rank)));
        }
        found.sort_unstable();
        let twice = found.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let checked = match twice {
            None => Ok(()),
            Some(pair) => Err(Refusal::new(format!(
                "two points have the id {}, given by the ranks {} and {}",
                pair[0].0, pair[0].1, pair[1].1
            ))),
        };
        self.comm.agree(checked, &mut [])
    }

    /// Takes the caller's points of a set, and brings them to owners and halos. After an error the
    /// set has the points it had.
    fn place(&mut self, at: usize, home: Home<T>) -> Result<(), Error> {
        let checked = Bounds::of(T::positions(&home.positions), &self.domain);
        let checked = checked.map_err(|error| {
            let index = match error.kind() {
                nearfield_grid::ErrorKind::NotFinite { index, .. }
                | nearfield_grid::ErrorKind::TooFarFromBox { index, .. }
                | nearfield_grid::ErrorKind::TooFarFromTiltedBox { index, .. } => Some(*index),
                _ => None,
            };
            home.refuse(format!("point set {at}: {error}"), index)
        });
        let own = checked.clone().unwrap_or(Bounds::EMPTY);
        let mut ends = [0.0; 6];
        for axis in 0..3 {
            (ends[axis], ends[axis + 3]) = (own.min[axis], -own.max[axis]);
        }
        self.comm.agree(checked, &mut ends)?;
        let bounds = Bounds {
            min: [ends[0], ends[1], ends[2]],
            max: [-ends[3], -ends[4], -ends[5]],
        };
        let others = self.sets.iter().enumerate().filter(|(set, _)| *set != at);
        let all = others.fold(bounds, |all, (_, set)| all.union(&set.bounds));
        let lattice = Lattice::new(self.radius, self.domain, 1, &all).map_err(Refusal::new);
        let lattice = self.comm.agree(lattice, &mut [])?;
        let set = &mut self.sets[at];
        let before = std::mem::replace(&mut set.home, home);
        let old_bounds = std::mem::replace(&mut set.bounds, bounds);
        // Before the first points there is nothing to divide.
        let had_points = old_bounds.min[0] <= old_bounds.max[0] || self.sets.len() > 1;
        let placed = match &self.domains {
            Some(domains) if had_points && *domains.lattice() == lattice => self.place_set(at),
            _ => self.cut(Domains::new(lattice, &all, self.comm.ranks())),
        };
        placed.inspect_err(|_| {
            let set = &mut self.sets[at];
            (set.home, set.bounds) = (before, old_bounds);
        })
    }

    /// Divides space by the number of points, then by the work of cells, which only owners know.
    fn cut(&mut self, mut domains: Domains) -> Result<(), Error> {
        self.domains = None;
        if self.ranks() == 1 {
            self.domains = Some(domains);
            return self.place_all();
        }
        let homes: Vec<&[[T; 3]]> = (self.sets.iter())
            .map(|set| set.home.positions.as_slice())
            .collect();
        let work = Work::of_points(&domains, &homes).map_err(Refusal::from);
        let work = self.comm.agree(work, &mut [])?;
        domains.set_cuts(work.cuts(&mut self.comm)?);
        self.domains = Some(domains.clone());
        self.place_all()?;
        self.cut_by_work(domains)
    }

    /// Divides space by the work of the cells that every rank owns.
    fn cut_by_work(&mut self, mut domains: Domains) -> Result<(), Error> {
        let owned = |set: &Set<T>| {
            let local = &set.local;
            let at = |place: &u32| local.positions[*place as usize];
            local.owned.iter().map(at).collect::<Vec<_>>()
        };
        let mut owned = self.sets.iter().flat_map(owned);
        let work = Work::of_cells(&domains, &mut owned).map_err(Refusal::from);
        drop(owned);
        self.domains = Some(domains.clone());
        let work = self.comm.agree(work, &mut [])?;
        let cuts = work.cuts(&mut self.comm)?;
        if cuts == domains.cuts() {
            return Ok(());
        }
        domains.set_cuts(cuts);
        self.domains = Some(domains);
        self.place_all()
    }

    /// Brings the points of all sets to their owners and halos. After an error no set can be used
    /// until it is updated.
    fn place_all(&mut self) -> Result<(), Error> {
        for at in 0..self.sets.len() {
            self.sets[at].links.renew();
            self.sets[at].fresh = true;
            if let Err(error) = self.place_set(at) {
                for set in &mut self.sets {
                    set.broken = Some(error.to_string());
                }
                self.domains = None;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Brings the caller's points of a set to owners and halos, and updates the engine. Once points
    /// have travelled an error leaves the set broken, on all ranks.
    pub(crate) fn place_set(&mut self, at: usize) -> Result<(), Error> {
        let Some(domains) = &self.domains else {
            let refusal: Result<(), _> = Err(Refusal::new(
                "space is not divided among the ranks since an update failed: update all sets",
            ));
            return self.comm.agree(refusal, &mut []);
        };
        let (comm, set) = (&mut self.comm, &mut self.sets[at]);
        let sends = routes::sends(domains, &set.home.positions, comm.ranks());
        let to = |sends: &Vec<routes::Send>| sends.iter().map(|send| send.rank).collect();
        let sends = set.links.agree(comm, sends.map_err(Refusal::from), to)?;
        let radii = set.has_radii;
        let arrived = Arrived::exchange(comm, &set.links, &set.home, &sends, radii)?;
        let engine = &mut self.engine;
        let updated = arrived.sorted(sends).and_then(|(routes, local)| {
            engine.update(set.id, T::positions(&local.positions))?;
            if !local.radii.is_empty() {
                engine.set_radii(set.id, &local.radii)?;
            }
            Ok((routes, local))
        });
        match comm.agree(updated, &mut []) {
            Ok((routes, local)) => {
                (set.routes, set.local, set.broken) = (routes, local, None);
                Ok(())
            }
            Err(error) => {
                set.broken = Some(error.to_string());
                Err(error)
            }
        }
    }
}
