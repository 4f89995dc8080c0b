//! The geometry of pairs on ranks has the bits of one engine, with filters and without, for all
//! conformance cases; and positions find their neighbours by radii of their own and by distance.

use crate::common::{
    Precise, at, dealt,
    filtered::{geometry_of_one, geometry_of_ranks},
    filters::draw,
    on_ranks, within,
};
use nearfield::{Device, RadiusRule, lists::QueryScratch};
use nearfield_testkit::{conformance::Level, random::Random};

/// Numbers of ranks, in turn.
const RANKS: [usize; 5] = [3, 2, 5, 1, 4];

fn all_cases<T: Precise>(seed: u64) {
    let (mut random, mut found_pairs) = (Random::new(seed), 0);
    for (number, case) in T::cases(Level::Quick).cases().enumerate() {
        let kinds = match number % 2 {
            0 => 0,
            _ => random.below(32) as u32,
        };
        let drawn = draw(case, kinds, &mut random);
        let Some(expected) = geometry_of_one(case, &drawn) else {
            continue;
        };
        let (ranks, home) = (RANKS[number % RANKS.len()], number / 2 % 2 == 0);
        let found = geometry_of_ranks(case, &drawn, (ranks, home), Device::Auto);
        let name = format!("{} on {ranks} ranks, {home}, kinds {kinds:b}", case.name);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{name}: point {k}");
            found_pairs += found.len();
        }
    }
    assert!(found_pairs > 10_000, "{found_pairs} pairs");
}

#[test]
fn the_geometry_of_pairs_has_the_bits_of_one_engine() {
    within(1200, || all_cases::<f32>(7));
}

#[test]
fn the_geometry_of_pairs_in_double_has_the_bits_of_one_engine() {
    within(1200, || all_cases::<f64>(8));
}

/// Positions in and around the extent of points, dealt out to the ranks, and their radii.
fn asked<T: Precise>(
    radius: f64,
    points: &[[T; 3]],
    random: &mut Random,
) -> (Vec<[T; 3]>, Vec<f64>) {
    let near = |random: &mut Random| {
        let at = points[random.below(points.len() as u64) as usize];
        at.map(|x| T::round(x.to_f64() + radius * (random.unit() - 0.5)))
    };
    let positions: Vec<_> = (0..200).map(|_| near(random)).collect();
    let share = |_| radius * (0.25 + 0.75 * random.unit());
    let radii = (0..200).map(share).collect();
    (positions, radii)
}

/// A query of one engine and of ranks; `nearest` or a rule.
fn query<T: Precise>(rule: RadiusRule, nearest: Option<u32>, periodic: bool, seed: u64) {
    let points = nearfield_testkit::Cloud::by_name("lattice", 1000, seed).unwrap();
    // Thirds have digits that `f32` does not have.
    let third = |x: f32| T::round(f64::from(x) + 1.0 / 3.0);
    let points: Vec<[T; 3]> = points.iter().map(|at| at.map(third)).collect();
    let (radius, mut random) = (1.9, Random::new(seed));
    let (positions, of_positions) = asked(radius, &points, &mut random);
    let of_points: Vec<f64> = points
        .iter()
        .map(|_| radius * (0.3 + 0.7 * random.unit()))
        .collect();
    let periods = [periodic.then_some(10.0); 3];
    let mut one = nearfield::Engine::builder(radius)
        .precision(T::PRECISION)
        .periodic(periods)
        .radii(rule)
        .threads(1);
    if let Some(k) = nearest {
        one = one.nearest(k);
    }
    let mut one = one.build().unwrap();
    let set = one.add_point_set(T::positions(&points)).unwrap();
    if rule != RadiusRule::Uniform {
        one.set_radii(set, &of_points).unwrap();
    }
    let counts = rule.needs_targets();
    let (mut scratch, radii) = (QueryScratch::default(), counts.then_some(&of_positions[..]));
    let lists = one
        .query_into(
            T::positions(&positions),
            radii.map(Into::into),
            set,
            &mut scratch,
        )
        .unwrap();
    for ranks in [1, 2, 3, 5] {
        let found = on_ranks(ranks, |transport| {
            let mut builder = nearfield_ranks::RankedEngine::builder(radius)
                .periodic(periods)
                .radii(rule)
                .threads(1);
            if let Some(k) = nearest {
                builder = builder.nearest(k);
            }
            let mut engine = builder.build::<T>(transport)?;
            let mine = dealt(points.len(), engine.rank(), ranks);
            let ids: Vec<u64> = mine.iter().map(|index| *index as u64).collect();
            let set = engine.add_point_set(&at(&points, &mine), Some(&ids))?;
            if rule != RadiusRule::Uniform {
                engine.set_radii(set, &at(&of_points, &mine))?;
            }
            let mine = dealt(positions.len(), engine.rank(), ranks);
            let (here, radii) = (at(&positions, &mine), at(&of_positions, &mine));
            let refused = match counts {
                true => engine.query(&here, set),
                false => engine.query_with_radii(&here, &radii, set),
            };
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("count by the rule") || refused.contains("counts by the rule")
            );
            let lists = match counts {
                true => engine.query_with_radii(&here, &radii, set)?,
                false => engine.query(&here, set)?,
            };
            let found = mine.into_iter().enumerate();
            Ok(found
                .map(|(k, index)| (index, lists.of(k).to_vec()))
                .collect::<Vec<_>>())
        });
        for (index, list) in found.into_iter().flatten() {
            let mut expected: Vec<u64> = lists.of(index).iter().map(|j| u64::from(*j)).collect();
            if nearest.is_none() {
                expected.sort_unstable();
            }
            assert_eq!(list, expected, "position {index} on {ranks} ranks, {rule}");
        }
    }
}

#[test]
fn positions_find_neighbours_by_radii_of_single_points() {
    within(300, || {
        let rules = [
            RadiusRule::Gather,
            RadiusRule::Scatter,
            RadiusRule::Symmetric,
        ];
        for (number, rule) in rules.into_iter().enumerate() {
            let (periodic, seed) = (number % 2 == 0, 11 + number as u64);
            query::<f32>(rule, None, periodic, seed);
            query::<f64>(rule, None, !periodic, seed);
        }
    });
}

#[test]
fn positions_find_the_nearest_points_of_all_ranks() {
    within(300, || {
        for (number, k) in [1, 4, 20, 200].into_iter().enumerate() {
            query::<f32>(
                RadiusRule::Uniform,
                Some(k),
                number % 2 == 0,
                21 + number as u64,
            );
        }
    });
}
