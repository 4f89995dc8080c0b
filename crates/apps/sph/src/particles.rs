//! The particle arrays: one entry per fluid particle, all in the same order.
//!
//! The order changes when the arrays are sorted in space; `id` is the index of a particle in the
//! fluid as it was given at first.

use std::ops::Range;

use glam::Vec3;
use nearfield_grid::memory::{collected, copied, make_room, with_room};

use crate::{
    Error,
    neighborhood::{Arrays, Column},
};

/// Takes a part of the fluid, with the forces on it where they are known; the number is that of the
/// particles before it.
pub(crate) type Take<'a> = &'a mut dyn FnMut(u64, &Particles, Option<&Forces>) -> Result<(), Error>;

/// Maximum number of particles that come to rank 0 at once where not all have to: 9 MB of them, and
/// no more than a rank has on average.
const MAX_PART: usize = 1 << 18;

/// Forces on the fluid, by the fluid and by the walls, in the order of its particles.
///
/// They are part of the state: the friction in them is that of velocities in the middle of a step,
/// which are not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forces {
    pub(crate) fluid: Vec<(Vec3, f32)>,
    pub(crate) walls: Vec<(Vec3, f32)>,
}

impl Forces {
    /// Adds those of further particles.
    fn append(&mut self, part: &Self) -> Result<(), Error> {
        append(&mut self.fluid, &part.fluid)?;
        append(&mut self.walls, &part.walls)
    }

    /// Whether every number of entry `index` is finite.
    pub(crate) fn is_finite(&self, index: usize) -> bool {
        let of = |(vector, number): (Vec3, f32)| vector.is_finite() && number.is_finite();
        of(self.fluid[index]) && of(self.walls[index])
    }

    /// Both arrays, as a neighbourhood takes them.
    pub(crate) fn columns(&mut self) -> [Column<'_>; 2] {
        [&mut self.fluid, &mut self.walls].map(Column::Pairs)
    }
}

/// The state of the fluid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Particles {
    /// Metres.
    pub(crate) position: Vec<Vec3>,
    /// m/s.
    pub(crate) velocity: Vec<Vec3>,
    /// ρ/ρ₀ − 1.
    pub(crate) compression: Vec<f32>,
    /// Index in the order of construction, among those of all ranks.
    pub(crate) id: Vec<u64>,
}

/// Adds values, if there is memory for them.
fn append<T: Copy>(to: &mut Vec<T>, values: &[T]) -> Result<(), Error> {
    make_room(to, to.len() + values.len(), "a copy of the particles")?;
    to.extend_from_slice(values);
    Ok(())
}

impl Particles {
    /// Adds copies of further particles, and of the forces on them to `forces`, where those of all
    /// are known.
    pub(crate) fn append(
        &mut self,
        part: &Self,
        forces: &mut Option<Forces>,
        of_part: Option<&Forces>,
    ) -> Result<(), Error> {
        append(&mut self.position, &part.position)?;
        append(&mut self.velocity, &part.velocity)?;
        append(&mut self.compression, &part.compression)?;
        append(&mut self.id, &part.id)?;
        match of_part {
            Some(of_part) => forces.get_or_insert_default().append(of_part),
            None => Ok(()),
        }
    }

    /// A copy, if there is memory for one.
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        const WHAT: &str = "a copy of the particles";
        Ok(Self {
            position: copied(&self.position, WHAT)?,
            velocity: copied(&self.velocity, WHAT)?,
            compression: copied(&self.compression, WHAT)?,
            id: copied(&self.id, WHAT)?,
        })
    }

    /// Where those with these ids are.
    fn places(&self, ids: &Range<u64>) -> impl Iterator<Item = usize> + Clone {
        (0..self.len()).filter(move |&at| ids.contains(&self.id[at]))
    }

    /// Copies of those with these ids, if there is memory for them.
    pub(crate) fn with_ids(&self, ids: &Range<u64>) -> Result<Self, Error> {
        const WHAT: &str = "a part of the particles";
        let places = || self.places(ids);
        let len = places().count();
        let mut part = Self {
            position: with_room(len, WHAT)?,
            velocity: with_room(len, WHAT)?,
            compression: with_room(len, WHAT)?,
            id: with_room(len, WHAT)?,
        };
        for at in places() {
            part.position.push(self.position[at]);
            part.velocity.push(self.velocity[at]);
            part.compression.push(self.compression[at]);
            part.id.push(self.id[at]);
        }
        Ok(part)
    }

    pub(crate) fn len(&self) -> usize {
        self.id.len()
    }

    /// All arrays, as a neighbourhood takes them.
    pub(crate) fn arrays(&mut self) -> Arrays<'_> {
        Arrays {
            positions: &mut self.position,
            columns: vec![
                Column::Vectors(&mut self.velocity),
                Column::Numbers(&mut self.compression),
                Column::Ids(&mut self.id),
            ],
        }
    }

    /// The fields of [`Moving`](crate::passes::Moving).
    pub(crate) fn moving(&self) -> (&[Vec3], &[f32]) {
        (&self.velocity, &self.compression)
    }

    /// Hands all particles of all ranks to `take`, on rank 0, by ranges of ids, with the `forces`
    /// on them; there are `all` of them, and these are those of a rank. `gather` brings some, which
    /// have these ids, to rank 0.
    pub(crate) fn in_parts(
        &self,
        forces: Option<[&[(Vec3, f32)]; 2]>,
        all: usize,
        [rank, ranks]: [usize; 2],
        take: Take<'_>,
        mut gather: impl FnMut(&[u64], Arrays<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let most = (all / ranks).clamp(1, MAX_PART);
        for first in (0..all).step_by(most) {
            let ids = first as u64..all.min(first + most) as u64;
            let mut part = self.with_ids(&ids)?;
            let found = copied(&part.id, "ids of particles")?;
            let of_part = |forces: &[(Vec3, f32)]| {
                let places = self.places(&ids).map(|at| forces[at]);
                collected(places, "forces on a part of the particles")
            };
            let mut forces = match forces {
                Some([fluid, walls]) => Some(Forces {
                    fluid: of_part(fluid)?,
                    walls: of_part(walls)?,
                }),
                None => None,
            };
            let mut arrays = part.arrays();
            let columns = forces.as_mut().map(Forces::columns);
            arrays.columns.extend(columns.into_iter().flatten());
            gather(&found, arrays)?;
            if rank == 0 {
                take(ids.start, &part, forces.as_ref())?;
            }
        }
        Ok(())
    }

    /// Whether every number of entry `index` is finite.
    pub(crate) fn is_finite(&self, index: usize) -> bool {
        self.position[index].is_finite()
            && self.velocity[index].is_finite()
            && self.compression[index].is_finite()
    }
}
