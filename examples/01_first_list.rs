//! The first list: who is near whom?
//!
//! `cargo run --release --example 01_first_list`

use nearfield::prelude::*;

fn main() -> Result<(), nearfield::Error> {
    // A small block of points, one per unit of length.
    let mut positions = Vec::new();
    for z in 0..10 {
        for y in 0..10 {
            for x in 0..10 {
                positions.push([x as f32, y as f32, z as f32]);
            }
        }
    }

    // One engine per search radius; points exactly at the radius are neighbours.
    let mut engine = Engine::builder(1.0).build()?;
    let points = engine.add_point_set(&positions)?;
    engine.find_neighbors()?;

    let lists = engine.neighbors(points, points)?;
    println!(
        "{} points, {} neighbours together",
        lists.len(),
        lists.pairs()
    );
    for point in [0, 555] {
        let near: Vec<[f32; 3]> = lists
            .of(point)
            .iter()
            .map(|&j| positions[j as usize])
            .collect();
        println!(
            "point {point} at {:?} has neighbours {near:?}",
            positions[point]
        );
    }

    // In a simulation, points move: update, and search again. Memory is reused.
    for position in &mut positions {
        position[0] *= 0.5;
    }
    engine.update(points, &positions)?;
    engine.find_neighbors()?;
    let squeezed = engine.neighbors(points, points)?;
    println!("squeezed along x: {} neighbours together", squeezed.pairs());

    // Bad input is refused by name, and nothing is lost.
    positions[7][2] = f32::NAN;
    if let Err(error) = engine.update(points, &positions) {
        println!("refused: {error}");
    }

    let report = engine.report();
    println!(
        "ran on {} ({}), {} threads, {} vectors",
        report.device,
        report.reason,
        report.threads,
        report.simd.name()
    );
    Ok(())
}
