//! The particle arrays: one entry per fluid particle, all in the same order.
//!
//! The order changes when the arrays are sorted in space; `id` says which
//! particle an entry is, counted as the fluid was given at first.

use std::ops::Range;

use glam::Vec3;
use nearfield_grid::memory::{copied, with_room};

use crate::{
    Error,
    neighborhood::{Arrays, Column},
};

/// Takes a part of the fluid; the number is that of the particles before it.
pub(crate) type Take<'a> = &'a mut dyn FnMut(u64, &Particles) -> Result<(), Error>;

/// Maximum number of particles that come to rank 0 at once where not all have to: 9 MB of them, and
/// no more than a rank has on average.
const MAX_PART: usize = 1 << 18;

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

impl Particles {
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

    /// Copies of those with these ids, if there is memory for them.
    pub(crate) fn with_ids(&self, ids: &Range<u64>) -> Result<Self, Error> {
        const WHAT: &str = "a part of the particles";
        let places = || (0..self.len()).filter(move |&at| ids.contains(&self.id[at]));
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

    /// Hands all particles of all ranks to `take`, on rank 0, by ranges of ids; there are `all` of
    /// them, and these are those of a rank. `gather` brings some, which have these ids, to rank 0.
    pub(crate) fn in_parts(
        &self,
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
            gather(&found, part.arrays())?;
            if rank == 0 {
                take(ids.start, &part)?;
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
