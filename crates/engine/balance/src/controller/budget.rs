//! What a policy may spend on steps that are not the best it knows.
//!
//! Learning costs: a step that is divided otherwise to see what it takes, or that is given to a
//! backend alone, takes longer than it must. Each such step is asked for here first. A run pays for
//! them with a [share](SHARE) of its time. A run that begins knows nothing and has some steps in
//! advance, which expire, so that a long run spends its share and no more.
//!
//! The budget bounds what looking costs, and [`Patience`] how often it is done: a run of a million
//! steps could afford a look every other second, which is of no use where every one of them has
//! shown the same.
//!
//! **Invariant:** after the first [`BEGINNING`] steps, what was granted since then is at most the
//! share of the time since then.

/// Share of the time that may be spent.
const SHARE: f64 = 0.005;
/// Steps at whose beginning more may be spent.
const BEGINNING: u64 = 24;
/// Length of as many steps may be spent then.
const ADVANCE: f64 = 6.0;

/// Steps without a move before the first step that is made to learn.
const WAIT: u64 = 24;
/// The wait grows to at most so many times as many.
const MAX_WAIT: u64 = 16;

/// When to look whether what is known still holds.
///
/// A look that changed nothing doubles the wait for the next one: where sharing a step does not pay
/// it is not tried again and again, even if the budget has saved for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Steps since the last move or look.
    calm: u64,
    /// Steps to wait for.
    wait: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            calm: 0,
            wait: WAIT,
        }
    }
}

impl Patience {
    /// A step was done.
    pub(super) fn step(&mut self) {
        self.calm += 1;
    }

    /// Returns true if nothing has moved for long enough. It stays true until someone
    /// looks, since the budget may not afford a look at once.
    pub(super) fn is_due(&self) -> bool {
        self.calm >= self.wait
    }

    /// A step is made to learn from.
    pub(super) fn looks(&mut self) {
        self.calm = 0;
    }

    /// It has shown nothing new.
    pub(super) fn learnt_nothing(&mut self) {
        self.calm = 0;
        self.wait = (2 * self.wait).min(MAX_WAIT * WAIT);
    }

    /// Something has moved.
    pub(super) fn moved(&mut self) {
        *self = Self::default();
    }
}

/// The account of a policy, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    /// Steps so far.
    steps: u64,
    /// Paid in by steps, and not spent.
    saved: f64,
    /// The rest of the advance, in steps, until it expires.
    spent_in_advance: f64,
}

impl Budget {
    /// A step took so long.
    pub(super) fn pay_in(&mut self, ms: f64) {
        self.steps += 1;
        self.saved += SHARE * ms;
    }

    /// Whether a step may take `extra` milliseconds longer than one of `usual`.
    pub(super) fn affords(&self, extra: f64, usual: f64) -> bool {
        extra <= self.left(usual)
    }

    /// What may be spent where a step usually takes `usual` milliseconds.
    pub(super) fn left(&self, usual: f64) -> f64 {
        let advance = match self.steps <= BEGINNING {
            true => (ADVANCE - self.spent_in_advance).max(0.0) * usual,
            false => 0.0,
        };
        self.saved.max(0.0) + advance
    }

    /// A step is made that is to take `extra` milliseconds longer than one of `usual`.
    pub(super) fn spend(&mut self, extra: f64, usual: f64) {
        let extra = extra.max(0.0);
        if self.steps <= BEGINNING && usual > 0.0 {
            self.spent_in_advance += extra / usual;
        } else {
            self.saved -= extra;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_show_nothing_become_rare_until_something_moves() {
        let mut patience = Patience::default();
        let mut looks = Vec::new();
        for step in 1..=1_000 {
            patience.step();
            if patience.is_due() {
                patience.looks();
                patience.learnt_nothing();
                looks.push(step);
            }
        }
        assert_eq!(looks, [24, 72, 168, 360, 744]);
        patience.moved();
        for _ in 0..24 {
            assert!(!patience.is_due());
            patience.step();
        }
        assert!(patience.is_due());
    }

    #[test]
    fn a_run_spends_its_share_and_an_advance_that_expires() {
        let mut budget = Budget::default();
        assert!(budget.affords(60.0, 10.0) && !budget.affords(60.1, 10.0));
        budget.spend(55.0, 10.0);
        assert!(budget.affords(5.0, 10.0) && !budget.affords(6.0, 10.0));
        for _ in 0..BEGINNING + 1 {
            budget.pay_in(10.0);
        }
        // A quarter of a step by now, whatever is left of the advance.
        assert!(budget.affords(1.2, 10.0) && !budget.affords(1.3, 10.0));
        budget.spend(1.2, 10.0);
        assert!(!budget.affords(0.1, 10.0));
        let (mut spent, mut time) = (0.0, 0.0);
        for _ in 0..10_000 {
            budget.pay_in(10.0);
            time += 10.0;
            if budget.affords(7.0, 10.0) {
                budget.spend(7.0, 10.0);
                spent += 7.0;
            }
        }
        assert!(
            spent <= SHARE * time + 1.25 && spent > 0.9 * SHARE * time,
            "{spent}"
        );
    }
}
