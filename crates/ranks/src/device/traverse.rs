//! Traversals with a pair kernel, and counts, on the device.
//!
//! The fields of sources are gathered for halos and sent before the kernel starts among owned
//! points. While that runs, halos and their fields are received and uploaded, and the
//! [border](super::border) is evaluated; its results are then combined with those of the owned
//! points.

use super::{
    engine::DeviceRankedEngine,
    kernels::{Kernels, Rows},
    places::Places,
    staging::{Outgoing, zeros},
};
use crate::{
    Error, RankedSet,
    communicator::{Exchange, FIELDS},
    error::{Failure, Refusal},
    transport::Tag,
};
use nearfield::{
    PairKernel,
    device::{
        DeviceBuffer, DeviceField, DeviceFieldsOf, DeviceViewMut,
        programs::{CheckedField, SideOfFields},
    },
    kernels::Channels,
};
use std::sync::Arc;

/// A traversal, made by [`DeviceRankedEngine::traverse`] and started by
/// [`run_into`](Self::run_into).
#[must_use = "a traversal does nothing until it is run"]
pub struct DeviceRankedTraversal<'a, K> {
    engine: &'a mut DeviceRankedEngine,
    kernel: &'a K,
    of: [RankedSet; 2],
    targets: Vec<DeviceField<'a>>,
    sources: Vec<DeviceField<'a>>,
}

/// The kernel's type and the sets.
impl<K> std::fmt::Debug for DeviceRankedTraversal<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = std::any::type_name::<K>();
        write!(f, "DeviceRankedTraversal({kernel} of {:?})", self.of)
    }
}

impl DeviceRankedEngine {
    /// A traversal of all pairs of `targets` and `sources` with a kernel, which then gets its
    /// fields and is run; see [`nearfield::device::DeviceEngine::traverse`].
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
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if `counts` does not have one number per
    /// target, memory is short, or a set is not on its ranks.
    pub fn count_neighbors(
        &mut self,
        targets: RankedSet,
        sources: RankedSet,
        counts: &mut DeviceViewMut<'_, u32>,
    ) -> Result<(), Error> {
        let owned = self.count_owned(targets, sources, counts);
        let settled = self.settle();
        let at_border = owned.map_err(Failure::from).and_then(|mut found| {
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

    /// Makes the border's stream wait for the fields of a traversal, which were marked before its
    /// work on owned points.
    fn follow_fields(&self) -> Result<(), Refusal> {
        let device = &*self.device;
        match device.staging.last_mark(&self.engine) {
            Some(mark) => device.border.follow(mark),
            None => Ok(()),
        }
    }

    /// Both sets of a call, if their points are on their owners.
    pub(super) fn both(
        &self,
        targets: RankedSet,
        sources: RankedSet,
    ) -> Result<[&super::set::DeviceSet; 2], Refusal> {
        Ok([self.placed(targets)?, self.placed(sources)?])
    }

    /// Sends packed words to the halos of a set, `words` for each point. The others are told if
    /// this rank refuses.
    pub(super) fn post_to_halos(
        &mut self,
        at: usize,
        words: usize,
        packed: Outgoing,
        on: (Tag, Exchange),
    ) -> Result<(), Failure> {
        let packed = (packed.wait()).map_err(|refusal| self.comm.refuse(on, refusal))?;
        self.device.staging.clock.posted(on.1);
        let sends = &self.device.sets[at].sends;
        let sent = sends.post(&mut self.comm, on, words, &packed);
        self.device.staging.give_back(packed);
        sent
    }

    /// Waits for words of the halo of a set, `words` for each point.
    pub(super) fn collect_of_halo(
        &mut self,
        at: usize,
        words: usize,
        on: (Tag, Exchange),
    ) -> Result<Arc<DeviceBuffer<u32>>, Failure> {
        self.device.staging.clock.comes(on.1);
        let sources = std::mem::take(&mut self.device.sets[at].sources);
        let came = self.collect(&sources, words, true, on);
        self.device.sets[at].sources = sources;
        came
    }
}

/// Gathers the fields of some points side by side, `stride` numbers for each, in an array with room
/// for them.
fn gather(
    kernels: &Kernels,
    fields: &[CheckedField<'_>],
    stride: usize,
    places: &Places,
    to: &mut DeviceBuffer<u32>,
) -> Result<(), Refusal> {
    let mut first = 0;
    for field in fields {
        if let Some(values) = field.values() {
            let rows = Rows { to, first, stride };
            let of = [field.stride(), field.channels()];
            kernels.gather(values, of, &places.view(), rows)?;
        }
        first += field.channels();
    }
    Ok(())
}

/// Refuses fields that do not fit `points` points or the `channels` that the kernel reads of each.
fn check<'a>(
    what: &'static str,
    fields: &'a [DeviceField<'_>],
    points: usize,
    channels: usize,
) -> Result<Vec<CheckedField<'a>>, Refusal> {
    let side = SideOfFields {
        what,
        fields,
        points,
        channels,
    };
    let checked = side.check().map_err(Refusal::from)?;
    if checked.iter().any(|field| field.values().is_none()) {
        return Err(Refusal::new(format!(
            "{what}: a point has no index that is the same on all ranks: give numbers of your own"
        )));
    }
    Ok(checked)
}

impl<'a, K: PairKernel> DeviceRankedTraversal<'a, K> {
    /// The fields that the kernel reads of every target that this rank owns, in the order of its
    /// points; see [`nearfield::device::DeviceTraversal::targets`].
    pub fn targets(mut self, fields: impl DeviceFieldsOf<'a>) -> Self {
        self.targets.clear();
        fields.append_to(&mut self.targets);
        self
    }

    /// The fields that the kernel reads of every source, as [`targets`](Self::targets).
    pub fn sources(mut self, fields: impl DeviceFieldsOf<'a>) -> Self {
        self.sources.clear();
        fields.append_to(&mut self.sources);
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
    pub fn run_into(self, results: &mut DeviceViewMut<'_, f32>) -> Result<(), Error> {
        let Self {
            engine,
            kernel,
            of,
            targets,
            sources,
        } = self;
        let on = (FIELDS, engine.comm.begin());
        let mut running = Running { engine, kernel, of };
        let evaluated = match running.begin([&targets, &sources], results) {
            Ok(begun) => running.end(begun, results, on),
            Err(refusal) => Err(running.engine.comm.refuse(on, refusal)),
        };
        running.engine.comm.agree(evaluated, &mut [])
    }
}

/// A running traversal.
struct Running<'a, K> {
    engine: &'a mut DeviceRankedEngine,
    kernel: &'a K,
    of: [RankedSet; 2],
}

/// What a traversal has started.
struct Begun<'a> {
    /// The sources' fields for halos, if any go there.
    packed: Option<Outgoing>,
    /// The fields of the targets.
    fields: Vec<CheckedField<'a>>,
    /// Room for the results of the border.
    found: DeviceBuffer<f32>,
}

impl<K: PairKernel> Running<'_, K> {
    /// Starts to send the fields that halos need, and then the work on owned points.
    fn begin<'f>(
        &mut self,
        [targets, sources]: [&'f [DeviceField<'_>]; 2],
        results: &mut DeviceViewMut<'_, f32>,
    ) -> Result<Begun<'f>, Refusal> {
        let _span = tracing::debug_span!("ranks.interior").entered();
        let engine = &mut *self.engine;
        let [of, among] = engine.both(self.of[0], self.of[1])?;
        let width = K::Source::COUNT;
        let fields = check("fields of targets", targets, of.points, K::Target::COUNT)?;
        let from = check("fields of sources", sources, among.points, width)?;
        let names = [of.names.owned, among.names.owned];
        let found = zeros(&engine.engine, K::Output::COUNT * of.border.count)?;
        let packed = if width == 0 || among.sends.to.is_empty() {
            None
        } else {
            let places = among.sends.places.clone();
            let device = &mut *engine.device;
            let staging = &mut device.staging;
            let mut rows = staging.room(&engine.engine, width * places.count)?;
            gather(&device.kernels, &from, width, &places, &mut rows)?;
            let left = staging.leave(&engine.engine, "fields of halos", rows)?;
            staging.clock.left(&engine.engine)?;
            Some(left)
        };
        engine.device.staging.mark(&engine.engine)?;
        let again = |fields: &'f [DeviceField<'_>]| {
            let fields = fields.iter().map(DeviceField::reborrow);
            fields.collect::<Vec<_>>()
        };
        let traversal = engine.engine.traverse(self.kernel, names[0], names[1]);
        let traversal = traversal.targets(again(targets)).sources(again(sources));
        traversal.run_into(results)?;
        engine.device.staging.clock.worked(&engine.engine)?;
        Ok(Begun {
            packed,
            fields,
            found,
        })
    }

    /// Sends and receives the fields of halos, and completes the results of the border.
    fn end(
        &mut self,
        begun: Begun<'_>,
        results: &mut DeviceViewMut<'_, f32>,
        on: (Tag, Exchange),
    ) -> Result<(), Failure> {
        let Begun {
            packed,
            fields,
            mut found,
        } = begun;
        let (sources, width) = (self.of[1].0, K::Source::COUNT);
        if let Some(packed) = packed {
            self.engine.post_to_halos(sources, width, packed, on)?;
        }
        let at_border = self.engine.settle().and_then(|()| {
            let halo = self.engine.collect_of_halo(sources, width, on)?;
            Ok(self.evaluate_border(&halo, &fields, &mut found)?)
        });
        // The border may have started work before an error.
        let joined = self.engine.join_border();
        at_border?;
        joined?;
        Ok(self.combine(&found, results)?)
    }

    /// Combines the results of the border with those of owned points.
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

    /// Starts the kernel for points at the border and those of the halo. `fields` are those of all
    /// targets.
    fn evaluate_border(
        &mut self,
        halo: &DeviceBuffer<u32>,
        fields: &[CheckedField<'_>],
        found: &mut DeviceBuffer<f32>,
    ) -> Result<(), Refusal> {
        let _span = tracing::debug_span!("ranks.border").entered();
        let engine = &mut *self.engine;
        let [of, among] = engine.both(self.of[0], self.of[1])?;
        if !of.meets(among) {
            return Ok(());
        }
        let (places, halo_points) = (of.border.clone(), among.halo_points);
        let names = (of.names.border, among.names.halo);
        engine.follow_fields()?;
        let border = &mut engine.device.border;
        let [width, of_source] = [K::Target::COUNT, K::Source::COUNT];
        border.fit(width * places.count)?;
        gather(&border.kernels, fields, width, &places, &mut border.rows)?;
        let kernels = &border.kernels;
        let targets = kernels.as_numbers(&border.rows, width * places.count)?;
        let sources = kernels.as_numbers(halo, of_source * halo_points)?;
        let mut view = found.slice_mut(0..K::Output::COUNT * places.count);
        let traversal = border.engine.traverse(self.kernel, names.0, names.1);
        let field = |values, width| (width != 0).then(|| DeviceField::new(values, width));
        let traversal = traversal.targets(field(targets, width));
        let traversal = traversal.sources(field(sources, of_source));
        Ok(traversal.run_into(&mut view)?)
    }
}
