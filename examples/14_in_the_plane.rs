//! Points in the plane, read from a table: nearest-neighbour distances and pair correlation.
//!
//! `cargo run --release --example 14_in_the_plane [-- FILE]` reads lines of `x,y`; without a file
//! it makes points.

use nearfield::prelude::*;
use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let points = match env::args().nth(1) {
        Some(path) => read(&fs::read_to_string(path)?)?,
        None => made(),
    };
    // Points in the plane have z = 0; the box repeats along x and y only.
    let radius = 0.05;
    let mut engine = Engine::builder(radius)
        .periodic([Some(1.0), Some(1.0), None])
        .build()?;
    let set = engine.add_point_set(&points)?;
    engine.find_neighbors()?;

    // Pairs by distance, relative to those of points without any order.
    let mut histogram = [0u64; 10];
    for i in 0..points.len() {
        engine.for_each_neighbor(set, set, i, |_, pair| {
            let bin = (pair.d2.sqrt() / radius * 10.0) as usize;
            histogram[bin.min(9)] += 1;
        })?;
    }
    let expected = (points.len() as f64).powi(2) * std::f64::consts::PI * f64::from(radius).powi(2);
    println!("{} points, g(r):", points.len());
    for (bin, &pairs) in histogram.iter().enumerate() {
        let share = f64::from((bin as u32 + 1).pow(2) - (bin as u32).pow(2)) / 100.0;
        let r = radius * (bin as f32 + 0.5) / 10.0;
        println!("{r:.4}  {:.3}", pairs as f64 / (expected * share));
    }
    Ok(())
}

/// Points of lines `x,y`; a first line that is not numbers names the columns.
fn read(text: &str) -> Result<Vec<[f32; 3]>, Box<dyn Error>> {
    let mut points = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut fields = line.split(',').map(|field| field.trim().parse::<f32>());
        match (fields.next(), fields.next()) {
            (Some(Ok(x)), Some(Ok(y))) => points.push([x, y, 0.0]),
            _ if number == 0 => {}
            _ => return Err(format!("line {}: x,y is needed, not {line:?}", number + 1).into()),
        }
    }
    Ok(points)
}

/// A sheared lattice of 10,000 points in the unit square, disturbed.
fn made() -> Vec<[f32; 3]> {
    (0..10_000)
        .map(|i| {
            let (x, y) = (i % 100, i / 100);
            let noise = |k: usize| ((i * k) % 1009) as f32 / 1009.0 - 0.5;
            let shear = if y % 2 == 0 { 0.25 } else { 0.75 };
            let at = |cell: f32| (cell / 100.0).rem_euclid(1.0);
            [
                at(x as f32 + shear + 0.3 * noise(7)),
                at(y as f32 + 0.3 * noise(31)),
                0.0,
            ]
        })
        .collect()
}
