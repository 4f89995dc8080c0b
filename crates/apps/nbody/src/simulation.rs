//! A run: bodies, their integrator, and their energy and momentum.

use crate::{Bodies, Error, ErrorKind, Integrator};
use nearfield::{
    Device, Engine,
    all_pairs::{AllPairs, AllPairsReport, Arithmetic, Real},
};
use nearfield_grid::memory::filled;

/// How bodies are moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Length of a step; negative to go back in time.
    pub time_step: f64,
    /// Softening ε of the attraction (Plummer's); 0 for none.
    pub softening: f64,
    /// The integrator.
    pub integrator: Integrator,
    /// Where attractions are summed.
    pub device: Device,
    /// Worker threads of the CPU, 0 for one per core.
    pub threads: usize,
    /// How roots are computed.
    pub arithmetic: Arithmetic,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            time_step: 1e-3,
            softening: 0.0,
            integrator: Integrator::Leapfrog,
            device: Device::Auto,
            threads: 0,
            arithmetic: Arithmetic::Fast,
        }
    }
}

/// Energy of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Energy {
    /// Σ m v²/2.
    pub kinetic: f64,
    /// −Σ m_i m_j / (d² + ε²)^½ over all pairs, each once.
    pub potential: f64,
}

impl Energy {
    /// Returns true if a run that began with this energy and now has that one has failed: its
    /// energy is NaN or infinite, or has changed by more than 100 % of the initial kinetic and
    /// potential energy together.
    pub fn has_blown_up(self, now: Self) -> bool {
        let room = self.kinetic.abs() + self.potential.abs();
        let change = (now.total() - self.total()).abs();
        !change.is_finite() || change > room
    }

    /// Of both kinds.
    pub fn total(self) -> f64 {
        self.kinetic + self.potential
    }
}

/// Bodies, their time, and the engine that moves them; in `f32` or `f64`.
#[derive(Debug)]
pub struct Simulation<T> {
    bodies: Bodies<T>,
    options: Options,
    sums: AllPairs,
    /// At the present positions, where they have been computed.
    accelerations: Vec<[T; 3]>,
    current: bool,
    steps: u64,
}

impl<T: Real> Simulation<T> {
    /// Bodies at time 0.
    ///
    /// # Errors
    /// [`ErrorKind::Lengths`], [`ErrorKind::NotFinite`], [`ErrorKind::NegativeMass`],
    /// [`ErrorKind::TimeStep`], and those of starting the engine.
    pub fn new(bodies: Bodies<T>, options: Options) -> Result<Self, Error> {
        Self::at(bodies, options, 0)
    }

    /// Bodies after `steps` steps.
    pub(crate) fn at(bodies: Bodies<T>, options: Options, steps: u64) -> Result<Self, Error> {
        bodies.check()?;
        let step = options.time_step;
        if !step.is_finite() || step == 0.0 {
            return Err(ErrorKind::TimeStep(step).into());
        }
        let sums = Engine::all_pairs()
            .device(options.device)
            .threads(options.threads)
            .arithmetic(options.arithmetic)
            .build()?;
        Ok(Self {
            accelerations: filled(bodies.len(), [T::default(); 3], "accelerations")?,
            bodies,
            options,
            sums,
            current: false,
            steps,
        })
    }

    /// Advances the bodies by `steps` steps.
    ///
    /// # Errors
    /// [`ErrorKind::Blown`] if a body leaves the range of the precision, and the errors of the
    /// engine.
    pub fn run(&mut self, steps: u64) -> Result<(), Error> {
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    /// One step.
    fn step(&mut self) -> Result<(), Error> {
        let (h, half) = (
            T::of(self.options.time_step),
            T::of(0.5 * self.options.time_step),
        );
        self.attract()?;
        match self.options.integrator {
            Integrator::Leapfrog => {
                self.kick(half);
                self.drift(h);
                self.check()?;
                self.attract()?;
                self.kick(half);
            }
            Integrator::SymplecticEuler => {
                self.kick(h);
                self.drift(h);
                self.check()?;
            }
        }
        self.steps += 1;
        Ok(())
    }

    /// Accelerations at the present positions.
    fn attract(&mut self) -> Result<(), Error> {
        if !self.current {
            let Bodies {
                positions, masses, ..
            } = &self.bodies;
            let softening = T::of(self.options.softening);
            let to = &mut self.accelerations;
            self.sums.gravity_into(positions, masses, softening, to)?;
            self.current = true;
        }
        Ok(())
    }

    fn kick(&mut self, h: T) {
        for (velocity, acceleration) in self.bodies.velocities.iter_mut().zip(&self.accelerations) {
            for axis in 0..3 {
                velocity[axis] = velocity[axis] + acceleration[axis] * h;
            }
        }
    }

    fn drift(&mut self, h: T) {
        for (position, velocity) in self
            .bodies
            .positions
            .iter_mut()
            .zip(&self.bodies.velocities)
        {
            for axis in 0..3 {
                position[axis] = position[axis] + velocity[axis] * h;
            }
        }
        self.current = false;
    }

    /// Positions show velocities that are not finite too.
    fn check(&self) -> Result<(), Error> {
        let lost = |x: &[T; 3]| x.iter().any(|x| !x.is_finite());
        match self.bodies.positions.iter().position(lost) {
            None => Ok(()),
            Some(index) => Err(ErrorKind::Blown {
                step: self.steps + 1,
                what: "position",
                index,
                time_step: self.options.time_step,
            }
            .into()),
        }
    }

    /// The energy, summed in double precision whatever the bodies are in.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn energy(&mut self) -> Result<Energy, Error> {
        let bodies = self.bodies.rounded::<f64>()?;
        let softening = T::of(self.options.softening).double();
        let potentials =
            self.sums
                .gravity_potential(&bodies.positions, &bodies.masses, softening)?;
        let potential = bodies.masses.iter().zip(&potentials);
        let potential: f64 = potential
            .map(|(mass, potential)| 0.5 * mass * potential)
            .sum();
        Ok(Energy {
            kinetic: self.kinetic(),
            // An empty sum is -0.
            potential: 0.0 + potential,
        })
    }

    /// The kinetic energy, summed in double precision; it takes little time.
    pub fn kinetic(&self) -> f64 {
        let square = |v: &[T; 3]| v.iter().map(|v| v.double() * v.double()).sum::<f64>();
        let bodies = self.bodies.masses.iter().zip(&self.bodies.velocities);
        let sum: f64 = bodies
            .map(|(mass, v)| 0.5 * mass.double() * square(v))
            .sum();
        // An empty sum is -0.
        0.0 + sum
    }

    /// The momentum Σ m v, summed in double precision.
    pub fn momentum(&self) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for (mass, velocity) in self.bodies.masses.iter().zip(&self.bodies.velocities) {
            for axis in 0..3 {
                sum[axis] += mass.double() * velocity[axis].double();
            }
        }
        sum
    }

    /// The bodies now.
    pub fn bodies(&self) -> &Bodies<T> {
        &self.bodies
    }

    /// How they are moved.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Steps done times their length.
    pub fn time(&self) -> f64 {
        self.steps as f64 * self.options.time_step
    }

    /// Where the last sum ran, and why there.
    pub fn report(&self) -> AllPairsReport {
        self.sums.report()
    }
}
