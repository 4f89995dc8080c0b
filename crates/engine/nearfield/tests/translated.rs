//! Translated kernels of a crate that knows the library only.

#![forbid(unsafe_code)]

use nearfield::kernels::{Channels, cuda_source};
use nearfield::prelude::*;

/// A point of granular flow.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
struct Grain {
    velocity: [f32; 3],
    mass: f32,
}

#[nearfield::pair_fn]
fn overlap(radius: f32, distance: f32) -> f32 {
    (radius - distance).max(0.0)
}

struct Collision {
    radius: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for Collision {
    type Target = ();
    type Source = Grain;
    type Output = Grain;

    fn pair(&self, pair: Pair, _: (), other: Grain) -> Grain {
        let overlap = overlap(self.radius, pair.d2.sqrt());
        Grain {
            velocity: other.velocity.map(|v| v * overlap),
            mass: other.mass,
        }
    }
}

#[test]
fn structs_are_read_from_one_array_per_field_and_given_back() {
    let points = [[0.0f32, 0.0, 0.0], [0.5, 0.0, 0.0], [9.0, 0.0, 0.0]];
    let mut engine = Engine::builder(1.0).device(Device::Cpu).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let velocities = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    let masses = [10.0f32, 20.0, 30.0];
    let kernel = Collision { radius: 1.0 };
    let results = engine
        .traverse(&kernel, set, set)
        .sources((&velocities, &masses))
        .run()
        .unwrap();
    let expected = Grain {
        velocity: [2.0, 2.5, 3.0],
        mass: 20.0,
    };
    assert_eq!(results[0], expected);
    assert_eq!(results[2].mass, 0.0);
}

#[test]
fn the_text_is_for_reading() {
    let text = cuda_source(&Collision { radius: 1.0 }).unwrap();
    assert!(text.contains("const auto overlap = ::overlap(self_radius, nf::sqrt(pair.d2));"));
    assert!(text.contains("nf::array<float, 3> velocity;"));
}
