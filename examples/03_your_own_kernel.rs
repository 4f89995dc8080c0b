//! A pair kernel of your own, fused with the traversal: no list is stored, and the arithmetic is
//! compiled for the widest vectors the machine has. `#[pair_kernel]` translates it for the GPU.
//!
//! `cargo run --release --example 03_your_own_kernel [-- DEVICE|source]`: a device is `cpu`, `gpu`,
//! `hybrid` or `auto`; `source` prints the text that a GPU gets.

use nearfield::{kernels::cuda_source, prelude::*};

/// A spring-like repulsion that vanishes at the radius, with damping along the line of centres:
/// the soft spheres of granular flow.
struct SoftSphere {
    radius: f32,
    stiffness: f32,
    damping: f32,
}

#[nearfield::pair_kernel]
impl PairKernel for SoftSphere {
    type Target = [f32; 3]; // velocity
    type Source = [f32; 3]; // velocity
    type Output = ([f32; 3], f32); // force, and the energy stored in the contacts

    #[inline(always)]
    fn pair(&self, pair: Pair, v_i: [f32; 3], v_j: [f32; 3]) -> ([f32; 3], f32) {
        let distance = pair.d2.sqrt().max(1e-6);
        let overlap = (self.radius - distance).max(0.0);
        let n = pair.d.map(|d| d / distance);
        let closing =
            (v_i[0] - v_j[0]) * n[0] + (v_i[1] - v_j[1]) * n[1] + (v_i[2] - v_j[2]) * n[2];
        let push = -(self.stiffness * overlap + self.damping * closing);
        (
            n.map(|n| push * n),
            0.5 * self.stiffness * overlap * overlap,
        )
    }
}

fn main() -> Result<(), nearfield::Error> {
    // A loose pile of spheres of diameter 0.1 in a periodic slab, falling apart.
    let (diameter, dt) = (0.1, 1e-3);
    let mut positions: Vec<[f32; 3]> = (0..20_000)
        .map(|i| {
            let (x, y, z) = (i % 25, i / 25 % 25, i / 625);
            [0.08 * x as f32, 0.08 * y as f32, 0.08 * z as f32]
        })
        .collect();
    let mut velocities = vec![[0.0f32; 3]; positions.len()];

    let kernel = SoftSphere {
        radius: diameter,
        stiffness: 400.0,
        damping: 0.2,
    };
    let argument = std::env::args().nth(1).unwrap_or_else(|| "cpu".to_owned());
    if let ("source", Some(text)) = (argument.as_str(), cuda_source(&kernel)) {
        print!("{text}");
        return Ok(());
    }
    let mut engine = Engine::builder(diameter)
        .periodic([Some(2.0), Some(2.0), None])
        .device(argument.parse()?)
        .build()?;
    let spheres = engine.add_point_set(&positions)?;

    for step in 0..=200 {
        let results = engine
            .traverse(&kernel, spheres, spheres)
            .targets(&velocities)
            .sources(&velocities)
            .run()?;
        for (i, (force, _)) in results.iter().enumerate() {
            for axis in 0..3 {
                velocities[i][axis] += dt * force[axis];
                positions[i][axis] += dt * velocities[i][axis];
            }
        }
        engine.update(spheres, &positions)?;
        if step % 50 == 0 {
            // Each contact was seen from both ends.
            let stored: f64 = results.iter().map(|(_, e)| 0.5 * f64::from(*e)).sum();
            let kinetic: f64 = velocities
                .iter()
                .map(|v| 0.5 * v.iter().map(|c| f64::from(c * c)).sum::<f64>())
                .sum();
            println!("step {step:3}: contact energy {stored:9.2}, kinetic energy {kinetic:9.2}");
        }
    }
    Ok(())
}
