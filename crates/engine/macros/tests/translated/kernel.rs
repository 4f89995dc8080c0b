//! Kernels that use most of the subset: their texts give what Rust gives for random and extreme
//! pairs, and compile for all GPUs.

use super::common;
use glam::Vec3;
use nearfield_gpu::{Arch, PairProgram};
use nearfield_pairs::{Channels, Pair, PairKernel, Reduce, cuda_source, pair_fn, pair_kernel};
use nearfield_testkit::kernels::Conformance;

/// The values of a point.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Body {
    velocity: [f32; 3],
    density: f32,
    normal: Vec3,
    short: (f32, [f32; 2]),
}

/// The contribution of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Push {
    force: Vec3,
    heat: f32,
    sums: [f32; 2],
}

/// A smoothing function.
#[derive(Debug, Clone, Copy)]
struct Smooth {
    inverse: f32,
    scale: f32,
}

impl Smooth {
    #[pair_fn(crate = nearfield_pairs)]
    fn weight(&self, d: f32) -> f32 {
        let q = (1.0 - d * self.inverse).max(0.0);
        self.scale * squared(q) * self.normalised(q)
    }

    #[pair_fn(crate = nearfield_pairs)]
    fn normalised(&self, q: f32) -> f32 {
        4.0 * q + self.half()
    }

    fn half(&self) -> f32 {
        0.5 * self.scale
    }
}

#[pair_fn(crate = nearfield_pairs)]
fn squared(x: f32) -> f32 {
    x * x
}

const FLOOR: f32 = 1e-6;

#[derive(Debug, Clone)]
struct Contact {
    kernel: Smooth,
    stiffness: f32,
    exponent: u32,
    offset: i32,
    rough: bool,
    gravity: Vec3,
    table: [[f32; 2]; 4],
}

impl Contact {
    #[pair_fn(crate = nearfield_pairs)]
    fn raised(&self, base: f32) -> f32 {
        let (mut power, mut square) = (1.0f32, base);
        for bit in 0..6 {
            power *= match self.exponent >> bit & 1 {
                1 => square,
                _ => 1.0,
            };
            square *= square;
        }
        power
    }
}

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Contact {
    type Target = (Body, f32);
    type Source = Body;
    type Output = Push;

    #[inline(always)]
    fn pair(&self, pair: Pair, (a, kind): (Body, f32), b: Body) -> Push {
        let distance = pair.d2.sqrt().max(FLOOR);
        let weight = self.kernel.weight(distance) + self.raised(distance);
        let [x, y, z] = pair.d;
        let n = Vec3::new(x, y, z) / distance;
        let approach: f32 = pair
            .d
            .iter()
            .zip(a.velocity.iter().zip(&b.velocity))
            .map(|(d, (v, w))| d * (w - v))
            .sum();
        let [slope, start] = self.table[(kind.clamp(0.0, 3.0)) as usize];
        let moving = a.velocity != b.velocity || !(a.short == b.short);
        let friction = if self.rough && moving && approach < 0.0 {
            let tangent = n.cross(a.normal);
            tangent.length() * slope
        } else {
            start
        };
        if a.density.is_nan() {
            return Push {
                force: self.gravity,
                heat: 0.0,
                sums: [weight; 2],
            };
        }
        let mut sums = [0.0; 2];
        for k in 0..2 {
            sums[k] =
                a.short.1[k] - b.short.1[k] + a.short.0.mul_add(b.short.0, self.offset as f32);
        }
        let pressure = self.stiffness * (a.density / b.density);
        Push {
            force: n * (pressure * weight) + self.gravity * friction,
            heat: -approach * friction + self.gravity[2],
            sums,
        }
    }
}

/// A kernel with a constant parameter, whose text is not kept, and another reduction.
struct Nearest<const POWER: i32>;

#[pair_kernel(crate = nearfield_pairs)]
impl<const POWER: i32> PairKernel for Nearest<POWER> {
    type Target = ();
    type Source = [f32; 2];
    type Output = (f32, f32);
    const REDUCE: Reduce = Reduce::Min;

    fn pair(&self, pair: Pair, _: (), [a, b]: [f32; 2]) -> (f32, f32) {
        (pair.d2.powi(POWER), a * b)
    }
}

/// Values that are often equal.
type Signs = ((f32, [f32; 2], f32, u32, i32), f32);

#[pair_fn(crate = nearfield_pairs)]
fn signs([a, b, c, d]: [f32; 4]) -> Signs {
    let many = (
        a.signum(),
        [b.signum(), 1.0],
        2.0,
        c.signum() as u32,
        b.signum() as i32,
    );
    (many, d.signum())
}

/// Which comparisons of tuples and arrays hold.
struct Comparisons;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Comparisons {
    type Target = [f32; 4];
    type Source = [f32; 4];
    type Output = ([f32; 6], f32);

    fn pair(&self, _: Pair, a: [f32; 4], b: [f32; 4]) -> ([f32; 6], f32) {
        let (a, b) = (signs(a), signs(b));
        let whole = [a == b, a != b, a < b, a <= b, a > b, a >= b];
        let parts = a.0 < b.0 || a.0.1 >= b.0.1;
        (
            whole.map(|holds| if holds { 1.0 } else { 0.0 }),
            f32::from(parts),
        )
    }
}

fn contact() -> Contact {
    Contact {
        kernel: Smooth {
            inverse: 0.8,
            scale: 1.3,
        },
        stiffness: 40.0,
        exponent: 11,
        offset: -7,
        rough: true,
        gravity: Vec3::new(0.0, -0.0, -9.81),
        table: [[0.1, 0.2], [0.3, -0.4], [f32::INFINITY, 0.5], [0.6, 0.7]],
    }
}

/// Compares a kernel with its text for random and extreme pairs.
fn compare<K: PairKernel>(kernel: &K, pairs: usize) {
    Conformance::new(kernel).pairs(pairs).as_cpp().unwrap();
}

#[test]
fn a_kernel_gives_the_same_bits_for_random_and_extreme_pairs() {
    compare(&contact(), 100_000);
    compare(&Nearest::<3>, 10_000);
    compare(&Nearest::<-1>, 10_000);
    compare(&Comparisons, 10_000);
}

#[test]
fn a_kernel_that_changes_has_the_same_text_and_other_uniforms() {
    let (one, mut other) = (contact(), contact());
    other.exponent = 12;
    let (a, b) = (one.cuda().unwrap(), other.cuda().unwrap());
    assert_eq!(a.parts().text, b.parts().text);
    assert_ne!(a.parts().uniforms, b.parts().uniforms);
    compare(&other, 1000);
    // Types of one generic kernel have texts of their own.
    assert_ne!(cuda_source(&Nearest::<1>), cuda_source(&Nearest::<2>));
}

#[test]
fn texts_keep_the_users_names() {
    let text = cuda_source(&contact()).unwrap();
    for part in [
        "const float distance_ = nf::max(nf::sqrt(pair_.d2), FLOOR_);",
        "const float FLOOR_ = 1e-6f;",
        "const float pressure_ = self_stiffness * (a_.density_ / b_.density_);",
        "struct Body_ {",
        "    nf::array<float, 3> velocity_;",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(text.matches("float squared_(").count(), 1);
}

#[test]
fn structs_have_the_channels_of_their_fields() {
    assert_eq!((Body::COUNT, Push::COUNT), (10, 6));
    let body = Body::read(|k| k as f32);
    assert_eq!(body.velocity, [0.0, 1.0, 2.0]);
    assert_eq!(body.normal, Vec3::new(4.0, 5.0, 6.0));
    assert_eq!(body.short, (7.0, [8.0, 9.0]));
    let mut channels = [0.0; 10];
    body.write(|k, value| channels[k] = value);
    assert_eq!(channels, std::array::from_fn(|k| k as f32));
}

/// Compiles for every architecture that is checked, where the compiler is there.
#[test]
fn texts_compile_for_every_gpu() {
    let Some(compiler) = common::compiler() else {
        return;
    };
    let programs = [
        PairProgram::of(&contact()).unwrap().0.program(),
        PairProgram::of(&Nearest::<2>).unwrap().0.program(),
        PairProgram::of(&Comparisons).unwrap().0.program(),
    ];
    for program in &programs {
        for arch in Arch::CHECKED {
            compiler.compile(program, arch).unwrap();
        }
    }
}
