//! What the GPU alone hands out in portions has the bits of the CPU backend.

use super::{GPU, needs_gpu, uniform};
use crate::{
    common::as_vectors,
    portions_of::{
        assert_on, check_batches, check_chunks, check_moving_cloud, check_queries, check_visits,
        engines,
    },
};
use nearfield::prelude::*;
use nearfield_testkit::conformance::{Level, Runner};

/// An engine that keeps programs loaded.
fn loaded() -> Engine {
    Engine::builder(1.0).device(GPU).build().unwrap()
}

#[test]
fn chunks_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_chunks(GPU, uniform);
}

#[test]
fn lists_within_a_limit_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    for (case, expected) in Runner::new(Level::Quick).keep(uniform).with_lists() {
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
    check_batches(GPU, uniform);
}

#[test]
fn queries_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_queries(GPU, uniform);
}

#[test]
fn visits_are_those_of_the_cpu() {
    needs_gpu!();
    let _loaded = loaded();
    check_visits(GPU, uniform);
}

#[test]
fn portions_of_a_moving_cloud_come_as_on_the_cpu() {
    needs_gpu!();
    check_moving_cloud(GPU, 60_000);
}
