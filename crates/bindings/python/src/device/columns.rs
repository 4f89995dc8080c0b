//! Arrays of the caller that pairs are written to.

use super::{given::GivenArray, layout::Dtype};
use crate::pairs::{Quantity, Wanted};
use nearfield::device::{DeviceValue, LentColumns, Stream};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Which quantity goes to which of the given arrays.
pub(super) struct OutColumns {
    quantities: Vec<Quantity>,
    /// The type of indices; None if there are none.
    pub(super) index: Option<Dtype>,
}

/// Refuses "P", which no GPU writes.
pub(super) fn refuse_pairs(wanted: &Wanted) -> PyResult<()> {
    if wanted.in_order().contains(&Quantity::Pairs) {
        return Err(PyValueError::new_err(
            "a GPU has i and j in arrays of their own: ask for \"ij\" instead of \"P\"",
        ));
    }
    Ok(())
}

impl OutColumns {
    /// Takes an array for every quantity, and checks all of them: types and shapes, and that none
    /// shares memory with another or with what is read. `given` takes an array of this GPU.
    pub(super) fn of<'a, 'py>(
        wanted: &Wanted,
        out: &Bound<'py, PyAny>,
        (real, read): (Dtype, impl Iterator<Item = &'a GivenArray> + Clone),
        given: impl Fn(&Bound<'py, PyAny>, &'static str) -> PyResult<GivenArray>,
    ) -> PyResult<(Self, Vec<GivenArray>)> {
        refuse_pairs(wanted)?;
        let quantities = wanted.in_order().to_vec();
        let (len, found) = (quantities.len(), out.len()?);
        if len != found {
            return Err(PyValueError::new_err(format!(
                "out has {found} arrays for {len} quantities"
            )));
        }
        let mut arrays: Vec<GivenArray> = Vec::with_capacity(len);
        let mut index = None;
        for (quantity, array) in quantities.iter().zip(out.try_iter()?) {
            let array = given(&array?, name(*quantity))?;
            match quantity {
                Quantity::Targets | Quantity::Sources | Quantity::Pairs => {
                    let rows = array.shape.first().copied().unwrap_or(0);
                    let dtype = array.whole_numbers(rows)?;
                    if index.is_some_and(|index| index != dtype) {
                        return Err(PyValueError::new_err(
                            "out: the arrays for i and j have different types",
                        ));
                    }
                    index = Some(dtype);
                }
                Quantity::Images => triples(&array, Dtype::I32)?,
                Quantity::Displacements => triples(&array, real)?,
                Quantity::Distances => {
                    array.suits(real, |shape| shape.len() == 1, "(pairs,)")?;
                }
            }
            array.writable()?;
            (arrays.iter()).try_for_each(|other| array.apart_from(other))?;
            (read.clone()).try_for_each(|other| array.apart_from(other))?;
            arrays.push(array);
        }
        Ok((Self { quantities, index }, arrays))
    }

    /// The arrays, which [`of`](Self::of) has made these columns of.
    pub(super) fn lend<T: DeviceValue, I: DeviceValue>(
        &self,
        stream: &Stream,
        arrays: &[GivenArray],
    ) -> LentColumns<T, I> {
        let mut lent = LentColumns::default();
        for (quantity, array) in self.quantities.iter().zip(arrays) {
            match quantity {
                Quantity::Targets => lent.targets = Some(array.lend(stream)),
                Quantity::Sources | Quantity::Pairs => lent.sources = Some(array.lend(stream)),
                Quantity::Images => lent.images = Some(array.lend(stream)),
                Quantity::Displacements => lent.displacements = Some(array.lend(stream)),
                Quantity::Distances => lent.distances = Some(array.lend(stream)),
            }
        }
        lent
    }
}

fn triples(array: &GivenArray, dtype: Dtype) -> PyResult<()> {
    let fits = |shape: &[usize]| matches!(shape, [_, 3]);
    Ok(array.suits(dtype, fits, "(pairs, 3)")?)
}

/// The name of an array in messages.
fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Targets => "out: i",
        Quantity::Sources | Quantity::Pairs => "out: j",
        Quantity::Images => "out: S",
        Quantity::Displacements => "out: D",
        Quantity::Distances => "out: d",
    }
}
