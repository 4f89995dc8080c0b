//! Property-test strategies: searches over random points with extreme coordinates, to be compared
//! with the oracle by [`Case::check`].
//!
//! All of them stay within the contract: finite coordinates, radii whose
//! square is a normal f32, positive box lengths. Boxes are at least 0.3 radii
//! long, so that a case has at most a few hundred images per pair.
//!
//! ```
//! use nearfield_testkit::{conformance::Case, strategy};
//! use proptest::prelude::*;
//!
//! proptest!(|(case in strategy::case(40))| {
//!     let found = case.problem().brute_force(); // an engine's lists go here
//!     let index = |n: &nearfield_testkit::oracle::Neighbor| n.index;
//!     let indices = |list: Vec<_>| list.iter().map(index).collect();
//!     case.check(found.into_iter().map(indices).collect())?;
//! });
//! ```

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::conformance::{Case, ListKind, RadiusRule};
use crate::oracle::Vectors;
use crate::shapes::translated;

/// Search radii: common ones, ones with many digits, very small, very large.
pub fn radius() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => prop::sample::select(vec![1.0_f32, 0.1, 0.3, 2.0, 3.0, 1.0 / 3.0]),
        4 => 0.05_f32..20.0,
        1 => prop::sample::select(vec![1e-7_f32, 1e-3, 1e4, 1e9]),
    ]
}

/// Domains for a radius: each axis open or periodic, with lengths around the
/// radius, twice the radius, and larger.
pub fn periodic(radius: f32) -> impl Strategy<Value = [Option<f64>; 3]> {
    let radius = f64::from(radius);
    let shares = prop_oneof![
        3 => prop::sample::select(vec![0.5, 1.0, 2.0, 3.0, 4.0]),
        2 => 0.3_f64..2.5,
        2 => 2.0_f64..12.0,
    ];
    let axis = shares.prop_map(move |share| share * radius);
    [
        prop::option::of(axis.clone()),
        prop::option::of(axis.clone()),
        prop::option::of(axis),
    ]
}

/// Vectors of a tilted box for a radius: lengths around the radius and larger,
/// tilts of up to one and a half box lengths, at times an open axis or two,
/// along which the other vectors lean half of the time, at times as a whole
/// turned or with its vectors exchanged.
pub fn vectors(radius: f32) -> impl Strategy<Value = Vectors> {
    let radius = f64::from(radius);
    let length = prop_oneof![
        2 => prop::sample::select(vec![0.5, 1.0, 2.0, 3.0, 4.0]),
        2 => 0.5_f64..9.0,
    ];
    let tilt = prop_oneof![
        3 => prop::sample::select(vec![0.0, 0.5, -0.5, 1.0, -1.0]),
        2 => -1.5_f64..1.5,
    ];
    let lengths = [length.clone(), length.clone(), length];
    let tilts = [tilt.clone(), tilt.clone(), tilt];
    let open = prop::option::weighted(0.3, 0..3_usize);
    let parts = (lengths, tilts, open, 0..4_u8);
    parts.prop_map(move |([lx, ly, lz], [xy, xz, yz], open, turn)| {
        let [a, b, c] = [[lx, 0.0, 0.0], [xy * lx, ly, 0.0], [xz * lx, yz * ly, lz]]
            .map(|vector: [f64; 3]| vector.map(|part| part * radius));
        let turned = |[x, y, z]: [f64; 3]| [0.6 * x - 0.8 * y, 0.8 * x + 0.6 * y, -z];
        match (open, turn) {
            (None, 0) => [a, b, c].map(|vector| Some(turned(vector))),
            (None, 1) => [b, c, a].map(Some),
            (None, _) => [a, b, c].map(Some),
            (Some(open), 0) => slanted([a, b, c].map(turned), [open, (open + 1) % 3]),
            (Some(open), 1) => slanted([a, b, c].map(turned), [open; 2]),
            (Some(open), _) => without_axis([a, b, c], open),
        }
    })
}

/// The vectors with these axes open, the others as they are.
fn slanted(vectors: [[f64; 3]; 3], open: [usize; 2]) -> Vectors {
    [0, 1, 2].map(|k| (!open.contains(&k)).then_some(vectors[k]))
}

/// The vectors with one axis open, nothing leaning along it.
fn without_axis(vectors: [[f64; 3]; 3], open: usize) -> Vectors {
    let mut vectors = vectors.map(|mut vector| {
        vector[open] = 0.0;
        Some(vector)
    });
    vectors[open] = None;
    vectors
}

/// A coordinate of the scale of `radius`: anywhere within a few radii, on a
/// cell face or at whole radii, one float beside such a place, zero of either
/// sign, or subnormal.
pub fn coordinate(radius: f32) -> impl Strategy<Value = f32> {
    let on_grid = (-12_i8..=12, 1_u8..=4)
        .prop_map(move |(steps, cells)| f32::from(steps) * (radius / f32::from(cells)));
    prop_oneof![
        6 => (-4.0_f32..4.0).prop_map(move |share| share * radius),
        4 => on_grid.clone(),
        1 => on_grid.clone().prop_map(f32::next_up),
        1 => on_grid.prop_map(f32::next_down),
        1 => prop::sample::select(vec![0.0_f32, -0.0, f32::from_bits(1), -f32::MIN_POSITIVE]),
    ]
}

/// Up to `most` points of [`coordinate`]s, some of them coincident, as a whole
/// moved by zero or by up to a million radii, and at times with an outlier.
pub fn positions(radius: f32, most: usize) -> impl Strategy<Value = Vec<[f32; 3]>> {
    let place = || coordinate(radius);
    let points = vec([place(), place(), place()], 0..=most);
    let copies = vec(any::<[Index; 2]>(), 0..4);
    let parts = (points, copies, offset(radius), outlier(radius));
    parts.prop_map(|(points, copies, offset, outlier)| {
        let mut points = translated(points, offset);
        let len = points.len();
        for [from, to] in copies.iter().filter(|_| len > 0) {
            points[to.index(len)] = points[from.index(len)];
        }
        if let (Some(outlier), Some(last)) = (outlier, points.last_mut()) {
            *last = outlier;
        }
        points
    })
}

fn offset(radius: f32) -> impl Strategy<Value = [f32; 3]> {
    let shares = prop::sample::select(vec![0.0_f32, 0.5, -7.0, 1e4, -1e4, 1e6]);
    prop_oneof![
        3 => Just([0.0; 3]),
        1 => [shares.clone(), shares.clone(), shares].prop_map(move |by| by.map(|by| by * radius)),
    ]
}

fn outlier(radius: f32) -> impl Strategy<Value = Option<[f32; 3]>> {
    let far = prop::sample::select(vec![0.0_f32, 1e3, -1e5, 1e7]);
    let at = [far.clone(), far.clone(), far].prop_map(move |at| at.map(|at| at * radius));
    prop::option::weighted(0.1, at)
}

/// [`case`] in a tilted box; half of the time all points are within a few
/// boxes of the origin.
pub fn tilted_case(most: usize) -> impl Strategy<Value = Case> {
    (case(most), any::<bool>()).prop_flat_map(|(mut case, near)| {
        let radius = case.radius;
        for at in case.sets.iter_mut().flatten().flatten().filter(|_| near) {
            *at %= 16.0 * radius;
        }
        vectors(radius).prop_map(move |vectors| case.clone().tilted(vectors))
    })
}

/// A radius up to `largest`: as large, as small as a hundredth, any size in
/// between, or a whole part of it, which distances between points often are.
fn own_radius(largest: f32) -> impl Strategy<Value = f32> {
    let part = prop::sample::select(vec![1.0_f32, 0.75, 0.5, 0.25, 0.01]);
    let any = (-2.0_f32..0.0).prop_map(|decades| 10.0_f32.powf(decades));
    let share = prop_oneof![2 => part, 3 => any];
    share.prop_map(move |share| (share * largest).clamp(0.01 * largest, largest))
}

/// [`case`] or [`tilted_case`] with a radius for every point, by any rule.
pub fn radii_case(most: usize) -> impl Strategy<Value = Case> {
    let case = prop_oneof![2 => case(most).boxed(), 1 => tilted_case(most / 2).boxed()];
    let rule = prop::sample::select(RadiusRule::OWN.to_vec());
    (case, rule).prop_flat_map(|(case, rule)| {
        let radii = |set: &Vec<_>| vec(own_radius(case.radius), set.len());
        let radii: Vec<_> = case.sets.iter().map(radii).collect();
        radii.prop_map(move |radii| {
            let mut case = case.clone().with_radii(rule, radii);
            if !rule.is_symmetric() {
                case.list = ListKind::Full;
            }
            case
        })
    })
}

/// A whole search: radius, domain, one or two sets of up to `most` points,
/// full or half lists.
pub fn case(most: usize) -> impl Strategy<Value = Case> {
    let domain = radius().prop_flat_map(move |radius| {
        let sets = vec(positions(radius, most), 1..=2);
        (Just(radius), periodic(radius), sets)
    });
    let choice = (any::<Index>(), any::<Index>(), any::<bool>());
    (domain, choice).prop_map(|((radius, periodic, sets), (target, source, half))| {
        let [target, source] = [target, source].map(|set| set.index(sets.len()));
        let list = if half && target == source {
            ListKind::Half
        } else {
            ListKind::Full
        };
        Case {
            sets,
            target,
            source,
            list,
            ..Case::new("arbitrary", radius, vec![]).periodic(periodic)
        }
    })
}

/// [`case`], or with a tilted box [`tilted_case`], in double precision: some
/// coordinates and the radius moved by a few steps of f64, at times all points
/// moved far away (along open axes).
pub fn double_case(most: usize) -> impl Strategy<Value = Case<f64>> {
    let case = prop_oneof![2 => case(most), 1 => tilted_case(most.min(40))];
    let steps = vec(-2_i8..=2, 1..50);
    let far = prop::sample::select(vec![0.0, 0.0, 1e8, -3e11, 0.1]);
    (case, steps, far).prop_map(|(case, steps, far)| {
        let mut case = case.widened();
        let mut step = steps.into_iter().cycle();
        let mut moved = |x: f64| match step.next() {
            Some(step) if step < 0 => x.next_down(),
            Some(0) | None => x,
            Some(_) => x.next_up(),
        };
        case.radius = moved(case.radius);
        for point in case.sets.iter_mut().flatten() {
            for (axis, at) in point.iter_mut().enumerate() {
                let vectors = case.vectors.unwrap_or_default();
                let leans = vectors.iter().flatten().any(|vector| vector[axis] != 0.0);
                let open = case.periodic[axis].is_none() && vectors[axis].is_none() && !leans;
                let by = if open { far * case.radius } else { 0.0 };
                *at = moved(*at) + by;
            }
        }
        case
    })
}
