//! Lists with a skin: a Lennard-Jones liquid whose neighbour lists are kept over many steps and
//! rebuilt only when atoms have moved too far.
//!
//! `cargo run --release --example 05_verlet_lists`

use nearfield::{
    lists::{Refresh, VerletLists},
    prelude::*,
};

/// The Lennard-Jones force in reduced units, and half the energy of the pair, shifted to vanish at
/// the cut-off.
struct LennardJones {
    shift: f32,
}

impl LennardJones {
    fn with_cutoff(radius: f32) -> Self {
        let s6 = radius.powi(-6);
        Self {
            shift: 4.0 * (s6 * s6 - s6),
        }
    }
}

#[nearfield::pair_kernel]
impl PairKernel for LennardJones {
    type Target = ();
    type Source = ();
    type Output = ([f32; 3], f32);

    #[inline(always)]
    fn pair(&self, pair: Pair, _: (), _: ()) -> ([f32; 3], f32) {
        let s2 = 1.0 / pair.d2;
        let s6 = s2 * s2 * s2;
        // F on the target is −dU/dr along the line to it, and d points away from it.
        let push = -24.0 * s2 * s6 * (2.0 * s6 - 1.0);
        let energy = 4.0 * s6 * (s6 - 1.0) - self.shift;
        (pair.d.map(|d| push * d), 0.5 * energy)
    }
}

fn main() -> Result<(), nearfield::Error> {
    let (side, spacing, radius, skin, dt) = (12, 1.05f32, 2.5f32, 0.4f32, 0.002f32);
    let mut positions: Vec<[f32; 3]> = (0..side * side * side)
        .map(|i| [i % side, i / side % side, i / (side * side)].map(|k| k as f32 * spacing))
        .collect();
    // Velocities that look random and add up to nothing.
    let wave = |i: usize, axis: usize| ((i * (axis + 7) * 2_654_435) % 1000) as f32 / 500.0 - 1.0;
    let mut velocities: Vec<[f32; 3]> = (0..positions.len())
        .map(|i| {
            std::array::from_fn(|axis| wave(i - i % 2, axis) * (1 - 2 * (i as i32 % 2)) as f32)
        })
        .collect();

    let length = f64::from(side as f32 * spacing);
    let settings = Engine::builder(radius).periodic([Some(length); 3]);
    let mut lists = VerletLists::new(settings, skin)?;
    let atoms = lists.add_point_set(&positions)?;
    lists.refresh()?;

    let kernel = LennardJones::with_cutoff(radius);
    let mut forces = lists.traverse(&kernel, atoms, atoms).run()?;
    let (steps, mut kept) = (1000, 0);
    for step in 0..=steps {
        if step % 200 == 0 {
            let kinetic = velocities.iter().flatten().map(|v| 0.5 * f64::from(v * v));
            let potential = forces.iter().map(|(_, energy)| f64::from(*energy));
            let energy = (kinetic.sum::<f64>() + potential.sum::<f64>()) / positions.len() as f64;
            println!(
                "step {step:4}: energy {energy:.4} per atom, lists built {} times",
                lists.builds()
            );
        }
        // Velocity Verlet; coordinates are never wrapped into the box, though they could be.
        for ((x, v), (f, _)) in positions.iter_mut().zip(&mut velocities).zip(&forces) {
            for axis in 0..3 {
                v[axis] += 0.5 * dt * f[axis];
                x[axis] += dt * v[axis];
            }
        }
        lists.update(atoms, &positions)?;
        kept += usize::from(lists.refresh()? == Refresh::Kept);
        lists
            .traverse(&kernel, atoms, atoms)
            .run_into(&mut forces)?;
        for (v, (f, _)) in velocities.iter_mut().zip(&forces) {
            for axis in 0..3 {
                v[axis] += 0.5 * dt * f[axis];
            }
        }
    }
    println!(
        "the lists served {kept} of {} steps as they were",
        steps + 1
    );
    Ok(())
}
