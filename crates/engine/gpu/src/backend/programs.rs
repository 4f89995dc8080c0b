//! The traversal programs: which text and which macros make one, and which are loaded already.

use super::{
    launch::{Children, Flat, Halves, Tasks, TraversalKernels},
    lists::ListKind,
    pairs::{PairProgram, Symmetric},
    strategy::Strategy,
};
use crate::{Error, Modules, Program};
use nearfield_kernels::Source;
use nearfield_pairs::{
    ChargeField, ChargePotential, Coefficients, CutoffCoulomb, Forces, Interactions, LennardJones,
    Mixing, PairKernel, PlainLennardJones, PowerLaw, Reduce, Screening, SphDensity, SphForce, Sum,
    Truncation, WendlandC2,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What a traversal does with pairs; the numbers are those of `NF_WORK` in work.cuh.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Count,
    Lists(ListKind),
    Pairs(PairProgram),
}

/// Whether the domain is open and tables are dense, so that candidates are found in a simpler way;
/// the numbers are those of `NF_OPEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Open {
    No,
    OneSet,
    TwoSets,
}

/// What tells one traversal program from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Traversal {
    pub(crate) strategy: Strategy,
    pub(crate) work: Work,
    pub(crate) open: Open,
    /// Cells to a radius.
    pub(crate) subdivision: u32,
    /// Half lists, also when they are only counted.
    pub(crate) half: bool,
}

impl Traversal {
    /// Its text.
    pub(crate) fn program(&self) -> Program {
        let unrolled = self.strategy == Strategy::Flat && self.open != Open::No;
        let program = Program::from(self.source())
            .define("NF_OPEN", self.open as u32)
            .define("NF_K", if unrolled { self.subdivision } else { 1 })
            .define("NF_HALF", self.half);
        let work = match &self.work {
            Work::Count => 0,
            Work::Lists(_) => 1,
            Work::Pairs(_) => 2,
        };
        let program = program.define("NF_WORK", work);
        let Work::Pairs(pairs) = &self.work else {
            return program;
        };
        let reduce = match pairs.reduce {
            Reduce::Sum => 0,
            Reduce::Min => 1,
            Reduce::Max => 2,
        };
        let program = program
            .define("NF_TARGETS", pairs.targets)
            .define("NF_SOURCES", pairs.sources)
            .define("NF_OUTPUTS", pairs.outputs)
            .define("NF_REDUCE", reduce)
            .user_text(pairs.name.as_ref(), pairs.user_text());
        match (self.strategy, pairs.symmetric) {
            (Strategy::HalfTiles, Symmetric::Turned(channels)) => program
                .define("NF_SYMMETRIC", 2)
                .define("NF_ANTISYMMETRIC", format!("{channels}u")),
            (Strategy::HalfTiles, _) => program.define("NF_SYMMETRIC", 1),
            _ => program,
        }
    }

    fn source(&self) -> &'static Source {
        match self.strategy {
            Strategy::Flat | Strategy::Auto => &nearfield_kernels::FLAT,
            Strategy::CellTasks => &nearfield_kernels::TASKS,
            Strategy::HalfTiles => &nearfield_kernels::HALF,
            Strategy::ChildPerCell | Strategy::ChildAggregated => &nearfield_kernels::CHILDREN,
        }
    }

    /// Channels of a result.
    fn outputs(&self) -> usize {
        match &self.work {
            Work::Pairs(pairs) => pairs.outputs,
            Work::Count | Work::Lists(_) => 0,
        }
    }

    fn load(&self, modules: &Modules) -> Result<TraversalKernels, Error> {
        let module = modules.load(&self.program())?;
        let pairs = matches!(self.work, Work::Pairs(_));
        Ok(match self.strategy {
            Strategy::Flat | Strategy::Auto => {
                let lists = matches!(self.work, Work::Lists(_));
                TraversalKernels::Flat(Flat::load(&module, lists, pairs)?)
            }
            Strategy::CellTasks => TraversalKernels::Tasks(Tasks::load(&module, pairs)?),
            Strategy::HalfTiles => TraversalKernels::Halves(Halves::load(&module, self.outputs())?),
            Strategy::ChildPerCell | Strategy::ChildAggregated => {
                let aggregated = self.strategy == Strategy::ChildAggregated;
                TraversalKernels::Children(Children::load(&module, aggregated, pairs)?)
            }
        })
    }
}

/// Programs of traversals for every strategy: counting, lists, named pair kernels.
pub(crate) fn traversal_programs() -> Vec<Program> {
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
        let flat = strategy == Strategy::Flat;
        for open in [Open::No, Open::OneSet, Open::TwoSets] {
            if open == Open::TwoSets && !flat {
                continue;
            }
            let unrolled = flat && open != Open::No;
            for subdivision in if unrolled { 1..=3 } else { 1..=1 } {
                let works = works.iter();
                let found = |work: &&Work| match work {
                    Work::Pairs(pairs) => strategy != Strategy::HalfTiles || pairs.halves(),
                    _ if strategy == Strategy::HalfTiles => false,
                    Work::Lists(_) => open != Open::TwoSets,
                    Work::Count => true,
                };
                programs.extend(works.filter(found).map(|work| {
                    let half = *work == Work::Lists(ListKind::Half);
                    let traversal = Traversal {
                        strategy,
                        work: work.clone(),
                        open,
                        subdivision,
                        half,
                    };
                    traversal.program()
                }));
            }
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
    twins.flat_map(|(twin, _)| {
        (1..=3).map(move |subdivision| {
            let traversal = Traversal {
                strategy: Strategy::Flat,
                work: Work::Pairs(twin.clone()),
                open: Open::TwoSets,
                subdivision,
                half: false,
            };
            traversal.program()
        })
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
        [Strategy::Flat, Strategy::HalfTiles].map(|strategy| {
            let traversal = Traversal {
                strategy,
                work: Work::Pairs(twin.clone()),
                open: Open::No,
                subdivision: 1,
                half: false,
            };
            traversal.program()
        })
    })
}

/// What the GPU evaluates for a kernel; `None` where it cannot.
fn twin(kernel: &impl PairKernel) -> Option<PairProgram> {
    PairProgram::of(kernel).ok().map(|(twin, _)| twin)
}

/// The traversal programs of a context that were loaded, so that a step hashes no program text.
#[derive(Debug, Default)]
pub(crate) struct Traversals {
    loaded: Mutex<HashMap<Traversal, Arc<TraversalKernels>>>,
}

impl Traversals {
    pub(crate) fn get(
        &self,
        modules: &Modules,
        traversal: &Traversal,
    ) -> Result<Arc<TraversalKernels>, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = loaded.get(traversal) {
            return Ok(kernels.clone());
        }
        let kernels = Arc::new(traversal.load(modules)?);
        loaded.insert(traversal.clone(), kernels.clone());
        Ok(kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_named_potential_is_left_out() {
        assert_eq!(potential_programs().count(), 2 * 5);
    }
}
