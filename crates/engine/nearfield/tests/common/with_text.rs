//! The pair kernels of the library that have CUDA text, with values that they may meet.

use nearfield::kernels::{
    ChargeField, ChargePotential, Coefficients, CutoffCoulomb, Forces, Interactions, LennardJones,
    Mixing, PlainLennardJones, PowerLaw, Screening, SphDensity, SphForce, Sum, Truncation,
    WendlandC2,
};
use nearfield::prelude::*;
use nearfield_testkit::{
    kernels::{Close, Conformance},
    random::Random,
};

/// Agreement of texts whose fast forms, or forms written by hand, round otherwise than Rust.
/// Shifted energies near the cut-off are differences of numbers around 1.
pub(crate) const CLOSE: Close = Close::Within {
    share: 1e-4,
    absolute: 1e-6,
};

/// Does something with the comparison of each of several kernels.
pub(crate) trait Visit {
    fn visit<K: PairKernel>(&mut self, comparison: Conformance<'_, K>);
}

fn near(random: &mut Random) -> f32 {
    random.between(0.5, 1.5) as f32
}

/// Shows every kernel to `visit`. Densities are not zero, and kinds are those of the tables.
pub(crate) fn each(visit: &mut impl Visit) {
    visit.visit(Conformance::new(&SphDensity::with_support(1.0)));
    let kernel = WendlandC2::with_support(1.0);
    let force = SphForce {
        kernel,
        h: 0.5,
        alpha_c: 0.1,
    };
    let velocity = |random: &mut Random| [0; 3].map(|_| random.normal() as f32);
    visit.visit(
        Conformance::new(&force)
            .targets(move |random| (velocity(random), near(random), near(random)))
            .sources(move |random| (velocity(random), near(random), near(random), near(random))),
    );
    for softening in [0.0, 0.3] {
        visit.visit(Conformance::new(&ChargePotential { softening }));
        visit.visit(Conformance::new(&ChargeField { softening }));
    }
    let of = |sigma, epsilon| Coefficients { sigma, epsilon };
    let plain = PlainLennardJones::new(of(0.3, 1.2), 1.0, true).unwrap();
    visit.visit(Conformance::new(&Forces(plain)));
    visit.visit(Conformance::new(&Interactions(plain)));
    let types = [of(0.3, 1.0), of(0.4, 0.5), of(0.2, 0.0)];
    let table = LennardJones::new(
        &types,
        Mixing::LorentzBerthelot,
        &[],
        1.0,
        Truncation::ForceShift,
    )
    .unwrap();
    let kind = |random: &mut Random| random.below(3) as f32;
    let of_kinds = Interactions(table.clone());
    visit.visit(Conformance::new(&of_kinds).targets(kind).sources(kind));
    let charges = CutoffCoulomb::new(1.0, 1.0, Screening::ReactionField(78.0));
    let charge = |random: &mut Random| random.normal() as f32;
    let of_charges = Interactions(charges);
    visit.visit(
        Conformance::new(&of_charges)
            .targets(charge)
            .sources(charge),
    );
    let both = Forces(Sum(table, charges));
    let point = |random: &mut Random| (random.below(3) as f32, random.normal() as f32);
    visit.visit(Conformance::new(&both).targets(point).sources(point));
    let power = PowerLaw::new(1.0, 0.01, 9, 0.1).unwrap();
    visit.visit(Conformance::new(&Interactions(power)));
}
