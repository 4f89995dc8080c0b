//! A pair kernel whose sums are exact in any order, and so can be compared with the model's: it
//! counts, and adds up labels of the points and the sides of the target that the sources lie on. A
//! traversal that visits a wrong pair, or the right pair in a wrong image, is found out.

use nearfield::{Pair, PairKernel};

/// Adds up counts, labels and sides; evaluated in place, or packed together when `PACKED`.
#[derive(Debug)]
pub(super) struct Labels<const PACKED: bool>;

impl<const PACKED: bool> PairKernel for Labels<PACKED> {
    type Target = f32;
    type Source = f32;
    type Output = [f32; 3];

    const PACKED: bool = PACKED;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: f32, source: f32) -> [f32; 3] {
        contribution(pair.d, target, source)
    }
}

/// Contribution of a source at displacement `d` to a target.
#[inline(always)]
pub(super) fn contribution(d: [f32; 3], target: f32, source: f32) -> [f32; 3] {
    let side = if d[0] + d[1] > d[2] { 1.0 } else { 0.0 };
    [1.0, source + 2.0 * target, side]
}

/// The labels of a set: small whole numbers. A million of them add up to less than 2²⁴ · 12.
pub(super) fn labels(points: usize) -> Vec<f32> {
    (0..points).map(|index| (index % 13) as f32).collect()
}
