//! Tilted boxes: leaning by less and more than a box length, flat, smaller
//! than the radius, rotated, partly open, with unwrapped coordinates.

use crate::conformance::case::{Case, every_pair, full_and_half};
use crate::conformance::level::Level;
use crate::oracle::Vectors;
use crate::shapes;

/// Each box with full and half lists, and several sets.
pub(super) fn cases(level: Level) -> Vec<Case> {
    let mut cases = on_faces();
    for seed in 0..level.seeds() {
        cases.extend(leaning(seed));
        cases.extend(partly_open(seed));
        cases.extend(slanted(seed));
        cases.extend(rotated(seed));
        cases.extend(unwrapped(seed));
        cases.extend(at_the_radius(seed));
        cases.push(layers(seed));
        cases.extend(on_both_sides_of_a_face(seed));
    }
    let mut cases: Vec<Case> = cases.into_iter().flat_map(full_and_half).collect();
    cases.extend(several_sets());
    cases
}

/// The vectors of a box by its lengths and the tilts xy, xz and yz.
fn vectors([lx, ly, lz]: [f64; 3], [xy, xz, yz]: [f64; 3]) -> [[f64; 3]; 3] {
    [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]]
}

/// A case in a box that is periodic along all vectors, about a tenth of the
/// points just outside it.
fn filled(what: &str, points: usize, vectors: [[f64; 3]; 3], seed: u64) -> Case {
    let name = format!("{what}: {points} points in {vectors:?}, seed {seed}");
    let points = shapes::uniform_cell(points, vectors, 0.05, seed);
    Case::new(name, 1.0, points).tilted(vectors.map(Some))
}

/// Lengths, tilts and numbers of points at radius 1.
fn leaning(seed: u64) -> Vec<Case> {
    let boxes = [
        ("slightly tilted", [6.1, 5.3, 5.7], [0.1, -0.2, 0.05], 400),
        ("tilted by half", [6.0, 5.0, 4.0], [3.0, -3.0, 2.5], 300),
        (
            "tilted by minus half",
            [6.0, 5.0, 4.0],
            [-3.0, -3.0, -2.5],
            300,
        ),
        ("tilted by a box", [5.0, 5.0, 5.0], [5.0, -5.0, 5.0], 300),
        (
            "tilted by several boxes",
            [4.0, 4.5, 5.0],
            [13.0, -9.0, 11.0],
            200,
        ),
        (
            "tilted along one axis",
            [7.0, 4.0, 5.0],
            [0.0, 0.0, 3.9],
            300,
        ),
        ("flat", [9.0, 8.0, 0.3], [2.0, -4.0, 3.0], 60),
        (
            "flat along the first axis",
            [0.4, 7.0, 6.0],
            [1.7, -0.9, 4.0],
            60,
        ),
        (
            "flat along the second",
            [6.0, 0.5, 7.0],
            [-2.0, 5.0, 0.7],
            60,
        ),
        ("a needle", [0.7, 0.8, 30.0], [0.3, 11.0, -7.0], 60),
        (
            "smaller than the radius",
            [0.7, 0.9, 0.8],
            [0.35, -0.3, 0.4],
            12,
        ),
        (
            "tilted and much smaller",
            [0.4, 0.5, 0.45],
            [0.9, -0.6, 0.7],
            4,
        ),
        (
            "as large as the radius",
            [1.0, 1.0, 1.0],
            [0.5, -0.5, 0.5],
            15,
        ),
        ("twice the radius", [2.0, 2.0, 2.0], [1.0, 1.0, -1.0], 60),
        (
            "thirds",
            [10.0 / 3.0, 3.1, 3.7],
            [5.0 / 3.0, -1.0 / 3.0, 0.1],
            120,
        ),
        ("large", [60.0, 50.0, 40.0], [25.0, -30.0, 20.0], 700),
    ];
    boxes
        .map(|(what, lengths, tilts, points)| filled(what, points, vectors(lengths, tilts), seed))
        .to_vec()
}

/// Two periodic axes that lean towards each other and an open one.
fn partly_open(seed: u64) -> Vec<Case> {
    let all = [
        (2, vectors([4.0, 3.0, 5.0], [2.5, 0.0, 0.0])),
        (1, vectors([4.0, 6.0, 3.0], [0.0, -5.0, 0.0])),
        (0, vectors([6.0, 0.8, 3.0], [0.0, 0.0, 1.3])),
    ];
    all.map(|(open, vectors)| {
        let mut periodic = vectors.map(Some);
        periodic[open] = None;
        filled(&format!("axis {open} open"), 250, vectors, seed).tilted(periodic)
    })
    .to_vec()
}

/// One vector or two that lean along open axes: the directions without images
/// are not those of coordinates. Boxes larger and smaller than the radius,
/// points far along the open directions, outside the box and at the radius.
fn slanted(seed: u64) -> Vec<Case> {
    let line = |scale: f64| [1.0, 2.0, 3.0].map(|part| part * scale);
    let (along, plane) = ([3.0, -2.5, 1.0], [[2.1, 0.7, -1.9], [-0.8, 2.6, 2.2]]);
    let short = plane.map(|v| v.map(|part| 0.2 * part));
    let all: [(&str, Vectors); 11] = [
        ("a line as the first", [Some(line(1.0)), None, None]),
        ("a line as the second", [None, Some(line(0.7)), None]),
        ("a line as the third", [None, None, Some(line(-1.1))]),
        ("a narrow line", [None, Some(line(0.08)), None]),
        (
            "a line along another axis",
            [Some([0.0, 0.0, 3.0]), None, None],
        ),
        ("a plane, c open", [Some(along), Some(plane[0]), None]),
        ("a plane, b open", [Some(plane[0]), None, Some(plane[1])]),
        ("a plane, a open", [None, Some(plane[1]), Some(along)]),
        ("a narrow plane", [Some(short[0]), None, Some(short[1])]),
        ("one narrow of two", [Some(short[0]), Some(along), None]),
        (
            "a large plane",
            [None, Some(line(20.0)), Some(along.map(|part| 30.0 * part))],
        ),
    ];
    let mut cases = Vec::new();
    for (what, vectors) in all {
        let case = |kind: &str, points: Vec<[f32; 3]>| {
            let name = format!("{what}, {kind}: {vectors:?}, seed {seed}");
            Case::new(name, 1.0, points).tilted(vectors)
        };
        let near = shapes::uniform_box(120, [[-2.0; 3], [3.0; 3]], seed);
        let sphere = shapes::rounded_sphere(60, 1.0, [0.1, 0.2, 0.3], seed);
        let boxes_away = shapes::unwrapped_cell(near.clone(), vectors, 5, seed);
        // Three clusters far from each other in a direction that is not that of a box vector.
        let far = (0..3u8).flat_map(|k| {
            let by = [3e3, -1e4, 7e3].map(|part| f32::from(k) * part);
            shapes::translated(near[..40].to_vec(), by)
        });
        cases.push(case("far apart", far.collect()));
        cases.push(case("near the origin", near));
        cases.push(case("boxes away", boxes_away));
        cases.push(case(
            "at the radius up to rounding",
            shapes::unwrapped_cell(sphere, vectors, 2, seed),
        ));
    }
    cases
}

/// Boxes whose vectors form no triangular matrix, one of them left-handed.
/// Three fifths and four fifths are the cosine and sine of a rotation.
fn rotated(seed: u64) -> Vec<Case> {
    let turn = |[x, y, z]: [f64; 3]| [0.6 * x - 0.8 * y, 0.8 * x + 0.6 * y, z];
    let roll = |[x, y, z]: [f64; 3]| [0.6 * x + 0.8 * z, y, -0.8 * x + 0.6 * z];
    let straight = vectors([4.0, 5.0, 3.0], [0.0; 3]);
    let tilted = vectors([4.0, 3.5, 3.0], [2.0, -5.0, 1.0]);
    let [a, b, c] = tilted;
    let mut slab = straight.map(turn).map(Some);
    slab[2] = None;
    vec![
        filled(
            "a rotated straight box",
            200,
            straight.map(turn).map(roll),
            seed,
        ),
        filled("a rotated slab", 200, straight.map(turn), seed).tilted(slab),
        filled(
            "a rotated tilted box",
            200,
            tilted.map(roll).map(turn),
            seed,
        ),
        filled("axes exchanged", 200, [c, a, b], seed),
        filled("left-handed", 200, [b, a, c], seed),
        filled("negative", 150, [a.map(|part| -part), b, c], seed),
        filled(
            "a primitive cell",
            5,
            [[0.0, 1.1, 1.1], [1.1, 0.0, 1.1], [1.1, 1.1, 0.0]],
            seed,
        ),
    ]
}

/// Coordinates several boxes away from each other.
fn unwrapped(seed: u64) -> Vec<Case> {
    let cases = [
        (1, vectors([3.0, 3.5, 4.0], [1.5, -1.0, 2.0]), 150),
        (5, vectors([3.3, 2.1, 5.7], [4.0, -6.0, 1.0]), 150),
        (5, vectors([0.8, 0.6, 0.9], [0.5, -0.7, 0.3]), 8),
        (100, vectors([4.4, 3.0, 3.1], [-2.0, 1.0, 1.5]), 300),
    ];
    cases
        .map(|(boxes, vectors, points)| {
            let case = filled(&format!("up to {boxes} boxes away"), points, vectors, seed);
            let moved =
                shapes::unwrapped_cell(case.sets[0].clone(), vectors.map(Some), boxes, seed);
            Case {
                sets: vec![moved],
                ..case
            }
        })
        .to_vec()
}

/// Pairs at the radius up to rounding, through images that lean, some of them
/// several boxes apart.
fn at_the_radius(seed: u64) -> Vec<Case> {
    let mut slab: Vectors = vectors([2.7, 3.3, 1.0], [1.9, 0.0, 0.0]).map(Some);
    slab[2] = None;
    let full = vectors([2.7, 3.3, 2.9], [-4.1, 1.3, 1.0 / 3.0]).map(Some);
    [("a slab", slab), ("a box", full)]
        .map(|(what, vectors)| {
            let sphere = shapes::rounded_sphere(200, 1.0, [0.1, 0.2, 0.3], seed);
            let points = shapes::unwrapped_cell(sphere, vectors, 3, seed);
            let name = format!("at the radius up to rounding in {what} that leans, seed {seed}");
            Case::new(name, 1.0, points).tilted(vectors)
        })
        .to_vec()
}

/// Layers a radius apart in a box that is barely six radii high, so far out
/// that distances are coarse: some points that f32 finds within the radius are
/// farther apart than it, and more than a cell of this size.
fn layers(seed: u64) -> Case {
    let vectors = vectors([7.0, 6.0, 6.0001], [3.0, -2.5, 2.0]).map(Some);
    let layer = |k: usize| [1.0, 2.0, (k / 40) as f32 * (6.0001 / 6.0)];
    let points = shapes::unwrapped_cell((0..240).map(layer).collect(), vectors, 50_000, seed);
    let name = format!("layers of a tilted box up to 50000 boxes away, seed {seed}");
    Case::new(name, 1.0, points).tilted(vectors)
}

/// Points densely below the upper face along the first axis, and above the lower one: rows of
/// cells that lean beyond the face with all of their cells hold many of them.
fn on_both_sides_of_a_face(seed: u64) -> Vec<Case> {
    let boxes = [
        ([6.0, 6.0, 6.0], [6.0, 0.0, 0.0]),
        ([6.0, 6.0, 6.0], [-6.0, 3.0, 5.0]),
        ([6.0, 5.2, 5.0], [3.0, 3.0, 1.7]),
    ];
    boxes
        .map(|(lengths, tilts)| {
            let whole = vectors(lengths, tilts);
            let slab = [whole[0].map(|x| 0.25 * x), whole[1], whole[2]];
            let mut points = shapes::uniform_cell(350, slab, 0.0, seed);
            let upper = shapes::uniform_cell(350, slab, 0.0, seed + 1000);
            let shift = whole[0].map(|x| (0.75 * x) as f32);
            points.extend(shapes::translated(upper, shift));
            let name = format!("on both sides of a face of {whole:?}, seed {seed}");
            Case::new(name, 1.0, points).tilted(whole.map(Some))
        })
        .to_vec()
}

/// Points on the faces and corners of cells and boxes, and few points.
fn on_faces() -> Vec<Case> {
    let leaning = vectors([4.0, 4.0, 4.0], [2.0, -2.0, 1.0]);
    let both_ends = shapes::lattice([5; 3]).into_iter().map(|[x, y, z]| {
        // Whole quarters of the vectors, all exact.
        [x + 0.5 * y - 0.5 * z, y + 0.25 * z, z]
    });
    let far = shapes::translated(shapes::lattice([4; 3]), [1e4, -1e4, 400.0]);
    let one = vec![[0.25, 0.5, 0.75]];
    let large = vectors([1e6, 1e6, 1e6], [5e5, 3e5, -5e5]);
    let in_one_corner = shapes::uniform_box(300, [[-3.0; 3], [3.0; 3]], 3);
    vec![
        Case::new(
            "faces of a tilted box at both ends",
            1.0,
            both_ends.collect(),
        )
        .tilted(leaning.map(Some)),
        Case::new("lattice in a shifted tilted box", 2.0, far).tilted(leaning.map(Some)),
        Case::new("one point and its leaning images", 1.0, one)
            .tilted(vectors([1.0; 3], [0.5, 0.5, 0.5]).map(Some)),
        Case::new("no point in a tilted box", 1.0, vec![]).tilted(leaning.map(Some)),
        Case::new(
            "coincident points in a small tilted box",
            1.0,
            shapes::coincident(5, [0.1; 3]),
        )
        .tilted(vectors([0.9, 1.0, 1.1], [0.4, -0.3, 0.6]).map(Some)),
        Case::new(
            "around the corner of a large tilted box",
            1.0,
            in_one_corner,
        )
        .tilted(large.map(Some)),
    ]
}

/// Every set searching every other in a tilted box.
fn several_sets() -> Vec<Case> {
    let cell = vectors([3.0, 2.6, 2.2], [1.4, -2.0, 1.0]);
    let ball = |points, low: f32, high: f32, seed| {
        shapes::uniform_box(points, [[low; 3], [high; 3]], seed)
    };
    let sets = vec![
        ball(120, 0.0, 3.0, 1),
        ball(70, 2.0, 6.0, 2),
        vec![],
        shapes::uniform_cell(60, cell, 0.0, 3),
    ];
    let like = Case::new("tilted box", 1.0, vec![]);
    every_pair(&like.tilted(cell.map(Some)), &sets)
}
