//! Traversals with a pair kernel.
//!
//! Fields are the caller's. Those of targets go to the owners, those of sources to owners and
//! halos, each rank evaluates the kernel for the points it owns, all agree that this has succeeded
//! everywhere, and results go back to the callers. Lists that deterministic sums need are found
//! while fields are on their way.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::{FIELDS, RESULTS},
    error::Refusal,
    routes::Part,
    set::Set,
};
use nearfield::{
    PairKernel,
    kernels::{Channels, Field, FieldsOf},
};
use nearfield_grid::memory::{Shortage, filled};

/// A traversal, made by [`RankedEngine::traverse`] and started by [`run`](Self::run).
#[must_use = "a traversal does nothing until it is run"]
pub struct RankedTraversal<'a, T: Scalar, K> {
    engine: &'a mut RankedEngine<T>,
    kernel: &'a K,
    of: [RankedSet; 2],
    targets: Vec<Field<'a>>,
    sources: Vec<Field<'a>>,
}

/// The kernel's type and the sets.
impl<T: Scalar, K> std::fmt::Debug for RankedTraversal<'_, T, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = std::any::type_name::<K>();
        write!(f, "RankedTraversal({kernel} of {:?})", self.of)
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// A traversal of all pairs of `targets` and `sources` with a kernel; see
    /// [`nearfield::Engine::traverse`].
    ///
    /// With [`RankedBuilder::deterministic`](crate::RankedBuilder::deterministic) the sums have the
    /// same bits on any number of ranks.
    pub fn traverse<'a, K: PairKernel>(
        &'a mut self,
        kernel: &'a K,
        targets: RankedSet,
        sources: RankedSet,
    ) -> RankedTraversal<'a, T, K> {
        RankedTraversal {
            engine: self,
            kernel,
            of: [targets, sources],
            targets: Vec::new(),
            sources: Vec::new(),
        }
    }
}

/// Fields of the points that a rank sees, each packed.
struct LocalFields {
    /// Channels of each field.
    channels: Vec<usize>,
    values: Vec<Vec<f32>>,
}

impl LocalFields {
    /// Room for the `fields` of `points` points.
    fn with_room(fields: &[Field<'_>], points: usize) -> Result<Self, Shortage> {
        let channels: Vec<usize> = fields.iter().map(Field::channels).collect();
        let values = channels
            .iter()
            .map(|channels| filled(channels * points, 0.0, "fields of the points of a rank"));
        Ok(Self {
            values: values.collect::<Result<_, _>>()?,
            channels,
        })
    }

    /// Bytes of a point.
    fn width(&self) -> usize {
        size_of::<f32>() * self.channels.iter().sum::<usize>()
    }

    /// Copies the values of points that stay on this rank, field by field; `each` calls its
    /// argument with the places of every such point, in `fields` and here.
    fn copy(&mut self, fields: &[Field<'_>], each: impl Fn(&mut dyn FnMut(usize, usize))) {
        for (field, values) in fields.iter().zip(&mut self.values) {
            let channels = field.channels();
            each(&mut |point, place| {
                for channel in 0..channels {
                    values[place * channels + channel] = field.value(point, channel);
                }
            });
        }
    }

    /// Takes the values of a local point from a message.
    fn take(&mut self, place: usize, bytes: &[u8]) {
        let mut rest = bytes;
        for (values, &channels) in self.values.iter_mut().zip(&self.channels) {
            let (here, behind) = rest.split_at(size_of::<f32>() * channels);
            let to = &mut values[place * channels..][..channels];
            bytemuck::cast_slice_mut::<f32, u8>(to).copy_from_slice(here);
            rest = behind;
        }
    }

    /// The fields as a kernel reads them.
    fn fields(&self, points: usize) -> Result<Vec<Field<'_>>, Refusal> {
        let mut fields = Vec::with_capacity(self.values.len());
        for (values, &channels) in self.values.iter().zip(&self.channels) {
            let (bytes, stride) = (bytemuck::cast_slice(values), size_of::<f32>() * channels);
            let field = Field::strided(bytes, 0, stride, points, channels);
            fields.push(field.map_err(Refusal::new)?);
        }
        Ok(fields)
    }
}

/// Appends the values of a point to a message.
fn pack(fields: &[Field<'_>], point: usize, message: &mut Vec<u8>) {
    for field in fields {
        for channel in 0..field.channels() {
            message.extend_from_slice(&field.value(point, channel).to_ne_bytes());
        }
    }
}

/// Refuses fields that do not have one element per point, or other channels than the kernel reads.
fn check(fields: &[Field<'_>], points: usize, channels: usize, whose: &str) -> Result<(), Refusal> {
    if fields.iter().any(Field::is_indices) {
        return Err(Refusal::new(format!(
            "a {whose} has no index that is the same on all ranks: give numbers of your own"
        )));
    }
    if let Some(field) = fields.iter().find(|field| field.len() != points) {
        let found = field.len();
        return Err(Refusal::new(format!(
            "a field of the {whose} has {found} elements for {points} points"
        )));
    }
    let found: usize = fields.iter().map(Field::channels).sum();
    if found != channels {
        return Err(Refusal::new(format!(
            "the fields of the {whose} have {found} channels, but the kernel reads {channels}"
        )));
    }
    Ok(())
}

impl<'a, T: Scalar, K: PairKernel> RankedTraversal<'a, T, K> {
    /// The fields that the kernel reads of every target, in the caller's order, of the points that
    /// this rank gave; see [`nearfield::Traversal::targets`].
    pub fn targets(mut self, fields: impl FieldsOf<'a, K::Target>) -> Self {
        self.targets.clear();
        fields.append_to(&mut self.targets);
        self
    }

    /// The fields that the kernel reads of every source, as [`targets`](Self::targets).
    pub fn sources(mut self, fields: impl FieldsOf<'a, K::Source>) -> Self {
        self.sources.clear();
        fields.append_to(&mut self.sources);
        self
    }

    /// One result per point of the targets that this rank gave, in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if fields do not fit on some rank, the
    /// kernel reaches beyond the radius, or memory is short.
    pub fn run(self) -> Result<Vec<K::Output>, Error> {
        let [t, s] = self.of;
        let (engine, targets, sources) = (self.engine, self.targets, self.sources);
        let room = || {
            let (of, from) = (engine.placed(t)?, engine.placed(s)?);
            check(&targets, of.home.ids.len(), K::Target::COUNT, "targets")?;
            check(&sources, from.home.ids.len(), K::Source::COUNT, "sources")?;
            let blank = K::Output::read(|_| 0.0);
            Ok((
                LocalFields::with_room(&targets, of.local.ids.len())?,
                LocalFields::with_room(&sources, from.local.ids.len())?,
                filled(of.home.ids.len(), blank, "the results of a traversal")?,
            ))
        };
        let room = room();
        let (mut of_targets, mut of_sources, mut values) = engine.comm.agree(room, &mut [])?;
        let fields = [(t, Part::Owned, &targets), (s, Part::All, &sources)];
        for (set, part, fields) in fields.into_iter().filter(|field| !field.2.is_empty()) {
            let routes = &engine.sets[set.0].routes;
            let pack = |point: usize, message: &mut Vec<u8>| pack(fields, point, message);
            routes.post(&mut engine.comm, FIELDS, part, pack)?;
        }
        let me = engine.comm.rank();
        let lists = engine.lists_for_sums(t, s);
        let locals = [&mut of_targets, &mut of_sources];
        for ((set, part, given), fields) in fields.into_iter().zip(locals) {
            let (routes, width) = (&engine.sets[set.0].routes, fields.width());
            fields.copy(given, |copy| routes.own(me, part, copy));
            routes.collect(&mut engine.comm, FIELDS, part, width, |place, bytes| {
                fields.take(place, bytes);
            })?;
        }
        let evaluated = lists.and_then(|restore| {
            let evaluated = engine.evaluate(self.kernel, self.of, [&of_targets, &of_sources]);
            if restore {
                let (t, s) = (engine.sets[t.0].id, engine.sets[s.0].id);
                engine.engine.set_active(t, s, false)?;
            }
            evaluated
        });
        let local = engine.comm.agree(evaluated, &mut [])?;
        engine.send_back::<K>(t, &local, &mut values)?;
        Ok(values)
    }
}

impl<T: Scalar> RankedEngine<T> {
    /// Finds the lists that deterministic sums are taken over; returns true if the pair of sets was
    /// switched on for that.
    fn lists_for_sums(&mut self, targets: RankedSet, sources: RankedSet) -> Result<bool, Refusal> {
        if !self.settings.deterministic {
            return Ok(false);
        }
        let (t, s) = (self.sets[targets.0].id, self.sets[sources.0].id);
        let active = self.engine.is_active(t, s)?;
        if !active {
            self.engine.set_active(t, s, true)?;
        }
        self.find_locally()?;
        Ok(!active)
    }

    /// Evaluates a kernel for all points that this rank sees; only results of owned ones count.
    fn evaluate<K: PairKernel>(
        &self,
        kernel: &K,
        [targets, sources]: [RankedSet; 2],
        [of_targets, of_sources]: [&LocalFields; 2],
    ) -> Result<Vec<K::Output>, Refusal> {
        let set = |set: RankedSet| -> &Set<T> { &self.sets[set.0] };
        let (of, from) = (set(targets), set(sources));
        let of_targets = of_targets.fields(of.local.ids.len())?;
        let of_sources = of_sources.fields(from.local.ids.len())?;
        let traversal = self.engine.traverse(kernel, of.id, from.id);
        let traversal = traversal
            .targets(of_targets.as_slice())
            .sources(of_sources.as_slice());
        let traversal = if self.settings.deterministic {
            traversal.over_lists()
        } else {
            traversal
        };
        Ok(traversal.run()?)
    }

    /// Brings results of owned points to their callers.
    fn send_back<K: PairKernel>(
        &mut self,
        set: RankedSet,
        local: &[K::Output],
        values: &mut [K::Output],
    ) -> Result<(), Error> {
        let routes = &self.sets[set.0].routes;
        routes.post_back(&mut self.comm, RESULTS, |place, message| {
            local[place].write(|_, number| message.extend_from_slice(&number.to_ne_bytes()));
        })?;
        routes.own(self.comm.rank(), Part::Owned, |index, place| {
            values[index] = local[place]
        });
        let width = size_of::<f32>() * K::Output::COUNT;
        routes.collect_back(&mut self.comm, RESULTS, |index, rest| {
            let (numbers, _) = rest.get(..width)?.as_chunks();
            values[index] = K::Output::read(|channel| f32::from_ne_bytes(numbers[channel]));
            Some(width)
        })?;
        Ok(())
    }
}
