//! Neighbours of the points of a file, in any format that `nearfield_io` reads, with its box.
//!
//! ```sh
//! cargo run --release --example 15_points_of_a_file                   # particles of a fluid
//! cargo run --release --example 15_points_of_a_file -- run.gro 0.5    # your file, your radius
//! ```

use nearfield::prelude::*;
use nearfield_io::read_points;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let ours = "crates/support/io/tests/data/frames/double_dam_break_frame_26_4732_particles.vtk";
    let file = arguments.next().unwrap_or_else(|| ours.to_owned());
    let radius: f32 = arguments.next().map_or(Ok(0.1), |radius| radius.parse())?;

    let cloud = read_points(&file)?;
    let mut engine = Engine::builder(radius);
    if let Some(found) = cloud.simulation_box {
        let axes = [0, 1, 2].map(|axis| found.periodic[axis].then_some(found.vectors[axis]));
        engine = engine.box_vectors(axes);
    }
    let mut engine = engine.build()?;
    let points = engine.add_point_set(&cloud.positions)?;
    engine.find_neighbors()?;
    let lists = engine.neighbors(points, points)?;

    let mean = lists.pairs() as f64 / lists.len().max(1) as f64;
    println!(
        "{file}: {} points with {mean:.1} neighbours on average",
        lists.len()
    );
    for point in 0..lists.len().min(3) {
        println!("{point} is near {:?}", lists.of(point));
    }
    Ok(())
}
