//! The particles of the SPH solver on ranks.
//!
//! Arrays are on the ranks that own their particles: the fluid migrates after every drift, so
//! fields travel only to halos. Walls migrate when they are placed and whenever space is divided
//! anew: by the times of the ranks, or, if runs are to be reproducible, every
//! [`nearfield_sph::Config::sort_every`] steps by the predicted work.

use glam::Vec3;
use nearfield::{Device, PairKernel, kernels::FieldsOf};
use nearfield_grid::memory::copied;
use nearfield_sph::{
    Accumulator, Arrays, Column, Error, LostParticle, Neighborhood, Running, Set, Spread, Whole,
};
use std::{
    marker::PhantomData,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::whole::{GATHERED, gather, lost_of_all, spread};
use crate::{ExactSum, RankedEngine, RankedSet};

/// A sum over the particles of all ranks.
pub(super) trait RankSum: Accumulator + 'static {
    /// True if a run must not depend on the times of its ranks.
    const REPRODUCIBLE: bool;

    /// The values over all ranks; `minima` become those over all ranks.
    fn over_ranks(
        engine: &mut RankedEngine,
        sums: &mut [Self],
        minima: &mut [f64],
    ) -> Result<Vec<f64>, crate::Error>
    where
        Self: Sized;
}

/// The fastest sum; its rounding depends on the number of ranks.
impl RankSum for f64 {
    const REPRODUCIBLE: bool = false;

    fn over_ranks(
        engine: &mut RankedEngine,
        sums: &mut [Self],
        minima: &mut [f64],
    ) -> Result<Vec<f64>, crate::Error> {
        engine.sum_and_min(sums, minima)?;
        Ok(sums.to_vec())
    }
}

impl Accumulator for ExactSum {
    #[inline]
    fn add(&mut self, value: f64) {
        self.add(value);
    }

    fn merge(&mut self, other: Self) {
        self.add_sum(&other);
    }
}

/// A sum that is the same on any number of ranks.
impl RankSum for ExactSum {
    const REPRODUCIBLE: bool = true;

    fn over_ranks(
        engine: &mut RankedEngine,
        sums: &mut [Self],
        minima: &mut [f64],
    ) -> Result<Vec<f64>, crate::Error> {
        engine.sum_exactly_and_min(sums, minima)
    }
}

/// The engine of a rank, as a neighbourhood of the solver.
pub(super) struct Ranked<S> {
    /// Behind a lock because sums are asked of a simulation that does not change.
    engine: Mutex<RankedEngine>,
    place: [usize; 2],
    fluid: Option<RankedSet>,
    walls: Option<RankedSet>,
    /// True if space is to be divided anew before the next migration.
    due: bool,
    sums: PhantomData<fn() -> S>,
}

impl<S: RankSum> Ranked<S> {
    /// The solver's view of an engine without sets.
    pub(super) fn new(engine: RankedEngine) -> Self {
        Self {
            place: [engine.rank(), engine.ranks()],
            engine: Mutex::new(engine),
            fluid: None,
            walls: None,
            due: false,
            sums: PhantomData,
        }
    }

    fn lock(&self) -> MutexGuard<'_, RankedEngine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unlocked(&mut self) -> &mut RankedEngine {
        let engine = self.engine.get_mut();
        engine.unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, set: Set) -> Result<RankedSet, Error> {
        let id = match set {
            Set::Fluid => self.fluid,
            Set::Walls => self.walls,
        };
        id.ok_or_else(|| Error::elsewhere("particles are used before they are placed"))
    }

    /// Moves the particles of a set to their owners, with all arrays.
    fn migrate(&mut self, set: RankedSet, arrays: Arrays<'_>) -> Result<(), Error> {
        let engine = self.unlocked();
        let migration = engine.migrate(set, bytemuck::cast_slice(arrays.positions))?;
        let Arrays {
            positions,
            mut columns,
        } = arrays;
        // Pairs have no layout that is the same on all ranks.
        let mut flat = Vec::new();
        for column in &columns {
            if let Column::Pairs(values) = column {
                let values = values.iter().map(|(v, s)| [v.x, v.y, v.z, *s]);
                flat.push(values.collect::<Vec<[f32; 4]>>());
            }
        }
        let (mut following, mut flattened) = (migration.follow(), flat.iter_mut());
        following.add(positions);
        for column in &mut columns {
            match column {
                Column::Vectors(values) => following.add(values),
                Column::Numbers(values) => following.add(values),
                Column::Ids(values) => following.add(values),
                Column::Pairs(_) => match flattened.next() {
                    Some(values) => following.add(values),
                    None => continue,
                },
            };
        }
        following.run(engine)?;
        let mut flat = flat.into_iter();
        for column in columns {
            if let Column::Pairs(values) = column {
                let flat = flat.next().unwrap_or_default();
                let pairs = flat.into_iter().map(|[x, y, z, s]| (Vec3::new(x, y, z), s));
                *values = pairs.collect();
            }
        }
        Ok(())
    }
}

impl<S: RankSum> Neighborhood for Ranked<S> {
    type Sum = S;

    fn rank(&self) -> usize {
        self.place[0]
    }

    fn ranks(&self) -> usize {
        self.place[1]
    }

    fn place(&mut self, set: Set, ids: &[u64], arrays: Arrays<'_>) -> Result<(), Error> {
        let engine = self.unlocked();
        let positions = bytemuck::cast_slice(arrays.positions);
        let id = engine.add_point_set(positions, Some(ids))?;
        match set {
            Set::Fluid => self.fluid = Some(id),
            Set::Walls => {
                // No sum goes over pairs of walls, so none needs their lists.
                engine.set_active(id, id, false)?;
                self.walls = Some(id);
            }
        }
        self.migrate(id, arrays)
    }

    fn follow(&mut self, fluid: Arrays<'_>, walls: Arrays<'_>) -> Result<(), Error> {
        let due = std::mem::take(&mut self.due);
        let engine = self.unlocked();
        let divided = if !S::REPRODUCIBLE {
            engine.balance()?
        } else {
            if due {
                engine.rebalance()?;
            }
            due
        };
        self.migrate(self.set(Set::Fluid)?, fluid)?;
        if divided {
            self.migrate(self.set(Set::Walls)?, walls)?;
        }
        Ok(())
    }

    /// Ranks keep the order of ids, which makes sums the same. In reproducible runs this divides
    /// space anew.
    fn sort_fluid(&mut self, _: Arrays<'_>) -> Result<(), Error> {
        self.due = true;
        Ok(())
    }

    fn traverse<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        [of, from]: [Set; 2],
        targets: impl FieldsOf<'a, K::Target>,
        sources: impl FieldsOf<'a, K::Source>,
        results: &mut Vec<K::Output>,
    ) -> Result<(), Error> {
        let (of, from) = (self.set(of)?, self.set(from)?);
        let traversal = self.unlocked().traverse(kernel, of, from);
        *results = traversal.targets(targets).sources(sources).run()?;
        Ok(())
    }

    fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        let fluid = self.set(Set::Fluid)?;
        Ok(self.lock().count_neighbors(fluid, fluid)?)
    }

    fn totals<const N: usize>(&self, mut sums: [S; N]) -> Result<[f64; N], Error> {
        let totals = S::over_ranks(&mut self.lock(), &mut sums, &mut [])?;
        Ok(std::array::from_fn(|at| totals[at]))
    }

    fn whole<const N: usize, const M: usize, const K: usize>(
        &self,
        sums: ([S; N], [S; M]),
        maxima: [f64; K],
        lost: Option<LostParticle>,
    ) -> Result<Whole<N, M, K>, Error> {
        let mut both: Vec<S> = sums.0.into_iter().chain(sums.1).collect();
        // The first lost one, and the numbers with the opposite sign: their minimum is the maximum.
        let own = lost.as_ref().map_or(f64::INFINITY, |lost| lost.id as f64);
        let mut minima = vec![own];
        minima.extend(maxima.map(|value| -value));
        let totals = S::over_ranks(&mut self.lock(), &mut both, &mut minima)?;
        let first = minima[0];
        Ok(Whole {
            sums: (
                std::array::from_fn(|at| totals[at]),
                std::array::from_fn(|at| totals[N + at]),
            ),
            maxima: std::array::from_fn(|at| -minima[1 + at]),
            lost: match first == f64::INFINITY {
                true => None,
                false => Some(lost_of_all(&mut self.lock().comm, first, lost)?),
            },
        })
    }

    fn count_together(&self, counts: &mut [u64]) -> Result<(), Error> {
        // Whole numbers far below 2⁵³ are exact.
        let mut numbers: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
        self.lock().sum(&mut numbers)?;
        (counts.iter_mut().zip(numbers)).for_each(|(count, number)| *count = number as u64);
        Ok(())
    }

    fn gather(&self, set: Set, ids: Option<&[u64]>, arrays: Arrays<'_>) -> Result<(), Error> {
        let mut engine = self.lock();
        let own = match ids {
            Some(_) => Vec::new(),
            None => {
                let own = engine.ids(self.set(set)?)?;
                copied(own, GATHERED)?
            }
        };
        gather(&mut engine.comm, ids.unwrap_or(&own), arrays)
    }

    fn spread(&self) -> Result<Option<Spread>, Error> {
        let (fluid, walls) = (self.set(Set::Fluid)?, self.set(Set::Walls)?);
        let mut engine = self.lock();
        let ([owned, halo], [_, of_walls]) = (engine.points(fluid)?, engine.points(walls)?);
        let device = match engine.engine.report().device {
            device @ Device::Gpu(_) => format!("{device}, arrays on the host"),
            device => device.to_string(),
        };
        let halo = halo + of_walls;
        Ok(Some(spread(&mut engine.comm, owned, halo, &device)?))
    }

    fn give_up(&self, reason: &str) {
        self.lock().fail(reason);
    }

    fn on_workers<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.lock().engine.on_workers(points, work)
    }

    fn running(&self) -> Running {
        Running::of(self.lock().engine.report())
    }
}
