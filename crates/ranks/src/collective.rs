//! What all ranks know together: numbers of a program, and messages to rank 0.
//!
//! A solver on ranks needs some beside its neighbours: the time step that all can take, the sums of
//! a budget, a frame in one file.

use crate::{
    Error, ExactSum, RankedEngine, Scalar,
    communicator::TOGETHER,
    transport::{Fault, FaultCause},
};

impl<T: Scalar> RankedEngine<T> {
    /// Replaces every number by the sum over all ranks, whose rounding depends on their number.
    /// All ranks give as many.
    ///
    /// # Errors
    /// [`ErrorKind::Fault`](crate::ErrorKind::Fault), also if ranks give different numbers.
    pub fn sum(&mut self, values: &mut [f64]) -> Result<(), Error> {
        Ok(self.comm.sum(values)?)
    }

    /// Replaces every number by the smallest of all ranks. All ranks give as many.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn min(&mut self, values: &mut [f64]) -> Result<(), Error> {
        Ok(self.comm.min(values)?)
    }

    /// The values of sums over all ranks, which do not depend on how their numbers are spread over
    /// ranks. All ranks give as many.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_exactly(&mut self, sums: &mut [ExactSum]) -> Result<Vec<f64>, Error> {
        let mut digits: Vec<f64> = sums.iter_mut().flat_map(ExactSum::digits).collect();
        self.sum(&mut digits)?;
        let numbers = digits.chunks_exact(ExactSum::NUMBERS);
        Ok(numbers.map(|sum| ExactSum::of(sum).value()).collect())
    }

    /// The messages of all ranks, by rank, on rank 0; none on the others. Their lengths may differ.
    ///
    /// # Errors
    /// [`ErrorKind::Fault`](crate::ErrorKind::Fault).
    pub fn bring_to_first(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        if self.rank() != 0 {
            self.comm.post(0, TOGETHER, message)?;
            return Ok(Vec::new());
        }
        let mut all = vec![message];
        for rank in 1..self.ranks() {
            all.push(self.comm.receive(rank, TOGETHER)?);
        }
        Ok(all)
    }

    /// Ends the work of all ranks, because this one cannot go on for reasons of its own: all later
    /// calls of all ranks return the error that this one returns. Not collective.
    pub fn fail(&mut self, reason: impl ToString) -> Error {
        let (rank, cause) = (self.rank(), FaultCause::Failed(reason.to_string()));
        self.comm.fail(Fault { rank, cause }).into()
    }
}
