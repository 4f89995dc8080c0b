//! Screened Coulomb energies and forces against their formulas.

use nearfield_pairs::*;

#[test]
fn shifted_energies_and_forces_vanish_at_the_cut_off() {
    let at = |screening| {
        let charges = CutoffCoulomb::new(2.0, 3.0, screening);
        let found = charges.evaluate(9.0, 1.5, -2.0);
        (found.energy.abs() < 1e-5, found.force_over_r.abs() < 1e-5)
    };
    assert_eq!(at(Screening::Plain), (false, false));
    assert_eq!(at(Screening::EnergyShift), (true, false));
    assert_eq!(at(Screening::ForceShift), (true, true));
    assert_eq!(at(Screening::ReactionField(78.0)), (true, false));
    // A conductor leaves no field at its surface.
    assert_eq!(at(Screening::ReactionField(f64::INFINITY)), (true, true));
}

#[test]
fn the_force_is_the_slope_of_the_energy() {
    for screening in [
        Screening::Plain,
        Screening::EnergyShift,
        Screening::ForceShift,
        Screening::ReactionField(4.0),
    ] {
        let charges = CutoffCoulomb::new(1.0, 3.0, screening);
        let energy = |r: f64| charges.at(r).energy;
        for r in [0.3, 1.0, 2.2, 2.9] {
            let step = 1e-6;
            let force = -(energy(r + step) - energy(r - step)) / (2.0 * step);
            assert!((charges.at(r).virial / r - force).abs() < 1e-7 / (r * r));
            let found = charges.evaluate((r * r) as f32, 1.0, 1.0);
            assert!((f64::from(found.energy) - energy(r)).abs() < 2e-6 / r);
            assert!(
                (f64::from(found.force_over_r) * r - force).abs() < 1e-5 / (r * r),
                "{screening:?} {r}"
            );
        }
    }
}
