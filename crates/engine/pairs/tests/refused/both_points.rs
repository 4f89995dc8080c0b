use nearfield_pairs::{Pair, PairKernel, pair_kernel};

struct Kernel;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = ();
    type Source = f32;
    type Output = f32;
    const SYMMETRIC: bool = true;

    fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
        mass * pair.d2
    }

    fn symmetric(&self, pair: Pair, (_, a): ((), f32), (_, b): ((), f32)) -> (f32, f32) {
        let mut share = pair.d2;
        while share > 1.0 {
            share *= 0.5;
        }
        (b * share, a * share)
    }
}

fn main() {}
