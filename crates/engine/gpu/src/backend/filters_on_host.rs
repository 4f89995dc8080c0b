//! The walks of programs with filters: compared with the oracle's lists, from which the same pairs
//! are left out, on all conformance cases. Radii of single points are those of the cases that have
//! them; types, exclusions and molecules are drawn.

use super::*;
use crate::constants;
use std::collections::HashSet;

/// Random filters of a case, for kernels and for the oracle.
struct Drawn {
    /// A row for each type; empty for none.
    cutoffs: Vec<f32>,
    types: u32,
    of_points: [Vec<u32>; 2],
    molecules: Vec<u32>,
    starts: Vec<u64>,
    excluded: Vec<u32>,
    oracle: oracle::Filters<f32>,
}

/// Cut-offs of three types, for the points of a case.
fn draw_types(case: &Case, random: &mut Random, drawn: &mut Drawn) {
    const TYPES: usize = 3;
    let mut rows = vec![vec![0.0; TYPES]; TYPES];
    for a in 0..TYPES {
        for b in 0..=a {
            let share = [0.0, 0.5, 0.75, 1.0][random.below(4) as usize];
            (rows[a][b], rows[b][a]) = (share * case.radius, share * case.radius);
        }
    }
    let squared = |&r: &f32| if r == 0.0 { -1.0 } else { r * r };
    drawn.cutoffs = rows.iter().flatten().map(squared).collect();
    let mut draw = |points: usize| -> Vec<u32> {
        (0..points)
            .map(|_| random.below(TYPES as u64) as u32)
            .collect()
    };
    let targets = draw(case.targets().len());
    let sources = match case.target == case.source {
        true => targets.clone(),
        false => draw(case.sources().len()),
    };
    drawn.types = TYPES as u32;
    drawn.of_points = [targets, sources];
    let types = drawn.of_points.each_ref();
    drawn.oracle.types = types.map(|of| of.iter().map(|&of| of as usize).collect());
    drawn.oracle.cutoffs = rows;
}

/// Exclusions of points of one set with some of their neighbours and of others.
fn draw_lists(lists: &[Vec<oracle::Neighbor>], random: &mut Random, drawn: &mut Drawn) {
    let points = lists.len() as u64;
    let mut pairs = HashSet::new();
    for (target, list) in lists.iter().enumerate() {
        let near = list.iter().map(|near| near.index);
        let some: Vec<u32> = near.filter(|_| random.below(3) == 0).collect();
        let far = random.below(points) as u32;
        for other in some.into_iter().chain([far]) {
            pairs.extend([[target as u32, other], [other, target as u32]]);
        }
    }
    let mut sorted: Vec<[u32; 2]> = pairs.iter().copied().collect();
    sorted.sort_unstable();
    let before = |point: u64| sorted.partition_point(|pair| u64::from(pair[0]) < point) as u64;
    drawn.starts = (0..=points).map(before).collect();
    drawn.excluded = sorted.iter().map(|pair| pair[1]).collect();
    drawn.oracle.excluded = pairs;
}

/// Molecules of some points each.
fn draw_molecules(points: usize, random: &mut Random, drawn: &mut Drawn) {
    let some = 1 + points as u64 / 4;
    drawn.molecules = (0..points).map(|_| random.below(some) as u32).collect();
    let of = &drawn.molecules;
    let all = 0..points;
    let together = all.clone().flat_map(|a| {
        let same = move |b: &usize| of[a] == of[*b];
        all.clone().filter(same).map(move |b| [a as u32, b as u32])
    });
    drawn.oracle.excluded = together.collect();
}

impl Drawn {
    /// By number: types, exclusions or molecules, or types and one of these.
    fn new(case: &Case, lists: &[Vec<oracle::Neighbor>], random: &mut Random) -> Self {
        let mut drawn = Self {
            cutoffs: Vec::new(),
            types: 0,
            of_points: Default::default(),
            molecules: Vec::new(),
            starts: Vec::new(),
            excluded: Vec::new(),
            oracle: oracle::Filters::default(),
        };
        let which = random.below(3);
        let one_set = case.target == case.source;
        if which < 2 && case.rule == oracle::RadiusRule::Uniform {
            draw_types(case, random, &mut drawn);
        }
        let few = case.targets().len() <= 2000;
        if one_set && which == 1 && few {
            draw_molecules(case.targets().len(), random, &mut drawn);
        } else if one_set && which > 0 {
            draw_lists(lists, random, &mut drawn);
        }
        drawn
    }
}

/// Values of the sources in sorted order, and two more.
fn sorted<T: Copy + Default>(values: &[T], order: &[[f32; 4]]) -> Vec<T> {
    if values.is_empty() {
        return Vec::new();
    }
    let of = order.iter().map(|at| values[at[3].to_bits() as usize]);
    of.chain([T::default(); 2]).collect()
}

/// The address of the first value; 0 for none.
fn address<T>(values: &[T]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    values.as_ptr() as u64
}

#[test]
fn walks_with_filters_find_the_pairs_that_are_left() {
    let macros = format!("-DNF_FILTERS={}", constants::NAMED + constants::RADII);
    let Some(walks) = compiled("walk.cpp", &KernelLattice::HEADERS, &[&macros]) else {
        return;
    };
    let runner = Runner::new(Level::Quick).keep(|case| !case.is_slanted());
    let (mut taken, mut random) = (PathCounts::default(), Random::new(31));
    let mut pairs = [0, 0];
    for (case, neighbors) in runner.with_neighbors() {
        let subdivision = [[1, 1, 1], [4, 1, 1], [2, 2, 2], [6, 3, 3]][random.below(4) as usize];
        let drawn = Drawn::new(case, neighbors, &mut random);
        let problem = case.problem();
        let expected = problem.without(&drawn.oracle, neighbors.to_vec());
        let radii = problem.radii;
        let all_alike = vec![case.radius; case.targets().len()];
        for means in [ListMethod::Walks, ListMethod::Masks, ListMethod::Rows] {
            let kept = std::cell::RefCell::new((Vec::new(), Vec::new(), Vec::new()));
            let filters = |order: &[[f32; 4]]| {
                let mut kept = kept.borrow_mut();
                kept.0 = sorted(&drawn.of_points[1], order);
                kept.1 = sorted(&drawn.molecules, order);
                let scattered = match radii.rule {
                    oracle::RadiusRule::Scatter | oracle::RadiusRule::Symmetric => radii.sources,
                    _ => &[],
                };
                kept.2 = sorted(scattered, order);
                let gathered = match radii.rule {
                    oracle::RadiusRule::Gather | oracle::RadiusRule::Symmetric => radii.targets,
                    oracle::RadiusRule::Scatter => &[],
                    // Programs with radii have some.
                    oracle::RadiusRule::Uniform => &all_alike,
                };
                Filters {
                    cutoffs: address(&drawn.cutoffs),
                    types: drawn.types,
                    target_types: address(&drawn.of_points[0]),
                    source_types: address(&kept.0),
                    target_molecules: address(&drawn.molecules),
                    source_molecules: address(&kept.1),
                    excluded_starts: address(&drawn.starts),
                    excluded: address(&drawn.excluded),
                    target_radii: address(gathered),
                    source_radii: address(&kept.2),
                    largest_source: scattered.iter().copied().fold(0.0, f32::max),
                    ..Filters::default()
                }
            };
            let found = lists(&walks, case, subdivision, means, &filters, &mut taken);
            let Some(found) = found else { continue };
            check_geometry(case, &found);
            let found = super::neighbors(&found);
            let by = || format!("{} by {subdivision:?}, {means:?}", case.name);
            assert!(found == expected, "{}", by());
            let count = |lists: &[Vec<oracle::Neighbor>]| lists.iter().map(Vec::len).sum::<usize>();
            pairs[0] += count(&expected);
            pairs[1] += count(neighbors);
        }
    }
    println!("{taken:?} {pairs:?}");
    assert!(taken.domains.iter().all(|&cases| cases > 10), "{taken:?}");
    assert!(pairs[0] > 0 && pairs[0] < pairs[1], "{pairs:?}");
}
