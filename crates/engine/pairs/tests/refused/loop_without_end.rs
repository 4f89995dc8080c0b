use nearfield_pairs::{Pair, PairKernel, pair_kernel};

struct Kernel;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, _: (), _: ()) -> f32 {
        let mut d = pair.d2;
        while d > 1.0 {
            d *= 0.5;
        }
        d
    }
}

fn main() {}
