//! Times steps of points that move a little from one step to the next.

use super::{
    subject::Subject,
    times::{Repetitions, Times, medians},
};
use crate::failure::Failure;
use clap::ValueEnum;
use nearfield::{Builder, Engine, PointSetId, Positions, Precision};
use nearfield_grid::memory::collected;
use nearfield_testkit::cloud;
use serde::Serialize;

/// Order of the points in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// As a random generator leaves them
    Shuffled,
    /// As a solver keeps them: by the engine's own permutation
    Sorted,
}

/// Points in an engine of their own.
pub(crate) struct Steps {
    engine: Engine,
    set: PointSetId,
    positions: Vec<[f32; 3]>,
    radius: f32,
    /// Steps done.
    done: u64,
}

impl Steps {
    /// Builds the engine and brings the points into `order`.
    pub(crate) fn new(
        builder: Builder,
        radius: f32,
        mut positions: Vec<[f32; 3]>,
        order: Order,
    ) -> Result<Self, Failure> {
        let mut engine = builder.build()?;
        let set = engine.add_point_set(&positions)?;
        if order == Order::Sorted {
            positions = engine.z_sort(set)?.reordered(&positions)?;
        }
        Ok(Self {
            engine,
            set,
            positions,
            radius,
            done: 0,
        })
    }

    /// Does the job for all repetitions and returns medians of the timed ones; between repetitions
    /// every coordinate moves by up to 0.015 r. `beside` gets the points of every repetition, the
    /// uncounted ones first.
    pub(crate) fn time(
        &mut self,
        subject: &mut Subject,
        repetitions: Repetitions,
        mut beside: impl FnMut(&[[f32; 3]]) -> Result<(), Failure>,
    ) -> Result<Times, Failure> {
        let mut samples = Vec::new();
        for repetition in 0..repetitions.uncounted + repetitions.timed {
            let times = self.next(subject)?;
            beside(&self.positions)?;
            if repetition >= repetitions.uncounted {
                samples.push(times);
            }
        }
        Ok(medians(&samples))
    }

    /// Moves every coordinate by up to 0.015 r and does the work once.
    pub(crate) fn next(&mut self, subject: &mut Subject) -> Result<Times, Failure> {
        cloud::drift(&mut self.positions, 0.015 * self.radius, self.done);
        let widened: Vec<[f64; 3]>;
        let positions = match self.engine.precision() {
            Precision::Single => Positions::from(&self.positions),
            Precision::Double => {
                let wide = self.positions.iter().map(|at| at.map(f64::from));
                widened = collected(wide, "positions in double precision")?;
                Positions::from(&widened)
            }
        };
        let points = self.positions.len();
        let step = tracing::debug_span!("bench.step", step = self.done, points);
        self.done += 1;
        step.in_scope(|| subject.run(&mut self.engine, self.set, positions))
    }

    /// Brings the points back to where they once were: steps are a random walk, and a long one
    /// makes another cloud.
    pub(crate) fn go_back(&mut self, positions: &[[f32; 3]]) {
        self.positions.copy_from_slice(positions);
    }

    /// The engine, to be told something else between steps.
    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The engine, holding the last repetition.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The points.
    pub(crate) fn set(&self) -> PointSetId {
        self.set
    }

    /// Where the points are now.
    pub(crate) fn positions(&self) -> &[[f32; 3]] {
        &self.positions
    }
}
