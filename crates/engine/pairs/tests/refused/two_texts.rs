use nearfield_pairs::{Pair, PairKernel, pair_kernel};

struct Kernel;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        pair.d2
    }

    fn cuda(&self) -> Option<nearfield_pairs::Cuda> {
        None
    }
}

fn main() {}
