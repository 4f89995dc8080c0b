//! The kd-tree crate kiddo on the same points, in the same run.
//!
//! The crate is a dependency only with the feature `kiddo`, which is off by default: what is
//! shipped does without it.

use crate::{
    bench::{Times, medians},
    failure::Failure,
    output::milliseconds,
};
use serde::Serialize;
use std::time::Instant;

/// Result of the comparison.
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
    /// # Errors
    /// [`Failure::Usage`] in a build without the feature `kiddo`.
    pub(crate) fn new(radius: f32, threads: usize) -> Result<Self, Failure> {
        if cfg!(not(feature = "kiddo")) {
            let text = "--compare needs the crate kiddo, which this build leaves out: build with \
                        cargo build --release -p nearfield-cli --features kiddo";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Self {
            radius,
            pool: rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .ok(),
            samples: Vec::new(),
            pairs: 0,
        })
    }

    /// One repetition.
    pub(crate) fn run(&mut self, positions: &[[f32; 3]]) -> Result<(), Failure> {
        let job = || {
            let begin = Instant::now();
            let (build, lists) = tree_and_lists(positions, self.radius)?;
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

/// Milliseconds that the tree took, and the lists.
#[cfg(feature = "kiddo")]
fn tree_and_lists(positions: &[[f32; 3]], radius: f32) -> Result<(f64, Vec<Vec<u32>>), Failure> {
    use kiddo::{ImmutableKdTree, SquaredEuclidean};
    use rayon::prelude::*;
    let begin = Instant::now();
    let tree: ImmutableKdTree<f32, 3> = ImmutableKdTree::new_from_slice(positions)
        .map_err(|error| Failure::Wrong(format!("kiddo could not build its tree: {error:?}")))?;
    let build = milliseconds(begin);
    let lists = positions
        .par_iter()
        .enumerate()
        .map(|(i, position)| {
            tree.query(position)
                .within::<SquaredEuclidean<f32>>(radius * radius)
                .unsorted()
                .execute()
                .iter()
                .map(|found| found.item)
                .filter(|&j| j != i as u32)
                .collect()
        })
        .collect();
    Ok((build, lists))
}

/// Never called: [`Kiddo::new`] refuses.
#[cfg(not(feature = "kiddo"))]
fn tree_and_lists(_: &[[f32; 3]], _: f32) -> Result<(f64, Vec<Vec<u32>>), Failure> {
    Ok((0.0, Vec::new()))
}
