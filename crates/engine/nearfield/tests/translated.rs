//! Translated kernels of a crate that knows the library only.

#![forbid(unsafe_code)]

#[allow(dead_code, reason = "its program is not run")]
#[path = "../../../../examples/06_adaptive_radii.rs"]
mod adaptive_radii;
#[path = "common/functions.rs"]
mod functions;
#[path = "common/kinds.rs"]
mod kinds;
#[path = "common/with_text.rs"]
mod with_text;

use nearfield::kernels::{
    Channels, EnergyForce, Forces, Images, Indices, Interactions, PairPotential, Random,
    cuda_source, unit_variance,
};
use nearfield::prelude::*;
use nearfield_testkit::kernels::Conformance;
use with_text::Visit;

/// A point of granular flow.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
struct Grain {
    velocity: [f32; 3],
    mass: f32,
}

#[nearfield::pair_fn]
fn overlap(radius: f32, distance: f32) -> f32 {
    (radius - distance).max(0.0)
}

struct Collision {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Collision {
    type Target = ();
    type Source = Grain;
    type Output = Grain;

    fn pair(&self, pair: Pair, _: (), other: Grain) -> Grain {
        let overlap = overlap(self.radius, pair.d2.sqrt());
        Grain {
            velocity: other.velocity.map(|v| v * overlap),
            mass: other.mass,
        }
    }
}

#[test]
fn structs_are_read_from_one_array_per_field_and_given_back() {
    let points = [[0.0f32, 0.0, 0.0], [0.5, 0.0, 0.0], [9.0, 0.0, 0.0]];
    let mut engine = Engine::builder(1.0).device(Device::Cpu).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let velocities = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    let masses = [10.0f32, 20.0, 30.0];
    let kernel = Collision { radius: 1.0 };
    let results = engine
        .traverse(&kernel, set, set)
        .sources((&velocities, &masses))
        .run()
        .unwrap();
    let expected = Grain {
        velocity: [2.0, 2.5, 3.0],
        mass: 20.0,
    };
    assert_eq!(results[0], expected);
    assert_eq!(results[2].mass, 0.0);
}

#[test]
fn the_text_is_for_reading() {
    let text = cuda_source(&Collision { radius: 1.0 }).unwrap();
    assert!(
        text.contains(
            "const float overlap_ = translated::overlap_(self_radius, nf::sqrt(pair_.d2));"
        )
    );
    assert!(text.contains("nf::array<float, 3> velocity_;"));
}

/// A suspended grain.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
struct Suspended {
    velocity: glam::Vec3,
    spin: glam::Vec3,
    radius: f32,
    kind: u32,
}

/// Force and torque on a grain, and the heat of its contacts.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
struct Load {
    force: glam::Vec3,
    torque: glam::Vec3,
    heat: f32,
}

/// Contact, lubrication and a random force, such as a user would write: no other file has it.
struct Suspension {
    stiffness: [f32; 3],
    friction: [[f32; 2]; 2],
    viscosity: f32,
    range: f32,
    flow: glam::Vec3,
    steps: u32,
    random: Random,
}

const SMALLEST_GAP: f32 = 1.0e-4;

impl Suspension {
    #[nearfield::pair_fn]
    #[inline(always)]
    fn lubrication(&self, gap: f32, reach: f32) -> f32 {
        let gap = gap.clamp(SMALLEST_GAP, reach);
        match self.steps {
            0 => 0.0,
            1 | 2 => self.viscosity / gap,
            _ => {
                let mut sum = 0.0;
                for k in 0..4 {
                    if k as u32 >= self.steps {
                        break;
                    }
                    sum += self.viscosity / (gap + 0.125 * k as f32);
                }
                sum
            }
        }
    }
}

#[nearfield::pair_kernel]
impl PairKernel for Suspension {
    type Target = (u32, Suspended);
    type Source = (u32, Suspended);
    type Output = Load;

    #[inline(always)]
    fn pair(&self, pair: Pair, (i, a): (u32, Suspended), (j, b): (u32, Suspended)) -> Load {
        let distance = pair.d2.sqrt().max(SMALLEST_GAP);
        let normal = glam::Vec3::from(pair.d) / distance;
        let gap = distance - a.radius - b.radius;
        let arm = normal * a.radius;
        let slip = b.velocity - a.velocity - a.spin.cross(arm) - b.spin.cross(normal * b.radius);
        let approach = slip.dot(normal);
        let tangent = slip - normal * approach;
        let [soft, hard, _] = self.stiffness;
        let push = if gap < 0.0 {
            let depth = -gap;
            soft * depth + hard * depth * depth.sqrt()
        } else if gap < self.range {
            -approach.min(0.0) * self.lubrication(gap, self.range)
        } else {
            0.0
        };
        let friction = self.friction[(a.kind & 1) as usize][(b.kind & 1) as usize];
        let rub = tangent.normalize_or_zero() * (friction * push).min(tangent.length());
        let [bits, _, _, _] = self.random.of_pair(i, j, 0);
        let noise = unit_variance(bits) * self.viscosity;
        let force = rub - normal * (push + noise) + self.flow.lerp(a.velocity, 0.5);
        Load {
            force,
            torque: arm.cross(rub),
            heat: rub.length_squared().min(f32::MAX),
        }
    }
}

fn suspension() -> Suspension {
    Suspension {
        stiffness: [40.0, 900.0, 0.0],
        friction: [[0.3, 0.5], [0.5, 0.1]],
        viscosity: 0.02,
        range: 0.4,
        flow: glam::Vec3::new(0.1, 0.0, -0.2),
        steps: 3,
        random: Random::new(5, 6),
    }
}

#[test]
fn a_kernel_that_nobody_has_seen_gives_the_same_bits_as_its_text() {
    let pairs = Conformance::new(&suspension()).pairs(100_000).as_cpp();
    assert!(matches!(pairs.unwrap(), 0 | 100_000));
    // A kernel and a text that differ are told apart.
    let mut other = suspension();
    other.viscosity *= 1.000_001;
    struct Swapped(Suspension, Suspension);
    impl PairKernel for Swapped {
        type Target = (u32, Suspended);
        type Source = (u32, Suspended);
        type Output = Load;

        fn pair(&self, pair: Pair, a: Self::Target, b: Self::Source) -> Load {
            self.0.pair(pair, a, b)
        }

        fn cuda(&self) -> Option<nearfield::kernels::Cuda> {
            self.1.cuda()
        }
    }
    let swapped = Swapped(suspension(), other);
    if let Ok(pairs) = Conformance::new(&swapped).pairs(1000).as_cpp() {
        assert_eq!(pairs, 0, "{pairs} pairs of different kernels agree");
    }
}

/// Screened charges with a soft core: a potential that the library does not know.
#[derive(Debug, Clone, Copy)]
struct Screened {
    strength: f32,
    inverse_length: f32,
    core2: f32,
}

#[nearfield::pair_kernel]
impl PairPotential for Screened {
    type Point = f32;

    #[inline(always)]
    fn evaluate(&self, d2: f32, a: f32, b: f32) -> EnergyForce {
        let softened = d2 + self.core2;
        let inverse = softened.sqrt().recip();
        let screening = (1.0 + softened * self.inverse_length).recip();
        let energy = self.strength * a * b * inverse * screening;
        let slope = inverse * inverse + 2.0 * self.inverse_length * screening;
        EnergyForce {
            energy,
            force_over_r: energy * slope,
        }
    }
}

#[test]
fn a_potential_of_a_user_gives_the_same_bits_as_its_text() {
    let potential = Screened {
        strength: 2.5,
        inverse_length: 0.7,
        core2: 0.01,
    };
    let forces = Conformance::new(&Forces(potential)).pairs(20_000).as_cpp();
    assert!(matches!(forces.unwrap(), 0 | 20_000));
    let both = Interactions(potential);
    let found = Conformance::new(&both).pairs(20_000).as_cpp();
    assert!(matches!(found.unwrap(), 0 | 20_000));
    let text = cuda_source(&both).unwrap();
    assert!(text.contains("self_inverse_length"), "{text}");
}

/// The engine gives every isolated pair what the kernel gives it.
#[test]
fn an_engine_evaluates_isolated_pairs() {
    let kernel = suspension();
    let compared = Conformance::new(&kernel).pairs(2000).by_engine(|points| {
        let mut engine = Engine::builder(1.0).device(Device::Cpu).build().unwrap();
        let targets = engine.add_point_set(&points.targets).unwrap();
        let sources = engine.add_point_set(&points.sources).unwrap();
        let [of_targets, of_sources] = points.fields();
        let loads = engine
            .traverse(&kernel, targets, sources)
            .targets(&of_targets[..])
            .sources(&of_sources[..])
            .run()
            .unwrap();
        let mut numbers = Vec::new();
        for load in loads {
            load.write(|_, number| numbers.push(number));
        }
        numbers
    });
    assert_eq!(compared.unwrap(), 2000);
}

/// Compiled as it is fused into a traversal, for every architecture that is checked.
#[cfg(feature = "gpu")]
#[test]
fn a_kernel_that_nobody_has_seen_compiles_for_every_gpu() {
    use nearfield_gpu::{Arch, Compiler, PairProgram, Search};
    let required = std::env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
    let compiler = match Compiler::find(&Search::from_env(), None) {
        Ok(compiler) => compiler,
        Err(error) => {
            assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}");
            return;
        }
    };
    let crossings = Crossings {
        images: Images::straight([4.0; 3]),
    };
    for (program, _) in [
        PairProgram::of(&suspension()).unwrap(),
        PairProgram::of(&crossings).unwrap(),
    ] {
        for arch in Arch::CHECKED {
            compiler.compile(&program.program(), arch).unwrap();
        }
    }
}

/// Counts pairs by image, and leaves out those of a point with larger indices.
struct Crossings {
    images: Images,
}

#[nearfield::pair_kernel]
impl PairKernel for Crossings {
    type Target = (u32, [f32; 3]);
    type Source = (u32, [f32; 3]);
    type Output = [f32; 3];

    #[inline(always)]
    fn pair(&self, pair: Pair, (i, xi): Self::Target, (j, xj): Self::Source) -> [f32; 3] {
        let image = self.images.of(pair, xi, xj);
        let counts = if i == j { 0.0 } else { 1.0 };
        [image[0] as f32 * counts, image[1] as f32, image[2] as f32]
    }
}

#[test]
fn images_and_indices_are_those_of_the_pair() {
    let points = [[0.1f32, 0.0, 2.0], [3.9, 0.0, 2.0], [2.0, 2.0, 2.0]];
    let builder = Engine::builder(1.0).periodic([Some(4.0); 3]);
    let mut engine = builder.device(Device::Cpu).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let kernel = Crossings {
        images: Images::straight([4.0; 3]),
    };
    let found = engine
        .traverse(&kernel, set, set)
        .targets((Indices, &points))
        .sources((Indices, &points))
        .run()
        .unwrap();
    assert_eq!(found, [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0; 3]]);
    let compared = Conformance::new(&kernel).as_cpp().unwrap();
    assert!(matches!(compared, 0 | 10_000));
}

/// Compares the kernels of the library with their texts.
struct AsCpp;

impl Visit for AsCpp {
    fn visit<K: PairKernel>(&mut self, comparison: Conformance<'_, K>) {
        // Texts that were written by hand round otherwise.
        let translated = comparison.kernel().cuda().unwrap().parts().translated;
        let comparison = if translated {
            comparison
        } else {
            comparison.close(with_text::CLOSE)
        };
        comparison.as_cpp().unwrap();
    }
}

#[test]
fn kernels_of_the_library_give_what_their_texts_give() {
    with_text::each(&mut AsCpp);
}

/// Engines with a radius per point are the CPU backend's, so no GPU runs the text.
#[test]
fn the_kernel_of_adaptive_radii_gives_the_same_bits_as_its_text() {
    let unit = nearfield::kernels::WendlandC2::with_support(1.0);
    let kernel = adaptive_radii::Density { unit };
    Conformance::new(&kernel).pairs(100_000).as_cpp().unwrap();
}

#[test]
fn functions_are_as_accurate_as_stated() {
    functions::check_rust(200_000);
    let text = functions::compared(functions::ON_CPU, 200_000);
    text.as_cpp().unwrap();
}

#[test]
fn meanings_that_depend_on_types_and_names_are_rusts() {
    let kernel = kinds::Kinds {
        seed: 0x1234_5678_9abc_def0,
        place: 6,
    };
    let compared = Conformance::new(&kernel).pairs(200_000).as_cpp();
    assert!(matches!(compared.unwrap(), 0 | 200_000));
}
