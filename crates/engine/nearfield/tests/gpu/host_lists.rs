//! Pair kernels over lists of engines whose data are on the host: those of a search, and lists with
//! a skin. A GPU sees the pairs of the CPU, with the same bits.

use crate::{
    GPU, assert_on_gpu,
    common::{
        Fingerprint, Precise, Settings, builder_for, fill, filters::draw, fingerprints_of, labels,
    },
    fresh_seed, needs_gpu,
    over_lists::{SPACES, points},
};
use nearfield::{
    ListKind,
    kernels::SphDensity,
    lists::{PairGeometry, Refresh, VerletLists},
    prelude::*,
};
use nearfield_testkit::{
    conformance::{Case, Level},
    oracle::{self, Neighbor},
    random::Random,
};

/// The sums of a case over the lists that an engine has found.
fn over_lists<T: Precise>(
    engine: &Engine,
    case: &Case<T>,
    [t, s]: [PointSetId; 2],
) -> Vec<[f32; 3]> {
    let (targets, sources) = (labels(case.targets()), labels(case.sources()));
    let traversal = engine.traverse(&Fingerprint, t, s).over_lists();
    let traversal = traversal.targets(&targets).sources(&sources);
    traversal.run().unwrap()
}

/// Kernels over the lists of every case, twice over one search and once more after another one,
/// with filters of the kinds in some bits of `kinds`.
fn check_cases<T: Precise>(kinds: u32) {
    needs_gpu!();
    let _loaded = Engine::builder(1.0).device(GPU).build().unwrap();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (case, neighbors) in T::runner(Level::Quick).with_neighbors() {
        // Half lists serve too: every pair is given to both points.
        let (mut full, mut all) = (case.clone(), neighbors.to_vec());
        if case.list == oracle::ListKind::Half {
            full.list = oracle::ListKind::Full;
            all = full.problem().neighbors();
        }
        let drawn = draw(case, random.below(32) as u32 & kinds, &mut random);
        let builder = drawn.settings(builder_for(case, Settings::default()));
        let (mut engine, sets) = fill(builder.device(GPU).build().unwrap(), case).unwrap();
        drawn.give(&mut engine, case, &sets);
        let pair = [sets[case.target], sets[case.source]];
        // The nearest of images that have no 32-bit numbers are the CPU's work.
        let is_far = |near: &Neighbor| near.image.iter().any(|&n| i32::try_from(n).is_err());
        let by_cpu = drawn.filters.nearest.is_some() && all.iter().flatten().any(is_far);
        let left = full.problem().without(&drawn.filters, all);
        let expected = fingerprints_of(&full, &left);
        for pass in 0..2 {
            engine.find_neighbors().unwrap();
            for _ in 0..2 {
                if by_cpu {
                    continue;
                }
                let found = over_lists(&engine, case, pair);
                assert!(found == expected, "{}, {pass}, seed {seed}", case.name);
                assert_on_gpu(&engine);
            }
            let positions = T::positions(&case.sets[case.target]);
            engine.update(pair[0], positions).unwrap();
            let traversal = engine.traverse(&Fingerprint, pair[0], pair[1]).over_lists();
            let (targets, sources) = (labels(case.targets()), labels(case.sources()));
            let traversal = traversal.targets(&targets).sources(&sources);
            let missing = traversal.run().unwrap_err();
            assert!(
                matches!(missing.kind(), ErrorKind::NoLists { .. }),
                "{missing}"
            );
        }
    }
}

#[test]
fn kernels_over_the_lists_of_every_case_see_the_oracles_pairs() {
    check_cases::<f32>(0);
}

#[test]
fn kernels_over_the_lists_of_every_case_in_double_see_the_oracles_pairs() {
    check_cases::<f64>(0);
}

#[test]
fn kernels_over_filtered_lists_of_every_case_see_the_oracles_pairs() {
    check_cases::<f32>(31);
    check_cases::<f64>(31);
}

/// Jobs in between that sort otherwise, other kernels, and sums that are added.
#[test]
fn lists_serve_several_kernels_with_other_jobs_in_between() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for kind in [ListKind::Full, ListKind::Half] {
        let mut set = points(&mut random, 30_000);
        let mass: Vec<f32> = (0..set.len()).map(|_| random.unit() as f32).collect();
        let density = SphDensity::with_support(0.9);
        let [mut on_cpu, mut on_gpu] = [Device::Cpu, GPU].map(|device| {
            let builder = SPACES[1].on_cpu(0.9).lists(kind).device(device);
            let mut engine = builder.build().unwrap();
            let id = engine.add_point_set(&set).unwrap();
            (engine, id)
        });
        for step in 0..3 {
            let of_points = labels(&set);
            let sums = [&mut on_cpu, &mut on_gpu].map(|(engine, id)| {
                engine.update(*id, &set).unwrap();
                engine.find_neighbors().unwrap();
                let density = || {
                    let traversal = engine.traverse(&density, *id, *id).over_lists();
                    traversal.sources(&mass[..set.len()])
                };
                let mut added = density().run().unwrap();
                // Positions far outside of the box ask for other cells.
                engine.query(&[[-90.0f32, 3.0, 2.0]], *id).unwrap();
                let mut chunks = engine.list_chunks(*id, *id).unwrap();
                chunks.next_chunk().unwrap();
                density().add_into(&mut added).unwrap();
                let traversal = engine.traverse(&Fingerprint, *id, *id).over_lists();
                let seen = traversal.targets(&of_points).sources(&of_points);
                (added, seen.run().unwrap())
            });
            assert_on_gpu(&on_gpu.0);
            let [(of_cpu, seen), (of_gpu, same)] = sums;
            assert!(seen == same, "{kind:?}, step {step}, seed {seed}");
            crate::assert_close(&of_gpu, &of_cpu, 1e-5, 1e-6, "densities");
            set.truncate(30_000 - 1_000 * step);
            set.iter_mut().for_each(|at| at[2] += 0.3);
        }
    }
}

/// Walks of two sets over lists with a skin, compared with an engine of the true radius.
fn check_walks<T: Precise + nearfield::device::PositionNumber>() {
    needs_gpu!();
    let seed = fresh_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (space, count) in SPACES.into_iter().zip([9_000, 20_000, 9_000, 2_000, 1_500]) {
        for kind in [ListKind::Full, ListKind::Half] {
            let (radius, skin) = (0.8, 0.2);
            let builder = || {
                let builder = space.on_cpu(radius).precision(T::PRECISION);
                builder.list_order(ListOrder::Ascending).lists(kind)
            };
            let mut lists = [Device::Cpu, GPU]
                .map(|device| VerletLists::new(builder().device(device), skin).unwrap());
            let mut exact = builder().lists(ListKind::Full).build().unwrap();
            let exactly = |at: [f32; 3], random: &mut Random| {
                at.map(|x| T::round(f64::from(x) + 1e-9 * random.unit()))
            };
            let mut sets = [count, count / 9].map(|count| {
                let points = points(&mut random, count).into_iter();
                let points = points.map(|at| exactly(at, &mut random));
                points.collect::<Vec<_>>()
            });
            let of_exact = sets
                .each_ref()
                .map(|points| exact.add_point_set(T::positions(points)).unwrap());
            let ids = lists.each_mut().map(|lists| {
                let add = |points: &Vec<_>| lists.add_point_set(T::positions(points)).unwrap();
                sets.each_ref().map(add)
            });
            for step in 0..6 {
                // One of the sets rests at times.
                let moving = if step % 3 == 2 { 1 } else { 2 };
                for points in &mut sets[..moving] {
                    for x in points.as_flattened_mut() {
                        *x = *x + T::round(0.03 * (2.0 * random.unit() - 1.0));
                    }
                }
                // Coordinates may be wrapped at any time.
                if let crate::over_lists::Space::Straight([Some(length), ..]) = space {
                    let at = random.below(count as u64) as usize;
                    sets[0][at][0] = sets[0][at][0] + T::round(length);
                }
                let mut refreshed = [Refresh::Kept; 2];
                for ((lists, ids), done) in lists.iter_mut().zip(ids).zip(&mut refreshed) {
                    for (id, points) in ids.into_iter().zip(&sets) {
                        lists.update(id, T::positions(points)).unwrap();
                    }
                    *done = lists.refresh().unwrap();
                }
                assert_eq!(refreshed[0], refreshed[1], "one rule on every device");
                for (id, points) in of_exact.into_iter().zip(&sets) {
                    exact.update(id, T::positions(points)).unwrap();
                }
                let what = format!("{space:?}, {kind:?}, step {step}, seed {seed}");
                check_step(&exact, of_exact, &lists[1], ids[1], &sets, &what);
                check_geometry(&lists, ids, &what);
            }
            let builds = lists[1].builds();
            assert!((2..6).contains(&builds), "{space:?}: {builds} builds");
        }
    }
}

/// Compares sums of all pairs of two sets over lists with a skin with those of an engine.
fn check_step<T: Precise>(
    exact: &Engine,
    of_exact: [PointSetId; 2],
    lists: &VerletLists,
    ids: [PointSetId; 2],
    sets: &[Vec<[T; 3]>; 2],
    what: &str,
) {
    for (a, b) in [(0, 0), (0, 1), (1, 0)] {
        let [targets, sources] = [a, b].map(|set| labels(&sets[set]));
        let expected = exact.traverse(&Fingerprint, of_exact[a], of_exact[b]);
        let expected = expected.targets(&targets).sources(&sources).run().unwrap();
        for _ in 0..2 {
            let found = lists.traverse(&Fingerprint, ids[a], ids[b]);
            let found = found.targets(&targets).sources(&sources).run().unwrap();
            assert!(found == expected, "{what}: {a} among {b}");
        }
    }
    let report = lists.report();
    assert_eq!(report.device, GPU, "{what}: {:?}", report.jobs);
}

/// The geometry of pairs by the GPU has the bits of the CPU.
fn check_geometry(lists: &[VerletLists; 2], ids: [[PointSetId; 2]; 2], what: &str) {
    for (a, b) in [(0, 0), (1, 0)] {
        let [of_cpu, of_gpu] = [0, 1].map(|which: usize| {
            let (lists, ids) = (&lists[which], ids[which]);
            let mut geometry = PairGeometry::default();
            lists.pair_geometry(ids[a], ids[b], &mut geometry).unwrap();
            let points = lists.points(ids[a]).unwrap();
            let pairs = (0..points).map(|i| {
                let bits = |pair: nearfield::lists::NeighborPair| {
                    let d = pair.d.map(|x| (x + 0.0).to_bits());
                    (pair.index, pair.image, d, pair.d2.to_bits())
                };
                geometry.of(i).map(bits).collect::<Vec<_>>()
            });
            pairs.collect::<Vec<_>>()
        });
        assert!(of_gpu == of_cpu, "geometry of {a} among {b}, {what}");
    }
    let report = lists[1].report();
    assert_eq!(report.device, GPU, "{what}: {:?}", report.jobs);
}

#[test]
fn lists_with_a_skin_see_the_pairs_of_the_positions_of_now() {
    check_walks::<f32>();
}

#[test]
fn lists_with_a_skin_in_double_see_the_pairs_of_the_positions_of_now() {
    check_walks::<f64>();
}
