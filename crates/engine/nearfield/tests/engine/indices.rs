//! Kernels get indices, images and random numbers wherever they run.

use crate::common::drawn::{Drawn, Mirrored, Point, expected};
use nearfield::{
    Builder, ListKind, Precision, Traversal,
    balance::Policy,
    kernels::{Images, Indices, Random},
    lists::VerletLists,
    prelude::*,
};
use nearfield_testkit::{cloud::Cloud, random::Random as Numbers};

/// A domain, as engines and as kernels take it.
type Domain = (&'static str, [Option<[f64; 3]>; 3]);

/// Boxes; the last is smaller than the radius.
const DOMAINS: [Domain; 5] = [
    ("open", [None; 3]),
    (
        "straight",
        [
            Some([5.0, 0.0, 0.0]),
            Some([0.0, 6.0, 0.0]),
            Some([0.0, 0.0, 4.5]),
        ],
    ),
    ("one axis", [None, Some([0.0, 6.0, 0.0]), None]),
    (
        "tilted",
        [
            Some([5.0, 0.0, 0.0]),
            Some([1.5, 6.0, 0.0]),
            Some([-2.0, 1.0, 4.5]),
        ],
    ),
    (
        "small",
        [
            Some([0.8, 0.0, 0.0]),
            Some([0.0, 6.0, 0.0]),
            Some([0.0, 0.0, 0.7]),
        ],
    ),
];

/// Points in and around a box, some of them whole boxes away.
fn points(numbers: &mut Numbers, count: usize) -> Vec<[f32; 3]> {
    let point = |_| {
        let far = if numbers.below(8) == 0 { 3.0 } else { 1.0 };
        [0; 3].map(|_| (far * numbers.between(-3.0, 3.0)) as f32)
    };
    (0..count).map(point).collect()
}

fn images(vectors: [Option<[f64; 3]>; 3]) -> Images {
    Images::of_vectors(vectors.map(Option::unwrap_or_default))
}

/// Asserts the sums of a traversal's kernel, for fields made for the run.
fn check<'a, K: PairKernel<Target = Point, Source = Point>>(
    what: &str,
    traversal: Traversal<'a, K>,
    [targets, sources]: [&'a [[f32; 3]]; 2],
    expected: impl Iterator<Item = K::Output>,
) where
    K::Output: PartialEq + std::fmt::Debug,
{
    let found = traversal
        .targets((Indices, targets))
        .sources((Indices, sources))
        .run()
        .unwrap();
    for (target, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(*found, expected, "{what}, target {target}");
    }
}

/// Runs all kernels over the cells of an engine's sets, and over its lists where it has any.
fn check_engine(what: &str, builder: Builder, vectors: [Option<[f64; 3]>; 3], lists: bool) {
    let numbers = &mut Numbers::new(11);
    let (one, other) = (points(numbers, 300), points(numbers, 160));
    let random = Random::new(0xfeed_0bad_cafe, 17);
    let images = images(vectors);
    let build = |builder: Builder| {
        let mut engine = builder.build().unwrap();
        let a = engine.add_point_set(&one).unwrap();
        let b = engine.add_point_set(&other).unwrap();
        engine.find_neighbors().unwrap();
        (engine, a, b)
    };
    // Geometry is the CPU backend's.
    let (plain, a, b) = build(Engine::builder(1.0).box_vectors(vectors));
    let (engine, first, second) = build(builder.box_vectors(vectors));
    let drawn = &Drawn::<false> { random, images };
    let symmetric = &Drawn::<true> { random, images };
    let mirrored = &Mirrored { random, images };
    for (sources, t, fields) in [(a, first, [&*one; 2]), (b, second, [&*one, &*other])] {
        let s = first;
        let expected = expected(&plain, random, [a, sources]);
        let of_drawn = || expected.iter().map(|sums| sums.0);
        let of_mirrored = || expected.iter().map(|sums| sums.1);
        check(what, engine.traverse(drawn, s, t), fields, of_drawn());
        check(what, engine.traverse(symmetric, s, t), fields, of_drawn());
        check(what, engine.traverse(mirrored, s, t), fields, of_mirrored());
        // Half lists of two sets are not evaluated.
        if lists && (s == t || !what.starts_with("half lists")) {
            let what = format!("{what}, lists");
            let over = engine.traverse(drawn, s, t).over_lists();
            check(&what, over, fields, of_drawn());
            let over = engine.traverse(mirrored, s, t).over_lists();
            check(&what, over, fields, of_mirrored());
        }
    }
}

#[test]
fn kernels_read_indices_images_and_random_numbers_on_every_path() {
    for (domain, vectors) in DOMAINS {
        let builder = || Engine::builder(1.0).threads(2);
        let emulated = |theta| {
            let builder = builder().device("emulated".parse().unwrap());
            builder.policy(Policy::Fixed { theta })
        };
        for (what, builder, lists) in [
            ("plain", builder(), true),
            ("finer cells", builder().subdivision(2), true),
            ("double", builder().precision(Precision::Double), true),
            ("half lists", builder().lists(ListKind::Half), true),
            ("the device alone", emulated(0.0), false),
            ("both backends", emulated(6.0), false),
        ] {
            check_engine(&format!("{what}, {domain}"), builder, vectors, lists);
        }
    }
}

#[test]
fn kernels_read_indices_over_lists_with_a_skin() {
    for (domain, vectors) in &DOMAINS[..4] {
        let points = points(&mut Numbers::new(3), 500);
        let random = Random::new(1, 2);
        let mirrored = Mirrored {
            random,
            images: images(*vectors),
        };
        let mut lists = VerletLists::new(Engine::builder(1.0).box_vectors(*vectors), 0.2).unwrap();
        let set = lists.add_point_set(&points).unwrap();
        lists.refresh().unwrap();
        let mut plain = Engine::builder(1.0).box_vectors(*vectors).build().unwrap();
        let same = plain.add_point_set(&points).unwrap();
        plain.find_neighbors().unwrap();
        let expected = expected(&plain, random, [same; 2]);
        let traversal = lists.traverse(&mirrored, set, set);
        let sums = expected.iter().map(|sums| sums.1);
        check(domain, traversal, [&points; 2], sums);
    }
}

/// Numbers of the caller's own take the place of indices, from structs too.
#[test]
fn points_may_have_numbers_of_their_own() {
    struct Named;

    impl PairKernel for Named {
        type Target = ();
        type Source = (u32, i32);
        type Output = f32;

        fn pair(&self, _: Pair, (): (), (name, change): (u32, i32)) -> f32 {
            (name - 4_000_000_000) as f32 + change as f32
        }
    }

    let points = Cloud::Lattice.points(64, 1);
    let names: Vec<u32> = (0..64).map(|i| 4_000_000_000 + i).collect();
    let changes = vec![-1; 64];
    let mut engine = Engine::builder(1.3).build().unwrap();
    let set = engine.add_point_set(&points).unwrap();
    let found = engine
        .traverse(&Named, set, set)
        .sources((&names, &changes))
        .run()
        .unwrap();
    engine.find_neighbors().unwrap();
    let lists = engine.neighbors(set, set).unwrap();
    for (sum, list) in found.iter().zip(lists.iter()) {
        let expected: i64 = list.iter().map(|&j| i64::from(j) - 1).sum();
        assert_eq!(*sum, expected as f32);
    }
}
