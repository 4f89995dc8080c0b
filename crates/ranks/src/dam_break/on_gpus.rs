//! The particles of the SPH solver on the GPUs of many ranks.
//!
//! Arrays of the solver are on the GPU of the rank that owns their particles. After every drift the
//! fluid migrates: the engine then has positions and ids, and velocities and compressions follow.
//! Every traversal sends fields to halos. Every [`nearfield_sph::Config::sort_every`] steps the
//! fluid is sorted, and space is divided anew if a rank has too many particles.

use nearfield::{
    PairKernel,
    device::{DeviceEngine, DeviceField, DeviceView, DeviceViewMut, Progress},
};
use nearfield_sph::{Arrays, DeviceArrays, DeviceNeighborhood, Error, LostParticle, Set, Spread};

use super::whole::{GATHERED, gather, lost_of_all, spread};
use crate::{
    RankedSet,
    device::{DeviceMigration, DeviceRankedEngine},
    error::Refusal,
};
use nearfield_grid::memory::copied;

/// Space is divided anew if a rank has more than this multiple of the mean number of particles.
const UNEVEN: f64 = 1.1;

/// The engine of a rank, as a neighbourhood of the solver on GPUs.
pub(super) struct OnGpus {
    engine: DeviceRankedEngine,
    /// Fluid and walls, once they are placed.
    sets: Option<[RankedSet; 2]>,
    /// True if the fluid is to be sorted before the next migration.
    due: bool,
}

impl OnGpus {
    /// The solver's view of an engine without sets.
    pub(super) fn new(engine: DeviceRankedEngine) -> Self {
        Self {
            engine,
            sets: None,
            due: false,
        }
    }

    fn sets(&self) -> Result<[RankedSet; 2], Error> {
        let placed = self.sets;
        placed.ok_or_else(|| Error::elsewhere("particles are used before they are placed"))
    }

    fn set(&self, set: Set) -> Result<RankedSet, Error> {
        let [fluid, walls] = self.sets()?;
        Ok(match set {
            Set::Fluid => fluid,
            Set::Walls => walls,
        })
    }

    /// Agrees on the result of local work.
    fn agree<R>(&mut self, result: Result<R, Error>) -> Result<R, Error> {
        let comm = &mut self.engine.comm;
        Ok(comm.agree(result.map_err(Refusal::new), &mut [])?)
    }

    /// Brings arrays into the order after a migration of a set.
    fn bring(
        &mut self,
        set: RankedSet,
        moved: &DeviceMigration,
        arrays: DeviceArrays<'_>,
    ) -> Result<bool, Error> {
        if !moved.has_moved() {
            return Ok(false);
        }
        let before = *arrays.count;
        for (values, channels) in arrays.columns {
            let from = values.slice(0..channels * before);
            *values = moved.bring(&mut self.engine, &from, channels)?;
        }
        // The engine has brought the positions.
        let copy = || -> Result<_, Error> {
            let positions = self.engine.positions(set)?;
            let mut copied = self.engine.zeros(positions.len().max(1))?;
            let queue = self.engine.engine().queue();
            let mut to = copied.slice_mut(0..positions.len());
            let made = queue.copy_on_device("positions of particles", &positions, &mut to);
            made.map_err(Error::elsewhere)?;
            Ok(copied)
        };
        let positions = copy();
        *arrays.positions = self.agree(positions)?;
        *arrays.count = moved.points();
        Ok(true)
    }

    /// Moves the particles of a set to their owners, with all arrays; returns true if any has
    /// changed its rank.
    fn migrate(&mut self, set: RankedSet, arrays: DeviceArrays<'_>) -> Result<bool, Error> {
        let DeviceArrays {
            count,
            positions,
            columns,
            ..
        } = arrays;
        let mut travelling = vec![(positions, 3)];
        travelling.extend(columns);
        let moved = self.engine.migrate_with(set, &mut travelling)?;
        *count = moved.points();
        Ok(moved.has_moved())
    }

    /// Sorts a set and its arrays into the order of the cells; it has to migrate afterwards.
    fn sort(&mut self, set: RankedSet, arrays: &mut DeviceArrays<'_>) -> Result<(), Error> {
        self.engine.sort(set)?;
        let queue = self.engine.engine().queue().clone();
        let sorted = arrays.reorder(&queue, |channels, from, mut to| {
            Ok(self.engine.reorder(set, channels, &from, &mut to)?)
        });
        self.agree(sorted)
    }

    /// Divides space anew if a rank has too many particles.
    fn balance(&mut self, own: usize) -> Result<(), Error> {
        let (mut sum, mut largest) = ([own as f64], [-(own as f64)]);
        self.engine.comm.sum_and_min(&mut sum, &mut largest)?;
        let mean = sum[0] / self.engine.ranks() as f64;
        if -largest[0] > UNEVEN * mean {
            let fluid = self.set(Set::Fluid)?;
            self.engine.divide_evenly(fluid)?;
        }
        Ok(())
    }
}

impl DeviceNeighborhood for OnGpus {
    fn engine(&self) -> &DeviceEngine {
        self.engine.engine()
    }

    fn rank(&self) -> usize {
        self.engine.rank()
    }

    fn ranks(&self) -> usize {
        self.engine.ranks()
    }

    fn place(
        &mut self,
        fluid: DeviceArrays<'_>,
        walls: DeviceArrays<'_>,
        ids: [&[u64]; 2],
    ) -> Result<(), Error> {
        let mut sets = Vec::new();
        let mut both = [fluid, walls];
        for (arrays, ids) in both.iter_mut().zip(ids) {
            let (set, moved) = self.engine.add_point_set(&arrays.place(), Some(ids))?;
            self.bring(set, &moved, arrays.again())?;
            sets.push(set);
        }
        self.sets = Some([sets[0], sets[1]]);
        // Walls may have divided space by their number too.
        self.engine.divide_evenly(sets[0])?;
        for (set, mut arrays) in sets.into_iter().zip(both) {
            self.sort(set, &mut arrays)?;
            self.migrate(set, arrays)?;
        }
        Ok(())
    }

    fn follow(
        &mut self,
        mut fluid: DeviceArrays<'_>,
        walls: DeviceArrays<'_>,
    ) -> Result<bool, Error> {
        let [of_fluid, of_walls] = self.sets()?;
        let sorted = std::mem::take(&mut self.due);
        if sorted {
            self.balance(*fluid.count)?;
            self.sort(of_fluid, &mut fluid)?;
        }
        let mut moved = self.migrate(of_fluid, fluid)?;
        if !self.engine.is_placed(of_walls)? {
            moved |= self.migrate(of_walls, walls)?;
        }
        Ok(moved | sorted)
    }

    /// The order changes with the next migration.
    fn sort_fluid(&mut self, _: DeviceArrays<'_>) -> Result<(), Error> {
        self.due = true;
        Ok(())
    }

    fn traverse<K: PairKernel>(
        &mut self,
        kernel: &K,
        [of, from]: [Set; 2],
        [targets, sources]: [Option<DeviceField<'_>>; 2],
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<(), Error> {
        let (of, from) = (self.set(of)?, self.set(from)?);
        let traversal = self.engine.traverse(kernel, of, from);
        let traversal = traversal.targets(targets).sources(sources);
        Ok(traversal.run_into(results)?)
    }

    fn count_neighbors(&mut self, counts: &mut DeviceViewMut<'_, u32>) -> Result<(), Error> {
        let fluid = self.set(Set::Fluid)?;
        Ok(self.engine.count_neighbors(fluid, fluid, counts)?)
    }

    fn wait(&mut self) -> Result<Progress, Error> {
        self.engine.wait().map_err(Error::elsewhere)
    }

    fn finish(
        &mut self,
        waited: Result<Progress, Error>,
        sums: &mut [f64],
        minima: &mut [f64],
    ) -> Result<Progress, Error> {
        let waited = waited.map_err(Refusal::new);
        Ok(self.engine.finish_with(waited, sums, minima)?)
    }

    fn ids(&self) -> Result<DeviceView<'_, u32>, Error> {
        let fluid = self.set(Set::Fluid)?;
        Ok(self.engine.id_words(fluid)?)
    }

    fn together(&mut self, sums: &mut [f64], minima: &mut [f64]) -> Result<(), Error> {
        Ok(self.engine.comm.sum_and_min(sums, minima)?)
    }

    fn first_lost(&mut self, lost: Option<LostParticle>) -> Result<Option<LostParticle>, Error> {
        let own = lost.as_ref().map_or(f64::INFINITY, |lost| lost.id as f64);
        let mut first = [own];
        let comm = &mut self.engine.comm;
        comm.min(&mut first)?;
        if first[0] == f64::INFINITY {
            return Ok(None);
        }
        Ok(Some(lost_of_all(comm, first[0], lost)?))
    }

    fn gather(&mut self, set: Set, ids: Option<&[u64]>, arrays: Arrays<'_>) -> Result<(), Error> {
        let ids = match ids {
            Some(ids) => Ok(copied(ids, GATHERED)?),
            None => self.engine.ids(self.set(set)?).map_err(Error::from),
        };
        let ids = self.agree(ids)?;
        gather(&mut self.engine.comm, &ids, arrays)
    }

    fn spread(&mut self) -> Result<Option<Spread>, Error> {
        let [fluid, walls] = self.sets()?;
        let [owned, halo] = self.engine.points(fluid)?;
        let [_, of_walls] = self.engine.points(walls)?;
        let device = format!("gpu:{}", self.engine.engine().device().index);
        let comm = &mut self.engine.comm;
        Ok(Some(spread(comm, owned, halo + of_walls, &device)?))
    }

    fn give_up(&mut self, reason: &str) {
        // The fault is what later calls return.
        let _ = self.engine.comm.give_up(reason);
    }
}
