//! The power law against its formula on both sides of the floor.

use nearfield_pairs::*;

#[test]
fn single_precision_follows_the_formula_on_both_sides_of_the_floor() {
    for exponent in [2, 3, 7, 12] {
        let law = PowerLaw::new(0.7, 0.9, exponent, 0.25).unwrap();
        for r in [0.01, 0.2, 0.25, 0.4, 1.0, 3.0] {
            let EnergyVirial { energy, virial } = law.at(r);
            let (force, found) = (virial / r, law.evaluate((r * r) as f32, (), ()));
            assert!(
                (f64::from(found.energy) - energy).abs() < 4e-6 * energy.abs(),
                "{exponent} {r}"
            );
            assert!(
                (f64::from(found.force_over_r) * r - force).abs() < 4e-6 * force,
                "{exponent} {r}"
            );
            let step = 1e-6;
            let slope = (law.at(r + step).energy - law.at(r - step).energy) / (2.0 * step);
            assert!((slope + force).abs() < 1e-3 * force, "{exponent} {r}");
        }
    }
}

#[test]
fn points_in_one_place_do_not_push_each_other_and_have_a_finite_energy() {
    let law = PowerLaw::new(1.0, 1.0, 12, 0.5).unwrap();
    let found = law.evaluate(0.0, (), ());
    assert!(found.energy.is_finite());
    assert_eq!(found.force_over_r * 0.0, 0.0, "whatever the direction");
}

#[test]
fn numbers_that_make_no_force_are_refused() {
    let refused = |c1, c2, n, floor| PowerLaw::new(c1, c2, n, floor).unwrap_err().to_string();
    assert!(refused(1.0, 1.0, 1, 0.1).contains("exponent 1"));
    assert!(refused(1.0, 1.0, 64, 0.1).contains("exponent 64"));
    assert!(refused(1.0, 1.0, 2, 0.0).contains("floor 0"));
    assert!(refused(f32::NAN, 1.0, 2, 0.1).contains("NaN"));
}
