//! The functions of `f32` that are not rounded correctly, and what they should give: the same in
//! `f64`, rounded once. Errors are counted in units in the last place.

#![allow(dead_code, reason = "not every file of tests needs all of it")]

use nearfield::{kernels::Cuda, prelude::*};
use nearfield_testkit::{
    kernels::{Close, Conformance, odd_or_random},
    random::Random,
};

/// Units that docs/adding/pair-kernel.md states for a GPU, …
pub(crate) const ON_GPU: u32 = 4;

/// … and for the CPU.
const STATED: [(&str, u32); 11] = [
    ("exp", 1),
    ("exp2", 1),
    ("ln", 1),
    ("log2", 1),
    ("log10", 2),
    ("sin", 1),
    ("cos", 1),
    ("tan", 1),
    ("tanh", 2),
    ("atan2", 1),
    ("powf", 1),
];

/// The largest of these.
pub(crate) const ON_CPU: u32 = 2;

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

/// Asserts that no function is off by more than is stated, as Rust computes it.
pub(crate) fn check_rust(pairs: usize) {
    let random = &mut Random::new(5);
    let nowhere = Pair {
        d: [0.0; 3],
        d2: 0.0,
    };
    for _ in 0..pairs {
        let of = arguments(random);
        let found = Functions.pair(nowhere, of, ());
        let exact = Exact.pair(nowhere, of, ());
        for (((name, units), found), exact) in STATED.into_iter().zip(found).zip(exact) {
            let close = Close::Units(units).agree(found, exact, 0.0);
            assert!(close, "{name} of {of:?} is {found}, not {exact}");
        }
    }
}
