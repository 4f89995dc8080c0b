//! Radii that are accepted, and their squares.

use nearfield_grid::*;

#[test]
fn only_positive_finite_radii_with_normal_squares_are_accepted() {
    for bad in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30, 1e30] {
        let error = Radius::new(bad).unwrap_err().to_string();
        assert!(error.contains("radius"), "{error}");
        assert!(Radius::new_f64(f64::from(bad)).is_err(), "{bad}");
    }
    for good in [Radius::MIN, 1e-6, 1.0, 2.5e7, Radius::MAX] {
        let radius = Radius::new(good).unwrap();
        assert!(radius.squared().is_normal());
        assert_eq!(radius.squared(), good * good);
        assert_eq!(radius.squared_f64(), f64::from(good * good));
    }
}

#[test]
fn a_strict_radius_leaves_out_its_own_square_and_nothing_below() {
    let single = Radius::new(0.3).unwrap().strict();
    assert!(single.squared() < 0.3 * 0.3 && single.squared().next_up() == 0.3 * 0.3);
    assert_eq!(single.squared_f64(), f64::from(single.squared()));
    assert_eq!(single.value(), 0.3);
    let double = Radius::new_f64(0.3).unwrap().strict();
    assert_eq!(double.squared_f64().next_up(), 0.3 * 0.3);
}

#[test]
fn a_radius_in_double_precision_keeps_its_digits() {
    let radius = Radius::new_f64(0.1).unwrap();
    assert_eq!(radius.precision(), Precision::Double);
    assert_eq!(radius.value_f64(), 0.1);
    assert_eq!(radius.squared_f64(), 0.1 * 0.1);
    assert_eq!(radius.value(), 0.1f32);
    let error = Radius::new_f64(-1e-9).unwrap_err().to_string();
    assert!(error.contains("radius -1e-9 "), "{error}");
}

#[test]
fn a_radius_that_rounding_would_lose_is_named_as_it_was_given() {
    for (value, text) in [
        (1e-300, "radius 1e-300 "),
        (-1e-60, "radius -1e-60 "),
        (1e300, "radius 1e300 "),
        (0.0, "radius 0 "),
        (f64::INFINITY, "radius inf "),
        (f64::NAN, "radius NaN "),
        (1e-20, "radius 1e-20 "),
    ] {
        let error = Radius::rounded(value).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
    assert_eq!(Radius::rounded(0.1).unwrap(), Radius::new(0.1).unwrap());
}
