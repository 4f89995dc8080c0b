//! Every program there is, for checks and for caches that are filled in advance.

use super::all_pairs::all_pairs_programs;
use crate::{
    program::Program,
    traversal::{Candidates, PairProgram, Strategy, Traversal, Work},
};
use nearfield_pairs::{
    ChargeField, ChargePotential, Coefficients, CutoffCoulomb, Forces, Interactions, LennardJones,
    ListKind, Mixing, PairKernel, PlainLennardJones, PowerLaw, Screening, SphDensity, SphForce,
    Sum, Truncation, WendlandC2,
};

/// Every program there is, for checks and for caches that are filled in advance.
///
/// Traversals are compiled for what they are asked to do; here are those of counting, of lists and
/// of the named pair kernels, by every strategy. Sums over all pairs come in every precision and
/// arithmetic.
pub fn programs() -> Vec<Program> {
    let whole = nearfield_kernels::ALL.iter().map(Program::from);
    whole
        .chain(traversal_programs())
        .chain(all_pairs_programs())
        .collect()
}

/// Ways of `flat` to find candidates, and cells to a radius where programs depend on them. The
/// first two are those of all strategies.
const FLAT_WAYS: [(Candidates, u32); 10] = [
    (Candidates::Rows, 1),
    (Candidates::OneSet, 1),
    (Candidates::OneSet, 2),
    (Candidates::OneSet, 3),
    (Candidates::Open, 1),
    (Candidates::Open, 2),
    (Candidates::Periodic, 1),
    (Candidates::Periodic, 2),
    (Candidates::Tilted, 1),
    (Candidates::Tilted, 2),
];

/// Programs of traversals for every strategy: counting, lists, named pair kernels.
fn traversal_programs() -> Vec<Program> {
    let kernel = WendlandC2::with_support(1.0);
    let force = SphForce {
        kernel,
        h: 0.5,
        alpha_c: 0.1,
    };
    let twins = [
        PairProgram::of(&SphDensity { kernel }),
        PairProgram::of(&force),
    ];
    let pairs = twins
        .into_iter()
        .flatten()
        .map(|(twin, _)| Work::Pairs(twin));
    let works: Vec<Work> = [
        Work::Count,
        Work::Lists(ListKind::Full),
        Work::Lists(ListKind::Half),
    ]
    .into_iter()
    .chain(pairs)
    .collect();
    let mut programs = Vec::new();
    for strategy in Strategy::ALL {
        // Of the two that launch children, one program serves both.
        if strategy == Strategy::ChildAggregated {
            continue;
        }
        let ways = match strategy {
            Strategy::Flat => &FLAT_WAYS[..],
            _ => &FLAT_WAYS[..2],
        };
        for &(candidates, subdivision) in ways {
            let works = works.iter().filter(|work| match work {
                Work::Pairs(pairs) => strategy != Strategy::HalfTiles || pairs.halves(),
                _ => strategy != Strategy::HalfTiles,
            });
            programs.extend(works.map(|work| {
                let half = *work == Work::Lists(ListKind::Half);
                let traversal = Traversal {
                    strategy,
                    work: work.clone(),
                    candidates,
                    subdivision,
                    half,
                };
                traversal.program()
            }));
        }
    }
    programs.extend(charge_programs());
    programs.extend(potential_programs());
    programs
}

/// Those of charges within a cut-off, which have targets and sources of their own, by the strategy
/// that is used when none is asked for.
fn charge_programs() -> impl Iterator<Item = Program> {
    let twins = [
        PairProgram::of(&ChargePotential::default()),
        PairProgram::of(&ChargeField::default()),
    ];
    let twins = twins.into_iter().flatten();
    twins.map(|(twin, _)| {
        let traversal = Traversal {
            strategy: Strategy::Flat,
            work: Work::Pairs(twin),
            candidates: Candidates::Open,
            subdivision: 1,
            half: false,
        };
        traversal.program()
    })
}

/// Those of the potentials of atoms, one set in a periodic box, by the same strategy and with pairs
/// evaluated once for both.
fn potential_programs() -> impl Iterator<Item = Program> {
    let unit = Coefficients {
        epsilon: 1.0,
        sigma: 1.0,
    };
    // Programs do not depend on the numbers, which none of these refuses.
    let plain = PlainLennardJones::new(unit, 2.5, false).ok();
    let (mixing, truncation) = (Mixing::default(), Truncation::Plain);
    let table = LennardJones::new(&[unit, unit], mixing, &[], 2.5, truncation).ok();
    let power = PowerLaw::new(1.0, 1.0, 12, 0.1).ok();
    let charges = CutoffCoulomb::new(1.0, 2.5, Screening::Plain);
    let twins = [
        plain.and_then(|plain| twin(&Interactions(plain))),
        (table.as_ref()).and_then(|table| twin(&Interactions(table))),
        (table.as_ref()).and_then(|table| twin(&Interactions(Sum(table, charges)))),
        power.and_then(|power| twin(&Interactions(power))),
        power.and_then(|power| twin(&Forces(power))),
    ];
    twins.into_iter().flatten().flat_map(|twin| {
        let ways = [
            (Strategy::Flat, Candidates::Periodic),
            (Strategy::HalfTiles, Candidates::Rows),
        ];
        ways.map(|(strategy, candidates)| {
            let traversal = Traversal {
                strategy,
                work: Work::Pairs(twin.clone()),
                candidates,
                subdivision: 1,
                half: false,
            };
            traversal.program()
        })
    })
}

/// The program of a kernel for the GPU; `None` if the kernel has none.
fn twin(kernel: &impl PairKernel) -> Option<PairProgram> {
    PairProgram::of(kernel).ok().map(|(twin, _)| twin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_named_potential_is_left_out() {
        assert_eq!(potential_programs().count(), 2 * 5);
    }
}
