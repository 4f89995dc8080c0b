//! The interface between the solver and the neighbour engine: one engine, or engines on many ranks.
//!
//! The solver keeps its arrays and passes them on when a neighbourhood may sort them or move them
//! to other ranks. It sums over its particles with an [`Accumulator`], so a neighbourhood of many
//! ranks can compute sums that do not depend on their number.
//!
//! **Invariant:** after each method all arrays of a set have one length and one order.

use glam::Vec3;
use nearfield::{
    Builder, PairKernel, Permutation,
    balance::WorkerHandle,
    kernels::FieldsOf,
    prelude::{Engine, PointSetId},
};
use nearfield_grid::parallel;

use crate::{Error, LostParticle, running::Running};

/// One of the two sets of particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The fluid, which moves.
    Fluid,
    /// The walls, which rest.
    Walls,
}

/// An array with one element per particle, which follows the particles.
#[derive(Debug)]
pub enum Column<'a> {
    /// Vectors.
    Vectors(&'a mut Vec<Vec3>),
    /// Numbers.
    Numbers(&'a mut Vec<f32>),
    /// A vector and a number each.
    Pairs(&'a mut Vec<(Vec3, f32)>),
    /// Ids of particles.
    Ids(&'a mut Vec<u64>),
}

impl Column<'_> {
    /// Brings the array into the order of `permutation`.
    fn reorder(&mut self, permutation: &Permutation) -> Result<(), Error> {
        match self {
            Self::Vectors(values) => permutation.apply(values)?,
            Self::Numbers(values) => permutation.apply(values)?,
            Self::Pairs(values) => permutation.apply(values)?,
            Self::Ids(values) => permutation.apply(values)?,
        }
        Ok(())
    }
}

/// The particles of a set: their positions, metres, and all other arrays.
#[derive(Debug)]
pub struct Arrays<'a> {
    /// Where the particles are.
    pub positions: &'a mut Vec<Vec3>,
    /// The arrays other than the positions.
    pub columns: Vec<Column<'a>>,
}

/// A sum in the making.
pub trait Accumulator: Default + Send {
    /// Adds a number.
    fn add(&mut self, value: f64);

    /// Adds the sum of other numbers.
    fn merge(&mut self, other: Self);
}

/// The sum as the processor makes it, one number after the other.
impl Accumulator for f64 {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        *self += value;
    }

    fn merge(&mut self, other: Self) {
        *self += other;
    }
}

/// Particles of a simulation by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Fluid particles of each rank.
    pub particles_per_rank: Vec<u64>,
    /// Particles of others that ranks see, fluid and walls, of all ranks together.
    pub halo_points: u64,
    /// Where the engine of each rank runs, as `Device` prints it.
    pub devices: Vec<String>,
}

/// Numbers of all ranks together, from [`Neighborhood::whole`].
#[derive(Debug)]
pub struct Whole<const N: usize, const M: usize, const K: usize> {
    /// The sums, two kinds of them.
    pub sums: ([f64; N], [f64; M]),
    /// The largest numbers.
    pub maxima: [f64; K],
    /// The lost particle.
    pub lost: Option<LostParticle>,
}

/// The surroundings of the solver: they find neighbours and, where the particles are on many ranks,
/// add up what the ranks have.
///
/// All methods are collective: every rank calls them in the same order. The provided ones suit a
/// single rank.
pub trait Neighborhood: Send + Sync {
    /// How sums over particles are made.
    type Sum: Accumulator;

    /// The number of this rank.
    fn rank(&self) -> usize {
        0
    }

    /// Number of ranks.
    fn ranks(&self) -> usize {
        1
    }

    /// Takes the particles of a set in, once, fluid first. Each rank gives any share of them and
    /// has those that are its own afterwards. `ids` are their numbers among all of the set.
    ///
    /// # Errors
    /// When the engine refuses.
    fn place(&mut self, set: Set, ids: &[u64], arrays: Arrays<'_>) -> Result<(), Error>;

    /// Follows the fluid to its new positions. Walls may change their rank too.
    ///
    /// # Errors
    /// When the engine refuses.
    fn follow(&mut self, fluid: Arrays<'_>, walls: Arrays<'_>) -> Result<(), Error>;

    /// Brings the fluid into an order that is good for the memory, now or when it is
    /// [followed](Self::follow) next.
    ///
    /// # Errors
    /// When the engine refuses.
    fn sort_fluid(&mut self, fluid: Arrays<'_>) -> Result<(), Error>;

    /// Evaluates a kernel for all particles of the first set, with those of the second.
    ///
    /// # Errors
    /// When the engine refuses.
    fn traverse<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        of: [Set; 2],
        targets: impl FieldsOf<'a, K::Target>,
        sources: impl FieldsOf<'a, K::Source>,
        results: &mut Vec<K::Output>,
    ) -> Result<(), Error>;

    /// Number of fluid neighbours of every fluid particle.
    ///
    /// # Errors
    /// When the engine refuses.
    fn neighbor_counts(&self) -> Result<Vec<u32>, Error>;

    /// The sums over all ranks.
    ///
    /// # Errors
    /// When a rank is lost.
    fn totals<const N: usize>(&self, sums: [Self::Sum; N]) -> Result<[f64; N], Error>;

    /// Sums and largest numbers over all ranks, and the lost particle of all ranks that has the
    /// smallest id, with the number of them all.
    ///
    /// # Errors
    /// When a rank is lost.
    fn whole<const N: usize, const M: usize, const K: usize>(
        &self,
        sums: ([Self::Sum; N], [Self::Sum; M]),
        maxima: [f64; K],
        lost: Option<LostParticle>,
    ) -> Result<Whole<N, M, K>, Error> {
        Ok(Whole {
            sums: (self.totals(sums.0)?, self.totals(sums.1)?),
            maxima,
            lost,
        })
    }

    /// Adds up counts over all ranks.
    ///
    /// # Errors
    /// When a rank is lost.
    fn count_together(&self, counts: &mut [u64]) -> Result<(), Error> {
        let _ = counts;
        Ok(())
    }

    /// Brings arrays in the order of a set from all ranks to rank 0, in the order of ids; other
    /// ranks have none afterwards. Where the arrays are those of some particles only, `ids` are
    /// theirs.
    ///
    /// # Errors
    /// When a rank is lost or memory is short.
    fn gather(&self, set: Set, ids: Option<&[u64]>, arrays: Arrays<'_>) -> Result<(), Error> {
        let _ = (set, ids, arrays);
        Ok(())
    }

    /// Where the particles are; `None` on a single rank.
    ///
    /// # Errors
    /// When a rank is lost.
    fn spread(&self) -> Result<Option<Spread>, Error> {
        Ok(None)
    }

    /// Tells all other ranks that this one cannot go on, and why: their calls return errors from
    /// now on. Not collective.
    fn give_up(&self, reason: &str) {
        let _ = reason;
    }

    /// Does work over `points` particles of this rank on its workers, where it has any and that is
    /// worth it: loops of [`nearfield_grid::parallel`] in `work` use them. Not collective, and
    /// `work` does not use the neighbourhood.
    fn on_workers<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        let _ = points;
        parallel::alone(work)
    }

    /// The workers of this rank, for whole steps: all loops and traversals of a step then begin on
    /// a worker, and no thread sleeps and is woken between them. None where traversals are not the
    /// workers' alone, or ranks wait for each other's messages in them.
    fn workers(&self) -> Option<WorkerHandle> {
        None
    }

    /// Where the engine of this rank runs, and why there.
    fn running(&self) -> Running;
}

/// One engine for everything.
///
/// It gets the positions of the walls once, and those of the fluid after every drift. No neighbour
/// list is stored: every sum is a traversal whose results are in the order of the arrays.
pub(crate) struct OneEngine {
    engine: Engine,
    /// None before the particles are placed; the fluid is placed first.
    fluid: Option<PointSetId>,
    walls: Option<PointSetId>,
}

impl OneEngine {
    /// An engine with these settings.
    pub(crate) fn new(settings: Builder) -> Result<Self, Error> {
        Ok(Self {
            engine: settings.build()?,
            fluid: None,
            walls: None,
        })
    }

    fn id(&self, set: Set) -> Result<PointSetId, Error> {
        let id = match set {
            Set::Fluid => self.fluid,
            Set::Walls => self.walls,
        };
        id.ok_or_else(|| Error::elsewhere("particles are used before they are placed"))
    }

    /// Brings a set and its arrays into spatial order.
    fn sort(&mut self, set: Set, arrays: Arrays<'_>) -> Result<(), Error> {
        let id = self.id(set)?;
        let order = self.engine.z_sort(id)?;
        order.apply(arrays.positions)?;
        for mut column in arrays.columns {
            column.reorder(&order)?;
        }
        Ok(self.engine.update(id, &*arrays.positions)?)
    }
}

impl Neighborhood for OneEngine {
    type Sum = f64;

    fn place(&mut self, set: Set, _: &[u64], arrays: Arrays<'_>) -> Result<(), Error> {
        let id = self.engine.add_point_set(&*arrays.positions)?;
        match set {
            Set::Fluid => self.fluid = Some(id),
            Set::Walls => {
                self.walls = Some(id);
                self.sort(set, arrays)?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, fluid: Arrays<'_>, _: Arrays<'_>) -> Result<(), Error> {
        let id = self.id(Set::Fluid)?;
        Ok(self.engine.update(id, &*fluid.positions)?)
    }

    fn sort_fluid(&mut self, fluid: Arrays<'_>) -> Result<(), Error> {
        self.sort(Set::Fluid, fluid)
    }

    fn traverse<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        [of, from]: [Set; 2],
        targets: impl FieldsOf<'a, K::Target>,
        sources: impl FieldsOf<'a, K::Source>,
        results: &mut Vec<K::Output>,
    ) -> Result<(), Error> {
        let (of, from) = (self.id(of)?, self.id(from)?);
        let traversal = self.engine.traverse(kernel, of, from);
        Ok(traversal
            .targets(targets)
            .sources(sources)
            .run_into(results)?)
    }

    fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        let fluid = self.id(Set::Fluid)?;
        Ok(self.engine.count_neighbors(fluid, fluid)?)
    }

    fn totals<const N: usize>(&self, sums: [f64; N]) -> Result<[f64; N], Error> {
        Ok(sums)
    }

    fn on_workers<R: Send>(&self, points: usize, work: impl FnOnce() -> R + Send) -> R {
        self.engine.on_workers(points, work)
    }

    fn workers(&self) -> Option<WorkerHandle> {
        self.engine.workers()
    }

    fn running(&self) -> Running {
        Running::of(self.engine.report())
    }
}
