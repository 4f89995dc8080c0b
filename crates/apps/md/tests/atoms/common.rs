//! Systems that several tests run on.

use nearfield::kernels::{
    Coefficients, CutoffCoulomb, LennardJones, Mixing, Screening, Truncation,
};
use nearfield_md::{Cell, ForceField, Options, System};

pub(crate) const REDUCED: Coefficients = Coefficients {
    epsilon: 1.0,
    sigma: 1.0,
};

const SIDE: usize = 8;
const EDGE: f64 = 1.15 * SIDE as f64;

/// Two kinds of charged atoms, jittered off a lattice.
pub(crate) fn salt() -> (System, ForceField) {
    salt_in(Cell::cube(EDGE).unwrap())
}

/// The same atoms in another box: one that is as long along every axis, and perhaps tilted by an
/// even number of places of the lattice.
pub(crate) fn salt_in(cell: Cell) -> (System, ForceField) {
    let place = |k: usize| {
        let at = [k % SIDE, k / SIDE % SIDE, k / SIDE / SIDE];
        let wobble = |axis: usize| 0.12 * ((k * 37 + axis * 101) as f64 * 0.7).sin();
        [0, 1, 2].map(|axis| 1.15 * at[axis] as f64 + wobble(axis))
    };
    let count = SIDE * SIDE * SIDE;
    let kind = |k: usize| ((k % SIDE + k / SIDE % SIDE + k / SIDE / SIDE) % 2) as u32;
    let system = System::new((0..count).map(place).collect(), cell);
    let system = system
        .unwrap()
        .with_types((0..count).map(kind).collect(), vec![1.0, 1.7]);
    let charges = (0..count)
        .map(|k| if kind(k) == 0 { 0.6 } else { -0.6 })
        .collect();
    let system = system.unwrap().with_charges(charges).unwrap();
    let types = [
        REDUCED,
        Coefficients {
            epsilon: 0.6,
            sigma: 1.1,
        },
    ];
    let table = LennardJones::new(&types, Mixing::default(), &[], 2.5, Truncation::ForceShift);
    let coulomb = CutoffCoulomb::new(1.3, 2.5, Screening::ForceShift);
    (
        system,
        ForceField::from(table.unwrap()).with_coulomb(coulomb),
    )
}

/// Options with a skin.
pub(crate) fn with_skin(skin: f32) -> Options {
    Options {
        skin,
        ..Options::default()
    }
}
