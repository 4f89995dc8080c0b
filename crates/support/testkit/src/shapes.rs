//! Point sets that are hard for neighbour searches, each named after its difficulty.
//!
//! Every function is a pure function of its arguments: the random ones take a
//! seed and give the same bits on every platform.

use crate::random::Random;

/// A perfect lattice of `counts` points along x, y and z at whole
/// coordinates from 0, x running fastest.
pub fn lattice(counts: [usize; 3]) -> Vec<[f32; 3]> {
    lattice_points(counts).collect()
}

/// As [`lattice`], one after the other.
pub(crate) fn lattice_points([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [f32; 3]> {
    let row = move |y, z| (0..nx).map(move |x| [x, y, z].map(|at| at as f32));
    (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| row(y, z)))
}

/// The points of [`lattice`] whose coordinates add up to an even number: a
/// face-centred cubic lattice whose nearest neighbours are √2 apart.
pub fn face_centered_lattice(side: usize) -> Vec<[f32; 3]> {
    let even = |at: &[f32; 3]| at.iter().sum::<f32>() % 2.0 == 0.0;
    lattice([side; 3]).into_iter().filter(even).collect()
}

/// A center and every point of the integer lattice at exactly `radius` from
/// it, all times `scale`. With a power of two for the scale and a center on
/// the lattice, every distance is exact in f32.
pub fn exact_sphere(radius: i32, scale: f32, center: [i32; 3]) -> Vec<[f32; 3]> {
    let axis = || -radius..=radius;
    let all = axis().flat_map(|x| axis().flat_map(move |y| axis().map(move |z| [x, y, z])));
    let on_sphere = |d: &[i32; 3]| d.iter().map(|c| c * c).sum::<i32>() == radius * radius;
    std::iter::once([0; 3])
        .chain(all.filter(on_sphere))
        .map(|d| [0, 1, 2].map(|axis| (center[axis] + d[axis]) as f32 * scale))
        .collect()
}

/// `center` and, on both sides along each axis, the three points next to
/// distance `radius`: one step of f32 inside, on it, and one step outside.
pub fn around_radius(radius: f32, center: [f32; 3]) -> Vec<[f32; 3]> {
    let mut points = vec![center];
    for distance in [radius.next_down(), radius, radius.next_up()] {
        for (axis, side) in [0, 1, 2]
            .into_iter()
            .flat_map(|axis| [(axis, -1.0), (axis, 1.0)])
        {
            let mut point = center;
            point[axis] += side * distance;
            points.push(point);
        }
    }
    points
}

/// `center` and points in random directions at distance `radius` from it but
/// for rounding: whether each is a neighbour hangs on the last bit of d², so
/// any other arithmetic than the contract's gives other lists.
pub fn rounded_sphere(points: usize, radius: f32, center: [f32; 3], seed: u64) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    let mut on_sphere = || {
        let direction = random.direction();
        [0, 1, 2].map(|axis| (f64::from(center[axis]) + f64::from(radius) * direction[axis]) as f32)
    };
    let sphere = (0..points).map(|_| on_sphere());
    std::iter::once(center).chain(sphere).collect()
}

/// Points on the corners of cells of edge `radius / cells`, from `-reach` to
/// `reach` cells along each axis, and the floats right below and above each.
pub fn cell_faces(radius: f32, cells: u8, reach: i32) -> Vec<[f32; 3]> {
    let edge = radius / f32::from(cells);
    let face = |at: i32| at as f32 * edge;
    let axis = || -reach..=reach;
    axis()
        .flat_map(|x| axis().flat_map(move |y| axis().map(move |z| [x, y, z].map(face))))
        .flat_map(|at| [at.map(f32::next_down), at, at.map(f32::next_up)])
        .collect()
}

/// `copies` points at the same place.
pub fn coincident(copies: usize, at: [f32; 3]) -> Vec<[f32; 3]> {
    vec![at; copies]
}

/// Independent points, uniform between two corners. Equal corners along an
/// axis make a flat or straight set.
pub fn uniform_box(points: usize, [low, high]: [[f32; 3]; 2], seed: u64) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    let mut coordinate = |axis: usize| {
        let [low, high] = [low[axis], high[axis]].map(f64::from);
        random.between(low, high) as f32
    };
    (0..points)
        .map(|_| [0, 1, 2].map(&mut coordinate))
        .collect()
}

/// Independent points on the segment between two places.
pub fn collinear(points: usize, [from, to]: [[f32; 3]; 2], seed: u64) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    let mut point = |_| {
        let along = random.unit() as f32;
        [0, 1, 2].map(|axis| from[axis] + (to[axis] - from[axis]) * along)
    };
    (0..points).map(&mut point).collect()
}

/// Every sign and every pair of magnitudes around zero: both zeros, the
/// smallest subnormals, the smallest normal number, and `far`.
pub fn around_zero(far: f32) -> Vec<[f32; 3]> {
    let smallest = f32::from_bits(1);
    let values = [0.0, -0.0, smallest, -smallest, f32::MIN_POSITIVE, -far, far];
    let place = |x| values.map(move |y| [x, y, -x]);
    values.into_iter().flat_map(place).collect()
}

/// The points moved by `by`, with the rounding of f32.
pub fn translated(mut points: Vec<[f32; 3]>, by: [f32; 3]) -> Vec<[f32; 3]> {
    for point in &mut points {
        *point = [0, 1, 2].map(|axis| point[axis] + by[axis]);
    }
    points
}

/// The points moved by a random whole number of box lengths, up to `boxes`
/// to either side along each periodic axis, with the rounding of f32.
pub fn unwrapped(
    mut points: Vec<[f32; 3]>,
    periodic: [Option<f64>; 3],
    boxes: u8,
    seed: u64,
) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    for point in &mut points {
        for (at, length) in point.iter_mut().zip(periodic) {
            let away = random.below(2 * u64::from(boxes) + 1) as f64 - f64::from(boxes);
            *at = (f64::from(*at) + away * length.unwrap_or(0.0)) as f32;
        }
    }
    points
}

/// Independent points in the box that three vectors span from the origin, and
/// up to `margin` of a box beyond each face.
pub fn uniform_cell(
    points: usize,
    vectors: [[f64; 3]; 3],
    margin: f64,
    seed: u64,
) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    let mut point = |_| {
        let share = [0; 3].map(|_| random.between(-margin, 1.0 + margin));
        [0, 1, 2].map(|axis| (0..3).map(|k| share[k] * vectors[k][axis]).sum::<f64>() as f32)
    };
    (0..points).map(&mut point).collect()
}

/// The points moved by a random whole number of these vectors, up to `boxes`
/// of each to either side, with the rounding of f32.
pub fn unwrapped_cell(
    mut points: Vec<[f32; 3]>,
    vectors: [Option<[f64; 3]>; 3],
    boxes: u32,
    seed: u64,
) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    for point in &mut points {
        for vector in vectors.iter().flatten() {
            let away = random.below(2 * u64::from(boxes) + 1) as f64 - f64::from(boxes);
            *point = [0, 1, 2].map(|axis| (f64::from(point[axis]) + away * vector[axis]) as f32);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lattice_runs_fastest_along_x() {
        let points = lattice([2, 2, 1]);
        assert_eq!(
            points,
            [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
        );
        assert_eq!(face_centered_lattice(4).len(), 32);
    }

    // The representations of 25, 9 and 49 as sums of three squares.
    #[test]
    fn an_exact_sphere_holds_every_lattice_point_of_its_radius() {
        for (radius, count) in [(5, 30), (3, 30), (7, 54)] {
            let points = exact_sphere(radius, 0.25, [8, -4, 0]);
            assert_eq!(points.len(), count + 1);
            for point in &points[1..] {
                let d = [0, 1, 2].map(|axis| point[axis] - points[0][axis]);
                let squared = d.iter().map(|d| d * d).sum::<f32>();
                assert_eq!(squared, (radius as f32 * 0.25).powi(2));
            }
        }
    }

    #[test]
    fn cell_faces_hold_each_corner_and_its_two_neighboring_floats() {
        let points = cell_faces(0.3, 3, 2);
        assert_eq!(points.len(), 5 * 5 * 5 * 3);
        assert!(points.contains(&[2.0 * (0.3 / 3.0), 0.0, -(0.3 / 3.0)]));
        assert!(points.contains(&[0.0_f32.next_up(); 3]));
    }

    #[test]
    fn points_of_a_cell_are_shares_of_its_vectors() {
        let vectors = [[4.0, 0.0, 0.0], [3.0, 2.0, 0.0], [-9.0, 1.0, 0.5]];
        let points = uniform_cell(300, vectors, 0.1, 1);
        let moved = unwrapped_cell(points.clone(), vectors.map(Some), 2, 1);
        let shares = |[x, y, z]: [f32; 3]| {
            let c = z / 0.5;
            let b = (y - c) / 2.0;
            [(x - 3.0 * b + 9.0 * c) / 4.0, b, c]
        };
        let all = points.iter().flat_map(|&point| shares(point));
        assert!(all.clone().all(|share| (-0.101..1.101).contains(&share)));
        assert!(all.clone().any(|share| share < 0.0) && all.clone().any(|share| share > 1.0));
        for (&before, &after) in points.iter().zip(&moved) {
            for (before, after) in shares(before).into_iter().zip(shares(after)) {
                let boxes = after - before;
                assert!((boxes - boxes.round()).abs() < 1e-4 && boxes.abs() < 2.5);
            }
        }
    }

    #[test]
    fn unwrapped_points_lie_whole_boxes_away_on_periodic_axes_only() {
        let wrapped = uniform_box(50, [[0.0; 3], [2.0; 3]], 1);
        let moved = unwrapped(wrapped.clone(), [Some(2.0), None, Some(0.5)], 3, 2);
        for (before, after) in wrapped.iter().zip(&moved) {
            let boxes = (after[0] - before[0]) / 2.0;
            assert!(
                (boxes - boxes.round()).abs() < 1e-5 && boxes.abs() < 3.5,
                "{boxes}"
            );
            assert_eq!(before[1], after[1]);
        }
        assert!(
            wrapped
                .iter()
                .zip(&moved)
                .any(|(a, b)| (a[2] - b[2]).abs() > 1.0)
        );
    }
}
