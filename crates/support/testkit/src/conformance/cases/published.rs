//! Cases whose counts others published: lattices, and the small systems that
//! ASE, matscipy and vesin test with.

use crate::conformance::case::{Case, Known};
use crate::conformance::level::Level;
use crate::published::{Ball, BallCount, PublishedCount, PublishedSystem, ball_counts, systems};
use crate::shapes;

const BALLS: [Ball; 4] = [
    Ball::CubicByRadius,
    Ball::CubicBySquare,
    Ball::SquareByRadius,
    Ball::FaceCenteredBySquare,
];

/// Lattices up to a largest radius, and every system with full and half lists.
pub(super) fn cases(level: Level) -> Vec<Case> {
    let largest = match level {
        Level::Quick => 3.0,
        Level::Full => 5.0,
    };
    let mut cases = Vec::new();
    for ball in BALLS {
        for count in ball_counts(ball) {
            let radius = radius(ball, count.index);
            if count.index > 0 && radius.floor() <= largest {
                cases.push(open_lattice(ball, radius, count));
                cases.extend(periodic_lattice(ball, radius, count));
                cases.extend(tilted_lattices(ball, radius, count));
            }
        }
    }
    cases.extend(systems().into_iter().flat_map(system));
    cases
}

/// The radius of a ball: exact where it is a whole number, else halfway
/// between the squares of two shells.
fn radius(ball: Ball, index: u32) -> f32 {
    let index = index as f32;
    match ball {
        Ball::CubicByRadius | Ball::SquareByRadius => index,
        Ball::CubicBySquare => (index + 0.5).sqrt(),
        Ball::FaceCenteredBySquare => (2.0 * index + 0.5).sqrt(),
    }
}

fn points(ball: Ball, side: usize) -> Vec<[f32; 3]> {
    match ball {
        Ball::CubicByRadius | Ball::CubicBySquare => shapes::lattice([side; 3]),
        Ball::SquareByRadius => shapes::lattice([side, side, 1]),
        Ball::FaceCenteredBySquare => shapes::face_centered_lattice(side),
    }
}

/// A lattice with four layers of points that have a whole ball around them.
fn open_lattice(ball: Ball, radius: f32, count: BallCount) -> Case {
    let margin = radius.floor();
    let side = 2 * margin as usize + 4;
    let inside = margin..=side as f32 - 1.0 - margin;
    let axes = match ball {
        Ball::SquareByRadius => 2,
        _ => 3,
    };
    let points = points(ball, side);
    let interior =
        |&(_, point): &(u32, &[f32; 3])| point[..axes].iter().all(|at| inside.contains(at));
    let targets = (0..).zip(&points).filter(interior).map(|(index, _)| index);
    let known = Known::PerTarget {
        count: count.points - 1,
        targets: targets.collect(),
    };
    let name = format!("open lattice of {ball:?} {}", count.index);
    Case::new(name, radius, points).known(known)
}

/// A small periodic lattice, in which every point has a whole ball around it
/// even when the box is smaller than the ball; full and half lists.
fn periodic_lattice(ball: Ball, radius: f32, count: BallCount) -> [Case; 2] {
    const SIDE: usize = 4;
    let points = points(ball, SIDE);
    let depth = match ball {
        Ball::SquareByRadius => None,
        _ => Some(SIDE as f64),
    };
    let name = format!("periodic lattice of {ball:?} {}", count.index);
    let case = Case::new(name, radius, points);
    per_point(
        case.periodic([Some(SIDE as f64), Some(SIDE as f64), depth]),
        count.points - 1,
    )
}

/// The same lattices described by tilted boxes: cubic ones by boxes that lean by whole numbers, up
/// to several box lengths, face-centred ones also by the cell of a single point.
fn tilted_lattices(ball: Ball, radius: f32, count: BallCount) -> Vec<Case> {
    let leaning = |lengths: [f64; 3], [xy, xz, yz]: [f64; 3]| {
        let [lx, ly, lz] = lengths;
        [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]].map(Some)
    };
    let mut boxes = match ball {
        Ball::CubicByRadius | Ball::CubicBySquare => vec![
            (shapes::lattice([4; 3]), leaning([4.0; 3], [2.0, -1.0, 1.0])),
            (
                shapes::lattice([3, 2, 4]),
                leaning([3.0, 2.0, 4.0], [7.0, -5.0, 3.0]),
            ),
        ],
        Ball::SquareByRadius => {
            let [a, b, _] = leaning([3.0, 5.0, 1.0], [4.0, 0.0, 0.0]);
            vec![(shapes::lattice([3, 5, 1]), [a, b, None])]
        }
        Ball::FaceCenteredBySquare => vec![
            (
                vec![[7.0, -3.0, 0.5]],
                [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]].map(Some),
            ),
            (
                shapes::face_centered_lattice(4),
                leaning([4.0; 3], [2.0, -6.0, 2.0]),
            ),
        ],
    };
    let described = boxes.drain(..).flat_map(|(points, vectors)| {
        let name = format!("{ball:?} {} in a box of {vectors:?}", count.index);
        per_point(
            Case::new(name, radius, points).tilted(vectors),
            count.points - 1,
        )
    });
    described.collect()
}

fn system(system: PublishedSystem) -> [Case; 2] {
    let case = Case::new(system.id, system.radius, system.points);
    let case = match system.vectors {
        Some(vectors) => case.tilted(vectors),
        None => case.periodic(system.periodic),
    };
    match system.count {
        PublishedCount::FullPerPoint(count) => per_point(case, count),
        PublishedCount::HalfTotal(pairs) => [
            case.clone().known(Known::Total(2 * pairs)),
            case.half().known(Known::Total(pairs)),
        ],
    }
}

/// Full lists of `count` neighbours each, and half lists of half as many in
/// all.
fn per_point(case: Case, count: u64) -> [Case; 2] {
    let points = case.targets().len();
    let half = Known::Total(points as u64 * count / 2);
    let full = Known::PerTarget {
        count,
        targets: (0..points as u32).collect(),
    };
    [case.clone().known(full), case.half().known(half)]
}
