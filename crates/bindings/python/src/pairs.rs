//! Which arrays of pairs a caller wants, by the letters of the field, and their way to Python.

use nearfield::systems::{PairColumns, PairIndex, Quantities};
use numpy::Element;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyString, PyTuple},
};

use crate::{
    lists::room,
    recycled::{array, rows, table},
};
use std::mem::take;

/// A quantity of every pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Targets,
    Sources,
    Pairs,
    Images,
    Distances,
    Displacements,
}

/// Letter and name of every quantity; arrays on a GPU have the same.
const QUANTITIES: [(&str, &str, Quantity); 6] = [
    ("i", "targets", Quantity::Targets),
    ("j", "sources", Quantity::Sources),
    ("P", "pairs", Quantity::Pairs),
    ("S", "images", Quantity::Images),
    ("d", "distances", Quantity::Distances),
    ("D", "displacements", Quantity::Displacements),
];

/// The type that indices are returned in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    Int32,
    Uint32,
    Int64,
}

impl Index {
    /// The type with this name in NumPy.
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        match name {
            "int64" => Ok(Self::Int64),
            "int32" => Ok(Self::Int32),
            "uint32" => Ok(Self::Uint32),
            other => Err(PyValueError::new_err(format!(
                "index is \"int64\", \"int32\" or \"uint32\", not {other:?}"
            ))),
        }
    }
}

/// More words than there are quantities, so one of them is wrong: iterators may have no end.
const MOST: usize = 16;

/// The single quantities that an object names: a string of letters, or a sequence of letters or
/// names.
pub(crate) fn words(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(letters) = given.cast::<PyString>() {
        return Ok(letters
            .extract::<String>()?
            .chars()
            .take(MOST)
            .map(String::from)
            .collect());
    }
    let wrong = || PyTypeError::new_err("quantities is a string of letters or a list of names");
    let words = given.try_iter().map_err(|_| wrong())?;
    words
        .take(MOST)
        .map(|word| word?.extract().map_err(|_| wrong()))
        .collect()
}

/// What a call returns.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// In the order of the results.
    quantities: Vec<Quantity>,
    pub(crate) index: Index,
}

impl Wanted {
    /// Reads the arguments `quantities`, all but P where they are missing, and `index`.
    pub(crate) fn of(quantities: Option<&Bound<'_, PyAny>>, index: &str) -> PyResult<Self> {
        let mut wanted = Self {
            quantities: Vec::with_capacity(QUANTITIES.len()),
            index: Index::named(index)?,
        };
        match quantities {
            None => ["i", "j", "S", "d", "D"]
                .iter()
                .try_for_each(|word| wanted.add(word))?,
            Some(given) => words(given)?.iter().try_for_each(|word| wanted.add(word))?,
        }
        Ok(wanted)
    }

    fn add(&mut self, word: &str) -> PyResult<()> {
        let known = (QUANTITIES.iter()).find(|(letter, name, _)| [*letter, *name].contains(&word));
        let Some(&(_, _, quantity)) = known else {
            return Err(PyValueError::new_err(format!(
                "quantities are i (targets), j (sources), P (pairs of these), S (images), d \
                 (distances) and D (displacements), not {word:?}"
            )));
        };
        if self.quantities.contains(&quantity) {
            return Err(PyValueError::new_err(format!(
                "quantity {word:?} is asked for twice"
            )));
        }
        self.quantities.push(quantity);
        Ok(())
    }

    /// The quantities in their order.
    pub(crate) fn in_order(&self) -> &[Quantity] {
        &self.quantities
    }

    /// As the engine takes it.
    pub(crate) fn quantities(&self) -> Quantities {
        let any = |of: &[Quantity]| of.iter().any(|one| self.quantities.contains(one));
        Quantities {
            targets: any(&[Quantity::Targets, Quantity::Pairs]),
            sources: any(&[Quantity::Sources, Quantity::Pairs]),
            images: any(&[Quantity::Images]),
            displacements: any(&[Quantity::Displacements]),
            distances: any(&[Quantity::Distances]),
        }
    }

    /// The arrays, one for every quantity.
    pub(crate) fn arrays<'py, T: Element + Copy + 'static, I: Element + PairIndex>(
        &self,
        py: Python<'py>,
        mut columns: PairColumns<T, I>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut both = if self.quantities.contains(&Quantity::Pairs) {
            let mut both = room(columns.targets.len().saturating_mul(2), "the pairs")?;
            for (&i, &j) in columns.targets.iter().zip(&columns.sources) {
                both.extend([i, j]);
            }
            both
        } else {
            Vec::new()
        };
        // No quantity stands twice in the list, so each is taken once.
        let arrays = self.quantities.iter().map(|quantity| match quantity {
            Quantity::Targets => array(py, take(&mut columns.targets)),
            Quantity::Sources => array(py, take(&mut columns.sources)),
            Quantity::Pairs => table(py, take(&mut both), 2),
            Quantity::Images => rows(py, take(&mut columns.images)),
            Quantity::Distances => array(py, take(&mut columns.distances)),
            Quantity::Displacements => rows(py, take(&mut columns.displacements)),
        });
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }
}
