//! Neighbours of single points.
//!
//! The CPU backend visits the neighbours of a point where they lie, on the calling thread, which
//! takes about a microsecond. A GPU takes a point's position as it takes any free position: it is
//! sent, searches the set, and its pairs come back with their images, by which the point itself is
//! told from its images. That starts some twenty kernels, so many points are better asked for in
//! one query.

use crate::{
    Engine, Error, ErrorKind, Pair, PointSetId,
    backend::{AttachedDevice, Fault, JobKind, rows::QueryTo, support::Feature},
    engine::jobs::{Assigned, job},
    lists::{NeighborPair, PairGeometry},
};
use std::sync::PoisonError;

impl Engine {
    /// Calls `visit` with every neighbour in `sources` of one point of `targets` and the geometry
    /// of the pair. Runs on the calling thread, so callers may spread points over threads of their
    /// own; for whole sets, [`traverse`](Self::traverse) is many times faster.
    ///
    /// A source within the radius through several periodic images is visited once for each. The
    /// first call after an update makes a table of sorted places, four bytes per point.
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
    /// jobs leaves this to the CPU pool. A GPU refuses visits with filters.
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
        let pair = self.pair(targets, sources)?;
        let points = self.sets[targets.slot()].grid.len();
        if point >= points {
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
        let assigned = self.assign_pair(&feature, pair.map(|slot| slot as usize))?;
        if let Assigned::Device(device) = assigned {
            let job = job(JobKind::Visits, targets, sources);
            match self.visit_on_device(device, [targets, sources], point, &mut visit)? {
                Ok(()) => {
                    self.ran(job, None);
                    return Ok(());
                }
                Err(fault) => self.ran(job, Some(fault.to_string())),
            }
        }
        let of = self.pair_of_sets(targets, sources)?;
        let (set, rule) = (&self.sets[targets.slot()], self.settings.rule);
        let places = set.searched_places(rule, &self.backend)?;
        let place = places.order()[point] as usize;
        Ok(of.for_each_neighbor(place, |source, _, pair| visit(source, pair))?)
    }

    /// The same on the device; the fault after which the CPU backend has to. Nothing has been
    /// visited then.
    fn visit_on_device(
        &self,
        device: AttachedDevice<'_>,
        [targets, sources]: [PointSetId; 2],
        point: usize,
        visit: &mut dyn FnMut(u32, Pair),
    ) -> Result<Result<(), Fault>, Error> {
        let Some(positions) = self.sets[targets.slot()].grid.copied() else {
            return Ok(Err(Fault::Behind));
        };
        let position = &positions.as_chunks::<3>().0[point..=point];
        let (set, rule) = (&self.sets[targets.slot()], self.settings.rule);
        let radii = match rule.needs_targets() {
            true => Some(set.given_radii(targets, rule)?),
            false => None,
        };
        let own = radii.and_then(|radii| radii.get(point..=point));
        // Another thread that visits meanwhile makes memory of its own.
        let kept = || self.visited.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: PairGeometry = std::mem::take(&mut *kept());
        let to = QueryTo::Geometry(&mut found);
        let asked = self.query_on_device(device, (position.into(), own), sources, to);
        if let Ok(Ok(())) = asked {
            let is_itself = |pair: &NeighborPair| {
                targets == sources && pair.index as usize == point && pair.image == [0; 3]
            };
            for pair in found.of(0).filter(|pair| !is_itself(pair)) {
                // They were `f32`.
                let (d, d2) = (pair.d.map(|x| x as f32), pair.d2 as f32);
                visit(pair.index, Pair { d, d2 });
            }
        }
        *kept() = found;
        asked
    }
}
