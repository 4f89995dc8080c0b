//! The kernels of dynamics.cu, and the pair kernels of a force field.
//!
//! Arguments are those that dynamics.cu declares. Each of its kernels gets arrays that are as long
//! as the number of atoms asks for (the owner, [`super::Arrays`], allocates them once and never
//! changes them), and all work is on the engine's stream.

use crate::{Cell, Error, ForceField, System, constants};
use nearfield::{
    PairKernel,
    device::{
        DeviceBuffer, DeviceEngine, DeviceKernel, DeviceViewMut,
        programs::{KernelArgument, LaunchShape, Program, UserKernel},
    },
    kernels::{Forces, Interactions, Sum},
};
use nearfield_shared::{Header, Source, shared_structs};

/// Threads of a block.
const THREADS: usize = constants::THREADS as usize;
/// Numbers that [`PairKernels::interactions`] gives an atom.
pub(super) const PAIR_CHANNELS: usize = constants::PAIR_CHANNELS as usize;
/// Sums of these: energy and virial.
pub(super) const PAIR_SLOTS: usize = constants::PAIR_SLOTS as usize;
/// Sums of the motion: kinetic energy and momentum.
pub(super) const MOTION_SLOTS: usize = constants::MOTION_SLOTS as usize;

shared_structs! {
    /// `Box` of dynamics.cu.
    #[derive(Debug, Clone, Copy)]
    struct DeviceBox as Box {
        vectors: [[f64; 3]; 3],
        inverse: [[f64; 3]; 3],
    }

    /// `Masses` of dynamics.cu.
    #[derive(Debug, Clone, Copy)]
    struct Masses {
        inverse: [f64; MAX_TYPES],
    }
}

/// Types of atoms that a launch can carry the masses of: all that a table of potentials can have.
const MAX_TYPES: usize = constants::MAX_TYPES as usize;
const _: () = assert!(MAX_TYPES == nearfield::kernels::MAX_TYPES);

// SAFETY: plain numbers, as dynamics.cu declares them: its programs assert it.
unsafe impl KernelArgument for DeviceBox {}
// SAFETY: as above.
unsafe impl KernelArgument for Masses {}

/// Atoms on the device (crate `nearfield-md`): kicks and drifts, and sums over atoms. `NF_TILTED`
/// makes a program of it.
pub const DYNAMICS: Source = Source {
    name: "dynamics",
    text: include_str!("../../../../../kernels/cuda/md/dynamics.cu"),
    headers: &[Header::new("constants.cuh", constants::HEADER)],
    layouts: &[DeviceBox::LAYOUT, Masses::LAYOUT],
    launches_children: false,
    kernels: &["pair_sums", "motion", "total", "advance"],
};

/// The kernels of dynamics.cu, loaded for a box.
pub(super) struct Kernels {
    in_box: DeviceBox,
    masses: Masses,
    pair_sums: UserKernel,
    motion: UserKernel,
    total: UserKernel,
    advance: UserKernel,
}

/// The pair kernels of a force field, prepared for every step.
pub(super) struct PairKernels {
    /// The force on every atom.
    pub(super) forces: DeviceKernel,
    /// Half the energy and half the virial of its pairs, and the force.
    pub(super) interactions: DeviceKernel,
}

/// Arrays that the kernel `advance` reads and writes.
pub(super) struct Moving<'a> {
    pub(super) position: &'a mut DeviceBuffer<f64>,
    pub(super) velocity: &'a mut DeviceBuffer<f64>,
    pub(super) force: &'a DeviceBuffer<f32>,
    pub(super) types: &'a DeviceBuffer<f32>,
    pub(super) placed: &'a mut DeviceBuffer<f32>,
    pub(super) atoms: usize,
}

impl PairKernels {
    /// The kernels of a force field, which read the type of an atom and its charge, as far as these
    /// matter.
    pub(super) fn of(field: &ForceField) -> Result<Self, Error> {
        let table = &field.lennard_jones;
        match (field.coulomb, table.plain()) {
            (None, Some(plain)) => Self::both(&Forces(plain), &Interactions(plain)),
            (None, None) => Self::both(&Forces(table), &Interactions(table)),
            (Some(charges), _) => {
                let both = Sum(table, charges);
                Self::both(&Forces(both), &Interactions(both))
            }
        }
    }

    fn both(forces: &impl PairKernel, interactions: &impl PairKernel) -> Result<Self, Error> {
        Ok(Self {
            forces: DeviceKernel::of(forces)?,
            interactions: DeviceKernel::of(interactions)?,
        })
    }
}

/// The program for a box, for checks without a GPU too.
fn program(is_tilted: bool) -> Program {
    Program::from(&DYNAMICS).define("NF_TILTED", is_tilted)
}

/// The programs of every kind of box, for checks and for caches that are filled in advance.
pub fn programs() -> Vec<Program> {
    [false, true].map(program).to_vec()
}

impl Kernels {
    pub(super) fn load(engine: &DeviceEngine, system: &System) -> Result<Self, Error> {
        let module = engine.load(&program(system.cell().is_tilted()))?;
        let kernel = |name| UserKernel::of(&module, name, engine.queue()).map_err(Error::from);
        let mut masses = Masses {
            inverse: [1.0; MAX_TYPES],
        };
        for (inverse, mass) in masses.inverse.iter_mut().zip(&system.masses) {
            *inverse = 1.0 / mass;
        }
        Ok(Self {
            in_box: DeviceBox::of(system.cell()),
            masses,
            pair_sums: kernel("pair_sums")?,
            motion: kernel("motion")?,
            total: kernel("total")?,
            advance: kernel("advance")?,
        })
    }

    /// Maximum number of partial sums that a kernel gives for `atoms` atoms.
    pub(super) fn max_partials(atoms: usize) -> usize {
        PAIR_SLOTS.max(MOTION_SLOTS) * blocks(atoms)
    }

    /// Energy and virial of all pairs, from what [`PairKernels::interactions`] gave every atom.
    pub(super) fn pair_sums(
        &self,
        of_atoms: &DeviceBuffer<f32>,
        atoms: usize,
        partials: &mut DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let (count, blocks) = (atoms as u32, blocks(atoms));
        let arguments = (of_atoms, &count, &mut *partials);
        // SAFETY: the arguments are those that dynamics.cu declares; `Arrays` are as long as the
        // number of atoms asks for.
        unsafe { self.pair_sums.start(shape_of(blocks), arguments) }?;
        self.total(partials, blocks, PAIR_SLOTS, totals)
    }

    /// Kinetic energy and momentum.
    pub(super) fn motion(
        &self,
        velocity: &DeviceBuffer<f64>,
        types: &DeviceBuffer<f32>,
        atoms: usize,
        partials: &mut DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let (count, blocks) = (atoms as u32, blocks(atoms));
        let arguments = (velocity, types, &count, &self.masses, &mut *partials);
        // SAFETY: as above.
        unsafe { self.motion.start(shape_of(blocks), arguments) }?;
        self.total(partials, blocks, MOTION_SLOTS, totals)
    }

    /// Kicks, drifts, and places atoms in the box.
    pub(super) fn advance(&self, moving: Moving<'_>, kick: f64, drift: f64) -> Result<(), Error> {
        let atoms = moving.atoms as u32;
        let arguments = (
            moving.position,
            moving.velocity,
            moving.force,
            moving.types,
            moving.placed,
            &atoms,
            &kick,
            &drift,
            &self.in_box,
            &self.masses,
        );
        // SAFETY: as above.
        Ok(unsafe {
            self.advance
                .start(shape_of(blocks(moving.atoms)), arguments)
        }?)
    }

    fn total(
        &self,
        partials: &DeviceBuffer<f64>,
        blocks: usize,
        slots: usize,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let blocks = blocks as u32;
        let arguments = (partials, &blocks, totals);
        // SAFETY: as above.
        Ok(unsafe { self.total.start(shape_of(slots), arguments) }?)
    }
}

impl DeviceBox {
    fn of(cell: &Cell) -> Self {
        Self {
            vectors: cell.vectors().map(Option::unwrap_or_default),
            inverse: cell.inverse().map(Option::unwrap_or_default),
        }
    }
}

fn shape_of(blocks: usize) -> LaunchShape {
    LaunchShape::of(blocks as u32, THREADS as u32)
}

fn blocks(threads: usize) -> usize {
    threads.div_ceil(THREADS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield::kernels::{
        Coefficients, CutoffCoulomb, LennardJones, Mixing, Screening, Truncation,
    };

    #[test]
    fn every_force_field_has_pair_kernels_of_its_channels() {
        let one = Coefficients {
            epsilon: 1.0,
            sigma: 1.0,
        };
        let field = |types| {
            let types = vec![one; types];
            let plain = Truncation::Plain;
            let table = LennardJones::new(&types, Mixing::default(), &[], 2.5, plain);
            ForceField::from(table.unwrap())
        };
        let charges = CutoffCoulomb::new(1.0, 2.5, Screening::Plain);
        let fields = [field(1), field(2), field(2).with_coulomb(charges)];
        for (channels, field) in fields.iter().enumerate() {
            let kernels = PairKernels::of(field).unwrap();
            assert_eq!(kernels.forces.source_channels, channels);
            assert_eq!(kernels.forces.outputs, 3);
            assert_eq!(kernels.interactions.outputs, PAIR_CHANNELS);
        }
    }
}
