//! Points that change their rank, on the device.
//!
//! Only points that leave are in messages. Those that come take their places, rank by rank, and
//! stand at the end if they are more; if they are fewer, points from the end take the rest. So most
//! points stay where they are, and arrays follow in place, in the time that the few others take.

use super::{
    arrays::{Column, Given, POINT, WHAT, extend, words_of},
    departures::Departures,
    engine::DeviceRankedEngine,
    halos::{Copied, message_to},
    kernels::{Refilled, Rows, keep_freed_memory},
    places::{Parcels, Places},
    rows::Words,
    set::{ID, POSITION},
    staging::{Leaving, Packed, exactly},
    survey::Surveyed,
};
use crate::{
    Error, RankedSet,
    communicator::MIGRATE,
    cut::equally,
    error::Refusal,
    ids::ids_of,
    plan::{How, ends, extent_of},
    routes::Parcel,
};
use nearfield::device::{DeviceBuffer, DeviceValue, DeviceView};
use nearfield_grid::{Bounds, OfProcess};
use std::{mem, sync::Arc, time::Instant};

/// The way that the points of a set took, made by [`DeviceRankedEngine::migrate`] and
/// [`DeviceRankedEngine::add_point_set`].
#[must_use = "arrays beside the positions are in their old order until they are brought along"]
pub struct DeviceMigration {
    /// Points before.
    before: usize,
    /// None if every point, of all ranks, is where it was.
    moved: Option<OfProcess<Moved>>,
}

/// The new order, and where it comes from.
pub(super) struct Moved {
    /// The points that have left.
    leaving: Parcels,
    /// The same, ascending.
    left: Places,
    /// Where points came from.
    sources: Vec<Parcel>,
    before: usize,
    now: usize,
}

/// New positions as this rank sees them.
struct Looked {
    survey: Surveyed,
    /// The words of the points that leave, if any do.
    packed: Option<Leaving>,
}

/// A set after a migration, before arrays follow.
struct Merged {
    moved: Moved,
    /// The words of points that came.
    came: Arc<DeviceBuffer<u32>>,
    departures: Departures,
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
        self.moved.as_ref().map_or(self.before, |moved| moved.now)
    }

    /// Whether any point, of any rank, has changed its rank. The same on all ranks. Arrays stay as
    /// they are if not.
    pub fn has_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// An array with `channels` values for each point, in the order after the migration, of one in
    /// the order before it. Collective: all ranks bring the same arrays in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if an array has another length, values are
    /// no whole number of 32-bit words, or memory is short.
    pub fn bring<T: DeviceValue>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &DeviceView<'_, T>,
        channels: usize,
    ) -> Result<DeviceBuffer<T>, Error> {
        let on = (MIGRATE, engine.comm.begin());
        let brought = match self.begin(engine, values, channels) {
            Err(refusal) => {
                engine.comm.refuse(on.0, on.1)?;
                Err(refusal)
            }
            Ok(Some((moved, packed))) => {
                let words = channels * size_of::<T>() / 4;
                let sent = (moved.leaving).post(&mut engine.comm, on, words, &packed)?;
                let came = engine.collect(&moved.sources, words, false, on)?;
                engine.device.staging.give_back(packed);
                sent.and(came).and_then(|came| {
                    let mut to = exactly(&engine.engine, channels * moved.now)?;
                    let kept = channels * moved.now.min(moved.before);
                    let queue = engine.engine.queue();
                    queue.copy_on_device(
                        WHAT,
                        &values.slice(0..kept),
                        &mut to.slice_mut(0..kept),
                    )?;
                    let kernels = &engine.device.kernels;
                    let array = Words::of(values, [words, 0], queue).to(&mut to, queue);
                    kernels.refill(&moved.order(), &[array], &came, words)?;
                    Ok(to)
                })
            }
            Ok(None) => exactly(&engine.engine, values.len()).and_then(|mut to| {
                let queue = engine.engine.queue();
                queue.copy_on_device(WHAT, values, &mut to.as_view_mut())?;
                Ok(to)
            }),
        };
        engine.comm.agree(brought, &mut [])
    }

    /// Checks an array, and gathers what leaves.
    fn begin<T: DeviceValue>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &DeviceView<'_, T>,
        channels: usize,
    ) -> Result<Option<(&Moved, Packed)>, Refusal> {
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
        let Some(moved) = self.moved.as_deref() else {
            return Ok(None);
        };
        let device = &mut *engine.device;
        let places = &moved.leaving.places;
        let mut packed = device.staging.room(&engine.engine, words * places.count)?;
        let rows = Rows {
            to: &mut packed,
            first: 0,
            stride: words,
        };
        (device.kernels).gather(values, [words; 2], &places.view(), rows)?;
        let packed = device.staging.leave(&engine.engine, WHAT, packed)?;
        Ok(Some((moved, packed.wait()?)))
    }
}

impl Moved {
    fn order(&self) -> Refilled<'_> {
        Refilled {
            left: self.left.view(),
            before: self.before,
            arrivals: self.sources.iter().map(|source| source.points).sum(),
        }
    }
}

impl DeviceRankedEngine {
    /// Adds a point set, and this rank's share of it: `positions`, three numbers a point, of any of
    /// the points, wherever they lie. They go to the ranks that own them, and arrays of the caller
    /// follow by what is returned. `ids` are the global ids of these points, each once among all
    /// ranks; without them points are numbered rank after rank.
    ///
    /// The first set that has points decides how space is divided among the ranks, by their
    /// number.
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
                self.bring_home(at, Ok(()), Given::Positions(positions), &mut [], Some(&ids))
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
    /// makes the owner of every point its caller. Arrays of the caller, that of the positions among
    /// them, follow by what is returned. Halos are under way afterwards, until a search or a
    /// traversal needs them.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) naming rank and point; the set then has
    /// its points in their order before. If the positions could be used, and memory was short for
    /// bringing them, the set is refused until a call of this has succeeded.
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
        let given = Given::Positions(positions);
        self.bring_home(set.0, checked, given, &mut [], None)
    }

    /// As [`migrate`](Self::migrate), with arrays of the caller and their values a point, which are
    /// brought into the order after the migration. The first has the positions, three values a
    /// point. Arrays travel in the messages of their points, and most points stay where they are:
    /// that takes much less time than [`DeviceMigration::bring`].
    ///
    /// Arrays may be longer than the points need, and an array that has become too short is
    /// replaced by a longer one, with room for more.
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
                    "the first array that travels has the positions, three values a point",
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
            Ok(points) => (Ok(()), Given::First(points)),
            Err(refusal) => (Err(refusal), Given::First(0)),
        };
        self.bring_home(set.0, checked, given, arrays, None)
    }

    /// Takes positions of a set, if `checked` has no refusal of this rank, and brings its points to
    /// their owners and halos.
    pub(super) fn bring_home(
        &mut self,
        at: usize,
        checked: Result<(), Refusal>,
        given: Given<'_>,
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
            // It may still read positions of before.
            self.join_border()
        });
        let looked = checked.and_then(|()| self.look_around(at, given, columns, ids));
        let (mut looked, mut how, all) = self.agree_survey(at, looked)?;
        let lattice = self.lattice_with(at, &all)?;
        let fits = (self.domains.as_ref()).is_some_and(|domains| *domains.lattice() == lattice);
        if !fits {
            let before = std::mem::replace(&mut self.device.sets[at].bounds, all);
            let domains = self.undivided(lattice);
            let work = self.work_of_points(&domains, (at, &given.view(columns)));
            (self.divide(domains, work, equally))
                .inspect_err(|_| self.device.sets[at].bounds = before)?;
            let again = self.look_around(at, given, columns, ids);
            (looked, how, _) = self.agree_survey(at, again)?;
        }
        let before = given.points();
        let (moved, followed, departures) = match how {
            How::Home { .. } => (None, Ok(Copied::Unsorted), looked.survey.departures),
            How::Abroad => {
                let (moved, departures, followed) = self.move_points(at, given, columns, looked)?;
                let ready = self.device.surveyed.take();
                let sorted = followed.map(|()| Copied::Sorted(ready));
                (Some(OfProcess::new(moved)), sorted, departures)
            }
        };
        let set = &mut self.device.sets[at];
        set.bounds = all;
        mem::swap(&mut set.positions, &mut set.next);
        self.send_halo(at, followed, departures)?;
        if let Some(moving) = self.moving.as_mut().filter(|_| divided_anew) {
            *moving += begin.elapsed();
        }
        Ok(DeviceMigration { before, moved })
    }

    /// Surveys new positions, and gathers the words of points that leave while ranks agree.
    fn look_around(
        &mut self,
        at: usize,
        given: Given<'_>,
        columns: &[Column<'_>],
        ids: Option<&[u64]>,
    ) -> Result<Looked, Refusal> {
        let positions = given.view(columns);
        let survey = self.survey(at, &positions, ids)?;
        let leaving = &survey.departures.leaving.places;
        let packed = match leaving.count {
            0 => None,
            _ => Some(self.pack_points(at, given, columns, leaving)?),
        };
        Ok(Looked { survey, packed })
    }

    /// Agrees on positions: the survey of this rank, whether all points are where they belong, and
    /// the extent of those of all ranks.
    fn agree_survey(
        &mut self,
        at: usize,
        looked: Result<Looked, Refusal>,
    ) -> Result<(Looked, How, Bounds), Error> {
        let own = looked.as_ref().map(|looked| &looked.survey);
        let home = (own.as_ref()).is_ok_and(|found| found.how != How::Abroad);
        let own = own.map_or(Bounds::EMPTY, |found| found.bounds);
        let mut minima = [0.0; 8];
        minima[..6].copy_from_slice(&ends(&own));
        minima[6..].copy_from_slice(&How::said(home, false));
        let to = |looked: &Looked| looked.survey.departures.ranks();
        let links = &mut self.device.sets[at].links;
        let looked = links.agree(&mut self.comm, looked, to, &mut minima)?;
        Ok((looked, How::of([minima[6], minima[7]]), extent_of(&minima)))
    }

    /// Moves points to their owners. The arrays of the caller and the ids follow once all ranks
    /// have what they need for it: after an error all are as before. The survey is of the points
    /// that this rank has then.
    fn move_points(
        &mut self,
        at: usize,
        given: Given<'_>,
        columns: &mut [Column<'_>],
        looked: Looked,
    ) -> Result<(Moved, Departures, Result<(), Refusal>), Error> {
        let _span = tracing::debug_span!("ranks.move").entered();
        let exchange = self.comm.begin();
        let words = words_of(given.beside(columns));
        let Departures {
            leaving,
            left,
            seen,
            border,
        } = looked.survey.departures;
        let packed = looked.packed.map(Leaving::wait).transpose();
        let own = packed.as_ref().map(drop).map_err(Refusal::clone);
        let sent =
            self.device.sets[at]
                .links
                .post_each_with(&mut self.comm, exchange, |partner| {
                    let packed = packed.as_ref().map(Option::as_ref);
                    message_to(packed, &leaving, words, partner)
                })?;
        if let Ok(Some(packed)) = packed {
            self.device.staging.give_back(packed);
        }
        let came = self.receive(at, exchange, words)?;
        let merged = own.and(sent).and(came).and_then(|sources| {
            let arrivals = sources.iter().map(|source| source.points).sum::<usize>();
            let unchanged = (left.count == 0 && arrivals == 0).then(|| Departures {
                leaving: Parcels::new(Vec::new(), left.clone()),
                left: left.clone(),
                seen,
                border,
            });
            let moved = Moved {
                before: given.points(),
                now: given.points() - left.count + arrivals,
                leaving,
                left,
                sources,
            };
            self.merge(at, columns, (moved, words), unchanged)
        });
        let set = &mut self.device.sets[at];
        if std::mem::take(&mut set.fresh) {
            set.links.renew();
        }
        let to = |merged: &Merged| merged.departures.ranks();
        let merged = match set.links.agree(&mut self.comm, merged, to, &mut []) {
            Ok(merged) => merged,
            Err(error) => {
                self.device.sets[at].broken = Some(error.to_string());
                return Err(error);
            }
        };
        let Merged {
            moved,
            came,
            departures,
        } = merged;
        // A kernel that cannot be started is told to others with the halo.
        let followed = self.bring_arrays(at, (&moved, &came, words), given, columns);
        Ok((moved, departures, followed))
    }

    /// Gathers the points that leave.
    fn pack_points(
        &mut self,
        at: usize,
        given: Given<'_>,
        columns: &[Column<'_>],
        leaving: &Places,
    ) -> Result<Leaving, Refusal> {
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

    /// Makes room for the points after a migration, and brings what has come to the device.
    fn make_room(
        &mut self,
        at: usize,
        moved: &Moved,
        columns: &mut [Column<'_>],
    ) -> Result<Arc<DeviceBuffer<u32>>, Refusal> {
        if moved.now >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(moved.now);
            return Err(Refusal::new(many));
        }
        let (engine, device) = (&self.engine, &mut *self.device);
        let set = &mut device.sets[at];
        let [before, now] = [moved.before, moved.now].map(|points| POSITION * points);
        extend(engine, &mut set.next, before, now)?;
        extend(engine, &mut set.ids, ID * moved.before, ID * moved.now)?;
        for (values, channels) in columns {
            extend(
                engine,
                values,
                *channels * moved.before,
                *channels * moved.now,
            )?;
        }
        device.staging.upload(engine, WHAT)
    }

    /// The positions of a set in the order after a migration, in which rows of `words` words came,
    /// and their survey, which is `unchanged` if only other ranks have lost or got points; and room
    /// for all that follows.
    fn merge(
        &mut self,
        at: usize,
        columns: &mut [Column<'_>],
        (moved, words): (Moved, usize),
        unchanged: Option<Departures>,
    ) -> Result<Merged, Refusal> {
        let _span = tracing::debug_span!("ranks.merge").entered();
        let came = self.make_room(at, &moved, columns)?;
        let device = &mut *self.device;
        let positions = &mut device.sets[at].next;
        let array = Words::in_place(positions, [POSITION, 0], self.engine.queue());
        (device.kernels).refill(&moved.order(), &[array], &came, words)?;
        // A survey may change the set, but reads nothing of it.
        let positions = std::mem::replace(positions, exactly(&self.engine, 0)?);
        let view = positions.slice(0..POSITION * moved.now);
        let surveyed = match unchanged {
            Some(departures) => self.sort_surveyed(at, &view).map(|()| departures),
            None => self.survey_again(at, &view, &moved.order()),
        };
        self.device.sets[at].next = positions;
        let departures = surveyed?;
        if !departures.leaving.to.is_empty() {
            return Err(Refusal::new(
                "points have come to a rank that does not own them",
            ));
        }
        Ok(Merged {
            moved,
            came,
            departures,
        })
    }

    /// Brings ids and the arrays of the caller into the order after a migration, in which rows of
    /// `words` words came.
    fn bring_arrays(
        &mut self,
        at: usize,
        (moved, came, words): (&Moved, &DeviceBuffer<u32>, usize),
        given: Given<'_>,
        columns: &mut [Column<'_>],
    ) -> Result<(), Refusal> {
        let (device, queue) = (&mut *self.device, self.engine.queue());
        let set = &mut device.sets[at];
        set.points = moved.now;
        let mut arrays = vec![Words::in_place(&mut set.ids, [ID, POSITION], queue)];
        let positions = columns.len() - given.beside(columns).len();
        let mut first = POINT;
        for (k, (values, channels)) in columns.iter_mut().enumerate() {
            // The caller's positions are those of the set.
            let of_position = k < positions;
            let begin = if of_position { 0 } else { first };
            arrays.push(Words::in_place(values, [*channels, begin], queue));
            first += if of_position { 0 } else { *channels };
        }
        (device.kernels).refill(&moved.order(), &arrays, came, words)
    }
}

/// The refusal of a set that there is not.
fn no_set(at: usize) -> Refusal {
    Refusal::new(format!("there is no point set {at}"))
}
