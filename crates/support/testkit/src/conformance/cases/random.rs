//! Open domains: independent points of many sizes and densities, and the
//! named clouds.

use crate::cloud::Cloud;
use crate::conformance::case::{Case, full_and_half};
use crate::conformance::level::Level;
use crate::shapes;

/// Each cloud with full lists, and with half lists where it is small.
pub(super) fn cases(level: Level) -> Vec<Case> {
    let (sizes, seeds): (&[usize], u64) = match level {
        Level::Quick => (&[1, 2, 3, 10, 100, 1000], 1),
        Level::Full => (&[1, 2, 3, 10, 100, 1000, 2500], 3),
    };
    let mut cases = Vec::new();
    for seed in 0..seeds {
        for &size in sizes {
            for neighbors in [0.5, 8.0, 40.0, 200.0] {
                cases.extend(full_and_half(uniform(size, neighbors, 1.0, seed)));
            }
        }
        cases.extend([8.0, 40.0, 150.0].map(|neighbors| uniform(5000, neighbors, 0.037, seed)));
    }
    cases.extend(Cloud::ALL.map(|cloud| named(cloud, 1500)));
    if level == Level::Full {
        cases.extend(Cloud::ALL.map(|cloud| named(cloud, 30_000)));
    }
    cases
}

/// Points in a cube so dense that each has `neighbors` in a full ball.
fn uniform(size: usize, neighbors: f64, radius: f32, seed: u64) -> Case {
    let ball = 4.0 / 3.0 * std::f64::consts::PI * f64::from(radius).powi(3);
    let side = libm::cbrt(size as f64 * ball / neighbors) as f32;
    let points = shapes::uniform_box(size, [[-0.3 * side; 3], [0.7 * side; 3]], seed);
    let name = format!("{size} random points, about {neighbors} neighbors, seed {seed}");
    Case::new(name, radius, points)
}

fn named(cloud: Cloud, size: usize) -> Case {
    let points = cloud.points(size, 1);
    let radius = cloud.default_radius(size);
    Case::new(format!("{} of {size}", cloud.name()), radius, points)
}
