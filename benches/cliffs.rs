//! Settings that should cost no more than the plain case beside them: vast boxes, tiny radii, radii
//! at the limits, a point far away, empty sets.
//!
//! `cargo bench -p nearfield --bench cliffs` times every pair of cases in turn and prints the least
//! times and their ratio; `-- vast` runs those whose name has "vast" in it, and `--points 1e5`
//! takes fewer points. It fails where a ratio exceeds 1.25: what is compared runs side by side, so
//! a busy machine changes both. Counting instructions is steadier: `-- NAME --only plain|odd
//! --repeat 5` runs one side alone, for `perf stat`.

use clap::Parser;
use nearfield::{Builder, Engine, prelude::*};
use nearfield_testkit::cloud::Cloud;
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// Allowed cost of a case, in times of the plain one.
const MOST: f64 = 1.25;

/// Engine and points of one side.
struct Side {
    builder: Builder,
    points: Points,
    empty_sets: usize,
}

enum Points {
    Single(Vec<[f32; 3]>),
    Double(Vec<[f64; 3]>),
}

struct Case {
    name: &'static str,
    plain: Side,
    odd: Side,
}

impl Side {
    fn single(radius: f32, points: Vec<[f32; 3]>) -> Self {
        Self {
            builder: Engine::builder(radius).device(Device::Cpu),
            points: Points::Single(points),
            empty_sets: 0,
        }
    }

    fn double(radius: f64, points: &[[f32; 3]]) -> Self {
        let points = points.iter().map(|at| at.map(f64::from)).collect();
        Self {
            builder: Engine::builder(radius)
                .precision(Precision::Double)
                .device(Device::Cpu),
            points: Points::Double(points),
            empty_sets: 0,
        }
    }

    fn periodic(self, lengths: [Option<f64>; 3]) -> Self {
        Self {
            builder: self.builder.periodic(lengths),
            ..self
        }
    }

    fn vectors(self, vectors: [Option<[f64; 3]>; 3]) -> Self {
        Self {
            builder: self.builder.box_vectors(vectors),
            ..self
        }
    }

    fn positions(&self) -> Positions<'_> {
        match &self.points {
            Points::Single(points) => points.into(),
            Points::Double(points) => points.into(),
        }
    }

    fn engine(&self) -> Engine {
        let mut engine = self.builder.clone().build().expect("settings");
        engine.add_point_set(self.positions()).expect("points");
        for _ in 0..self.empty_sets {
            let none: [[f32; 3]; 0] = [];
            engine.add_point_set(&none).expect("no points");
        }
        engine
    }

    /// One step: the points are placed and all lists found.
    fn step(&self, engine: &mut Engine) -> Duration {
        let begin = Instant::now();
        let points = engine.point_set(0).expect("added before");
        engine.update(points, self.positions()).expect("points");
        engine.find_neighbors().expect("lists");
        begin.elapsed()
    }
}

/// A jittered lattice of spacing 1 around the origin.
fn lattice(points: usize) -> Vec<[f32; 3]> {
    let mut points = Cloud::Lattice.points(points, 1);
    let side = (points.len() as f32).cbrt();
    for at in &mut points {
        *at = at.map(|x| x - 0.5 * side);
    }
    points
}

fn scaled(points: &[[f32; 3]], by: f32) -> Vec<[f32; 3]> {
    points.iter().map(|at| at.map(|x| x * by)).collect()
}

/// Points anywhere in the unit cube, a hundredth of them twice.
fn cube(points: usize) -> Vec<[f32; 3]> {
    let mut cube = nearfield_testkit::shapes::uniform_box(points, [[0.0; 3], [1.0; 3]], 3);
    for k in (100..cube.len()).step_by(100) {
        cube[k] = cube[k - 50];
    }
    cube
}

/// The last point is moved far away from all others.
fn with_outlier(mut points: Vec<[f32; 3]>) -> Vec<[f32; 3]> {
    if let Some(last) = points.last_mut() {
        *last = [1e6, -1e6, 1e6];
    }
    points
}

fn case(name: &'static str, plain: Side, odd: Side) -> Case {
    Case { name, plain, odd }
}

fn cases(points: usize) -> Vec<Case> {
    let mut cases = vast(points);
    cases.extend(small_and_far(points));
    cases
}

/// Boxes far larger than the cloud.
fn vast(points: usize) -> Vec<Case> {
    let lattice = lattice(points);
    let side = (points as f64).cbrt();
    let vast = Some(1e8);
    let open = || Side::single(2.0, lattice.clone());
    let tilted = |c: Option<f64>| {
        let (a, b) = ([side + 1.0, 0.0, 0.0], [0.3 * side, side + 1.0, 0.0]);
        Side::single(2.0, lattice.clone()).vectors([Some(a), Some(b), c.map(|c| [0.0, 0.0, c])])
    };
    let slab = [Some(side + 1.0), Some(side + 1.0), None];
    vec![
        case(
            "vast-1: one axis of 1e8",
            open(),
            open().periodic([None, None, vast]),
        ),
        case(
            "vast-x: the first axis of 1e8",
            open(),
            open().periodic([vast, None, None]),
        ),
        case(
            "vast-2: two axes of 1e8",
            open(),
            open().periodic([vast, vast, None]),
        ),
        case(
            "vast-3: three axes of 1e8",
            open(),
            open().periodic([vast; 3]),
        ),
        case(
            "vast-slab: 1e8 beside a box of two axes",
            open().periodic(slab),
            open().periodic([slab[0], slab[1], vast]),
        ),
        case(
            "vast-tilted: 1e8 beside a tilted box",
            tilted(None),
            tilted(vast),
        ),
        case(
            "vast-f64: three axes of 1e8 in f64",
            Side::double(2.0, &lattice),
            Side::double(2.0, &lattice).periodic([vast; 3]),
        ),
        case(
            "vast-large: three axes of 35,000 radii",
            open(),
            open().periodic([Some(7e4); 3]),
        ),
    ]
}

/// A point far away, radii at the limits, and empty sets.
fn small_and_far(points: usize) -> Vec<Case> {
    let (lattice, cube) = (lattice(points), cube(points));
    let few = lattice[..points.min(100_000)].to_vec();
    let open = || Side::single(2.0, lattice.clone());
    let tiny = |radius: f32| Side::single(radius, cube.clone());
    let tiny_f64 = |radius: f64| Side::double(radius, &cube);
    vec![
        case(
            "far-1: one of 100,000 points 1e6 away",
            Side::single(2.0, few.clone()),
            Side::single(2.0, with_outlier(few)),
        ),
        case("tiny-1e-14: duplicates", tiny(1e-6), tiny(1e-14)),
        case("tiny-2^-50: duplicates", tiny(1e-6), tiny(2f32.powi(-50))),
        case(
            "tiny-f64: duplicates in f64",
            tiny_f64(1e-6),
            tiny_f64(1e-14),
        ),
        case(
            "tiny-periodic: duplicates in a periodic cube",
            tiny(1e-6).periodic([Some(1.0); 3]),
            tiny(1e-14).periodic([Some(1.0); 3]),
        ),
        case(
            "large: radius 2^62",
            open(),
            Side::single(2f32.powi(62), scaled(&lattice, 2f32.powi(61))),
        ),
        case(
            "small: radius 2^-49",
            open(),
            Side::single(2f32.powi(-49), scaled(&lattice, 2f32.powi(-50))),
        ),
        case(
            "empty: a hundred empty sets",
            open(),
            Side {
                empty_sets: 100,
                ..open()
            },
        ),
    ]
}

/// Flags of the command line.
#[derive(clap::Parser)]
struct Asked {
    /// Only cases with one of these in their names
    filter: Vec<String>,
    #[arg(long, default_value_t = 1e6)]
    points: f64,
    /// Steps per side
    #[arg(long, default_value_t = 7)]
    repeat: usize,
    /// Run one side alone, plain or odd, without timing it
    #[arg(long)]
    only: Option<String>,
    /// Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let asked = Asked::parse();
    let points = asked.points as usize;
    let report = Engine::builder(1.0)
        .build()
        .expect("a CPU backend")
        .report();
    println!(
        "nearfield {}, {} threads, {} vectors, {} points",
        env!("CARGO_PKG_VERSION"),
        report.threads,
        report.simd.name(),
        points
    );
    let mut beyond = 0;
    for case in cases(points) {
        let wanted = |filter: &String| case.name.contains(filter.as_str());
        if !asked.filter.is_empty() && !asked.filter.iter().any(wanted) {
            continue;
        }
        if let Some(only) = &asked.only {
            let side = if only == "plain" {
                &case.plain
            } else {
                &case.odd
            };
            let mut engine = side.engine();
            for _ in 0..asked.repeat {
                side.step(&mut engine);
            }
            continue;
        }
        let sides = [&case.plain, &case.odd];
        let mut engines = sides.map(Side::engine);
        let mut least = [f64::INFINITY; 2];
        for _ in 0..asked.repeat {
            for (k, side) in sides.iter().enumerate() {
                let took = side.step(&mut engines[k]).as_secs_f64() * 1e3;
                least[k] = least[k].min(took);
            }
        }
        let ratio = least[1] / least[0];
        let verdict = if ratio <= MOST {
            ""
        } else {
            "  more than 1.25"
        };
        beyond += usize::from(ratio > MOST);
        println!(
            "{:<45} {:8.1} ms, plain {:8.1} ms: {ratio:.2}{verdict}",
            case.name, least[1], least[0]
        );
    }
    if beyond == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
