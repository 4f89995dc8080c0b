//! Filters and radii of single points of data that live on a GPU: lists, counts and sums are those
//! of the CPU backend.

use crate::{
    assert_close,
    common::{Precise, as_vectors},
    fresh_seed, needs_gpu,
    on_gpu::{FromHost, start, upload},
};
use nearfield::{
    PointSetId,
    balance::Policy,
    device::{CpuHelper, DeviceEngine, DeviceField, PositionNumber, Progress},
    kernels::SphDensity,
    prelude::*,
};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    random::Random,
};

/// The lists on the device, in their order.
pub(crate) fn lists(engine: &mut DeviceEngine, set: PointSetId) -> Vec<Vec<u32>> {
    engine.find(set, set);
    let (found, stream) = (engine.neighbors(set, set).unwrap(), engine.stream());
    let start = stream.clone_dtoh(&found.start).unwrap();
    let count = stream.clone_dtoh(&found.count).unwrap();
    let entries = stream.clone_dtoh(&found.entries).unwrap();
    let list = |(&start, &count): (&u64, &u32)| {
        entries[start as usize..start as usize + count as usize].to_vec()
    };
    start.iter().zip(&count).map(list).collect()
}

/// Counts and sums on the device, by a search and over lists; results of targets that are not
/// chosen stay −1.
pub(crate) fn values(engine: &mut DeviceEngine, set: PointSetId) -> (Vec<u32>, [Vec<f32>; 2]) {
    let points = engine.points(set).unwrap();
    let stream = engine.stream().clone();
    let mass = stream.clone_htod(&vec![1.5f32; points]).unwrap();
    let mut counts = stream.alloc_zeros::<u32>(points).unwrap();
    let mut sums = [(); 2].map(|()| stream.clone_htod(&vec![-1.0f32; points]).unwrap());
    loop {
        engine
            .count_neighbors(set, set, &mut counts.as_view_mut())
            .unwrap();
        engine.find_neighbors(set, set).unwrap();
        for (over_lists, sums) in sums.iter_mut().enumerate() {
            let traversal = engine.traverse(&SphDensity::with_support(2.0), set, set);
            let traversal = match over_lists {
                0 => traversal,
                _ => traversal.over_lists(),
            };
            traversal
                .sources(DeviceField::new(mass.as_view(), 1))
                .run_into(&mut sums.as_view_mut())
                .unwrap();
        }
        if engine.finish().unwrap() == Progress::Valid {
            break;
        }
    }
    (
        stream.clone_dtoh(&counts.as_view()).unwrap(),
        sums.map(|sums| stream.clone_dtoh(&sums.as_view()).unwrap()),
    )
}

/// Data of so many points, given to either engine.
pub(crate) struct Data {
    pub(crate) radii: Vec<f32>,
    pub(crate) types: Vec<u8>,
    pub(crate) molecules: Vec<u32>,
    bonds: Vec<[u32; 2]>,
    pub(crate) mask: Vec<bool>,
}

impl Data {
    pub(crate) fn draw(count: usize, share: f64, random: &mut Random) -> Self {
        let index = |i: usize| i as u32;
        Self {
            radii: (0..count)
                .map(|_| random.between(0.5, 2.0) as f32)
                .collect(),
            types: (0..count).map(|_| random.below(2) as u8).collect(),
            molecules: (0..count).map(|i| index(i) / 3).collect(),
            bonds: (1..count).map(|i| [index(i) - 1, index(i)]).collect(),
            mask: (0..count).map(|_| random.unit() < share).collect(),
        }
    }
}

/// Points in another precision, with digits that `f32` does not have.
fn precisely<T: Precise>(points: &[[f32; 3]], random: &mut Random) -> Vec<[T; 3]> {
    let mut exact = |x: f32| T::round(f64::from(x) + 1e-9 * random.unit());
    points.iter().map(|at| at.map(&mut exact)).collect()
}

/// Gives an engine, of either kind, the data of a step.
macro_rules! give {
    ($engine:expr, $set:expr, $rule:expr, $step:expr, $data:expr) => {
        match $rule {
            RadiusRule::Uniform => $engine.set_types($set, &$data.types).unwrap(),
            _ => $engine.set_radii($set, &$data.radii).unwrap(),
        }
        match $step % 2 {
            0 => $engine.set_molecules($set, &$data.molecules).unwrap(),
            _ => $engine.exclude_pairs($set, &$data.bonds).unwrap(),
        }
        match $step {
            0 => $engine.clear_targets($set).unwrap(),
            _ => $engine.set_target_mask($set, &$data.mask).unwrap(),
        }
    };
}

#[test]
fn steps_on_the_device_with_filters_are_those_of_the_cpu() {
    check_steps::<f32>(&[
        (RadiusRule::Uniform, None, 40_000),
        (RadiusRule::Uniform, Some(7), 6_000),
        (RadiusRule::Gather, Some(3), 40_000),
        (RadiusRule::Scatter, None, 40_000),
        (RadiusRule::Symmetric, None, 6_000),
    ]);
}

#[test]
fn steps_on_the_device_with_filters_in_double_are_those_of_the_cpu() {
    check_steps::<f64>(&[
        (RadiusRule::Uniform, None, 40_000),
        (RadiusRule::Uniform, Some(7), 6_000),
        (RadiusRule::Gather, None, 40_000),
        (RadiusRule::Scatter, Some(5), 6_000),
        (RadiusRule::Symmetric, None, 40_000),
    ]);
}

/// Compares an engine on the device with one on the CPU for these rules, numbers of nearest pairs
/// and numbers of points.
fn check_steps<T: Precise + PositionNumber>(kinds: &[(RadiusRule, Option<u32>, usize)]) {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for &(rule, k, count) in kinds {
        let mut points = Cloud::Lattice.points(count, 3);
        let cutoffs = [[2.0, 1.0], [1.0, 0.0]];
        let periodic = [Some(40.0), Some(40.0), None];
        let on_gpu = DeviceEngine::builder(2.0).precision(T::PRECISION);
        let mut on_gpu = on_gpu.periodic(periodic).radii(rule);
        let mut on_cpu = T::builder(T::round(2.0)).periodic(periodic).radii(rule);
        if rule == RadiusRule::Uniform {
            (on_gpu, on_cpu) = (on_gpu.cutoffs(&cutoffs), on_cpu.cutoffs(&cutoffs));
        }
        match k {
            Some(k) => (on_gpu, on_cpu) = (on_gpu.nearest(k), on_cpu.nearest(k)),
            None => {
                on_gpu = on_gpu.list_order(ListOrder::Ascending);
                on_cpu = on_cpu.list_order(ListOrder::Ascending);
            }
        }
        let (mut on_gpu, mut on_cpu) = (start(on_gpu), on_cpu.build().unwrap());
        let given = precisely::<T>(&points, &mut random);
        let sent = upload(on_gpu.stream(), &given);
        let of_gpu = on_gpu.add_point_set(&sent.as_view()).unwrap();
        let of_cpu = on_cpu.add_point_set(T::positions(&given)).unwrap();
        for step in 0..3u64 {
            drift(&mut points, 0.2, step);
            points.truncate(count - 1_000 * step as usize);
            let data = Data::draw(points.len(), [0.01, 0.5][step as usize % 2], &mut random);
            let given = precisely::<T>(&points, &mut random);
            let sent = upload(on_gpu.stream(), &given);
            on_gpu.update(of_gpu, &sent.as_view()).unwrap();
            on_cpu.update(of_cpu, T::positions(&given)).unwrap();
            give!(on_gpu, of_gpu, rule, step, data);
            give!(on_cpu, of_cpu, rule, step, data);
            let what = format!("step {step}, {rule}, {k:?} nearest, seed {seed}");
            on_cpu.find_neighbors().unwrap();
            let expected = as_vectors(on_cpu.neighbors(of_cpu, of_cpu).unwrap());
            assert!(lists(&mut on_gpu, of_gpu) == expected, "lists of {what}");
            let (counts, sums) = values(&mut on_gpu, of_gpu);
            assert!(
                counts == on_cpu.count_neighbors(of_cpu, of_cpu).unwrap(),
                "{what}"
            );
            let mut expected = vec![-1.0f32; points.len()];
            let mass = vec![1.5f32; points.len()];
            let kernel = SphDensity::with_support(2.0);
            let traversal = on_cpu.traverse(&kernel, of_cpu, of_cpu).sources(&mass);
            traversal.run_into(&mut expected).unwrap();
            for sums in &sums {
                assert_close(sums, &expected, 1e-5, 1e-6, &what);
            }
        }
    }
}

#[test]
fn data_that_a_set_lacks_or_cannot_have_are_refused_by_name() {
    needs_gpu!();
    let points = [[0.0f32; 3], [0.5, 0.0, 0.0]];
    let mut engine = start(DeviceEngine::builder(1.0).cutoffs(&[[1.0]]));
    let set = engine.add(&points);
    let text = engine.find_neighbors(set, set).unwrap_err().to_string();
    assert!(text.contains("has no types for its 2 points"), "{text}");
    let text = engine.set_types(set, &[0u8, 1]).unwrap_err().to_string();
    assert!(text.contains("point 1 has the type 1"), "{text}");
    engine.set_types(set, &[0u8, 0]).unwrap();
    engine.set_molecules(set, &[4, 4]).unwrap();
    assert_eq!(lists(&mut engine, set), [[], []] as [[u32; 0]; 2]);
    // What was given for two points is not taken for three.
    engine.put(set, &[points[0], points[1], [0.0, 0.5, 0.0]]);
    engine.set_types(set, &[0u8; 3]).unwrap();
    let text = engine.find_neighbors(set, set).unwrap_err().to_string();
    assert!(text.contains("exclusions"), "{text}");
    engine.clear_exclusions(set).unwrap();
    assert_eq!(lists(&mut engine, set).concat().len(), 6);

    let mut engine = start(DeviceEngine::builder(1.0).radii(RadiusRule::Gather));
    let set = engine.add(&points);
    let text = engine.set_radii(set, &[1.0, 2.0]).unwrap_err().to_string();
    assert!(text.contains("radius"), "{text}");
    engine.set_radii(set, &[1.0, 0.25]).unwrap();
    assert_eq!(lists(&mut engine, set), [vec![1], vec![]]);
    let stream = engine.stream().clone();
    let (mass, mut sums) = (
        stream.clone_htod(&[1.0f32; 2]).unwrap(),
        stream.alloc_zeros::<f32>(2).unwrap(),
    );
    let mut helper = CpuHelper::new(Policy::default(), 1).unwrap();
    let kernel = SphDensity::with_support(1.0);
    let refused = engine
        .with_cpu(&mut helper)
        .traverse(&kernel, set, set)
        .sources(DeviceField::new(mass.as_view(), 1))
        .run_into(&mut sums.as_view_mut());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("radii of single points"), "{text}");
}

/// What was found for the targets of before is not taken for those of now.
#[test]
fn targets_may_be_chosen_and_cleared_without_an_update() {
    needs_gpu!();
    let points = Cloud::Lattice.points(4_000, 9);
    let mut engine = start(DeviceEngine::builder(2.0).nearest(5));
    let set = engine.add(&points);
    let all = lists(&mut engine, set);
    assert!(all.iter().all(|list| list.len() <= 5));
    engine.set_targets(set, &[7, 1_234]).unwrap();
    let few = lists(&mut engine, set);
    let is_right = |(target, list): (usize, &Vec<u32>)| match target {
        7 | 1_234 => *list == all[target],
        _ => list.is_empty(),
    };
    assert!(few.iter().enumerate().all(is_right));
    engine.clear_targets(set).unwrap();
    assert!(lists(&mut engine, set) == all);
}

#[test]
fn a_new_set_has_nothing_of_a_removed_one() {
    needs_gpu!();
    let points = Cloud::Lattice.points(500, 4);
    let builder = DeviceEngine::builder(2.0).list_order(ListOrder::Ascending);
    let mut engine = start(builder);
    let kept = engine.add(&points);
    let all = lists(&mut engine, kept);
    let removed = engine.add(&points);
    engine
        .set_molecules(removed, &vec![1; points.len()])
        .unwrap();
    engine.set_targets(removed, &[3]).unwrap();
    assert!(lists(&mut engine, removed).concat().is_empty());
    engine.remove_point_set(removed).unwrap();
    let added = engine.add(&points);
    assert!(lists(&mut engine, added) == all);
}
