//! Lists and pairs that a GPU hands out in portions: what is copied, and that nothing falls back to
//! the CPU. The null GPU counts no neighbours, so there are no entries.

use crate::common::{counts, on_null_gpu};
use nearfield::{Device, Engine, PointSetId, lists::QueryScratch};
use std::ops::ControlFlow;

const GPU: Device = Device::Gpu(0);

/// An engine of a grid of points with the spacing 1.
fn engine() -> (Engine, PointSetId, Vec<[f32; 3]>) {
    let points: Vec<[f32; 3]> = (0..64_000)
        .map(|k| [k % 40, k / 40 % 40, k / 1600].map(|x| x as f32))
        .collect();
    let builder = Engine::builder(1.5).device(GPU).threads(2);
    let mut engine = builder.memory_limit(4 << 20).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    (engine, set, points)
}

/// Bytes up and down, and kernels, of a call.
fn cost(call: impl FnOnce()) -> [u64; 3] {
    let before = counts();
    call();
    let after = counts();
    [
        after.to_device - before.to_device,
        after.to_host - before.to_host,
        after.kernels - before.kernels,
    ]
}

fn assert_on_gpu(engine: &Engine) {
    let report = engine.report();
    assert!(
        report.jobs.iter().all(|job| job.device == GPU),
        "{:?} {:?}",
        report.jobs,
        report.gpu
    );
}

#[test]
fn portions_copy_what_is_handed_out() {
    on_null_gpu("portions::copies");
}

#[test]
#[ignore = "runs in a child"]
fn copies() {
    let (mut engine, set, points) = engine();
    let bytes = |per_point: usize| (per_point * points.len()) as u64;
    let few = 64 << 10;

    // Targets and lengths, four bytes each.
    let chunks = || {
        let mut chunks = engine.list_chunks(set, set).unwrap();
        assert_eq!(chunks.pairs(), 0);
        while chunks.next_chunk().unwrap().is_some() {}
    };
    chunks();
    let [up, down, kernels] = cost(chunks);
    assert!(up < few && kernels > 0, "{up} bytes, {kernels} kernels");
    assert!((bytes(8)..bytes(8) + few).contains(&down), "{down}");

    let batches = || {
        let flow = engine.for_each_batch(set, set, |_| ControlFlow::Continue(()));
        assert!(flow.unwrap().is_continue());
    };
    batches();
    let [up, down, _] = cost(batches);
    assert!(up < few, "{up}");
    assert!((bytes(8)..bytes(8) + few).contains(&down), "{down}");

    // Positions go up once; a start and a count per position come back.
    let mut scratch = QueryScratch::default();
    let mut query = || {
        let lists = engine.query_into(&points, None, set, &mut scratch).unwrap();
        assert_eq!(lists.len(), points.len());
    };
    query();
    let [up, down, kernels] = cost(query);
    assert!((bytes(12)..bytes(12) + few).contains(&up), "{up}");
    assert!((bytes(12)..bytes(12) + few).contains(&down), "{down}");
    assert!(kernels < 40, "{kernels}");

    // A point is asked for with a few bytes.
    let visit = || {
        let none = |_, _| panic!("the null GPU finds nothing");
        engine.for_each_neighbor(set, set, 7, none).unwrap();
    };
    visit();
    let [up, down, _] = cost(visit);
    assert!(up < few && down < few, "{up} and {down}");

    // Lists within the limit are counted once.
    let [_, down, kernels] = cost(|| engine.find_neighbors().unwrap());
    assert!((bytes(12)..bytes(12) + few).contains(&down), "{down}");
    assert!(kernels < 40, "{kernels}");
    assert!(engine.report().list_bytes <= 4 << 20);
    assert_on_gpu(&engine);
}

#[test]
fn free_positions_on_the_device_stay_there() {
    on_null_gpu("portions::queries_on_device");
}

#[test]
#[ignore = "runs in a child"]
fn queries_on_device() {
    use nearfield::device::DeviceEngine;
    // In an open domain no bounds are asked for, which the null GPU does not know.
    let mut engine = DeviceEngine::builder(1.5).on_gpu(0).unwrap();
    let positions = |engine: &DeviceEngine, count: usize| {
        engine
            .queue()
            .array("positions", &vec![0.5f32; 3 * count])
            .unwrap()
    };
    let points = positions(&engine, 20_000);
    let set = engine.add_point_set(&points.as_view()).unwrap();
    let mut moved = Vec::new();
    for count in [500, 1_000] {
        let probes = positions(&engine, count);
        let mut steps = [0, 1, 2].map(|_| {
            cost(|| {
                let queried = engine.query(&probes.as_view(), set).unwrap();
                let _ = engine.finish().unwrap();
                let lists = engine.neighbors(queried, set).unwrap();
                assert_eq!(lists.count.len(), count);
            })
        });
        assert_eq!(engine.point_sets(), 2);
        steps.sort_unstable();
        moved.push(steps[0]);
    }
    assert_eq!(moved[0], moved[1], "bytes up and down, kernels");
    assert!(moved[0][0] < 256 && moved[0][1] < 1024, "{moved:?}");
}
