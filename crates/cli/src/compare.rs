//! The kd-tree crate kiddo on the same points, in the same run.

use crate::{
    bench::{Times, medians},
    failure::Failure,
    neighbors::milliseconds,
};
use kiddo::{ImmutableKdTree, SquaredEuclidean};
use rayon::prelude::*;
use serde::Serialize;
use std::time::Instant;

/// What the comparison found.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    name: &'static str,
    pub(crate) milliseconds: Times,
    /// Directed pairs without self, within the radius as kiddo computes distances.
    pub(crate) pairs: u64,
}

/// Lists of all points by kiddo: tree built, then every point queried, in parallel.
pub(crate) struct Kiddo {
    radius: f32,
    pool: Option<rayon::ThreadPool>,
    samples: Vec<Times>,
    pairs: u64,
}

impl Kiddo {
    pub(crate) fn new(radius: f32, threads: usize) -> Self {
        Self {
            radius,
            pool: rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .ok(),
            samples: Vec::new(),
            pairs: 0,
        }
    }

    /// One repetition.
    pub(crate) fn run(&mut self, positions: &[[f32; 3]]) -> Result<(), Failure> {
        let r2 = self.radius * self.radius;
        let job = || {
            let begin = Instant::now();
            let tree: ImmutableKdTree<f32, 3> = ImmutableKdTree::new_from_slice(positions)
                .map_err(|error| Failure::Compare(format!("{error:?}")))?;
            let build = milliseconds(begin);
            let lists: Vec<Vec<u32>> = positions
                .par_iter()
                .enumerate()
                .map(|(i, position)| {
                    tree.query(position)
                        .within::<SquaredEuclidean<f32>>(r2)
                        .unsorted()
                        .execute()
                        .iter()
                        .map(|found| found.item)
                        .filter(|&j| j != i as u32)
                        .collect()
                })
                .collect();
            let total = milliseconds(begin);
            let pairs = lists.iter().map(|list| list.len() as u64).sum();
            let times = Times {
                build,
                search: total - build,
                total,
            };
            Ok::<_, Failure>((times, pairs))
        };
        let (times, pairs) = match &self.pool {
            Some(pool) => pool.install(job)?,
            None => job()?,
        };
        self.samples.push(times);
        self.pairs = pairs;
        Ok(())
    }

    /// Medians without the first repetition.
    pub(crate) fn finish(self) -> Comparison {
        Comparison {
            name: "kiddo",
            milliseconds: medians(&self.samples[1.min(self.samples.len() - 1)..]),
            pairs: self.pairs,
        }
    }
}
