//! Points that change their rank, on the device.
//!
//! Only points that leave are in messages. Those that stay close the gaps in their order, and those
//! that come stand behind them, rank by rank.

use super::{
    departures::Departures,
    engine::DeviceRankedEngine,
    halos::message_to,
    kernels::{Came, Joined, Rows, keep_freed_memory},
    places::{Parcels, Places},
    set::{ID, POSITION},
    staging::{Packed, exactly, zeros},
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
use nearfield::device::cudarc::driver::{CudaSlice, CudaView, DeviceRepr, ValidAsZeroBits};
use nearfield_grid::{Bounds, OfProcess};
use std::time::Instant;

/// The first words of a point that travels: its position and its id.
const POINT: usize = POSITION + ID;
/// The purpose of memory, for messages.
const WHAT: &str = "points that change their rank";

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
    stay: usize,
    now: usize,
}

/// A set after a migration.
struct Merged {
    moved: Moved,
    positions: CudaSlice<f32>,
    ids: CudaSlice<u32>,
    /// Arrays of the caller.
    columns: Vec<CudaSlice<f32>>,
    surveyed: Surveyed,
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
    pub fn bring<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &CudaView<'_, T>,
        channels: usize,
    ) -> Result<CudaSlice<T>, Error> {
        let on = (MIGRATE, engine.comm.begin());
        let brought = match self.begin(engine, values, channels) {
            Err(refusal) => {
                engine.comm.refuse(on.0, on.1)?;
                Err(refusal)
            }
            Ok(Some((moved, packed))) => {
                let words = channels * size_of::<T>() / 4;
                let sent = (moved.leaving).post(&mut engine.comm, on, words, &packed)?;
                let came = engine.collect(&moved.sources, words, on)?;
                engine.device.staging.give_back(packed);
                sent.and(came).and_then(|came| {
                    let mut to = exactly(&engine.engine, channels * moved.now)?;
                    moved.join(engine, values, words, came_at(&came, 0, words), &mut to)?;
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
    fn begin<T: DeviceRepr>(
        &self,
        engine: &mut DeviceRankedEngine,
        values: &CudaView<'_, T>,
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
    /// An array in the new order, with `words` words a point.
    fn join<T: DeviceRepr>(
        &self,
        engine: &DeviceRankedEngine,
        values: &CudaView<'_, T>,
        words: usize,
        came: Came<'_>,
        to: &mut CudaSlice<T>,
    ) -> Result<(), Refusal> {
        let order = Joined {
            left: self.left.view(),
            stay: self.stay,
            now: self.now,
        };
        (engine.device.kernels).join(values, words, order, came, to)
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
        positions: &CudaView<'_, f32>,
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
                let home = self.bring_home(at, Ok(()), positions, &[], Some(&ids));
                home.map(|(moved, _)| moved)
            }
            Err(error) => Err(error),
        };
        if placed.is_err() {
            self.sets.truncate(at);
            if !self.device.is_inherited() {
                self.device.sets.truncate(at);
                if let Some(names) = added {
                    names.remove(&mut self.engine);
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
        positions: &CudaView<'_, f32>,
    ) -> Result<DeviceMigration, Error> {
        let (moved, _) = self.migrate_with(set, positions, &[])?;
        Ok(moved)
    }

    /// As [`migrate`](Self::migrate), with arrays of the caller and their values a point: those in
    /// the order after the migration are returned if [any point has
    /// moved](DeviceMigration::has_moved), and none if not. They travel in the messages of their
    /// points, which saves those of [`DeviceMigration::bring`].
    ///
    /// # Errors
    /// As [`migrate`](Self::migrate), and if an array has another length.
    pub fn migrate_with(
        &mut self,
        set: RankedSet,
        positions: &CudaView<'_, f32>,
        columns: &[(CudaView<'_, f32>, usize)],
    ) -> Result<(DeviceMigration, Vec<CudaSlice<f32>>), Error> {
        let checked = self.whole(positions).and_then(|()| {
            let (found, expected) = (positions.len() / POSITION, self.known(set)?.points);
            if found != expected {
                return Err(Refusal::new(format!(
                    "{found} positions for {expected} points: bring arrays along after a migration"
                )));
            }
            let wrong = |(values, channels): &&(CudaView<'_, f32>, usize)| {
                values.len() != channels * expected
            };
            if let Some((values, channels)) = columns.iter().find(wrong) {
                return Err(Refusal::new(format!(
                    "{} values for {expected} points with {channels} each: bring arrays in the \
                     order before",
                    values.len()
                )));
            }
            Ok(())
        });
        self.bring_home(set.0, checked, positions, columns, None)
    }

    /// Takes positions of a set, if `checked` has no refusal of this rank, and brings its points to
    /// their owners and halos.
    pub(super) fn bring_home(
        &mut self,
        at: usize,
        checked: Result<(), Refusal>,
        positions: &CudaView<'_, f32>,
        columns: &[(CudaView<'_, f32>, usize)],
        ids: Option<&[u64]>,
    ) -> Result<(DeviceMigration, Vec<CudaSlice<f32>>), Error> {
        if at >= self.sets.len() {
            // All ranks name the same set.
            return self.comm.agree(checked.and(Err(no_set(at))), &mut []);
        }
        let begin = Instant::now();
        let divided_anew = self.device.sets[at].domains != self.divided;
        let checked = checked.and_then(|()| keep_freed_memory(&self.engine));
        let surveyed = checked.and_then(|()| self.survey(at, positions, ids));
        let (mut surveyed, mut how, all) = self.agree_survey(at, surveyed)?;
        let lattice = self.lattice_with(at, &all)?;
        let fits = (self.domains.as_ref()).is_some_and(|domains| *domains.lattice() == lattice);
        if !fits {
            let before = std::mem::replace(&mut self.device.sets[at].bounds, all);
            let domains = self.undivided(lattice);
            let work = self.work_of_points(&domains, (at, positions));
            (self.divide(domains, work, equally))
                .inspect_err(|_| self.device.sets[at].bounds = before)?;
            let again = self.survey(at, positions, ids);
            (surveyed, how, _) = self.agree_survey(at, again)?;
        }
        let before = positions.len() / POSITION;
        let mut brought = Vec::new();
        let moved = match how {
            How::Home { .. } => None,
            How::Abroad => {
                let merged = self.move_points(at, positions, columns, surveyed.departures)?;
                let set = &mut self.device.sets[at];
                (set.positions, set.ids) = (merged.positions, merged.ids);
                set.points = merged.moved.now;
                (surveyed, brought) = (merged.surveyed, merged.columns);
                Some(OfProcess::new(merged.moved))
            }
        };
        let set = &mut self.device.sets[at];
        set.bounds = all;
        let copied = match &moved {
            Some(_) => Ok(()),
            None => {
                let mut to = set.positions.slice_mut(0..positions.len());
                let queue = self.engine.queue();
                let copied = queue.copy_on_device("positions of points", positions, &mut to);
                copied.map_err(Refusal::from)
            }
        };
        self.send_halo(at, copied, surveyed.departures)?;
        if let Some(moving) = self.moving.as_mut().filter(|_| divided_anew) {
            *moving += begin.elapsed();
        }
        Ok((DeviceMigration { before, moved }, brought))
    }

    /// Agrees on positions: the survey of this rank, whether all points are where they belong, and
    /// the extent of those of all ranks.
    fn agree_survey(
        &mut self,
        at: usize,
        surveyed: Result<Surveyed, Refusal>,
    ) -> Result<(Surveyed, How, Bounds), Error> {
        let own = surveyed
            .as_ref()
            .map_or(Bounds::EMPTY, |found| found.bounds);
        let home = (surveyed.as_ref()).is_ok_and(|found| found.how != How::Abroad);
        let mut minima = [0.0; 8];
        minima[..6].copy_from_slice(&ends(&own));
        minima[6..].copy_from_slice(&How::said(home, false));
        let to = |found: &Surveyed| found.departures.ranks();
        let links = &mut self.device.sets[at].links;
        let surveyed = links.agree(&mut self.comm, surveyed, to, &mut minima)?;
        Ok((
            surveyed,
            How::of([minima[6], minima[7]]),
            extent_of(&minima),
        ))
    }

    /// Moves points to their owners; nothing of the set has changed yet.
    fn move_points(
        &mut self,
        at: usize,
        positions: &CudaView<'_, f32>,
        columns: &[(CudaView<'_, f32>, usize)],
        departures: Departures,
    ) -> Result<Merged, Error> {
        let _span = tracing::debug_span!("ranks.move").entered();
        let exchange = self.comm.begin();
        let words = words_of(columns);
        let Departures { leaving, left, .. } = departures;
        let packed = self.pack_points(at, positions, columns, &leaving.places);
        let own = packed.as_ref().map(drop).map_err(Refusal::clone);
        let sent =
            self.device.sets[at]
                .links
                .post_each_with(&mut self.comm, exchange, |partner| {
                    message_to(&packed, &leaving, words, partner)
                })?;
        if let Ok(packed) = packed {
            self.device.staging.give_back(packed);
        }
        let came = self.receive(at, exchange, words)?;
        let merged = own
            .and(sent)
            .and(came)
            .and_then(|sources| self.merge(at, positions, columns, (leaving, left), sources));
        let set = &mut self.device.sets[at];
        if std::mem::take(&mut set.fresh) {
            set.links.renew();
        }
        let to = |merged: &Merged| merged.surveyed.departures.ranks();
        set.links.agree(&mut self.comm, merged, to, &mut [])
    }

    /// Gathers the points that leave.
    fn pack_points(
        &mut self,
        at: usize,
        positions: &CudaView<'_, f32>,
        columns: &[(CudaView<'_, f32>, usize)],
        leaving: &Places,
    ) -> Result<Packed, Refusal> {
        let device = &mut *self.device;
        let stride = words_of(columns);
        let mut packed = device.staging.room(&self.engine, stride * leaving.count)?;
        let rows = Rows {
            to: &mut packed,
            first: 0,
            stride,
        };
        (device.kernels).gather(positions, [POSITION; 2], &leaving.view(), rows)?;
        let ids = device.sets[at].id_words();
        let rows = Rows {
            to: &mut packed,
            first: POSITION,
            stride,
        };
        (device.kernels).gather(&ids, [ID; 2], &leaving.view(), rows)?;
        let mut first = POINT;
        for (values, channels) in columns {
            let rows = Rows {
                to: &mut packed,
                first,
                stride,
            };
            (device.kernels).gather(values, [*channels; 2], &leaving.view(), rows)?;
            first += channels;
        }
        let packed = device.staging.leave(&self.engine, WHAT, packed)?;
        packed.wait()
    }

    /// The set after `left` have left and those that have landed have come.
    fn merge(
        &mut self,
        at: usize,
        positions: &CudaView<'_, f32>,
        columns: &[(CudaView<'_, f32>, usize)],
        (leaving, left): (Parcels, Places),
        sources: Vec<Parcel>,
    ) -> Result<Merged, Refusal> {
        let _span = tracing::debug_span!("ranks.merge").entered();
        let stay = positions.len() / POSITION - left.count;
        let now = stay + sources.iter().map(|source| source.points).sum::<usize>();
        if now >= u32::MAX as usize {
            let many = nearfield_grid::ErrorKind::TooManyPoints(now);
            return Err(Refusal::new(many));
        }
        let came = self.device.staging.upload(&self.engine, WHAT)?;
        let moved = Moved {
            leaving,
            left,
            sources,
            stay,
            now,
        };
        let mut new = self.array(POSITION * now)?;
        let stride = words_of(columns);
        let of = came_at(&came, 0, stride);
        moved.join(self, positions, POSITION, of, &mut new)?;
        let mut ids = self.array(ID * now)?;
        let words = self.device.sets[at].id_words();
        let of = came_at(&came, POSITION, stride);
        moved.join(self, &words, ID, of, &mut ids)?;
        let (mut brought, mut first) = (Vec::new(), POINT);
        for (values, channels) in columns {
            let mut to = exactly(&self.engine, channels * now)?;
            let of = came_at(&came, first, stride);
            moved.join(self, values, *channels, of, &mut to)?;
            brought.push(to);
            first += channels;
        }
        let surveyed = self.survey(at, &new.slice(0..POSITION * now), None)?;
        if surveyed.how == How::Abroad {
            return Err(Refusal::new(
                "points have come to a rank that does not own them",
            ));
        }
        Ok(Merged {
            moved,
            positions: new,
            ids,
            columns: brought,
            surveyed,
        })
    }

    /// A new array of the device, of zeros.
    fn array<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>, Refusal> {
        zeros(&self.engine, len)
    }
}

/// Words of a point that travels with values of arrays.
fn words_of(columns: &[(CudaView<'_, f32>, usize)]) -> usize {
    let channels = columns.iter().map(|(_, channels)| channels);
    POINT + channels.sum::<usize>()
}

/// Words that came, from `first` on of every `stride`.
fn came_at(words: &CudaSlice<u32>, first: usize, stride: usize) -> Came<'_> {
    Came {
        words,
        first,
        stride,
    }
}

/// The refusal of a set that there is not.
fn no_set(at: usize) -> Refusal {
    Refusal::new(format!("there is no point set {at}"))
}
