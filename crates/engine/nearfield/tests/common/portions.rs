//! What a device alone hands out in portions, compared with what the CPU backend does: chunks and
//! limited lists, batches of pairs, queries of free positions, and visits of single points.

use super::common::{Precise, Settings, as_vectors, builder_for, fill};
use nearfield::{Pair, lists::QueryScratch, prelude::*, report::JobReport};
use nearfield_testkit::{
    cloud::{Cloud, drift},
    conformance::{Case, Level},
};
use std::{ops::ControlFlow, sync::Mutex};

/// Source, and the bits of displacement and square.
pub(crate) type Bits = (u32, [u32; 3], u32);

/// The targets of every batch, and every target with its pairs.
pub(crate) type Batches = (Vec<Vec<u32>>, Vec<(u32, Vec<Bits>)>);

/// Chunks: the targets of each, and all lists by target.
pub(crate) type Chunks = (Vec<Vec<u32>>, Vec<Vec<u32>>);

/// Engines of a case on the CPU and on a device, with ascending lists.
pub(crate) fn engines<T: Precise>(
    case: &Case<T>,
    device: Device,
    limit: Option<u64>,
) -> [Result<(Engine, Vec<PointSetId>), Error>; 2] {
    [Device::Cpu, device].map(|device| {
        let builder = builder_for(case, Settings::default()).device(device);
        let builder = builder.list_order(ListOrder::Ascending);
        let builder = match limit {
            Some(limit) => builder.memory_limit(limit),
            None => builder,
        };
        fill(builder.build()?, case)
    })
}

/// The device did it.
pub(crate) fn assert_on(engine: &Engine, device: Device, case: &str) {
    let report = engine.report();
    let jobs = report.jobs;
    let done = jobs.iter().all(|job| job.device == device);
    assert!(done, "{case}: {jobs:?} {:?}", report.gpu);
}

pub(crate) fn chunks_of(
    engine: &Engine,
    [targets, sources]: [PointSetId; 2],
    limit: u64,
) -> Result<Chunks, Error> {
    let mut chunks = engine.list_chunks(targets, sources)?;
    let (mut order, mut lists) = (Vec::new(), vec![Vec::new(); engine.points(targets)?]);
    assert!(chunks.bytes() as u64 <= limit);
    while let Some(chunk) = chunks.next_chunk()? {
        assert!(chunk.bytes() <= limit);
        for (target, list) in chunk.iter() {
            lists[target as usize] = list.to_vec();
        }
        order.push(chunk.targets().to_vec());
    }
    Ok((order, lists))
}

pub(crate) fn check_chunks<T: Precise>(device: Device, keep: impl Fn(&Case<T>) -> bool) {
    let runner = T::runner(Level::Quick).keep(keep);
    for (number, (case, expected)) in runner.with_lists().enumerate() {
        let longest = expected.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let limits = [16 + 4 * longest, 5_000 + 4 * longest, 1 << 30];
        let limit = limits[number % limits.len()];
        let [on_cpu, on_device] = engines(case, device, Some(limit)).map(|made| {
            let (engine, sets) = made.unwrap();
            let found = chunks_of(&engine, [sets[case.target], sets[case.source]], limit);
            (found.unwrap(), engine)
        });
        assert_on(&on_device.1, device, &case.name);
        let mut all = on_device.0.0.concat();
        all.sort_unstable();
        let once = all
            .iter()
            .enumerate()
            .all(|(k, &target)| k as u32 == target);
        assert!(once, "{}: {all:?}", case.name);
        assert_eq!(on_device.0.1, on_cpu.0.1, "{}, {limit} bytes", case.name);
    }
}

pub(crate) fn bits(source: u32, pair: Pair) -> Bits {
    // The sign of a zero is not promised.
    (
        source,
        pair.d.map(|d| (d + 0.0).to_bits()),
        pair.d2.to_bits(),
    )
}

/// The targets of every batch in the order of the first, and the sorted pairs of every target.
pub(crate) fn batches_of(engine: &Engine, [targets, sources]: [PointSetId; 2]) -> Batches {
    let found = Mutex::new((Vec::new(), Vec::new()));
    let flow = engine.for_each_batch(targets, sources, |batch| {
        let mut found = found.lock().unwrap();
        found.0.push(batch.targets.to_vec());
        for (k, &target) in batch.targets.iter().enumerate() {
            let pairs = batch.offsets[k] as usize..batch.offsets[k + 1] as usize;
            let pair = |at: usize| Pair {
                d: batch.d.map(|axis| axis[at]),
                d2: batch.d2[at],
            };
            let mut list: Vec<_> = (pairs)
                .map(|at| bits(batch.sources[at], pair(at)))
                .collect();
            list.sort_unstable();
            found.1.push((target, list));
        }
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    let (mut batches, mut pairs) = found.into_inner().unwrap();
    batches.sort();
    pairs.sort();
    (batches, pairs)
}

pub(crate) fn check_batches<T: Precise>(device: Device, keep: impl Fn(&Case<T>) -> bool) {
    for case in T::runner(Level::Quick).keep(keep).cases() {
        let [on_cpu, on_device] = engines(case, device, None).map(|made| {
            let (engine, sets) = made.unwrap();
            let found = batches_of(&engine, [sets[case.target], sets[case.source]]);
            (found, engine)
        });
        assert_on(&on_device.1, device, &case.name);
        assert_eq!(on_device.0.1, on_cpu.0.1, "{}", case.name);
    }
}

pub(crate) fn check_queries<T: Precise>(device: Device, keep: impl Fn(&Case<T>) -> bool) {
    let mut kept = [QueryScratch::default(), QueryScratch::default()];
    for case in T::runner(Level::Quick).keep(keep).cases() {
        let mut positions = case.targets().to_vec();
        // Some of them outside of the points, and of the box.
        for (k, position) in positions.iter_mut().enumerate().filter(|(k, _)| k % 7 == 3) {
            position[k % 3] = position[k % 3] - T::round(3.0) * case.radius;
        }
        let mut kept = kept.iter_mut();
        let [on_cpu, on_device] = engines(case, device, None).map(|made| {
            let (mut engine, sets) = made.unwrap();
            let (sources, scratch) = (sets[case.source], kept.next().unwrap());
            let lists = engine.query_into(T::positions(&positions), None, sources, scratch);
            let mut found = vec![as_vectors(lists.unwrap())];
            // The sets are as they were.
            engine.find_neighbors().unwrap();
            found.push(as_vectors(engine.neighbors(sources, sources).unwrap()));
            found.push(as_vectors(
                &engine
                    .query(T::positions(&positions[..1.min(positions.len())]), sources)
                    .unwrap(),
            ));
            (found, engine)
        });
        assert_on(&on_device.1, device, &case.name);
        assert_eq!(on_device.0, on_cpu.0, "{}", case.name);
    }
}

pub(crate) fn check_visits<T: Precise>(device: Device, keep: impl Fn(&Case<T>) -> bool) {
    for case in T::runner(Level::Quick).keep(keep).cases() {
        let points = case.targets().len();
        let some: Vec<usize> = (0..points).step_by(points.div_ceil(3).max(1)).collect();
        let [on_cpu, on_device] = engines(case, device, None).map(|made| {
            let (engine, sets) = made.unwrap();
            let visit = |&point: &usize| {
                let (targets, sources, mut found) =
                    (sets[case.target], sets[case.source], Vec::new());
                let add = |source: u32, pair: Pair| found.push(bits(source, pair));
                engine
                    .for_each_neighbor(targets, sources, point, add)
                    .unwrap();
                found.sort_unstable();
                found
            };
            let found = some.iter().map(visit).collect::<Vec<_>>();
            let points: Vec<u32> = some.iter().map(|&point| point as u32).collect();
            let lists = engine.neighbors_of(sets[case.target], sets[case.source], &points);
            for (list, found) in lists.unwrap().iter().zip(&found) {
                let mut list = list.to_vec();
                list.sort_unstable();
                let sources = found.iter().map(|(source, ..)| source);
                assert!(list.iter().eq(sources), "{}", case.name);
            }
            (found, engine)
        });
        // Pairs of images without 32-bit numbers are the CPU's work, and the report says so.
        let jobs = on_device.1.report().jobs;
        let is_right = |job: &JobReport| job.device == device || job.reason.contains("32 bits");
        let is_told = some.is_empty() || !jobs.is_empty();
        assert!(
            is_told && jobs.iter().all(is_right),
            "{}: {jobs:?}",
            case.name
        );
        assert_eq!(on_device.0, on_cpu.0, "{}", case.name);
    }
}

/// A moving cloud that fills its cells: everything comes in the order of the CPU backend, step by
/// step, with other jobs in between.
pub(crate) fn check_moving_cloud(device: Device, count: usize) {
    for periodic in [[None; 3], [Some(40.0), Some(40.0), None]] {
        let mut points = Cloud::Lattice.points(count, 3);
        let limit = 40 * count as u64;
        let mut engines = [Device::Cpu, device].map(|device| {
            let builder = Engine::builder(2.0).periodic(periodic).device(device);
            let builder = builder.list_order(ListOrder::Ascending).memory_limit(limit);
            let mut engine = builder.build().unwrap();
            let set = engine.add_point_set(&points).unwrap();
            (engine, set)
        });
        for step in 0..3 {
            drift(&mut points, 0.2, step);
            points.truncate(count - count / 30 * step as usize);
            let [on_cpu, on_device] = engines.each_mut().map(|(engine, set)| {
                engine.update(*set, &points).unwrap();
                let mut chunks = engine.list_chunks(*set, *set).unwrap();
                let (mut found, mut counts) = (Vec::new(), Vec::new());
                while let Some(chunk) = chunks.next_chunk().unwrap() {
                    let lists: Vec<_> = chunk.iter().map(|(_, list)| list.to_vec()).collect();
                    found.push((chunk.targets().to_vec(), lists));
                    // Another job, which works in cells of its own.
                    if counts.len() < 2 {
                        counts.push(engine.count_neighbors(*set, *set).unwrap());
                    }
                }
                let batches = batches_of(engine, [*set, *set]);
                let queried = engine.query(&points[..count / 8], *set).unwrap();
                (found, counts, batches, as_vectors(&queried))
            });
            assert!(on_cpu.0.len() > 2, "{} chunks", on_cpu.0.len());
            assert!(on_device.0 == on_cpu.0, "chunks of step {step}");
            assert!(on_device.1 == on_cpu.1, "counts of step {step}");
            assert!(on_device.2.0 == on_cpu.2.0, "batches of step {step}");
            assert!(on_device.2.1 == on_cpu.2.1, "pairs of step {step}");
            assert!(on_device.3 == on_cpu.3, "queries of step {step}");
        }
    }
}
