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

/// One test, so that nothing else allocates meanwhile.
#[test]
fn the_report_accounts_for_every_byte_held() {
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
