use nearfield_pairs::{Channels, Pair, PairKernel, pair_kernel};

trait Total {
    fn sum(self) -> f32;
    fn length(self) -> f32;
}

impl Total for [f32; 3] {
    fn sum(self) -> f32 {
        self[0]
    }

    fn length(self) -> f32 {
        self[1]
    }
}

#[derive(Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Body {
    mass: f32,
}

impl std::ops::Add for Body {
    type Output = Self;

    fn add(self, _: Self) -> Self {
        self
    }
}

struct Kernel {
    double: f64,
}

impl Kernel {
    fn weight(&self, d: f32) -> f32 {
        d
    }
}

fn halved() -> u8 {
    1
}

#[allow(non_upper_case_globals)]
const lower: u32 = 1;

#[pair_kernel(crate = nearfield_pairs)]
impl PairKernel for Kernel {
    type Target = Body;
    type Source = Body;
    type Output = f32;

    fn pair(&self, pair: Pair, a: Body, b: Body) -> f32 {
        let total = pair.d.sum() + pair.d.length();
        let both = a + b;
        let same = a == b;
        let half = 0.5;
        let floored = half as i32;
        let bytes = halved();
        let kind = match floored as u32 {
            lower => 1.0,
            _ => 2.0,
        };
        let scaled = self.double as f32;
        total + both.mass + f32::from(same) + bytes as f32 + kind + scaled + self.weight(total)
    }
}

fn main() {}
