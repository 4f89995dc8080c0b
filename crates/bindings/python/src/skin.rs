//! The class `_SkinSearch`, which `EdgeList` asks: pairs of points that move little.

use crate::{
    call::{guarded, read, write},
    domain::DomainArgs,
    errors::raise,
    kept::{FindPairs, Key, Scratch},
    pairs::Wanted,
    points::Points,
    systems::Batch,
};
use nearfield::{
    Error,
    systems::{PairIndex, Quantities, SkinSearch, SystemPairs, SystemReal, Systems},
};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::RwLock;

/// Searches points that move little from call to call, by lists with a skin.
#[pyclass(name = "_SkinSearch", module = "nearfield", frozen)]
pub(crate) struct PySkinSearch(RwLock<Kept>);

/// A search of either precision.
struct Kept {
    key: Key,
    skin: f64,
    /// Searches by type, and memory for pairs.
    scratch: Scratch,
    builds: u64,
}

impl FindPairs for Kept {
    fn find<T: SystemReal, I: PairIndex>(
        &mut self,
        systems: &Systems<'_, T>,
        wanted: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let mut search = match self.scratch.take::<SkinSearch<T>>() {
            Some(search) => search,
            None => Box::new(self.key.builder().with_skin(self.skin)?),
        };
        let before = search.builds();
        let found = search.neighbors(systems, wanted, pairs);
        self.builds += search.builds() - before;
        self.scratch.give(search);
        found
    }

    fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }

    fn threads(&self) -> usize {
        1
    }
}

#[pymethods]
impl PySkinSearch {
    #[new]
    fn new(skin: f64, half: bool, sorted: bool, threads: usize) -> PyResult<Self> {
        let key = Key::of("cpu", half, sorted, threads)?;
        // Refuses a bad skin now, not at the first search.
        guarded(|| key.builder().with_skin::<f64>(skin).map_err(raise))?;
        Ok(Self(RwLock::new(Kept {
            key,
            skin,
            scratch: Scratch::default(),
            builds: 0,
        })))
    }

    /// The pairs, as edges() returns them.
    #[pyo3(signature = (points, radius, quantities, cell, pbc, batch_ptr, strict, index))]
    #[allow(clippy::too_many_arguments)] // they are Python's keywords
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        radius: &Bound<'py, PyAny>,
        quantities: Option<&Bound<'py, PyAny>>,
        cell: Option<&Bound<'py, PyAny>>,
        pbc: Option<&Bound<'py, PyAny>>,
        batch_ptr: Option<&Bound<'py, PyAny>>,
        strict: bool,
        index: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let wanted = Wanted::of(quantities, index)?;
        let points = Points::of(points, "points", None)?;
        let batch = match batch_ptr {
            Some(batch_ptr) => Batch::of(radius, batch_ptr, cell, pbc)?,
            None => {
                let domain = DomainArgs {
                    r#box: None,
                    cell,
                    pbc,
                };
                let domain = domain.read()?;
                domain.suits(points.are_flat())?;
                Batch::one(points.len(), radius.extract()?, domain)
            }
        };
        let batch = batch.within(strict);
        write(&self.0, |kept| batch.search(py, &points, &wanted, kept))
    }

    /// How often lists were built.
    #[getter]
    fn builds(&self) -> PyResult<u64> {
        read(&self.0, |kept| Ok(kept.builds))
    }
}
