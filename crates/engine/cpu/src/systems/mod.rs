//! Many systems of points in one search: thousands of molecules or crystals at once.
//!
//! Each system has a cell, a periodicity and a radius of its own, and there is no pair between
//! systems. The pairs of a system are those that a search of this system alone finds, bit for bit.
//!
//! # How
//!
//! A search has two passes over tasks of consecutive systems. The first finds the pairs: small
//! systems by testing all pairs ([`direct`]), others by [`cells`]. It keeps four bytes per pair.
//! When all are counted, every array that was asked for gets its final size, and the second pass
//! ([`write`]) fills it. So no array has gaps, none is larger than its contents, and what was not
//! asked for costs nothing.
//!
//! | module | contents |
//! | --- | --- |
//! | `input` | the arrays that describe systems, and their checks |
//! | `tasks` | the first pass |
//! | `direct`, `scan` | all pairs of a small system |
//! | `cells` | a system by an ordinary search |
//! | `one_image` | images and displacements from coordinates |
//! | `quantities` | what is written for a pair |
//! | `pairs`, `place`, `write` | results, where they go, and the second pass |
//! | `again` | pairs among those of a search with a larger radius |
//!
//! **Invariant:** pairs and their order depend on the input alone, not on the number of threads.

pub(crate) mod again;
mod cells;
mod direct;
pub(crate) mod input;
mod one_image;
pub(crate) mod pairs;
mod place;
pub(crate) mod quantities;
mod scan;
mod tasks;
mod write;

use crate::{
    error::Error,
    lists::neighbor_lists::ListOrder,
    pool::CpuBackend,
    simd::{Task, with_level},
};
use input::{SystemReal, Systems, WHAT};
use nearfield_grid::{
    memory::{make_room, make_room_for_one, with_room},
    parallel::PoolLoops,
};
use nearfield_pairs::ListKind;
use pairs::SystemPairs;
use place::Place;
use quantities::{PairIndex, Quantities};
use rayon::prelude::*;
use tasks::Wanted;
use tracing::field::Empty;
use write::{Part, Write};

impl CpuBackend {
    /// Finds the pairs of all systems and writes the quantities that are asked for into `pairs`,
    /// whose memory is used again.
    ///
    /// Pairs come by their point. In [`ListOrder::Ascending`] those of a point are sorted by
    /// (neighbour, image). Half lists hold i < j, or i = j with a lexicographically positive image.
    ///
    /// # Errors
    /// [`SystemOffsets`](crate::ErrorKind::SystemOffsets),
    /// [`SystemsLength`](crate::ErrorKind::SystemsLength) and
    /// [`IndexType`](crate::ErrorKind::IndexType) for
    /// arrays that do not fit each other; [`System`](crate::ErrorKind::System) naming the first
    /// system with a cell, a radius or a point that cannot be used;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory); [`FarImage`](crate::ErrorKind::FarImage) for
    /// images that 32 bits do not count, its points by their number in the system;
    /// [`Threads`](crate::ErrorKind::Threads) and [`Interrupted`](crate::ErrorKind::Interrupted).
    /// `pairs` is then empty.
    pub fn search_systems<T: SystemReal, I: PairIndex>(
        &self,
        systems: &Systems<'_, T>,
        kind: ListKind,
        order: ListOrder,
        quantities: Quantities,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let points = systems.positions.len();
        let span = tracing::debug_span!(
            "cpu.systems",
            systems = systems.len(),
            points,
            pairs = Empty
        )
        .entered();
        let wanted = Wanted {
            kind,
            order,
            quantities,
        };
        let done = self.systems_into(systems, wanted, pairs);
        match done {
            Ok(()) => {
                span.record("pairs", pairs.len());
            }
            Err(_) => pairs.clear(),
        }
        done
    }

    /// As [`search_systems`](Self::search_systems); after an error arrays are unspecified.
    fn systems_into<T: SystemReal, I: PairIndex>(
        &self,
        systems: &Systems<'_, T>,
        wanted: Wanted,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        systems.check_for::<I>()?;
        let mut found = std::mem::take(&mut pairs.found);
        let searched = found.search(self, systems, wanted);
        let written = searched.and_then(|()| self.write_pairs(systems, wanted, &mut found, pairs));
        found.forget_cells();
        pairs.found = found;
        written
    }

    /// The second pass.
    fn write_pairs<T: SystemReal, I: PairIndex>(
        &self,
        systems: &Systems<'_, T>,
        wanted: Wanted,
        found: &mut tasks::Found<T>,
        pairs: &mut SystemPairs<T, I>,
    ) -> Result<(), Error> {
        let points = systems.positions.len();
        make_room(&mut pairs.offsets, points + 1, WHAT)?;
        pairs.offsets.resize(points + 1, 0);
        let mut parts = Vec::new();
        for task in found.tasks() {
            for part in task.parts(systems) {
                make_room_for_one(&mut parts, WHAT)?;
                parts.push((part, 0));
            }
        }
        let mut rest = &mut pairs.offsets[..];
        for (part, count) in &mut parts {
            let (lengths, others) = std::mem::take(&mut rest).split_at_mut(part.points.len());
            *count = part.count(systems, lengths);
            rest = others;
        }
        let quantities = wanted.quantities;
        let size = |(part, count): &(Part<'_, T>, usize)| (part.points.len(), *count);
        self.write_parts(quantities, pairs, &parts, size, |(part, _), before, to| {
            Write {
                systems,
                part,
                to,
                before,
                wanted: quantities,
            }
        })
    }

    /// Makes room for the pairs of all parts, which have so many points and pairs each, and runs
    /// what `write` returns for every part, the number of pairs before it, and its place.
    fn write_parts<'p, T: SystemReal, I: PairIndex, P: Sync, W: Task>(
        &self,
        wanted: Quantities,
        pairs: &'p mut SystemPairs<T, I>,
        parts: &'p [P],
        size: impl Fn(&P) -> (usize, usize),
        write: impl Fn(&'p P, u64, Place<'p, T, I>) -> W + Sync,
    ) -> Result<(), Error> {
        let sizes = || parts.iter().map(&size);
        let all = (sizes().map(|(_, count)| count)).fold(0, usize::saturating_add);
        pairs.resize(wanted, all)?;
        if let Some(last) = pairs.offsets.last_mut() {
            *last = all as u64;
        }
        let (mut before, mut jobs) = (0, with_room(parts.len(), WHAT)?);
        let points = pairs.offsets.len();
        for ((part, (_, count)), to) in parts.iter().zip(sizes()).zip(pairs.places_of(sizes())) {
            jobs.push((part, before, to));
            before += count as u64;
        }
        self.install_for(points, || {
            jobs.into_par_iter()
                .with_max_len(1)
                .run(|(part, before, to)| with_level(self.level(), write(part, before, to)));
        });
        Ok(())
    }
}
