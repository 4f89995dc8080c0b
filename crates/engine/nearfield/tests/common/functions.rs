//! The functions of `f32` that are not rounded correctly, and what they should give: the same in
//! `f64`, rounded once. Errors are counted in units in the last place.

use nearfield::{kernels::Cuda, prelude::*};
use nearfield_testkit::{
    kernels::{Close, Conformance, odd_or_random},
    random::Random,
};

/// Units that docs/adding/pair-kernel.md states for the CPU, …
pub(crate) const ON_CPU: u32 = 1;
/// … and for a GPU.
pub(crate) const ON_GPU: u32 = 4;

const NAMES: [&str; 11] = [
    "exp", "exp2", "ln", "log2", "log10", "sin", "cos", "tan", "tanh", "atan2", "powf",
];

/// All functions of two numbers of a target.
pub(crate) struct Functions;

#[nearfield::pair_kernel]
impl PairKernel for Functions {
    type Target = [f32; 2];
    type Source = ();
    type Output = [f32; 11];

    fn pair(&self, _: Pair, [a, b]: [f32; 2], _: ()) -> [f32; 11] {
        [
            a.exp(),
            a.exp2(),
            a.ln(),
            a.log2(),
            a.log10(),
            a.sin(),
            a.cos(),
            a.tan(),
            a.tanh(),
            a.atan2(b),
            a.powf(b),
        ]
    }
}

/// Their exact values, with the text of [`Functions`].
pub(crate) struct Exact;

impl PairKernel for Exact {
    type Target = [f32; 2];
    type Source = ();
    type Output = [f32; 11];

    fn pair(&self, _: Pair, [a, b]: [f32; 2], _: ()) -> [f32; 11] {
        let [a, b] = [a, b].map(f64::from);
        [
            a.exp(),
            a.exp2(),
            a.ln(),
            a.log2(),
            a.log10(),
            a.sin(),
            a.cos(),
            a.tan(),
            a.tanh(),
            a.atan2(b),
            a.powf(b),
        ]
        .map(|value| value as f32)
    }

    fn cuda(&self) -> Option<Cuda> {
        Functions.cuda()
    }
}

/// Arguments of every size, and those for which most results are ordinary numbers.
fn arguments(random: &mut Random) -> [f32; 2] {
    let odd = [odd_or_random(random), odd_or_random(random)];
    match random.below(4) {
        0 => odd,
        1 => [random.between(0.0, 40.0) as f32, odd[1]],
        2 => [0; 2].map(|_| random.between(-100.0, 100.0) as f32),
        _ => [
            random.between(-20.0, 20.0).exp() as f32,
            random.between(-10.0, 10.0) as f32,
        ],
    }
}

/// The comparison of the text with what it should give.
pub(crate) fn compared(units: u32, pairs: usize) -> Conformance<'static, Exact> {
    let exact = Conformance::new(&Exact).targets(arguments).pairs(pairs);
    exact.close(Close::Units(units))
}

/// The largest error of every function as Rust computes it.
#[allow(dead_code, reason = "tests on a GPU compare the text alone")]
pub(crate) fn errors_of_rust(pairs: usize) -> Vec<(&'static str, u32)> {
    let random = &mut Random::new(5);
    let nowhere = Pair {
        d: [0.0; 3],
        d2: 0.0,
    };
    let mut errors = [0; 11];
    for _ in 0..pairs {
        let of = arguments(random);
        let found = Functions.pair(nowhere, of, ());
        let exact = Exact.pair(nowhere, of, ());
        for ((error, found), exact) in errors.iter_mut().zip(found).zip(exact) {
            let close = |units: &u32| Close::Units(*units).agree(found, exact, 0.0);
            *error = (*error..=64).find(close).unwrap_or(u32::MAX);
        }
    }
    NAMES.into_iter().zip(errors).collect()
}
