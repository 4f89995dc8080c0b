//! Pairs for a comparison: displacements, and the values of both points.

use crate::random::Random;
use nearfield_pairs::{Channels, Field, Pair, PairKernel};

/// Makes the values of a point.
pub(super) type Values<'a, T> = Box<dyn Fn(&mut Random) -> T + 'a>;

/// Numbers for which arithmetic is odd.
const ODD: [f32; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    2.0,
    3.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    1e-45,
    -3e-42,
    f32::MAX,
    f32::MIN,
    f32::EPSILON,
    2_147_483_648.0,
    4_294_967_296.0,
    -2_147_483_648.0,
    8_388_609.0,
    16_777_217.0,
];

/// A number for which arithmetic is odd, any bits, or a number of ordinary size.
pub fn odd_or_random(random: &mut Random) -> f32 {
    match random.below(16) {
        0..3 => ODD[random.below(24) as usize],
        3 => f32::from_bits(random.below(1 << 32) as u32),
        4..8 => random.between(-50.0, 50.0) as f32,
        _ => random.between(-1.0, 1.0) as f32,
    }
}

/// The pair of a displacement, by the arithmetic of the contract.
fn pair_of(d: [f32; 3]) -> Pair {
    let [x, y, z] = d;
    Pair {
        d,
        d2: z.mul_add(z, y.mul_add(y, x * x)),
    }
}

/// Pairs of any displacement.
pub(super) struct Inputs<T, S> {
    pub(super) pairs: Vec<(Pair, T, S)>,
}

impl<T: Channels, S: Channels> Inputs<T, S> {
    /// As many as asked for, the same for a seed.
    pub(super) fn new(
        seed: u64,
        count: usize,
        targets: &Values<'_, T>,
        sources: &Values<'_, S>,
    ) -> Self {
        let random = &mut Random::new(seed);
        let mut next = || {
            let d = match random.below(16) {
                0 => [0.0; 3],
                1..6 => [0; 3].map(|_| odd_or_random(random)),
                _ => [0; 3].map(|_| random.between(-1.0, 1.0) as f32),
            };
            (pair_of(d), targets(random), sources(random))
        };
        Self {
            pairs: (0..count).map(|_| next()).collect(),
        }
    }

    /// Displacement, its square, and the channels of both points, pair after pair.
    pub(super) fn numbers(&self) -> Vec<f32> {
        let mut numbers = Vec::new();
        for (pair, target, source) in &self.pairs {
            numbers.extend(pair.d);
            numbers.push(pair.d2);
            target.write(|_, value| numbers.push(value));
            source.write(|_, value| numbers.push(value));
        }
        numbers
    }
}

/// Targets with one source each within a radius of 1, and far from all others.
#[derive(Debug, Clone, PartialEq)]
pub struct IsolatedPairs {
    /// Position of every target.
    pub targets: Vec<[f32; 3]>,
    /// Position of the source of every target.
    pub sources: Vec<[f32; 3]>,
    /// Channels of a target, target after target.
    pub target_values: Vec<f32>,
    /// Channels of a source, source after source.
    pub source_values: Vec<f32>,
}

impl IsolatedPairs {
    /// Pairs on a lattice of spacing 4.
    pub(super) fn new<K: PairKernel>(
        seed: u64,
        count: usize,
        targets: &Values<'_, K::Target>,
        sources: &Values<'_, K::Source>,
    ) -> Self {
        let random = &mut Random::new(seed);
        let mut all = Self {
            targets: Vec::new(),
            sources: Vec::new(),
            target_values: Vec::new(),
            source_values: Vec::new(),
        };
        let edge = (count as f64).cbrt().ceil().max(1.0) as usize;
        for k in 0..count {
            let at = [k % edge, k / edge % edge, k / (edge * edge)].map(|cell| 4.0 * cell as f32);
            let size = match random.below(8) {
                0 => 0.0,
                1 => 1e-3,
                _ => 0.55,
            };
            let beside = at.map(|x| x + random.between(-size, size) as f32);
            all.targets.push(at);
            all.sources.push(beside);
            targets(random).write(|_, value| all.target_values.push(value));
            sources(random).write(|_, value| all.source_values.push(value));
        }
        all
    }

    /// The values of targets and of sources, as engines take them: none for a kernel that reads
    /// none.
    pub fn fields(&self) -> [Vec<Field<'_>>; 2] {
        [&self.target_values, &self.source_values].map(|values| {
            let points = self.targets.len();
            let (bytes, channels) = (bytemuck::cast_slice(values), values.len() / points.max(1));
            let field = Field::strided(bytes, 0, 4 * channels, points, channels);
            field.into_iter().collect()
        })
    }

    /// The pair of target `k`.
    pub(super) fn pair<K: PairKernel>(&self, k: usize) -> (Pair, K::Target, K::Source) {
        let (target, source) = (self.targets[k], self.sources[k]);
        let d = [0, 1, 2].map(|axis| source[axis] - target[axis]);
        let of_target = &self.target_values[k * K::Target::COUNT..];
        let of_source = &self.source_values[k * K::Source::COUNT..];
        (
            pair_of(d),
            K::Target::read(|channel| of_target[channel]),
            K::Source::read(|channel| of_source[channel]),
        )
    }
}
