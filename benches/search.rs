//! Searches and traversals in the steady state, by spec `cloud/points/radius/work/engine`.
//!
//! `cargo bench --bench search` runs all, `cargo bench --bench search -- lattice` those that match.
//! Points are in z-sorted order and move by up to 0.015 r before every sample, as in a simulation;
//! updating the engine is part of what is timed.

use divan::{Bencher, counter::ItemsCount};
use kiddo::{ImmutableKdTree, SquaredEuclidean};
use nearfield::{
    Engine,
    kernels::{SphDensity, SphForce, WendlandC2},
    prelude::*,
};
use nearfield_testkit::cloud::{self, Cloud};
use rayon::prelude::*;
use std::{cell::RefCell, fmt, str::FromStr};

fn main() {
    let report = Engine::builder(1.0)
        .build()
        .expect("a CPU backend")
        .report();
    println!(
        "nearfield {}, {} threads, {} vectors",
        env!("CARGO_PKG_VERSION"),
        report.threads,
        report.simd.name()
    );
    divan::main();
}

/// A case that is timed.
const SPECS: [&str; 9] = [
    "lattice/1e6/r=2/lists/cpu",
    "lattice/1e6/r=2/lists/kiddo",
    "lattice/1e6/r=2/density/cpu",
    "lattice/1e6/r=2/force/cpu",
    "lattice/1e6/r=3/lists/cpu",
    "lattice/1e6/r=3/density/cpu",
    "pool-spray/1e6/r=2/lists/cpu",
    "pool-spray/1e6/r=2/density/cpu",
    "clusters/4.5e5/r=1/lists/cpu",
];

#[divan::bench(args = SPECS, sample_count = 11, sample_size = 1)]
fn step(bencher: Bencher<'_, '_>, spec: &str) {
    let spec: Spec = spec.parse().expect("a valid spec");
    let mut subject = Subject::new(&spec);
    subject.run(&spec);
    let subject = RefCell::new(subject);
    bencher
        .counter(ItemsCount::new(spec.points))
        .with_inputs(|| subject.borrow_mut().drift(&spec))
        .bench_local_values(|()| subject.borrow_mut().run(&spec));
}

/// A parsed spec.
struct Spec {
    cloud: Cloud,
    points: usize,
    radius: f32,
    work: String,
    engine: String,
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [cloud, points, radius, work, engine] = parts[..] else {
            return Err(format!("{text}: expected cloud/points/r=R/work/engine"));
        };
        let bad = |error: &dyn fmt::Display| format!("{text}: {error}");
        Ok(Self {
            cloud: cloud.parse().map_err(|e| bad(&e))?,
            points: points.parse::<f64>().map_err(|e| bad(&e))? as usize,
            radius: radius
                .trim_start_matches("r=")
                .parse()
                .map_err(|e| bad(&e))?,
            work: work.to_owned(),
            engine: engine.to_owned(),
        })
    }
}

struct Subject {
    positions: Vec<[f32; 3]>,
    masses: Vec<f32>,
    velocities: Vec<[f32; 3]>,
    engine: Engine,
    set: PointSetId,
    step: u64,
}

impl Subject {
    fn new(spec: &Spec) -> Self {
        let positions = spec.cloud.points(spec.points, 1);
        let mut engine = Engine::builder(spec.radius).build().expect("a CPU backend");
        let set = engine.add_point_set(&positions).expect("finite points");
        let order = engine.z_sort(set).expect("a known set");
        let positions = order.reordered(&positions).expect("equal lengths");
        Self {
            masses: vec![1.0; positions.len()],
            velocities: vec![[0.1, 0.2, 0.3]; positions.len()],
            positions,
            engine,
            set,
            step: 0,
        }
    }

    fn drift(&mut self, spec: &Spec) {
        self.step += 1;
        cloud::drift(&mut self.positions, 0.015 * spec.radius, self.step);
    }

    fn run(&mut self, spec: &Spec) -> f64 {
        if spec.engine == "kiddo" {
            return kiddo_lists(&self.positions, spec.radius) as f64;
        }
        let (engine, set) = (&mut self.engine, self.set);
        engine.update(set, &self.positions).expect("finite points");
        let kernel = WendlandC2::with_support(spec.radius);
        let (masses, velocities) = (&self.masses, &self.velocities);
        match spec.work.as_str() {
            "lists" => {
                engine.find_neighbors().expect("enough memory");
                engine.neighbors(set, set).expect("active").pairs() as f64
            }
            "density" => engine
                .traverse(&SphDensity { kernel }, set, set)
                .sources(masses)
                .run()
                .map(|density| f64::from(density[0]))
                .expect("matching fields"),
            "force" => engine
                .traverse(
                    &SphForce {
                        kernel,
                        h: 0.5 * spec.radius,
                        alpha_c: 0.1,
                    },
                    set,
                    set,
                )
                .targets((velocities, masses, masses))
                .sources((velocities, masses, masses, masses))
                .run()
                .map(|force| f64::from(force[0][0]))
                .expect("matching fields"),
            other => panic!("unknown work {other}"),
        }
    }
}

fn kiddo_lists(positions: &[[f32; 3]], radius: f32) -> usize {
    let tree: ImmutableKdTree<f32, 3> = ImmutableKdTree::new_from_slice(positions).expect("a tree");
    let lists: Vec<Vec<u32>> = positions
        .par_iter()
        .map(|position| {
            tree.query(position)
                .within::<SquaredEuclidean<f32>>(radius * radius)
                .unsorted()
                .execute()
                .iter()
                .map(|found| found.item)
                .collect()
        })
        .collect();
    lists.iter().map(|list| list.len() - 1).sum()
}
