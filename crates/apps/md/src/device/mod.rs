//! Atoms that stay on a GPU from step to step.
//!
//! Every stage of a step runs there: kicks and drifts in double precision, and forces over the
//! engine's neighbour lists with a skin ([`DeviceVerletLists`]). The host starts the kernels. If
//! atoms have moved too far, the kernel of the forces does nothing; the host learns it while the
//! kernel runs, and the lists are built and the forces computed before a kick has used them.

mod kernels;

pub use kernels::{DYNAMICS, programs};

use crate::{Error, Evaluation, ForceField, Options, System, observe::AtomSums, system::lost};
use kernels::{Kernels, MOTION_SLOTS, Moving, PAIR_CHANNELS, PAIR_SLOTS, PairKernels};
use nearfield::{
    PointSetId, Precision,
    device::{
        DeviceBuffer, DeviceEngine, DeviceEngineBuilder, DeviceField, DeviceKernel, DeviceValue,
        DeviceVerletLists, DriverError, Progress, Stream,
        copies::{Queue, Transfers},
    },
    error::gpu::Error as GpuError,
};
use nearfield_grid::{
    OfProcess,
    memory::{collected, filled},
};
use std::mem;

/// Name of copies in messages and traces.
const ATOMS: &str = "atoms";
/// Atoms are sorted into the order of the cells at every build of this number.
const REORDER: u64 = 16;

/// Atoms on a GPU, and the lists of their pairs.
pub(crate) struct DeviceBody {
    lists: DeviceVerletLists,
    set: PointSetId,
    /// As the engine: neither used nor dropped in a forked child.
    kernels: OfProcess<Kernels>,
    pairs: PairKernels,
    arrays: OfProcess<Arrays>,
    /// The system as it was last downloaded: its box, masses and number of atoms never change.
    seen: System,
    /// The forces as they were last downloaded.
    seen_forces: Vec<[f64; 3]>,
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
    /// As the pair kernels read them.
    types: DeviceBuffer<f32>,
    ids: DeviceBuffer<u32>,
    /// Has one number if atoms have no charges.
    charges: DeviceBuffer<f32>,
    /// The positions in the box, for the lists, [3].
    placed: DeviceBuffer<f32>,
    /// Of the pairs of an atom, when they are observed, [`PAIR_CHANNELS`].
    of_atoms: DeviceBuffer<f32>,
    /// Room for sorting, [3] and [1].
    spare: DeviceBuffer<f64>,
    spare_words: DeviceBuffer<u32>,
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
        let builder = DeviceEngine::builder(field.cutoff() as f32);
        let builder = builder.box_vectors(system.cell().vectors());
        let start = |settings: DeviceEngineBuilder| settings.on_gpu(number);
        let mut lists = DeviceVerletLists::new(builder, options.skin, start)?;
        let engine = lists.engine();
        let kernels = Kernels::load(engine, &system)?;
        let mut arrays = Arrays::of(engine, &system)?;
        kernels.advance(arrays.moving(), 0.0, 0.0)?;
        let set = lists.add_point_set(&arrays.placed.as_view())?;
        let mut made = Self {
            lists,
            set,
            kernels: OfProcess::new(kernels),
            pairs: PairKernels::of(field)?,
            arrays: OfProcess::new(arrays),
            seen: system,
            seen_forces: Vec::new(),
            owed: 0.0,
            builds: 1,
        };
        made.reorder()?;
        made.evaluate()?;
        Ok(made)
    }

    /// A step of length `dt`. Its second half kick is owed until the next step or the next look at
    /// the atoms makes it.
    pub(crate) fn advance(&mut self, dt: f64) -> Result<(), Error> {
        self.lists.engine().usable()?;
        self.move_atoms(self.owed + 0.5 * dt, dt)?;
        self.owed = 0.5 * dt;
        self.lists.update(self.set, &self.arrays.placed.as_view())?;
        self.evaluate()?;
        if self.lists.finish()? == Progress::Repeat {
            if self.builds.is_multiple_of(REORDER) {
                self.reorder()?;
            }
            self.builds += 1;
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
        let (atoms, arrays) = (self.seen.len(), &mut *self.arrays);
        let fields = || pair_fields(&self.pairs.interactions, &arrays.types, &arrays.charges);
        let traversal = (self.lists)
            .traverse_with(&self.pairs.interactions, self.set, self.set)
            .targets(fields())
            .sources(fields());
        traversal.run_into(&mut arrays.of_atoms.as_view_mut())?;
        let Arrays {
            of_atoms,
            velocity,
            types,
            partials,
            totals,
            ..
        } = arrays;
        let mut slots = totals.slice_mut(0..PAIR_SLOTS);
        (self.kernels).pair_sums(of_atoms, atoms, partials, &mut slots)?;
        let mut slots = totals.slice_mut(PAIR_SLOTS..);
        (self.kernels).motion(velocity, types, atoms, partials, &mut slots)?;
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
        let types = types.iter().map(|&of_atom| of_atom as u32);
        (seen.types, seen.ids) = (collected(types, "types of atoms")?, ids);
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
        let queue = self.lists.engine().queue();
        queue.synchronize().map_err(Error::from)
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
        self.lists.engine().transfers()
    }

    /// The GPU, as the command line names it.
    pub(crate) fn device(&self) -> String {
        format!("gpu:{}", self.lists.engine().device().index)
    }

    /// Makes the second half kick of the last step.
    fn settle(&mut self) -> Result<(), Error> {
        self.lists.engine().usable()?;
        if self.owed > 0.0 {
            self.move_atoms(self.owed, 0.0)?;
            self.owed = 0.0;
        }
        Ok(())
    }

    /// Kicks, drifts, and places the atoms in the box.
    fn move_atoms(&mut self, kick: f64, drift: f64) -> Result<(), Error> {
        self.kernels.advance(self.arrays.moving(), kick, drift)
    }

    /// Computes the forces over the lists.
    fn evaluate(&mut self) -> Result<(), Error> {
        let arrays = &mut *self.arrays;
        let fields = || pair_fields(&self.pairs.forces, &arrays.types, &arrays.charges);
        let traversal = (self.lists)
            .traverse_with(&self.pairs.forces, self.set, self.set)
            .targets(fields())
            .sources(fields());
        Ok(traversal.run_into(&mut arrays.force.as_view_mut())?)
    }

    /// Brings the atoms into the order of the cells, and builds the lists. The forces stay as they
    /// were: they are to be computed anew.
    fn reorder(&mut self) -> Result<(), Error> {
        let Self {
            lists, arrays, set, ..
        } = self;
        let (engine, arrays) = (lists.engine(), &mut **arrays);
        for values in [&mut arrays.position, &mut arrays.velocity] {
            engine.reorder(*set, 3, &values.as_view(), &mut arrays.spare.as_view_mut())?;
            mem::swap(values, &mut arrays.spare);
        }
        let mut sorted = arrays.spare_words.as_view_mut();
        engine.reorder(*set, 1, &arrays.ids.as_view(), &mut sorted)?;
        mem::swap(&mut arrays.ids, &mut arrays.spare_words);
        let charged = !self.seen.charges.is_empty();
        let charges = charged.then_some(&mut arrays.charges);
        for values in [&mut arrays.types].into_iter().chain(charges) {
            // Room for both: it is written anew below.
            let mut sorted = arrays.placed.slice_mut(0..self.seen.len());
            engine.reorder(*set, 1, &values.as_view(), &mut sorted)?;
            let (queue, mut values) = (engine.queue(), values.as_view_mut());
            queue.copy_on_device(ATOMS, &sorted.as_view(), &mut values)?;
        }
        self.kernels.advance(arrays.moving(), 0.0, 0.0)?;
        lists.replace(*set, &arrays.placed.as_view())?;
        lists.refresh()?;
        Ok(())
    }

    fn download<T: DeviceValue + Clone + Default>(
        &self,
        values: &DeviceBuffer<T>,
    ) -> Result<Vec<T>, Error> {
        let engine = self.lists.engine();
        engine.usable()?;
        let mut copy = filled(values.len(), T::default(), ATOMS)?;
        let queue = engine.queue();
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
        let types = system.types.iter().map(|&of_atom| of_atom as f32);
        let types = collected(types, "types of atoms")?;
        Ok(Self {
            position: array(queue, system.positions.as_flattened())?,
            velocity: array(queue, system.velocities.as_flattened())?,
            force: zeros(stream, 3 * atoms)?,
            types: array(queue, &types)?,
            ids: array(queue, &system.ids)?,
            charges: array(queue, &system.charges)?,
            placed: zeros(stream, 3 * atoms)?,
            of_atoms: zeros(stream, PAIR_CHANNELS * atoms)?,
            spare: zeros(stream, 3 * atoms)?,
            spare_words: zeros(stream, atoms)?,
            partials: zeros(stream, Kernels::max_partials(atoms))?,
            totals: zeros(stream, PAIR_SLOTS + MOTION_SLOTS)?,
        })
    }

    fn moving(&mut self) -> Moving<'_> {
        Moving {
            position: &mut self.position,
            velocity: &mut self.velocity,
            force: &self.force,
            types: &self.types,
            placed: &mut self.placed,
            atoms: self.ids.len(),
        }
    }
}

/// The fields that a pair kernel reads of an atom: its type, then its charge.
fn pair_fields<'a>(
    kernel: &DeviceKernel,
    types: &'a DeviceBuffer<f32>,
    charges: &'a DeviceBuffer<f32>,
) -> Vec<DeviceField<'a>> {
    let fields = [types, charges].map(|values| DeviceField::new(values.as_view(), 1));
    fields.into_iter().take(kernel.source_channels).collect()
}

fn vectors<T: Copy>(values: &[T]) -> Vec<[T; 3]> {
    values.as_chunks().0.to_vec()
}

/// A failed call to the driver.
fn moving(error: DriverError) -> Error {
    GpuError::driver("moving atoms to or from the GPU", error).into()
}
