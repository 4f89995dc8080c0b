//! Radii of single points, by every rule: spread over two orders of magnitude,
//! equal to distances, in open, periodic and tilted domains, for several sets.

use crate::conformance::case::Case;
use crate::conformance::level::Level;
use crate::oracle::{ListKind, Pairing, Problem, RadiusRule, Real};
use crate::random::Random;
use crate::shapes;

/// Each case by every rule, and with half lists where the rule allows them.
pub(super) fn cases(level: Level) -> Vec<Case> {
    let (sizes, seeds): (&[usize], u64) = match level {
        Level::Quick => (&[1, 2, 40, 1000], 1),
        Level::Full => (&[1, 2, 40, 1000, 4000], 4),
    };
    let mut cases = at_distances();
    cases.extend(degenerate());
    cases.extend(few_giants());
    for seed in 0..seeds {
        cases.extend(sizes.iter().flat_map(|&size| spread(size, seed)));
        cases.push(adaptive(seed));
        cases.extend(periodic(seed));
        cases.extend(tilted(seed));
    }
    let mut cases: Vec<Case> = cases.iter().flat_map(by_every_rule).collect();
    cases.extend(several_sets());
    cases.extend(sets_with_a_giant());
    cases
}

/// The case by the three rules, and by the symmetric one with half lists.
pub(super) fn by_every_rule<T: Real>(case: &Case<T>) -> Vec<Case<T>> {
    let by = |rule| Case {
        name: format!("{} {}", case.name, name(rule)),
        rule,
        ..case.clone()
    };
    let mut cases = RadiusRule::OWN.map(by).to_vec();
    cases.push(by(RadiusRule::Symmetric).half());
    cases
}

fn name(rule: RadiusRule) -> &'static str {
    match rule {
        RadiusRule::Uniform => "of one radius",
        RadiusRule::Gather => "gathering",
        RadiusRule::Scatter => "scattering",
        RadiusRule::Symmetric => "by the larger radius",
    }
}

/// One set with these radii; the rule is filled in by [`by_every_rule`].
fn case(name: String, radius: f32, points: Vec<[f32; 3]>, radii: Vec<f32>) -> Case {
    Case::new(name, radius, points).with_radii(RadiusRule::Gather, vec![radii])
}

/// Log-uniform between a hundredth of the largest and the largest, which is
/// among them.
fn log_uniform(points: usize, largest: f32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut radius = || {
        let share = libm::pow(0.01, random.unit()) as f32;
        (share * largest).clamp(0.01 * largest, largest)
    };
    let mut radii: Vec<f32> = (0..points).map(|_| radius()).collect();
    radii
        .first_mut()
        .into_iter()
        .for_each(|first| *first = largest);
    radii
}

/// Random points among which a factor of a hundred lies between radii, and
/// the same with nearly all of them small.
fn spread(points: usize, seed: u64) -> [Case; 2] {
    let side = libm::cbrt(points as f64) as f32;
    let low = [-0.4 * side; 3];
    let cloud = shapes::uniform_box(points, [low, low.map(|at| at + side)], seed);
    let radii = log_uniform(points, 2.5, seed);
    let mostly_small = radii
        .iter()
        .map(|&radius| if radius > 2.4 { radius } else { 0.4 * radius });
    let mostly_small = mostly_small.collect();
    let name = |what: &str| format!("{points} points with {what}, seed {seed}");
    [
        case(name("radii over two decades"), 2.5, cloud.clone(), radii),
        case(name("few large radii"), 2.5, cloud, mostly_small),
    ]
}

/// Clusters in which a radius grows with the distance from the middle, as
/// smoothing lengths do where resolution follows density.
fn adaptive(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let mut points = Vec::new();
    let mut radii = Vec::new();
    for center in [[0.0, 0.0, 0.0], [7.0, 1.0, -2.0], [1e5, 0.0, 3.0]] {
        for _ in 0..300 {
            let from_center = 4.0 * random.unit() * random.unit();
            let direction = random.direction();
            points
                .push([0, 1, 2].map(|axis| (center[axis] + from_center * direction[axis]) as f32));
            radii.push((0.02 + 0.5 * from_center).min(2.0) as f32);
        }
    }
    case(
        format!("adaptive clusters, seed {seed}"),
        2.0,
        points,
        radii,
    )
}

/// Radii that are distances between the points, exactly or up to rounding.
fn at_distances() -> Vec<Case> {
    let lattice = shapes::lattice([7, 6, 5]);
    let squares = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0];
    let shell = |i: usize| squares[i % 8].sqrt();
    let below = |i: usize| match i % 3 {
        0 => shell(i).next_down(),
        1 => shell(i),
        _ => shell(i).next_up().min(3.0),
    };
    let mut cases = vec![
        case(
            "a lattice with radii of its shells".to_owned(),
            3.0,
            lattice.clone(),
            (0..lattice.len()).map(shell).collect(),
        ),
        case(
            "a lattice with radii one step around its shells".to_owned(),
            3.0,
            lattice.clone(),
            (0..lattice.len()).map(below).collect(),
        ),
    ];
    for scale in [1.0, 2.0_f32.powi(-10)] {
        let sphere = shapes::exact_sphere(9, scale, [40, -3, 17]);
        let one_step = |i: usize| match i % 3 {
            0 => 9.0 * scale,
            1 => (9.0 * scale).next_down(),
            _ => 3.0 * scale,
        };
        let radii = (0..sphere.len()).map(one_step).collect();
        let name = format!("a sphere of exactly the radius times {scale}");
        cases.push(case(name, 9.0 * scale, sphere, radii));
    }
    for (what, periodic) in [
        ("open", [None; 3]),
        ("periodic", [Some(3.3), None, Some(2.1)]),
    ] {
        let points = shapes::uniform_box(250, [[0.0; 3], [4.0; 3]], 21);
        let radii = to_a_neighbor(&points, periodic, 1.5, 21);
        let name = format!("{what}, radii of the distance to a neighbor up to rounding");
        cases.push(case(name, 1.5, points, radii).periodic(periodic));
    }
    cases
}

/// For each point the root of the squared distance to one of its neighbors:
/// whether the square of the root is the squared distance again hangs on the
/// last bit.
fn to_a_neighbor(
    points: &[[f32; 3]],
    periodic: [Option<f64>; 3],
    largest: f32,
    seed: u64,
) -> Vec<f32> {
    let mut random = Random::new(seed);
    let pairing = Pairing::Within(ListKind::Full);
    let problem = Problem {
        periodic,
        ..Problem::open(largest, points, pairing)
    };
    let lists = problem.neighbors();
    let mut radius = |(target, list): (usize, &Vec<_>)| {
        let chosen = list.get(random.below(list.len() as u64) as usize);
        chosen.map_or(largest, |chosen: &crate::oracle::Neighbor| {
            let to = points[chosen.index as usize];
            let squared = problem.distance_squared(points[target], to, chosen.image);
            squared.sqrt().clamp(1e-3, largest)
        })
    };
    lists.iter().enumerate().map(&mut radius).collect()
}

fn degenerate() -> Vec<Case> {
    let cube = |points| shapes::uniform_box(points, [[0.0; 3], [6.0; 3]], 12);
    let pile = shapes::coincident(50, [0.1, 0.2, 0.3]);
    let mut one_giant = vec![0.05; 500];
    one_giant[321] = 20.0;
    let mut far = cube(300);
    far[7] = [1e7, -3.0, 2.0];
    vec![
        case("no point with a radius".to_owned(), 1.0, vec![], vec![]),
        case(
            "a pile of radii".to_owned(),
            1.0,
            pile,
            log_uniform(50, 1.0, 1),
        ),
        case(
            "all the largest radius".to_owned(),
            1.0,
            cube(300),
            vec![1.0; 300],
        ),
        case(
            "all the smallest radius".to_owned(),
            1.0,
            cube(300),
            vec![2.0_f32.powi(-50); 300],
        ),
        case("one giant".to_owned(), 20.0, cube(500), one_giant),
        case(
            "radii and an outlier".to_owned(),
            1.0,
            far,
            log_uniform(300, 1.0, 2),
        ),
    ]
}

/// Radii around `small`, and every `step`-th a hundred times as large.
fn giants(points: usize, small: f32, step: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed ^ 0x91a7);
    let mut radius = |i| match i % step == step / 2 {
        true => 100.0 * small,
        false => small * (0.6 + 0.4 * random.unit()) as f32,
    };
    (0..points).map(&mut radius).collect()
}

/// One radius a hundred times the others, and several, in open, periodic and tilted domains; the
/// boxes are smaller than the large radius, some much smaller.
pub(super) fn few_giants() -> Vec<Case> {
    let named = |what: &str, small, step, points: Vec<[f32; 3]>| {
        let radii = giants(points.len(), small, step, 77);
        let name = format!("{what}, radii a hundred times the others");
        case(name, 100.0 * small, points, radii)
    };
    let cube = |points, side: f32| shapes::uniform_box(points, [[0.0; 3], [side; 3]], 77);
    let mut cases = vec![
        named("one point of many", 1.2, 700, cube(700, 9.0)),
        named("some points in a wide cloud", 0.1, 60, cube(900, 35.0)),
        named("a flat cloud", 0.4, 150, {
            let mut points = cube(600, 30.0);
            points.iter_mut().for_each(|point| point[2] *= 1e-3);
            points
        }),
    ];
    let boxes = [
        (0.11, 500, 300, [Some(8.3), Some(7.1), Some(9.7)], 0),
        (0.05, 500, 200, [Some(8.3), None, Some(6.1)], 2),
        (0.03, 60, 30, [Some(2.3), Some(1.9), None], 3),
        (0.12, 20, 20, [Some(1.1), Some(0.9), Some(1.3)], 0),
    ];
    cases.extend(boxes.map(|(small, points, step, periodic, away)| {
        let high = periodic.map(|length: Option<f64>| length.unwrap_or(9.0) as f32);
        let cloud = shapes::uniform_box(points, [[0.0; 3], high], 78);
        let cloud = shapes::unwrapped(cloud, periodic, away, 78);
        named(
            &format!("{points} points in {periodic:?}"),
            small,
            step,
            cloud,
        )
        .periodic(periodic)
    }));
    let vectors = [[7.0, 0.0, 0.0], [3.0, 6.0, 0.0], [-3.0, 2.5, 6.5]];
    cases.extend([None, Some(2)].map(|open: Option<usize>| {
        let mut periodic = vectors.map(Some);
        open.into_iter().for_each(|axis| periodic[axis] = None);
        let cloud = shapes::uniform_cell(400, vectors, 0.05, 79);
        let cloud = shapes::unwrapped_cell(cloud, periodic, 2, 79);
        named(&format!("400 points in {periodic:?}"), 0.06, 200, cloud).tilted(periodic)
    }));
    cases
}

/// Sets that search each other, one of which has a radius a hundred times the others.
fn sets_with_a_giant() -> Vec<Case> {
    let cube = |points, seed| shapes::uniform_box(points, [[0.0; 3], [9.0; 3]], seed);
    let sets = vec![cube(400, 81), cube(300, 82)];
    let radii = vec![giants(400, 0.08, 400, 81), giants(300, 0.08, 1 << 20, 82)];
    let mut cases = Vec::new();
    for periodic in [[None; 3], [Some(9.0), Some(9.0), None]] {
        for rule in RadiusRule::OWN {
            for (target, source) in [(0, 1), (1, 0)] {
                let what = name(rule);
                let name = format!("{target} finds {source} {what}, one giant, in {periodic:?}");
                let case = Case {
                    sets: sets.clone(),
                    target,
                    source,
                    ..Case::new(name, 8.0, vec![]).periodic(periodic)
                };
                cases.push(case.with_radii(rule, radii.clone()));
            }
        }
    }
    cases
}

/// Boxes larger and smaller than the radii, and unwrapped coordinates.
fn periodic(seed: u64) -> Vec<Case> {
    let boxes = [
        ([Some(4.1), Some(3.3), Some(5.7)], 300, 0),
        ([Some(6.3), None, Some(2.9)], 250, 3),
        ([Some(0.7), Some(0.9), Some(0.8)], 15, 0),
        ([Some(0.4), None, Some(1.3)], 30, 5),
        ([Some(2.0), Some(2.0), Some(2.0)], 50, 0),
    ];
    let case = |(periodic, points, away): ([Option<f64>; 3], usize, u8)| {
        let high = periodic.map(|length| length.unwrap_or(4.0) as f32);
        let cloud = shapes::uniform_box(points, [[0.0; 3], high], seed);
        let cloud = shapes::unwrapped(cloud, periodic, away, seed);
        let name = format!("radii of {points} points in {periodic:?}, seed {seed}");
        case(name, 1.0, cloud, log_uniform(points, 1.0, seed)).periodic(periodic)
    };
    boxes.map(case).to_vec()
}

/// Boxes that lean, among them one smaller than the radii and one partly open.
fn tilted(seed: u64) -> Vec<Case> {
    let boxes = [
        (
            [[6.0, 0.0, 0.0], [3.0, 5.0, 0.0], [-3.0, 2.5, 4.0]],
            None,
            250,
        ),
        (
            [[4.0, 0.0, 0.0], [9.0, 4.5, 0.0], [-7.0, 5.0, 5.0]],
            None,
            150,
        ),
        (
            [[0.7, 0.0, 0.0], [0.35, 0.9, 0.0], [-0.3, 0.4, 0.8]],
            None,
            12,
        ),
        (
            [[4.0, 0.0, 0.0], [2.5, 3.0, 0.0], [0.0, 0.0, 5.0]],
            Some(2),
            200,
        ),
    ];
    let case = |(vectors, open, points): ([[f64; 3]; 3], Option<usize>, usize)| {
        let mut periodic = vectors.map(Some);
        open.into_iter()
            .for_each(|axis: usize| periodic[axis] = None);
        let cloud = shapes::uniform_cell(points, vectors, 0.05, seed);
        let cloud = shapes::unwrapped_cell(cloud, periodic, 2, seed);
        let name = format!("radii of {points} points in {periodic:?}, seed {seed}");
        case(name, 1.0, cloud, log_uniform(points, 1.0, seed)).tilted(periodic)
    };
    boxes.map(case).to_vec()
}

/// Every set searching every other, by every rule.
fn several_sets() -> Vec<Case> {
    let ball = |points, low: f32, high: f32, seed| {
        shapes::uniform_box(points, [[low; 3], [high; 3]], seed)
    };
    let sets = vec![
        ball(200, 0.0, 4.0, 31),
        ball(150, 2.0, 5.0, 32),
        vec![],
        vec![[2.5; 3]],
    ];
    let fine = |radius: f32| 0.2 * radius;
    let radii = vec![
        log_uniform(200, 1.0, 31),
        log_uniform(150, 1.0, 32).into_iter().map(fine).collect(),
        vec![],
        vec![0.9],
    ];
    let domains = [[None; 3], [Some(4.5), None, Some(1.7)]];
    let mut cases = Vec::new();
    for periodic in domains {
        for rule in RadiusRule::OWN {
            for (target, source) in (0..16).map(|pair| (pair / 4, pair % 4)) {
                let (what, periodic_name) = (name(rule), format!("{periodic:?}"));
                let name = format!("{target} finds {source} {what} in {periodic_name}");
                let case = Case {
                    sets: sets.clone(),
                    target,
                    source,
                    ..Case::new(name, 1.0, vec![]).periodic(periodic)
                };
                cases.push(case.with_radii(rule, radii.clone()));
            }
        }
    }
    cases
}
