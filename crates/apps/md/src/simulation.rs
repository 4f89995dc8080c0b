//! A run: velocity Verlet at constant energy, with the atoms on the host or on a GPU.
//!
//! One type serves both. [`HostBody`] keeps the atoms in host memory and asks the engine for
//! forces. [`DeviceBody`] keeps them on a GPU, where every stage of a step runs, and copies what
//! the host asks for. Both have the same methods, so these can fail with either.

use crate::{
    Checkpoint, Drift, Error, ErrorKind, Evaluator, ForceField, Observation, Options, System,
    device::DeviceBody, host::HostBody,
};
use nearfield::{Device, device::copies::Transfers, kernels::LongRange};
use std::fmt;

/// Atoms that move by Newton's equations at constant energy.
pub struct Simulation {
    field: ForceField,
    options: Options,
    body: Body,
    step: u64,
    time: f64,
    drift: Drift,
}

/// Where the atoms are; boxed, because either is large.
enum Body {
    Host(Box<HostBody>),
    Device(Box<DeviceBody>),
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Simulation");
        shown.field("atoms", &self.atoms());
        shown.field("device", &self.device());
        shown.field("step", &self.step);
        shown.finish_non_exhaustive()
    }
}

impl Simulation {
    /// A run that starts from a system, whose forces are evaluated.
    ///
    /// With [`Device::Gpu`], single precision and a skin, in a box more than twice as wide as lists
    /// reach and without vectors that lean along an open axis, the atoms stay on the GPU from step
    /// to step. In all other cases they are on the host, and [`Options::device`] evaluates the
    /// forces.
    ///
    /// # Errors
    /// As [`Evaluator::new`] and [`Evaluator::evaluate`], and [`ErrorKind::Setting`] for a
    /// skin that is negative or not finite, or threads that cannot be started.
    pub fn new(system: System, field: ForceField, options: Options) -> Result<Self, Error> {
        check_skin(&options)?;
        let body = match options.device {
            Device::Gpu(number) if DeviceBody::supports(&system, &field, &options) => {
                Body::Device(Box::new(DeviceBody::new(system, &field, &options, number)?))
            }
            _ => Body::Host(Box::new(HostBody::new(system, &field, &options)?)),
        };
        Self::start(field, options, body, 0, 0.0)
    }

    /// A run that goes on where a checkpoint was written. On the CPU, and with the same force
    /// field, skin and precision, it gives the same bits as the run that wrote it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn resume(
        checkpoint: Checkpoint,
        field: ForceField,
        options: Options,
    ) -> Result<Self, Error> {
        check_skin(&options)?;
        let Checkpoint {
            system, step, time, ..
        } = &checkpoint;
        let (step, time) = (*step, *time);
        let body = match options.device {
            Device::Gpu(number) if DeviceBody::supports(system, &field, &options) => {
                let system = checkpoint.system;
                Body::Device(Box::new(DeviceBody::new(system, &field, &options, number)?))
            }
            _ => Body::Host(Box::new(HostBody::resume(checkpoint, &field, &options)?)),
        };
        Self::start(field, options, body, step, time)
    }

    fn start(
        field: ForceField,
        options: Options,
        body: Body,
        step: u64,
        time: f64,
    ) -> Result<Self, Error> {
        let mut made = Self {
            field,
            options,
            body,
            step,
            time,
            drift: Drift::default(),
        };
        made.observe()?;
        Ok(made)
    }

    /// A step of length `dt`: half a kick, a drift, forces, half a kick (velocity Verlet: Swope et
    /// al. 1982, DOI 10.1063/1.442716).
    ///
    /// # Errors
    /// [`ErrorKind::Setting`] for a step that is not positive, [`ErrorKind::Lost`], and those
    /// of [`Evaluator::evaluate`]; the run is then over.
    pub fn step(&mut self, dt: f64) -> Result<(), Error> {
        if !(dt.is_finite() && dt > 0.0) {
            return Err(ErrorKind::Setting {
                name: "the time step",
                value: dt,
                wanted: "a positive number",
            }
            .into());
        }
        let (step, points) = (self.step + 1, self.atoms());
        let _span = tracing::debug_span!("md.step", step, points).entered();
        match &mut self.body {
            Body::Host(body) => body.advance(&self.field, &self.options, step, dt)?,
            Body::Device(body) => {
                let moved = body.advance(dt);
                moved.map_err(|error| body.lost(step, dt).unwrap_or(error))?;
            }
        }
        (self.step, self.time) = (step, self.time + dt);
        Ok(())
    }

    /// Observes the system; counts for the [drift](Self::energy_drift). Waits for a GPU.
    ///
    /// # Errors
    /// [`ErrorKind::Diverged`] when the total energy is not finite, before the first step
    /// [`ErrorKind::Overlap`] if that is so because a force is not, and what a GPU says.
    pub fn observe(&mut self) -> Result<Observation, Error> {
        let seen = self.look()?;
        if !seen.total().is_finite() {
            if self.step == 0 {
                self.check_forces()?;
            }
            return Err(ErrorKind::Diverged {
                step: self.step,
                energy: seen.total(),
                first: self.drift.first(),
            }
            .into());
        }
        self.drift.take(&seen);
        Ok(seen)
    }

    /// Refuses forces that are not finite, which an evaluation on the host does itself.
    fn check_forces(&mut self) -> Result<(), Error> {
        let forces = self.forces()?;
        let infinite = |force: &[f64; 3]| !force.iter().all(|x| x.is_finite());
        let Some(atom) = forces.iter().position(infinite) else {
            return Ok(());
        };
        let force = forces[atom];
        let (step, system) = (self.step, self.system()?);
        Err(ErrorKind::Overlap {
            step,
            atom: system.ids[atom],
            force,
            nearest: system.nearest(atom),
        }
        .into())
    }

    /// Observes the system without counting for the drift. Waits for a GPU.
    ///
    /// # Errors
    /// Errors of a GPU.
    pub fn look(&mut self) -> Result<Observation, Error> {
        let seen = match &mut self.body {
            Body::Host(body) => body.measure(),
            Body::Device(body) => body.measure()?,
        };
        let freedom = 3 * self.atoms().saturating_sub(1);
        Ok(Observation {
            step: self.step,
            time: self.time,
            potential: seen.pairs.energy,
            kinetic: seen.kinetic,
            virial: seen.pairs.virial,
            temperature: 2.0 * seen.kinetic / freedom.max(1) as f64,
            momentum: seen.momentum,
        })
    }

    /// How the total energy went from observation to observation.
    pub fn energy_drift(&self) -> Drift {
        self.drift
    }

    /// Energy of all pairs now; `None` with the atoms on a GPU, which would have to be asked.
    pub fn potential(&self) -> Option<f64> {
        match &self.body {
            Body::Host(body) => Some(body.potential()),
            Body::Device(_) => None,
        }
    }

    /// The atoms as they are now. Waits for a GPU.
    ///
    /// # Errors
    /// Errors of a GPU.
    pub fn system(&mut self) -> Result<&System, Error> {
        match &mut self.body {
            Body::Host(body) => Ok(&body.system),
            Body::Device(body) => body.system(),
        }
    }

    /// Forces on the atoms, in the order of the [system](Self::system). Waits for a GPU.
    ///
    /// # Errors
    /// Errors of a GPU.
    pub fn forces(&mut self) -> Result<&[[f64; 3]], Error> {
        match &mut self.body {
            Body::Host(body) => Ok(&body.forces),
            Body::Device(body) => body.forces(),
        }
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        match &self.body {
            Body::Host(body) => body.system.len(),
            Body::Device(body) => body.atoms(),
        }
    }

    /// How atoms act on each other.
    pub fn field(&self) -> &ForceField {
        &self.field
    }

    /// Energy and virial of the pairs beyond the cut-off, by [`ForceField::long_range`].
    ///
    /// # Errors
    /// Errors of a GPU.
    pub fn long_range(&mut self) -> Result<LongRange, Error> {
        let field = self.field.clone();
        Ok(field.long_range(self.system()?))
    }

    /// Steps since the start.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Number of neighbour searches in this run.
    pub fn builds(&self) -> u64 {
        match &self.body {
            Body::Host(body) => body.builds(),
            Body::Device(body) => body.builds(),
        }
    }

    /// The device that the forces are evaluated on.
    pub fn device(&self) -> String {
        match &self.body {
            Body::Host(body) => body.device(),
            Body::Device(body) => body.device(),
        }
    }

    /// Bytes copied between host and GPU so far; `None` with the atoms on the host. A step copies
    /// the same few bytes for any number of atoms.
    pub fn transfers(&self) -> Option<Transfers> {
        match &self.body {
            Body::Host(_) => None,
            Body::Device(body) => Some(body.transfers()),
        }
    }

    /// Number of pairs within the cut-off, each counted once. With the atoms on a GPU the host
    /// counts them, because the lists there reach farther.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn pairs(&mut self) -> Result<u64, Error> {
        match &mut self.body {
            Body::Host(body) => body.pairs(),
            Body::Device(body) => {
                Evaluator::new(body.system()?, &self.field, &Options::default())?.pairs()
            }
        }
    }

    /// Computes the forces `times` over and waits for them, for measurements.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    pub fn time_forces(&mut self, times: usize) -> Result<(), Error> {
        match &mut self.body {
            Body::Host(body) => (0..times).try_for_each(|_| body.evaluate(&self.field, self.step)),
            Body::Device(body) => body.time_forces(times),
        }
    }

    /// The current state of the run, to be written. On the host pairs are searched again at the
    /// next step, as they are where a run goes on from it.
    ///
    /// # Errors
    /// As [`Evaluator::new`] and of [`look`](Self::look).
    pub fn checkpoint(&mut self) -> Result<Checkpoint, Error> {
        let (now, (system, forces)) = match &mut self.body {
            Body::Host(body) => {
                let saved = body.save(&self.field, &self.options)?;
                (body.measure().pairs, saved)
            }
            Body::Device(body) => (body.measure()?.pairs, body.save()?),
        };
        Ok(Checkpoint {
            system,
            forces,
            now,
            step: self.step,
            time: self.time,
            notes: Vec::new(),
        })
    }
}

fn check_skin(options: &Options) -> Result<(), Error> {
    if options.skin.is_finite() && options.skin >= 0.0 {
        return Ok(());
    }
    Err(ErrorKind::Setting {
        name: "the skin",
        value: f64::from(options.skin),
        wanted: "a distance, or 0 for none",
    }
    .into())
}
