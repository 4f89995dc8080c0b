//! Fused traversal: a pair kernel evaluated for all neighbours, no list stored.
//!
//! This module checks what the caller hands in and deals out the work; [`crate::evaluate`] holds the
//! loops over the candidates.

use crate::{
    CpuBackend, Error, PairOfSets,
    aligned::Aligned,
    double::TraverseInDouble,
    evaluate::{Batches, Evaluate, MAX_OUTPUTS, Results},
    group::{Scratch, Walk},
    simd::{self, LANES, Simd, Tag, Task, with_level},
    symmetric::{self, Symmetric},
};
use nearfield_grid::{
    Grid, PADDING, SharedMut,
    memory::{Shortage, make_room},
    parallel::PoolLoops,
};
use nearfield_pairs::{Channels, Field, ListKind, PairKernel};
use rayon::prelude::*;
use std::ops::Range;
use tracing::field::Empty;

/// Per-point values a kernel reads, in the caller's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// Fields of the target set.
    pub targets: &'a [Field<'a>],
    /// Fields of the source set.
    pub sources: &'a [Field<'a>],
}

/// Where results go: one value per target in the caller's order.
#[derive(Debug)]
pub enum Output<'a, T> {
    /// Overwrite what is there.
    Write(&'a mut [T]),
    /// Combine with what is there, as the kernel's reduction says.
    Combine(&'a mut [T]),
}

impl Fields<'_> {
    /// Checks that there is a value per channel of `K` for so many targets and sources.
    ///
    /// # Errors
    /// [`Error::FieldLength`] and [`Error::FieldChannels`].
    pub fn check<K: PairKernel>(&self, targets: usize, sources: usize) -> Result<(), Error> {
        check_fields("target", self.targets, targets, K::Target::COUNT)?;
        check_fields("source", self.sources, sources, K::Source::COUNT)
    }
}

impl CpuBackend {
    /// Evaluates `kernel` for every target over its neighbours.
    ///
    /// # Errors
    /// [`Error::FieldLength`], [`Error::FieldChannels`], [`Error::OutputLength`] or
    /// [`Error::RadiiLength`] when the arrays do not fit the sets and the kernel, and
    /// [`Error::RadiiInDouble`] for radii of points in double precision. [`Error::OutOfMemory`]; some
    /// results are then those of before.
    pub fn traverse<K: PairKernel>(
        &self,
        kernel: &K,
        sets: PairOfSets<'_>,
        fields: Fields<'_>,
        output: Output<'_, K::Output>,
    ) -> Result<(), Error> {
        const {
            assert!(
                K::Output::COUNT <= MAX_OUTPUTS,
                "a kernel has at most 16 outputs"
            )
        };
        let targets = sets.targets.points();
        // Arrays go with all points, of which a part may have been sorted.
        let given = sets.targets.given();
        fields.check::<K>(given, sets.sources.given())?;
        let (values, combine) = match output {
            Output::Write(values) => (values, false),
            Output::Combine(values) => (values, true),
        };
        if values.len() != given {
            return Err(Error::OutputLength {
                found: values.len(),
                expected: given,
            });
        }
        let span = tracing::debug_span!(
            "cpu.traverse",
            targets = targets.len(),
            kernel = std::any::type_name::<K>(),
            work = Empty,
        )
        .entered();
        let mut walk = self.walk(sets, Tag::Slot, ListKind::Full)?;
        walk.tell_work(&span);
        let mut channels = Vec::new();
        sorted_channels(self, sets.sources, fields.sources, &mut channels)?;
        let values = SharedMut::new(values);
        let results = Results {
            values: &values,
            combine,
        };
        if let Some(task) = symmetric_task::<K>(&walk)? {
            walk.ahead = true;
            sorted_channels(self, sets.targets, fields.targets, &mut channels)?;
            let symmetric = Symmetric {
                kernel,
                walk,
                channels: &channels,
                results,
            };
            symmetric.run(self, task)?;
            self.keep_channels(channels);
            return Ok(());
        }
        let traversal = Traversal {
            kernel,
            walk,
            fields: fields.targets,
            channels: &channels,
            results,
        };
        let (level, traversal) = (self.level(), &traversal);
        match traversal.walk.double() {
            None => self.for_each_task(targets.len(), &|slots, scratch| {
                let task = TraverseTask {
                    traversal,
                    slots,
                    scratch,
                };
                with_level(level, task);
            })?,
            Some(_) => self.for_each_task(targets.len(), &|slots, scratch| {
                let task = TraverseInDouble {
                    traversal,
                    slots,
                    scratch,
                };
                with_level(level, task);
            })?,
        }
        self.keep_channels(channels);
        Ok(())
    }
}

/// Targets of a task, when the kernel and the sets let pairs be evaluated once. Candidates of a group
/// are then held all at once, so it is not done where they are too many.
fn symmetric_task<K: PairKernel>(walk: &Walk<'_>) -> Result<Option<usize>, Error> {
    let open = !walk.sources.lattice().effective_domain().is_periodic();
    let uniform = walk.radii.sources.is_none() && walk.radii.targets.is_none();
    let single = walk.double().is_none() && (open || walk.share.is_none());
    let symmetric = K::SYMMETRIC && (uniform || open && walk.radii.are_symmetric());
    if symmetric && walk.same_set && single && !walk.may_be_long() {
        return symmetric::task_size(walk);
    }
    Ok(None)
}

/// What all tasks of a traversal share.
pub(crate) struct Traversal<'a, K: PairKernel> {
    pub(crate) kernel: &'a K,
    pub(crate) walk: Walk<'a>,
    /// Target fields.
    pub(crate) fields: &'a [Field<'a>],
    /// Source channels in the order of the sorted points.
    pub(crate) channels: &'a [Vec<f32>],
    pub(crate) results: Results<'a, K::Output>,
}

/// A range of targets.
struct TraverseTask<'a, K: PairKernel> {
    traversal: &'a Traversal<'a, K>,
    slots: Range<usize>,
    scratch: &'a mut Scratch,
}

/// Room for `count` channels of `stride` values in `array`.
#[inline(always)]
pub(crate) fn room(
    array: &mut Aligned<f32>,
    count: usize,
    stride: usize,
) -> Result<simd::Channels, Shortage> {
    array.grow(count * stride)?;
    Ok(simd::Channels {
        data: array.as_mut_ptr(),
        stride,
        count,
    })
}

impl<K: PairKernel> Task for TraverseTask<'_, K> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let shared = self.traversal;
        let mut gathered = std::mem::take(&mut self.scratch.gathered);
        let mut packed = std::mem::take(&mut self.scratch.packed);
        let mut batches = Batches::default();
        let mut groups = shared.walk.groups(self.slots);
        // SAFETY: the caller's promise.
        while let Some((group, mode)) = unsafe { groups.next::<S>(self.scratch) } {
            let candidates = &self.scratch.candidates;
            let stride = (candidates.len() + LANES).next_multiple_of(LANES);
            let own = if K::PACKED { 4 + K::Source::COUNT } else { 0 };
            let made = room(&mut gathered, K::Source::COUNT, stride)
                .and_then(|gathered| Ok((gathered, room(&mut packed, own, stride)?)));
            let (gathered, packed) = match made {
                Ok(made) => made,
                Err(shortage) => {
                    self.scratch.failed = Some(shortage);
                    break;
                }
            };
            let evaluate = Evaluate {
                shared,
                group: &group,
                candidates,
                mode,
                gathered,
                packed,
                batches: &mut batches,
            };
            // SAFETY: the caller's promise.
            unsafe { S::call(evaluate) };
        }
        self.scratch.gathered = gathered;
        self.scratch.packed = packed;
    }
}

pub(crate) fn check_fields(
    role: &'static str,
    fields: &[Field<'_>],
    points: usize,
    channels: usize,
) -> Result<(), Error> {
    for (field, values) in fields.iter().enumerate() {
        if values.len() != points {
            return Err(Error::FieldLength {
                role,
                field,
                found: values.len(),
                expected: points,
            });
        }
    }
    let found = fields.iter().map(Field::channels).sum();
    if found != channels {
        return Err(Error::FieldChannels {
            role,
            found,
            expected: channels,
        });
    }
    Ok(())
}

/// Every channel of the fields in the order of the sorted points, one array per channel, behind those
/// that are there. Arrays come from the backend and go back to it: fresh memory costs more than filling it.
fn sorted_channels(
    backend: &CpuBackend,
    sources: &Grid,
    fields: &[Field<'_>],
    channels: &mut Vec<Vec<f32>>,
) -> Result<(), Error> {
    let points = sources.points();
    let index = &points.index()[..points.len()];
    for field in fields {
        for channel in 0..field.channels() {
            let mut sorted = backend.take_channel();
            sorted.clear();
            make_room(&mut sorted, points.len() + PADDING, "sorted fields")?;
            backend.install(|| {
                index
                    .par_iter()
                    .with_min_len(1 << 12)
                    .map(|&i| field.values()[i as usize * field.channels() + channel])
                    .put_into(&mut sorted);
            });
            channels.push(sorted);
        }
    }
    Ok(())
}

/// One value of the target type, read from the caller's arrays.
#[inline(always)]
pub(crate) fn target_value<T: Channels>(fields: &[Field<'_>], index: usize) -> T {
    let (mut field, mut first) = (0, 0);
    T::read(|channel| {
        while channel - first >= fields[field].channels() {
            first += fields[field].channels();
            field += 1;
        }
        fields[field].values()[index * fields[field].channels() + channel - first]
    })
}
