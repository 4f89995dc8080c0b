//! A cluster of stars under its own gravity: all pairs, no radius.
//!
//! ```sh
//! cargo run --release --example 09_gravity
//! cargo run --release --example 09_gravity -- stars.png    # and a picture, with some trails
//! ```

use nearfield_nbody::{Bodies, Integrator, Moment, Options, Simulation, Story, Trails, draw};

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
    let first = stars.bodies().clone();
    let moment = |time, energy| Moment { time, energy };
    let (mut moments, mut trails) = (vec![moment(0.0, before.total())], Trails::default());
    trails.note(&stars)?;
    for _ in 0..4 {
        for _ in 0..32 {
            stars.run(1)?;
            trails.note(&stars)?;
        }
        let energy = stars.energy()?;
        let change = (energy.total() - before.total()) / before.total();
        println!(
            "t = {:.3}: energy changed by {change:+.1e} of itself",
            stars.time()
        );
        moments.push(moment(stars.time(), energy.total()));
    }
    let story = Story {
        first: &first,
        last: stars.bodies(),
        moments: &moments,
        trails: &trails,
        names: &[],
    };
    if let Some(picture) = std::env::args().nth(1) {
        draw(&picture, &story)?;
        println!("Wrote {picture}");
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
