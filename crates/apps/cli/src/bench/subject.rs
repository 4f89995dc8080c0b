//! The work that is timed.

use super::times::Times;
use crate::{failure::Failure, output::milliseconds};
use clap::ValueEnum;
use nearfield::{
    Engine, PointSetId,
    kernels::{SphDensity, SphForce, WendlandC2},
    lists::PairGeometry,
    prelude::*,
};
use nearfield_grid::memory::{Shortage, collected, filled};
use nearfield_testkit::digest;
use serde::Serialize;
use std::time::Instant;

/// Quantity to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Neighbour lists
    Lists,
    /// Neighbour lists with image, displacement and squared distance of every pair
    Geometry,
    /// SPH density, no lists stored
    Density,
    /// Number of neighbours, no lists stored
    Count,
    /// SPH pressure and viscosity force, no lists stored
    Force,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Checksum {
    /// Of lists: wrapping sum of hashed pairs, as hexadecimal digits.
    Pairs(String),
    /// Of sums: all results added up.
    Sum(f64),
}

/// Work to be timed, with its inputs and its last results.
pub(crate) struct Subject {
    work: Work,
    radius: f32,
    masses: Vec<f32>,
    velocities: Vec<[f32; 3]>,
    densities: Vec<f32>,
    pressures: Vec<f32>,
    sums: Vec<f32>,
    forces: Vec<[f32; 3]>,
    counts: Vec<u32>,
    geometry: PairGeometry,
}

impl Subject {
    /// # Errors
    /// When memory is short.
    pub(crate) fn new(work: Work, points: usize, radius: f32) -> Result<Self, Shortage> {
        const WHAT: &str = "the quantities of points";
        let wave = |i: usize, period: usize| (i % period) as f32 / period as f32;
        // Arrays that the job does not need take no memory: clouds may fill most of it.
        let needed_for = |works: &[Work]| if works.contains(&work) { points } else { 0 };
        let force = needed_for(&[Work::Force]);
        let velocity = |i| [wave(i, 7) - 0.5, wave(i, 11) - 0.5, wave(i, 13) - 0.5];
        Ok(Self {
            work,
            radius,
            masses: filled(needed_for(&[Work::Density, Work::Force]), 1.0, WHAT)?,
            velocities: collected((0..force).map(velocity), WHAT)?,
            densities: collected((0..force).map(|i| 1.0 + 0.01 * wave(i, 17)), WHAT)?,
            pressures: collected((0..force).map(|i| wave(i, 19)), WHAT)?,
            sums: filled(needed_for(&[Work::Density]), 0.0, WHAT)?,
            forces: filled(force, [0.0; 3], WHAT)?,
            counts: Vec::new(),
            geometry: PairGeometry::default(),
        })
    }

    /// One step: update and work.
    pub(crate) fn run(
        &mut self,
        engine: &mut Engine,
        set: PointSetId,
        positions: Positions<'_>,
    ) -> Result<Times, Failure> {
        let begin = Instant::now();
        engine.update(set, positions)?;
        let build = milliseconds(begin);
        self.work(engine, set)?;
        let total = milliseconds(begin);
        Ok(Times {
            build,
            search: total - build,
            total,
        })
    }

    fn work(&mut self, engine: &mut Engine, set: PointSetId) -> Result<(), Failure> {
        let kernel = WendlandC2::with_support(self.radius);
        match self.work {
            Work::Lists => engine.find_neighbors()?,
            Work::Geometry => engine.pair_geometry(set, set, &mut self.geometry)?,
            Work::Count => self.counts = engine.count_neighbors(set, set)?,
            Work::Density => engine
                .traverse(&SphDensity { kernel }, set, set)
                .sources(&self.masses)
                .run_into(&mut self.sums)?,
            Work::Force => {
                let force = SphForce {
                    kernel,
                    h: 0.5 * self.radius,
                    alpha_c: 0.1,
                };
                let (v, rho, p) = (&self.velocities, &self.densities, &self.pressures);
                engine
                    .traverse(&force, set, set)
                    .targets((v, rho, p))
                    .sources((v, rho, p, &self.masses))
                    .run_into(&mut self.forces)?;
            }
        }
        Ok(())
    }

    /// Pairs and checksum of the last repetition.
    pub(crate) fn result(
        &self,
        engine: &Engine,
        set: PointSetId,
    ) -> Result<(u64, Checksum), Failure> {
        if matches!(self.work, Work::Lists | Work::Geometry) {
            let lists = match self.work {
                Work::Lists => engine.neighbors(set, set)?,
                _ => self.geometry.lists(),
            };
            let checksum = format!("{:016x}", digest::checksum(lists.iter()));
            return Ok((lists.pairs(), Checksum::Pairs(checksum)));
        }
        let counts = engine.count_neighbors(set, set)?;
        let pairs = counts.iter().map(|&count| u64::from(count)).sum();
        let sum = match self.work {
            Work::Count => self.counts.iter().map(|&count| f64::from(count)).sum(),
            Work::Density => self.sums.iter().map(|&sum| f64::from(sum)).sum(),
            _ => self
                .forces
                .as_flattened()
                .iter()
                .map(|&f| f64::from(f))
                .sum(),
        };
        Ok((pairs, Checksum::Sum(sum)))
    }
}
