//! The traversal programs: the source and the macros that make each, and those loaded already.
//!
//! `NF_WORK` chooses between counting, lists and a pair kernel, `NF_OPEN` the walk, `NF_K` the
//! cells to a radius that loops are unrolled for, and `NF_HALF` half lists. Pair kernels add the
//! number of their channels and their reduction.
//! The numbers behind these names are in `crate::constants`.
//!
//! | macro | says | programs |
//! | --- | --- | --- |
//! | `NF_WORK` | count, list, or evaluate a kernel | all |
//! | `NF_OPEN` | how candidates are found ([`Candidates`]) | all |
//! | `NF_K` | cells to a radius along y and z | `flat` in dense tables |
//! | `NF_HALF` | half lists | all |
//! | `NF_WARPS` | a warp per target | `flat` |
//! | `NF_GEOMETRY` | lists with the geometry of their pairs; not defined without | lists |
//! | `NF_DOUBLE` | positions in double precision; not defined without | `flat` |
//! | `NF_FILTERS` | pairs within the radius that are left out ([`Filtering`]); not defined without | `flat` |
//! | `NF_TARGETS`, `NF_SOURCES`, `NF_OUTPUTS` | channels | pair kernels |
//! | `NF_REDUCE` | sum, minimum or maximum | pair kernels |
//!
//! Lists with the geometry of their pairs are programs of their own, and not lists that look at
//! run time whether geometry is wanted: registers and shared memory for it would halve the number
//! of warps that plain lists have at work. All of it stands behind `NF_GEOMETRY` or in arguments
//! that plain lists do not use, so these are the same machine code with it and without it. Which of
//! the quantities are wanted is known at run time only: there are 63 choices, and a null pointer
//! costs a comparison per entry.
//!
//! Loaded programs are kept in a table by [`Traversal`], which is hashed at every step: its hash
//! takes the length of a kernel's text and not the text. Equality compares the texts, so two
//! kernels are never taken for each other.

use super::{pair_program::PairProgram, strategy::Strategy};
use crate::constants;
use crate::{
    error::Error,
    launch::{Children, Flat, FlatKernels, OverLists, TraversalKernels, Traverse},
    program::{Modules, Program},
};
use nearfield_pairs::{ListKind, Reduce};
use nearfield_shared::Source;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Cells to a radius up to which lists are made from masks: with 3 a target's masks would take as
/// much memory as a list of 49 neighbours.
const MAX_MASKED_SUBDIVISION: u32 = 2;
/// The same for lists with the geometry of their pairs, beside which masks are small.
const MAX_MASKED_WITH_GEOMETRY: u32 = 3;

/// Job of a traversal: `NF_WORK`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// Neighbours are counted.
    Count,
    /// Lists are written; full and half lists are one program each.
    Lists(ListKind),
    /// Lists are written with the geometry of their pairs.
    Geometry(ListKind),
    /// A pair kernel is evaluated.
    Pairs(PairProgram),
}

/// How candidates are found: `NF_OPEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Candidates {
    /// By the table of neighbour rows.
    ///
    /// Serves everything: sparse tables, and boxes that the radius reaches across.
    Rows = constants::GENERAL as isize,
    /// In the padded table of one set in an open domain.
    ///
    /// Targets are the sources, and empty cells around the box take the place of bounds checks.
    OneSet = constants::ONE_SET as isize,
    /// Around each target in a dense table of an open domain.
    Open = constants::AROUND_OPEN as isize,
    /// Around each target in a dense table of a straight periodic box.
    Periodic = constants::AROUND_PERIODIC as isize,
    /// Around each target in a dense table of a tilted box.
    Tilted = constants::AROUND_TILTED as isize,
    /// By stored lists, in an open domain.
    ListedOpen = constants::LISTED_OPEN as isize,
    /// By stored lists, in a straight box so wide that only nearest images are within reach.
    ListedNearest = constants::LISTED_NEAREST as isize,
    /// By stored lists, in such a tilted box.
    ListedTilted = constants::LISTED_TILTED as isize,
    /// By stored lists, in any box.
    ListedImages = constants::LISTED_IMAGES as isize,
}

impl Candidates {
    /// Returns true if stored lists name the candidates.
    fn is_listed(self) -> bool {
        self as isize >= Self::ListedOpen as isize
    }
}

/// Which pairs within the radius a program leaves out: `NF_FILTERS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Filtering {
    /// By data of both points: cut-offs of types, exclusions.
    pub(crate) named: bool,
    /// By radii of single points.
    pub(crate) radii: bool,
    /// All but the nearest.
    pub(crate) nearest: bool,
}

impl Filtering {
    /// The number that programs are compiled for; 0 for none.
    pub(crate) fn code(self) -> u32 {
        let of = |has: bool, code: u32| if has { code } else { 0 };
        of(self.named, constants::NAMED)
            + of(self.radii, constants::RADII)
            + of(self.nearest, constants::NEAREST)
    }
}

/// Key of a traversal program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Traversal {
    /// Which source is compiled.
    pub(crate) strategy: Strategy,
    /// The use of the pairs that are found.
    pub(crate) work: Work,
    /// How candidates are found.
    pub(crate) candidates: Candidates,
    /// Cells to a radius.
    pub(crate) subdivision: u32,
    /// Half lists, also when they are only counted.
    pub(crate) half: bool,
    /// Positions are in double precision.
    pub(crate) double: bool,
    /// A warp and not a thread per target, with strategy `flat`.
    ///
    /// For few targets, which do not fill a device by threads.
    pub(crate) by_warps: bool,
    /// Pairs that are left out, with strategy `flat`.
    pub(crate) filtering: Filtering,
}

impl Traversal {
    /// The program: its source with the macros of this traversal and the user's kernel.
    pub(crate) fn program(&self) -> Program {
        let unrolled = self.strategy == Strategy::Flat && self.candidates != Candidates::Rows;
        let program = Program::from(self.source())
            .define("NF_OPEN", self.candidates as u32)
            .define("NF_K", if unrolled { self.subdivision } else { 1 })
            .define("NF_HALF", self.half)
            .define("NF_WARPS", self.by_warps);
        let program = if self.double {
            program.define("NF_DOUBLE", 1)
        } else {
            program
        };
        let work = match &self.work {
            Work::Count => constants::COUNT,
            Work::Lists(_) | Work::Geometry(_) => constants::LISTS,
            Work::Pairs(_) => constants::PAIRS,
        };
        let mut program = program.define("NF_WORK", work);
        if self.filtering != Filtering::default() {
            program = program.define("NF_FILTERS", self.filtering.code());
        }
        if let Work::Geometry(_) = self.work {
            return program.define("NF_GEOMETRY", 1);
        }
        let Work::Pairs(pairs) = &self.work else {
            return program;
        };
        let reduce = match pairs.reduce {
            Reduce::Sum => constants::SUM,
            Reduce::Min => constants::MIN,
            Reduce::Max => constants::MAX,
        };
        program
            .define("NF_TARGETS", pairs.targets)
            .define("NF_SOURCES", pairs.sources)
            .define("NF_OUTPUTS", pairs.outputs)
            .define("NF_REDUCE", reduce)
            .user_text(pairs.name.as_ref(), pairs.user_text())
            .translated(pairs.translated.clone())
    }

    /// Returns true if lists are made from masks, which take a word for each of (2K + 1)² rows.
    pub(crate) fn has_masks(&self) -> bool {
        let around = self.candidates != Candidates::Rows && self.strategy == Strategy::Flat;
        let max = match self.work {
            Work::Geometry(_) => MAX_MASKED_WITH_GEOMETRY,
            _ => MAX_MASKED_SUBDIVISION,
        };
        around && !self.by_warps && self.subdivision <= max
    }

    /// Returns true if points that have left the box are walked by kernels of their own:
    /// `NF_APART`.
    fn is_apart(&self) -> bool {
        let periodic = matches!(self.candidates, Candidates::Periodic | Candidates::Tilted);
        periodic && !self.by_warps && !self.double
    }

    /// Words of masks of a target: one per row, and one that says whether they are complete.
    pub(crate) fn mask_words(&self) -> usize {
        let rows = 2 * self.subdivision as usize + 1;
        rows * rows + 1
    }

    /// The CUDA source of the strategy, or that of stored lists, which have no strategies.
    fn source(&self) -> &'static Source {
        match self.strategy {
            _ if self.candidates.is_listed() => &crate::launch::sources::STORED,
            Strategy::Flat | Strategy::Auto => &crate::launch::sources::FLAT,
            Strategy::ChildPerCell | Strategy::ChildAggregated => &crate::launch::sources::CHILDREN,
        }
    }

    /// Compiles the program, or takes it from the cache, and looks up its kernels.
    fn load(&self, modules: &Modules) -> Result<TraversalKernels, Error> {
        let module = modules.load(&self.program())?;
        let pairs = matches!(self.work, Work::Pairs(_));
        let traverse = match self.strategy {
            _ if self.candidates.is_listed() => {
                Traverse::OverLists(OverLists::load(&module, self.by_warps)?)
            }
            Strategy::Flat | Strategy::Auto => {
                let geometry = matches!(self.work, Work::Geometry(_));
                let lists = geometry || matches!(self.work, Work::Lists(_));
                let kernels = FlatKernels {
                    lists,
                    geometry,
                    masks: lists && self.has_masks(),
                    apart: self.is_apart(),
                    warps: self.by_warps,
                    wide: self.filtering.radii && !self.double,
                };
                Traverse::Flat(Flat::load(&module, kernels)?)
            }
            Strategy::ChildPerCell | Strategy::ChildAggregated => {
                let aggregated = self.strategy == Strategy::ChildAggregated;
                Traverse::Children(Children::load(&module, aggregated)?)
            }
        };
        TraversalKernels::load(&module, traverse, pairs)
    }
}

impl PairProgram {
    /// The whole program that one thread per target of one set in an open domain runs, for checks
    /// that need no GPU.
    pub fn program(&self) -> Program {
        let traversal = Traversal {
            strategy: Strategy::Flat,
            work: Work::Pairs(self.clone()),
            candidates: Candidates::OneSet,
            subdivision: 1,
            half: false,
            double: false,
            by_warps: false,
            filtering: Filtering::default(),
        };
        traversal.program()
    }
}

/// The traversal programs of a context that were loaded, so that a step hashes no program text.
#[derive(Debug, Default)]
pub(crate) struct Traversals {
    /// Not locked while a program is loaded: [`Modules`] sees to it that no two threads compile one
    /// twice, and others are compiled meanwhile.
    loaded: Mutex<HashMap<Traversal, Arc<TraversalKernels>>>,
}

impl Traversals {
    /// The kernels of a traversal, loaded when they are first asked for.
    ///
    /// # Errors
    /// The errors of [`Modules::load`] and of looking up kernels.
    pub(crate) fn get(
        &self,
        modules: &Modules,
        traversal: &Traversal,
    ) -> Result<Arc<TraversalKernels>, Error> {
        let loaded = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = loaded().get(traversal) {
            return Ok(kernels.clone());
        }
        let kernels = Arc::new(traversal.load(modules)?);
        let mut loaded = loaded();
        Ok(loaded.entry(traversal.clone()).or_insert(kernels).clone())
    }
}
