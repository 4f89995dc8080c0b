//! Points that change their rank, on the device.
//!
//! Only points that leave are sent. Points that arrive take their places, rank by rank, and are
//! appended if they are more; if they are fewer, points from the end fill the gaps. So most points
//! stay where they are, and arrays are remapped in place, in time proportional to the points that
//! move.

use super::{
    arrays::{Column, NewPositions, POINT, WHAT, extend, words_of},
    destinations::Destinations,
    engine::DeviceRankedEngine,
    halos::{Copied, message_to},
    kernels::Refill,
    places::{Places, SendLists},
    pool::keep_freed_memory,
    rows::Words,
    set::{ID, POSITION},
    staging::{Outgoing, Packed, exactly},
    survey::Surveyed,
};
use crate::{
    Error, RankedSet,
    communicator::MIGRATE,
    cut::equally,
    error::{Failure, Refusal},
    ids::ids_of,
    plan::{Placement, ends, extent_of},
    routes::Peer,
};
use nearfield::device::{DeviceBuffer, DeviceValue, DeviceView};
use nearfield_grid::{Bounds, OfProcess};
use std::{mem, sync::Arc, time::Instant};

/// How the points of a set have moved between ranks, from [`DeviceRankedEngine::migrate`] and
/// [`DeviceRankedEngine::add_point_set`].
#[must_use = "other arrays than the positions stay in the old order until they are brought along"]
pub struct DeviceMigration {
    /// Number of points before.
    before: usize,
    /// `None` if no point of any rank has moved.
    remap: Option<OfProcess<Remap>>,
}

/// The permutation from the order before a migration to the order after it, with the points that
/// were sent and received.
pub(super) struct Remap {
    /// The points that have left.
    leaving: SendLists,
    /// The same, ascending.
    left: Places,
    /// The ranks that points came from.
    sources: Vec<Peer>,
    before: usize,
    now: usize,
}

/// The survey of new positions, and what was packed of it.
struct PackedSurvey {
    survey: Surveyed,
    /// The words of the points that leave, if any do.
    packed: Option<Outgoing>,
}

/// A set after a migration, before arrays follow.
struct Merged {
    remap: Remap,
    /// The words of points that have arrived.
    came: Arc<DeviceBuffer<u32>>,
    destinations: Destinations,
}

/// Points before and after, if any have moved.
impl std::fmt::Debug for DeviceMigration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceMigration")
            .field("before", &self.before)
            .field("now", &self.points())
            .finish_non_exhaustive()
    }
}

impl DeviceMigration {
    /// Points of this rank after the migration.
    pub fn points(&self) -> usize {
        self.remap.as_ref().map_or(self.before, |remap| remap.now)
    }

    /// Returns true if any point has changed its rank; the same on all ranks. Otherwise arrays stay
    /// as they are.
    pub fn has_moved(&self) -> bool {
        self.remap.is_some()
    }

    /// Brings an array with `channels` values per point from the order before the migration into
    /// the order after it. Collective: all ranks bring the same arrays in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if an array does not have this length, a
    /// value is not a whole number of 32-bit words, or memory is short.
    pub fn bring<T: DeviceValue>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &DeviceView<'_, T>,
        channels: usize,
    ) -> Result<DeviceBuffer<T>, Error> {
        let on = (MIGRATE, engine.comm.begin());
        let brought = match self.begin(engine, values, channels) {
            Err(refusal) => Err(engine.comm.refuse(on, refusal)),
            Ok(Some((remap, packed))) => {
                let words = channels * size_of::<T>() / 4;
                let sent = (remap.leaving).post(&mut engine.comm, on, words, &packed);
                let came = engine.collect(&remap.sources, words, false, on);
                engine.device.staging.give_back(packed);
                sent.and(came).and_then(|came| {
                    let mut to = exactly(&engine.engine, channels * remap.now)?;
                    let kept = channels * remap.now.min(remap.before);
                    let queue = engine.engine.queue();
                    queue.copy_on_device(
                        WHAT,
                        &values.slice(0..kept),
                        &mut to.slice_mut(0..kept),
                    )?;
                    let kernels = &engine.device.kernels;
                    let array = Words::of(values, [words, 0], queue).to(&mut to, queue);
                    kernels.refill(&remap.order(), &[array], &came, words)?;
                    Ok(to)
                })
            }
            Ok(None) => exactly(&engine.engine, values.len())
                .map_err(Failure::from)
                .and_then(|mut to| {
                    let queue = engine.engine.queue();
                    queue.copy_on_device(WHAT, values, &mut to.as_view_mut())?;
                    Ok(to)
                }),
        };
        engine.comm.agree(brought, &mut [])
    }

    /// Checks an array, and gathers the values that leave.
    fn begin<T: DeviceValue>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &DeviceView<'_, T>,
        channels: usize,
    ) -> Result<Option<(&Remap, Packed)>, Refusal> {
        engine.engine.usable()?;
        let (found, expected) = (values.len(), self.before * channels);
        if found != expected || !size_of::<T>().is_multiple_of(4) {
            return Err(Refusal::new(format!(
                "{found} values of {} bytes for {} points with {channels} each: bring arrays in \
                 the order before, of 32-bit words",
                size_of::<T>(),
                self.before
            )));
        }
        let words = channels * size_of::<T>() / 4;
        let Some(remap) = self.remap.as_deref() else {
            return Ok(None);
        };
        let device = &mut *engine.device;
        let places = &remap.leaving.places;
        let mut packed = device.staging.room(&engine.engine, words * places.count)?;
        (device.kernels).gather_whole(values, words, &places.view(), &mut packed)?;
        let packed = device.staging.leave(&engine.engine, WHAT, packed)?;
        Ok(Some((remap, packed.wait()?)))
    }
}

impl Remap {
    fn order(&self) -> Refill<'_> {
        Refill {
            left: self.left.view(),
            before: self.before,
            arrivals: self.sources.iter().map(|source| source.points).sum(),
        }
    }
}

impl DeviceRankedEngine {
    /// Adds a point set. `positions` are this rank's share of the points, three numbers per point:
    /// any of them, wherever they are. They go to the ranks that own them, and the returned
    /// migration moves the caller's arrays. `ids` are the global ids of these points, unique among
    /// all ranks; without them points are numbered rank after rank.
    ///
    /// The first set with points determines how space is divided among the ranks: into equal
    /// numbers of points.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point of a position that
    /// cannot be used, or an id that was given twice; nothing is added then.
    pub fn add_point_set(
        &mut self,
        positions: &DeviceView<'_, f32>,
        ids: Option<&[u64]>,
    ) -> Result<(RankedSet, DeviceMigration), Error> {
        let points = positions.len() / POSITION;
        let whole = self.whole(positions);
        let (ids, ()) = ids_of(&mut self.comm, points, ids, whole)?;
        let at = self.sets.len();
        let made = self.make_set(at, &ids);
        let added = made.as_ref().ok().map(|set| set.names);
        let placed = match self.comm.agree(made, &mut []) {
            Ok(set) => {
                self.device.sets.push(set);
                self.sets.push(RankedSet(at));
                self.bring_home(
                    at,
                    Ok(()),
                    NewPositions::Positions(positions),
                    &mut [],
                    Some(&ids),
                )
            }
            Err(error) => Err(error),
        };
        if placed.is_err() {
            self.sets.truncate(at);
            if !self.device.is_inherited() {
                self.device.sets.truncate(at);
                if let Some(names) = added {
                    names.remove(&mut self.engine, &mut self.device.border);
                }
            }
        }
        Ok((RankedSet(at), placed?))
    }

    /// Gives the points of a set new positions, three numbers each in the order of its points, and
    /// moves every point to its owner. The returned migration moves the caller's arrays, including
    /// that of the positions. Halos are under way afterwards, until a search or a traversal needs
    /// them.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point; the set then has
    /// its points in the old order. If the positions are fine but memory was short while points
    /// travelled, the set is refused until this method has succeeded.
    pub fn migrate(
        &mut self,
        set: RankedSet,
        positions: &DeviceView<'_, f32>,
    ) -> Result<DeviceMigration, Error> {
        let checked = self.whole(positions).and_then(|()| {
            let (found, expected) = (positions.len() / POSITION, self.known(set)?.points);
            if found == expected {
                return Ok(());
            }
            Err(Refusal::new(format!(
                "{found} positions for {expected} points: bring arrays along after a migration"
            )))
        });
        let given = NewPositions::Positions(positions);
        self.bring_home(set.0, checked, given, &mut [], None)
    }

    /// As [`migrate`](Self::migrate), and brings arrays of the caller, given with their values per
    /// point, into the order after the migration. The first array has the positions, three values
    /// per point. Arrays travel in the messages of their points, and most points stay where they
    /// are, so this takes much less time than [`DeviceMigration::bring`].
    ///
    /// Arrays may be longer than necessary. An array that has become too short is replaced by a
    /// longer one with some room.
    ///
    /// # Errors
    /// As [`migrate`](Self::migrate), and if an array has too few values.
    pub fn migrate_with(
        &mut self,
        set: RankedSet,
        arrays: &mut [(&mut DeviceBuffer<f32>, usize)],
    ) -> Result<DeviceMigration, Error> {
        let expected = self.known(set).map(|set| set.points);
        let checked = expected.and_then(|expected| {
            if arrays.first().is_none_or(|(_, values)| *values != POSITION) {
                return Err(Refusal::new(
                    "the first array must have the positions, three values per point",
                ));
            }
            let short = |(values, channels): &&Column<'_>| values.len() < channels * expected;
            match arrays.iter().find(short) {
                None => Ok(expected),
                Some((values, channels)) => Err(Refusal::new(format!(
                    "{} values for {expected} points with {channels} each: bring arrays in the \
                     order before",
                    values.len()
                ))),
            }
        });
        let (checked, given) = match checked {
            Ok(points) => (Ok(()), NewPositions::First(points)),
            Err(refusal) => (Err(refusal), NewPositions::First(0)),
        };
        self.bring_home(set.0, checked, given, arrays, None)
    }

    /// Takes positions of a set, unless `checked` has a refusal of this rank, and sends its points
    /// to owners and halos.
    pub(super) fn bring_home(
        &mut self,
        at: usize,
        checked: Result<(), Refusal>,
        given: NewPositions<'_>,
        columns: &mut [Column<'_>],
        ids: Option<&[u64]>,
    ) -> Result<DeviceMigration, Error> {
        if at >= self.sets.len() {
            // All ranks name the same set.
            return self.comm.agree(checked.and(Err(no_set(at))), &mut []);
        }
        let begin = Instant::now();
        let divided_anew = self.device.sets[at].domains != self.divided;
        let checked = checked.and_then(|()| {
            keep_freed_memory(&self.engine)?;
            // The border may still read the old positions.
            self.join_border()
        });
        let surveyed = checked.and_then(|()| self.survey_and_pack(at, given, columns, ids));
        let (mut surveyed, mut placement, all) = self.agree_survey(at, surveyed)?;
        let lattice = self.lattice_with(at, &all)?;
        if !self.division.has(&lattice) {
            let before = std::mem::replace(&mut self.device.sets[at].bounds, all);
            let domains = self.undivided(lattice);
            let work = self.work_of_points(&domains, (at, &given.view(columns)));
            (self.divide(domains, work, equally))
                .inspect_err(|_| self.device.sets[at].bounds = before)?;
            let again = self.survey_and_pack(at, given, columns, ids);
            (surveyed, placement, _) = self.agree_survey(at, again)?;
        }
        let before = given.points();
        let (remap, followed, destinations) = if placement == Placement::Away {
            let (remap, destinations, followed) = self.move_points(at, given, columns, surveyed)?;
            let ready = self.device.surveyed.take();
            let sorted = followed.map(|()| Copied::Sorted(ready));
            (Some(OfProcess::new(remap)), sorted, destinations)
        } else {
            (None, Ok(Copied::Unsorted), surveyed.survey.destinations)
        };
        let set = &mut self.device.sets[at];
        set.bounds = all;
        mem::swap(&mut set.positions, &mut set.next);
        self.send_halo(at, followed, destinations)?;
        if let Some(moving) = self.moving.as_mut().filter(|_| divided_anew) {
            *moving += begin.elapsed();
        }
        Ok(DeviceMigration { before, remap })
    }

    /// Surveys new positions, and starts to gather the words of points that leave.
    fn survey_and_pack(
        &mut self,
        at: usize,
        given: NewPositions<'_>,
        columns: &[Column<'_>],
        ids: Option<&[u64]>,
    ) -> Result<PackedSurvey, Refusal> {
        let positions = given.view(columns);
        let survey = self.survey(at, &positions, ids)?;
        let leaving = &survey.destinations.leaving.places;
        let packed = match leaving.count {
            0 => None,
            _ => Some(self.pack_points(at, given, columns, leaving)?),
        };
        Ok(PackedSurvey { survey, packed })
    }

    /// Agrees on positions. Returns the survey of this rank, whether all points are on their
    /// owners, and the extent of the points of all ranks.
    fn agree_survey(
        &mut self,
        at: usize,
        surveyed: Result<PackedSurvey, Refusal>,
    ) -> Result<(PackedSurvey, Placement, Bounds), Error> {
        let own = surveyed.as_ref().map(|surveyed| &surveyed.survey);
        let placement = (own.as_ref()).map_or(Placement::Away, |found| found.placement);
        let own = own.map_or(Bounds::EMPTY, |found| found.bounds);
        let mut minima = [0.0; 7];
        minima[..6].copy_from_slice(&ends(&own));
        minima[6] = placement.number();
        let to = |surveyed: &PackedSurvey| surveyed.survey.destinations.ranks();
        let links = &mut self.device.sets[at].links;
        let surveyed = links.agree(&mut self.comm, surveyed, to, &mut minima)?;
        let placement = Placement::smallest(minima[6]);
        Ok((surveyed, placement, extent_of(&minima)))
    }

    /// Moves points to their owners. The caller's arrays and the ids are remapped once all ranks
    /// have all they need, so after an error they are unchanged. The returned survey is of the
    /// points after the migration.
    fn move_points(
        &mut self,
        at: usize,
        given: NewPositions<'_>,
        columns: &mut [Column<'_>],
        surveyed: PackedSurvey,
    ) -> Result<(Remap, Destinations, Result<(), Refusal>), Error> {
        let _span = tracing::debug_span!("ranks.move").entered();
        let exchange = self.comm.begin();
        let words = words_of(given.beside(columns));
        let Destinations {
            leaving,
            left,
            ghosts,
            border,
        } = surveyed.survey.destinations;
        let packed = surveyed.packed.map(Outgoing::wait).transpose();
        let own = packed.as_ref().map(drop);
        let own = own.map_err(|refusal| Failure::from(refusal.clone()));
        let sent = self.device.sets[at]
            .links
            .post_each_with(&mut self.comm, exchange, |partner| {
                let packed = packed.as_ref().map(Option::as_ref);
                message_to(packed, &leaving, words, partner)
            });
        if let Ok(Some(packed)) = packed {
            self.device.staging.give_back(packed);
        }
        let came = self.receive(at, exchange, words);
        let merged = own.and(sent).and(came).and_then(|sources| {
            let arrivals = sources.iter().map(|source| source.points).sum::<usize>();
            let unchanged = (left.count == 0 && arrivals == 0).then(|| Destinations {
                leaving: SendLists::new(Vec::new(), left.clone()),
                left: left.clone(),
                ghosts,
                border,
            });
            let remap = Remap {
                before: given.points(),
                now: given.points() - left.count + arrivals,
                leaving,
                left,
                sources,
            };
            Ok(self.merge(at, columns, (remap, words), unchanged)?)
        });
        let set = &mut self.device.sets[at];
        if std::mem::take(&mut set.fresh) {
            set.links.renew();
        }
        let to = |merged: &Merged| merged.destinations.ranks();
        let merged = match set.links.agree(&mut self.comm, merged, to, &mut []) {
            Ok(merged) => merged,
            Err(error) => {
                self.device.sets[at].broken = Some(error.to_string());
                return Err(error);
            }
        };
        let Merged {
            remap,
            came,
            destinations,
        } = merged;
        // If a kernel cannot be started, the others learn of it with the halo.
        let followed = self.bring_arrays(at, (&remap, &came, words), given, columns);
        Ok((remap, destinations, followed))
    }

    /// Gathers the words of the points that leave.
    fn pack_points(
        &mut self,
        at: usize,
        given: NewPositions<'_>,
        columns: &[Column<'_>],
        leaving: &Places,
    ) -> Result<Outgoing, Refusal> {
        let (device, queue) = (&mut *self.device, self.engine.queue());
        let beside = given.beside(columns);
        let stride = words_of(beside);
        let mut packed = device.staging.room(&self.engine, stride * leaving.count)?;
        let (positions, ids) = (given.view(columns), device.sets[at].id_words());
        let values = beside.iter().map(|(values, channels)| {
            let view = values.slice(0..channels * given.points());
            (view, *channels)
        });
        let values: Vec<_> = values.collect();
        let mut arrays = vec![
            Words::of(&positions, [POSITION, 0], queue),
            Words::of(&ids, [ID, POSITION], queue),
        ];
        let mut first = POINT;
        for (values, channels) in &values {
            arrays.push(Words::of(values, [*channels, first], queue));
            first += channels;
        }
        (device.kernels).gather_rows(&arrays, &leaving.view(), &mut packed, stride)?;
        drop(arrays);
        device.staging.leave(&self.engine, WHAT, packed)
    }

    /// Makes room for the points after a migration, and uploads the points that have arrived.
    fn make_room(
        &mut self,
        at: usize,
        remap: &Remap,
        columns: &mut [Column<'_>],
    ) -> Result<Arc<DeviceBuffer<u32>>, Refusal> {
        if remap.now >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(remap.now);
            return Err(Refusal::new(many));
        }
        let (engine, device) = (&self.engine, &mut *self.device);
        let set = &mut device.sets[at];
        let [before, now] = [remap.before, remap.now].map(|points| POSITION * points);
        extend(engine, &mut set.next, before, now)?;
        extend(engine, &mut set.ids, ID * remap.before, ID * remap.now)?;
        for (values, channels) in columns {
            extend(
                engine,
                values,
                *channels * remap.before,
                *channels * remap.now,
            )?;
        }
        device.staging.upload(engine, WHAT)
    }

    /// Remaps the positions of a set after a migration, in which rows of `words` words arrived,
    /// surveys them (`unchanged` is the survey if only other ranks have lost or got points), and
    /// makes room for the arrays that follow.
    fn merge(
        &mut self,
        at: usize,
        columns: &mut [Column<'_>],
        (remap, words): (Remap, usize),
        unchanged: Option<Destinations>,
    ) -> Result<Merged, Refusal> {
        let _span = tracing::debug_span!("ranks.merge").entered();
        let came = self.make_room(at, &remap, columns)?;
        let device = &mut *self.device;
        let positions = &mut device.sets[at].next;
        let array = Words::in_place(positions, [POSITION, 0], self.engine.queue());
        (device.kernels).refill(&remap.order(), &[array], &came, words)?;
        // A survey may change the set, but does not read these.
        let positions = std::mem::replace(positions, exactly(&self.engine, 0)?);
        let view = positions.slice(0..POSITION * remap.now);
        let surveyed = match unchanged {
            Some(destinations) => self.sort_surveyed(at, &view).map(|()| destinations),
            None => self.survey_again(at, &view, &remap.order()),
        };
        self.device.sets[at].next = positions;
        let destinations = surveyed?;
        if !destinations.leaving.to.is_empty() {
            return Err(Refusal::new(
                "points have come to a rank that does not own them",
            ));
        }
        Ok(Merged {
            remap,
            came,
            destinations,
        })
    }

    /// Remaps ids and the caller's arrays after a migration, in which rows of `words` words
    /// arrived.
    fn bring_arrays(
        &mut self,
        at: usize,
        (remap, came, words): (&Remap, &DeviceBuffer<u32>, usize),
        given: NewPositions<'_>,
        columns: &mut [Column<'_>],
    ) -> Result<(), Refusal> {
        let (device, queue) = (&mut *self.device, self.engine.queue());
        let set = &mut device.sets[at];
        set.points = remap.now;
        let mut arrays = vec![Words::in_place(&mut set.ids, [ID, POSITION], queue)];
        let positions = columns.len() - given.beside(columns).len();
        let mut first = POINT;
        for (k, (values, channels)) in columns.iter_mut().enumerate() {
            // The positions in the caller's arrays are those of the set.
            let of_position = k < positions;
            let begin = if of_position { 0 } else { first };
            arrays.push(Words::in_place(values, [*channels, begin], queue));
            first += if of_position { 0 } else { *channels };
        }
        (device.kernels).refill(&remap.order(), &arrays, came, words)
    }
}

/// The refusal of a set that does not exist.
fn no_set(at: usize) -> Refusal {
    Refusal::new(format!("there is no point set {at}"))
}
