//! The survey of a rank's points on the device: their extent, and the points that other ranks need.
//!
//! The device looks every point up in a [table of classes](super::classes), writes down those
//! outside the interior, as [`CellClasses::survey`](crate::cell_classes::CellClasses::survey)
//! returns them, and splits them into [`Destinations`], all without waiting for the host, which
//! only reads numbers. If points have left the box of the table, the host makes another table, and
//! the device repeats the survey.

use super::{
    arrays::extend,
    classes::{ClassTable, SEVERAL},
    destinations::{Destinations, ListTable, Table},
    engine::DeviceRankedEngine,
    kernels::{DeviceClasses, FOUND, NOT_FINITE, Refill, SPECIAL, UNKNOWN},
    places::Places,
    set::{ID, POSITION, id_of},
    staging::{behind, download, zeros},
};
use crate::{cell_classes::Special, error::Refusal, placing, plan::Placement, scalar::Scalar};
use nearfield::device::DeviceView;
use nearfield_grid::{
    Bounds, Lattice,
    memory::{collected, filled, make_room_for_one, with_room},
};
use std::sync::Arc;

/// The survey of a set's positions on this rank.
pub(super) struct Surveyed {
    pub(super) bounds: Bounds,
    pub(super) destinations: Destinations,
    /// Whether all points are on their owners.
    pub(super) placement: Placement,
}

/// The purpose of memory for positions, for messages.
const NUMBERS: &str = "positions of points";
/// The purpose of memory for classes, for messages.
const CLASSES: &str = "classes of points";

/// The number with this sort key of places.cu.
fn number_of(key: u32) -> f64 {
    let bits = if key >> 31 == 1 {
        key & !(1 << 31)
    } else {
        !key
    };
    f64::from(f32::from_bits(bits))
}

/// The extent in the numbers of a survey; empty without points.
fn extent_of(found: &[u32]) -> Bounds {
    if found[0] == 0 {
        return Bounds::EMPTY;
    }
    Bounds {
        min: std::array::from_fn(|axis| number_of(!found[3 + axis])),
        max: std::array::from_fn(|axis| number_of(found[axis])),
    }
}

impl DeviceRankedEngine {
    /// Surveys new positions of a set, and copies them to the array that replaces the set's own if
    /// all ranks accept their positions.
    pub(super) fn survey(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
        ids: Option<&[u64]>,
    ) -> Result<Surveyed, Refusal> {
        let _span = tracing::debug_span!("ranks.survey").entered();
        let points = positions.len() / POSITION;
        let begun = self.start_look(at, positions, None)?;
        // The device copies while the host reads the numbers.
        let next = &mut self.device.sets[at].next;
        extend(&self.engine, next, 0, positions.len())?;
        let mut to = next.slice_mut(0..positions.len());
        (self.engine.queue()).copy_on_device(NUMBERS, positions, &mut to)?;
        let mut bounds = self.look_done(begun)?;
        let corners = [bounds.min, bounds.max].map(|corner| corner.map(|x| x as f32));
        let corners = Bounds::of(f32::positions(&corners), &self.division.domain);
        if self.device.found[NOT_FINITE] != 0 || (points != 0 && corners.is_err()) {
            bounds = self.extent_on_host(at, positions, ids)?;
        }
        let destinations = if points != 0 && self.ranks() > 1 && self.division.domains.is_some() {
            if self.fit_table(at, &bounds, points)? {
                self.look(at, positions)?;
            }
            self.destinations(at, positions)?
        } else {
            Destinations::none(&self.engine)?
        };
        Ok(Surveyed {
            bounds,
            placement: Placement::new(destinations.leaving.to.is_empty(), false),
            destinations,
        })
    }

    /// Surveys the points of a set after a migration. The engine gets their positions too, and
    /// sorts them while the host reads the numbers.
    pub(super) fn survey_again(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
        order: &Refill<'_>,
    ) -> Result<Destinations, Refusal> {
        let _span = tracing::debug_span!("ranks.survey").entered();
        self.start_look(at, positions, Some(order))?;
        self.sort_surveyed(at, positions)?;
        if positions.is_empty() {
            return Destinations::none(&self.engine);
        }
        self.read_found()?;
        if self.device.found[UNKNOWN] != 0 {
            // Points may have arrived from outside the table.
            let bounds = self.look(at, positions)?;
            if self.fit_table(at, &bounds, positions.len() / POSITION)? {
                self.look(at, positions)?;
            }
        }
        self.destinations(at, positions)
    }

    /// Gives the engine positions of a set that were surveyed.
    pub(super) fn sort_surveyed(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
    ) -> Result<(), Refusal> {
        let device = &mut *self.device;
        device.surveyed = Some(behind(&self.engine)?);
        Ok(self.engine.update(device.sets[at].names.owned, positions)?)
    }

    /// One pass of the device over positions; returns the extent. It also splits the special points
    /// if there is a table, up to the room for them.
    fn look(&mut self, at: usize, positions: &DeviceView<'_, f32>) -> Result<Bounds, Refusal> {
        let begun = self.start_look(at, positions, None)?;
        self.look_done(begun)
    }

    /// Waits for a pass that was started, and returns the extent.
    fn look_done(&mut self, begun: bool) -> Result<Bounds, Refusal> {
        if !begun {
            return Ok(Bounds::EMPTY);
        }
        self.read_found()?;
        Ok(extent_of(&self.device.found))
    }

    /// Starts such a pass; returns false without points. After a migration it classifies only the
    /// points at changed places if the old ones were surveyed.
    fn start_look(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
        order: Option<&Refill<'_>>,
    ) -> Result<bool, Refusal> {
        let (device, points) = (&mut *self.device, positions.len() / POSITION);
        device.surveyed = None;
        if points == 0 {
            device.found.fill(0);
            device.survey.of = None;
            return Ok(false);
        }
        let table = &mut device.sets[at].table;
        let (table, _) = match table {
            Some(table) => table,
            None => {
                let host = ClassTable::empty();
                let lattice = Lattice::new(
                    self.division.radius,
                    self.division.domain,
                    1,
                    &Bounds::EMPTY,
                );
                let lattice = lattice.map_err(Refusal::new)?;
                let made = Table {
                    device: DeviceClasses::new(&self.engine, &host, &lattice)?,
                    lists: ListTable::new(
                        &self.engine,
                        &self.division.cell_classes,
                        self.comm.rank(),
                    )?,
                    host,
                };
                table.insert((made, 0))
            }
        };
        let (kernels, survey) = (&device.kernels, &mut device.survey);
        survey.fit_lists(&self.engine, table.lists.masks.lists)?;
        match order.filter(|order| survey.knows(at, order.before, points)) {
            Some(order) => kernels.survey_again(positions, order, &table.device, survey)?,
            None => kernels.survey(&self.engine, positions, &table.device, survey)?,
        }
        survey.of = Some((at, points));
        if self.comm.ranks() > 1 {
            kernels.write_special(points, survey)?;
            kernels.split(&self.engine, &table.lists.masks, survey)?;
        }
        self.ask_found()?;
        Ok(true)
    }

    /// Starts to copy the numbers of a survey and a split to the host.
    fn ask_found(&mut self) -> Result<(), Refusal> {
        let device = &mut *self.device;
        let (from, found) = (&device.survey.found, &mut device.found);
        if found.len() != from.len() {
            device.copy = self.engine.host_copy(from.len())?;
            *found = filled(from.len(), 0, NUMBERS)?;
        }
        let (queue, to) = (self.engine.queue(), &mut device.copy);
        Ok(queue.start_host_copy(NUMBERS, &from.as_view(), to)?)
    }

    /// Waits for that copy.
    fn read_found(&mut self) -> Result<(), Refusal> {
        let device = &mut *self.device;
        device.found.copy_from_slice(device.copy.read()?);
        Ok(())
    }

    /// The destinations of the points of the last pass. If there was too little room, or the table
    /// lacks classes, the device repeats the pass or the split.
    fn destinations(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
    ) -> Result<Destinations, Refusal> {
        let mut classified = false;
        loop {
            let device = &mut *self.device;
            let (found, survey) = (&device.found, &mut device.survey);
            let (special, begins) = (found[SPECIAL] as usize, &found[FOUND..]);
            let listed = begins.last().map_or(0, |end| *end as usize);
            if special > survey.room() {
                survey.make_room(&self.engine, special)?;
                self.look(at, positions)?;
                continue;
            }
            if found[UNKNOWN] != 0 && !classified {
                self.classify(at, positions, special)?;
                classified = true;
            } else if listed > survey.places.len() {
                survey.places = Arc::new(zeros(&self.engine, listed + listed / 4)?);
            } else if let Some((table, _)) = &device.sets[at].table {
                let destinations = Destinations::new(&table.lists, &survey.places, begins);
                survey.suit(&self.engine, special, listed);
                return Ok(destinations);
            }
            let device = &mut *self.device;
            if let Some((table, _)) = &device.sets[at].table {
                let masks = &table.lists.masks;
                (device.kernels).split(&self.engine, masks, &mut device.survey)?;
                device.surveyed = None;
            }
            self.ask_found()?;
            self.read_found()?;
        }
    }

    /// The extent, computed on the host, which can name a bad point.
    fn extent_on_host(
        &self,
        at: usize,
        positions: &DeviceView<'_, f32>,
        ids: Option<&[u64]>,
    ) -> Result<Bounds, Refusal> {
        let numbers = download(&self.engine, NUMBERS, positions)?;
        let own;
        let ids = match (ids, self.sets.get(at)) {
            (Some(ids), _) => ids,
            (None, Some(_)) => {
                own = self.ids_on_host(at)?;
                &own
            }
            (None, None) => &[],
        };
        let (points, _) = numbers.as_chunks();
        placing::extent(
            &self.division.domain,
            &format!("point set {at}"),
            ids,
            points,
        )
    }

    /// The ids of owned points.
    pub(super) fn ids_on_host(&self, at: usize) -> Result<Vec<u64>, Refusal> {
        let words = self.device.sets[at].id_words();
        let words = download(&self.engine, "global ids", &words)?;
        let mut ids = with_room(words.len() / ID, "global ids")?;
        let (pairs, _) = words.as_chunks::<ID>();
        ids.extend(pairs.iter().map(|words| id_of(*words)));
        Ok(ids)
    }

    /// Makes a table of classes for points of a set within `bounds`; returns false if there is one
    /// already.
    fn fit_table(&mut self, at: usize, bounds: &Bounds, points: usize) -> Result<bool, Refusal> {
        let Some(domains) = &self.division.domains else {
            return Ok(false);
        };
        let table = &mut self.device.sets[at].table;
        if let Some((table, of)) = table
            && *of == self.divided
            && table.host.covers(domains, bounds)
        {
            return Ok(false);
        }
        let before = table.as_ref().filter(|(_, of)| *of == self.divided);
        let before = before.map(|(table, _)| &table.host);
        let host = ClassTable::new(
            &mut self.division.cell_classes,
            domains,
            bounds,
            points,
            before,
        )?;
        let made = Table {
            device: DeviceClasses::new(&self.engine, &host, domains.lattice())?,
            lists: ListTable::new(&self.engine, &self.division.cell_classes, self.comm.rank())?,
            host,
        };
        *table = Some((made, self.divided));
        Ok(true)
    }

    /// Computes on the host the classes of special points that the table lacks.
    fn classify(
        &mut self,
        at: usize,
        positions: &DeviceView<'_, f32>,
        special: usize,
    ) -> Result<(), Refusal> {
        let written = self.device.survey.special.slice(0..2 * special);
        let words = download(&self.engine, CLASSES, &written)?;
        let (pairs, _) = words.as_chunks::<2>();
        let special = pairs.iter().map(|[index, class]| Special {
            index: *index,
            class: *class,
        });
        let special = self.classified(positions, collected(special, CLASSES)?)?;
        let device = &mut *self.device;
        let (survey, queue) = (&mut device.survey, self.engine.queue());
        if let Some((table, _)) = &mut device.sets[at].table {
            if !table.lists.covers(&self.division.cell_classes) {
                table.lists =
                    ListTable::new(&self.engine, &self.division.cell_classes, self.comm.rank())?;
            }
            survey.fit_lists(&self.engine, table.lists.masks.lists)?;
        }
        let words = special.iter().flat_map(|point| [point.index, point.class]);
        let words = collected(words, CLASSES)?;
        let mut to = survey.special.slice_mut(0..words.len());
        queue.copy_to_device(CLASSES, &words, &mut to)?;
        let mut number = survey.found.slice_mut(SPECIAL..SPECIAL + 1);
        Ok(queue.copy_to_device(CLASSES, &[special.len() as u32], &mut number)?)
    }

    /// The special points, with classes computed on the host for those without one.
    fn classified(
        &mut self,
        positions: &DeviceView<'_, f32>,
        special: Vec<Special>,
    ) -> Result<Vec<Special>, Refusal> {
        let Some(domains) = &self.division.domains else {
            return Ok(special);
        };
        let what = "points far from others";
        let unknown = || special.iter().filter(|point| point.class == SEVERAL);
        let mut indices = with_room(unknown().count(), what)?;
        indices.extend(unknown().map(|point| point.index));
        let places = Places::of(&self.engine, &indices)?;
        let mut words = zeros(&self.engine, POSITION * places.count)?;
        (self.device.kernels).gather_whole(positions, POSITION, &places.view(), &mut words)?;
        let words = download(
            &self.engine,
            NUMBERS,
            &words.slice(0..POSITION * places.count),
        )?;
        let (points, _) = bytemuck::cast_slice::<u32, f32>(&words).as_chunks();
        let found = self.division.cell_classes.classify(domains, points)?;
        let (mut found, mut at) = (found.into_iter().peekable(), 0);
        let mut classified = Vec::new();
        for mut point in special {
            if point.class == SEVERAL {
                let here = found.next_if(|other| other.index == at);
                at += 1;
                // The others are in the interior.
                let Some(here) = here else { continue };
                point.class = here.class;
            }
            make_room_for_one(&mut classified, what)?;
            classified.push(point);
        }
        Ok(classified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_those_of_the_numbers() {
        let key = |x: f32| {
            let bits = x.to_bits();
            if bits >> 31 == 1 {
                !bits
            } else {
                bits | 1 << 31
            }
        };
        let numbers = [-3.5e30f32, -1.0, -0.0, 0.0, 1e-40, 2.5, f32::MAX];
        for pair in numbers.windows(2) {
            assert!(key(pair[0]) < key(pair[1]));
        }
        for x in numbers {
            assert_eq!(number_of(key(x)), f64::from(x));
            assert_ne!(key(x), 0);
        }
        let found = [2.0, 7.0, -1.0, -4.0, 7.0, -2.0f32];
        let found: Vec<u32> = (found.iter().enumerate())
            .map(|(k, x)| if k < 3 { key(*x) } else { !key(*x) })
            .collect();
        let bounds = extent_of(&found);
        assert_eq!(
            (bounds.min, bounds.max),
            ([-4.0, 7.0, -2.0], [2.0, 7.0, -1.0])
        );
        assert_eq!(extent_of(&[0; FOUND]), Bounds::EMPTY);
    }
}
