//! A fluid in the host's memory, whose traversals the engine does wherever it runs.

use glam::Vec3;
use nearfield::prelude::{Device, Engine, PointSetId};
use nearfield_grid::memory::filled;

use crate::{
    Config, Error,
    advance::{Advance, Compression, Kick},
    guard::Watch,
    matter::Matter,
    passes::{Passes, Rates},
    state::MAX_STRETCHED,
};

/// Device and threads of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) device: Device,
    /// 0 for one per core.
    pub(crate) threads: usize,
}

/// Fluid and walls in the host's memory.
///
/// The engine gets the positions of the walls once, and those of the fluid after every drift. No
/// neighbour list is stored: every sum is a traversal whose results are in the order of the
/// particle arrays.
pub(crate) struct HostBody {
    engine: Engine,
    fluid: PointSetId,
    wall: PointSetId,
    pub(crate) matter: Matter,
    results: Results,
}

/// Results of the traversals, one per particle of the set that asked.
#[derive(Default)]
struct Results {
    rates: Vec<(f32, f32)>,
    wall_rates: Vec<f32>,
    extrapolated: Vec<(f32, f32)>,
    forces: Vec<(Vec3, f32)>,
    wall_forces: Vec<(Vec3, f32)>,
}

impl Results {
    fn new(fluid: usize, walls: usize) -> Result<Self, Error> {
        const WHAT: &str = "rates and forces of particles";
        Ok(Self {
            rates: filled(fluid, (0.0, 0.0), WHAT)?,
            wall_rates: filled(fluid, 0.0, WHAT)?,
            extrapolated: filled(walls, (0.0, 0.0), WHAT)?,
            forces: filled(fluid, (Vec3::ZERO, 0.0), WHAT)?,
            wall_forces: filled(fluid, (Vec3::ZERO, 0.0), WHAT)?,
        })
    }
}

impl HostBody {
    /// Sorts the walls and evaluates the first forces.
    pub(crate) fn new(config: &Config, request: Request, matter: Matter) -> Result<Self, Error> {
        let builder = Engine::builder(config.kernel().support());
        let builder = builder.device(request.device).threads(request.threads);
        let mut engine = builder.build()?;
        let mut body = Self {
            fluid: engine.add_point_set(&matter.fluid.position)?,
            wall: engine.add_point_set(&matter.walls.position)?,
            engine,
            results: Results::new(matter.fluid.len(), matter.walls.len())?,
            matter,
        };
        body.matter.walls.reorder(&body.engine.z_sort(body.wall)?)?;
        body.engine.update(body.wall, &body.matter.walls.position)?;
        body.evaluate_forces(config)?;
        Ok(body)
    }

    /// A step of `dt` seconds. `watch` holds the time at its end.
    pub(crate) fn advance(
        &mut self,
        config: &Config,
        dt: f64,
        watch: Watch,
    ) -> Result<Advance, Error> {
        let first = self.kick(config, 0.5 * dt);
        self.drift(dt);
        watch.refuse_losses(&self.matter.fluid)?;
        self.engine
            .update(self.fluid, &self.matter.fluid.position)?;
        let compression = self.compress(config, dt)?;
        self.evaluate_forces(config)?;
        let second = self.kick(config, 0.5 * dt);
        watch.refuse_losses(&self.matter.fluid)?;
        Ok(Advance {
            first,
            compression,
            second,
        })
    }

    /// Sums and maxima of the fluid now.
    pub(crate) fn observe(&mut self, config: &Config) -> Kick {
        self.kick(config, 0.0)
    }

    /// Changes the velocities by the forces over `dt`.
    fn kick(&mut self, config: &Config, dt: f64) -> Kick {
        let _span = tracing::debug_span!("sph.kick").entered();
        let (gravity, step) = (config.gravity, dt as f32);
        let forces = self.results.forces.iter().zip(&self.results.wall_forces);
        let (mut speed, mut acceleration) = (0.0f32, 0.0f32);
        let mut sums = Kick::default();
        for (velocity, (fluid, wall)) in self.matter.fluid.velocity.iter_mut().zip(forces) {
            let rate = gravity + fluid.0 + wall.0;
            let change = step * rate;
            sums.viscous += f64::from(fluid.1);
            sums.rubbed += f64::from(wall.1);
            sums.work += f64::from(wall.0.dot(*velocity + 0.5 * change));
            sums.wall_force += wall.0.as_dvec3();
            *velocity += change;
            speed = speed.max(velocity.length_squared());
            acceleration = acceleration.max(rate.length_squared());
        }
        sums.max_speed = f64::from(speed).sqrt();
        sums.max_acceleration = f64::from(acceleration).sqrt();
        sums
    }

    /// Moves the particles with their velocities over `dt`.
    fn drift(&mut self, dt: f64) {
        let _span = tracing::debug_span!("sph.drift").entered();
        let (step, fluid) = (dt as f32, &mut self.matter.fluid);
        for (position, &velocity) in fluid.position.iter_mut().zip(&fluid.velocity) {
            *position += step * velocity;
        }
    }

    /// Changes the compressions by the motion of the drift over `dt` just made.
    fn compress(&mut self, config: &Config, dt: f64) -> Result<Compression, Error> {
        let _span = tracing::debug_span!("sph.compress").entered();
        let Rates { fluid, walls } = Passes::of(config).rates(dt);
        let (results, matter) = (&mut self.results, &self.matter);
        let (moving, still) = (matter.fluid.moving(), &matter.walls.compression);
        (self.engine.traverse(&fluid, self.fluid, self.fluid))
            .targets(moving)
            .sources(moving)
            .run_into(&mut results.rates)?;
        (self.engine.traverse(&walls, self.fluid, self.wall))
            .targets(&matter.fluid.velocity)
            .sources(still)
            .run_into(&mut results.wall_rates)?;
        Ok(self.apply_rates(config, dt))
    }

    /// Changes the compressions by their rates over `dt`.
    fn apply_rates(&mut self, config: &Config, dt: f64) -> Compression {
        let (water, step) = (config.water_state(), dt as f32);
        let rates = self.results.rates.iter().zip(&self.results.wall_rates);
        let mut sums = Compression::default();
        for (s, (&(divergence, diffusion), &wall)) in
            self.matter.fluid.compression.iter_mut().zip(rates)
        {
            let change = step * ((1.0 + *s) * (divergence + wall) + diffusion);
            let middle = *s + 0.5 * change;
            let pressure = water.specific_pressure(middle) / (1.0 + middle);
            sums.diffused -= f64::from(pressure * diffusion / (1.0 + middle));
            sums.work += f64::from(pressure * wall);
            *s = (*s + change).max(MAX_STRETCHED);
        }
        sums
    }

    /// Gives the walls their pressure and evaluates all forces at the present positions.
    fn evaluate_forces(&mut self, config: &Config) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.forces").entered();
        let (passes, water) = (Passes::of(config), config.water_state());
        let (results, matter) = (&mut self.results, &mut self.matter);
        (self
            .engine
            .traverse(&passes.extrapolation(), self.wall, self.fluid))
        .sources(&matter.fluid.compression)
        .run_into(&mut results.extrapolated)?;
        let walls = matter.walls.compression.iter_mut();
        for (s, &(weight, sum)) in walls.zip(&results.extrapolated) {
            *s = if weight > 0.0 {
                water.compression(sum / weight)
            } else {
                0.0
            };
        }
        let moving = matter.fluid.moving();
        (self
            .engine
            .traverse(&passes.forces(), self.fluid, self.fluid))
        .targets(moving)
        .sources(moving)
        .run_into(&mut results.forces)?;
        (self
            .engine
            .traverse(&passes.wall_forces(), self.fluid, self.wall))
        .targets(moving)
        .sources(matter.walls.still())
        .run_into(&mut results.wall_forces)?;
        Ok(())
    }

    /// Brings the particles into spatial order.
    pub(crate) fn sort_fluid(&mut self) -> Result<(), Error> {
        let _span = tracing::debug_span!("sph.sort").entered();
        let order = self.engine.z_sort(self.fluid)?;
        self.matter.fluid.reorder(&order)?;
        order.apply(&mut self.results.forces)?;
        order.apply(&mut self.results.wall_forces)?;
        Ok(self
            .engine
            .update(self.fluid, &self.matter.fluid.position)?)
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
