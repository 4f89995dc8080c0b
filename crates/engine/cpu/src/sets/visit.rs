//! Visits the neighbours of one target in plain scalar code, with the geometry of every pair.
//!
//! The grid is walked again, cell row by cell row, and the contract decides every candidate.
//! Nothing is stored, so it serves queries, the geometry of pairs, and callers that have one target
//! at a time. The order of visits is that of the lists.
//!
//! # Cost
//!
//! Scalar code tests every candidate of the neighbour cells without pruning, much slower than the
//! vector loops. It exists for callers that need a pair's image, which lists do not name, and for
//! single targets, where gathering candidates for one target would not pay.
//!
//! Inside a [`Task`](crate::simd::Task) the multiplications and additions of the contract are
//! fused instructions; outside they are library calls with the same result.

use super::PairOfSets;
use crate::{
    candidates::{
        mode::{Mode, RADII, has},
        walk::Radii,
    },
    contract::{Image, difference_f64, image_of, rounded, squared, squared_f64},
    error::Error,
    filter::{
        nearest::{Near, Nearest},
        visit::Target,
    },
};
use nearfield_grid::{DoublePoints, Run, memory::Shortage};
use nearfield_pairs::Pair;

impl PairOfSets<'_> {
    /// Calls `visit` with the caller's index of every neighbour of a sorted target, its image and
    /// the geometry of the pair, on the calling thread. In double precision the geometry is rounded
    /// to `f32` once the pair is decided.
    ///
    /// The k nearest come in the order of their distance, after all have been found.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) where the k nearest are wanted.
    ///
    /// # Panics
    /// When there is no such target, and when radii are not those of the sets, as indexing a slice
    /// does.
    #[inline(always)]
    pub fn for_each_neighbor(
        &self,
        slot: usize,
        mut visit: impl FnMut(u32, Image, Pair),
    ) -> Result<(), Error> {
        self.ready()?;
        self.check_radii()?;
        if self.filter.is_none() {
            self.visit_all(slot, |source, image, pair, _| visit(source, image, pair))
        } else {
            self.visit_kept(slot, &mut visit)
        }
    }

    /// Visits the neighbours that the filters keep. Not inlined, so that it is not compiled for
    /// every caller.
    #[inline(never)]
    fn visit_kept(
        &self,
        slot: usize,
        visit: &mut dyn FnMut(u32, Image, Pair),
    ) -> Result<(), Error> {
        let target = Target::new(
            &self.filter,
            slot,
            self.targets.points().index()[slot] as usize,
        );
        if !target.is_chosen() {
            return Ok(());
        }
        let (mut nearest, mut failed) = (Nearest::default(), None);
        self.visit_all(slot, |index, image, pair, squared| {
            if failed.is_some() || !target.keeps(index, squared) {
                return;
            }
            match self.filter.nearest {
                None => visit(index, image, pair),
                Some(k) => {
                    let near = Near {
                        squared,
                        index,
                        image,
                        pair,
                    };
                    failed = nearest.add(k.get() as usize, near).err();
                }
            }
        })?;
        if let (Some(k), None) = (self.filter.nearest, failed) {
            for near in nearest.selected(k.get() as usize) {
                visit(near.index, near.image, near.pair);
            }
        }
        failed.map_or(Ok(()), |shortage: Shortage| Err(shortage.into()))
    }

    /// Visits all neighbours within the radius, with d² in the precision of the search.
    #[inline(always)]
    fn visit_all(
        &self,
        slot: usize,
        visit: impl FnMut(u32, Image, Pair, f64),
    ) -> Result<(), Error> {
        if let (Some(targets), Some(sources)) = (
            self.targets.points().double(),
            self.sources.points().double(),
        ) {
            self.visit_double(slot, targets, sources, visit)
        } else if self.radii.rule().needs_sources() {
            self.visit_single::<RADII>(slot, visit)
        } else {
            self.visit_single::<0>(slot, visit)
        }
    }

    /// Visits in single precision; `MODE` says whether sources have radii.
    #[inline(always)]
    fn visit_single<const MODE: Mode>(
        &self,
        slot: usize,
        mut visit: impl FnMut(u32, Image, Pair, f64),
    ) -> Result<(), Error> {
        let (targets, sources) = (self.targets.points(), self.sources.points());
        let lattice = self.sources.lattice();
        let radii = Radii::from(self.radii);
        let source_r2 = radii.sources.unwrap_or_default();
        let target_r2 = radii.of_target(slot, lattice.radius().squared());
        let position = targets.position(slot);
        let wraps = targets.wraps(slot);
        let visit_run = |run: Run| {
            for source in run.slots.clone() {
                let other = sources.wraps(source);
                let image = image_of(run.image, wraps, other);
                let shift = lattice.domain().image_vector(image);
                let found = sources.position(source);
                let d = std::array::from_fn(|axis| (found[axis] - position[axis]) + shift[axis]);
                let d2 = squared(d);
                let r2 = if has(MODE, RADII) {
                    target_r2.max(source_r2[source])
                } else {
                    target_r2
                };
                let itself = self.same_set && source == slot && image == [0; 3];
                if d2 <= r2 && !itself {
                    let image = lattice.domain().given_image(image);
                    visit(sources.index()[source], image, Pair { d, d2 }, d2.into());
                }
            }
        };
        let counts = self.counts();
        let visited = (self.sources).for_each_run_from(self.targets, slot, counts, visit_run);
        Ok(visited?)
    }

    /// Visits in double precision.
    #[inline(always)]
    fn visit_double(
        &self,
        slot: usize,
        targets: &DoublePoints,
        sources: &DoublePoints,
        mut visit: impl FnMut(u32, Image, Pair, f64),
    ) -> Result<(), Error> {
        let lattice = self.sources.lattice();
        let radii = Radii::from(self.radii);
        let target_r2 = radii.of_target_f64(slot, lattice.radius().squared_f64());
        let position = targets.position(slot);
        let wraps = self.targets.points().wraps(slot);
        let points = self.sources.points();
        let counts = self.counts();
        let visited = (self.sources).for_each_run_from(self.targets, slot, counts, |run| {
            for source in run.slots.clone() {
                let other = points.wraps(source);
                let image = image_of(run.image, wraps, other);
                let image_vector = lattice.domain().image_vector_f64(image);
                let d = difference_f64(position, sources.position(source), image_vector);
                let d2 = squared_f64(d);
                let r2 = match radii.exact.sources {
                    Some(of_sources) => target_r2.max(of_sources[source]),
                    None => target_r2,
                };
                let itself = self.same_set && source == slot && image == [0; 3];
                if d2 <= r2 && !itself {
                    let image = lattice.domain().given_image(image);
                    visit(points.index()[source], image, rounded(d, d2), d2);
                }
            }
        });
        Ok(visited?)
    }
}
