//! Numbers and messages that a program exchanges over all ranks.
//!
//! A solver on ranks needs more than neighbours: the time step that all can take, the sums of a
//! budget, a frame in one file.

use crate::{Error, ExactSum, RankedEngine, Scalar};

impl<T: Scalar> RankedEngine<T> {
    /// Replaces every number by the sum over all ranks, whose rounding depends on their number.
    /// All ranks give as many.
    ///
    /// # Errors
    /// [`ErrorKind::Fault`](crate::ErrorKind::Fault), also if ranks give different numbers.
    pub fn sum(&mut self, values: &mut [f64]) -> Result<(), Error> {
        Ok(self.comm.sum(values)?)
    }

    /// Replaces every number by the smallest of all ranks, ignoring NaN. All ranks give as many.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn min(&mut self, values: &mut [f64]) -> Result<(), Error> {
        Ok(self.comm.min(values)?)
    }

    /// Replaces numbers by their sums over all ranks, and others by the smallest of all ranks, in
    /// one reduction. All ranks give as many of either.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_and_min(&mut self, sums: &mut [f64], minima: &mut [f64]) -> Result<(), Error> {
        Ok(self.comm.sum_and_min(sums, minima)?)
    }

    /// The values of sums over all ranks. They do not depend on how the numbers are distributed
    /// over the ranks. All ranks give as many.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_exactly(&mut self, sums: &mut [ExactSum]) -> Result<Vec<f64>, Error> {
        self.sum_exactly_and_min(sums, &mut [])
    }

    /// As [`sum_exactly`](Self::sum_exactly) and [`min`](Self::min), in one reduction.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_exactly_and_min(
        &mut self,
        sums: &mut [ExactSum],
        minima: &mut [f64],
    ) -> Result<Vec<f64>, Error> {
        let mut digits: Vec<f64> = sums.iter_mut().flat_map(ExactSum::digits).collect();
        self.sum_and_min(&mut digits, minima)?;
        let numbers = digits.chunks_exact(ExactSum::NUMBERS);
        Ok(numbers.map(|sum| ExactSum::of(sum).value()).collect())
    }

    /// The messages of all ranks, by rank, on rank 0; none on the others. Their lengths may differ.
    ///
    /// # Errors
    /// [`ErrorKind::Fault`](crate::ErrorKind::Fault).
    pub fn bring_to_first(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.comm.bring_to_first(message)?)
    }

    /// Ends the work of all ranks because this one cannot continue: all later calls on all ranks
    /// return the error that this call returns. Not collective.
    pub fn fail(&mut self, reason: impl ToString) -> Error {
        self.comm.give_up(reason).into()
    }
}
