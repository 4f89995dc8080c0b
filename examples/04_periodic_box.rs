//! A periodic box: images within the radius are found, also when the box is smaller than the
//! radius.
//!
//! `cargo run --release --example 04_periodic_box`

use nearfield::{Engine, ListKind, PointSetId, prelude::*};

/// Energy per particle of a Lennard-Jones crystal: every pair once, from a half list.
fn energy(engine: &Engine, atoms: PointSetId, count: usize) -> Result<f64, nearfield::Error> {
    let mut energy = 0.0;
    for i in 0..count {
        // The geometry comes with the pair, image included, so no box arithmetic is needed.
        engine.for_each_neighbor(atoms, atoms, i, |_, pair: Pair| {
            let s6 = 1.0 / f64::from(pair.d2).powi(3);
            energy += 0.5 * 4.0 * (s6 * s6 - s6);
        })?;
    }
    Ok(energy / count as f64)
}

fn main() -> Result<(), nearfield::Error> {
    // A face-centred cubic crystal of 5 x 5 x 5 unit cells, periodic along every axis.
    let a = 1.5496_f64;
    let corners = [
        [0.0, 0.0, 0.0],
        [0.5, 0.5, 0.0],
        [0.5, 0.0, 0.5],
        [0.0, 0.5, 0.5],
    ];
    let crystal = |cells: usize| -> Vec<[f32; 3]> {
        (0..cells * cells * cells)
            .flat_map(|cell| {
                let at = [cell % cells, cell / cells % cells, cell / (cells * cells)];
                corners.map(|c: [f64; 3]| {
                    std::array::from_fn(|axis| (a * (at[axis] as f64 + c[axis])) as f32)
                })
            })
            .collect()
    };

    // The same crystal described by ever smaller boxes; the last is one unit cell, far smaller
    // than the radius, and every atom is its own neighbour in other images.
    for cells in [5, 2, 1] {
        let atoms = crystal(cells);
        let length = a * cells as f64;
        let mut engine = Engine::builder(4.0)
            .periodic([Some(length); 3])
            .lists(ListKind::Half)
            .build()?;
        let set = engine.add_point_set(&atoms)?;
        engine.find_neighbors()?;
        println!(
            "{cells}³ cells: {:4} atoms, {:6} pairs in the half list, energy {:.5} per atom",
            atoms.len(),
            engine.neighbors(set, set)?.pairs(),
            energy(&engine, set, atoms.len())?
        );
    }

    // A box need not be rectangular: three slanted vectors describe the crystal by one atom.
    let vectors = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]];
    let mut engine = Engine::builder(4.0)
        .box_vectors(vectors.map(|v: [f64; 3]| Some(v.map(|part| a * part))))
        .lists(ListKind::Half)
        .build()?;
    let set = engine.add_point_set(&[[0.0f32; 3]])?;
    engine.find_neighbors()?;
    println!(
        "one primitive cell: 1 atom, {} pairs, energy {:.5} per atom",
        engine.neighbors(set, set)?.pairs(),
        energy(&engine, set, 1)?
    );
    Ok(())
}
