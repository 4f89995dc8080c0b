//! Lists with a skin on the CPU: kernels of slots.cu follow points that have moved since, and
//! those of stored.cu, over lists of a larger radius, see the pairs of the contract at the
//! positions of now, or none where a pair may be missing. As in `stored_on_host`.

use super::{
    stored::candidates,
    stored_on_host::{Listed, Sorted, domain_of, expected, kernels, lattice_of, lists_of},
};
use crate::launch::{Filters, Following, Lattice, Stored};
use libloading::Library;
use nearfield_grid::{self as grid, Bounds, Radius};
use nearfield_testkit::{conformance::Case, random::Random};
use std::sync::PoisonError;

type RunFollow = unsafe extern "C" fn(*const Following, *const Lattice, *mut f32);

/// Takes a set to new positions, and returns those in sorted order and the displacement.
fn follow(
    library: &Library,
    sorted: &Sorted<f32>,
    lattice: &grid::Lattice,
    room: &Bounds,
    positions: &[[f32; 3]],
) -> (Vec<[f32; 4]>, u32) {
    let mut now = vec![[0f32; 4]; positions.len()];
    let (mut moved, mut next, mut back) = (0u32, 7u32, vec![[f32::NAN; 3]; positions.len()]);
    let set = Following {
        built: sorted.at.as_ptr() as u64,
        positions: positions.as_ptr() as u64,
        now: now.as_mut_ptr() as u64,
        moved: &raw mut moved as u64,
        next: &raw mut next as u64,
        low: room.min,
        high: room.max,
        count: positions.len() as u32,
    };
    // SAFETY: the function is declared so in stored.cpp, and all arrays have a value per point; the
    // words are read when the kernels have ended.
    let (moved, next) = unsafe {
        let in_box = Lattice::of_box(lattice);
        let run = library.get::<RunFollow>(b"run_follow").unwrap();
        run(&set, &in_box, back.as_mut_ptr().cast());
        (
            std::ptr::read_volatile(&raw const moved),
            std::ptr::read_volatile(&raw const next),
        )
    };
    assert_eq!(next, 0);
    let bits = |points: &[[f32; 3]]| points.iter().flatten().map(|x| x.to_bits()).collect();
    let [back, given]: [Vec<u32>; 2] = [bits(&back), bits(positions)];
    assert_eq!(back, given, "positions come back in the caller's order");
    (now, moved)
}

/// Some lists are kept by a hair, and others, whose points went a little farther, are refused.
#[test]
fn lists_with_a_skin_serve_points_that_have_moved_and_no_others() {
    let Some(library) = kernels::<f32>(0) else {
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
    for round in 0..16 {
        let mut point =
            || [0; 3].map(|_: i32| 6.0 * random.below(1 << 20) as f32 / (1 << 20) as f32);
        let built: Vec<[f32; 3]> = (0..150).map(|_| point()).collect();
        // The last box is so small that a source is near through several images.
        let (radius, skin) = (1.0f32, 0.25f32);
        let of_kind = |points: &[[f32; 3]], radius: f32| {
            let case = Case::new("moved", radius, points.to_vec());
            match round % 4 {
                0 => case,
                1 => case.periodic(lengths(6.5)),
                2 => case.tilted(tilted),
                _ => case.periodic(lengths(1.9)),
            }
        };
        let wide = of_kind(&built, radius + skin);
        let far = round >= 12;
        let lattice = lattice_of(&wide, radius + skin);
        let domain = domain_of(&wide);
        let jumps = domain.vectors().map(Option::unwrap_or_default);
        let now: Vec<[f32; 3]> = built
            .iter()
            .map(|point| {
                let mut step = || 0.08 * (random.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0);
                let mut moved = [0, 1, 2].map(|axis| point[axis] + step());
                // Some are wrapped meanwhile.
                let jump = random.below(5) as usize;
                if jump < 3 {
                    moved = [0, 1, 2].map(|k| (f64::from(moved[k]) - jumps[jump][k]) as f32);
                }
                moved
            })
            .collect();
        let mut now = now;
        if far {
            now[77][1] += 0.2;
        }
        let sorted = Sorted::new(&built, &mut random);
        let bounds = Bounds::of(built.as_slice().into(), &domain).unwrap();
        let room = Bounds {
            min: bounds.min.map(|x| x - 20.0),
            max: bounds.max.map(|x| x + 20.0),
        };
        let (at, moved) = follow(&library, &sorted, &lattice, &room, &now);
        let moved_by = f32::from_bits(moved).sqrt();
        assert!((0.05..0.3).contains(&moved_by), "{moved_by}");
        let neighbors = wide.problem().neighbors();
        let listed = Listed {
            lists: lists_of(&wide, &sorted, &neighbors, false, &mut random),
            filters: Filters::default(),
            same_set: true,
            targets: &sorted,
            sources: &sorted,
            lattice,
        };
        let radius = Radius::new(radius).unwrap();
        let stored = Stored {
            moved_targets: &raw const moved as u64,
            moved_sources: &raw const moved as u64,
            allowed: if far {
                2.0 * moved_by - 1e-3
            } else {
                2.0 * moved_by + 1e-3
            },
            ..Stored::of(&listed.lattice, radius)
        };
        let way = candidates(&listed.lattice) as u32;
        let found = listed.run(&library, way, stored, radius, [&at, &at]);
        if far {
            assert!(found.iter().flatten().all(|x| x.is_nan()), "{round}");
            continue;
        }
        let today = of_kind(&now, radius.value());
        let exact = expected(&today, &today.problem().neighbors());
        assert_eq!(found, exact, "round {round}");
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
    let room = Bounds {
        min: [-8.0, 0.0, 0.0],
        max: [16.0, 1.0, 1.0],
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
