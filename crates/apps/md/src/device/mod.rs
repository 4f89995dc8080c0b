//! A run whose atoms live on a GPU from step to step.
//!
//! Every stage of a step runs there: kicks and drifts in double precision, forces over the engine's
//! neighbour lists with a skin. The host starts the kernels and learns how far atoms have moved since
//! the lists were built while the forces are being computed; when that was too far, lists are built
//! anew and the forces computed again, before anybody has used them.

mod kernels;

use crate::{Checkpoint, Drift, Error, Evaluation, ForceField, Observation, Options, System};
use kernels::{Entering, Kernels, MOTION_SLOTS, Moving, PAIR_SLOTS, Pairs};
use nearfield::{
    PointSetId, Precision,
    device::{
        DeviceEngine, GpuError, Progress, Queue, Transfers,
        cudarc::driver::{
            CudaEvent, CudaSlice, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits,
        },
    },
};
use nearfield_grid::{OfProcess, memory::filled};
use std::{mem, sync::Arc};

/// What copies of the run are called in messages and traces.
const ATOMS: &str = "atoms";
/// Displacements that are kept before their places are used again.
const MOMENTS: usize = 64;
/// Builds of lists after which atoms are brought into the order of the cells.
const REORDER: u64 = 16;
/// Share of box and list radius that rounding may take: see `nearfield::VerletLists`.
const MARGIN: f64 = 1.0 / (1u64 << 19) as f64;

/// Atoms on a GPU that move by Newton's equations at constant energy.
pub struct DeviceSimulation {
    engine: DeviceEngine,
    set: PointSetId,
    /// As what the engine holds: neither used nor dropped in a forked child.
    kernels: OfProcess<Kernels>,
    arrays: OfProcess<Arrays>,
    field: ForceField,
    /// Everything but what changes.
    frame: System,
    /// For reading while forces are computed.
    side: OfProcess<Queue>,
    /// How far atoms may move, squared.
    allowed: f32,
    /// The next place of a displacement.
    moment: usize,
    /// When the last displacement was there.
    measured: OfProcess<Option<CudaEvent>>,
    /// Kick that the last step owes.
    owed: f64,
    builds: u64,
    step: u64,
    time: f64,
    drift: Drift,
}

/// Arrays of the device; numbers per atom in brackets.
struct Arrays {
    /// As atoms move on, [3].
    position: CudaSlice<f64>,
    /// [3]
    velocity: CudaSlice<f64>,
    /// [3]
    force: CudaSlice<f32>,
    types: CudaSlice<u32>,
    ids: CudaSlice<u32>,
    /// One number where there are none.
    charges: CudaSlice<f32>,
    /// Whole boxes between an atom and its image in the box, [3].
    boxes: CudaSlice<i32>,
    /// That image and the type, now and when lists were built, [4].
    at: CudaSlice<f32>,
    built: CudaSlice<f32>,
    /// As the engine takes it, [3].
    placed: CudaSlice<f32>,
    /// Room for sorting, [3] and [1].
    spare: CudaSlice<f64>,
    spare_words: CudaSlice<u32>,
    moved: CudaSlice<u32>,
    partials: CudaSlice<f64>,
    totals: CudaSlice<f64>,
}

impl DeviceSimulation {
    /// Whether a run like this can stay on a GPU: in single precision, with a skin, in a box more than
    /// twice as wide as lists reach and of which no vector leans along an open axis. [`Simulation`](crate::Simulation) takes all others.
    pub fn takes(system: &System, field: &ForceField, options: &Options) -> bool {
        let reach = 2.001 * (field.cutoff() + f64::from(options.skin));
        let widths = system.cell().widths();
        widths.iter().all(|&width| width >= reach)
            && options.skin > 0.0
            && options.precision == Precision::Single
            && !system.is_empty()
            && !system.cell().is_slanted()
    }

    /// Brings a system, for which [`takes`](Self::takes) is true, to GPU `number` and evaluates its
    /// forces.
    ///
    /// # Errors
    /// [`Error::Setting`] when it is not, [`Error::Type`] and [`Error::Count`] when the force field does
    /// not fit, and what the engine and the GPU say.
    pub fn new(
        system: System,
        field: ForceField,
        options: &Options,
        number: u32,
    ) -> Result<Self, Error> {
        field.check(&system)?;
        if !Self::takes(&system, &field, options) {
            return Err(Error::Setting {
                name: "the skin of a run that stays on a GPU",
                value: f64::from(options.skin),
                wanted: "positive, in f32, in a box twice as wide as lists reach",
            });
        }
        let reach = (field.cutoff() + f64::from(options.skin)) as f32;
        let vectors = system.cell().vectors();
        let builder = DeviceEngine::builder(reach).box_vectors(vectors);
        let mut engine = builder.on_gpu(number)?;
        let mut arrays = Arrays::of(&engine, &system)?;
        let kernels = Kernels::load(&engine, &field, &system)?;
        kernels.enter(arrays.entering())?;
        let set = engine.add_point_set(&arrays.placed.as_view())?;
        // No coordinate in the box is larger.
        let along = |axis: usize| vectors.iter().flatten().map(|v| v[axis].abs()).sum::<f64>();
        let widest = (0..3).map(along).fold(0.0, f64::max);
        let room = f64::from(reach) - field.cutoff() - MARGIN * (2.0 * widest + f64::from(reach));
        let mut made = Self {
            side: OfProcess::new(engine.queue().beside().map_err(failed)?),
            engine,
            set,
            kernels: OfProcess::new(kernels),
            arrays: OfProcess::new(arrays),
            field,
            frame: system,
            allowed: (0.5 * room.max(0.0)).powi(2) as f32,
            moment: 0,
            measured: OfProcess::new(None),
            owed: 0.0,
            builds: 0,
            step: 0,
            time: 0.0,
            drift: Drift::default(),
        };
        made.build()?;
        made.forces()?;
        made.observe()?;
        Ok(made)
    }

    /// A run that goes on from a checkpoint.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn resume(
        checkpoint: Checkpoint,
        field: ForceField,
        options: &Options,
        number: u32,
    ) -> Result<Self, Error> {
        let Checkpoint {
            system, step, time, ..
        } = checkpoint;
        let mut made = Self::new(system, field, options, number)?;
        (made.step, made.time, made.drift) = (step, time, Drift::default());
        made.observe()?;
        Ok(made)
    }

    /// A step of length `dt`, as [`Simulation::step`](crate::Simulation::step).
    ///
    /// # Errors
    /// [`Error::Setting`] for a step that is no positive number, and what the engine and the GPU say;
    /// the run is then over.
    pub fn step(&mut self, dt: f64) -> Result<(), Error> {
        self.engine.usable()?;
        if !(dt.is_finite() && dt > 0.0) {
            return Err(Error::Setting {
                name: "the time step",
                value: dt,
                wanted: "a positive number",
            });
        }
        let points = self.frame.len();
        let _span = tracing::debug_span!("md.step", step = self.step + 1, points).entered();
        let moment = self.advance(self.owed + 0.5 * dt, dt)?;
        (self.owed, self.time) = (0.5 * dt, self.time + dt);
        self.step += 1;
        self.forces()?;
        if !self.still_near(moment)? {
            self.build()?;
            self.forces()?;
        }
        Ok(())
    }

    /// What the system is like now; waits for the GPU.
    ///
    /// # Errors
    /// What the GPU says, and [`Error::Diverged`] when the energy is not finite.
    pub fn observe(&mut self) -> Result<Observation, Error> {
        self.engine.usable()?;
        self.settle()?;
        let (lists, atoms) = (self.engine.neighbors(self.set, self.set)?, self.frame.len());
        let Arrays {
            at,
            charges,
            force,
            velocity,
            types,
            partials,
            totals,
            ..
        } = &mut *self.arrays;
        let pairs = Pairs {
            at,
            charges,
            lists,
            force,
            atoms,
        };
        let mut slots = totals.slice_mut(0..PAIR_SLOTS);
        self.kernels.interactions(pairs, partials, &mut slots)?;
        let mut slots = totals.slice_mut(PAIR_SLOTS..);
        self.kernels
            .motion((velocity, types, atoms), partials, &mut slots)?;
        let found = self.download(&self.arrays.totals)?;
        let freedom = 3 * self.frame.len().saturating_sub(1);
        let seen = Observation {
            step: self.step,
            time: self.time,
            potential: found[0],
            virial: found[1],
            kinetic: found[2],
            temperature: 2.0 * found[2] / freedom.max(1) as f64,
            momentum: [found[3], found[4], found[5]],
        };
        if !seen.total().is_finite() {
            return Err(Error::Diverged {
                step: self.step,
                energy: seen.total(),
                first: self.drift.first(),
            });
        }
        self.drift.take(&seen);
        Ok(seen)
    }

    /// The atoms as they are now; waits for the GPU.
    ///
    /// # Errors
    /// What the GPU says.
    pub fn system(&mut self) -> Result<System, Error> {
        self.settle()?;
        let arrays = &self.arrays;
        let mut system = self.frame.clone();
        system.positions = vectors(&self.download(&arrays.position)?);
        system.velocities = vectors(&self.download(&arrays.velocity)?);
        system.types = self.download(&arrays.types)?;
        system.ids = self.download(&arrays.ids)?;
        if !system.charges.is_empty() {
            system.charges = self.download(&arrays.charges)?;
        }
        Ok(system)
    }

    /// Forces on the atoms, in the order of the [system](Self::system).
    ///
    /// # Errors
    /// What the GPU says.
    pub fn forces_now(&self) -> Result<Vec<[f32; 3]>, Error> {
        Ok(vectors(&self.download(&self.arrays.force)?))
    }

    /// The run as it is, to be written.
    ///
    /// # Errors
    /// Those of [`observe`](Self::observe).
    pub fn checkpoint(&mut self) -> Result<Checkpoint, Error> {
        let seen = self.observe()?;
        Ok(Checkpoint {
            system: self.system()?,
            forces: self.forces_now()?,
            now: Evaluation {
                energy: seen.potential,
                virial: seen.virial,
            },
            step: self.step,
            time: self.time,
        })
    }

    /// Computes the forces `times` over and waits for them, for measurements.
    ///
    /// # Errors
    /// What the GPU says.
    pub fn time_forces(&mut self, times: usize) -> Result<(), Error> {
        self.engine.usable()?;
        for _ in 0..times {
            self.forces()?;
        }
        self.engine.queue().synchronize().map_err(failed)
    }

    /// How the total energy went from observation to observation.
    pub fn energy_drift(&self) -> Drift {
        self.drift
    }

    /// How atoms act on each other.
    pub fn field(&self) -> &ForceField {
        &self.field
    }

    /// Steps since the start.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// How often lists were built.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// Bytes copied between host and GPU so far. A step copies the same few however many atoms
    /// there are.
    pub fn transfers(&self) -> Transfers {
        self.engine.transfers()
    }

    /// The GPU, as the command line names it.
    pub fn device(&self) -> String {
        format!("gpu:{}", self.engine.device().index)
    }

    /// Gives the atoms the kick that the last step owes.
    fn settle(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        if self.owed > 0.0 {
            self.advance(self.owed, 0.0)?;
            self.owed = 0.0;
        }
        Ok(())
    }

    /// Kicks and drifts; returns where the displacement will be.
    fn advance(&mut self, kick: f64, drift: f64) -> Result<usize, Error> {
        if self.moment == MOMENTS {
            self.forget_displacements()?;
        }
        let moment = self.moment;
        self.moment += 1;
        let Arrays {
            position,
            velocity,
            force,
            types,
            boxes,
            built,
            at,
            moved,
            ..
        } = &mut *self.arrays;
        let moving = Moving {
            position,
            velocity,
            force,
            types,
            boxes,
            built,
            at,
            atoms: self.frame.len(),
        };
        let mut moved = moved.slice_mut(moment..moment + 1);
        self.kernels.advance(moving, (kick, drift), &mut moved)?;
        *self.measured = Some(
            self.engine
                .stream()
                .record_event(None)
                .map_err(self::moving)?,
        );
        Ok(moment)
    }

    fn forces(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        let lists = self.engine.neighbors(self.set, self.set)?;
        let arrays = &mut *self.arrays;
        self.kernels.forces(Pairs {
            at: &arrays.at,
            charges: &arrays.charges,
            lists,
            force: &mut arrays.force,
            atoms: self.frame.len(),
        })
    }

    /// Whether no atom has moved too far, read while forces are being computed.
    fn still_near(&self, moment: usize) -> Result<bool, Error> {
        let mut bits = [0];
        let place = self.arrays.moved.slice(moment..moment + 1);
        // Waits for what wrote it and for nothing that was started since; nothing writes there before
        // the copy is done.
        if let Some(measured) = &*self.measured {
            self.side.wait(measured).map_err(moving)?;
        }
        let copied = self.side.copy_to_host("a displacement", &place, &mut bits);
        copied.map_err(failed)?;
        Ok(f32::from_bits(bits[0]) <= self.allowed)
    }

    fn forget_displacements(&mut self) -> Result<(), Error> {
        let stream = self.engine.stream().clone();
        stream
            .memset_zeros(&mut self.arrays.moved)
            .map_err(moving)?;
        self.moment = 0;
        Ok(())
    }

    /// Builds the lists from where the atoms are.
    fn build(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        self.enter()?;
        if self.builds.is_multiple_of(REORDER) {
            self.reorder()?;
            self.enter()?;
        }
        self.builds += 1;
        loop {
            self.engine.find_neighbors(self.set, self.set)?;
            match self.engine.finish()? {
                Progress::Valid => return self.forget_displacements(),
                Progress::Repeat => {}
            }
        }
    }

    /// Tells the engine where the atoms are.
    fn enter(&mut self) -> Result<(), Error> {
        self.kernels.enter(self.arrays.entering())?;
        Ok(self
            .engine
            .update(self.set, &self.arrays.placed.as_view())?)
    }

    /// Brings the atoms into the order of the cells.
    fn reorder(&mut self) -> Result<(), Error> {
        let Self {
            engine,
            arrays,
            set,
            ..
        } = self;
        let arrays = &mut **arrays;
        // The order must be that of a sort that went well.
        while engine.finish()? == Progress::Repeat {}
        for values in [&mut arrays.position, &mut arrays.velocity] {
            engine.reorder(*set, 3, &values.as_view(), &mut arrays.spare.as_view_mut())?;
            mem::swap(values, &mut arrays.spare);
        }
        for values in [&mut arrays.types, &mut arrays.ids] {
            engine.reorder(
                *set,
                1,
                &values.as_view(),
                &mut arrays.spare_words.as_view_mut(),
            )?;
            mem::swap(values, &mut arrays.spare_words);
        }
        // `placed` is written anew before it is read.
        engine.reorder(
            *set,
            3,
            &arrays.force.as_view(),
            &mut arrays.placed.as_view_mut(),
        )?;
        mem::swap(&mut arrays.force, &mut arrays.placed);
        if !self.frame.charges.is_empty() {
            let mut sorted = arrays.placed.slice_mut(0..self.frame.len());
            engine.reorder(*set, 1, &arrays.charges.as_view(), &mut sorted)?;
            let mut charges = arrays.charges.as_view_mut();
            engine
                .queue()
                .copy_on_device("charges", &sorted.as_view(), &mut charges)
                .map_err(failed)?;
        }
        Ok(())
    }

    fn download<T: DeviceRepr + Clone + Default>(
        &self,
        values: &CudaSlice<T>,
    ) -> Result<Vec<T>, Error> {
        self.engine.usable()?;
        let mut copy = filled(values.len(), T::default(), ATOMS)?;
        let queue = self.engine.queue();
        queue
            .copy_to_host(ATOMS, &values.as_view(), &mut copy)
            .map_err(failed)?;
        Ok(copy)
    }
}

impl Arrays {
    fn of(engine: &DeviceEngine, system: &System) -> Result<Self, Error> {
        fn zeros<T: DeviceRepr + ValidAsZeroBits>(
            stream: &Arc<CudaStream>,
            len: usize,
        ) -> Result<CudaSlice<T>, Error> {
            stream.alloc_zeros(len).map_err(moving)
        }
        fn array<T: DeviceRepr + ValidAsZeroBits>(
            queue: &Queue,
            values: &[T],
        ) -> Result<CudaSlice<T>, Error> {
            queue.array(ATOMS, values).map_err(failed)
        }
        let (queue, stream, atoms) = (engine.queue(), engine.stream(), system.len());
        Ok(Self {
            position: array(queue, system.positions.as_flattened())?,
            velocity: array(queue, system.velocities.as_flattened())?,
            force: zeros(stream, 3 * atoms)?,
            types: array(queue, &system.types)?,
            ids: array(queue, &system.ids)?,
            charges: array(queue, &system.charges)?,
            boxes: zeros(stream, 3 * atoms)?,
            at: zeros(stream, 4 * atoms)?,
            built: zeros(stream, 4 * atoms)?,
            placed: zeros(stream, 3 * atoms)?,
            spare: zeros(stream, 3 * atoms)?,
            spare_words: zeros(stream, atoms)?,
            moved: zeros(stream, MOMENTS)?,
            partials: zeros(stream, Kernels::max_partials(atoms))?,
            totals: zeros(stream, PAIR_SLOTS + MOTION_SLOTS)?,
        })
    }

    fn entering(&mut self) -> Entering<'_> {
        let atoms = self.types.len();
        Entering {
            position: &self.position,
            types: &self.types,
            boxes: &mut self.boxes,
            at: &mut self.at,
            built: &mut self.built,
            placed: &mut self.placed,
            atoms,
        }
    }
}

fn vectors<T: Copy>(values: &[T]) -> Vec<[T; 3]> {
    values.as_chunks().0.to_vec()
}

fn failed(error: GpuError) -> Error {
    Error::Engine(nearfield::Error::Gpu(error))
}

/// A failed call to the driver.
fn moving(error: DriverError) -> Error {
    failed(GpuError::driver("moving atoms to or from the GPU", error))
}
