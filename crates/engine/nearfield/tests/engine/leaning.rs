//! Boxes that lean far or are nearly flat are searched by short vectors of their lattice. Pairs,
//! images and bits are the contract's all the same: those of the vectors as they were given.

use crate::{
    common::{Precise, Settings, engine_for, fingerprints_of, levels_in_turn, traverse},
    conformance::lists,
    geometry::{check, expected, has_narrow_images},
};
use nearfield::{ListOrder, lists::VerletLists};
use nearfield_testkit::{conformance::Case, oracle::Real, random::Random};
use std::time::Instant;

/// Box vectors, `None` along open axes.
type Vectors = [Option<[f64; 3]>; 3];

/// A box of any handedness, sheared by whole and other multiples of its vectors, or flattened; one
/// or two axes may be open. Those that are too flat for any engine are drawn again.
fn leaning_box(random: &mut Random) -> Vectors {
    let open = random.below(10);
    loop {
        let mut vectors = [0; 3].map(|_| [0; 3].map(|_| random.between(-2.5, 2.5)));
        for _ in 0..2 {
            let (k, l) = (random.below(3) as usize, random.below(3) as usize);
            let by = random.between(-12.0, 12.0);
            let by = if random.below(2) == 0 { by.round() } else { by };
            if k != l {
                vectors[k] = [0, 1, 2].map(|axis| vectors[k][axis] + by * vectors[l][axis]);
            }
        }
        let mut vectors = vectors.map(Some);
        match open {
            0..2 => vectors[open as usize] = None,
            // The two that are left lie in the plane of their axes.
            2 => {
                vectors[2] = None;
                vectors = vectors.map(|v| v.map(|[x, y, _]| [x, y, 0.0]));
            }
            _ => {}
        }
        let Ok(domain) = nearfield_grid::Domain::from_vectors(vectors) else {
            continue;
        };
        // The oracle tries every image along every vector.
        let images = domain.inverse().map(|row| {
            let [x, y, z] = row.unwrap_or_default();
            1.0 + 2.8 * x.hypot(y).hypot(z)
        });
        if domain.reduced().is_reduced() && images.iter().product::<f64>() < 2000.0 {
            return vectors;
        }
    }
}

/// Points near the corners and faces of the box, and some boxes away from it.
fn points<T: Real>(vectors: Vectors, number: usize, random: &mut Random) -> Vec<[T; 3]> {
    let mut point = |k: usize| {
        let mut at = [0.0; 3];
        for (axis, vector) in vectors.into_iter().enumerate() {
            let boxes = if k.is_multiple_of(4) {
                random.below(5) as f64 - 2.0
            } else {
                0.0
            };
            match vector {
                Some(vector) => {
                    let share = random.between(-0.1, 1.1) + boxes;
                    at = [0, 1, 2].map(|k| at[k] + share * vector[k]);
                }
                None => at[axis] += random.between(-1.5, 1.5),
            }
        }
        at.map(T::round)
    };
    (0..number).map(&mut point).collect()
}

fn case<T: Precise>(number: u64) -> Case<T> {
    let random = &mut Random::new(4000 + number);
    let vectors = leaning_box(random);
    let radius = T::round(random.between(0.3, 1.4));
    let count = 3 + random.below(12) as usize;
    let case = Case::new(
        format!("leaning {number} {vectors:?}"),
        radius,
        points(vectors, count, random),
    );
    let case = case.tilted(vectors);
    if number.is_multiple_of(3) {
        case.half()
    } else {
        case
    }
}

fn lists_and_sums<T: Precise>() {
    for (number, simd) in (0..60).zip(levels_in_turn()) {
        let case = case::<T>(number);
        let settings = Settings {
            subdivision: 1 + number as u32 % 2,
            ..Settings::at(simd)
        };
        let neighbors = case.problem().brute_force();
        let mut found = lists(&case, settings).unwrap();
        found.iter_mut().for_each(|list| list.sort_unstable());
        let expected = neighbors
            .iter()
            .map(|list| list.iter().map(|pair| pair.index).collect());
        assert!(
            found == expected.collect::<Vec<Vec<u32>>>(),
            "{}",
            case.name
        );
        if number % 3 != 0 {
            let (engine, sets) = engine_for(&case, settings).unwrap();
            let expected = fingerprints_of(&case, &neighbors);
            assert!(traverse(&engine, &case, &sets) == expected, "{}", case.name);
        }
    }
}

#[test]
fn lists_and_sums_in_leaning_boxes_are_the_contracts() {
    lists_and_sums::<f32>();
}

#[test]
fn lists_and_sums_in_leaning_boxes_are_the_contracts_in_double() {
    lists_and_sums::<f64>();
}

#[test]
fn geometry_in_leaning_boxes_names_images_by_the_vectors_as_given() {
    for (number, simd) in (0..60).zip(levels_in_turn()) {
        let case = case::<f32>(number);
        let neighbors = case.problem().brute_force();
        assert!(has_narrow_images(&neighbors));
        let expected = expected(&case, &neighbors);
        check(&case, &expected, Settings::at(simd), ListOrder::Ascending);
    }
}

#[test]
fn lists_with_a_skin_in_leaning_boxes_are_the_contracts() {
    for number in 0..30 {
        let mut case = case::<f32>(number);
        let builder = crate::common::builder_for(&case, Settings::default());
        let mut kept = VerletLists::new(builder, 0.2).unwrap();
        let set = kept.add_point_set(&case.sets[0]).unwrap();
        for _ in 0..3 {
            kept.refresh().unwrap();
            let mut found = vec![Vec::new(); case.sets[0].len()];
            kept.for_each_pair(set, set, |i, j, _| found[i as usize].push(j))
                .unwrap();
            found.iter_mut().for_each(|list| list.sort_unstable());
            assert!(found == case.problem().index_lists(), "{}", case.name);
            for at in &mut case.sets[0] {
                at[0] += 0.03;
                at[2] -= 0.05 * at[1].sin();
            }
            kept.update(set, &case.sets[0]).unwrap();
        }
    }
}

#[test]
fn few_points_in_a_leaning_box_take_no_longer_than_in_another() {
    let sheared = [[1.0, 0.0, 0.0], [37.3, 1.1, 0.0], [-11.0, 12.7, 0.9]];
    let flat = [[9.7, 0.3, 0.1], [0.2, 10.1, -0.3], [9.9, 10.4, 0.03]];
    let random = &mut Random::new(9);
    for vectors in [sheared, flat] {
        let points = points::<f32>(vectors.map(Some), 7, random);
        let case = Case::new("seven", 1.0, points).tilted(vectors.map(Some));
        let begin = Instant::now();
        let (mut engine, sets) = engine_for(&case, Settings::default()).unwrap();
        engine.find_neighbors().unwrap();
        let pairs = engine.neighbors(sets[0], sets[0]).unwrap().pairs();
        let took = begin.elapsed();
        let expected: usize = case.problem().index_lists().iter().map(Vec::len).sum();
        assert_eq!(pairs, expected as u64);
        // It takes milliseconds, and took seconds by the vectors as given.
        assert!(took.as_secs_f64() < 1.0, "{took:?}");
    }
}
