//! Everything the solver asks of the neighbour engine.
//!
//! Two point sets, fluid and walls. The walls are handed over once; the fluid
//! after every drift. No neighbour list is stored: each method is one fused
//! traversal whose results arrive in the order of the particle arrays. Walls
//! never look at walls.

use glam::Vec3;
use nearfield::prelude::{Device, Engine, Permutation, PointSetId};

use crate::passes::{Continuity, Extrapolation, Forces, WallContinuity, WallForces};
use crate::{Error, matter::Matter, particles::Particles};

/// Device and threads of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) device: Device,
    /// 0 for one per core.
    pub(crate) threads: usize,
}

/// The engine with the two point sets of a simulation.
pub(crate) struct Search {
    engine: Engine,
    fluid: PointSetId,
    wall: PointSetId,
}

impl Search {
    /// An engine of the given radius over the two sets.
    pub(crate) fn new(radius: f32, request: Request, matter: &Matter) -> Result<Self, Error> {
        let mut engine = Engine::builder(radius)
            .device(request.device)
            .threads(request.threads)
            .build()?;
        let fluid = engine.add_point_set(&matter.fluid.position)?;
        let wall = engine.add_point_set(&matter.walls.position)?;
        Ok(Self {
            engine,
            fluid,
            wall,
        })
    }

    /// Takes over the positions of the fluid after a drift.
    pub(crate) fn update(&mut self, positions: &[Vec3]) -> Result<(), Error> {
        Ok(self.engine.update(self.fluid, positions)?)
    }

    /// Takes over the positions of the walls.
    pub(crate) fn update_walls(&mut self, positions: &[Vec3]) -> Result<(), Error> {
        Ok(self.engine.update(self.wall, positions)?)
    }

    /// The permutation that brings the fluid into spatial order.
    pub(crate) fn fluid_order(&self) -> Result<Permutation, Error> {
        Ok(self.engine.z_sort(self.fluid)?)
    }

    /// The permutation that brings the walls into spatial order.
    pub(crate) fn wall_order(&self) -> Result<Permutation, Error> {
        Ok(self.engine.z_sort(self.wall)?)
    }

    /// Rates of compression among the fluid.
    pub(crate) fn continuity(
        &self,
        kernel: &Continuity,
        fluid: &Particles,
        out: &mut [(f32, f32)],
    ) -> Result<(), Error> {
        let fields = fluid.moving();
        let traversal = self.engine.traverse(kernel, self.fluid, self.fluid);
        Ok(traversal.targets(fields).sources(fields).run_into(out)?)
    }

    /// Rates of compression of the fluid by the walls.
    pub(crate) fn wall_continuity(
        &self,
        kernel: &WallContinuity,
        matter: &Matter,
        out: &mut [f32],
    ) -> Result<(), Error> {
        let traversal = self.engine.traverse(kernel, self.fluid, self.wall);
        let traversal = traversal.targets(&matter.fluid.velocity);
        Ok(traversal.sources(&matter.walls.compression).run_into(out)?)
    }

    /// Sums for the pressure of the walls.
    pub(crate) fn extrapolation(
        &self,
        kernel: &Extrapolation,
        fluid: &Particles,
        out: &mut [(f32, f32)],
    ) -> Result<(), Error> {
        let source = &fluid.compression;
        let traversal = self.engine.traverse(kernel, self.wall, self.fluid);
        Ok(traversal.sources(source).run_into(out)?)
    }

    /// Accelerations and heating among the fluid.
    pub(crate) fn forces(
        &self,
        kernel: &Forces,
        fluid: &Particles,
        out: &mut [(Vec3, f32)],
    ) -> Result<(), Error> {
        let fields = fluid.moving();
        let traversal = self.engine.traverse(kernel, self.fluid, self.fluid);
        Ok(traversal.targets(fields).sources(fields).run_into(out)?)
    }

    /// Accelerations and heating of the fluid by the walls.
    pub(crate) fn wall_forces(
        &self,
        kernel: &WallForces,
        matter: &Matter,
        out: &mut [(Vec3, f32)],
    ) -> Result<(), Error> {
        let (target, source) = (matter.fluid.moving(), matter.walls.still());
        let traversal = self.engine.traverse(kernel, self.fluid, self.wall);
        Ok(traversal.targets(target).sources(source).run_into(out)?)
    }

    /// Number of fluid neighbours of every fluid particle.
    pub(crate) fn neighbor_counts(&self) -> Result<Vec<u32>, Error> {
        Ok(self.engine.count_neighbors(self.fluid, self.fluid)?)
    }

    /// The engine's report.
    pub(crate) fn report(&self) -> nearfield::report::Report {
        self.engine.report()
    }
}
