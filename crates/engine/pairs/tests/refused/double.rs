use nearfield_pairs::{Pair, PairKernel, pair_kernel};

struct Kernel;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        (pair.d2 as f64).sqrt() as f32
    }
}

fn main() {}
