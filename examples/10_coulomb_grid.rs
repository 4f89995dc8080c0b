//! The electric potential of a small salt crystal on a grid around it, by direct summation.
//!
//! ```sh
//! cargo run --release --example 10_coulomb_grid
//! ```

use nearfield::{all_pairs::SampleGrid, prelude::*};

fn main() -> Result<(), Error> {
    // 8 x 8 x 8 ions of alternating charge, a distance of 1 apart.
    let ions: Vec<[usize; 3]> = (0..512).map(|n| [n % 8, n / 8 % 8, n / 64]).collect();
    let positions: Vec<[f32; 3]> = ions.iter().map(|ion| ion.map(|n| n as f32)).collect();
    let charges: Vec<f32> = ions
        .iter()
        .map(|ion| {
            if ion.iter().sum::<usize>() % 2 == 0 {
                1.0
            } else {
                -1.0
            }
        })
        .collect();

    let grid = SampleGrid {
        dims: [49, 49, 25],
        spacing: 0.25,
        origin: [-2.0, -2.0, 0.5],
    };
    let mut sums = Engine::all_pairs().build()?;
    let potential = sums.coulomb(&grid, &positions, &charges, 0.0)?;

    let at = |x: usize, y: usize, z: usize| potential[(z * 49 + y) * 49 + x];
    println!("along x through the crystal, a quarter above a layer of ions:");
    for x in (0..49).step_by(4) {
        let value = at(x, 8, 1);
        let bar = "#".repeat((10.0 * value.abs()).round() as usize);
        println!(
            "{:6.2} {value:+8.4} {bar}",
            grid.origin[0] + 0.25 * x as f64
        );
    }
    let report = sums.report();
    println!(
        "{} points x {} ions on {} ({}): {:.1e} evaluations a second",
        grid.len(),
        ions.len(),
        report.device,
        report.reason,
        report.pairs as f64 / report.time.as_secs_f64()
    );
    Ok(())
}
