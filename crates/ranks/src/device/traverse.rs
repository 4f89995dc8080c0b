//! Traversals with a pair kernel, and counts, on the device.
//!
//! Fields of sources are gathered for halos and on their way before the kernel is started among
//! owned points. Beside that work halos and their fields are awaited and brought to the device, and
//! [the border](super::border) is evaluated; what it finds is then combined with the results.

use super::{
    engine::DeviceRankedEngine,
    kernels::{Kernels, Rows},
    places::Places,
    staging::{Leaving, zeros},
};
use crate::{
    Error, RankedSet,
    communicator::{Exchange, FIELDS},
    error::Refusal,
    transport::{Fault, Tag},
};
use nearfield::{
    PairKernel,
    device::{DeviceBuffer, DeviceField, DeviceView, DeviceViewMut},
    kernels::Channels,
};
use std::sync::Arc;

/// Numbers of points, in records of `stride` numbers. The first `channels` of each are read.
struct Numbers<'a> {
    values: DeviceView<'a, f32>,
    stride: usize,
    channels: usize,
}

/// A traversal, made by [`DeviceRankedEngine::traverse`] and started by
/// [`run_into`](Self::run_into).
#[must_use = "a traversal does nothing until it is run"]
pub struct DeviceRankedTraversal<'a, K> {
    engine: &'a mut DeviceRankedEngine,
    kernel: &'a K,
    of: [RankedSet; 2],
    targets: Vec<Numbers<'a>>,
    sources: Vec<Numbers<'a>>,
}

/// The kernel's type and the sets.
impl<K> std::fmt::Debug for DeviceRankedTraversal<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = std::any::type_name::<K>();
        write!(f, "DeviceRankedTraversal({kernel} of {:?})", self.of)
    }
}

impl DeviceRankedEngine {
    /// A traversal of all pairs of `targets` and `sources` with a kernel, to be given its fields
    /// and run; see [`nearfield::device::DeviceEngine::traverse`].
    pub fn traverse<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        targets: RankedSet,
        sources: RankedSet,
    ) -> DeviceRankedTraversal<'a, K> {
        DeviceRankedTraversal {
            engine: self,
            kernel,
            of: [targets, sources],
            targets: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Number of neighbours in `sources` of every point of `targets` that this rank owns, in the
    /// order of its points; provisional until [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if `counts` has not one number per target,
    /// memory is short, or a set is not on its ranks.
    pub fn count_neighbors(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
        counts: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Error> {
        let owned = self.count_owned(targets, sources, counts);
        let settled = self.settle()?;
        let at_border = owned.and_then(|mut found| {
            settled?;
            let [of, among] = self.both(targets, sources)?;
            if of.meets(among) {
                self.follow_fields()?;
                let mut view = found.slice_mut(0..of.border.count);
                let names = (of.names.border, among.names.halo);
                let border = &self.device.border.engine;
                border.count_neighbors(names.0, names.1, &mut view)?;
            }
            Ok(found)
        });
        let joined = self.join_border();
        let counted = at_border.and_then(|found| {
            joined?;
            let [of, among] = self.both(targets, sources)?;
            if of.meets(among) {
                (self.device.kernels).add_counts(&of.border.view(), &found, counts)?;
            }
            Ok(())
        });
        self.comm.agree(counted, &mut [])
    }

    /// Counts among owned points; returns room for the counts of the border.
    fn count_owned(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
        counts: &mut DeviceViewMut<'_, u32>,
    ) -> Result<DeviceBuffer<u32>, Refusal> {
        let [of, among] = self.both(targets, sources)?;
        let names = (of.names.owned, among.names.owned);
        let found = zeros(&self.engine, of.border.count)?;
        self.device.staging.mark(&self.engine)?;
        self.engine.count_neighbors(names.0, names.1, counts)?;
        self.device.staging.clock.worked(&self.engine)?;
        Ok(found)
    }

    /// Lets the border's stream wait until what was given to a traversal may be read, which was
    /// marked before its work on owned points.
    fn follow_fields(&self) -> Result<(), Refusal> {
        let device = &*self.device;
        match device.staging.last_mark(&self.engine) {
            Some(mark) => device.border.follow(mark),
            None => Ok(()),
        }
    }

    /// Both sets of a call, if their points are where they belong.
    pub(super) fn both(
        &self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<[&super::set::DeviceSet; 2], Refusal> {
        Ok([self.placed(targets)?, self.placed(sources)?])
    }

    /// Sends words that are on their way to the host to halos of a set, `words` for each point. The
    /// inner error is one of this rank; the others have been told.
    pub(super) fn post_to_halos(
        &mut self,
        at: usize,
        words: usize,
        packed: Leaving,
        on: (Tag, Exchange),
    ) -> Result<Result<(), Refusal>, Fault> {
        let packed = match packed.wait() {
            Ok(packed) => packed,
            Err(error) => {
                self.comm.refuse(on.0, on.1)?;
                return Ok(Err(error));
            }
        };
        self.device.staging.clock.posted(on.1);
        let sends = &self.device.sets[at].sends;
        let sent = sends.post(&mut self.comm, on, words, &packed)?;
        self.device.staging.give_back(packed);
        Ok(sent)
    }

    /// Waits for words of the halo of a set, `words` for each point.
    pub(super) fn collect_of_halo(
        &mut self,
        at: usize,
        words: usize,
        on: (Tag, Exchange),
    ) -> Result<Result<Arc<DeviceBuffer<u32>>, Refusal>, Fault> {
        self.device.staging.clock.comes(on.1);
        let sources = std::mem::take(&mut self.device.sets[at].sources);
        let came = self.collect(&sources, words, true, on);
        self.device.sets[at].sources = sources;
        came
    }
}

/// Numbers of a point in all of these fields.
fn width_of(fields: &[Numbers<'_>]) -> usize {
    fields.iter().map(|field| field.channels).sum()
}

/// Gathers numbers of some points side by side in an array with room for them.
fn gather(
    kernels: &Kernels,
    fields: &[Numbers<'_>],
    places: &Places,
    to: &mut DeviceBuffer<u32>,
) -> Result<(), Refusal> {
    let (stride, mut first) = (width_of(fields), 0);
    for field in fields {
        let rows = Rows { to, first, stride };
        let of = [field.stride, field.channels];
        kernels.gather(&field.values, of, &places.view(), rows)?;
        first += field.channels;
    }
    Ok(())
}

/// Refuses fields that do not have one element per point, or other channels than the kernel reads.
fn check(
    fields: &[Numbers<'_>],
    points: usize,
    channels: usize,
    whose: &str,
) -> Result<(), Refusal> {
    for Numbers {
        values,
        stride,
        channels,
    } in fields
    {
        let found = values.len();
        // The last record may end behind what is read of it.
        let least = points
            .checked_sub(1)
            .map_or(0, |last| last * stride + channels);
        if !(least..=points * stride).contains(&found) || channels > stride {
            return Err(Refusal::new(format!(
                "a field of the {whose} has {found} numbers for {points} points with {stride} \
                 each, {channels} read"
            )));
        }
    }
    let found: usize = fields.iter().map(|field| field.channels).sum();
    if found != channels {
        return Err(Refusal::new(format!(
            "the fields of the {whose} have {found} channels, but the kernel reads {channels}"
        )));
    }
    Ok(())
}

/// The fields as an engine takes them.
fn fields_of<'a>(fields: &[Numbers<'a>]) -> Vec<DeviceField<'a>> {
    let field = |field: &Numbers<'a>| {
        DeviceField::new(field.values.slice(..), field.stride).channels(field.channels)
    };
    fields.iter().map(field).collect()
}

impl<'a, K: PairKernel> DeviceRankedTraversal<'a, K> {
    /// Adds a field that the kernel reads of every target: `channels` numbers for each point of the
    /// targets that this rank owns, in the order of its points. Fields are given in the order of
    /// the kernel's channels.
    pub fn targets(self, values: DeviceView<'a, f32>, channels: usize) -> Self {
        self.target_records(values, channels, channels)
    }

    /// Adds a field that the kernel reads of every source, as [`targets`](Self::targets).
    pub fn sources(self, values: DeviceView<'a, f32>, channels: usize) -> Self {
        self.source_records(values, channels, channels)
    }

    /// As [`targets`](Self::targets), of records with `stride` numbers each: the kernel reads the
    /// first `channels` of each, from the first of `values` on.
    pub fn target_records(
        mut self,
        values: DeviceView<'a, f32>,
        stride: usize,
        channels: usize,
    ) -> Self {
        self.targets.push(Numbers {
            values,
            stride,
            channels,
        });
        self
    }

    /// The same of sources.
    pub fn source_records(
        mut self,
        values: DeviceView<'a, f32>,
        stride: usize,
        channels: usize,
    ) -> Self {
        self.sources.push(Numbers {
            values,
            stride,
            channels,
        });
        self
    }

    /// Overwrites `results`: the channels of the kernel's output of every target that this rank
    /// owns, in the order of its points. They are provisional until
    /// [`finish`](DeviceRankedEngine::finish).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if arrays do not fit on some rank, the
    /// kernel reaches beyond the radius or does not compile, memory is short, or a set is not on
    /// its ranks.
    pub fn run_into(mut self, results: &mut DeviceViewMut<'_, f32>) -> Result<(), Error> {
        let on = (FIELDS, self.engine.comm.begin());
        let evaluated = match self.begin(results) {
            Ok((packed, found)) => self.end(packed, found, results, on)?,
            Err(refusal) => {
                self.engine.comm.refuse(on.0, on.1)?;
                Err(refusal)
            }
        };
        self.engine.comm.agree(evaluated, &mut [])
    }

    /// Starts the copy of what halos need, and then the work on owned points. Returns room for the
    /// results of the border too.
    fn begin(
        &mut self,
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<(Option<Leaving>, DeviceBuffer<f32>), Refusal> {
        let _span = tracing::debug_span!("ranks.interior").entered();
        let engine = &mut *self.engine;
        let [of, among] = engine.both(self.of[0], self.of[1])?;
        check(&self.targets, of.points, K::Target::COUNT, "targets")?;
        check(&self.sources, among.points, K::Source::COUNT, "sources")?;
        let names = [of.names.owned, among.names.owned];
        let found = zeros(&engine.engine, K::Output::COUNT * of.border.count)?;
        let packed = if self.sources.is_empty() || among.sends.to.is_empty() {
            None
        } else {
            let places = among.sends.places.clone();
            let device = &mut *engine.device;
            let staging = &mut device.staging;
            let mut rows = staging.room(&engine.engine, width_of(&self.sources) * places.count)?;
            gather(&device.kernels, &self.sources, &places, &mut rows)?;
            let left = staging.leave(&engine.engine, "fields of halos", rows)?;
            staging.clock.left(&engine.engine)?;
            Some(left)
        };
        engine.device.staging.mark(&engine.engine)?;
        let traversal = engine.engine.traverse(self.kernel, names[0], names[1]);
        traversal
            .targets(fields_of(&self.targets))
            .sources(fields_of(&self.sources))
            .run_into(results)?;
        engine.device.staging.clock.worked(&engine.engine)?;
        Ok((packed, found))
    }

    /// Sends and awaits what halos need, and completes the results of the border. The inner error
    /// is one of this rank, or the refusal of another one.
    fn end(
        &mut self,
        packed: Option<Leaving>,
        mut found: DeviceBuffer<f32>,
        results: &mut DeviceViewMut<'_, f32>,
        on: (Tag, Exchange),
    ) -> Result<Result<(), Refusal>, Fault> {
        let (sources, width) = (self.of[1].0, width_of(&self.sources));
        if let Some(packed) = packed
            && let Err(refusal) = self.engine.post_to_halos(sources, width, packed, on)?
        {
            return Ok(Err(refusal));
        }
        let settled = self.engine.settle()?;
        let at_border = match settled {
            Ok(()) => {
                let halo = self.engine.collect_of_halo(sources, width, on)?;
                halo.and_then(|halo| self.evaluate_border(&halo, &mut found))
            }
            Err(refusal) => Err(refusal),
        };
        // The border may have been at work before an error too.
        let joined = self.engine.join_border();
        Ok(at_border
            .and(joined)
            .and_then(|()| self.combine(&found, results)))
    }

    /// Combines what the border has found with its results.
    fn combine(
        &self,
        found: &DeviceBuffer<f32>,
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<(), Refusal> {
        let [of, among] = self.engine.both(self.of[0], self.of[1])?;
        if !of.meets(among) {
            return Ok(());
        }
        let (border, outputs) = (of.border.view(), K::Output::COUNT);
        (self.engine.device.kernels).combine(&border, found, (outputs, K::REDUCE), results)
    }

    /// Starts the kernel for points at the border and those of the halo.
    fn evaluate_border(
        &mut self,
        halo: &DeviceBuffer<u32>,
        found: &mut DeviceBuffer<f32>,
    ) -> Result<(), Refusal> {
        let _span = tracing::debug_span!("ranks.border").entered();
        let engine = &mut *self.engine;
        let [of, among] = engine.both(self.of[0], self.of[1])?;
        if !of.meets(among) {
            return Ok(());
        }
        let (places, outputs, halo_points) =
            (of.border.clone(), K::Output::COUNT, among.halo_points);
        let names = (of.names.border, among.names.halo);
        engine.follow_fields()?;
        let border = &mut engine.device.border;
        let of_target = width_of(&self.targets);
        border.fit(of_target * places.count)?;
        gather(&border.kernels, &self.targets, &places, &mut border.rows)?;
        let kernels = &border.kernels;
        let targets = kernels.as_numbers(&border.rows, of_target * places.count)?;
        let width = width_of(&self.sources);
        let sources = kernels.as_numbers(halo, width * halo_points)?;
        let mut view = found.slice_mut(0..outputs * places.count);
        let mut traversal = border.engine.traverse(self.kernel, names.0, names.1);
        if of_target != 0 {
            traversal = traversal.targets(DeviceField::new(targets, of_target));
        }
        if width != 0 {
            traversal = traversal.sources(DeviceField::new(sources, width));
        }
        Ok(traversal.run_into(&mut view)?)
    }
}
