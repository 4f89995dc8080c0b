//! Argon-like atoms in a periodic box: energies of pairs, then a run at constant energy.
//!
//! ```sh
//! cargo run --release -p nearfield-md --example 11_molecular_dynamics
//! ```

use nearfield::kernels::{Coefficients, LennardJones, Mixing, Truncation};
use nearfield_md::{Cell, ForceField, Options, Simulation, System};

/// Density of a liquid, in atoms per cube of sigma.
const DENSITY: f64 = 0.8442;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A cubic crystal, which melts.
    let side = 12;
    let spacing = DENSITY.cbrt().recip();
    let positions = (0..side * side * side)
        .map(|k| [k % side, k / side % side, k / side / side].map(|x| spacing * x as f64))
        .collect();
    let mut system = System::new(positions, Cell::cube(spacing * side as f64)?)?;
    system.heat(1.44, 1);

    // Energies and forces are 0 at the cut-off, so that a pair may cross it without a jolt.
    let argon = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let table = LennardJones::new(
        &[argon],
        Mixing::default(),
        &[],
        2.5,
        Truncation::ForceShift,
    )?;

    // Pairs are found anew every step, which is the faster way on a CPU. On a GPU, lists that reach
    // farther than the cut-off (`skin: 0.3`) are kept until atoms have moved too far.
    let options = Options::default();
    let mut run = Simulation::new(system, ForceField::from(table), options)?;
    println!("{} atoms, {} pairs within 2.5", run.atoms(), run.pairs()?);
    println!("  step  potential    kinetic      total  temperature");
    for _ in 0..10 {
        let now = run.observe()?;
        println!(
            "{:6} {:10.3} {:10.3} {:10.3} {:12.4}",
            now.step,
            now.potential,
            now.kinetic,
            now.total(),
            now.temperature
        );
        for _ in 0..50 {
            run.step(0.004)?;
        }
    }

    let (now, drift) = (run.observe()?, run.energy_drift());
    println!(
        "the energy drifted by {:.1e} per unit of time",
        drift.slope()
    );
    assert!(drift.most() < 2e-3 * now.kinetic, "energy was kept");
    Ok(())
}
