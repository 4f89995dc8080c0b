//! Fused traversal: a pair kernel evaluated for all neighbours, no list stored.
//!
//! Checks the caller's arrays and chooses between two ways: pairs evaluated once for both points
//! ([`symmetric`]), and pairs evaluated per target ([`evaluate`](super::evaluate)).
//!
//! # Order of the sums
//!
//! The ways add up contributions in different orders, so their results differ in the last
//! bits. Which one is taken follows from the kernel, the sets and the precision, never from
//! timings or threads; so a program that is run twice gives the same bits.
//!
//! # Errors
//!
//! Lengths and channels are checked against the kernel's types before anything runs. A kernel with
//! more than 16 output channels does not compile. When memory is refused in the middle, some
//! results are already written and others are not, which the error's documentation says.

use super::{
    evaluate::{Traversal, TraverseTask},
    fields::{Fields, Output, sorted_channels},
    filtered::FilteredTraversal,
    reduce::Results,
    symmetric::{self, OfBoth, Symmetric},
};
use crate::{
    candidates::{mode::Tag, walk::Walk},
    error::Error,
    pool::CpuBackend,
    sets::PairOfSets,
    simd::with_level,
};
use nearfield_grid::SharedMut;
use nearfield_pairs::{ListKind, PairKernel};
use tracing::field::Empty;

impl CpuBackend {
    /// Evaluates `kernel` for every target over its neighbours.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`](crate::ErrorKind::FieldLength),
    /// [`ErrorKind::FieldChannels`](crate::ErrorKind::FieldChannels),
    /// [`ErrorKind::OutputLength`](crate::ErrorKind::OutputLength) or
    /// [`ErrorKind::RadiiLength`](crate::ErrorKind::RadiiLength) when the arrays do not fit the
    /// sets and the kernel, and
    /// [`ErrorKind::RadiiPrecision`](crate::ErrorKind::RadiiPrecision) for radii that were sorted
    /// in another precision.
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); some results are then those of
    /// before.
    pub fn traverse<K: PairKernel>(
        &self,
        kernel: &K,
        sets: PairOfSets<'_>,
        fields: Fields<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        let targets = sets.targets.points();
        // Arrays have an element for every point, also where only a part was sorted.
        let given = sets.targets.given();
        fields.check::<K>(given, sets.sources.given())?;
        let (values, combine) = output.of_length(given)?;
        let span = tracing::debug_span!(
            "cpu.traverse",
            targets = targets.len(),
            kernel = std::any::type_name::<K>(),
            work = Empty,
        )
        .entered();
        let mut walk = Walk::new(sets, Tag::Slot, ListKind::Full)?;
        walk.record_work(&span);
        let values = SharedMut::new(values);
        let results = Results {
            values: &values,
            combine,
        };
        if !walk.filter.is_none() {
            return FilteredTraversal::new(kernel, walk, fields, results).run(self);
        }
        // A condition that is a constant, so that the loops are not compiled for other kernels.
        if K::SYMMETRIC
            && let Some(task) = symmetric_task(&walk)?
        {
            walk.ahead = true;
            let channels = OfBoth::new(self, sets.targets, fields)?;
            let symmetric = Symmetric {
                kernel,
                walk,
                channels: &channels,
                results,
            };
            symmetric.run(self, task)?;
            self.keep_channels(channels.sorted);
            return Ok(());
        }
        let mut channels = Vec::new();
        sorted_channels(self, sets.sources, fields.sources, &mut channels)?;
        self.run_traversal(&Traversal {
            kernel,
            walk,
            fields: fields.targets,
            channels: &channels,
            results,
        })?;
        self.keep_channels(channels);
        Ok(())
    }

    /// Evaluates the kernel per target, in either precision.
    fn run_traversal<K: PairKernel>(&self, traversal: &Traversal<'_, K>) -> Result<(), Error> {
        let (level, targets) = (self.level(), traversal.walk.targets.points().len());
        self.for_each_task(targets, &|slots, scratch| {
            let task = TraverseTask {
                traversal,
                slots,
                scratch,
            };
            with_level(level, task);
        })
    }
}

/// Returns the targets of a task if the sets and the domain let the pairs of a symmetric kernel be
/// evaluated once. All candidates of a group are then held at once, so it is not done where they
/// are too many.
fn symmetric_task(walk: &Walk<'_>) -> Result<Option<usize>, Error> {
    let open = !walk.sources.lattice().effective_domain().is_periodic();
    // In double precision the radii of targets are bounds of the filter, and pairs of points with
    // radii of their own are evaluated from either side.
    let (double, radii) = (walk.double().is_some(), &walk.radii);
    let uniform =
        double && !radii.are_exact() || radii.sources.is_none() && radii.targets.is_none();
    let whole = open || walk.share.is_none();
    // Sorted by their radii, points of different levels have no order that both sides know.
    let in_cells = !walk.sources.has_levels();
    let symmetric = in_cells && (uniform || open && !double && radii.are_symmetric());
    if symmetric && walk.same_set && whole && !walk.may_be_long() {
        return symmetric::task_size(walk);
    }
    Ok(None)
}
