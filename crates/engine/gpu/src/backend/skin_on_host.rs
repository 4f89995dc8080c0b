//! Lists with a skin on the CPU: kernels of slots.cu follow points that have moved since, and
//! those of stored.cu, over lists of a larger radius, see the pairs of the contract at the
//! positions of now, or none where a pair may be missing. As in `stored_on_host`.

use super::sorted_on_host::is_double;
use super::{
    on_host::radius_of,
    stored::candidates,
    stored_on_host::{Listed, Sorted, domain_of, expected, kernels, lattice_of, lists_of},
};
use crate::constants::{JUDGED_PAIRS, NAMED, NEAREST, READ_AHEAD};
use crate::launch::{Filters, Following, Judged, Lattice, Nearest, Stored};
use libloading::Library;
use nearfield_grid::{self as grid, Bounds, Positions};
use nearfield_testkit::{
    conformance::Case,
    oracle::{Neighbor, Real},
    random::Random,
};
use std::sync::PoisonError;

type RunJudge = unsafe extern "C" fn(*const Judged);
type RunFollow<T> = unsafe extern "C" fn(*const Following, *const Lattice, *mut T, u32);

/// What the kernel says of lists of these displacements of targets and sources, and of these that
/// are allowed.
fn judged(library: &Library, pairs: &[([u32; 2], f32)]) -> u32 {
    let mut stale = 7u32;
    for (part, pairs) in pairs.chunks(JUDGED_PAIRS as usize).enumerate() {
        let mut judged = Judged {
            moved: [[0; 2]; JUDGED_PAIRS as usize],
            stale: &raw mut stale as u64,
            allowed: [0.0; JUDGED_PAIRS as usize],
            pairs: pairs.len() as u32,
            more: u32::from(part > 0),
        };
        for (k, (moved, allowed)) in pairs.iter().enumerate() {
            judged.moved[k] = moved.each_ref().map(|word| std::ptr::from_ref(word) as u64);
            judged.allowed[k] = *allowed;
        }
        // SAFETY: the function is declared so in stored.cpp, and all words are there.
        unsafe { library.get::<RunJudge>(b"run_judge").unwrap()(&judged) };
    }
    // SAFETY: the word is here; the kernel wrote it through its address.
    unsafe { std::ptr::read_volatile(&raw const stale) }
}

#[test]
fn lists_are_judged_by_all_pairs_of_sets_together() {
    let Some(library) = kernels::<f32>(0) else {
        return;
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let by = |x: f32| (x * x).to_bits();
    let kept = ([by(0.25), by(0.5)], 0.75);
    assert_eq!(judged(&library, &[kept]), 0);
    assert_eq!(judged(&library, &[([by(0.25), by(0.5)], 0.7499)]), 1);
    assert_eq!(judged(&library, &[([by(f32::INFINITY), 0], 1e30)]), 1);
    assert_eq!(judged(&library, &[([0, 0], -1.0)]), 0, "no point has moved");
    // Any of them counts, in whichever call it is.
    for at in [0, 31, 32, 69] {
        let mut pairs = vec![kept; 70];
        pairs[at].1 = 0.5;
        assert_eq!(judged(&library, &pairs), 1, "{at}");
    }
    assert_eq!(judged(&library, &[kept; 70]), 0);
}

/// Takes a set to new positions, and returns the displacement and a set in the same order that
/// stands there.
fn follow<T: Real>(
    library: &Library,
    sorted: &Sorted<T>,
    lattice: &grid::Lattice,
    room: &Bounds,
    positions: &[[T; 3]],
) -> (Sorted<T>, u32) {
    let count = positions.len();
    let mut now = Sorted::at_places_of(sorted);
    let (mut moved, mut next, mut back) = (0u32, 7u32, vec![[T::round(f64::NAN); 3]; count]);
    let double = is_double::<T>();
    let given = sorted.given.as_ptr() as u64;
    let set = Following {
        built: sorted.at.as_ptr() as u64,
        given: if double { given } else { 0 },
        positions: positions.as_ptr() as u64,
        now: now.at.as_mut_ptr() as u64,
        now_given: now.given.as_mut_ptr() as u64,
        moved: &raw mut moved as u64,
        next: &raw mut next as u64,
        low: room.min,
        high: room.max,
        count: count as u32,
    };
    // SAFETY: the function is declared so in stored.cpp, and all arrays have a value per point; the
    // words are read when the kernels have ended.
    let (moved, next) = unsafe {
        let in_box = Lattice::of_box(lattice);
        let run = library.get::<RunFollow<T>>(b"run_follow").unwrap();
        let to = back.as_mut_ptr().cast();
        run(&set, &in_box, to, u32::from(double));
        (
            std::ptr::read_volatile(&raw const moved),
            std::ptr::read_volatile(&raw const next),
        )
    };
    assert_eq!(next, 0);
    let bits = |points: &[[T; 3]]| -> Vec<u64> {
        let numbers = points.iter().flatten();
        numbers.map(|x| x.to_f64().to_bits()).collect()
    };
    let same = bits(&back) == bits(positions);
    assert!(same, "positions come back in the caller's order");
    (now, moved)
}

#[test]
fn lists_with_a_skin_serve_points_that_have_moved_and_no_others() {
    check_skin::<f32>(false);
    check_skin::<f64>(false);
}

#[test]
fn lists_with_a_skin_leave_out_pairs_beyond_their_cutoff_of_now() {
    check_skin::<f32>(true);
    check_skin::<f64>(true);
}

/// The squared cut-off of two points, whose types are the parities of their indices.
fn squared_cutoff(a: u32, b: u32) -> f64 {
    [[0.5625, 0.25], [0.25, -1.0]][a as usize % 2][b as usize % 2]
}

/// What filters of these types read, for a set of so many points; nothing is nearer than the last.
fn filters_of<T: Real>(sorted: &Sorted<T>, held: &mut Held<T>) -> Filters {
    let count = sorted.at.len() as u32;
    let types = |index: u32| index % 2;
    held.types = (0..count).map(types).collect();
    let of_sources = sorted.at.iter().map(|at| types(at[3].to_bits()));
    held.sorted = of_sources.chain([0; READ_AHEAD as usize]).collect();
    let squares = [(0, 0), (0, 1), (1, 0), (1, 1)];
    held.squares = (squares.into_iter())
        .map(|(a, b)| T::round(squared_cutoff(a, b)))
        .collect();
    let all = Nearest {
        squared: f64::INFINITY,
        ..Nearest::default()
    };
    held.nearest = vec![all; count as usize];
    Filters {
        cutoffs: held.squares.as_ptr() as u64,
        types: 2,
        target_types: held.types.as_ptr() as u64,
        source_types: held.sorted.as_ptr() as u64,
        nearest: held.nearest.as_ptr() as u64,
        ..Filters::default()
    }
}

/// The arrays behind filters.
#[derive(Default)]
struct Held<T> {
    types: Vec<u32>,
    sorted: Vec<u32>,
    squares: Vec<T>,
    nearest: Vec<Nearest>,
}

/// Pairs of a case that are within the cut-off of their types.
fn within_cutoffs<T: Real>(case: &Case<T>, all: Vec<Vec<Neighbor>>) -> Vec<Vec<Neighbor>> {
    let problem = case.problem();
    let kept = |target: usize, pair: &Neighbor| {
        let (from, to) = (case.targets()[target], case.sources()[pair.index as usize]);
        let squared = problem.distance_squared(from, to, pair.image).to_f64();
        squared <= squared_cutoff(target as u32, pair.index)
    };
    let lists = all.into_iter().enumerate();
    let left = |(target, list): (usize, Vec<Neighbor>)| {
        let left = list.into_iter().filter(|pair| kept(target, pair));
        left.collect()
    };
    lists.map(left).collect()
}

/// Some lists are kept by a hair, and others, whose points went a little farther, are refused.
fn check_skin<T: Real>(with_cutoffs: bool)
where
    for<'a> Positions<'a>: From<&'a [[T; 3]]>,
{
    let named = if with_cutoffs { NAMED + NEAREST } else { 0 };
    let Some(library) = kernels::<T>(named) else {
        return;
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random::new(5);
    let lengths = |length: f64| [Some(length), None, Some(length + 1.0)];
    let tilted = [
        Some([7.0, 0.0, 0.0]),
        Some([2.5, 6.5, 0.0]),
        Some([-1.5, 1.0, 7.5]),
    ];
    let leaning = [Some([6.5, 1.5, 0.75]), None, Some([0.0, -2.0, 7.5])];
    for round in 0..15 {
        let mut point = || [0; 3].map(|_: i32| T::round(6.0 * random.unit()));
        let built: Vec<[T; 3]> = (0..150).map(|_| point()).collect();
        // The fourth box is so small that a source is near through several images.
        let (radius, skin) = (1.0, 0.25);
        let of_kind = |points: &[[T; 3]], radius: f64| {
            let case = Case::new("moved", T::round(radius), points.to_vec());
            match round % 5 {
                0 => case,
                1 => case.periodic(lengths(6.5)),
                2 => case.tilted(tilted),
                3 => case.periodic(lengths(1.9)),
                _ => case.tilted(leaning),
            }
        };
        let wide = of_kind(&built, radius + skin);
        let far = round >= 10;
        let lattice = lattice_of(&wide, T::round(radius + skin));
        let domain = domain_of(&wide);
        let jumps = domain.vectors().map(Option::unwrap_or_default);
        let mut step = |point: &[T; 3]| {
            let mut axis = |axis: usize| point[axis].to_f64() + 0.08 * (2.0 * random.unit() - 1.0);
            let mut moved = [axis(0), axis(1), axis(2)];
            // Some are wrapped meanwhile.
            let jump = random.below(5) as usize;
            if jump < 3 {
                moved = [0, 1, 2].map(|k| moved[k] - jumps[jump][k]);
            }
            moved.map(T::round)
        };
        let mut now: Vec<[T; 3]> = built.iter().map(&mut step).collect();
        if far {
            now[77][1] = T::round(now[77][1].to_f64() + 0.2);
        }
        let sorted = Sorted::new(&built, &mut random);
        let bounds = Bounds::of(built.as_slice().into(), &domain).unwrap();
        let room = Bounds {
            min: bounds.min.map(|x| x - 20.0),
            max: bounds.max.map(|x| x + 20.0),
        };
        let (there, moved) = follow(&library, &sorted, &lattice, &room, &now);
        let moved_by = f32::from_bits(moved).sqrt();
        assert!((0.05..0.3).contains(&moved_by), "{moved_by}");
        let neighbors = wide.problem().neighbors();
        let mut held = Held::default();
        let filters = if with_cutoffs {
            filters_of(&sorted, &mut held)
        } else {
            Filters::default()
        };
        let listed = Listed {
            lists: lists_of(&wide, &sorted, &neighbors, false, &mut random),
            filters,
            same_set: true,
            targets: &there,
            sources: &there,
            lattice,
        };
        let within = radius_of(T::round(radius));
        let allowed = 2.0 * moved_by + if far { -1e-3 } else { 1e-3 };
        let stale = judged(&library, &[([moved, moved], allowed)]);
        assert_eq!(stale, u32::from(far), "round {round}");
        let stored = Stored {
            stale: &raw const stale as u64,
            ..Stored::of(&listed.lattice, within)
        };
        let way = candidates(&listed.lattice, listed.lattice.radius()) as u32;
        let found = listed.run(&library, way, stored, within, [&there.at, &there.at]);
        if far {
            assert!(found.iter().flatten().all(|x| x.is_nan()), "{round}");
            continue;
        }
        let today = of_kind(&now, radius);
        let mut pairs = today.problem().neighbors();
        if with_cutoffs {
            pairs = within_cutoffs(&today, pairs);
        }
        assert_eq!(found, expected(&today, &pairs), "round {round}");
    }
}

#[test]
fn points_that_are_no_numbers_or_far_from_their_box_count_as_infinitely_far_away() {
    let Some(library) = kernels::<f32>(0) else {
        return;
    };
    let library = library.lock().unwrap_or_else(PoisonError::into_inner);
    let built = [[0.5f32; 3], [1.5, 0.5, 0.5]];
    let case = Case::new("strayed", 1.0, built.to_vec()).periodic([Some(8.0), None, None]);
    let lattice = lattice_of(&case, 1.0);
    let sorted = Sorted::new(&built, &mut Random::new(1));
    let infinite = f64::INFINITY;
    let room = Bounds {
        min: [-8.0, -infinite, -infinite],
        max: [16.0, infinite, infinite],
    };
    for (x, expected) in [
        (0.5, 0),
        // A whole box away.
        (8.5, 1),
        (-15.5, f32::INFINITY.to_bits()),
        (f32::NAN, f32::INFINITY.to_bits()),
        (0.75, 0.0625f32.to_bits()),
    ] {
        let now = [[x, 0.5, 0.5], built[1]];
        let (_, moved) = follow(&library, &sorted, &lattice, &room, &now);
        assert_eq!(moved, expected, "{x}");
    }
}
