//! Smoothing kernels and SPH kernels against their formulas.

use nearfield_pairs::*;

#[test]
fn the_kernel_integrates_to_one_over_its_support() {
    let kernel = WendlandC2::with_support(2.0);
    let steps = 20_000;
    let dr = 2.0 / steps as f64;
    let integral: f64 = (0..steps)
        .map(|k| {
            let r = (k as f64 + 0.5) * dr;
            4.0 * std::f64::consts::PI * r * r * f64::from(kernel.value((r * r) as f32)) * dr
        })
        .sum();
    assert!((integral - 1.0).abs() < 1e-5, "{integral}");
}

#[test]
fn the_kernel_of_a_plane_integrates_to_one_over_its_disc() {
    let kernel = WendlandC2::with_support(0.7).in_2d();
    let steps = 20_000;
    let dr = 0.7 / steps as f64;
    let integral: f64 = (0..steps)
        .map(|k| {
            let r = (k as f64 + 0.5) * dr;
            2.0 * std::f64::consts::PI * r * f64::from(kernel.value((r * r) as f32)) * dr
        })
        .sum();
    assert!((integral - 1.0).abs() < 1e-5, "{integral}");
    let in_space = WendlandC2::with_support(0.7);
    assert_eq!(kernel.in_dimensions(Dimensions::Three), in_space);
    assert_eq!(in_space.in_dimensions(Dimensions::Two), kernel);
}

#[test]
fn the_gradient_is_the_slope_of_the_kernel() {
    for kernel in [
        WendlandC2::with_support(1.3),
        WendlandC2::with_support(1.3).in_2d(),
    ] {
        gradient_is_slope(kernel);
    }
}

fn gradient_is_slope(kernel: WendlandC2) {
    for r in [0.1f32, 0.5, 0.9, 1.2] {
        let value = |r: f32| f64::from(kernel.value(r * r));
        let slope = (value(r + 1e-3) - value(r - 1e-3)) / 2e-3;
        let gradient = f64::from(kernel.gradient_over_distance(r * r) * r);
        assert!(
            (slope - gradient).abs() < 2e-3 * slope.abs().max(1.0),
            "{slope} {gradient}"
        );
    }
    assert_eq!(kernel.value(1.3 * 1.3 + 1e-3), 0.0);
}

#[test]
fn two_points_push_each_other_apart_with_equal_and_opposite_forces() {
    let kernel = SphForce {
        kernel: WendlandC2::with_support(1.0),
        h: 0.5,
        alpha_c: 0.3,
    };
    let (a, b) = (
        ([1.0, 0.0, 0.0], 1000.0, 5.0),
        ([-1.0, 0.5, 0.0], 900.0, 7.0),
    );
    let d = [0.3f32, 0.1, -0.2];
    let d2 = d.iter().map(|x| x * x).sum();
    let on_a = kernel.pair(Pair { d, d2 }, a, (b.0, b.1, b.2, 2.0));
    let on_b = kernel.pair(
        Pair {
            d: d.map(|x| -x),
            d2,
        },
        b,
        (a.0, a.1, a.2, 2.0),
    );
    assert!(on_a[0] < 0.0, "pushed away from the source");
    for axis in 0..3 {
        assert!((on_a[axis] + on_b[axis]).abs() <= 1e-6 * on_a[axis].abs());
    }
}
