use nearfield_pairs::{EnergyForce, PairPotential, pair_kernel};

struct Steep(f32);

#[pair_kernel(crate = nearfield_pairs)]
impl PairPotential for Steep {
    type Point = f32;

    fn evaluate(&self, d2: f32, a: f32, b: f32) -> EnergyForce {
        let r = d2.sqrt();
        EnergyForce {
            energy: self.0 * a.hypot(b) / r,
            force_over_r: 0.0,
        }
    }
}

fn main() {}
