//! A traversal being put together: kernel, sets and fields.

use crate::{Engine, Error, Field, PairKernel, PointSetId, Precision, VerletLists, verlet::Stored};
use nearfield_cpu::{Coordinate, Fields, Output, StoredPairs};
use nearfield_pairs::Channels;
use std::time::Instant;

/// A traversal, made by [`Engine::traverse`] and started by one of its `run` methods.
#[derive(Debug)]
#[must_use = "a traversal does nothing until it is run"]
pub struct Traversal<'a, K> {
    pub(crate) engine: &'a Engine,
    pub(crate) kernel: &'a K,
    pub(crate) targets: PointSetId,
    pub(crate) sources: PointSetId,
    pub(crate) fields: Fields<'a>,
    pub(crate) over: Over<'a>,
}

/// Where a traversal takes its pairs from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Over<'a> {
    /// The cells, as it goes.
    Grid,
    /// The lists that `find_neighbors` wrote.
    Lists,
    /// Lists with a skin, which hold more than the pairs within the radius.
    Skin(&'a VerletLists),
}

impl<'a, K: PairKernel> Traversal<'a, K> {
    /// Values the kernel reads per target: their channels, in order, make up
    /// [`PairKernel::Target`].
    pub fn target_fields(mut self, fields: &'a [Field<'a>]) -> Self {
        self.fields.targets = fields;
        self
    }

    /// Values the kernel reads per source: their channels, in order, make up
    /// [`PairKernel::Source`].
    pub fn source_fields(mut self, fields: &'a [Field<'a>]) -> Self {
        self.fields.sources = fields;
        self
    }

    /// Takes the pairs from the lists that [`Engine::find_neighbors`] wrote instead of searching
    /// again: worth it when several kernels, or many iterations of one, run over the same pairs.
    /// Results differ from those without lists by the order of summation only.
    ///
    /// Running it is refused with [`Error::NoLists`] when the lists are out of date, and with
    /// [`Error::Cpu`] when they are half lists of one set. Traversals of [`VerletLists`] run over
    /// lists anyway.
    pub fn over_lists(mut self) -> Self {
        if let Over::Grid = self.over {
            self.over = Over::Lists;
        }
        self
    }

    /// One result per target, in the caller's order.
    ///
    /// # Errors
    /// [`Error::Cpu`] when the fields do not fit the sets and the kernel, [`Error::UnknownPointSet`]
    /// and [`Error::NoRadii`].
    pub fn run(self) -> Result<Vec<K::Output>, Error> {
        let zero = K::Output::read(|_| 0.0);
        let mut values = vec![zero; self.engine.points(self.targets)?];
        self.run_into(&mut values)?;
        Ok(values)
    }

    /// Overwrites `values`, one per target in the caller's order.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Cpu`] when `values` has the wrong length; it is then
    /// unchanged.
    pub fn run_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Write(values))
    }

    /// Adds to `values` (or takes the minimum or maximum, as the kernel's reduction says): the way
    /// to sum over several source sets.
    ///
    /// # Errors
    /// As [`run_into`](Self::run_into).
    pub fn add_into(self, values: &mut [K::Output]) -> Result<(), Error> {
        self.finish(Output::Combine(values))
    }

    fn finish(self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let _span = tracing::debug_span!(
            "engine.traverse",
            targets = self.targets.0,
            sources = self.sources.0,
            kernel = std::any::type_name::<K>(),
        )
        .entered();
        let begin = Instant::now();
        match self.over {
            Over::Grid => self.run_over_grid(output)?,
            Over::Lists => match self.engine.precision() {
                Precision::Single => self.run_over_lists::<f32>(output)?,
                Precision::Double => self.run_over_lists::<f64>(output)?,
            },
            Over::Skin(lists) => match lists.stored(self.targets, self.sources)? {
                Stored::Single(pairs) => self.run_over(&pairs, output)?,
                Stored::Double(pairs) => self.run_over(&pairs, output)?,
            },
        }
        self.engine.record(|times| times.traverse = begin.elapsed());
        Ok(())
    }

    fn run_over_grid(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let Some(output) = self.run_on_gpu(output)? else {
            return Ok(());
        };
        let of = self.engine.pair_of_sets(self.targets, self.sources)?;
        let lane = &self.engine.lane;
        Ok(lane.traverse(self.kernel, of, self.fields, output)?)
    }

    fn run_over_lists<T: Coordinate>(&self, output: Output<'_, K::Output>) -> Result<(), Error> {
        let (engine, same_set) = (self.engine, self.targets == self.sources);
        let lists = engine.neighbors(self.targets, self.sources)?;
        let targets = engine.lane.positions::<T>(engine.grid(self.targets)?)?;
        let others = match same_set {
            true => None,
            false => Some(engine.lane.positions(engine.grid(self.sources)?)?),
        };
        let pairs = StoredPairs {
            lists,
            kind: engine.settings.lists,
            lattice: &engine.lattice,
            targets: &targets,
            sources: others.as_ref().unwrap_or(&targets),
            same_set,
            radius: engine.lattice.radius(),
            radii: engine.given_radii(self.targets, self.sources)?,
        };
        self.run_over(&pairs, output)
    }

    fn run_over<T: Coordinate>(
        &self,
        pairs: &StoredPairs<'_, T>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let lane = &self.engine.lane;
        Ok(lane.traverse_lists(self.kernel, pairs, self.fields, output)?)
    }
}
