//! Decides from the times of the ranks when domains move, and how far. It has no clock and no
//! transport.
//!
//! The work of a rank is predicted from the cells it owns, and its speed follows from the time it
//! took. A rank that took longer than the mean gets a proportionally smaller share of the work. So
//! unequal machines are balanced in one move, and errors of the prediction in a few.
//!
//! # When domains move
//!
//! * Times within a few percent of the mean change nothing.
//! * A time that differs much from the one before is ignored once: a stall of one step moves
//!   nothing, and a change of speed is followed one step later.
//! * A move at most doubles or halves a share.
//! * Moving takes time. It is compared with the time that the slowest rank would save in as many
//!   steps as the domains have stayed where they are.
//! * After a move that did not help, because a single cell has too much work or times are noisy,
//!   the next one waits twice as long.
//!
//! **Invariant:** all ranks pass the same times and so come to the same decision.

/// Share of the mean by which the slowest rank may exceed it.
const BAND: f64 = 0.03;
/// A time that differs from the expected one by more than this factor is ignored once.
const DOUBT: f64 = 1.5;
/// The largest change of a share in a move.
const MAX_CHANGE: f64 = 2.0;
/// Smallest share of a rank, of an equal one: a rank without work could not show how fast it is.
const MIN_SHARE: f64 = 0.1;
/// Steps in which a move has to pay for itself, at least.
const MIN_STEPS: f64 = 8.0;
/// The longest wait after moves that have not helped, in steps.
const MAX_PAUSE: u32 = 64;

/// The state of the policy that moves domains.
#[derive(Debug, Clone)]
pub(crate) struct Balance {
    /// By rank: the expected time of a step.
    expected: Vec<f64>,
    /// By rank: true if the last time was ignored.
    doubted: Vec<bool>,
    /// Steps since the last move.
    stayed: u32,
    /// Steps to wait until the next move.
    pause: u32,
    /// The imbalance before the last move.
    before: f64,
    /// True until the first times after a move.
    unproved: bool,
    /// Seconds that the last move took.
    cost: f64,
}

impl Default for Balance {
    fn default() -> Self {
        Self {
            expected: Vec::new(),
            doubted: Vec::new(),
            stayed: 0,
            pause: 1,
            before: f64::INFINITY,
            unproved: false,
            cost: 0.0,
        }
    }
}

/// The slowest of some times, as a multiple of the mean; 1 if nothing took time.
pub(crate) fn imbalance(times: &[f64]) -> f64 {
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    if mean > 0.0 {
        times.iter().copied().fold(0.0, f64::max) / mean
    } else {
        1.0
    }
}

impl Balance {
    /// Takes the seconds that every rank took for a step, of `steps` steps since the last call.
    /// Returns the factors by which the shares of the ranks should change if domains should move.
    pub(crate) fn next(&mut self, times: &[f64], steps: u32) -> Option<Vec<f64>> {
        self.stayed = self.stayed.saturating_add(steps);
        let believed = self.believed(times);
        let now = imbalance(&believed);
        if std::mem::take(&mut self.unproved) {
            // The first times after a move show whether it has helped.
            let helped = now < 1.0 + 0.75 * (self.before - 1.0);
            self.pause = if helped {
                1
            } else {
                MAX_PAUSE.min(2 * self.pause)
            };
        }
        let mean = believed.iter().sum::<f64>() / believed.len().max(1) as f64;
        let saved = (now - 1.0) * mean * f64::from(self.stayed).max(MIN_STEPS);
        if now <= 1.0 + BAND || self.stayed < self.pause || saved <= self.cost {
            return None;
        }
        self.before = now;
        let range = 1.0 / MAX_CHANGE..=MAX_CHANGE;
        let factor = |time: f64| (mean / time).clamp(*range.start(), *range.end());
        Some(believed.into_iter().map(factor).collect())
    }

    /// Notes that domains have moved, and that shares have changed by `factors`.
    pub(crate) fn moved(&mut self, factors: &[f64]) {
        (self.stayed, self.unproved) = (0, true);
        for (expected, factor) in self.expected.iter_mut().zip(factors) {
            *expected *= factor;
        }
    }

    /// Notes that the last move took `seconds`, including everything that followed from it.
    pub(crate) fn took(&mut self, seconds: f64) {
        self.cost = seconds;
    }

    /// The times, with the expected ones where they are doubted.
    fn believed(&mut self, times: &[f64]) -> Vec<f64> {
        if self.expected.len() != times.len() {
            self.expected = times.to_vec();
            self.doubted = vec![false; times.len()];
        }
        let both = self.expected.iter_mut().zip(&mut self.doubted);
        let believe = |((expected, doubted), time): ((&mut f64, &mut bool), &f64)| {
            let far = !(*expected / DOUBT..=*expected * DOUBT).contains(time);
            *doubted = far && !*doubted;
            if !*doubted {
                *expected = *time;
            }
            *expected
        };
        both.zip(times).map(believe).collect()
    }
}

/// The shares of the ranks, which add up to 1: those of the `work` that they have, changed by
/// `factors`.
pub(crate) fn shares(work: &[f64], factors: &[f64]) -> Vec<f64> {
    let normal = |mut shares: Vec<f64>| {
        let sum: f64 = shares.iter().sum();
        let ranks = shares.len() as f64;
        for share in &mut shares {
            *share = if sum > 0.0 { *share / sum } else { 1.0 / ranks };
        }
        shares
    };
    let changed = work.iter().zip(factors).map(|(work, factor)| work * factor);
    let floor = MIN_SHARE / work.len().max(1) as f64;
    let mut shares = normal(changed.collect());
    shares
        .iter_mut()
        .for_each(|share| *share = share.max(floor));
    normal(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between 0 and 1 that look random.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Ranks of unequal speed on a line of bricks, whose work is not quite what is predicted.
    struct Cluster {
        predicted: Vec<f64>,
        takes: Vec<f64>,
        /// Seconds per unit of work.
        slowness: Vec<f64>,
        /// Where each rank begins, and the end.
        cuts: Vec<usize>,
    }

    impl Cluster {
        fn new(seed: u64) -> Self {
            let mut random = Random(seed);
            let ranks = 2 + (30.0 * random.next()) as usize;
            let (phase, waves) = (random.next(), 1.0 + 5.0 * random.next());
            let bricks = 400 * ranks;
            let predicted: Vec<f64> = (0..bricks).map(|_| 0.5 + random.next()).collect();
            let wave = |brick: usize| {
                let turn = waves * brick as f64 / bricks as f64 + phase;
                1.0 + 0.3 * (std::f64::consts::TAU * turn).sin()
            };
            let takes = predicted.iter().enumerate();
            let mut cluster = Self {
                takes: takes.map(|(brick, work)| work * wave(brick)).collect(),
                predicted,
                slowness: (0..ranks)
                    .map(|_| 1e-4 * 4f64.powf(random.next()))
                    .collect(),
                cuts: Vec::new(),
            };
            cluster.cut(&vec![1.0 / ranks as f64; ranks]);
            cluster
        }

        fn cut(&mut self, shares: &[f64]) {
            let all: f64 = self.predicted.iter().sum();
            let (mut before, mut wanted) = (0.0, 0.0);
            self.cuts = vec![0];
            let mut brick = 0;
            for share in shares {
                wanted += share * all;
                while brick < self.predicted.len() && before + self.predicted[brick] / 2.0 < wanted
                {
                    before += self.predicted[brick];
                    brick += 1;
                }
                self.cuts.push(brick);
            }
            *self.cuts.last_mut().unwrap() = self.predicted.len();
        }

        fn sums(&self, of: &[f64]) -> Vec<f64> {
            let ranges = self.cuts.windows(2);
            ranges
                .map(|ends| of[ends[0]..ends[1]].iter().sum())
                .collect()
        }

        fn times(&self) -> Vec<f64> {
            let both = self.sums(&self.takes).into_iter().zip(&self.slowness);
            both.map(|(work, slowness)| work * slowness).collect()
        }

        /// The time of the slowest rank with the best cuts: each rank takes as many bricks as it
        /// does within the time.
        fn best(&self) -> f64 {
            let fits = |time: f64| {
                let mut bricks = self.takes.iter().peekable();
                for slowness in &self.slowness {
                    let mut left = time / slowness;
                    while let Some(takes) = bricks.next_if(|takes| **takes <= left) {
                        left -= takes;
                    }
                }
                bricks.peek().is_none()
            };
            let (mut low, mut high) = (0.0, 1e3);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if fits(middle) {
                    high = middle
                } else {
                    low = middle
                }
            }
            high
        }

        fn step(&mut self, balance: &mut Balance, times: &[f64], cost: f64) -> bool {
            let Some(factors) = balance.next(times, 1) else {
                return false;
            };
            self.cut(&shares(&self.sums(&self.predicted), &factors));
            balance.moved(&factors);
            balance.took(cost);
            true
        }
    }

    fn slowest(times: &[f64]) -> f64 {
        times.iter().copied().fold(0.0, f64::max)
    }

    #[test]
    fn random_clusters_settle_near_the_best_cut_within_ten_steps() {
        for seed in 0..20 {
            let (mut cluster, mut balance) = (Cluster::new(seed), Balance::default());
            let (mut random, best) = (Random(seed + 100), cluster.best());
            let before = slowest(&cluster.times()) / best;
            for _ in 0..10 {
                let noisy = |time: f64| time * (0.99 + 0.02 * random.next());
                let times: Vec<f64> = cluster.times().into_iter().map(noisy).collect();
                cluster.step(&mut balance, &times, 0.0);
            }
            let after = slowest(&cluster.times()) / best;
            let ranks = cluster.slowness.len();
            assert!(
                after < 1.05,
                "seed {seed}, {ranks} ranks: {before:.2} became {after:.3}"
            );
        }
    }

    #[test]
    fn a_settled_cluster_stays_where_it_is() {
        let (mut cluster, mut balance) = (Cluster::new(3), Balance::default());
        let mut moves = Vec::new();
        for step in 0..100 {
            let times = cluster.times();
            if cluster.step(&mut balance, &times, 0.0) {
                moves.push(step);
            }
        }
        assert!(moves.iter().all(|step| *step < 15), "{moves:?}");
    }

    #[test]
    fn a_stall_of_one_step_moves_nothing_and_a_change_of_speed_does() {
        let (mut cluster, mut balance) = (Cluster::new(5), Balance::default());
        for _ in 0..20 {
            let times = cluster.times();
            cluster.step(&mut balance, &times, 0.0);
        }
        let mut stalled = cluster.times();
        stalled[1] *= 3.0;
        assert!(!cluster.step(&mut balance, &stalled, 0.0), "a stall");
        let times = cluster.times();
        assert!(!cluster.step(&mut balance, &times, 0.0), "all is as before");
        cluster.slowness[1] *= 3.0;
        let times = cluster.times();
        assert!(!cluster.step(&mut balance, &times, 0.0), "seen once");
        assert!(cluster.step(&mut balance, &times, 0.0), "seen twice");
    }

    #[test]
    fn a_move_that_costs_more_than_it_saves_waits() {
        let (mut cluster, mut balance) = (Cluster::new(7), Balance::default());
        let times = cluster.times();
        let saved = slowest(&times) - times.iter().sum::<f64>() / times.len() as f64;
        balance.took(20.5 * saved);
        let mut steps = 1;
        while !cluster.step(&mut balance, &times, 0.0) {
            steps += 1;
            assert!(steps < 100);
        }
        assert_eq!(steps, 21, "as many steps as it takes to save the cost");
        // One step of seven is timed.
        let (mut balance, mut calls) = (Balance::default(), 1);
        balance.took(20.5 * saved);
        while balance.next(&times, 7).is_none() {
            calls += 1;
            assert!(calls < 100);
        }
        assert_eq!(calls, 3);
    }

    #[test]
    fn work_that_cannot_be_divided_is_not_moved_to_and_fro() {
        let mut balance = Balance::default();
        let times = [4.0, 1.0, 1.0];
        let moves = (0..200).filter(|_| match balance.next(&times, 1) {
            Some(_) => {
                // Nothing changes, as all the work of the first rank is in one brick.
                balance.moved(&[1.0; 3]);
                true
            }
            None => false,
        });
        assert!(moves.count() < 10);
    }

    #[test]
    fn shares_add_up_also_where_there_is_no_work() {
        for (work, factors) in [
            (vec![0.0; 4], vec![1.0; 4]),
            (vec![1.0, 0.0, 0.0], vec![0.5, 2.0, 2.0]),
        ] {
            let shares = shares(&work, &factors);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
        }
        assert_eq!(imbalance(&[]), 1.0);
        assert_eq!(imbalance(&[0.0, 0.0]), 1.0);
        // Times of nothing at all ask for no move.
        assert_eq!(Balance::default().next(&[0.0, 0.0], 1), None);
    }
}
