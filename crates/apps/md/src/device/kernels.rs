//! The kernels of dynamics.cu, one typed function each, and the only unsafe code of this crate.
//!
//! **What the functions rely on:** arrays have the lengths that the number of atoms passed with
//! them requires (their owner, [`super::Arrays`], allocates them once and never changes them),
//! lists are found by the engine for the same atoms, and all work is on the engine's stream.

use crate::{Cell, Error, ForceField, System, constants};
use nearfield::{
    device::{
        DeviceBuffer, DeviceEngine, DeviceListsView, DeviceViewMut,
        programs::{KernelArgument, LaunchShape, Program, UserKernel},
    },
    error::gpu::ErrorKind as GpuErrorKind,
    kernels::{
        Coefficients, Cuda, CudaParts, CutoffCoulomb, LennardJones, Mixing, PairPotential,
        Screening, Sum, Truncation,
    },
};
use nearfield_shared::{Header, Source, shared_structs};

/// Threads of a block.
const THREADS: usize = constants::THREADS as usize;
/// Threads that share an atom's list.
const LANES: usize = constants::LANES as usize;
/// Sums of a list: energy and virial.
pub(super) const PAIR_SLOTS: usize = constants::PAIR_SLOTS as usize;
/// Sums of the motion: kinetic energy and momentum.
pub(super) const MOTION_SLOTS: usize = constants::MOTION_SLOTS as usize;

shared_structs! {
    /// `Box` of dynamics.cu.
    #[derive(Debug, Clone, Copy)]
    struct DeviceBox as Box {
        vectors: [[f64; 3]; 3],
        inverse: [[f64; 3]; 3],
        single: [[f32; 3]; 3],
        single_inverse: [[f32; 3]; 3],
        r2: f32,
    }

    /// `Masses` of dynamics.cu.
    #[derive(Debug, Clone, Copy)]
    struct Masses {
        inverse: [f64; MAX_TYPES],
    }

    /// `Uniforms` of dynamics.cu.
    #[derive(Debug, Clone, Copy)]
    struct Uniforms {
        values: [f32; MAX_UNIFORMS],
    }
}

/// Parameters of a potential that a launch can carry.
const MAX_UNIFORMS: usize = constants::MAX_UNIFORMS as usize;
/// Types of atoms that a launch can carry the masses of: all that a table of potentials can have.
const MAX_TYPES: usize = constants::MAX_TYPES as usize;
const _: () = assert!(MAX_TYPES == nearfield::kernels::MAX_TYPES);

// SAFETY: plain numbers, as dynamics.cu declares them: its programs assert it.
unsafe impl KernelArgument for DeviceBox {}
// SAFETY: as above.
unsafe impl KernelArgument for Masses {}
// SAFETY: as above.
unsafe impl KernelArgument for Uniforms {}

/// Atoms on the device (crate `nearfield-md`): forces over lists, kicks and drifts. `NF_POTENTIAL`,
/// `NF_CHANNELS`, `NF_TILTED` and a potential's text make a program of it.
pub const DYNAMICS: Source = Source {
    name: "dynamics",
    text: include_str!("../../../../../kernels/cuda/md/dynamics.cu"),
    headers: &[
        Header::new("constants.cuh", constants::HEADER),
        CudaParts::HEADERS[0],
    ],
    layouts: &[DeviceBox::LAYOUT, Masses::LAYOUT, Uniforms::LAYOUT],
    launches_children: false,
    kernels: &[
        "forces",
        "interactions",
        "motion",
        "total",
        "advance",
        "enter",
    ],
};

/// The kernels, loaded for a force field and a box.
pub(super) struct Kernels {
    settings: DeviceBox,
    masses: Masses,
    uniforms: Uniforms,
    forces: UserKernel,
    interactions: UserKernel,
    motion: UserKernel,
    total: UserKernel,
    advance: UserKernel,
    enter: UserKernel,
}

/// Arrays that a force kernel reads and writes.
pub(super) struct Pairs<'a> {
    pub(super) at: &'a DeviceBuffer<f32>,
    pub(super) charges: &'a DeviceBuffer<f32>,
    pub(super) lists: DeviceListsView<'a>,
    pub(super) force: &'a mut DeviceBuffer<f32>,
    pub(super) atoms: usize,
}

/// Arrays that the kernel `advance` reads and writes.
pub(super) struct Moving<'a> {
    pub(super) position: &'a mut DeviceBuffer<f64>,
    pub(super) velocity: &'a mut DeviceBuffer<f64>,
    pub(super) force: &'a DeviceBuffer<f32>,
    pub(super) types: &'a DeviceBuffer<u32>,
    pub(super) boxes: &'a DeviceBuffer<i32>,
    pub(super) built: &'a DeviceBuffer<f32>,
    pub(super) at: &'a mut DeviceBuffer<f32>,
    pub(super) atoms: usize,
}

/// Where atoms are brought into the box.
pub(super) struct Entering<'a> {
    pub(super) position: &'a DeviceBuffer<f64>,
    pub(super) types: &'a DeviceBuffer<u32>,
    pub(super) boxes: &'a mut DeviceBuffer<i32>,
    pub(super) at: &'a mut DeviceBuffer<f32>,
    pub(super) built: &'a mut DeviceBuffer<f32>,
    pub(super) placed: &'a mut DeviceBuffer<f32>,
    pub(super) atoms: usize,
}

/// The potential as CUDA text, and how many numbers of a point it reads.
fn potential(field: &ForceField) -> Option<(Cuda, usize)> {
    let table = &field.lennard_jones;
    match (field.coulomb, table.plain()) {
        (None, Some(plain)) => Some((plain.cuda()?, 0)),
        (None, None) => Some((table.cuda()?, 1)),
        (Some(charges), _) => Some((Sum(table, charges).cuda()?, 2)),
    }
}

/// The text for a force field in a box, for checks without a GPU too.
pub(super) fn program(field: &ForceField, cell: &Cell) -> Result<(Program, Vec<f32>), Error> {
    let refused = |reason: &str| {
        let refused = GpuErrorKind::BadProgram {
            program: "dynamics".into(),
            reason: reason.into(),
        };
        Error::from(nearfield::Error::from(nearfield::ErrorKind::Gpu(
            refused.into(),
        )))
    };
    let (cuda, channels) = potential(field).ok_or_else(|| refused("the potential has no text"))?;
    let cuda = cuda.into_parts();
    if cuda.uniforms.len() > MAX_UNIFORMS {
        return Err(refused("the potential has too many parameters"));
    }
    let program = Program::from(&DYNAMICS)
        .define("NF_POTENTIAL", &cuda.function)
        .define("NF_CHANNELS", channels)
        .define("NF_TILTED", cell.is_tilted())
        .user_text(cuda.name.as_ref(), cuda.text.as_ref());
    Ok((program, cuda.uniforms))
}

/// The programs of every kind of force field in every kind of box, for checks and for caches that
/// are filled in advance.
///
/// # Errors
/// The errors of potentials, none of which occurs here.
pub fn programs() -> Result<Vec<Program>, Error> {
    let one = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let tilted = [[8.0, 0.0, 0.0], [1.0, 8.0, 0.0], [0.0, 2.0, 8.0]].map(Some);
    let field = |types| {
        let types = vec![one; types];
        let table = LennardJones::new(&types, Mixing::default(), &[], 2.5, Truncation::Plain)?;
        Ok::<_, Error>(ForceField::from(table))
    };
    // Charged atoms have kinds, so one kind of them has the program of several.
    let charges = CutoffCoulomb::new(1.0, 2.5, Screening::Plain);
    let fields = [field(1)?, field(2)?, field(2)?.with_coulomb(charges)];
    let cells = [Cell::cube(8.0)?, Cell::new(tilted)?];
    let each = (fields.iter()).flat_map(|field| cells.iter().map(move |cell| (field, cell)));
    each.map(|(field, cell)| Ok(program(field, cell)?.0))
        .collect()
}

impl Kernels {
    pub(super) fn load(
        engine: &DeviceEngine,
        field: &ForceField,
        system: &System,
    ) -> Result<Self, Error> {
        let (program, parameters) = program(field, system.cell())?;
        let module = engine.load(&program)?;
        let kernel = |name| UserKernel::of(&module, name, engine.queue()).map_err(Error::from);
        let mut uniforms = Uniforms {
            values: [0.0; MAX_UNIFORMS],
        };
        uniforms.values[..parameters.len()].copy_from_slice(&parameters);
        let mut masses = Masses {
            inverse: [1.0; MAX_TYPES],
        };
        for (inverse, mass) in masses.inverse.iter_mut().zip(&system.masses) {
            *inverse = 1.0 / mass;
        }
        Ok(Self {
            settings: DeviceBox::of(system.cell(), field.cutoff()),
            masses,
            uniforms,
            forces: kernel("forces")?,
            interactions: kernel("interactions")?,
            motion: kernel("motion")?,
            total: kernel("total")?,
            advance: kernel("advance")?,
            enter: kernel("enter")?,
        })
    }

    /// Maximum number of partial sums that a kernel gives for `atoms` atoms.
    pub(super) fn max_partials(atoms: usize) -> usize {
        (PAIR_SLOTS * blocks(atoms * LANES)).max(MOTION_SLOTS * blocks(atoms))
    }

    /// Forces over the lists.
    pub(super) fn forces(&self, pairs: Pairs<'_>) -> Result<(), Error> {
        let atoms = pairs.atoms as u32;
        let arguments = (
            pairs.at,
            pairs.charges,
            &pairs.lists.start,
            &pairs.lists.count,
            &pairs.lists.entries,
            &atoms,
            pairs.force,
            &self.settings,
            &self.uniforms,
        );
        // SAFETY: the arguments are those that dynamics.cu declares; `Arrays` are as long as the
        // number of atoms asks for.
        Ok(unsafe {
            self.forces
                .start(shape_of(blocks(pairs.atoms * LANES)), arguments)
        }?)
    }

    /// The same forces, and energy and virial of all pairs.
    pub(super) fn interactions(
        &self,
        pairs: Pairs<'_>,
        partials: &mut DeviceBuffer<f64>,
        totals: &mut DeviceViewMut<'_, f64>,
    ) -> Result<(), Error> {
        let (atoms, blocks) = (pairs.atoms as u32, blocks(pairs.atoms * LANES));
        let arguments = (
            pairs.at,
            pairs.charges,
            &pairs.lists.start,
            &pairs.lists.count,
            &pairs.lists.entries,
            &atoms,
            pairs.force,
            &self.settings,
            &self.uniforms,
            &mut *partials,
        );
        // SAFETY: as above.
        unsafe { self.interactions.start(shape_of(blocks), arguments) }?;
        self.total(partials, blocks, PAIR_SLOTS, totals)
    }

    /// Kinetic energy and momentum.
    pub(super) fn motion(
        &self,
        velocity: &DeviceBuffer<f64>,
        types: &DeviceBuffer<u32>,
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

    /// Kicks, drifts, and gives the largest squared displacement since lists were built as the bits
    /// of an `f32`.
    pub(super) fn advance(
        &self,
        moving: Moving<'_>,
        kick: f64,
        drift: f64,
        moved: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Error> {
        let atoms = moving.atoms as u32;
        let arguments = (
            moving.position,
            moving.velocity,
            moving.force,
            moving.types,
            moving.boxes,
            moving.built,
            moving.at,
            &atoms,
            &kick,
            &drift,
            &self.settings,
            &self.masses,
            moved,
        );
        // SAFETY: as above.
        Ok(unsafe {
            self.advance
                .start(shape_of(blocks(moving.atoms)), arguments)
        }?)
    }

    /// Brings atoms into the box.
    pub(super) fn enter(&self, entering: Entering<'_>) -> Result<(), Error> {
        let atoms = entering.atoms as u32;
        let arguments = (
            entering.position,
            entering.types,
            &atoms,
            &self.settings,
            entering.boxes,
            entering.at,
            entering.built,
            entering.placed,
        );
        // SAFETY: as above.
        Ok(unsafe {
            self.enter
                .start(shape_of(blocks(entering.atoms)), arguments)
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
    fn of(cell: &Cell, cutoff: f64) -> Self {
        let vectors = cell.vectors().map(Option::unwrap_or_default);
        let inverse = cell.inverse().map(Option::unwrap_or_default);
        let single = |rows: [[f64; 3]; 3]| rows.map(|row| row.map(|x| x as f32));
        let cutoff = cutoff as f32;
        Self {
            vectors,
            inverse,
            single: single(vectors),
            single_inverse: single(inverse),
            r2: cutoff * cutoff,
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
    use nearfield_gpu::{Arch, Compiler, Search};

    #[test]
    fn the_kernels_compile_for_every_kind_of_force_field() {
        let required = std::env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
        let compiler = match Compiler::find(&Search::from_env(), None) {
            Ok(compiler) => compiler,
            Err(error) => {
                assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}");
                return;
            }
        };
        let programs = programs().unwrap();
        assert_eq!(programs.len(), 6);
        for (number, program) in programs.iter().enumerate() {
            // Variants differ only in arithmetic, so one represents all on other GPUs.
            let archs = if number == 0 {
                &Arch::CHECKED[..]
            } else {
                &[Arch::new(90)]
            };
            for &arch in archs {
                let code = compiler.compile(program, arch).unwrap();
                let holds = |kernel: &&str| {
                    let mut windows = code.windows(kernel.len());
                    windows.any(|window| window == kernel.as_bytes())
                };
                assert!(DYNAMICS.kernels.iter().all(holds), "{arch}");
            }
        }
    }
}
