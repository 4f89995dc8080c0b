//! Atoms that stay on a GPU from step to step.
//!
//! Every stage of a step runs there: kicks and drifts in double precision, and forces over the
//! engine's neighbour lists with a skin. The host starts the kernels. While the forces are computed
//! it reads how far atoms have moved since the lists were built. If that is more than
//! [`VerletLists::allowed_displacement`], the lists are built and the forces computed again, before
//! a kick has used them.

mod kernels;

pub use kernels::{DYNAMICS, programs};

use crate::{Error, Evaluation, ForceField, Options, System, observe::AtomSums, system::lost};
use kernels::{Entering, Kernels, MOTION_SLOTS, Moving, PAIR_SLOTS, Pairs};
use nearfield::{
    PointSetId, Precision,
    device::{
        DeviceBuffer, DeviceEngine, DeviceValue, DriverError, Event, Progress, Stream,
        copies::{Queue, Transfers},
    },
    error::gpu::Error as GpuError,
    lists::VerletLists,
};
use nearfield_grid::{
    OfProcess,
    memory::{collected, filled},
};
use std::mem;

/// Name of copies in messages and traces.
const ATOMS: &str = "atoms";
/// Number of displacements before their places are reused.
const MOMENTS: usize = 64;
/// Atoms are sorted into the order of the cells at every build of this number.
const REORDER: u64 = 16;

/// Atoms on a GPU, and the engine that finds their pairs.
pub(crate) struct DeviceBody {
    engine: DeviceEngine,
    set: PointSetId,
    /// As the engine: neither used nor dropped in a forked child.
    kernels: OfProcess<Kernels>,
    arrays: OfProcess<Arrays>,
    /// The system as it was last downloaded: its box, masses and number of atoms never change.
    seen: System,
    /// The forces as they were last downloaded.
    seen_forces: Vec<[f64; 3]>,
    /// For reading while forces are computed.
    side: OfProcess<Queue>,
    /// How far atoms may move, squared.
    allowed: f32,
    /// The next place of a displacement.
    moment: usize,
    /// When the last displacement was there.
    measured: OfProcess<Option<Event>>,
    /// The second half kick of the last step, still to be made.
    owed: f64,
    builds: u64,
}

/// Arrays of the device; numbers per atom in brackets.
struct Arrays {
    /// Unwrapped, [3].
    position: DeviceBuffer<f64>,
    /// [3]
    velocity: DeviceBuffer<f64>,
    /// [3]
    force: DeviceBuffer<f32>,
    types: DeviceBuffer<u32>,
    ids: DeviceBuffer<u32>,
    /// Has one number if atoms have no charges.
    charges: DeviceBuffer<f32>,
    /// Number of boxes between an atom and its image in the box, [3].
    boxes: DeviceBuffer<i32>,
    /// That image and the type, now and when lists were built, [4].
    at: DeviceBuffer<f32>,
    built: DeviceBuffer<f32>,
    /// The positions for the engine, [3].
    placed: DeviceBuffer<f32>,
    /// Room for sorting, [3] and [1].
    spare: DeviceBuffer<f64>,
    spare_words: DeviceBuffer<u32>,
    moved: DeviceBuffer<u32>,
    partials: DeviceBuffer<f64>,
    totals: DeviceBuffer<f64>,
}

impl DeviceBody {
    /// Returns true if the atoms of a run like this can stay on a GPU: in single precision, with a
    /// skin, in a box more than twice as wide as lists reach and without vectors that lean along an
    /// open axis.
    pub(crate) fn supports(system: &System, field: &ForceField, options: &Options) -> bool {
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
    pub(crate) fn new(
        system: System,
        field: &ForceField,
        options: &Options,
        number: u32,
    ) -> Result<Self, Error> {
        field.check(&system)?;
        let reach = (field.cutoff() + f64::from(options.skin)) as f32;
        let vectors = system.cell().vectors();
        let builder = DeviceEngine::builder(reach).box_vectors(vectors);
        let mut engine = builder.on_gpu(number)?;
        let mut arrays = Arrays::of(&engine, &system)?;
        let kernels = Kernels::load(&engine, field, &system)?;
        kernels.enter(arrays.entering())?;
        let set = engine.add_point_set(&arrays.placed.as_view())?;
        // Positions are brought into the box, so twice its extent covers those of the build and of
        // today.
        let along = |axis: usize| vectors.iter().flatten().map(|v| v[axis].abs()).sum::<f64>();
        let extent = 2.0 * (0..3).map(along).fold(0.0, f64::max);
        let (cutoff, reach) = (field.cutoff(), f64::from(reach));
        let together = VerletLists::allowed_displacement(cutoff, reach, extent, Precision::Single);
        let mut made = Self {
            side: OfProcess::new(engine.queue().beside()?),
            engine,
            set,
            kernels: OfProcess::new(kernels),
            arrays: OfProcess::new(arrays),
            seen: system,
            seen_forces: Vec::new(),
            allowed: (0.5 * together.max(0.0)).powi(2) as f32,
            moment: 0,
            measured: OfProcess::new(None),
            owed: 0.0,
            builds: 0,
        };
        made.build()?;
        made.evaluate()?;
        Ok(made)
    }

    /// A step of length `dt`. Its second half kick is owed until the next step or the next look at
    /// the atoms makes it.
    pub(crate) fn advance(&mut self, dt: f64) -> Result<(), Error> {
        self.engine.usable()?;
        let moment = self.move_atoms(self.owed + 0.5 * dt, dt)?;
        self.owed = 0.5 * dt;
        self.evaluate()?;
        if !self.still_near(moment)? {
            self.build()?;
            self.evaluate()?;
        }
        Ok(())
    }

    /// The error for an atom that this step has moved beyond single precision, if there is one.
    pub(crate) fn lost(&self, step: u64, time_step: f64) -> Option<Error> {
        let positions = self.download(&self.arrays.position).ok()?;
        let ids = self.download(&self.arrays.ids).ok()?;
        lost(positions.as_chunks().0, &ids, step, time_step)
    }

    /// Energies, virial and momentum now; waits for the GPU.
    pub(crate) fn measure(&mut self) -> Result<AtomSums, Error> {
        self.settle()?;
        let (lists, atoms) = (self.engine.neighbors(self.set, self.set)?, self.atoms());
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
            .motion(velocity, types, atoms, partials, &mut slots)?;
        let found = self.download(&self.arrays.totals)?;
        Ok(AtomSums {
            pairs: Evaluation {
                energy: found[0],
                virial: found[1],
            },
            kinetic: found[2],
            momentum: [found[3], found[4], found[5]],
        })
    }

    /// The atoms as they are now; waits for the GPU.
    pub(crate) fn system(&mut self) -> Result<&System, Error> {
        self.settle()?;
        let positions = self.download(&self.arrays.position)?;
        let velocities = self.download(&self.arrays.velocity)?;
        let types = self.download(&self.arrays.types)?;
        let ids = self.download(&self.arrays.ids)?;
        if !self.seen.charges.is_empty() {
            self.seen.charges = self.download(&self.arrays.charges)?;
        }
        let seen = &mut self.seen;
        (seen.positions, seen.velocities) = (vectors(&positions), vectors(&velocities));
        (seen.types, seen.ids) = (types, ids);
        Ok(seen)
    }

    /// Forces on the atoms, in the order of the [system](Self::system); waits for the GPU.
    pub(crate) fn forces(&mut self) -> Result<&[[f64; 3]], Error> {
        let forces = vectors::<f32>(&self.download(&self.arrays.force)?);
        let forces = forces.into_iter().map(|force| force.map(f64::from));
        self.seen_forces = collected(forces, "forces")?;
        Ok(&self.seen_forces)
    }

    /// Atoms and forces for a checkpoint.
    pub(crate) fn save(&mut self) -> Result<(System, Vec<[f32; 3]>), Error> {
        let system = self.system()?.copied()?;
        Ok((system, vectors(&self.download(&self.arrays.force)?)))
    }

    /// Computes the forces `times` times and waits for them.
    pub(crate) fn time_forces(&mut self, times: usize) -> Result<(), Error> {
        (0..times).try_for_each(|_| self.evaluate())?;
        self.engine.queue().synchronize().map_err(Error::from)
    }

    /// Number of atoms.
    pub(crate) fn atoms(&self) -> usize {
        self.seen.len()
    }

    /// How often lists were built.
    pub(crate) fn builds(&self) -> u64 {
        self.builds
    }

    /// Bytes copied between host and GPU so far.
    pub(crate) fn transfers(&self) -> Transfers {
        self.engine.transfers()
    }

    /// The GPU, as the command line names it.
    pub(crate) fn device(&self) -> String {
        format!("gpu:{}", self.engine.device().index)
    }

    /// Makes the second half kick of the last step.
    fn settle(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        if self.owed > 0.0 {
            self.move_atoms(self.owed, 0.0)?;
            self.owed = 0.0;
        }
        Ok(())
    }

    /// Kicks and drifts; returns the place of the displacement.
    fn move_atoms(&mut self, kick: f64, drift: f64) -> Result<usize, Error> {
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
            atoms: self.seen.len(),
        };
        let mut moved = moved.slice_mut(moment..moment + 1);
        self.kernels.advance(moving, kick, drift, &mut moved)?;
        *self.measured = Some(self.engine.stream().record_event().map_err(self::moving)?);
        Ok(moment)
    }

    /// Computes the forces over the lists.
    fn evaluate(&mut self) -> Result<(), Error> {
        self.engine.usable()?;
        let lists = self.engine.neighbors(self.set, self.set)?;
        let arrays = &mut *self.arrays;
        self.kernels.forces(Pairs {
            at: &arrays.at,
            charges: &arrays.charges,
            lists,
            force: &mut arrays.force,
            atoms: self.seen.len(),
        })
    }

    /// Returns true if no atom has moved too far; reads that while forces are computed.
    fn still_near(&self, moment: usize) -> Result<bool, Error> {
        let mut bits = [0];
        let place = self.arrays.moved.slice(moment..moment + 1);
        // Waits for the copy that wrote it, and for no later work; nothing writes there before the
        // copy is done.
        if let Some(measured) = &*self.measured {
            self.side.wait(measured).map_err(moving)?;
        }
        let copied = self.side.copy_to_host("a displacement", &place, &mut bits);
        copied?;
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

    /// Gives the engine the positions of the atoms.
    fn enter(&mut self) -> Result<(), Error> {
        self.kernels.enter(self.arrays.entering())?;
        Ok(self
            .engine
            .update(self.set, &self.arrays.placed.as_view())?)
    }

    /// Sorts the atoms into the order of the cells.
    fn reorder(&mut self) -> Result<(), Error> {
        let Self {
            engine,
            arrays,
            set,
            ..
        } = self;
        let arrays = &mut **arrays;
        // The order must be that of a successful sort.
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
        // `placed` is written before it is read.
        engine.reorder(
            *set,
            3,
            &arrays.force.as_view(),
            &mut arrays.placed.as_view_mut(),
        )?;
        mem::swap(&mut arrays.force, &mut arrays.placed);
        if !self.seen.charges.is_empty() {
            let mut sorted = arrays.placed.slice_mut(0..self.seen.len());
            engine.reorder(*set, 1, &arrays.charges.as_view(), &mut sorted)?;
            let mut charges = arrays.charges.as_view_mut();
            engine
                .queue()
                .copy_on_device("charges", &sorted.as_view(), &mut charges)?;
        }
        Ok(())
    }

    fn download<T: DeviceValue + Clone + Default>(
        &self,
        values: &DeviceBuffer<T>,
    ) -> Result<Vec<T>, Error> {
        self.engine.usable()?;
        let mut copy = filled(values.len(), T::default(), ATOMS)?;
        let queue = self.engine.queue();
        queue.copy_to_host(ATOMS, &values.as_view(), &mut copy)?;
        Ok(copy)
    }
}

impl Arrays {
    fn of(engine: &DeviceEngine, system: &System) -> Result<Self, Error> {
        fn zeros<T: DeviceValue>(stream: &Stream, len: usize) -> Result<DeviceBuffer<T>, Error> {
            stream.alloc_zeros(len).map_err(moving)
        }
        fn array<T: DeviceValue>(queue: &Queue, values: &[T]) -> Result<DeviceBuffer<T>, Error> {
            queue.array(ATOMS, values).map_err(Error::from)
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

/// A failed call to the driver.
fn moving(error: DriverError) -> Error {
    GpuError::driver("moving atoms to or from the GPU", error).into()
}
