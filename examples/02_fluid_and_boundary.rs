//! Two point sets, as SPH solvers have them: a fluid that searches, a boundary that is found.
//!
//! `cargo run --release --example 02_fluid_and_boundary`

use nearfield::prelude::*;

const SPACING: f32 = 0.02;

/// A block of points with `counts` points along each axis, the first at `corner`.
fn block(corner: [f32; 3], counts: [usize; 3]) -> Vec<[f32; 3]> {
    let mut points = Vec::new();
    for z in 0..counts[2] {
        for y in 0..counts[1] {
            for x in 0..counts[0] {
                let place = [x, y, z];
                points.push(std::array::from_fn(|axis| {
                    corner[axis] + SPACING * place[axis] as f32
                }));
            }
        }
    }
    points
}

fn main() -> Result<(), nearfield::Error> {
    let mut fluid = block([0.0, 0.0, 0.0], [40, 40, 40]);
    let floor = block([-0.1, -0.1, -0.06], [50, 50, 3]);

    let mut engine = Engine::builder(2.5 * SPACING).build()?;
    let fluid_set = engine.add_point_set(&fluid)?;
    let floor_set = engine.add_point_set(&floor)?;

    // Every set searches every set until told otherwise. The floor needs no neighbours here.
    engine.set_active(floor_set, floor_set, false)?;
    engine.set_active(floor_set, fluid_set, false)?;

    // Keep points that are near in space near in memory: everything afterwards is faster. Apply
    // the same permutation to all arrays of the set.
    let order = engine.z_sort(fluid_set)?;
    let mut masses = vec![SPACING.powi(3) * 1000.0; fluid.len()];
    order.apply(&mut fluid)?;
    order.apply(&mut masses)?;
    engine.update(fluid_set, &fluid)?;

    engine.find_neighbors()?;
    let in_fluid = engine.neighbors(fluid_set, fluid_set)?;
    let in_floor = engine.neighbors(fluid_set, floor_set)?;
    let wet = (0..fluid.len()).filter(|&i| in_floor.count(i) > 0).count();
    println!(
        "{} fluid points, {} of them touch the floor",
        fluid.len(),
        wet
    );
    println!(
        "{} fluid-fluid and {} fluid-floor pairs",
        in_fluid.pairs(),
        in_floor.pairs()
    );

    // Lists go out as compressed sparse rows wherever another library wants them.
    let csr = in_floor.to_csr().map_err(nearfield::Error::from)?;
    println!(
        "CSR: {} offsets, {} indices",
        csr.offsets.len(),
        csr.indices.len()
    );

    // And positions that are not points of any set can be asked about.
    let probes = [[0.4, 0.4, -0.01], [5.0, 5.0, 5.0f32]];
    let near = engine.query(&probes, fluid_set)?;
    println!(
        "probes see {} and {} fluid points",
        near.count(0),
        near.count(1)
    );
    Ok(())
}
