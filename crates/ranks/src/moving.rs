//! Domains that move: by the work that is predicted, and by times that were measured.

use crate::{Error, RankedEngine, Scalar, balance::shares, cut::equally, error::Refusal};
use std::time::{Duration, Instant};

impl<T: Scalar> RankedEngine<T> {
    /// Divides space among the ranks anew, by the work that the points as they are will take on
    /// equal ranks. The caller's arrays stay; [`migrate`](Self::migrate) takes them along.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if a rank is short of memory. If points
    /// were on their way by then, the next call that needs them divides space once more.
    pub fn rebalance(&mut self) -> Result<(), Error> {
        self.restore()?;
        self.cut_by_work(equally)
    }

    /// Moves domains if the times of the ranks say that it pays; returns true if it did. To be
    /// called once a step, at the same place.
    ///
    /// The time of a rank is what has passed since the last call, less what it spent in waiting for
    /// others. So everything that a program does between two calls counts, its own loops and both
    /// backends of the rank included. The first call begins to measure.
    ///
    /// The caller's arrays stay; [`migrate`](Self::migrate) takes them along, and should follow, as
    /// work on points of other ranks needs more messages.
    ///
    /// # Errors
    /// As [`rebalance`](Self::rebalance).
    pub fn balance(&mut self) -> Result<bool, Error> {
        let idle = self.comm.waited + self.comm.agreed;
        let measured = self.measured.replace((Instant::now(), idle));
        let all = match measured {
            // All ranks have called as often.
            None => return Ok(false),
            Some((since, before)) => since.elapsed().saturating_sub(idle - before),
        };
        self.balance_by(all)
    }

    /// As [`balance`](Self::balance), with the time that this rank took for the last step, measured
    /// by the caller.
    ///
    /// # Errors
    /// As [`rebalance`](Self::rebalance).
    pub fn balance_by(&mut self, time: Duration) -> Result<bool, Error> {
        self.restore()?;
        let times = self.comm.gather_number(time.as_nanos() as u64)?;
        let seconds: Vec<f64> = times.iter().map(|time| *time as f64 * 1e-9).collect();
        let Some(factors) = self.balance.next(&seconds, 1) else {
            return Ok(false);
        };
        let begin = Instant::now();
        self.cut_by_work(|work| shares(work, &factors))?;
        // The slowest rank counts, and all have to know the same.
        let took = self.comm.gather_number(begin.elapsed().as_nanos() as u64)?;
        let took = took.into_iter().max().unwrap_or(0) as f64 * 1e-9;
        self.balance.moved(&factors);
        self.balance.took(took);
        if self.measured.is_some() {
            // The move itself belongs to no step.
            self.measured = Some((Instant::now(), self.comm.waited + self.comm.agreed));
        }
        Ok(true)
    }

    /// Changes the search radius, rounded as that of [`builder`](RankedEngine::builder); all points
    /// are brought to owners and halos anew. Radii of single points stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if the radius cannot be used,
    /// or a point has a larger one of its own, or memory is short on one; the old one then stays.
    pub fn set_radius(&mut self, radius: impl Into<f64>) -> Result<(), Error> {
        let radius = radius.into();
        // Before any engine changes: engines would refuse points of the halo, by other names.
        let checked = || {
            let checked = T::radius(radius).map_err(Refusal::new)?;
            let largest = checked.value();
            for set in &self.sets {
                if let Some(index) = set.home.radii.iter().position(|own| *own > largest) {
                    let own = set.home.radii[index];
                    let message = format!(
                        "point {index} has the radius {own}, more than {largest}: give it another"
                    );
                    return Err(Refusal::of_point(message, Some(index), &set.home.ids));
                }
            }
            Ok(checked)
        };
        let checked = self.comm.agree(checked(), &mut [])?;
        let lattice = self
            .division
            .lattice_with(checked, &self.bounds_of_sets())?;
        let changed = self.engine.set_radius(radius).map_err(Refusal::from);
        self.radius_lost = true;
        self.comm.agree(changed, &mut [])?;
        let old = std::mem::replace(&mut self.division.radius, checked);
        let cut = match self.sets.as_slice() {
            [] => Ok(()),
            _ => self.cut(self.undivided(lattice)),
        };
        self.radius_lost = cut.is_err();
        cut.inspect_err(|_| self.division.radius = old)
    }
}
