//! Traversals with a pair kernel.
//!
//! The caller gives fields of its own points. Fields of points that another rank owns go to their
//! owners, and fields of sources go to halos. While these are under way the kernel is evaluated for
//! owned points among owned points; the contributions of the halo to points at the border are added
//! when it has arrived. All ranks agree that this succeeded everywhere, and results go back to the
//! callers. A rank that cannot begin sends empty messages, so one agreement suffices.
//!
//! Deterministic sums are taken over lists. Those of the border are taken over [lists with all
//! neighbours](crate::complete), in the order of the ids.

use crate::{
    Error, RankedEngine, RankedSet, Scalar,
    communicator::{Exchange, FIELDS},
    error::{Failure, Refusal},
    fields::{LocalFields, check, pack, width},
    transport::Tag,
};
use nearfield::{
    PairKernel,
    kernels::{Channels, Field, FieldsOf},
};
use nearfield_grid::memory::{filled, with_room};
use std::time::Instant;

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

impl<'a, T: Scalar, K: PairKernel> RankedTraversal<'a, T, K> {
    /// The fields that the kernel reads of every target that this rank gave, in the caller's order;
    /// see [`nearfield::Traversal::targets`].
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
        self.engine.restore()?;
        let room = self.room();
        let (engine, kernel, of) = (self.engine, self.kernel, self.of);
        let given = [self.targets.as_slice(), self.sources.as_slice()];
        let on = (FIELDS, engine.comm.begin());
        let evaluated = match room {
            Ok(room) => engine.evaluate(kernel, of, given, room, on),
            Err(refusal) => Err(engine.comm.refuse(on, refusal)),
        };
        let (owned, results) = engine.comm.agree(evaluated, &mut [])?;
        engine.send_back::<K>(of[0], owned, results)
    }

    /// Checks the fields and allocates everything whose size is known.
    fn room(&self) -> Result<Room<K::Output>, Refusal> {
        let [t, s] = self.of;
        let (of, from) = (self.engine.placed(t)?, self.engine.placed(s)?);
        let given = [&self.targets, &self.sources];
        check(given[0], of.home.len(), K::Target::COUNT, "targets")?;
        check(given[1], from.home.len(), K::Source::COUNT, "sources")?;
        let (blank, what) = (K::Output::read(|_| 0.0), "the results of a traversal");
        let mut brought = [None, None];
        for ((set, given), brought) in [of, from].into_iter().zip(given).zip(&mut brought) {
            if set.routes.owned.is_some() {
                *brought = Some(LocalFields::with_room(given, set.owned().len())?);
            }
        }
        Ok(Room {
            owned: filled(of.owned().len(), blank, what)?,
            results: match of.routes.owned {
                Some(_) => filled(of.home.len(), blank, what)?,
                None => Vec::new(),
            },
            brought,
        })
    }
}

/// Memory of a traversal.
struct Room<V> {
    /// Fields of owned targets and sources, if the caller's arrays have other points.
    brought: [Option<LocalFields>; 2],
    /// Results of the points that this rank owns.
    owned: Vec<V>,
    /// Results in the caller's order, if that has other points.
    results: Vec<V>,
}

/// Results of owned points, and room for those of the caller's points.
type Values<V> = (Vec<V>, Vec<V>);

/// Fields of owned targets and sources.
type OwnedFields<'a> = [Vec<Field<'a>>; 2];

/// The fields that were received, or the caller's fields if none were.
fn owned_fields<'a>(
    brought: &'a [Option<LocalFields>; 2],
    given: [&'a [Field<'a>]; 2],
) -> Result<OwnedFields<'a>, Refusal> {
    let side = |side: usize| match &brought[side] {
        Some(brought) => brought.fields(),
        None => Ok(given[side].to_vec()),
    };
    Ok([side(0)?, side(1)?])
}

impl<T: Scalar> RankedEngine<T> {
    /// The results of owned points, and room for those of the caller's points.
    fn evaluate<K: PairKernel>(
        &mut self,
        kernel: &K,
        of: [RankedSet; 2],
        given: [&[Field<'_>]; 2],
        room: Room<K::Output>,
        on: (Tag, Exchange),
    ) -> Result<Values<K::Output>, Failure> {
        let Room {
            mut brought,
            mut owned,
            results,
        } = room;
        self.post_fields(of, given, on)?;
        let posted = Instant::now();
        self.bring_fields(of, given, &mut brought, on)?;
        let lists = self.lists_for_sums(of);
        let evaluated = lists.and_then(|()| {
            let fields = owned_fields(&brought, given)?;
            self.evaluate_owned(kernel, of, &fields, &mut owned)?;
            Ok(fields)
        });
        // Other sets have halos under way too, which other ranks have sent in any case.
        let settled = self.settle();
        let fields = evaluated?;
        settled?;
        let halo = self.collect_halo(of[1], given[1], posted, on)?;
        self.evaluate_border(kernel, of, &fields, &halo, &mut owned)?;
        Ok((owned, results))
    }

    /// Sends fields to owners, and those of sources to halos. The others are told if this rank
    /// refuses.
    fn post_fields(
        &mut self,
        of: [RankedSet; 2],
        given: [&[Field<'_>]; 2],
        on: (Tag, Exchange),
    ) -> Result<(), Failure> {
        let (comm, mut posted) = (&mut self.comm, Ok(()));
        for (set, fields) in of.into_iter().zip(given) {
            if let Some(route) = &self.sets[set.0].routes.owned {
                let pack = |point: usize, message: &mut Vec<u8>| pack(fields, point, message);
                let sent = route.post(comm, on, width(fields), pack);
                posted = posted.and(sent);
            }
        }
        let fields = given[1];
        let pack = |point: usize, message: &mut Vec<u8>| pack(fields, point, message);
        let route = &self.sets[of[1].0].routes.halo;
        let sent = route.post(comm, on, width(fields), pack);
        posted.and(sent)
    }

    /// Waits for the fields of owned points that other ranks gave.
    fn bring_fields(
        &mut self,
        of: [RankedSet; 2],
        given: [&[Field<'_>]; 2],
        brought: &mut [Option<LocalFields>; 2],
        on: (Tag, Exchange),
    ) -> Result<(), Failure> {
        let comm = &mut self.comm;
        let me = comm.rank();
        for ((set, given), fields) in of.into_iter().zip(given).zip(brought) {
            if let (Some(route), Some(fields)) = (&self.sets[set.0].routes.owned, fields) {
                fields.copy(given, |copy| route.own(me, copy));
                let take = |place: usize, bytes: &[u8]| fields.take(place, bytes);
                route.collect(comm, on, width(given), take)?;
            }
        }
        Ok(())
    }

    /// Waits for the fields of the halo.
    fn collect_halo(
        &mut self,
        set: RankedSet,
        given: &[Field<'_>],
        posted: Instant,
        on: (Tag, Exchange),
    ) -> Result<LocalFields, Failure> {
        let (comm, own) = (&mut self.comm, &self.sets[set.0]);
        let (me, waited, route) = (comm.rank(), comm.waited, &own.routes.halo);
        let mut fields = LocalFields::with_room(given, own.halo.len())?;
        fields.copy(given, |copy| route.own(me, copy));
        let collected = route.collect(comm, on, width(given), |place, bytes| {
            fields.take(place, bytes);
        });
        if width(given) != 0 && comm.ranks() > 1 {
            self.clock.exchanged(posted, comm.waited - waited);
        }
        collected.map(|()| fields)
    }

    /// Finds the lists that deterministic sums are taken over.
    fn lists_for_sums(&mut self, of: [RankedSet; 2]) -> Result<(), Failure> {
        if !self.settings.deterministic {
            return Ok(());
        }
        self.summed.insert(of.map(|set| set.0));
        self.find_locally()
    }

    /// Evaluates a kernel for owned points among owned points.
    fn evaluate_owned<K: PairKernel>(
        &mut self,
        kernel: &K,
        of: [RankedSet; 2],
        fields: &OwnedFields<'_>,
        values: &mut [K::Output],
    ) -> Result<(), Refusal> {
        let [of, from] = of.map(|set| self.sets[set.0].names.owned);
        let traversal = self.engine.traverse(kernel, of, from);
        let traversal = traversal
            .targets(fields[0].as_slice())
            .sources(fields[1].as_slice());
        let traversal = if self.settings.deterministic {
            traversal.over_lists()
        } else {
            traversal
        };
        Ok(self.clock.interior(|| traversal.run_into(values))?)
    }

    /// Completes the results of points at the border.
    fn evaluate_border<K: PairKernel>(
        &mut self,
        kernel: &K,
        of: [RankedSet; 2],
        fields: &OwnedFields<'_>,
        halo: &LocalFields,
        values: &mut [K::Output],
    ) -> Result<(), Refusal> {
        let begin = Instant::now();
        let [targets, sources] = of.map(|set| &self.sets[set.0]);
        if !targets.meets(sources) {
            return Ok(());
        }
        let deterministic = self.settings.deterministic;
        if deterministic || targets.lists_around(of[0] == of[1]) {
            let (border, around) = (targets.names.complete, sources.names.complete);
            let (of, from) = (&targets.complete, &sources.complete);
            let mut of_targets = LocalFields::with_room(&fields[0], of.members.len())?;
            of_targets.copy(&fields[0], |copy| of.owned(copy));
            let mut of_sources = LocalFields::with_room(&fields[1], from.members.len())?;
            of_sources.copy(&fields[1], |copy| from.owned(copy));
            of_sources.copy(&halo.fields()?, |copy| from.halo(copy));
            let traversal = self.engine.traverse(kernel, border, around);
            let traversal = traversal
                .targets(of_targets.fields()?.as_slice())
                .sources(of_sources.fields()?.as_slice());
            let sums = match deterministic {
                true => traversal.over_lists().run()?,
                false => traversal.run()?,
            };
            for (at, place) in targets.border.iter().zip(&of.border) {
                values[*at as usize] = sums[*place as usize];
            }
        } else {
            let border = &targets.border;
            let mut of_targets = LocalFields::with_room(&fields[0], border.len())?;
            of_targets.copy(&fields[0], |copy| {
                let places = border.iter().enumerate();
                places.for_each(|(place, at)| copy(*at as usize, place));
            });
            let mut sums = with_room(border.len(), "the results of points at the border")?;
            sums.extend(border.iter().map(|at| values[*at as usize]));
            let (of, from) = (targets.names.border, sources.names.halo);
            let traversal = self.engine.traverse(kernel, of, from);
            let of_targets = of_targets.fields()?;
            traversal
                .targets(of_targets.as_slice())
                .sources(halo.fields()?.as_slice())
                .add_into(&mut sums)?;
            for (at, sum) in border.iter().zip(sums) {
                values[*at as usize] = sum;
            }
        }
        self.clock.border(begin.elapsed());
        Ok(())
    }

    /// Brings the results of `owned` points to their callers; `given` is the caller's array unless
    /// it has the same points.
    fn send_back<K: PairKernel>(
        &mut self,
        set: RankedSet,
        owned: Vec<K::Output>,
        mut given: Vec<K::Output>,
    ) -> Result<Vec<K::Output>, Error> {
        let Some(route) = &self.sets[set.0].routes.owned else {
            return Ok(owned);
        };
        let (comm, width) = (&mut self.comm, size_of::<f32>() * K::Output::COUNT);
        let exchange = comm.begin();
        let pack = |place: usize, message: &mut Vec<u8>| {
            owned[place].write(|_, number| message.extend_from_slice(&number.to_ne_bytes()));
        };
        let packed = route.post_back(comm, exchange, |_| width, pack);
        route.own(comm.rank(), |index, place| {
            given[index] = owned[place];
        });
        let collected = route.collect_back(comm, exchange, |index, rest| {
            let (numbers, _) = rest.get(..width)?.as_chunks();
            given[index] = K::Output::read(|channel| f32::from_ne_bytes(numbers[channel]));
            Some(width)
        });
        comm.agree(packed.and(collected), &mut [])?;
        Ok(given)
    }
}
