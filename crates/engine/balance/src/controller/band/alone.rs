//! One backend alone: when it is tried, and when it does everything.
//!
//! What a backend takes alone does not follow from a shared step: it may have a core more, another
//! algorithm or no copies. So it is measured, for a step or two that the budget pays for. Times of
//! a backend alone and of both together are compared by their medians, per pair, so that points
//! that come or go change nothing.

//! # When it is tried
//!
//! - Before the share has settled: if it is predicted to take less than both together will.
//! - Once the share has settled: if it is predicted to take at most twice as long, or one and a
//!   half times if the other backend was tried before. A prediction includes what sharing costs a
//!   backend, which it does not pay alone.
//! - Up to three times, if it came within a tenth of both together: noise of a few per cent would
//!   otherwise decide.
//! - Again when the patience is over, if it is still near.
//!
//! The first step of a backend alone touches memory that it had not needed before. It is made
//! twice, and the first one does not count.
//!
//! # When it is left
//!
//! A shared step has to gain 2 %: a step that gains less is not worth the risk that it loses on
//! the next layout. While a backend works alone, the other one is tried if it was never seen, then
//! a shared step, as often as budget and patience allow.

use super::{ALONE, Band, CLOSE, OTHER_ALONE, Step, TRIES, WORTH, lines::Line};
use crate::controller::{
    decision::{Action, Decision},
    record::Regime,
};
use nearfield_grid::memory::Shortage;

impl Band {
    /// The share stays; is either backend better alone?
    pub(super) fn settled(
        &mut self,
        step: &Step<'_>,
        lines: [Line; 2],
        reason: String,
    ) -> Result<Decision, Shortage> {
        let together = self.known(Regime::Together).unwrap_or(f64::INFINITY);
        if let Some(decision) = self.try_alone(step, lines, together, &reason)? {
            return Ok(decision);
        }
        match self.better_alone() {
            Some((regime, ms)) if together > WORTH * ms && self.may(regime, step) => {
                self.alone_instead(step, regime, [together, ms])
            }
            _ => Ok(self.keep(step, reason)),
        }
    }

    /// From now on a backend does everything.
    pub(super) fn stand_alone(
        &mut self,
        step: &Step<'_>,
        regime: Regime,
        reason: String,
    ) -> Result<Decision, Shortage> {
        self.stand = regime;
        self.patience.moved();
        let cuts = step.notches.nearest(self.share_in(regime))?.cuts;
        Ok(Decision::new(cuts, Action::Move, reason))
    }

    /// A backend alone has taken less than both together.
    fn alone_instead(
        &mut self,
        step: &Step<'_>,
        regime: Regime,
        [together, alone]: [f64; 2],
    ) -> Result<Decision, Shortage> {
        let reason = format!(
            "{}; everything to the {}: alone it takes {:.3} ms, both together {:.3}",
            step.seen,
            name(regime),
            alone * step.work,
            together * step.work
        );
        self.stand_alone(step, regime, reason)
    }

    /// A GPU that is short of memory is not given everything.
    fn may(&self, regime: Regime, step: &Step<'_>) -> bool {
        regime == Regime::CpuAlone || !step.short
    }

    /// A backend alone for a step, where that may be better than sharing a step, which takes
    /// `shared` milliseconds per pair, and is not known well enough.
    ///
    /// Once the share has settled a backend is tried if it might be better even after all that
    /// sharing costs it; before, only if it is predicted to be.
    pub(super) fn try_alone(
        &mut self,
        step: &Step<'_>,
        lines: [Line; 2],
        shared: f64,
        seen: &str,
    ) -> Result<Option<Decision>, Shortage> {
        let Some(together) = self.known(Regime::Together) else {
            return Ok(None);
        };
        let settled = shared == together;
        let best = self.better_alone().map_or(shared, |(_, ms)| ms.min(shared));
        let mut regimes = [Regime::CpuAlone, Regime::GpuAlone].map(|regime| {
            let number = usize::from(regime == Regime::GpuAlone);
            let ms = lines[number].at(step.work) - step.times.setup[number].ms();
            (regime, ms / step.work.max(1.0))
        });
        for (regime, ms) in regimes {
            self.predicted[regime as usize] = Some(ms);
        }
        regimes.sort_by(|a, b| a.1.total_cmp(&b.1));
        let due = self.patience.is_due();
        for (regime, predicted) in regimes {
            let expected = self.known(regime).unwrap_or(predicted);
            let tries = self.took[regime as usize].len();
            let wanted = match tries {
                0 if !settled => expected <= best,
                0 if self.better_alone().is_some() => expected <= best * OTHER_ALONE,
                0 => expected <= best * ALONE,
                tries if tries < TRIES => (1.0 / CLOSE..CLOSE).contains(&(expected / shared)),
                _ => due && expected <= CLOSE * best,
            };
            if wanted
                && self.may(regime, step)
                && let Some(decision) = self.explore(step, regime, [expected, together], seen)?
            {
                return Ok(Some(decision));
            }
        }
        Ok(None)
    }

    /// A step of another regime, if the budget affords it: milliseconds per pair that it is
    /// expected to take, and that a step takes now.
    ///
    /// None where the budget does not; the question is then asked again after a later step.
    fn explore(
        &mut self,
        step: &Step<'_>,
        regime: Regime,
        [expected, now]: [f64; 2],
        seen: &str,
    ) -> Result<Option<Decision>, Shortage> {
        let steps = if self.warm[regime as usize] { 1.0 } else { 2.0 };
        let usual = now * step.work;
        if !self
            .budget
            .affords(steps * (expected - now) * step.work, usual)
        {
            return Ok(None);
        }
        self.tried = Some((regime, usual));
        let cuts = step.notches.nearest(self.share_in(regime))?.cuts;
        let what = match regime {
            Regime::Together => format!("{:.3} of the work to the CPU", self.share),
            alone => format!("everything to the {}", name(alone)),
        };
        let reason = format!(
            "{seen}; once {what}, to see: predicted {:.3} ms instead of {usual:.3}",
            expected * step.work
        );
        Ok(Some(Decision::new(cuts, Action::Explore, reason)))
    }

    /// After a try: the best way there is, which may be to try again.
    ///
    /// A try that leaves everything as it was makes the next one wait longer.
    pub(super) fn after_try(
        &mut self,
        step: &Step<'_>,
        tried: Regime,
    ) -> Result<Decision, Shortage> {
        let took = self.known(tried).unwrap_or(0.0) * step.work;
        let together = self.known(Regime::Together).unwrap_or(f64::INFINITY);
        let before = self.stand;
        let better = self
            .better_alone()
            .filter(|(regime, _)| self.may(*regime, step));
        let stand = match better {
            Some((regime, ms)) if together > WORTH * ms => regime,
            _ => Regime::Together,
        };
        if stand == before {
            self.patience.learnt_nothing();
        } else {
            self.patience.moved();
        }
        self.stand = stand;
        let action = if stand == tried {
            Action::Move
        } else {
            Action::Keep
        };
        let reason = format!(
            "{} took {took:.3} ms; {}: {} from now on",
            words(tried),
            match better {
                Some((regime, ms)) => format!(
                    "both together {:.3}, the {} alone {:.3}",
                    together * step.work,
                    name(regime),
                    ms * step.work
                ),
                None => "no backend alone is known".to_owned(),
            },
            words(stand)
        );
        let cuts = step.notches.nearest(self.share_in(stand))?.cuts;
        Ok(Decision::new(cuts, action, reason))
    }

    /// After a step of one backend alone.
    ///
    /// The other backend is tried first if it may be as good, then a shared step when one is due.
    pub(super) fn alone(&mut self, step: &Step<'_>, regime: Regime) -> Result<Decision, Shortage> {
        self.stand = regime;
        let now = self.known(regime).unwrap_or(0.0);
        let shared = step.notches.nearest(self.share)?.share;
        let possible = 0.0 < shared && shared < 1.0;
        let other = match regime {
            Regime::CpuAlone => Regime::GpuAlone,
            _ => Regime::CpuAlone,
        };
        let seen = format!("the {} alone takes {:.3} ms", name(regime), now * step.work);
        // The other backend first, where it may be as good.
        let predicted = self.predicted[other as usize].unwrap_or(match possible {
            true => f64::INFINITY,
            false => ALONE * now,
        });
        if self.known(other).is_none()
            && predicted <= ALONE * now
            && self.may(other, step)
            && let Some(decision) = self.explore(step, other, [predicted, now], &seen)?
        {
            return Ok(decision);
        }
        // With too few bricks to share, only the other backend can be tried.
        let next = if possible { Regime::Together } else { other };
        let known = self.known(next);
        if (known.is_none() || self.patience.is_due()) && self.may(next, step) {
            let expected = known.unwrap_or(ALONE * now);
            if let Some(decision) = self.explore(step, next, [expected, now], &seen)? {
                return Ok(decision);
            }
        }
        Ok(self.keep(step, seen))
    }
}

/// The backend that works alone.
fn name(regime: Regime) -> &'static str {
    match regime {
        Regime::GpuAlone => "GPU",
        _ => "CPU",
    }
}

/// A regime in a sentence.
fn words(regime: Regime) -> &'static str {
    match regime {
        Regime::Together => "both backends",
        Regime::CpuAlone => "the CPU alone",
        Regime::GpuAlone => "the GPU alone",
    }
}
