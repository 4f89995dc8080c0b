//! Sorted lists are the same bytes however they were found.

use crate::common::{Settings, builder_for, engine_for, fill, levels_in_turn};
use nearfield::{Error, ListOrder, lists::Csr, report::SimdLevel};
use nearfield_testkit::{
    cloud::Cloud,
    conformance::{Case, Level, Lists, Runner},
};

fn sorted(case: &Case, settings: Settings) -> Result<Csr, Error> {
    let builder = builder_for(case, settings).list_order(ListOrder::Ascending);
    let (mut engine, sets) = fill(builder.build()?, case)?;
    engine.find_neighbors()?;
    let lists = engine.neighbors(sets[case.target], sets[case.source])?;
    Ok(lists.to_csr()?)
}

/// The oracle's lists, which are ascending, as compressed sparse rows.
fn expected(lists: &Lists) -> Csr {
    let mut offsets = vec![0];
    offsets.extend(lists.iter().scan(0, |sum, list| {
        *sum += list.len() as u64;
        Some(*sum)
    }));
    Csr {
        offsets,
        indices: lists.concat(),
    }
}

#[test]
fn sorted_lists_are_the_oracles_bytes_at_every_simd_level_and_cell_size() {
    let runner = Runner::new(Level::Quick);
    let in_turn = levels_in_turn().zip([2, 3].into_iter().cycle());
    for ((case, lists), (simd, finer)) in runner.with_lists().zip(in_turn) {
        let expected = expected(lists);
        for (subdivision, simd) in [(1, simd), (finer, SimdLevel::detect())] {
            let settings = Settings {
                simd,
                subdivision,
                ..Settings::default()
            };
            let found = sorted(case, settings).unwrap();
            assert!(found == expected, "case {} with {settings:?}", case.name);
        }
    }
}

#[test]
fn sorted_lists_do_not_depend_on_threads() {
    let points = Cloud::PoolSpray.points(20_000, 3);
    let case = Case::new("pool", 2.0, points).periodic([Some(31.0), None, None]);
    let expected = expected(&case.expected());
    for threads in [1, 2, 5] {
        let settings = Settings {
            threads,
            ..Settings::default()
        };
        assert!(
            sorted(&case, settings).unwrap() == expected,
            "{threads} threads"
        );
    }
}

#[test]
fn queries_are_sorted_when_asked_for() {
    let points = Cloud::Uniform.points(4_000, 5);
    let (targets, sources) = points.split_at(1_000);
    let case = Case {
        sets: vec![targets.to_vec(), sources.to_vec()],
        source: 1,
        ..Case::new("query", 2.0, Vec::new())
    };
    let expected = expected(&case.expected());
    let found = |builder: nearfield::Builder| {
        let (engine, sets) = fill(builder.build().unwrap(), &case).unwrap();
        engine.query(targets, sets[1]).unwrap().to_csr().unwrap()
    };
    let builder = || builder_for(&case, Settings::default());
    assert!(found(builder().list_order(ListOrder::Ascending)) == expected);
    assert!(
        found(builder()) != expected,
        "lists come out ascending unasked, so this test says nothing"
    );
}

#[test]
fn the_order_is_unspecified_by_default() {
    let case = Case::new("lattice", 2.0, Cloud::Lattice.points(1_000, 1));
    let (mut engine, sets) = engine_for(&case, Settings::default()).unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(sets[0], sets[0]).unwrap();
    assert!(lists.iter().any(|list| !list.is_sorted()));
}
