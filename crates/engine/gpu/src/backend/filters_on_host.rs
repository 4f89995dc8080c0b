//! The walks of programs with filters: compared with the oracle's lists, from which the same pairs
//! are left out, on all conformance cases, in either precision. Radii of single points are those of
//! the cases that have them; types, exclusions and molecules are drawn. Squares that are equal in
//! `f32` and differ in `f64` are among the cases, so the nearest would be others if a kernel
//! rounded before it compares.

use super::on_host::{
    ListMethod, MakeFilters, PathCounts, check_geometry, compiled, lists, neighbors, radius_of,
    walks,
};
use super::sorted_on_host::is_double;
use crate::{
    constants,
    launch::{Filters, KernelLattice, Nearest, PairArrays},
};
use nearfield_grid::{Positions, Radius};
use nearfield_testkit::{
    conformance::{Case, Level, Runner},
    oracle::{self, Real},
    random::Random,
};
use std::{cell::RefCell, collections::HashSet};

/// Random filters of a case, for kernels and for the oracle.
pub(super) struct Drawn<T> {
    /// A row for each type; empty for none.
    cutoffs: Vec<T>,
    types: u32,
    of_points: [Vec<u32>; 2],
    molecules: Vec<u32>,
    starts: Vec<u64>,
    excluded: Vec<u32>,
    pub(super) oracle: oracle::Filters<T>,
}

/// Cut-offs of three types, for the points of a case.
fn draw_types<T: Real>(case: &Case<T>, random: &mut Random, drawn: &mut Drawn<T>) {
    const TYPES: usize = 3;
    let mut rows = vec![vec![T::default(); TYPES]; TYPES];
    for a in 0..TYPES {
        for b in 0..=a {
            let share = [0.0, 0.5, 0.75, 1.0][random.below(4) as usize];
            let cutoff = T::round(share) * case.radius;
            (rows[a][b], rows[b][a]) = (cutoff, cutoff);
        }
    }
    let squared = |&r: &T| match r == T::default() {
        true => T::round(-1.0),
        false => r * r,
    };
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
fn draw_lists<T>(lists: &[Vec<oracle::Neighbor>], random: &mut Random, drawn: &mut Drawn<T>) {
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
fn draw_molecules<T>(points: usize, random: &mut Random, drawn: &mut Drawn<T>) {
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

impl<T: Real> Drawn<T> {
    /// By number: types, exclusions or molecules, or types and one of these.
    pub(super) fn new(
        case: &Case<T>,
        lists: &[Vec<oracle::Neighbor>],
        random: &mut Random,
    ) -> Self {
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

impl<T: Real> Drawn<T> {
    /// The filters as kernels take them, but for radii of single points, for sources that are
    /// sorted in this order. `held` has the values of these sources, so it is to outlive the
    /// filters.
    pub(super) fn layout(
        &self,
        order: &[[f32; 4]],
        nearest: &[Nearest],
        held: &mut [Vec<u32>; 2],
    ) -> Filters {
        *held = [&self.of_points[1], &self.molecules].map(|values| sorted(values, order));
        Filters {
            cutoffs: address(&self.cutoffs),
            types: self.types,
            target_types: address(&self.of_points[0]),
            source_types: address(&held[0]),
            target_molecules: address(&self.molecules),
            source_molecules: address(&held[1]),
            excluded_starts: address(&self.starts),
            excluded: address(&self.excluded),
            nearest: address(nearest),
            ..Filters::default()
        }
    }

    /// The k nearest of full lists, for most cases, and the last of every target.
    pub(super) fn nearest(
        &mut self,
        case: &Case<T>,
        lists: Vec<Vec<oracle::Neighbor>>,
        random: &mut Random,
    ) -> (Vec<Vec<oracle::Neighbor>>, Vec<Nearest>) {
        // Images without 32-bit numbers are refused by the device.
        let far = |near: &oracle::Neighbor| near.image.iter().any(|&n| i32::try_from(n).is_err());
        let near = !lists.iter().flatten().any(far);
        let full = near && case.list == oracle::ListKind::Full && random.below(3) > 0;
        let k = if full {
            1 + random.below(9) as usize
        } else {
            usize::MAX
        };
        self.oracle.nearest = Some(k);
        let mut kept = case.problem().without(&self.oracle, lists);
        let last = kept.iter_mut().enumerate().map(|(target, list)| {
            let last = list.get(k.wrapping_sub(1)).copied();
            list.sort_unstable_by_key(|near| (near.index, near.image));
            let Some(last) = last else {
                return Nearest {
                    squared: f64::INFINITY,
                    ..Nearest::default()
                };
            };
            let (from, to) = (case.targets()[target], case.sources()[last.index as usize]);
            Nearest {
                squared: (case.problem())
                    .distance_squared(from, to, last.image)
                    .to_f64(),
                index: last.index,
                image: last.image.map(|boxes| boxes as i32),
            }
        });
        let last = last.collect();
        (kept, last)
    }
}

/// Values of the sources in sorted order, and two more.
fn sorted<V: Copy + Default>(values: &[V], order: &[[f32; 4]]) -> Vec<V> {
    if values.is_empty() {
        return Vec::new();
    }
    let of = order.iter().map(|at| values[at[3].to_bits() as usize]);
    of.chain([V::default(); 2]).collect()
}

/// The address of the first value; 0 for none.
fn address<V>(values: &[V]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    values.as_ptr() as u64
}

#[test]
fn walks_with_filters_find_the_pairs_that_are_left() {
    check_filtered_walks(Runner::new(Level::Quick));
}

#[test]
fn walks_with_filters_in_double_find_the_pairs_that_are_left() {
    check_filtered_walks(Runner::in_double(Level::Quick));
}

/// A radius that some points have and others exceed, in most cases with radii that count.
fn bulk_of<T: Real>(radii: &oracle::Radii<'_, T>, random: &mut Random) -> Option<Radius> {
    let of = |radii: &[T]| radii.to_vec();
    let mut all = match radii.rule {
        oracle::RadiusRule::Uniform => Vec::new(),
        oracle::RadiusRule::Gather => of(radii.targets),
        oracle::RadiusRule::Scatter => of(radii.sources),
        oracle::RadiusRule::Symmetric => [radii.targets, radii.sources].concat(),
    };
    all.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
    let few = all.len() / 2 + random.below(1 + all.len() as u64 / 2) as usize;
    let drawn = random.below(4) > 0;
    all.get(few)
        .filter(|_| drawn)
        .map(|&radius| radius_of(radius))
}

fn check_filtered_walks<T: Real>(runner: Runner<T>)
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let all = constants::NAMED + constants::NEAREST + constants::RADII;
    let macros = [
        format!("-DNF_FILTERS={all}"),
        format!("-DNF_DOUBLE={}", u32::from(is_double::<T>())),
    ];
    let macros = macros.each_ref().map(String::as_str);
    let Some(walks) = compiled("walk.cpp", &KernelLattice::HEADERS, &macros) else {
        return;
    };
    let (mut taken, mut random) = (PathCounts::default(), Random::new(31));
    let mut pairs = [0, 0];
    let methods = [ListMethod::Walks, ListMethod::Masks, ListMethod::Rows];
    for (case, all) in runner.with_neighbors() {
        // The cases are many; half of them do.
        if random.below(2) == 0 {
            continue;
        }
        let subdivision = [[1, 1, 1], [4, 1, 1], [2, 2, 2], [6, 3, 3]][random.below(4) as usize];
        let mut drawn = Drawn::new(case, all, &mut random);
        let problem = case.problem();
        let expected = problem.without(&drawn.oracle, all.to_vec());
        let (expected, nearest) = drawn.nearest(case, expected, &mut random);
        let radii = problem.radii;
        let all_alike = vec![case.radius; case.targets().len()];
        let means = methods[random.below(3) as usize];
        let kept = RefCell::new(([Vec::new(), Vec::new()], Vec::new()));
        let filters = |order: &[[f32; 4]]| {
            let mut kept = kept.borrow_mut();
            let others = drawn.layout(order, &nearest, &mut kept.0);
            let scattered = match radii.rule {
                oracle::RadiusRule::Scatter | oracle::RadiusRule::Symmetric => radii.sources,
                _ => &[],
            };
            kept.1 = sorted(scattered, order);
            let gathered = match radii.rule {
                oracle::RadiusRule::Gather | oracle::RadiusRule::Symmetric => radii.targets,
                oracle::RadiusRule::Scatter => &[],
                // Programs with radii have some.
                oracle::RadiusRule::Uniform => &all_alike,
            };
            Filters {
                target_radii: address(gathered),
                source_radii: address(&kept.1),
                largest_source: (scattered.iter().fold(0.0, |most, r| r.to_f64().max(most)) as f32)
                    .next_up(),
                ..others
            }
        };
        let by = (&filters as MakeFilters<'_>, bulk_of(&radii, &mut random));
        let found = lists(&walks, case, subdivision, means, by, &mut taken);
        let Some(found) = found else { continue };
        check_geometry(case, &found);
        let found = neighbors(&found);
        assert!(
            found == expected,
            "{} by {subdivision:?}, {means:?}",
            case.name
        );
        let count = |lists: &[Vec<oracle::Neighbor>]| lists.iter().map(Vec::len).sum::<usize>();
        pairs[0] += count(&expected);
        pairs[1] += count(all);
    }
    println!("{taken:?} {pairs:?}");
    // In double precision cells are for all radii.
    assert_eq!(taken.wide > 5, !is_double::<T>(), "{taken:?}");
    assert!(taken.domains.iter().all(|&cases| cases > 5), "{taken:?}");
    assert!(pairs[0] > 0 && pairs[0] < pairs[1], "{pairs:?}");
}

type OrderByDistance =
    unsafe extern "C" fn(*mut u32, *const PairArrays, u32, u32, u32, *mut Nearest);

#[test]
fn lists_come_nearest_first_and_tell_the_last_pair_that_is_kept() {
    check_order_by_distance::<f32>();
    check_order_by_distance::<f64>();
}

fn check_order_by_distance<T: Real>() {
    let Some(walks) = walks::<T>() else { return };
    let mut random = Random::new(12);
    for length in [0usize, 1, 2, 17, 40, 256, 300, 1000] {
        for by_block in [0, 1] {
            if by_block == 0 && length > 256 {
                continue;
            }
            let mut draw = |most| random.below(most) as u32;
            // Many are as far away as others, some the same source in another image.
            let pairs: Vec<(T, u32, [i32; 3])> = (0..length)
                .map(|_| {
                    (
                        T::round(0.1 * f64::from(draw(7))),
                        draw(20),
                        [0; 3].map(|_: i32| draw(4) as i32),
                    )
                })
                .collect();
            let mut entries: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
            let mut squares: Vec<T> = pairs.iter().map(|pair| pair.0).collect();
            let mut images: Vec<[i32; 3]> = pairs.iter().map(|pair| pair.2).collect();
            let arrays = PairArrays {
                images: images.as_mut_ptr() as u64,
                squares: squares.as_mut_ptr() as u64,
                ..PairArrays::default()
            };
            let (k, mut last) = (1 + length as u32 / 2, Nearest::default());
            // SAFETY: the function is declared so in walk.cpp; all arrays that are named have as
            // many values as the list.
            unsafe {
                let function = walks.get::<OrderByDistance>(b"order_by_distance").unwrap();
                let entries = entries.as_mut_ptr();
                function(entries, &arrays, length as u32, by_block, k, &mut last);
            }
            let mut expected = pairs;
            expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let found = squares.iter().zip(&entries).zip(&images);
            let found: Vec<_> = found
                .map(|((d2, index), image)| (*d2, *index, *image))
                .collect();
            assert_eq!(found, expected, "{length} entries");
            let nth = expected.get(k as usize - 1).map(|pair| pair.0.to_f64());
            assert_eq!(
                last.squared,
                nth.unwrap_or(f64::INFINITY),
                "{length} entries"
            );
        }
    }
}
