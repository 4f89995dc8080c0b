//! The survey of a rank's points on the device: their extent, and those that other ranks need.
//!
//! The device looks every point up in a [table of classes](super::classes). The host gets index and
//! class of the points outside of the interior, as [`Seen::survey`](crate::seen::Seen::survey)
//! returns them, and makes [`Departures`] of them. If the points have left the box of the table the
//! host makes another one, and the device looks again.

use super::{
    classes::{ClassTable, SEVERAL},
    engine::DeviceRankedEngine,
    kernels::{DeviceClasses, FOUND, NOT_FINITE, Rows, SPECIAL, Table},
    set::{ID, POSITION, Places, id_of},
    staging::{download, zeros},
};
use crate::{
    error::Refusal, placing, plan::How, routes::Departures, scalar::Scalar, seen::Special,
};
use nearfield::device::cudarc::driver::CudaView;
use nearfield_grid::{
    Bounds, Lattice,
    memory::{make_room_for_one, with_room},
};

/// Positions of a set as one rank sees them.
pub(super) struct Surveyed {
    pub(super) bounds: Bounds,
    pub(super) departures: Departures,
    /// Whether all points are where they belong.
    pub(super) how: How,
}

/// A point by its position.
const NUMBERS: &str = "positions of points";

/// The number that a key of places.cu stands for.
fn number_of(key: u32) -> f64 {
    let bits = if key >> 31 == 1 {
        key & !(1 << 31)
    } else {
        !key
    };
    f64::from(f32::from_bits(bits))
}

/// The extent that a survey has found; empty without points.
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
    /// Looks at the positions of a set, its own or new ones.
    pub(super) fn survey(
        &mut self,
        at: usize,
        positions: &CudaView<'_, f32>,
        ids: Option<&[u64]>,
    ) -> Result<Surveyed, Refusal> {
        let points = positions.len() / POSITION;
        let (mut found, mut bounds) = self.look(positions)?;
        let corners = [bounds.min, bounds.max].map(|corner| corner.map(|x| x as f32));
        let corners = Bounds::of(f32::positions(&corners), &self.domain);
        if found[NOT_FINITE] != 0 || (points != 0 && corners.is_err()) {
            bounds = self.extent_on_host(at, positions, ids)?;
        }
        let mut special = Vec::new();
        if points != 0 && self.ranks() > 1 && self.domains.is_some() {
            if self.fit_table(&bounds, points)? {
                found = self.look(positions)?.0;
            }
            special = self.special(positions, found[SPECIAL] as usize)?;
        }
        let departures = Departures::new(&special, &self.seen, self.rank())?;
        let how = if departures.leaving.is_empty() {
            How::Home { changes: false }
        } else {
            How::Abroad
        };
        Ok(Surveyed {
            bounds,
            departures,
            how,
        })
    }

    /// One pass of the device over positions: what it finds, and the extent.
    fn look(&mut self, positions: &CudaView<'_, f32>) -> Result<([u32; FOUND], Bounds), Refusal> {
        if positions.is_empty() {
            return Ok(([0; FOUND], Bounds::EMPTY));
        }
        let device = &mut *self.device;
        let table = match &device.table {
            Some(table) => table,
            None => {
                let host = ClassTable::empty();
                let lattice = Lattice::new(self.radius, self.domain, 1, &Bounds::EMPTY);
                let lattice = lattice.map_err(Refusal::new)?;
                let classes = DeviceClasses::new(&self.engine, &host, &lattice)?;
                device.table.insert(Table {
                    host,
                    device: classes,
                })
            }
        };
        let (kernels, survey) = (&device.kernels, &mut device.survey);
        kernels.survey(&self.engine, positions, &table.device, survey)?;
        let copy = &mut device.found;
        (self.engine.queue()).start_host_copy(NUMBERS, &survey.found.slice(0..FOUND), copy)?;
        let found = *copy.read()?.first_chunk().unwrap_or(&[0; FOUND]);
        Ok((found, extent_of(&found)))
    }

    /// The extent by the host, which names a point that cannot be used.
    fn extent_on_host(
        &self,
        at: usize,
        positions: &CudaView<'_, f32>,
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
        placing::extent(&self.domain, &format!("point set {at}"), ids, points)
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

    /// Makes a table of classes for points within `bounds`; returns false if there is one.
    fn fit_table(&mut self, bounds: &Bounds, points: usize) -> Result<bool, Refusal> {
        let Some(domains) = &self.domains else {
            return Ok(false);
        };
        let table = &mut self.device.table;
        if let Some(table) = table.as_ref().filter(|_| self.tabled == self.divided)
            && table.host.covers(domains, bounds)
        {
            return Ok(false);
        }
        let host = ClassTable::new(&mut self.seen, domains, bounds, points)?;
        let device = DeviceClasses::new(&self.engine, &host, domains.lattice())?;
        *table = Some(Table { host, device });
        self.tabled = self.divided;
        Ok(true)
    }

    /// The points outside of the interior, `count` of them, ascending.
    fn special(
        &mut self,
        positions: &CudaView<'_, f32>,
        count: usize,
    ) -> Result<Vec<Special>, Refusal> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (device, points) = (&mut *self.device, positions.len() / POSITION);
        let survey = &mut device.survey;
        (device.kernels).write_special(&self.engine, points, count, survey)?;
        let written = survey.special.slice(0..2 * count);
        let words = download(&self.engine, "classes of points", &written)?;
        let (pairs, _) = words.as_chunks::<2>();
        let mut special: Vec<Special> = with_room(count, "classes of points")?;
        special.extend(pairs.iter().map(|[index, class]| Special {
            index: *index,
            class: *class,
        }));
        let several = |point: &&Special| point.class == SEVERAL;
        if special.iter().any(|point| several(&point)) {
            special = self.classified(positions, special)?;
        }
        Ok(special)
    }

    /// The same where the host finds the classes that the table does not have.
    fn classified(
        &mut self,
        positions: &CudaView<'_, f32>,
        special: Vec<Special>,
    ) -> Result<Vec<Special>, Refusal> {
        let Some(domains) = &self.domains else {
            return Ok(special);
        };
        let what = "points far from others";
        let unknown = || special.iter().filter(|point| point.class == SEVERAL);
        let mut indices = with_room(unknown().count(), what)?;
        indices.extend(unknown().map(|point| point.index));
        let places = Places::of(&self.engine, &indices)?;
        let mut words = zeros(&self.engine, POSITION * places.count)?;
        let (at, count) = places.view();
        let rows = Rows {
            to: &mut words,
            first: 0,
            stride: POSITION,
        };
        (self.device.kernels).gather(positions, [POSITION; 2], (&at, count), rows)?;
        let words = download(&self.engine, NUMBERS, &words.slice(0..POSITION * count))?;
        let (points, _) = bytemuck::cast_slice::<u32, f32>(&words).as_chunks();
        let found = self.seen.classify(domains, points)?;
        let (mut found, mut at) = (found.into_iter().peekable(), 0);
        let mut classified = Vec::new();
        for mut point in special {
            if point.class == SEVERAL {
                let here = found.next_if(|other| other.index == at);
                at += 1;
                // The others are of the interior.
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
