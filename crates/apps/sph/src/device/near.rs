//! The interface between the solver on a GPU and the neighbour engine there: one engine, or engines
//! on many ranks.
//!
//! The solver keeps its arrays and passes them on when a neighbourhood may sort them or move them
//! to other ranks. Sums over all particles are first computed on the device, and then over the
//! ranks.
//!
//! **Invariant:** after each method all arrays of a set have the same particles in one order, and
//! are at least as long as their number.

use nearfield::{
    PairKernel,
    device::{
        DeviceBuffer, DeviceEngine, DeviceField, DeviceView, DeviceViewMut, Progress, copies::Queue,
    },
    prelude::PointSetId,
};
use nearfield_grid::{OfProcess, memory::collected};
use std::mem;

use super::arrays::{PARTICLES, zeros};
use crate::{
    Error, LostParticle,
    neighborhood::{Arrays, Set, Spread},
};

/// The particles of a set on the device, and all arrays that follow them.
#[derive(Debug)]
pub struct DeviceArrays<'a> {
    /// Number of particles.
    pub count: &'a mut usize,
    /// Three numbers per particle, metres.
    pub positions: &'a mut DeviceBuffer<f32>,
    /// The arrays other than the positions, and their numbers per particle.
    pub columns: Vec<(&'a mut DeviceBuffer<f32>, usize)>,
    /// Room for sorting.
    pub spare: &'a mut DeviceBuffer<f32>,
}

impl DeviceArrays<'_> {
    /// The positions.
    pub fn place(&self) -> DeviceView<'_, f32> {
        self.positions.slice(0..3 * *self.count)
    }

    /// The same arrays, for another call.
    pub fn again(&mut self) -> DeviceArrays<'_> {
        let columns = self.columns.iter_mut();
        DeviceArrays {
            count: self.count,
            positions: self.positions,
            columns: columns
                .map(|(values, channels)| (&mut **values, *channels))
                .collect(),
            spare: self.spare,
        }
    }

    /// Sorts all arrays with `reorder`, which gets the numbers per particle, an array, and room for
    /// the sorted one.
    ///
    /// # Errors
    /// Those of `reorder`, and when the GPU fails.
    pub fn reorder(
        &mut self,
        queue: &Queue,
        reorder: impl Fn(usize, DeviceView<'_, f32>, DeviceViewMut<'_, f32>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (count, spare) = (*self.count, &mut *self.spare);
        let columns = self.columns.iter_mut();
        let columns = columns.map(|(values, channels)| (&mut **values, *channels));
        for (values, channels) in columns.chain([(&mut *self.positions, 3)]) {
            let len = channels * count;
            if spare.len() < len {
                *spare = zeros(queue, len)?;
            }
            reorder(channels, values.slice(0..len), spare.slice_mut(0..len))?;
            if spare.len() == values.len() {
                mem::swap(values, spare);
            } else {
                let mut to = values.slice_mut(0..len);
                (queue.copy_on_device(PARTICLES, &spare.slice(0..len), &mut to))?;
            }
        }
        Ok(())
    }
}

/// The neighbour engine of the solver on a GPU.
///
/// All methods are collective but for [`engine`](Self::engine), [`rank`](Self::rank),
/// [`ranks`](Self::ranks), [`wait`](Self::wait), [`ids`](Self::ids) and [`give_up`](Self::give_up):
/// every rank calls them in the same order, and an error is the same on all ranks. The provided
/// ones suit a single rank.
pub trait DeviceNeighborhood: Send {
    /// The engine of this rank, whose queue the solver uses.
    fn engine(&self) -> &DeviceEngine;

    /// The number of this rank.
    fn rank(&self) -> usize {
        0
    }

    /// Number of ranks.
    fn ranks(&self) -> usize {
        1
    }

    /// Takes fluid and walls, once. Each rank gives any share of them and afterwards has the
    /// particles that it owns. `ids` are their numbers among all particles of the set.
    ///
    /// # Errors
    /// When the engine refuses.
    fn place(
        &mut self,
        fluid: DeviceArrays<'_>,
        walls: DeviceArrays<'_>,
        ids: [&[u64]; 2],
    ) -> Result<(), Error>;

    /// Follows the fluid to its new positions. Walls may change their rank too. Returns whether
    /// arrays have changed: the remaining values then belong to no particle.
    ///
    /// # Errors
    /// When the engine refuses; arrays are as before if that is because of positions.
    fn follow(&mut self, fluid: DeviceArrays<'_>, walls: DeviceArrays<'_>) -> Result<bool, Error>;

    /// Brings the fluid into an order that is good for the memory, now or when it is
    /// [followed](Self::follow) next.
    ///
    /// # Errors
    /// When the engine refuses.
    fn sort_fluid(&mut self, fluid: DeviceArrays<'_>) -> Result<(), Error>;

    /// Evaluates a kernel for all particles of the first set, with those of the second.
    ///
    /// # Errors
    /// When the engine refuses.
    fn traverse<K: PairKernel>(
        &mut self,
        kernel: &K,
        of: [Set; 2],
        fields: [Option<DeviceField<'_>>; 2],
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<(), Error>;

    /// Number of fluid neighbours of every fluid particle.
    ///
    /// # Errors
    /// When the engine refuses.
    fn count_neighbors(&mut self, counts: &mut DeviceViewMut<'_, u32>) -> Result<(), Error>;

    /// Waits for the device, and says whether what was computed since the last call counts on this
    /// rank. Not collective: [`finish`](Self::finish) is told.
    ///
    /// # Errors
    /// When the engine refuses on this rank.
    fn wait(&mut self) -> Result<Progress, Error>;

    /// Whether what was computed counts on all ranks, as each has it from [`wait`](Self::wait). The
    /// numbers become those of all ranks, as by [`together`](Self::together), also where one
    /// refuses.
    ///
    /// # Errors
    /// When an engine refuses, or a rank is lost.
    fn finish(
        &mut self,
        waited: Result<Progress, Error>,
        sums: &mut [f64],
        minima: &mut [f64],
    ) -> Result<Progress, Error> {
        let _ = (sums, minima);
        waited
    }

    /// The ids of the fluid of this rank, two words each, the low one first.
    ///
    /// # Errors
    /// Before the particles are placed.
    fn ids(&self) -> Result<DeviceView<'_, u32>, Error>;

    /// Adds up numbers over all ranks, and finds the smallest of others.
    ///
    /// # Errors
    /// When a rank is lost.
    fn together(&mut self, sums: &mut [f64], minima: &mut [f64]) -> Result<(), Error> {
        let _ = (sums, minima);
        Ok(())
    }

    /// The lost particle of all ranks that has the smallest id, with the number of them all; `lost`
    /// is one of this rank.
    ///
    /// # Errors
    /// When a rank is lost.
    fn first_lost(&mut self, lost: Option<LostParticle>) -> Result<Option<LostParticle>, Error> {
        Ok(lost)
    }

    /// As [`Neighborhood::gather`](crate::Neighborhood::gather): arrays of the host from all ranks
    /// to rank 0.
    ///
    /// # Errors
    /// When a rank is lost or memory is short.
    fn gather(&mut self, set: Set, ids: Option<&[u64]>, arrays: Arrays<'_>) -> Result<(), Error> {
        let _ = (set, ids, arrays);
        Ok(())
    }

    /// Where the particles are; `None` on a single rank.
    ///
    /// # Errors
    /// When a rank is lost.
    fn spread(&mut self) -> Result<Option<Spread>, Error> {
        Ok(None)
    }

    /// Tells all other ranks that this one cannot continue, and why: their calls return errors from
    /// now on.
    fn give_up(&mut self, reason: &str) {
        let _ = reason;
    }
}

/// One engine on one GPU.
pub(crate) struct OneGpu {
    engine: DeviceEngine,
    /// Fluid and walls, once they are placed.
    sets: Option<[PointSetId; 2]>,
    /// Ids of the fluid, and room for sorting.
    ids: OfProcess<Vec<DeviceBuffer<u32>>>,
}

impl OneGpu {
    /// No particles yet.
    pub(crate) fn new(engine: DeviceEngine) -> Self {
        Self {
            engine,
            sets: None,
            ids: OfProcess::new(Vec::new()),
        }
    }

    fn set(&self, set: Set) -> Result<PointSetId, Error> {
        match (self.sets, set) {
            (Some([fluid, _]), Set::Fluid) => Ok(fluid),
            (Some([_, walls]), Set::Walls) => Ok(walls),
            (None, _) => Err(unplaced()),
        }
    }

    /// Brings arrays of a set into the order of the cells.
    fn sort(&mut self, set: Set, mut arrays: DeviceArrays<'_>) -> Result<(), Error> {
        let (set, engine) = (self.set(set)?, &mut self.engine);
        if *arrays.count == 0 {
            return Ok(());
        }
        let queue = engine.queue().clone();
        arrays.reorder(&queue, |channels, from, mut to| {
            Ok(engine.reorder(set, channels, &from, &mut to)?)
        })?;
        Ok(engine.update(set, &arrays.place())?)
    }
}

fn unplaced() -> Error {
    Error::elsewhere("particles are used before they are placed")
}

impl DeviceNeighborhood for OneGpu {
    fn engine(&self) -> &DeviceEngine {
        &self.engine
    }

    fn place(
        &mut self,
        fluid: DeviceArrays<'_>,
        walls: DeviceArrays<'_>,
        [ids, _]: [&[u64]; 2],
    ) -> Result<(), Error> {
        let words = ids.iter().flat_map(|id| [*id as u32, (*id >> 32) as u32]);
        let words = collected(words, PARTICLES)?;
        let queue = self.engine.queue();
        let ids = queue.array(PARTICLES, &words)?;
        self.ids = OfProcess::new(vec![ids, zeros(queue, words.len())?]);
        let sets = [
            self.engine.add_point_set(&fluid.place())?,
            self.engine.add_point_set(&walls.place())?,
        ];
        self.sets = Some(sets);
        self.sort(Set::Walls, walls)
    }

    fn follow(&mut self, fluid: DeviceArrays<'_>, _: DeviceArrays<'_>) -> Result<bool, Error> {
        let set = self.set(Set::Fluid)?;
        self.engine.update(set, &fluid.place())?;
        Ok(false)
    }

    fn sort_fluid(&mut self, fluid: DeviceArrays<'_>) -> Result<(), Error> {
        let (set, count) = (self.set(Set::Fluid)?, *fluid.count);
        self.engine.usable()?;
        if let [ids, spare] = &mut self.ids[..] {
            let mut sorted = spare.slice_mut(0..2 * count);
            (self.engine).reorder(set, 2, &ids.slice(0..2 * count), &mut sorted)?;
            mem::swap(ids, spare);
        }
        self.sort(Set::Fluid, fluid)
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
        Ok(self.engine.finish()?)
    }

    fn ids(&self) -> Result<DeviceView<'_, u32>, Error> {
        self.engine.usable()?;
        self.ids
            .first()
            .map(DeviceBuffer::as_view)
            .ok_or_else(unplaced)
    }
}
