use nearfield_pairs::{Pair, PairKernel, pair_kernel};

struct Kernel;

fn halved(x: f32) -> f32 {
    0.5 * x
}

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        halved(pair.d2)
    }
}

fn main() {}
