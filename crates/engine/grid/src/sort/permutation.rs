//! Reordering the caller's arrays so that points that are near in space are near in memory.
//!
//! A solver whose arrays are in random order waits for memory in every loop over neighbours.
//! Reordering all of its arrays by the engine's own sort every hundred steps or so makes these
//! loops much faster, and makes the next sort nearly free, because its input is nearly sorted.
//!
//! **Invariant:** a permutation holds every index once, so it can be applied to any array of the
//! set and inverted.

use crate::{Error, ErrorKind, memory, parallel::PoolLoops};
use rayon::prelude::*;

/// A reordering of a point set: the point at new index `k` is old point `order()[k]`.
///
/// Apply the same permutation to every array of a set (positions, velocities, masses, …).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permutation {
    /// Old index of each new one.
    order: Vec<u32>,
}

impl Permutation {
    /// From the old index of each new one; must hold every index once.
    pub(crate) fn from_order(order: Vec<u32>) -> Self {
        Self { order }
    }

    /// Old index of each new one.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// New index of each old one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn inverse(&self) -> Result<Self, Error> {
        let mut order = memory::zeroed(self.order.len(), "a permutation")?;
        for (place, &old) in self.order.iter().enumerate() {
            order[old as usize] = place as u32;
        }
        Ok(Self { order })
    }

    /// `slice` in the new order, as a new vector.
    ///
    /// # Errors
    /// [`ErrorKind::PermutationLength`] when the lengths differ, and [`ErrorKind::OutOfMemory`].
    pub fn reordered<T: Copy + Send + Sync>(&self, slice: &[T]) -> Result<Vec<T>, Error> {
        self.check(slice.len())?;
        let mut reordered = memory::with_room(slice.len(), "a reordered array")?;
        self.order
            .par_iter()
            .with_min_len(1 << 13)
            .map(|&old| slice[old as usize])
            .put_into(&mut reordered);
        Ok(reordered)
    }

    /// Brings `slice` into the new order.
    ///
    /// # Errors
    /// As [`reordered`](Self::reordered); the slice is then unchanged.
    ///
    /// A copy of the array is made and written back, so any element type does and a refusal of
    /// memory changes nothing.
    pub fn apply<T: Copy + Send + Sync>(&self, slice: &mut [T]) -> Result<(), Error> {
        let reordered = self.reordered(slice)?;
        slice.copy_from_slice(&reordered);
        Ok(())
    }

    /// Refuses a slice of another length.
    fn check(&self, found: usize) -> Result<(), Error> {
        if found == self.order.len() {
            return Ok(());
        }
        Err(ErrorKind::PermutationLength {
            expected: self.order.len(),
            found,
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_a_permutation() {
        let permutation = Permutation::from_order(vec![2, 0, 3, 1]);
        let mut values = ['a', 'b', 'c', 'd'];
        permutation.apply(&mut values).unwrap();
        assert_eq!(values, ['c', 'a', 'd', 'b']);
        permutation.inverse().unwrap().apply(&mut values).unwrap();
        assert_eq!(values, ['a', 'b', 'c', 'd']);
    }

    #[test]
    fn a_slice_of_another_length_is_refused_and_unchanged() {
        let permutation = Permutation::from_order(vec![1, 0]);
        let mut values = [1, 2, 3];
        let error = permutation.apply(&mut values).unwrap_err();
        assert!(error.to_string().contains("2 points"), "{error}");
        assert_eq!(values, [1, 2, 3]);
    }
}
