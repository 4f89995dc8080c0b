//! A kernel whose pairs are evaluated from either side.

use nearfield::{
    kernels::{Cuda, SphDensity},
    prelude::*,
};

/// The density, evaluated for either point of a pair.
pub(super) struct EachDirection(pub(super) SphDensity);

impl PairKernel for EachDirection {
    type Target = ();
    type Source = f32;
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, target: (), mass: f32) -> f32 {
        self.0.pair(pair, target, mass)
    }

    fn support(&self) -> Option<f32> {
        self.0.support()
    }

    fn cuda(&self) -> Option<Cuda> {
        self.0.cuda()
    }
}
