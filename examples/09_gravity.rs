//! A cluster of stars under its own gravity: all pairs, no radius.
//!
//! ```sh
//! cargo run --release --example 09_gravity
//! ```

use nearfield_nbody::{Bodies, Integrator, Options, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bodies = cluster(512);
    let options = Options {
        time_step: 1.0 / 256.0,
        softening: 0.05,
        integrator: Integrator::Leapfrog,
        ..Options::default()
    };
    let mut stars = Simulation::new(bodies, options)?;
    let before = stars.energy()?;
    println!(
        "{} stars: kinetic energy {:.4}, potential {:.4}",
        stars.bodies().len(),
        before.kinetic,
        before.potential
    );
    for _ in 0..4 {
        stars.run(32)?;
        let energy = stars.energy()?;
        let change = (energy.total() - before.total()) / before.total();
        println!(
            "t = {:.3}: energy changed by {change:+.1e} of itself",
            stars.time()
        );
    }
    let report = stars.report();
    println!("on {} ({})", report.device, report.reason);
    Ok(())
}

/// Stars of equal mass in a ball of radius 1, cold: they will fall together.
fn cluster(stars: usize) -> Bodies<f64> {
    // Points that fill a cube evenly, by multiples of irrational numbers (Weyl).
    let place = |n: usize, step: f64| 2.0 * (n as f64 * step).fract() - 1.0;
    let positions: Vec<[f64; 3]> = (1..)
        .map(|n| {
            [
                place(n, 2f64.sqrt()),
                place(n, 3f64.sqrt()),
                place(n, 5f64.sqrt()),
            ]
        })
        .filter(|x| x.iter().map(|x| x * x).sum::<f64>() < 1.0)
        .take(stars)
        .collect();
    Bodies {
        masses: vec![1.0 / stars as f64; stars],
        velocities: vec![[0.0; 3]; stars],
        positions,
    }
}
