//! Pair kernels over lists that were found before: those of an engine, and lists with a skin.
//!
//! The CPU backend reads the lists of the host with positions in the caller's order. A GPU that
//! works alone keeps lists of its own (`backend/gpu/kept.rs`): it gets fields, and positions of
//! sets that have moved, and gives sums. Either tests every pair anew, so lists may hold more than
//! is within the radius.
//!
//! Whether there are lists that hold every pair is decided here, before any device is asked.
//!
//! **Invariant:** a device is asked for sums over lists only while those of the host are current.

use crate::{
    Device, Error, ErrorKind, PairKernel, PointSetId, Precision,
    backend::{
        JobKind,
        accelerator::{MovedSet, PairsFrom},
        support::{Choice, Feature, choose},
    },
    engine::{
        jobs::{Assigned, job},
        placing::Words,
        traverse::{FieldArrays, PairSource, Traversal},
        verlet::AnyStoredPairs,
    },
    lists::VerletLists,
};
use nearfield_cpu::{Coordinate, Output, StoredPairs};

impl<K: PairKernel> Traversal<'_, K> {
    /// Takes the pairs from the lists that [`Engine::find_neighbors`] wrote instead of searching
    /// again: worth it when several kernels, or many iterations of one, run over the same pairs.
    /// Results differ from those without lists by the order of summation only.
    ///
    /// Half lists of one set give every pair to both of its points, by [`PairKernel::symmetric`];
    /// best where points near each other lie near each other in memory ([`Engine::z_sort`]).
    ///
    /// Running it is refused with [`ErrorKind::NoLists`] when the lists
    /// are out of date. Traversals of [`VerletLists`] run over lists anyway.
    ///
    /// A GPU does it if the engine was asked for one alone: the first traversal over the lists of a
    /// pair of sets has full ones found there, and later searches leave them there, 8 bytes per
    /// entry and beyond a memory limit, which counts lists of the host. An engine that shares its
    /// jobs leaves it to the CPU pool, and an emulated GPU refuses it. On the CPU the positions of
    /// both sets are brought into the caller's order for the call, 12 bytes per point (24 in
    /// `f64`).
    ///
    /// [`Engine::find_neighbors`]: crate::Engine::find_neighbors
    /// [`Engine::z_sort`]: crate::Engine::z_sort
    pub fn over_lists(mut self) -> Self {
        if let PairSource::Grid = self.over {
            self.over = PairSource::Lists(run_over_lists);
        }
        self
    }
}

impl VerletLists {
    /// A traversal of all pairs within the radius with a kernel, over the lists. Running it is
    /// refused as [`candidates`](Self::candidates) is. Half lists give every pair of a set to both
    /// of its points, by [`PairKernel::symmetric`].
    ///
    /// ```
    /// use nearfield::{kernels::SphDensity, lists::VerletLists, prelude::*};
    /// let mut positions = vec![[0.0f32; 3], [0.5, 0.0, 0.0]];
    /// let mut lists = VerletLists::new(Engine::builder(1.0), 0.2)?;
    /// let points = lists.add_point_set(&positions)?;
    /// let kernel = SphDensity::with_support(1.0);
    /// for _step in 0..4 {
    ///     positions[1][0] += 0.01;
    ///     lists.update(points, &positions)?;
    ///     lists.refresh()?;
    ///     let density = lists.traverse(&kernel, points, points).sources(&[1.0, 1.0]).run()?;
    ///     assert!(density[0] > 0.0 && density[0] == density[1]);
    /// }
    /// assert_eq!(lists.builds(), 1);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn traverse<'a, K: PairKernel>(
        &'a self,
        kernel: &'a K,
        targets: PointSetId,
        sources: PointSetId,
    ) -> Traversal<'a, K> {
        Traversal {
            engine: &self.engine,
            kernel,
            targets,
            sources,
            given: FieldArrays::default(),
            over: PairSource::Skin(self, run_over_skin),
        }
    }
}

/// Runs over the lists of the traversal's engine.
fn run_over_lists<K: PairKernel>(
    traversal: &Traversal<'_, K>,
    output: Output<'_, K::Output>,
) -> Result<(), Error> {
    let engine = traversal.engine;
    engine.neighbors(traversal.targets, traversal.sources)?;
    let on_cpu = |output: Output<'_, K::Output>| match engine.precision() {
        Precision::Single => traversal.over_lists_on_cpu::<f32>(output),
        Precision::Double => traversal.over_lists_on_cpu::<f64>(output),
    };
    traversal.run_listed(&Feature::OverLists, PairsFrom::Lists, output, on_cpu)
}

/// Runs over lists with a skin.
fn run_over_skin<K: PairKernel>(
    traversal: &Traversal<'_, K>,
    lists: &VerletLists,
    output: Output<'_, K::Output>,
) -> Result<(), Error> {
    let sets = [traversal.targets, traversal.sources];
    let pairs = lists.stored(sets[0], sets[1])?;
    let moved = sets.map(|set| lists.moved(set));
    let mut words = [None, None];
    for ((words, moved), set) in words.iter_mut().zip(&moved).zip(sets) {
        if let Some((positions, _)) = moved {
            let of_set = Words::of(*positions, traversal.engine.precision());
            *words = Some(of_set.map_err(|source| ErrorKind::Positions { set, source })?);
        }
    }
    let now = [0, 1].map(|side| {
        let (words, (_, stamp)) = words[side].as_ref().zip(moved[side])?;
        let positions = words.field();
        Some(MovedSet { positions, stamp })
    });
    let radius = lists.true_radius();
    let from = PairsFrom::Moved { radius, now };
    traversal.run_listed(&Feature::Skin, from, output, |output| match &pairs {
        AnyStoredPairs::Single(pairs) => traversal.run_over(pairs, output),
        AnyStoredPairs::Double(pairs) => traversal.run_over(pairs, output),
    })
}

impl<K: PairKernel> Traversal<'_, K> {
    /// Runs over lists that hold every pair, on the device of the engine if it can.
    fn run_listed(
        &self,
        feature: &Feature,
        pairs: PairsFrom<'_>,
        output: Output<'_, K::Output>,
        on_cpu: impl Fn(Output<'_, K::Output>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let engine = self.engine;
        engine.in_place()?;
        let kind = JobKind::Kernel(std::any::type_name::<K>());
        let job = job(kind, self.targets, self.sources);
        let pair = [self.targets, self.sources].map(PointSetId::slot);
        let device = match engine.assign_pair(feature, pair)? {
            Assigned::Device(device) => device,
            Assigned::Cpu(reason) => {
                on_cpu(output)?;
                engine.was_done(job, Device::Cpu, reason);
                return Ok(());
            }
        };
        let work = self.kernel_work(pairs);
        if let Err(reason) = device.accelerator.check_kernel(&work) {
            let kernel = work.name;
            let without = Feature::KernelWithoutCuda { kernel, reason };
            if let Choice::Cpu(unsupported) = choose(engine.settings.device, &without)? {
                on_cpu(output)?;
                engine.was_done(job, Device::Cpu, unsupported.to_string().into());
                return Ok(());
            }
        }
        let (summing, values) = self.summing(work, output)?;
        let instead = match device.evaluate_alone(&engine.input(), job, &summing, values)? {
            Ok(()) => None,
            Err(fault) => {
                on_cpu(if summing.combine {
                    Output::Combine(values)
                } else {
                    Output::Write(values)
                })?;
                Some(fault.to_string())
            }
        };
        engine.ran(job, instead);
        Ok(())
    }

    /// Runs over the lists of the engine on the CPU backend, with the sorted positions of both
    /// sets.
    ///
    /// Lists name points by the caller's index, so positions are needed in that order. The engine
    /// keeps them sorted only.
    fn over_lists_on_cpu<T: Coordinate>(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let (engine, same_set) = (self.engine, self.targets == self.sources);
        let lists = engine.neighbors(self.targets, self.sources)?;
        let targets = engine.backend.positions::<T>(engine.grid(self.targets)?)?;
        let others = match same_set {
            true => None,
            false => Some(engine.backend.positions(engine.grid(self.sources)?)?),
        };
        let filter = engine.stored_filter(self.targets, self.sources)?;
        let pairs = StoredPairs {
            lists,
            kind: engine.settings.lists,
            lattice: &engine.lattice,
            targets: &targets,
            sources: others.as_ref().unwrap_or(&targets),
            same_set,
            radius: engine.lattice.radius(),
            radii: engine.given_radii(self.targets, self.sources)?,
            cutoffs: filter.cutoffs,
            chosen: filter.chosen,
        };
        self.run_over(&pairs, output)
    }

    /// Every pair is tested anew at the radius of `pairs`, so lists may hold more than is within
    /// it.
    fn run_over<T: Coordinate>(
        &self,
        pairs: &StoredPairs<'_, T>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let backend = &self.engine.backend;
        Ok(backend.traverse_lists(self.kernel, pairs, self.fields(), output)?)
    }
}
