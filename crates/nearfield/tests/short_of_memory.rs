//! Calls of several steps that fail in the middle, because memory is short there: the engine is then
//! as it was before. A process of its own, whose allocator refuses what the test tells it to.

mod refusing;

use nearfield::prelude::*;
use refusing::Refusing;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// A lattice of m³ points, `spacing` apart.
fn lattice(m: usize, spacing: f32) -> Vec<[f32; 3]> {
    let at = |k: usize| (k % m) as f32 * spacing;
    (0..m * m * m)
        .map(|i| [at(i), at(i / m), at(i / m / m)])
        .collect()
}

/// The lists of all pairs of two sets.
fn all_lists(engine: &mut Engine) -> Vec<Vec<Vec<u32>>> {
    engine.find_neighbors().unwrap();
    let sets = [0, 1].map(PointSetId::new);
    let pairs = sets.iter().flat_map(|t| sets.iter().map(move |s| (*t, *s)));
    pairs
        .map(|(t, s)| {
            let lists = engine.neighbors(t, s).unwrap();
            lists.iter().map(<[u32]>::to_vec).collect()
        })
        .collect()
}

/// Every request from this on is made for a set as a whole: the smaller set has 8000 points.
const LARGE: usize = 8000 * 4;

#[test]
fn a_radius_that_memory_is_too_short_for_leaves_all_sets_on_the_old_one() {
    let mut engine = Engine::builder(1.5)
        .list_order(ListOrder::Ascending)
        .periodic([Some(40.0); 3])
        .threads(2)
        .build()
        .unwrap();
    engine.add_point_set(&lattice(20, 1.0)).unwrap();
    engine.add_point_set(&lattice(21, 0.9)).unwrap();
    let before = all_lists(&mut engine);
    let mut refused = 0;
    // Wherever memory runs out: at the first set, at the second, or nowhere.
    for granted in 0..40 {
        let set = MEMORY.while_short(LARGE, granted, || engine.set_radius(1.25));
        let Err(error) = set else {
            break;
        };
        assert!(error.is_out_of_memory(), "{error}");
        refused += 1;
        // The sets that could not be moved back are refused by name, and found again once they are
        // where the others are.
        if let Err(error) = engine.find_neighbors() {
            assert!(error.is_out_of_memory(), "{error}");
            engine.set_radius(1.5).unwrap();
        }
        assert_eq!(engine.radius(), 1.5);
        assert_eq!(all_lists(&mut engine), before, "{granted} requests granted");
    }
    assert!(refused >= 2, "only {refused} requests are large");
    assert_eq!(engine.radius(), 1.25);
    let mut other = Engine::builder(1.25)
        .list_order(ListOrder::Ascending)
        .periodic([Some(40.0); 3])
        .build()
        .unwrap();
    other.add_point_set(&lattice(20, 1.0)).unwrap();
    other.add_point_set(&lattice(21, 0.9)).unwrap();
    assert_eq!(all_lists(&mut engine), all_lists(&mut other));
}
