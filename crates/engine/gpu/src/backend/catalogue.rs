//! The list of the engine's programs, for checks and for caches that are filled in advance.
//!
//! A program is text and macros, so the list is made without a compiler and without a device.
//! Programs of kernels that a user writes are not in it: they are compiled when they first run.

use super::{all_pairs::all_pairs_programs, systems::systems_programs};
use crate::{
    launch::{AscendKernels, ColumnPairsKernel, GridKernels},
    program::Program,
    traversal::{Candidates, Filtering, PairProgram, Strategy, Traversal, Work},
};
use nearfield_grid::Precision;
use nearfield_pairs::{
    ChargeField, ChargePotential, Coefficients, CutoffCoulomb, Forces, Interactions, LennardJones,
    ListKind, Mixing, PairKernel, PlainLennardJones, PowerLaw, Screening, SphDensity, SphForce,
    Sum, Truncation, WendlandC2,
};

/// The engine's programs, for checks and for caches that are filled in advance.
///
/// Traversals are compiled for what they are asked to do; here are those of counting, of lists and
/// of the named pair kernels, by every strategy. Sums over all pairs come in every precision and
/// arithmetic.
pub fn programs() -> Vec<Program> {
    let whole = crate::launch::sources::ALL.iter().map(Program::from);
    whole
        .chain(traversal_programs())
        .chain(all_pairs_programs())
        .chain(systems_programs())
        .collect()
}

/// How `flat` finds candidates, and cells to a radius where programs depend on them. The first two
/// are those of all strategies.
const CANDIDATES: [(Candidates, u32); 10] = [
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

/// Returns true if lists hold each pair once.
fn is_half(work: &Work) -> bool {
    matches!(
        work,
        Work::Lists(ListKind::Half) | Work::Geometry(ListKind::Half)
    )
}

/// The program of a traversal.
fn traversal(strategy: Strategy, work: Work, candidates: Candidates, subdivision: u32) -> Program {
    let half = is_half(&work);
    let traversal = Traversal {
        strategy,
        work,
        candidates,
        subdivision,
        half,
        double: false,
        by_warps: false,
        filtering: Filtering::default(),
    };
    traversal.program()
}

/// Programs that give every target a warp.
fn warp_programs(works: &[Work]) -> impl Iterator<Item = Program> {
    let each = CANDIDATES
        .iter()
        .flat_map(|kind| works.iter().map(move |work| (kind, work)));
    each.map(|(&(candidates, subdivision), work)| {
        let traversal = Traversal {
            strategy: Strategy::Flat,
            work: work.clone(),
            candidates,
            subdivision,
            half: is_half(work),
            double: false,
            by_warps: true,
            filtering: Filtering::default(),
        };
        traversal.program()
    })
}

/// Programs of traversals for every strategy: counting, lists, named pair kernels.
fn traversal_programs() -> Vec<Program> {
    let kernel = WendlandC2::with_support(1.0);
    let force = SphForce {
        kernel,
        h: 0.5,
        alpha_c: 0.1,
    };
    let pairs = [of_kernel(&SphDensity { kernel }), of_kernel(&force)];
    let lists = [ListKind::Full, ListKind::Half].map(Work::Lists);
    let works: Vec<Work> = (pairs.into_iter().flatten())
        .chain(lists)
        .chain([Work::Count])
        .collect();
    let mut programs = Vec::new();
    for strategy in Strategy::ALL {
        // Of the two that launch children, one program serves both.
        if strategy == Strategy::ChildAggregated {
            continue;
        }
        let kinds = match strategy {
            Strategy::Flat => CANDIDATES.len(),
            _ => 2,
        };
        for &(candidates, subdivision) in &CANDIDATES[..kinds] {
            let of_work = |work: &Work| traversal(strategy, work.clone(), candidates, subdivision);
            programs.extend(works.iter().map(of_work));
        }
    }
    programs.extend(warp_programs(&works));
    programs.extend(geometry_programs());
    programs.extend(filter_programs());
    programs.extend(charge_programs());
    programs.extend(potential_programs());
    programs.extend(double_programs(&works));
    programs.extend(listed_programs(&force));
    programs
}

/// Those for positions in double precision: sorting, and every job by one of the ways that compile
/// the same texts.
fn double_programs(works: &[Work]) -> Vec<Program> {
    let geometry = Work::Geometry(ListKind::Full);
    let of = |work: &Work, candidates, by_warps| {
        let traversal = Traversal {
            strategy: Strategy::Flat,
            work: work.clone(),
            candidates,
            subdivision: 1,
            half: is_half(work),
            double: true,
            by_warps,
            filtering: Filtering::default(),
        };
        traversal.program()
    };
    let double = Precision::Double;
    let mut programs = vec![
        GridKernels::program(double),
        AscendKernels::program(double),
        ColumnPairsKernel::program(double),
    ];
    let all = works.iter().chain([&geometry]);
    programs.extend(
        all.clone()
            .map(|work| of(work, Candidates::Periodic, false)),
    );
    let lists = Work::Lists(ListKind::Full);
    for candidates in [Candidates::Rows, Candidates::OneSet, Candidates::Tilted] {
        programs.extend([&lists, &works[0]].map(|work| of(work, candidates, false)));
    }
    programs.extend(
        all.take(1)
            .chain([&lists, &geometry])
            .map(|work| of(work, Candidates::Periodic, true)),
    );
    let children = Traversal {
        strategy: Strategy::ChildPerCell,
        work: lists,
        candidates: Candidates::Rows,
        subdivision: 1,
        half: false,
        double: true,
        by_warps: false,
        filtering: Filtering::default(),
    };
    programs.push(children.program());
    programs
}

/// Pair kernels over stored lists, for every way to find images, by threads and by warps; some of
/// them in double precision, and with filters. These change the text of the loop but not how it is
/// shared by threads, so one program of each will do.
fn listed_programs(force: &impl PairKernel) -> Vec<Program> {
    let none = Filtering::default();
    let all = Filtering {
        named: true,
        radii: true,
        nearest: true,
    };
    let ways = [
        (Candidates::ListedOpen, false, none),
        (Candidates::ListedNearest, false, none),
        (Candidates::ListedTilted, false, none),
        (Candidates::ListedImages, false, none),
        (Candidates::ListedImages, false, all),
        (Candidates::ListedOpen, true, none),
        (Candidates::ListedNearest, true, none),
        (Candidates::ListedImages, true, all),
    ];
    let Some(work) = of_kernel(force) else {
        return Vec::new();
    };
    let mut programs = Vec::new();
    for (candidates, double, filtering) in ways {
        let plain = !double && filtering == none;
        let shared: &[bool] = if plain { &[false, true] } else { &[false] };
        for &by_warps in shared {
            let traversal = Traversal {
                strategy: Strategy::Flat,
                work: work.clone(),
                candidates,
                subdivision: 1,
                half: false,
                double,
                by_warps,
                filtering,
            };
            programs.push(traversal.program());
        }
    }
    programs
}

/// Those of lists with the geometry of their pairs: from masks, by warps, and cell by cell.
fn geometry_programs() -> Vec<Program> {
    let works = [ListKind::Full, ListKind::Half].map(Work::Geometry);
    let mut programs: Vec<Program> = warp_programs(&works).collect();
    for work in &works {
        // Masks need a dense table; without one warps write the lists.
        let masked = CANDIDATES.iter().filter(|kind| kind.0 != Candidates::Rows);
        programs.extend(masked.map(|&(candidates, subdivision)| {
            traversal(Strategy::Flat, work.clone(), candidates, subdivision)
        }));
        programs.extend(CANDIDATES[..2].iter().map(|&(candidates, subdivision)| {
            traversal(
                Strategy::ChildPerCell,
                work.clone(),
                candidates,
                subdivision,
            )
        }));
    }
    programs
}

/// Those that leave out pairs within the radius, one for each way that kernels differ: a job by
/// threads or by warps, in each kind of table, by data of points or by radii. In double precision
/// all jobs are filtered in one place, so a few programs have every text: one that collects bits,
/// one that writes pairs, and one that sums.
fn filter_programs() -> impl Iterator<Item = Program> {
    let named = Filtering {
        named: true,
        ..Filtering::default()
    };
    let radii = Filtering {
        radii: true,
        ..Filtering::default()
    };
    let nearest = Filtering {
        nearest: true,
        ..Filtering::default()
    };
    let full = ListKind::Full;
    let kernel = of_kernel(&SphDensity::with_support(1.0)).unwrap_or(Work::Count);
    let kinds = [
        (Work::Count, Candidates::Rows, false, named),
        (Work::Count, Candidates::OneSet, false, radii),
        (Work::Lists(full), Candidates::Periodic, false, named),
        (Work::Lists(full), Candidates::Tilted, false, radii),
        (Work::Lists(ListKind::Half), Candidates::Rows, true, named),
        (Work::Geometry(full), Candidates::Periodic, false, radii),
        (Work::Geometry(full), Candidates::Open, true, named),
        (kernel.clone(), Candidates::Open, false, radii),
        (Work::Lists(full), Candidates::Rows, false, radii),
        (Work::Geometry(full), Candidates::Open, true, radii),
        (kernel.clone(), Candidates::Tilted, true, radii),
        (kernel.clone(), Candidates::Periodic, true, named),
        (Work::Geometry(full), Candidates::Periodic, false, nearest),
        (Work::Count, Candidates::Open, true, nearest),
    ];
    let both = Filtering {
        nearest: true,
        ..named
    };
    let in_double = [
        (Work::Lists(full), Candidates::Periodic, false, named),
        (Work::Geometry(full), Candidates::Open, true, nearest),
        (Work::Count, Candidates::OneSet, false, radii),
        (kernel, Candidates::Tilted, false, both),
    ];
    let kinds = kinds.map(|kind| (kind, false));
    (kinds.into_iter())
        .chain(in_double.map(|kind| (kind, true)))
        .map(|((work, candidates, by_warps, filtering), double)| {
            let traversal = Traversal {
                strategy: Strategy::Flat,
                half: is_half(&work),
                work,
                candidates,
                subdivision: 1,
                double,
                by_warps,
                filtering,
            };
            traversal.program()
        })
}

/// Those of charges within a cut-off, which have targets and sources of their own, by the strategy
/// that is used when none is asked for.
fn charge_programs() -> impl Iterator<Item = Program> {
    let works = [
        of_kernel(&ChargePotential::default()),
        of_kernel(&ChargeField::default()),
    ];
    let works = works.into_iter().flatten();
    works.map(|work| traversal(Strategy::Flat, work, Candidates::Open, 1))
}

/// Those of the potentials of atoms, one set in a periodic box, by the same strategy.
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
    let works = [
        plain.and_then(|plain| of_kernel(&Interactions(plain))),
        (table.as_ref()).and_then(|table| of_kernel(&Interactions(table))),
        (table.as_ref()).and_then(|table| of_kernel(&Interactions(Sum(table, charges)))),
        power.and_then(|power| of_kernel(&Interactions(power))),
        power.and_then(|power| of_kernel(&Forces(power))),
    ];
    let works = works.into_iter().flatten();
    works.map(|work| traversal(Strategy::Flat, work, Candidates::Periodic, 1))
}

/// The job of evaluating a kernel; `None` if the kernel has no CUDA text.
fn of_kernel(kernel: &impl PairKernel) -> Option<Work> {
    PairProgram::of(kernel)
        .ok()
        .map(|(program, _)| Work::Pairs(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A constructor that refused its numbers would drop a program in silence.
    #[test]
    fn no_named_potential_is_left_out() {
        assert_eq!(potential_programs().count(), 5);
    }
}
