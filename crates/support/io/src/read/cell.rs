//! Boxes in the forms of files of atoms.

use crate::cloud::SimulationBox;

/// A box that is periodic along all axes.
pub(super) fn periodic(vectors: [[f64; 3]; 3]) -> SimulationBox {
    SimulationBox {
        vectors,
        periodic: [true; 3],
    }
}

/// The vectors of a box with these lengths and tilts xy, xz and yz, as LAMMPS has them.
pub(super) fn tilted(lengths: [f64; 3], [xy, xz, yz]: [f64; 3]) -> [[f64; 3]; 3] {
    let [lx, ly, lz] = lengths;
    [[lx, 0.0, 0.0], [xy, ly, 0.0], [xz, yz, lz]]
}

/// The vectors of a cell with these lengths and angles in degrees, a along x and b in the plane of
/// x and y; `None` if there is no such cell.
pub(super) fn of_angles([a, b, c]: [f64; 3], angles: [f64; 3]) -> Option<[[f64; 3]; 3]> {
    // Right angles, which most cells have, are exact.
    let cosine = |angle: f64| {
        if angle == 90.0 {
            0.0
        } else {
            angle.to_radians().cos()
        }
    };
    let [alpha, beta, gamma] = angles.map(cosine);
    let sine = (1.0 - gamma * gamma).sqrt();
    let across = (alpha - beta * gamma) / sine;
    let up = (1.0 - beta * beta - across * across).sqrt();
    let vectors = [
        [a, 0.0, 0.0],
        [b * gamma, b * sine, 0.0],
        [c * beta, c * across, c * up],
    ];
    let is_cell = (0..3).all(|axis| vectors[axis][axis] > 0.0)
        && vectors.as_flattened().iter().all(|value| value.is_finite());
    is_cell.then_some(vectors)
}

/// The volume that three vectors span.
pub(super) fn volume([a, b, c]: [[f64; 3]; 3]) -> f64 {
    let minor = |i: usize, j: usize| b[i] * c[j] - b[j] * c[i];
    (a[0] * minor(1, 2) + a[1] * minor(2, 0) + a[2] * minor(0, 1)).abs()
}

/// A position given in parts of the vectors.
pub(super) fn at(vectors: [[f64; 3]; 3], [u, v, w]: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| {
        let [a, b, c] = vectors.map(|vector| vector[axis]);
        u * a + v * b + w * c
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_lengths_and_angles_have_them() {
        let (lengths, angles) = ([3.0, 4.0, 5.0], [70.0, 80.0, 110.0]);
        let [a, b, c] = of_angles(lengths, angles).unwrap();
        let dot = |u: [f64; 3], v: [f64; 3]| (0..3).map(|i| u[i] * v[i]).sum::<f64>();
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        for (vector, length) in [a, b, c].into_iter().zip(lengths) {
            assert!(close(dot(vector, vector).sqrt(), length));
        }
        for (u, v, angle) in [(b, c, angles[0]), (a, c, angles[1]), (a, b, angles[2])] {
            let cosine = dot(u, v) / (dot(u, u) * dot(v, v)).sqrt();
            assert!(close(cosine, angle.to_radians().cos()));
        }
        let straight = of_angles(lengths, [90.0; 3]).unwrap();
        assert_eq!(straight, tilted(lengths, [0.0; 3]));
        assert!(close(volume(straight), 60.0));
        assert_eq!(at(straight, [0.5, 1.0, 2.0]), [1.5, 4.0, 10.0]);
        for (lengths, angles) in [
            ([0.0, 1.0, 1.0], [90.0; 3]),
            ([1.0; 3], [10.0, 90.0, 10.0]),
            ([1.0; 3], [90.0, 90.0, 0.0]),
            ([f64::NAN, 1.0, 1.0], [90.0; 3]),
        ] {
            assert_eq!(of_angles(lengths, angles), None);
        }
    }
}
