//! What the report says is held is what the allocator has given out.

use nearfield::{
    Engine,
    kernels::SphDensity,
    lists::VerletLists,
    prelude::*,
    report::{Report, TableKind},
};
use nearfield_testkit::cloud::Cloud;
use nearfield_testkit::memory::Counting;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static MEMORY: Counting = Counting::new();

fn held() -> isize {
    MEMORY.held() as isize
}

/// Compares a report with the bytes that were held `before` there was anything to report.
fn check(report: &Report, before: isize) {
    let (total, held) = (report.memory.total() as isize, held() - before);
    // Queues of the pool, the lattice's rows and the list of sets are not worth reporting.
    let small = 128 << 10;
    assert!(
        (held - total).abs() <= small,
        "{held} bytes are held, {total} reported: {:?}",
        report.memory
    );
    assert!(
        total > 20 * small,
        "too little is held for this to say anything"
    );
}

/// Checks that the parts add up to the sums that are reported besides.
fn check_parts(report: &Report) {
    let memory = &report.memory;
    let parts: usize = memory.parts().iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(parts, memory.total());
    let sets: usize = report.sets.iter().map(|set| set.bytes).sum();
    let lists = report.list_bytes;
    assert_eq!(
        sets + lists + memory.backend_scratch + memory.positions,
        memory.total()
    );
    assert_eq!(memory.list_entries + memory.list_bookkeeping, lists);
    let beside_entries = (memory.total() - memory.list_entries) as f64;
    assert_eq!(
        report.bytes_per_point(),
        beside_entries / report.points() as f64
    );
}

fn engine(points: &[&[[f32; 3]]]) -> (Engine, Vec<PointSetId>) {
    let mut engine = Engine::builder(2.0).threads(2).build().unwrap();
    let sets = points
        .iter()
        .map(|set| engine.add_point_set(*set).unwrap())
        .collect();
    (engine, sets)
}

/// One test at a time, so that nothing else allocates meanwhile.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that an engine takes at most while `sets` sets of one point are added and `pairs` pairs of
/// them searched.
fn peak_of(sets: usize, pairs: usize) -> usize {
    let (_engine, peak) = MEMORY.peak(|| {
        let builder = Engine::builder(1.0).periodic([Some(1e4), None, None]);
        let mut engine = builder.threads(1).device(Device::Cpu).build().unwrap();
        engine.set_all_active(false);
        let ids: Vec<_> = (0..sets)
            .map(|k| engine.add_point_set(&[[0.5 * k as f32, 0.0, 0.0]]).unwrap())
            .collect();
        for k in 0..pairs {
            engine.set_active(ids[k], ids[k + 1], true).unwrap();
        }
        engine.find_neighbors().unwrap();
        assert_eq!(engine.report().pairs, pairs as u64);
        engine
    });
    peak
}

#[test]
fn memory_follows_the_number_of_sets_and_that_of_active_pairs() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let [none, few, many] = [(10, 9), (1000, 9), (4000, 9)].map(|(n, p)| peak_of(n, p) as f64);
    // Vectors double, so twice as much may be held as is needed.
    let per_set = [(few - none) / 990.0, (many - none) / 3990.0];
    assert!(per_set[1] < 2.0 * per_set[0], "bytes per set: {per_set:?}");
    let [some, more] = [500, 2000].map(|pairs| peak_of(4000, pairs) as f64 - many);
    assert!(
        more < 8.0 * some,
        "{some} and {more} bytes for four times as many pairs"
    );
}

#[test]
fn pairs_of_small_sets_take_little_memory_though_all_are_active() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (apart, most) in [(1e-3, 3000), (1.5, 800)] {
        let (_engine, peak) = MEMORY.peak(|| {
            let builder = Engine::builder(1.0).threads(1).device(Device::Cpu);
            let mut engine = builder.build().unwrap();
            for k in 0..100 {
                engine
                    .add_point_set(&[[apart * k as f32, 0.0, 0.0]])
                    .unwrap();
            }
            engine.find_neighbors().unwrap();
            engine
        });
        assert!(peak < 100 * 100 * most, "{} bytes a pair", peak / 10_000);
    }
}

#[test]
fn the_report_accounts_for_every_byte_held() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let fluid = Cloud::Lattice.points(64_000, 1);
    let boundary = Cloud::Uniform.points(20_000, 2);
    let masses = vec![1.0f32; fluid.len()];
    // The standard library and the pool keep some things for good: let them do so first.
    let (mut first, sets) = engine(&[&fluid[..100]]);
    first.find_neighbors().unwrap();
    first.count_neighbors(sets[0], sets[0]).unwrap();
    drop(first);

    let before = held();
    let (mut engine, sets) = engine(&[&fluid, &boundary]);
    let (a, b) = (sets[0], sets[1]);
    check(&engine.report(), before);
    let report = engine.report();
    assert_eq!((report.list_bytes, report.memory.places), (0, 0));
    assert!(report.memory.sorted_points >= 16 * report.points());

    engine.find_neighbors().unwrap();
    check(&engine.report(), before);
    check_parts(&engine.report());
    assert_eq!(
        engine.report().memory.list_bookkeeping,
        2 * 12 * (64_000 + 20_000)
    );

    let kernel = SphDensity::with_support(2.0);
    let fields = &masses;
    engine
        .traverse(&kernel, b, a)
        .sources(fields)
        .run()
        .unwrap();
    engine.for_each_neighbor(a, a, 0, |_, _| ()).unwrap();
    assert_eq!(engine.report().memory.places, 4 * 64_000);
    check(&engine.report(), before);
    check_parts(&engine.report());

    let mut far = fluid.clone();
    far[0] = [1e9; 3];
    engine.update(a, &far).unwrap();
    assert_eq!(engine.report().sets[0].table, TableKind::Hashed);
    drop(far);
    engine.find_neighbors().unwrap();
    check_parts(&engine.report());
    check(&engine.report(), before);
    drop(engine);

    let before = held();
    let mut lists = VerletLists::new(Engine::builder(2.0).threads(2), 0.2).unwrap();
    lists.add_point_set(&fluid).unwrap();
    lists.refresh().unwrap();
    assert_eq!(lists.report().memory.positions, 24 * 64_000);
    check(&lists.report(), before);
    check_parts(&lists.report());
}
