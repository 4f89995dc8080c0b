//! The particles of the SPH solver on ranks.
//!
//! Arrays are where their particles are owned: after every drift the fluid migrates, and fields
//! then travel to halos only. Walls migrate when they are placed, and whenever space is divided
//! anew: by the times of the ranks, or every [`nearfield_sph::Config::sort_every`] steps by the
//! predicted work if the run is to be the same each time.

use bytemuck::{Pod, Zeroable};
use glam::Vec3;
use nearfield::{PairKernel, kernels::FieldsOf};
use nearfield_grid::memory::{copied, make_room, with_room, zeroed};
use nearfield_sph::{
    Accumulator, Arrays, Column, Error, Loss, LostParticle, Neighborhood, Running, Set, Spread,
    Whole,
};
use std::{
    marker::PhantomData,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{ExactSum, RankedEngine, RankedSet};

/// A sum over the particles of all ranks.
pub(super) trait RankSum: Accumulator + 'static {
    /// Whether a run is to be the same whatever the times of its ranks.
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

/// As fast as can be; the rounding depends on the number of ranks.
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

/// The same on any number of ranks.
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

/// A rank's engine as the solver sees it.
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

/// Makes a new array of an old one.
trait Remake {
    fn remake<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error>;

    /// Remakes an array of any kind.
    fn column(&mut self, column: &mut Column<'_>) -> Result<(), Error> {
        match column {
            Column::Vectors(values) => **values = self.remake(values)?,
            Column::Numbers(values) => **values = self.remake(values)?,
            Column::Ids(values) => **values = self.remake(values)?,
            Column::Pairs(values) => {
                let flat = values.iter().map(|(v, s)| [v.x, v.y, v.z, *s]);
                let flat = self.remake(&flat.collect::<Vec<[f32; 4]>>())?;
                let pairs = flat.into_iter().map(|[x, y, z, s]| (Vec3::new(x, y, z), s));
                **values = pairs.collect();
            }
        }
        Ok(())
    }

    /// Remakes all arrays of a set.
    fn arrays(&mut self, arrays: Arrays<'_>) -> Result<(), Error> {
        *arrays.positions = self.remake(arrays.positions)?;
        for mut column in arrays.columns {
            self.column(&mut column)?;
        }
        Ok(())
    }
}

/// For messages about memory.
const GATHERED: &str = "particles of all ranks";

/// Brings arrays of all ranks to rank 0, in the order of ids.
struct Gather<'a> {
    engine: &'a mut RankedEngine,
    /// By place on rank 0: the place among the arrays of all ranks, one behind the other.
    order: Vec<usize>,
}

impl<'a> Gather<'a> {
    /// Of the particles with these ids on this rank.
    fn new(engine: &'a mut RankedEngine, ids: &[u64]) -> Result<Self, Error> {
        // Nothing is on its way to rank 0 before it asks, so it never has more than this to hold.
        engine.min(&mut [0.0]).map_err(Error::elsewhere)?;
        let mut gather = Self {
            engine,
            order: Vec::new(),
        };
        let ids: Vec<u64> = gather.whole(ids)?;
        make_room(&mut gather.order, ids.len(), GATHERED)?;
        gather.order.extend(0..ids.len());
        gather.order.sort_unstable_by_key(|at| ids[*at]);
        Ok(gather)
    }

    /// The arrays of all ranks, one behind the other; none on ranks but the first.
    fn whole<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error> {
        let message = copied(bytemuck::cast_slice(values), GATHERED)?;
        let parts = self.engine.bring_to_first(message);
        let parts = parts.map_err(Error::elsewhere)?;
        let number = |part: &Vec<u8>| part.len() / size_of::<V>();
        let mut whole = zeroed(parts.iter().map(number).sum(), GATHERED)?;
        let mut rest = &mut whole[..];
        for part in parts {
            let (to, behind) = rest.split_at_mut(number(&part));
            let to = bytemuck::cast_slice_mut::<V, u8>(to);
            to.copy_from_slice(&part[..to.len()]);
            rest = behind;
        }
        Ok(whole)
    }
}

impl Remake for Gather<'_> {
    fn remake<V: Pod>(&mut self, values: &[V]) -> Result<Vec<V>, Error> {
        let whole = self.whole(values)?;
        let mut ordered = with_room(whole.len(), GATHERED)?;
        ordered.extend(self.order.iter().map(|at| whole[*at]));
        Ok(ordered)
    }
}

/// A lost particle as numbers; all zero if it is another rank's.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LostNumbers {
    left: f64,
    position: [f64; 3],
    velocity: [f64; 3],
    count: f64,
    step: f64,
    time: f64,
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

    /// The lost particle with the id `first`, the smallest of all; `lost` is one of this rank.
    fn lost_of_all(&self, first: f64, lost: Option<LostParticle>) -> Result<LostParticle, Error> {
        let mut numbers = LostNumbers::zeroed();
        if let Some(lost) = &lost {
            numbers.count = lost.count as f64;
            if lost.id as f64 == first {
                numbers.left = f64::from(u8::from(lost.reason == Loss::LeftDomain));
                numbers.position = lost.position.to_array().map(f64::from);
                numbers.velocity = lost.velocity.to_array().map(f64::from);
                (numbers.step, numbers.time) = (lost.step as f64, lost.time);
            }
        }
        let sum = bytemuck::cast_slice_mut(std::slice::from_mut(&mut numbers));
        self.lock().sum(sum).map_err(Error::elsewhere)?;
        Ok(LostParticle {
            id: first as u64,
            reason: if numbers.left > 0.0 {
                Loss::LeftDomain
            } else {
                Loss::NotANumber
            },
            position: numbers.position.map(|x| x as f32).into(),
            velocity: numbers.velocity.map(|x| x as f32).into(),
            count: numbers.count as usize,
            step: numbers.step as u64,
            time: numbers.time,
            evidence: None,
        })
    }

    /// Makes the owners of the particles of a set their callers, with all arrays.
    fn migrate(&mut self, set: RankedSet, arrays: Arrays<'_>) -> Result<(), Error> {
        let engine = self.unlocked();
        let migration = engine.migrate(set, bytemuck::cast_slice(arrays.positions));
        let migration = migration.map_err(Error::elsewhere)?;
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
        following.run(engine).map_err(Error::elsewhere)?;
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
        let id = engine.add_point_set(positions, Some(ids));
        let id = id.map_err(Error::elsewhere)?;
        match set {
            Set::Fluid => self.fluid = Some(id),
            Set::Walls => {
                // No sum goes over pairs of walls, so none needs their lists.
                let off = engine.set_active(id, id, false);
                off.map_err(Error::elsewhere)?;
                self.walls = Some(id);
            }
        }
        self.migrate(id, arrays)
    }

    fn follow(&mut self, fluid: Arrays<'_>, walls: Arrays<'_>) -> Result<(), Error> {
        let due = std::mem::take(&mut self.due);
        let engine = self.unlocked();
        let divided = if !S::REPRODUCIBLE {
            engine.balance().map_err(Error::elsewhere)?
        } else {
            if due {
                engine.rebalance().map_err(Error::elsewhere)?;
            }
            due
        };
        self.migrate(self.set(Set::Fluid)?, fluid)?;
        if divided {
            self.migrate(self.set(Set::Walls)?, walls)?;
        }
        Ok(())
    }

    /// Ranks keep the order of ids, which makes sums the same. Where times do not divide space anew
    /// this does.
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
        let found = traversal.targets(targets).sources(sources).run();
        *results = found.map_err(Error::elsewhere)?;
        Ok(())
    }

    fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        let fluid = self.set(Set::Fluid)?;
        let counts = self.lock().count_neighbors(fluid, fluid);
        counts.map_err(Error::elsewhere)
    }

    fn totals<const N: usize>(&self, mut sums: [S; N]) -> Result<[f64; N], Error> {
        let totals = S::over_ranks(&mut self.lock(), &mut sums, &mut []);
        let totals = totals.map_err(Error::elsewhere)?;
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
        let totals = S::over_ranks(&mut self.lock(), &mut both, &mut minima);
        let totals = totals.map_err(Error::elsewhere)?;
        let first = minima[0];
        Ok(Whole {
            sums: (
                std::array::from_fn(|at| totals[at]),
                std::array::from_fn(|at| totals[N + at]),
            ),
            maxima: std::array::from_fn(|at| -minima[1 + at]),
            lost: match first == f64::INFINITY {
                true => None,
                false => Some(self.lost_of_all(first, lost)?),
            },
        })
    }

    fn count_together(&self, counts: &mut [u64]) -> Result<(), Error> {
        // Whole numbers far below 2⁵³ are exact.
        let mut numbers: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
        let added = self.lock().sum(&mut numbers);
        added.map_err(Error::elsewhere)?;
        (counts.iter_mut().zip(numbers)).for_each(|(count, number)| *count = number as u64);
        Ok(())
    }

    fn gather(&self, set: Set, ids: Option<&[u64]>, arrays: Arrays<'_>) -> Result<(), Error> {
        let mut engine = self.lock();
        let own = match ids {
            Some(_) => Vec::new(),
            None => {
                let own = engine.ids(self.set(set)?).map_err(Error::elsewhere)?;
                copied(own, GATHERED)?
            }
        };
        Gather::new(&mut engine, ids.unwrap_or(&own))?.arrays(arrays)
    }

    fn spread(&self) -> Result<Option<Spread>, Error> {
        let (fluid, walls) = (self.set(Set::Fluid)?, self.set(Set::Walls)?);
        let [rank, ranks] = self.place;
        let mut engine = self.lock();
        let points = |set| engine.points(set).map_err(Error::elsewhere);
        let ([owned, halo], [_, of_walls]) = (points(fluid)?, points(walls)?);
        let mut numbers = vec![0.0; ranks + 1];
        (numbers[rank], numbers[ranks]) = (owned as f64, (halo + of_walls) as f64);
        engine.sum(&mut numbers).map_err(Error::elsewhere)?;
        let halo_points = numbers[ranks] as u64;
        numbers.truncate(ranks);
        let device = engine.engine.report().device.to_string();
        let devices = engine.comm.gather(device.as_bytes());
        let devices = devices.map_err(|fault| Error::elsewhere(crate::Error::from(fault)))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Spread {
            particles_per_rank: numbers.into_iter().map(|number| number as u64).collect(),
            halo_points,
            devices: devices.into_iter().map(text).collect(),
        }))
    }

    fn give_up(&self, reason: &str) {
        self.lock().fail(reason);
    }

    fn on_workers<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.lock().engine.on_workers(points, work)
    }

    fn running(&self) -> Running {
        let report = self.lock().engine.report();
        Running::new(report.device, report.reason, report.threads)
    }
}
