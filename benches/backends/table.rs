//! The table of the documentation: lists, counts and density of clouds from a thousand to eight
//! million points, by the better backend alone, by both and by the engine's choice.
//!
//! Ways are run from a cold start in one process, in which the GPU has a context already. `auto`
//! counts from the third step after it has taken the GPU in; its steps before are those of the CPU.

use super::{
    Options, Scene, Work,
    cold::{self, Effort, Runs},
};
use nearfield_testkit::cloud::Cloud;
use std::{error::Error, time::Duration};

/// Points.
const SIZES: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 8_000_000];
/// Points from which only one cloud is timed, with the smaller radius: lists of the others take
/// gigabytes.
const LARGE: usize = 8_000_000;
/// Runs of a way, of so many steps; none begins after a limit.
const EFFORT: Effort = Effort {
    runs: 10,
    steps: 22,
    limit: Duration::from_millis(300),
    wait: Some(Duration::from_secs(4)),
};

/// Prints the table, row by row.
pub(super) fn print(options: &Options, gpu: bool) -> Result<(), Box<dyn Error>> {
    if !gpu {
        return Err("the table compares with a GPU, and there is none".into());
    }
    println!(
        "| cloud | points | job | CPU | GPU | hybrid (CPU's share) | worst ten | auto | worst ten |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (mut rows, mut slow) = (0, 0);
    let sizes = SIZES
        .iter()
        .filter(|&&points| !options.quick || points < 1_000_000);
    for &points in sizes {
        for scene in scenes(points, options) {
            for work in options.works(&[Work::Lists, Work::Counts, Work::Density]) {
                let ratios = row(&scene, work, options)?;
                rows += ratios.len();
                slow += ratios.iter().filter(|ratio| **ratio > 1.02).count();
            }
        }
    }
    println!("\n{slow} of {rows} worst tens take more than 1.02 of the better backend.");
    Ok(())
}

/// Clouds of about as many points.
fn scenes(points: usize, options: &Options) -> Vec<Scene> {
    let scene = |name: &str, cloud: Cloud, radius: f32| Scene {
        name: name.to_owned(),
        occupancy: None,
        points: cloud.points(points, 1),
        radius,
    };
    let named = |name: &str| name.contains(&options.cloud);
    let mut scenes = Vec::new();
    let clouds = [
        ("lattice, r = 2", Cloud::Lattice, 2.0),
        ("lattice, r = 3", Cloud::Lattice, 3.0),
        (
            "clusters",
            Cloud::Clusters,
            Cloud::Clusters.default_radius(points),
        ),
        (
            "pool-spray",
            Cloud::PoolSpray,
            Cloud::PoolSpray.default_radius(points),
        ),
    ];
    for (number, (name, cloud, radius)) in clouds.into_iter().enumerate() {
        if named(name) && (number == 0 || points < LARGE) {
            scenes.push(scene(name, cloud, radius));
        }
    }
    scenes
}

/// Times the ways of a row, prints it, and returns the ratios of the worst tens.
fn row(scene: &Scene, work: Work, options: &Options) -> Result<Vec<f64>, Box<dyn Error>> {
    let ways = cold::ways(true, &options.way);
    let rows = ways
        .iter()
        .map(|&way| cold::of_way(scene, work, way, options, EFFORT));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let better = cold::better(&ways, &rows).ok_or("no backend alone was timed")?;
    let mut cells = vec![
        scene.name.clone(),
        scene.points.len().to_string(),
        work.name().to_owned(),
    ];
    let mut ratios = Vec::new();
    for row in &rows {
        let Runs {
            name, usual, share, ..
        } = row;
        match *name {
            "CPU" | "GPU" => cells.push(format!("{usual:.3}")),
            _ => {
                let ratio = row.worst_ten() / better.usual;
                cells.push(format!("{usual:.3} ({:.0} %)", 100.0 * share));
                cells.push(format!("{ratio:.2}"));
                ratios.push(ratio);
            }
        }
    }
    println!("| {} |", cells.join(" | "));
    Ok(ratios)
}
