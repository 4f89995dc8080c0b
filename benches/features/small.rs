//! Whole steps of small systems, in microseconds: what a step costs however few its points are.
//!
//! Points are a jittered lattice of spacing 1, and r = 2.3: about 52 neighbours each in a periodic
//! box. A step gives a kept engine moved points and does one job: `find_neighbors` or a density. A
//! single call makes an engine, places the points, finds lists and drops the engine. With `--device
//! gpu` the positions are on the device (`DeviceEngine`), and a step ends with `finish`.
//!
//! Open and periodic steps are taken in turn; a figure is the median.

use super::Asked;
use nearfield::{Engine, Error, kernels::SphDensity, prelude::*};
use nearfield_testkit::{Cloud, cloud::drift};
use std::time::Instant;

const SIDES: [usize; 5] = [3, 5, 10, 16, 22];
const RADIUS: f32 = 2.3;

/// Points of a case, in two positions each, and the box that they fill.
struct Small {
    points: [Vec<[f32; 3]>; 2],
    side: f64,
}

impl Small {
    fn new(side: usize) -> Self {
        let first = Cloud::Lattice.points(side * side * side, 1);
        let into = |points: &mut Vec<[f32; 3]>| {
            let length = side as f32;
            let within = |x: f32| (x + 0.5).rem_euclid(length).min(length.next_down());
            points.iter_mut().for_each(|at| *at = at.map(within));
        };
        let mut second = first.clone();
        drift(&mut second, 0.05, 2);
        let mut points = [first, second];
        points.iter_mut().for_each(into);
        let side = side as f64;
        Self { points, side }
    }

    fn lengths(&self, periodic: bool) -> [Option<f64>; 3] {
        [periodic.then_some(self.side); 3]
    }
}

type Step<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;

/// Medians of the microseconds of steps that are taken in turn.
fn medians<const N: usize>(repeat: usize, mut steps: [Step<'_>; N]) -> Result<[f64; N], Error> {
    let mut times = [const { Vec::new() }; N];
    for turn in 0..repeat + 5 {
        for (step, times) in steps.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            step()?;
            if turn >= 5 {
                times.push(begin.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

pub(super) fn run(asked: &Asked) -> Result<(), Error> {
    println!(
        "| points | domain | lists | density | one call, lists |\n| --- | --- | --- | --- | --- |"
    );
    for small in SIDES.map(Small::new) {
        let repeat = 10 * asked.repeat;
        let [open, periodic] = match asked.device {
            #[cfg(feature = "gpu")]
            Device::Gpu(number) => on_device::times(number, &small, repeat)?,
            _ => on_host(asked, &small, repeat)?,
        };
        let points = small.points[0].len();
        println!("| {points} | open | {open} |\n| | periodic | {periodic} |");
    }
    Ok(())
}

/// The columns of a row.
fn row(lists: f64, density: f64, once: Option<f64>) -> String {
    let once = once.map_or("–".into(), |us| format!("{us:.1}"));
    format!("{lists:.1} | {density:.1} | {once}")
}

fn on_host(asked: &Asked, small: &Small, repeat: usize) -> Result<[String; 2], Error> {
    let builder = |periodic| {
        let builder = Engine::builder(RADIUS).device(asked.device);
        builder
            .threads(asked.threads)
            .periodic(small.lengths(periodic))
    };
    let lists = |periodic| -> Result<Step<'_>, Error> {
        let mut engine = builder(periodic).build()?;
        let set = engine.add_point_set(&small.points[0])?;
        let mut step = 0;
        Ok(Box::new(move || {
            step += 1;
            engine.update(set, &small.points[step % 2])?;
            engine.find_neighbors()
        }))
    };
    let density = |periodic| -> Result<Step<'_>, Error> {
        let mut engine = builder(periodic).build()?;
        let set = engine.add_point_set(&small.points[0])?;
        let (kernel, mass) = (
            SphDensity::with_support(RADIUS),
            vec![1.0f32; small.points[0].len()],
        );
        let (mut step, mut values) = (0, mass.clone());
        Ok(Box::new(move || {
            step += 1;
            engine.update(set, &small.points[step % 2])?;
            (engine.traverse(&kernel, set, set).sources(&mass)).run_into(&mut values)
        }))
    };
    let once = |periodic| -> Step<'_> {
        let builder = builder(periodic);
        Box::new(move || {
            let mut engine = builder.clone().build()?;
            engine.add_point_set(&small.points[0])?;
            engine.find_neighbors()
        })
    };
    let steps = [
        lists(false)?,
        lists(true)?,
        density(false)?,
        density(true)?,
        once(false),
        once(true),
    ];
    let [lo, lp, do_, dp, oo, op] = medians(repeat, steps)?;
    Ok([row(lo, do_, Some(oo)), row(lp, dp, Some(op))])
}

#[cfg(feature = "gpu")]
mod on_device {
    use super::{RADIUS, Small, Step, medians, row};
    use nearfield::{
        Error, ErrorKind,
        device::{DeviceEngine, DeviceField, Progress},
        kernels::SphDensity,
    };

    pub(super) fn times(number: u32, small: &Small, repeat: usize) -> Result<[String; 2], Error> {
        let lists = |periodic| step(number, small, periodic, false);
        let density = |periodic| step(number, small, periodic, true);
        let steps = [lists(false)?, lists(true)?, density(false)?, density(true)?];
        let [lo, lp, do_, dp] = medians(repeat, steps)?;
        Ok([row(lo, do_, None), row(lp, dp, None)])
    }

    fn step(number: u32, small: &Small, periodic: bool, density: bool) -> Result<Step<'_>, Error> {
        let builder = DeviceEngine::builder(RADIUS).periodic(small.lengths(periodic));
        let mut engine = builder.on_gpu(number)?;
        let stream = engine.stream().clone();
        let array = |values: &[f32]| {
            let array = engine.queue().array("values of the bench", values);
            array.map_err(|error| Error::from(ErrorKind::Gpu(error)))
        };
        let mut positions = Vec::new();
        for points in &small.points {
            positions.push(array(points.as_flattened())?);
        }
        let mass = array(&vec![1.0; small.points[0].len()])?;
        let mut values = array(&vec![0.0; small.points[0].len()])?;
        let kernel = SphDensity::with_support(RADIUS);
        let set = engine.add_point_set(&positions[0].as_view())?;
        let mut number = 0;
        Ok(Box::new(move || {
            let _ = &stream;
            number += 1;
            engine.update(set, &positions[number % 2].as_view())?;
            loop {
                if density {
                    engine
                        .traverse(&kernel, set, set)
                        .sources(DeviceField::new(mass.as_view(), 1))
                        .run_into(&mut values.as_view_mut())?;
                } else {
                    engine.find_neighbors(set, set)?;
                }
                if engine.finish()? == Progress::Valid {
                    return Ok(());
                }
            }
        }))
    }
}
