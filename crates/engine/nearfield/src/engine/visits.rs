//! Neighbours of single points.
//!
//! The CPU backend visits the neighbours of a point where they lie, on the calling thread, which
//! takes about a microsecond. A GPU takes a point's position as it takes any free position: it is
//! sent, searches the set, and its pairs come back with their images, by which the point itself is
//! told from its images. That starts some twenty kernels, so many points are better asked for in
//! one query.
//!
//! What filters read of the points is sent with their positions. Among the k nearest a point may
//! find itself, so a query asks for one more and the host leaves out the last.

use crate::{
    Device, Engine, Error, ErrorKind, ListOrder, NeighborLists, Pair, Permutation, PointSetId,
    backend::{
        AttachedDevice, Fault, InputSets, JobKind, PairRules,
        limit::{LISTS, within},
        rows::{QueriedPoints, QueryTo},
        support::Feature,
        transfer::{positions_of, words_of},
    },
    engine::{
        jobs::{Assigned, job},
        query::Asked,
    },
    lists::{Csr, NeighborPair, PairGeometry},
    own_radii::OwnRadii,
};
use nearfield_cpu::{ExclusionArrays, Exclusions, PairFilter, TypeCutoffs};
use nearfield_grid::memory::{make_room, with_room};
use std::sync::PoisonError;

/// Name of the memory of lists of some points in messages.
const WHAT: &str = "neighbour lists of some points";

impl Engine {
    /// Calls `visit` with every neighbour in `sources` of one point of `targets` and the geometry
    /// of the pair. Runs on the calling thread, so callers may spread points over threads of their
    /// own; for whole sets, [`traverse`](Self::traverse) is many times faster.
    ///
    /// A source within the radius through several periodic images is visited once for each. The
    /// point searches also if [others were chosen](Self::set_targets). The first call after an
    /// update makes a table of sorted places, four bytes per point.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).periodic([Some(4.0), None, None]).build()?;
    /// let points = engine.add_point_set(&[[0.25f32, 0.0, 0.0], [3.75, 0.0, 0.0]])?;
    /// let mut seen = Vec::new();
    /// engine.for_each_neighbor(points, points, 0, |j, pair| seen.push((j, pair.d)))?;
    /// assert_eq!(seen, [(1, [-0.5, 0.0, 0.0])]);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A GPU finds the neighbours if the engine was asked for one alone: it starts some twenty
    /// kernels for a point, where the CPU backend takes a microsecond. An engine that shares its
    /// jobs leaves this to the CPU pool.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownPointSet`], [`ErrorKind::UnknownPoint`], [`ErrorKind::NoRadii`] and
    /// [`ErrorKind::Unsupported`].
    pub fn for_each_neighbor(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        point: usize,
        mut visit: impl FnMut(u32, Pair),
    ) -> Result<(), Error> {
        if let Assigned::Device(device) = self.assign_visits([targets, sources], [point])? {
            let job = job(JobKind::Visits, targets, sources);
            // Another thread that visits meanwhile makes memory of its own.
            let kept = || self.visited.lock().unwrap_or_else(PoisonError::into_inner);
            let mut found: PairGeometry = std::mem::take(&mut *kept());
            let sets = [targets, sources];
            let asked = self.visit_on_device(device, sets, &[point as u32], &mut found);
            if let Ok(Ok(())) = asked {
                for pair in self.others(&found, 0, (targets == sources).then_some(point)) {
                    visit(pair.index, pair.pair());
                }
            }
            *kept() = found;
            match asked? {
                Ok(()) => {
                    self.ran(job, None);
                    return Ok(());
                }
                Err(fault) => self.ran(job, Some(fault.to_string())),
            }
        }
        let mut of = self.pair_of_sets(targets, sources)?;
        of.filter.chosen = None;
        let place = self.places(targets)?.order()[point] as usize;
        Ok(of.for_each_neighbor(place, |source, _, pair| visit(source, pair))?)
    }

    /// The neighbours in `sources` of some points of `targets`, given by their indices in any
    /// order: list i has those of `points[i]`. For one point after the other,
    /// [`for_each_neighbor`](Self::for_each_neighbor) needs no lists; for one choice of targets in
    /// many jobs there is [`set_targets`](Self::set_targets), which this leaves alone: all points
    /// that are asked for have neighbours, chosen or not.
    ///
    /// Lists are full, also in an engine of half lists, and in the order that the engine was built
    /// with. All other filters hold, and so do radii of single points. A point takes about a
    /// microsecond and its share of the workers; for most points of a set a search is faster.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut engine = Engine::builder(1.0).build()?;
    /// let row: Vec<[f32; 3]> = (0..9).map(|x| [0.75 * x as f32, 0.0, 0.0]).collect();
    /// let points = engine.add_point_set(&row)?;
    /// let lists = engine.neighbors_of(points, points, &[8, 0])?;
    /// assert_eq!((lists.of(0), lists.of(1)), (&[7][..], &[1][..]));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    ///
    /// A GPU does it where it does `for_each_neighbor`, all points in one query.
    ///
    /// # Errors
    /// As [`for_each_neighbor`](Self::for_each_neighbor), and [`ErrorKind::MemoryLimit`].
    pub fn neighbors_of(
        &self,
        targets: PointSetId,
        sources: PointSetId,
        points: &[u32],
    ) -> Result<NeighborLists, Error> {
        let (t, s) = (targets.slot(), sources.slot());
        let _span = tracing::debug_span!("engine.neighbors_of", targets = t, sources = s).entered();
        let numbers = points.iter().map(|&point| point as usize);
        let assigned = self.assign_visits([targets, sources], numbers)?;
        let job = job(JobKind::Visits, targets, sources);
        let reason = match assigned {
            Assigned::Cpu(reason) => reason,
            Assigned::Device(device) => {
                let mut found = PairGeometry::default();
                match self.visit_on_device(device, [targets, sources], points, &mut found)? {
                    Ok(()) => {
                        let lists = self.without_themselves(&found, targets == sources, points)?;
                        self.ran(job, None);
                        return Ok(lists);
                    }
                    Err(fault) => fault.to_string().into(),
                }
            }
        };
        let of = self.pair_of_sets(targets, sources)?;
        let table = self.places(targets)?.order();
        let mut places = with_room(points.len(), WHAT)?;
        places.extend(points.iter().map(|&point| table[point as usize]));
        let mut lists = NeighborLists::default();
        let lengths = self.backend.count_some(of, &places)?;
        self.admit_lists_of(&lengths)?;
        (self.backend).lists_of_some(of, &places, &lengths, self.settings.order, &mut lists)?;
        self.was_done(job, Device::Cpu, reason);
        Ok(lists)
    }

    /// Refuses lists of these lengths if they exceed the memory limit.
    fn admit_lists_of(&self, lengths: &[u32]) -> Result<(), Error> {
        let Some(limit) = self.settings.memory_limit else {
            return Ok(());
        };
        let pairs = lengths.iter().map(|&length| u64::from(length)).sum();
        let needed = NeighborLists::default().bytes_after(lengths.len(), pairs);
        within(limit, LISTS, needed)
    }

    /// The place of every point of a set among those that the CPU pool searches.
    fn places(&self, set: PointSetId) -> Result<&Permutation, Error> {
        self.sets[set.slot()].searched_places(self.settings.rule, &self.backend)
    }

    /// Where visits of points of a set are to be done, which are refused if there are no such
    /// points.
    fn assign_visits(
        &self,
        [targets, sources]: [PointSetId; 2],
        asked: impl IntoIterator<Item = usize>,
    ) -> Result<Assigned<'_>, Error> {
        let pair = self.pair(targets, sources)?;
        let points = self.sets[targets.slot()].grid.len();
        if let Some(point) = asked.into_iter().find(|&point| point >= points) {
            return Err(ErrorKind::UnknownPoint {
                set: targets,
                point,
                points,
            }
            .into());
        }
        let filtered = self
            .filter_feature(pair.map(|slot| slot as usize))
            .is_some();
        let feature = if filtered {
            Feature::FilteredVisits
        } else {
            Feature::EachNeighbor
        };
        self.assign_pair(&feature, pair.map(|slot| slot as usize))
    }

    /// Finds the neighbours of points on the device, themselves included; the fault after which
    /// the CPU backend has to.
    fn visit_on_device(
        &self,
        device: AttachedDevice<'_>,
        [targets, sources]: [PointSetId; 2],
        points: &[u32],
        found: &mut PairGeometry,
    ) -> Result<Result<(), Fault>, Error> {
        let Some(positions) = self.sets[targets.slot()].grid.copied() else {
            return Ok(Err(Fault::Behind));
        };
        let (precision, words) = (self.precision(), words_of(self.precision()));
        let mut asked = with_room(words * points.len(), "positions of points")?;
        for &point in points {
            asked.extend_from_slice(&positions[words * point as usize..][..words]);
        }
        let positions = positions_of(&asked, precision).map_err(ErrorKind::Query)?;
        let (set, rule) = (&self.sets[targets.slot()], self.settings.rule);
        let mut radii = None;
        if rule.needs_targets() {
            let of_points = set.given_radii(targets, rule)?;
            radii = Some(OwnRadii::of_points(of_points, points)?);
        }
        let rules = self.rules([targets.slot(), sources.slot()])?;
        let data = DataOfPoints::gather(&rules.filter, points)?;
        // A point may be among its own nearest.
        let more = u32::from(targets == sources);
        let asked = Asked {
            positions,
            radii: radii.as_ref().map(OwnRadii::get),
            nearest: (rules.filter.nearest).map(|k| k.saturating_add(more)),
            points: Some(data.of(rules)),
        };
        self.ask_device(device, asked, sources, QueryTo::Geometry(found))
    }

    /// The lists that a device found for points, which it has found themselves too if they search
    /// their own set.
    fn without_themselves(
        &self,
        found: &PairGeometry,
        same_set: bool,
        points: &[u32],
    ) -> Result<NeighborLists, Error> {
        let itself = |k: usize| same_set.then_some(points[k] as usize);
        let mut lengths = with_room(points.len(), WHAT)?;
        lengths.extend((0..points.len()).map(|k| self.others(found, k, itself(k)).count() as u32));
        self.admit_lists_of(&lengths)?;
        let mut offsets = with_room(points.len() + 1, WHAT)?;
        offsets.push(0);
        offsets.extend(lengths.iter().scan(0u64, |end, &length| {
            *end += u64::from(length);
            Some(*end)
        }));
        let pairs = offsets.last().copied().unwrap_or_default();
        let mut indices = with_room(pairs as usize, WHAT)?;
        for k in 0..points.len() {
            let begin = indices.len();
            indices.extend(self.others(found, k, itself(k)).map(|pair| pair.index));
            if self.settings.order == ListOrder::Ascending {
                indices[begin..].sort_unstable();
            }
        }
        Ok(NeighborLists::from_csr(Csr { offsets, indices })?)
    }

    /// The pairs of target number `k`, without that of a point with itself, and as many of them as
    /// are kept.
    fn others(
        &self,
        found: &PairGeometry,
        k: usize,
        itself: Option<usize>,
    ) -> impl Iterator<Item = NeighborPair> {
        let is_itself =
            move |pair: &NeighborPair| Some(pair.index as usize) == itself && pair.image == [0; 3];
        let nearest = self.filters.of_query().nearest;
        let most = nearest.map_or(usize::MAX, |k| k.get() as usize);
        found.of(k).filter(move |pair| !is_itself(pair)).take(most)
    }
}

/// What filters read of some points of a set, in the order in which these are asked for.
#[derive(Default)]
struct DataOfPoints {
    types: Vec<u32>,
    /// Where the exclusions of each point begin, and the end of the last; none by molecules.
    offsets: Vec<u64>,
    /// The exclusions, or the molecules of the points.
    excluded: Vec<u32>,
}

impl DataOfPoints {
    fn gather(filter: &PairFilter<'_>, points: &[u32]) -> Result<Self, Error> {
        const DATA: &str = "types and exclusions of points";
        let mut data = Self::default();
        if let Some(TypeCutoffs { types, .. }) = filter.cutoffs {
            let of_set = types[0].of_points();
            make_room(&mut data.types, points.len(), DATA)?;
            (data.types).extend(points.iter().map(|&point| of_set[point as usize]));
        }
        match filter.excluded.map(Exclusions::arrays) {
            None => {}
            Some(ExclusionArrays::Molecules(of_set)) => {
                make_room(&mut data.excluded, points.len(), DATA)?;
                (data.excluded).extend(points.iter().map(|&point| of_set[point as usize]));
            }
            Some(ExclusionArrays::Lists { offsets, indices }) => {
                let list = |&point: &u32| {
                    let [begin, end] = [0, 1].map(|next| offsets[point as usize + next] as usize);
                    &indices[begin..end]
                };
                let all = points.iter().map(|point| list(point).len()).sum();
                make_room(&mut data.excluded, all, DATA)?;
                make_room(&mut data.offsets, points.len() + 1, DATA)?;
                data.offsets.push(0);
                for list in points.iter().map(list) {
                    data.excluded.extend_from_slice(list);
                    data.offsets.push(data.excluded.len() as u64);
                }
            }
        }
        Ok(data)
    }

    /// The same, as a device takes it with the rules of the sets.
    fn of<'a>(&'a self, rules: PairRules<'a>) -> QueriedPoints<'a> {
        let exclusions = if self.offsets.is_empty() {
            ExclusionArrays::Molecules(&self.excluded)
        } else {
            ExclusionArrays::Lists {
                offsets: &self.offsets,
                indices: &self.excluded,
            }
        };
        QueriedPoints {
            rules,
            types: &self.types,
            exclusions: rules.filter.excluded.map(|_| exclusions),
        }
    }
}
