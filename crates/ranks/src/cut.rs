//! Cuts the curve into ranges of equal predicted work.
//!
//! Every rank knows the work of the bricks of its own points; a brick may have points on several
//! ranks. A cut is the first place before which its share of all work lies. All cuts are searched
//! at once: a round sums over all ranks the work before 15 places per cut and divides the range in
//! question by 16, so fifteen rounds find a place among 2⁶⁰. No rank ever holds the bricks of
//! another.
//!
//! # Predicted work
//!
//! A target in a cell of n points tests the points of 27 cells, about 27·n. So a cell has the work
//! 27·n², and a constant per point, without which sparse cells would have almost no work. While the
//! points of a cell are spread over several ranks no rank knows n, and every point counts 1.

use crate::{
    cell_classes::Map, communicator::Communicator, curve, domains::Domains, scalar::Scalar,
    transport::Fault,
};
use nearfield_grid::{
    Cell,
    memory::{Shortage, with_room},
};

/// Cost of a point independent of its neighbours, in candidates tested. A guess: the number of
/// candidates of a target in a cell of about two points.
const PER_POINT: f64 = 64.0;

/// Cells that a target searches.
const CELLS: f64 = 27.0;

/// Places per cut and round.
const FAN: u64 = 16;

/// Equal shares, whatever work the ranks have.
pub(crate) fn equally(work: &[f64]) -> Vec<f64> {
    vec![1.0 / work.len() as f64; work.len()]
}

/// The work before each place along the curve, by ascending place. The last place is beyond the
/// curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work(Vec<(u64, f64)>);

impl Work {
    /// One unit for every point. A position stands for the number of points given with it.
    pub(crate) fn of_points<T: Scalar>(
        domains: &Domains,
        positions: impl Iterator<Item = ([T; 3], f64)>,
    ) -> Result<Self, Shortage> {
        Self::new(domains, positions, |points| points)
    }

    /// The work of the cells that hold `positions`, which are all points of these cells.
    pub(crate) fn of_cells<T: Scalar>(
        domains: &Domains,
        positions: impl Iterator<Item = [T; 3]>,
    ) -> Result<Self, Shortage> {
        let of = |n: f64| CELLS * n * n + PER_POINT * n;
        Self::new(domains, positions.map(|at| (at, 1.0)), of)
    }

    /// The work of cells, `of` their number of points.
    fn new<T: Scalar>(
        domains: &Domains,
        positions: impl Iterator<Item = ([T; 3], f64)>,
        of: impl Fn(f64) -> f64,
    ) -> Result<Self, Shortage> {
        let (mut cells, what) = (Map::<Cell, f64>::default(), "the work of cells");
        for (at, points) in positions {
            let room = cells.try_reserve(1);
            room.map_err(|_| Shortage::of::<[u64; 5]>(cells.len() + 1, what))?;
            *cells.entry(T::cell(domains.lattice(), at)).or_insert(0.0) += points;
        }
        let mut work = with_room(cells.len() + 1, what)?;
        let cells = cells.into_iter();
        work.extend(cells.map(|(cell, points)| (domains.place(domains.brick(cell)), of(points))));
        Ok(Self::summed(work))
    }

    /// Work by place, in any order and with room for one more, added up.
    fn summed(mut work: Vec<(u64, f64)>) -> Self {
        work.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        work.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        let mut sum = 0.0;
        for (_, work) in &mut work {
            (sum, *work) = (sum + *work, sum);
        }
        work.push((u64::MAX, sum));
        Self(work)
    }

    /// The work before a place.
    fn before(&self, place: u64) -> f64 {
        self.0[self.0.partition_point(|(at, _)| *at < place)].1
    }

    /// The places where every rank but the first begins, so that ranks have about these shares,
    /// which add up to 1. `shares` computes them from the work that the ranks have now. The same on
    /// every rank; collective.
    pub(crate) fn cuts_by(
        &self,
        comm: &mut Communicator,
        shares: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<Vec<u64>, Fault> {
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let mut all = vec![0.0; ranks];
        all[rank] = self.before(u64::MAX);
        comm.sum(&mut all)?;
        let whole: f64 = all.iter().sum();
        let mut wanted = shares(&all);
        let mut sum = 0.0;
        for share in &mut wanted {
            sum += whole * *share;
            *share = sum;
        }
        let mut lows = vec![0; ranks - 1];
        let mut width = curve::END;
        while width > 1 {
            width /= FAN;
            let tried = |low: u64| (1..FAN).map(move |k| low + k * width);
            let places = lows.iter().copied().flat_map(tried);
            let mut work: Vec<f64> = places.map(|place| self.before(place)).collect();
            comm.sum(&mut work)?;
            let found = work.chunks_exact(FAN as usize - 1).enumerate();
            for ((cut, work), low) in found.zip(&mut lows) {
                // The range that holds the last place with at most the share before it.
                *low += width * work.partition_point(|work| *work <= wanted[cut]) as u64;
            }
        }
        Ok(lows)
    }
}
