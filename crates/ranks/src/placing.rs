//! Points on their way to owners and halos.
//!
//! 1. Every rank checks its positions and surveys which ranks own and need them if the domains
//!    stay. All agree: bad positions on any rank are refused on all before anything changes. The
//!    same reduction finds the extent of all points, and whether partners stay the same.
//! 2. The lattice follows from the extent. If it has changed, domains are cut anew.
//! 3. Points go to owners and halos, from the caller directly to each rank that needs them.
//! 4. If all callers own their points, the engine takes the caller's points, and the halo stays
//!    under way until a search or traversal has done what it can without it. So a step without
//!    other work has one agreement. Otherwise the call waits for all points, and all ranks agree on
//!    the outcome.
//!
//! **Invariant:** all sets are placed by the same domains, or are marked as broken and refused. All
//! decisions that determine the order of messages follow from reduced numbers, so ranks never
//! disagree about the next message.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::Links,
    cut::{Work, equally},
    domains::Domains,
    error::{Failure, Refusal},
    plan::{Accepted, Placement, Plan, ends, extent_of},
    points::{self, Points},
    routes::{Destinations, Route, copies, to},
    set::Set,
    transport::Fault,
};
use nearfield_grid::{Bounds, Domain, Lattice};
use std::time::Instant;

/// The extent of points of this rank, with these ids. Refusals call them `whose`.
pub(crate) fn extent<T: Scalar>(
    domain: &Domain,
    whose: &str,
    ids: &[u64],
    positions: &[[T; 3]],
) -> Result<Bounds, Refusal> {
    // Places are counted in 32 bits.
    if positions.len() >= u32::MAX as usize {
        let many = nearfield_grid::ErrorKind::TooManyPoints(positions.len());
        return Err(Refusal::new(format!("{whose}: {many}")));
    }
    Bounds::of(T::positions(positions), domain).map_err(|error| {
        let index = match error.kind() {
            nearfield_grid::ErrorKind::NotFinite { index, .. }
            | nearfield_grid::ErrorKind::TooFarFromBox { index, .. }
            | nearfield_grid::ErrorKind::TooFarFromTiltedBox { index, .. } => Some(*index),
            _ => None,
        };
        Refusal::of_point(format!("{whose}: {error}"), index, ids)
    })
}

impl<T: Scalar> RankedEngine<T> {
    /// The extent of points of this rank. Refusals call them `whose`.
    pub(crate) fn extent(
        &self,
        whose: &str,
        ids: &[u64],
        positions: &[[T; 3]],
    ) -> Result<Bounds, Refusal> {
        extent(&self.division.domain, whose, ids, positions)
    }

    /// The extents of this rank's points and of those of all ranks, if no rank refuses; and the
    /// lattice for set `at` and the others.
    pub(crate) fn agree_extent(
        &mut self,
        at: usize,
        extent: Result<Bounds, Refusal>,
    ) -> Result<([Bounds; 2], Lattice), Error> {
        let own = extent.clone().unwrap_or(Bounds::EMPTY);
        let mut ends = ends(&own);
        self.comm.agree(extent, &mut ends)?;
        let all = extent_of(&ends);
        let lattice = self.division.lattice(&self.bounds_with(at, &all))?;
        Ok(([own, all], lattice))
    }

    /// The extent of all sets.
    pub(crate) fn bounds_of_sets(&self) -> Bounds {
        self.bounds_with(usize::MAX, &Bounds::EMPTY)
    }

    /// The extent of all sets if that of set `at` is `bounds`.
    fn bounds_with(&self, at: usize, bounds: &Bounds) -> Bounds {
        let others = self.sets.iter().enumerate().filter(|(set, _)| *set != at);
        others.fold(*bounds, |all, (_, set)| all.union(&set.bounds))
    }

    /// Takes the caller's points of a set, and sends them to owners and halos. After an error the
    /// set has its old points.
    pub(crate) fn take_in(&mut self, at: usize, home: Points<T>) -> Result<(), Error> {
        self.clock.moved(self.comm.agreed);
        let extent = self.extent(&format!("point set {at}"), &home.ids, &home.positions);
        let ([own, all], lattice) = self.agree_extent(at, extent)?;
        let set = &mut self.sets[at];
        let before = (set.bounds, set.own_bounds, set.ascending);
        set.ascending = home.ids.is_sorted();
        (set.bounds, set.own_bounds) = (all, own);
        let old = std::mem::replace(&mut set.home, home);
        set.given = false;
        // Without points there is nothing to divide.
        let had_points = before.0.min[0] <= before.0.max[0] || self.sets.len() > 1;
        let placed = match &self.division.domains {
            Some(_) if had_points && self.division.has(&lattice) => self.place_set(at),
            _ => self.cut(self.undivided(lattice)),
        };
        placed.inspect_err(|error| {
            let set = &mut self.sets[at];
            // Other ranks may have the new points.
            set.broken = Some(error.to_string());
            (set.home, set.given) = (old, false);
            (set.bounds, set.own_bounds, set.ascending) = before;
        })
    }

    /// Takes new positions of the caller's points, without sending them. After an error nothing has
    /// changed.
    pub(crate) fn accept(
        &mut self,
        set: RankedSet,
        positions: &[[T; 3]],
    ) -> Result<Accepted, Error> {
        self.clock.moved(self.comm.agreed);
        let plan = self.plan(set, positions);
        let own = plan.as_ref().map_or(Bounds::EMPTY, |plan| plan.bounds);
        let placement = self.placement(set.0, &plan);
        let mut minima = [0.0; 7];
        minima[..6].copy_from_slice(&ends(&own));
        minima[6] = placement.number();
        let mut unknown = Links::new();
        let links = match self.sets.get_mut(set.0) {
            Some(set) => &mut set.links,
            None => &mut unknown,
        };
        let to = |plan: &Plan| plan.destinations.ranks();
        let mut plan = links.agree(&mut self.comm, plan, to, &mut minima)?;
        plan.placement = Placement::smallest(minima[6]);
        let all = extent_of(&minima);
        let lattice = self.division.lattice(&self.bounds_with(set.0, &all))?;
        let taken = &mut self.sets[set.0];
        taken.home.positions.copy_from_slice(positions);
        (taken.bounds, taken.own_bounds) = (all, own);
        if self.division.has(&lattice) {
            Ok(Accepted::Kept(plan))
        } else {
            Ok(Accepted::Outgrown(Box::new(self.undivided(lattice))))
        }
    }

    /// The ranks that need new positions, if the domains stay.
    fn plan(&mut self, set: RankedSet, positions: &[[T; 3]]) -> Result<Plan, Refusal> {
        let (found, expected) = (positions.len(), self.known(set)?.home.len());
        if found != expected {
            return Err(Refusal::new(format!(
                "{found} positions for {expected} points: give other points to replace()"
            )));
        }
        self.plan_of(set.0, positions)
    }

    /// The same for as many positions as the set has points.
    pub(crate) fn plan_of(&mut self, at: usize, positions: &[[T; 3]]) -> Result<Plan, Refusal> {
        let own = &self.sets[at];
        let (whose, ascending) = (format!("point set {at}"), own.ascending);
        let bounds = self.extent(&whose, &own.home.ids, positions)?;
        let special = match &self.division.domains {
            Some(domains) if self.comm.ranks() > 1 => self
                .division
                .cell_classes
                .survey(domains, positions, &bounds)?,
            _ => Vec::new(),
        };
        let destinations = Destinations::new(&special, &self.division.cell_classes, self.rank())?;
        Ok(Plan {
            bounds,
            placement: Placement::new(ascending && destinations.leaving.is_empty(), false),
            special,
            destinations,
        })
    }

    /// The answer of this rank for set `at`. It is [`Placement::Away`] if this rank refuses.
    pub(crate) fn placement(&self, at: usize, plan: &Result<Plan, Refusal>) -> Placement {
        let home = plan
            .as_ref()
            .is_ok_and(|plan| plan.placement != Placement::Away);
        Placement::new(home, self.sets.get(at).is_some_and(Set::knows_halo))
    }

    /// Domains that have not been cut yet.
    pub(crate) fn undivided(&self, lattice: Lattice) -> Domains {
        Domains::new(lattice, &self.bounds_of_sets(), self.ranks())
    }

    /// Divides space by the number of points, then by the work of cells, which only owners know.
    /// After an error no set can be used until it is [restored](Self::restore).
    pub(crate) fn cut(&mut self, domains: Domains) -> Result<(), Error> {
        self.division.domains = None;
        let cut = self.cut_by_points(domains);
        cut.inspect_err(|error| self.lose_places(error))
    }

    fn cut_by_points(&mut self, domains: Domains) -> Result<(), Error> {
        if self.ranks() == 1 {
            self.division.put(domains);
            return self.place_all();
        }
        let homes = self.sets.iter().map(|set| &set.home.positions);
        let homes = homes.flatten().map(|at| (*at, 1.0));
        let work = Work::of_points(&domains, homes);
        (self.division).cut(&mut self.comm, domains, work, equally)?;
        self.place_all()?;
        self.rebalance()
    }

    /// Divides space by the work of the cells that every rank owns. `shares` computes the shares of
    /// the ranks from the work that they have now, the same on all.
    pub(crate) fn cut_by_work(
        &mut self,
        shares: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<(), Error> {
        let Some(before) = self.division.domains.as_ref().filter(|_| self.ranks() > 1) else {
            return Ok(());
        };
        let domains = self.undivided(before.lattice().clone());
        let owned = self.sets.iter().map(|set| &set.owned().positions);
        let work = Work::of_cells(&domains, owned.flatten().copied());
        if (self.division).cut(&mut self.comm, domains, work, shares)? {
            self.place_all()?;
        }
        Ok(())
    }

    /// Sends the points of all sets to owners and halos. After an error no set can be used until it
    /// is [restored](Self::restore).
    pub(crate) fn place_all(&mut self) -> Result<(), Error> {
        for at in 0..self.sets.len() {
            self.sets[at].links.renew();
            self.sets[at].fresh = true;
            (self.place_set(at)).inspect_err(|error| self.lose_places(error))?;
        }
        Ok(())
    }

    /// Marks all sets as broken: some of their points are placed by other domains.
    fn lose_places(&mut self, error: &Error) {
        for set in &mut self.sets {
            set.broken = Some(error.to_string());
        }
        self.division.domains = None;
    }

    /// Restores the radius of engines and sends the points of broken sets to owners and halos
    /// again, because memory was short in an earlier call. Called before sets are searched. It
    /// costs nothing unless a call was refused, which all ranks know; that a set is broken only
    /// some may know.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        if !self.comm.has_refused() || self.sets.is_empty() {
            return Ok(());
        }
        if self.radius_lost {
            let radius = self.engine.set_radius(self.division.radius.value_f64());
            self.comm.agree(radius.map_err(Refusal::from), &mut [])?;
            self.radius_lost = false;
        }
        let sound = |set: &Set<T>| f64::from(u8::from(set.broken.is_none()));
        let mut sound: Vec<f64> = self.sets.iter().map(sound).collect();
        self.comm.min(&mut sound)?;
        if sound.iter().all(|sound| *sound == 1.0) {
            return Ok(());
        }
        if self.division.domains.is_none() {
            let lattice = self.division.lattice(&self.bounds_of_sets())?;
            return self.cut(self.undivided(lattice));
        }
        let broken = sound.iter().enumerate();
        for (at, _) in broken.filter(|(_, sound)| **sound == 0.0) {
            self.sets[at].links.renew();
            self.place_set(at)?;
        }
        Ok(())
    }

    /// Sends the caller's points of a set to owners and halos and updates the engine; all agree on
    /// the outcome. If it fails after points were sent, the set is broken on all ranks.
    pub(crate) fn place_set(&mut self, at: usize) -> Result<(), Error> {
        let found = self.destinations(at);
        let (comm, set) = (&mut self.comm, &mut self.sets[at]);
        let leaves = |destinations: &Destinations| !destinations.leaving.is_empty();
        let home = set.ascending && !found.as_ref().is_ok_and(leaves);
        let mut all = [Placement::new(home, set.knows_halo()).number()];
        let destinations = (set.links).agree(comm, found, Destinations::ranks, &mut all)?;
        let placed = match Placement::smallest(all[0]) {
            Placement::Away => self.place_abroad(at, &destinations),
            home => self.place_at_home(at, destinations, home),
        };
        self.agree_placed(at, placed)
    }

    /// Agrees on the outcome of placing a set.
    pub(crate) fn agree_placed(
        &mut self,
        at: usize,
        placed: Result<(), Failure>,
    ) -> Result<(), Error> {
        let placed = self.comm.agree(placed, &mut []);
        self.sets[at].broken = placed.as_ref().err().map(Error::to_string);
        placed
    }

    /// The ranks that need the caller's points of a set.
    fn destinations(&mut self, at: usize) -> Result<Destinations, Refusal> {
        let Some(domains) = &self.division.domains else {
            return Err(Refusal::new("space is not divided among the ranks"));
        };
        if self.ranks() == 1 {
            return Ok(Destinations::default());
        }
        let set = &self.sets[at];
        let special =
            (self.division.cell_classes).survey(domains, &set.home.positions, &set.own_bounds)?;
        Ok(Destinations::new(
            &special,
            &self.division.cell_classes,
            self.comm.rank(),
        )?)
    }

    /// Sends points of callers that own them. A failure on this rank is the error of the next call
    /// that needs the set, on all ranks.
    pub(crate) fn send_home(
        &mut self,
        at: usize,
        destinations: Destinations,
        placement: Placement,
    ) -> Result<(), Fault> {
        self.sets[at].broken = match self.place_at_home(at, destinations, placement) {
            Ok(()) => None,
            Err(Failure::Refused(refusal)) => Some(refusal.message),
            Err(Failure::Lost(fault)) => return Err(fault),
        };
        Ok(())
    }

    /// The caller's points are those that this rank owns; the halo stays under way.
    fn place_at_home(
        &mut self,
        at: usize,
        destinations: Destinations,
        placement: Placement,
    ) -> Result<(), Failure> {
        let set = &mut self.sets[at];
        (set.owned, set.routes.owned) = (None, None);
        (set.border, set.near) = (destinations.border, destinations.near);
        // The rest of this route belongs to the previous halo until the next one has arrived.
        set.routes.halo.sends = destinations.ghosts;
        let changes = placement == Placement::HomeWithHalo;
        let posted = set.post_halo(&mut self.comm, changes);
        self.clock.posted();
        let put = set.put_owned(&mut self.engine);
        posted.and(put.map_err(Failure::from))
    }

    /// Callers and owners differ: waits for all points, and tells border from interior anew.
    pub(crate) fn place_abroad(
        &mut self,
        at: usize,
        destinations: &Destinations,
    ) -> Result<(), Failure> {
        let (comm, set) = (&mut self.comm, &mut self.sets[at]);
        set.forget_sent_ids();
        let exchange = comm.begin();
        let what = (destinations, set.carried);
        let packed = points::post(comm, exchange, &set.links, &set.home, what);
        self.clock.posted();
        let waited = comm.waited;
        let received = points::receive(comm, exchange, &set.links, set.carried);
        self.clock.came(comm.waited - waited);
        let Some(domains) = &self.division.domains else {
            return Err(Refusal::new("space is not divided among the ranks").into());
        };
        let (rank, ranks) = (comm.rank(), comm.ranks());
        packed?;
        let [mut owned, mut halo] = received?;
        let sends = destinations.with_own(set.home.len(), rank)?;
        let stay = to(&sends, rank);
        points::stay(&mut owned, &set.home, stay, rank)?;
        (owned.points.excluded).take(&set.home.excluded, stay)?;
        points::stay(&mut halo, &set.home, to(&destinations.ghosts, rank), rank)?;
        let route = Route {
            sends,
            ..Route::default()
        };
        set.take_owned(&mut self.engine, owned, route)?;
        set.routes.halo.sends = copies(&destinations.ghosts)?;
        (set.border, set.near) = (Vec::new(), Vec::new());
        if ranks > 1 {
            let positions = &set.owned().positions;
            let bounds =
                Bounds::of(T::positions(positions), &self.division.domain).map_err(Refusal::new)?;
            let special = self
                .division
                .cell_classes
                .survey(domains, positions, &bounds)?;
            let around = Destinations::new(&special, &self.division.cell_classes, rank)?;
            (set.border, set.near) = (around.border, around.near);
        }
        Ok(set.take_halo(&mut self.engine, halo)?)
    }

    /// Waits for the halos that are under way, and brings them into the engine. A set whose halo
    /// fails cannot be used.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let (comm, mut arrived) = (&mut self.comm, Vec::new());
        let waited = comm.waited;
        for (at, set) in self.sets.iter_mut().enumerate() {
            if let Some(pending) = set.pending.take() {
                let halo = set.receive_halo(comm, pending);
                arrived.push((at, pending.exchange, halo));
            }
        }
        if !arrived.is_empty() {
            self.clock.came(comm.waited - waited);
        }
        let begin = Instant::now();
        let mut settled = Ok(());
        for (at, exchange, halo) in arrived {
            let set: &mut Set<T> = &mut self.sets[at];
            // A rank that could not send its part fails here too, even if it got those of others.
            let taken = match halo {
                _ if set.broken.is_some() => Err(set.unplaced(at).into()),
                Err(failure) => Err(failure),
                Ok(halo) => set.take_halo(&mut self.engine, halo).map_err(Failure::from),
            };
            match taken {
                Ok(()) => set.halo_taken(exchange),
                Err(failure) => {
                    set.broken.get_or_insert_with(|| failure.to_string());
                    settled = Err(failure);
                }
            }
        }
        self.clock.border(begin.elapsed());
        settled
    }

    /// Activates the pairs of parts whose lists are wanted now: owned points of active pairs of
    /// sets, and the border among halos that have arrived.
    pub(crate) fn switch_pairs(&mut self) -> Result<(), Refusal> {
        for (t, targets) in self.sets.iter().enumerate() {
            for (s, sources) in self.sets.iter().enumerate() {
                let active = self.active.has([t, s]);
                let come = targets.pending.is_none() && sources.pending.is_none();
                let border = come && targets.meets(sources);
                let summed = self.summed.contains(&[t, s]);
                let around = targets.lists_around(t == s);
                for a in targets.names.all() {
                    for b in sources.names.all() {
                        let (of, among) = (targets.names, sources.names);
                        let wanted = if (a, b) == (of.owned, among.owned) {
                            active || summed
                        } else if (a, b) == (of.border, among.halo) {
                            active && border && !around
                        } else {
                            let complete = (a, b) == (of.complete, among.complete);
                            complete && border && (summed || active && around)
                        };
                        if self.engine.is_active(a, b)? != wanted {
                            self.engine.set_active(a, b, wanted)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
