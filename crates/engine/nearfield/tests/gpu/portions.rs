//! What the GPU alone hands out in portions has the bits of the CPU backend.

use super::{GPU, engine_with, needs_gpu, uniform};
use crate::{
    common::{
        Precise, Settings, as_vectors, builder_for, fill,
        filters::{comparable, draw},
        rule_of,
    },
    fresh_seed,
    portions_of::{
        Bits, assert_on, batches_of, bits, check_batches, check_chunks, check_moving_cloud,
        check_queries, check_visits, chunks_of, engines,
    },
};
use nearfield::{lists::QueryScratch, prelude::*};
use nearfield_testkit::{
    conformance::{Case, Level},
    random::Random,
};

/// An engine that keeps programs loaded.
fn loaded() -> Engine {
    Engine::builder(1.0).device(GPU).build().unwrap()
}

#[test]
fn chunks_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_chunks::<f32>(GPU, uniform);
    check_chunks::<f64>(GPU, uniform);
}

#[test]
fn lists_within_a_limit_are_those_of_the_cpu() {
    check_limits::<f32>();
    check_limits::<f64>();
}

fn check_limits<T: Precise>() {
    needs_gpu!();
    let _loaded = loaded();
    for (case, expected) in T::runner(Level::Quick).keep(uniform).with_lists() {
        let needed = 12 * expected.len() as u64 + 4 * expected.concat().len() as u64;
        for limit in [needed.saturating_sub(1), needed] {
            let [on_cpu, on_device] = engines(case, GPU, Some(limit)).map(|made| {
                let (mut engine, sets) = made?;
                engine.set_all_active(false);
                engine.set_active(sets[case.target], sets[case.source], true)?;
                engine.find_neighbors()?;
                assert!(engine.report().list_bytes as u64 <= limit, "{}", case.name);
                let lists = engine.neighbors(sets[case.target], sets[case.source])?;
                Ok::<_, Error>((as_vectors(lists), engine))
            });
            let on_device = on_device.map(|(lists, engine)| {
                assert_on(&engine, GPU, &case.name);
                lists
            });
            let on_cpu = on_cpu.map(|(lists, _)| lists);
            assert_eq!(
                on_device.map_err(|error| error.to_string()),
                on_cpu.map_err(|error| error.to_string()),
                "{}, {limit} bytes",
                case.name
            );
        }
    }
}

#[test]
fn batches_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_batches::<f32>(GPU, uniform);
    check_batches::<f64>(GPU, uniform);
}

#[test]
fn queries_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_queries::<f32>(GPU, uniform);
    check_queries::<f64>(GPU, uniform);
}

#[test]
fn visits_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_visits::<f32>(GPU, |_| true);
    check_visits::<f64>(GPU, uniform);
}

#[test]
fn portions_of_a_moving_cloud_come_as_on_the_cpu() {
    needs_gpu!();
    check_moving_cloud(GPU, 60_000);
}

/// Filters and radii of single points, in chunks, limited lists, batches and queries.
/// Pairs of single points, and lists of the same points.
type Visits = (Vec<Vec<Bits>>, Vec<Vec<u32>>);

/// The neighbours of some points, one by one and as lists; in their order where that is said.
fn visits_of<T: Precise>(
    engine: &Engine,
    case: &Case<T>,
    [targets, sources]: [PointSetId; 2],
    ordered: bool,
) -> Result<Visits, Error> {
    let points = case.targets().len();
    let some: Vec<u32> = (0..points as u32)
        .step_by(points.div_ceil(5).max(1))
        .collect();
    let mut visited = Vec::new();
    for &point in &some {
        let mut found = Vec::new();
        let add = |source: u32, pair: Pair| found.push(bits(source, pair));
        engine.for_each_neighbor(targets, sources, point as usize, add)?;
        if !ordered {
            found.sort_unstable();
        }
        visited.push(found);
    }
    let mut lists = as_vectors(&engine.neighbors_of(targets, sources, &some)?);
    if !ordered {
        lists.iter_mut().for_each(|list| list.sort_unstable());
    }
    for (list, visited) in lists.iter().zip(&visited) {
        assert!(
            list.iter().eq(visited.iter().map(|(source, ..)| source)),
            "{}",
            case.name
        );
    }
    Ok((visited, lists))
}

#[test]
fn portions_with_filters_are_those_of_the_cpu() {
    check_filtered_portions::<f32>();
    check_filtered_portions::<f64>();
}

fn check_filtered_portions<T: Precise>() {
    needs_gpu!();
    let _loaded = loaded();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let runner = T::runner(Level::Quick);
    for (number, case) in runner.cases().enumerate() {
        let drawn = draw(case, random.below(32) as u32, &mut random);
        let ordered = drawn.filters.nearest.is_some();
        let limit = [1 << 30, 20_000][number % 2];
        let [on_cpu, on_gpu] = [Device::Cpu, GPU].map(|device| {
            let builder = drawn.settings(builder_for(case, Settings::default()));
            let builder = builder.device(device).memory_limit(limit);
            let (mut engine, sets) = fill(builder.build().unwrap(), case).unwrap();
            drawn.give(&mut engine, case, &sets);
            let (t, s) = (sets[case.target], sets[case.source]);
            engine.set_all_active(false);
            engine.set_active(t, s, true).unwrap();
            let lists = |lists| comparable(lists, ordered);
            let told = |error: Error| error.to_string();
            let chunks = chunks_of(&engine, [t, s], limit).map(|(_, found)| lists(found));
            let found = engine.find_neighbors();
            let found = found.map(|()| lists(as_vectors(engine.neighbors(t, s).unwrap())));
            let batches = batches_of(&engine, [t, s]).1;
            let radii = T::radii(case.radii_of(case.target));
            let radii = rule_of(case).needs_targets().then_some(radii);
            let (mut scratch, at) = (QueryScratch::default(), T::positions(case.targets()));
            let queried = engine.query_into(at, radii, s, &mut scratch);
            let queried = queried.map(|found| lists(as_vectors(found))).map_err(told);
            let visits = visits_of(&engine, case, [t, s], ordered);
            (
                chunks.map_err(told),
                found.map_err(told),
                batches,
                queried,
                visits.map_err(told),
            )
        });
        let what = format!("{}, seed {seed}", case.name);
        assert!(on_gpu.0 == on_cpu.0, "chunks of {what}");
        assert!(on_gpu.1 == on_cpu.1, "lists of {what}");
        assert!(on_gpu.2 == on_cpu.2, "batches of {what}");
        assert!(on_gpu.3 == on_cpu.3, "queries of {what}");
        assert!(on_gpu.4 == on_cpu.4, "visits of {what}");
    }
}

#[test]
fn what_queries_lack_is_refused_by_name() {
    needs_gpu!();
    let points = [[0.0; 3], [0.5, 0.0, 0.0]];
    let builder = Engine::builder(1.0).radii(RadiusRule::Scatter);
    let (mut engine, set) = engine_with(builder, GPU, &points);
    engine.set_radii(set, &[1.0, 0.75]).unwrap();
    let found = engine.query(&[[1.25f32, 0.0, 0.0]], set).unwrap();
    assert_eq!(found.of(0), [1], "within 0.75 of the second point alone");
    let mut scratch = QueryScratch::default();
    let radii = Some((&[1.0; 2]).into());
    let found = engine.query_into(&points, radii, set, &mut scratch);
    let refused = found.unwrap_err().to_string();
    assert!(refused.contains("positions of a query"), "{refused}");
}
