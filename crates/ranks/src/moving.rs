//! Domains that move: by predicted work, and by measured times.

use crate::{Error, RankedEngine, Scalar, balance::shares, cut::equally, error::Refusal};
use std::time::{Duration, Instant};

impl<T: Scalar> RankedEngine<T> {
    /// Divides space among the ranks anew, so that ranks have equal predicted work. The caller's
    /// arrays stay; [`migrate`](Self::migrate) moves them.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if a rank is short of memory. If points
    /// were already under way, the next call that needs them divides space again.
    pub fn rebalance(&mut self) -> Result<(), Error> {
        self.restore()?;
        self.cut_by_work(equally)
    }

    /// Moves domains if the times of the ranks show that it pays; returns true if it did. All ranks
    /// call it once per step, at the same place.
    ///
    /// The time of a rank is the time since the last call, without waiting for others. So it
    /// includes everything that a program does between two calls: its own loops and both backends
    /// of the rank. The first call only starts the measurement.
    ///
    /// The caller's arrays stay. [`migrate`](Self::migrate) moves them and should follow, because
    /// points on other ranks than their owners need more messages.
    ///
    /// # Errors
    /// As [`rebalance`](Self::rebalance).
    pub fn balance(&mut self) -> Result<bool, Error> {
        let idle = self.comm.waited + self.comm.agreed;
        let measured = self.measured.replace((Instant::now(), idle));
        let all = match measured {
            // The first call on all ranks.
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
            // The move itself is not part of a step.
            self.measured = Some((Instant::now(), self.comm.waited + self.comm.agreed));
        }
        Ok(true)
    }

    /// Changes the search radius, rounded as that of [`builder`](RankedEngine::builder). All points
    /// are sent to owners and halos again. Radii per point stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) on all ranks if the radius cannot be used,
    /// or a point has a larger one of its own, or memory is short on one; the old one then stays.
    pub fn set_radius(&mut self, radius: impl Into<f64>) -> Result<(), Error> {
        let radius = radius.into();
        // Checked before any engine changes: an engine would name points of the halo otherwise.
        let checked = || {
            let checked = T::radius(radius).map_err(Refusal::new)?;
            for set in &self.sets {
                let radii = set.home.columns.radii()?;
                let radii = T::radii(&radii);
                let mut each = (0..radii.len()).filter_map(|at| Some((at, radii.get(at)?)));
                if let Some((index, own)) = each.find(|(_, own)| !checked.bounds(*own)) {
                    let message = format!(
                        "point {index} has the radius {own}, more than {}: give it another",
                        checked.as_given()
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
