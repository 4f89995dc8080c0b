//! A point set on one rank: the caller's points, the points that the rank owns, and its halo.
//!
//! The engine of the rank has three sets for it. The *owned* points search among themselves while
//! the *halo* is under way. The points at the *border*, which are in the halo of other ranks, then
//! search among the halo. So no pair is found twice, and no list of a halo point is computed.
//!
//! Where sums must not depend on the number of ranks, where points exclude each other, and where
//! only the nearest count, there is a fourth set, see [`complete`](crate::complete).

use crate::{
    RankedBuilder,
    communicator::Links,
    complete::{Complete, Surrounded},
    error::Refusal,
    halo_message::{Pending, SentIds},
    parts::PartIds,
    point_data::{Carried, Column},
    points::{Arrived, Points},
    routes::{Route, Routes},
    scalar::Scalar,
};
use nearfield::{Engine, ListKind};
use nearfield_grid::Bounds;
use std::collections::HashSet;

/// The pairs of sets whose lists are wanted: the same on all ranks.
#[derive(Debug)]
pub(crate) struct ActivePairs {
    /// Whether pairs without an exception are active.
    others: bool,
    /// Targets and sources.
    exceptions: HashSet<[usize; 2]>,
}

impl Default for ActivePairs {
    fn default() -> Self {
        Self::all(true)
    }
}

impl ActivePairs {
    /// All pairs, also those of sets to come, or none.
    pub(crate) fn all(active: bool) -> Self {
        Self {
            others: active,
            exceptions: HashSet::new(),
        }
    }

    /// Whether the lists of a pair are wanted.
    pub(crate) fn has(&self, pair: [usize; 2]) -> bool {
        self.others != self.exceptions.contains(&pair)
    }

    /// Switches a pair on or off.
    pub(crate) fn set(&mut self, pair: [usize; 2], active: bool) {
        if active == self.others {
            self.exceptions.remove(&pair);
        } else {
            self.exceptions.insert(pair);
        }
    }
}

/// A point set on this rank.
#[derive(Debug)]
pub(crate) struct Set<T> {
    pub(crate) names: PartIds,
    /// The caller's points, in the caller's order.
    pub(crate) home: Points<T>,
    /// True if the caller's points are in the order of their ids.
    pub(crate) ascending: bool,
    /// The extent of the points of all ranks.
    pub(crate) bounds: Bounds,
    /// The extent of the caller's points.
    pub(crate) own_bounds: Bounds,
    /// The data that points were given; the same on all ranks.
    pub(crate) carried: Carried,
    /// True if the engine has the data of the owned points.
    pub(crate) given: bool,
    /// Whether points at the border need all points around them; the same on all ranks.
    pub(crate) surrounded: Surrounded,
    /// Whether lists are half.
    pub(crate) half: bool,
    pub(crate) links: Links,
    /// True until the first migration after points were given by other ranks than their owners.
    pub(crate) fresh: bool,
    pub(crate) routes: Routes,
    /// The points that this rank owns, by ascending id. `None` if they are the caller's points in
    /// the caller's order; then `routes.owned` is `None` too.
    pub(crate) owned: Option<Points<T>>,
    /// Owned points in the halo of other ranks: places among the owned points, ascending.
    pub(crate) border: Vec<u32>,
    /// Those and the points near them, if `complete` needs them.
    pub(crate) near: Vec<u32>,
    /// By ascending id.
    pub(crate) halo: Points<T>,
    pub(crate) complete: Complete,
    /// The ids of halo points that the other ranks know.
    pub(crate) sent_ids: SentIds,
    /// While the halo is under way.
    pub(crate) pending: Option<Pending>,
    /// Why the set cannot be used: its points did not get to all ranks that need them.
    pub(crate) broken: Option<String>,
}

impl<T: Scalar> Set<T> {
    /// A set without points, the `at`-th.
    pub(crate) fn new(names: PartIds, at: usize, settings: &RankedBuilder) -> Self {
        Self {
            names,
            home: Points::default(),
            ascending: true,
            bounds: Bounds::EMPTY,
            own_bounds: Bounds::EMPTY,
            carried: Carried::default(),
            given: false,
            surrounded: Surrounded::by(settings),
            half: settings.lists == ListKind::Half,
            links: Links::of_set(at),
            fresh: true,
            routes: Routes::default(),
            owned: None,
            border: Vec::new(),
            near: Vec::new(),
            halo: Points::default(),
            complete: Complete::default(),
            sent_ids: SentIds::default(),
            pending: None,
            broken: None,
        }
    }

    /// The refusal of a search of this set, the `at`-th.
    pub(crate) fn unplaced(&self, at: usize) -> Refusal {
        let error = self.broken.as_deref().unwrap_or("it has no positions");
        Refusal::new(format!(
            "point set {at} has not come to all ranks that need it ({error}): the next call tries \
             again"
        ))
    }

    /// The points that this rank owns, by ascending id.
    pub(crate) fn owned(&self) -> &Points<T> {
        self.owned.as_ref().unwrap_or(&self.home)
    }

    /// Returns true if points at the border may have neighbours in the halo of `sources`.
    pub(crate) fn meets(&self, sources: &Self) -> bool {
        !self.border.is_empty() && sources.halo.len() != 0
    }

    /// Takes the halo that has arrived, and gives it and the border to the engine.
    pub(crate) fn take_halo(
        &mut self,
        engine: &mut Engine,
        arrived: Arrived<T>,
    ) -> Result<(), Refusal> {
        let (halo, places) = if arrived.same {
            let (mut halo, places) = (
                std::mem::take(&mut self.halo),
                std::mem::take(&mut self.routes.halo.places),
            );
            halo.put_at(&places, &arrived.points)?;
            (halo, places)
        } else {
            arrived.points.sorted()?
        };
        let owned = self.owned.as_ref().unwrap_or(&self.home);
        let points = owned.len() + halo.len();
        if points >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(points);
            return Err(Refusal::new(many));
        }
        let mut border = Points::default();
        border.take(owned, &self.border)?;
        let (names, carried) = (self.names, self.carried);
        names.put(engine, names.border, &border, false)?;
        names.choose(engine, names.border, &border, carried)?;
        names.put(engine, names.halo, &halo, false)?;
        let (complete, points) = match self.is_surrounded() {
            true => Complete::new(owned, [&self.near, &self.border], &halo)?,
            false => Default::default(),
        };
        names.put(engine, names.complete, &points, false)?;
        let choose = self.chooses_border();
        names.filter_complete(engine, &complete, [&points, owned], (carried, choose))?;
        self.complete = complete;
        let halo_route = &mut self.routes.halo;
        (halo_route.sources, halo_route.places) = (arrived.sources, places);
        self.halo = halo;
        Ok(())
    }

    /// Takes the points that this rank owns, in any order, gives them to the engine and keeps their
    /// route.
    pub(crate) fn take_owned(
        &mut self,
        engine: &mut Engine,
        arrived: Arrived<T>,
        mut route: Route,
    ) -> Result<(), Refusal> {
        let (owned, places) = arrived.points.sorted()?;
        (route.sources, route.places) = (arrived.sources, places);
        (self.owned, self.routes.owned) = (Some(owned), Some(route));
        self.given = false;
        self.put_owned(engine)
    }

    /// Gives the owned points to the engine.
    pub(crate) fn put_owned(&mut self, engine: &mut Engine) -> Result<(), Refusal> {
        let (names, given) = (self.names, std::mem::take(&mut self.given));
        let owned = self.owned.as_ref().unwrap_or(&self.home);
        names.put(engine, names.owned, owned, given)?;
        if !given {
            names.filter_owned(engine, owned, self.carried)?;
        }
        self.given = true;
        Ok(())
    }

    /// Returns true if points at the border need all points around them.
    fn is_surrounded(&self) -> bool {
        self.surrounded != Surrounded::Never || self.carried.excludes()
    }

    /// Returns true if only points at the border search among the points around them. Half lists
    /// have no chosen targets; there the others search too, and their lists are left aside.
    fn chooses_border(&self) -> bool {
        let lists = self.surrounded == Surrounded::ForLists || self.carried.excludes();
        (lists && !self.half) || self.carried.has(Column::Target)
    }

    /// Returns true if the lists of points at the border among this set itself are those among all
    /// points around it.
    pub(crate) fn lists_around(&self, same_set: bool) -> bool {
        self.surrounded == Surrounded::ForLists || same_set && self.carried.excludes()
    }
}
