//! The Lennard-Jones potential against its formula, its shifts and its long-range corrections.

use nearfield_pairs::*;

const ARGON: Coefficients = Coefficients {
    epsilon: 0.7,
    sigma: 1.1,
};

fn table(truncation: Truncation) -> LennardJones {
    let other = Coefficients {
        epsilon: 1.3,
        sigma: 0.9,
    };
    LennardJones::new(&[ARGON, other], Mixing::default(), &[], 2.5, truncation).unwrap()
}

#[test]
fn what_is_added_at_the_cut_off_makes_it_continuous() {
    for (truncation, energy, virial) in [
        (Truncation::Plain, false, false),
        (Truncation::EnergyShift, true, false),
        (Truncation::ForceShift, true, true),
    ] {
        let at = ARGON.truncated(2.5, 2.5, truncation);
        let (u, w) = (at.energy, at.virial);
        assert_eq!(u.abs() < 1e-15, energy, "{truncation:?}: {u}");
        assert_eq!(w.abs() < 1e-14, virial, "{truncation:?}: {w}");
    }
}

#[test]
fn the_force_is_the_slope_of_the_energy_and_single_precision_is_near() {
    for truncation in [
        Truncation::Plain,
        Truncation::EnergyShift,
        Truncation::ForceShift,
    ] {
        let potential = table(truncation);
        for (a, b) in [(0, 0), (0, 1), (1, 1)] {
            let of = potential.coefficients(a, b);
            for r in [0.85, 1.0, 1.23, 1.7, 2.4] {
                let energy = |r: f64| of.truncated(r, 2.5, truncation).energy;
                let step = 1e-6;
                let slope = (energy(r + step) - energy(r - step)) / (2.0 * step);
                let at = of.truncated(r, 2.5, truncation);
                let (u, w) = (at.energy, at.virial);
                assert!(
                    (w / r + slope).abs() < 1e-6 * (1.0 + w.abs()),
                    "{r} {w} {slope}"
                );
                let single = potential.evaluate((r * r) as f32, a as f32, b as f32);
                // Two terms that nearly cancel out: rounding counts against either.
                let size = 4.0 * of.epsilon * (of.sigma / r).powi(6) * 1.5;
                assert!((f64::from(single.energy) - u).abs() < 4e-6 * size.max(1.0));
                assert!((f64::from(single.force_over_r) * r * r - w).abs() < 4e-5 * size.max(1.0));
            }
        }
    }
}

#[test]
fn the_plain_kernel_is_the_table_of_one_type() {
    for truncation in [Truncation::Plain, Truncation::EnergyShift] {
        let table = LennardJones::new(&[ARGON], Mixing::default(), &[], 2.5, truncation).unwrap();
        let plain = table.plain().unwrap();
        for d2 in [0.8f32, 1.3, 2.9, 6.2] {
            assert_eq!(plain.evaluate(d2, (), ()), table.evaluate(d2, 0.0, 0.0));
        }
    }
    assert_eq!(table(Truncation::Plain).plain(), None);
}

#[test]
fn unlike_atoms_are_mixed_unless_they_are_told() {
    let types = [
        Coefficients {
            epsilon: 1.0,
            sigma: 1.0,
        },
        Coefficients {
            epsilon: 4.0,
            sigma: 4.0,
        },
    ];
    let told = Coefficients {
        epsilon: 0.5,
        sigma: 2.0,
    };
    let of = |mixing, explicit: &[_]| {
        let table = LennardJones::new(&types, mixing, explicit, 9.0, Truncation::Plain);
        let table = table.unwrap();
        assert_eq!(table.coefficients(0, 1), table.coefficients(1, 0));
        table.coefficients(1, 0)
    };
    assert_eq!(
        of(Mixing::LorentzBerthelot, &[]),
        Coefficients {
            epsilon: 2.0,
            sigma: 2.5
        }
    );
    assert_eq!(
        of(Mixing::Geometric, &[]),
        Coefficients {
            epsilon: 2.0,
            sigma: 2.0
        }
    );
    assert_eq!(of(Mixing::Geometric, &[(0, 1, told)]), told);
}

#[test]
fn tables_that_make_no_sense_are_refused_by_name() {
    let make = |types: &[Coefficients], explicit: &[_], cutoff| {
        LennardJones::new(
            types,
            Mixing::default(),
            explicit,
            cutoff,
            Truncation::Plain,
        )
        .unwrap_err()
        .to_string()
    };
    assert!(make(&[], &[], 2.5).starts_with("0 kinds"));
    assert!(make(&[ARGON; 9], &[], 2.5).starts_with("9 kinds"));
    assert!(make(&[ARGON], &[(0, 3, ARGON)], 2.5).starts_with("4 kinds"));
    assert!(make(&[ARGON], &[], f64::NAN).contains("cut-off NaN"));
    let flat = Coefficients {
        sigma: 0.0,
        ..ARGON
    };
    assert!(make(&[ARGON, flat], &[(0, 1, ARGON)], 2.5).contains("types 1 and 1"));
}

#[test]
fn the_correction_of_a_mixture_of_equals_is_that_of_one_kind() {
    let of = |types: &[Coefficients], counts: &[usize]| {
        let table = LennardJones::new(types, Mixing::default(), &[], 3.0, Truncation::Plain);
        table.unwrap().long_range(counts, 1000.0)
    };
    let reduced = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    let one = of(&[reduced], &[800]);
    // The value of the NIST reference calculations.
    assert!((one.energy + 198.49).abs() < 0.005, "{}", one.energy);
    let mixed = of(&[reduced; 2], &[300, 500]);
    assert!((one.energy - mixed.energy).abs() < 1e-9);
    assert!((one.virial - mixed.virial).abs() < 1e-9);
}
