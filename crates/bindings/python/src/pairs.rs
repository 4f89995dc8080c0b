//! Which arrays of pairs a caller wants, by the letters of the field, and their way to Python.

use nearfield::systems::{PairColumns, Quantities};
use numpy::{Element, IntoPyArray};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyString, PyTuple},
};

use crate::lists::room;

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
    /// Indices are int64, not int32.
    pub(crate) wide: bool,
}

impl Wanted {
    /// Reads the arguments `quantities`, all but P where they are missing, and `index`.
    pub(crate) fn of(quantities: Option<&Bound<'_, PyAny>>, index: &str) -> PyResult<Self> {
        let wide = match index {
            "int32" => false,
            "int64" => true,
            other => {
                return Err(PyValueError::new_err(format!(
                    "index is \"int32\" or \"int64\", not {other:?}"
                )));
            }
        };
        let mut found = Vec::new();
        let all = || ["i", "j", "S", "d", "D"].map(String::from).into();
        for word in quantities.map_or_else(|| Ok(all()), words)? {
            let known =
                (QUANTITIES.iter()).find(|(letter, name, _)| [*letter, *name].contains(&&*word));
            let Some(&(_, _, quantity)) = known else {
                return Err(PyValueError::new_err(format!(
                    "quantities are i (targets), j (sources), P (pairs of these), S (images), d \
                     (distances) and D (displacements), not {word:?}"
                )));
            };
            if found.contains(&quantity) {
                return Err(PyValueError::new_err(format!(
                    "quantity {word:?} is asked for twice"
                )));
            }
            found.push(quantity);
        }
        Ok(Self {
            quantities: found,
            wide,
        })
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
    pub(crate) fn arrays<'py, T: Element, I: Element + Copy>(
        &self,
        py: Python<'py>,
        columns: PairColumns<T, I>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let both = if self.quantities.contains(&Quantity::Pairs) {
            let mut both = room(columns.targets.len().saturating_mul(2), "the pairs")?;
            for (&i, &j) in columns.targets.iter().zip(&columns.sources) {
                both.extend([i, j]);
            }
            both
        } else {
            Vec::new()
        };
        let table = |flat: Bound<'py, PyAny>, columns: usize| {
            let rows = flat.len()? / columns;
            flat.call_method1("reshape", ((rows, columns),))
        };
        let images = columns.images.into_flattened().into_pyarray(py).into_any();
        let displacements = columns.displacements.into_flattened();
        let displacements = displacements.into_pyarray(py).into_any();
        let targets = columns.targets.into_pyarray(py).into_any();
        let sources = columns.sources.into_pyarray(py).into_any();
        let distances = columns.distances.into_pyarray(py).into_any();
        let both = both.into_pyarray(py).into_any();
        let arrays = self.quantities.iter().map(|quantity| match quantity {
            Quantity::Targets => Ok(targets.clone()),
            Quantity::Sources => Ok(sources.clone()),
            Quantity::Pairs => table(both.clone(), 2),
            Quantity::Images => table(images.clone(), 3),
            Quantity::Distances => Ok(distances.clone()),
            Quantity::Displacements => table(displacements.clone(), 3),
        });
        PyTuple::new(py, arrays.collect::<PyResult<Vec<_>>>()?)
    }
}
