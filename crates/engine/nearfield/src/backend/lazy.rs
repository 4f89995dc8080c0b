//! A set's grid on the host, sorted only at its first use.
//!
//! Engines that work on a GPU sort there. The host keeps a copy of the positions, in memory that
//! the GPU reads directly, and sorts them when it is asked for something that the GPU does not do,
//! or when the GPU has failed.
//!
//! So a set is in one of two states: *built*, its points sorted on the host and no copy kept, or
//! *deferred*, the copy kept and the sort made at most once from it. Memory is reused in both
//! directions: a deferred set keeps an old grid for its memory, and a built one hands its copy out.
//!
//! **Invariant:** bounds and number of points are those of the last positions that were accepted,
//! in either state.
//!
//! Two threads may ask for a deferred grid at once, and a thread that waits for the pool may come
//! back to the same set inside its own wait. So no lock is held during the sort: each asker sorts
//! into memory of its own, and the first result is kept. Both results are equal, because the sort
//! depends on positions, bounds and lattice alone.

use super::{
    HostMemory,
    transfer::{positions_of, words_of},
};
use nearfield_cpu::CpuBackend;
use nearfield_grid::{Bounds, Error, Grid, Lattice, Positions};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The grid of a set.
#[derive(Debug)]
pub(crate) enum LazyGrid {
    /// It is there.
    Built(Box<Grid>),
    /// It is made when first needed.
    Deferred(Box<Deferred>),
}

/// The input of a grid.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// Three numbers a point, or in double precision six words; there may be room behind them.
    copy: HostMemory,
    points: usize,
    bounds: Bounds,
    lattice: Lattice,
    /// Set at most once per copy and lattice; only `&mut` methods take it out again.
    built: OnceLock<Grid>,
    /// An old grid, whose memory is used again.
    /// None once a sort has taken it.
    spare: Mutex<Option<Grid>>,
}

impl From<Grid> for LazyGrid {
    fn from(grid: Grid) -> Self {
        Self::Built(Box::new(grid))
    }
}

impl LazyGrid {
    /// The grid, made now if need be.
    ///
    /// Cost: nothing for a set that is sorted, a sort of all its points otherwise.
    ///
    /// # Errors
    /// When there is no memory for the sort. The set is as it was, and the next call tries again.
    pub(crate) fn get(&self, backend: &CpuBackend) -> Result<&Grid, Error> {
        match self {
            Self::Built(grid) => Ok(grid),
            Self::Deferred(deferred) => deferred.get(backend),
        }
    }

    /// The grid, if it has been made.
    pub(crate) fn made(&self) -> Option<&Grid> {
        match self {
            Self::Built(grid) => Some(grid),
            Self::Deferred(deferred) => deferred.built.get(),
        }
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Built(grid) => grid.points().len(),
            Self::Deferred(deferred) => deferred.points,
        }
    }

    /// Bounds of the points.
    pub(crate) fn bounds(&self) -> &Bounds {
        match self {
            Self::Built(grid) => grid.bounds(),
            Self::Deferred(deferred) => &deferred.bounds,
        }
    }

    /// Bytes of the copy of the positions.
    pub(crate) fn copy_bytes(&self) -> usize {
        match self {
            Self::Built(_) => 0,
            Self::Deferred(deferred) => size_of_val(&*deferred.copy),
        }
    }

    /// Sorts positions now, and gives the copy of older ones back, if there was one. When that
    /// fails everything stays as it was.
    pub(crate) fn build(
        &mut self,
        positions: Positions<'_>,
        bounds: Bounds,
        lattice: &Lattice,
        backend: &CpuBackend,
    ) -> Result<Option<HostMemory>, Error> {
        let sort = |grid: &mut Grid| {
            backend.install_for(positions.len(), || grid.build(positions, bounds, lattice))
        };
        match self {
            Self::Built(grid) => return sort(grid).map(|()| None),
            Self::Deferred(deferred) => {
                let before = deferred.built.take();
                let known = before.is_some();
                let mut grid = before.unwrap_or_else(|| deferred.memory());
                let sorted = sort(&mut grid);
                // A grid that cannot be built holds what it held.
                if known || sorted.is_ok() {
                    deferred.built = OnceLock::from(grid);
                }
                sorted?;
            }
        }
        Ok(self.take_copy(lattice))
    }

    /// Sorts the points into another lattice: now, if they are sorted, and else when they are.
    pub(crate) fn rebuild(&mut self, lattice: &Lattice, backend: &CpuBackend) -> Result<(), Error> {
        match self {
            Self::Built(grid) => backend.install_for(grid.points().len(), || grid.rebuild(lattice)),
            Self::Deferred(deferred) => {
                deferred.lattice = lattice.clone();
                if let Some(old) = deferred.built.take() {
                    deferred.keep(old);
                }
                Ok(())
            }
        }
    }

    /// The copy of the positions, for its memory to be used again. The caller must then call
    /// [`defer`](Self::defer) or [`build`](Self::build).
    pub(crate) fn take_copy(&mut self, lattice: &Lattice) -> Option<HostMemory> {
        match std::mem::replace(self, Self::from(Grid::new(lattice.clone()))) {
            Self::Deferred(deferred) => {
                let (old, copy) = deferred.into_parts();
                *self = Self::from(old);
                Some(copy)
            }
            built => {
                *self = built;
                None
            }
        }
    }

    /// The grid, out of a set that has nothing else; it is to be [put back](Self::put_back).
    ///
    /// None for a deferred set. Together they let the device be sent the positions of a set that
    /// only the host has, without sorting that set again afterwards.
    pub(crate) fn take_made(&mut self, lattice: &Lattice) -> Option<Box<Grid>> {
        match std::mem::replace(self, Self::from(Grid::new(lattice.clone()))) {
            Self::Built(grid) => Some(grid),
            deferred => {
                *self = deferred;
                None
            }
        }
    }

    /// Puts the grid back, together with a copy of the same positions if there is one now.
    pub(crate) fn put_back(&mut self, grid: Box<Grid>) {
        match self {
            Self::Built(place) => *place = grid,
            Self::Deferred(deferred) => deferred.built = OnceLock::from(*grid),
        }
    }

    /// Takes over a copy of `points` positions, to be sorted when needed.
    pub(crate) fn defer(
        &mut self,
        copy: HostMemory,
        points: usize,
        bounds: Bounds,
        lattice: &Lattice,
    ) {
        let old = match std::mem::replace(self, Self::from(Grid::new(lattice.clone()))) {
            Self::Built(grid) => *grid,
            Self::Deferred(deferred) => deferred.into_memory(),
        };
        *self = Self::Deferred(Box::new(Deferred {
            copy,
            points,
            bounds,
            lattice: lattice.clone(),
            built: OnceLock::new(),
            spare: Mutex::new(Some(old)),
        }));
    }

    /// The copied positions, x, y and z of one point after the other; in double precision words of
    /// them.
    pub(crate) fn copied(&self) -> Option<&[f32]> {
        match self {
            Self::Built(_) => None,
            Self::Deferred(deferred) => Some(deferred.numbers()),
        }
    }
}

impl Deferred {
    /// The positions without the room behind them.
    fn numbers(&self) -> &[f32] {
        &self.copy[..words_of(self.lattice.radius().precision()) * self.points]
    }

    /// The grid, sorted now if it has not been.
    fn get(&self, backend: &CpuBackend) -> Result<&Grid, Error> {
        if let Some(grid) = self.built.get() {
            return Ok(grid);
        }
        // Nothing is locked while the pool works: a thread that waits for it may meanwhile do other
        // work, which may come here again. Two that come at once both sort, to the same end.
        let mut grid = self.memory();
        let positions = positions_of(self.numbers(), self.lattice.radius().precision())?;
        backend.install_for(self.points, || {
            grid.build(positions, self.bounds, &self.lattice)
        })?;
        Ok(self.built.get_or_init(|| grid))
    }

    /// A grid whose contents do not matter.
    fn memory(&self) -> Grid {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare
            .take()
            .unwrap_or_else(|| Grid::new(self.lattice.clone()))
    }

    /// A grid whose contents do not matter, out of a set that is done with.
    fn into_memory(self) -> Grid {
        self.into_parts().0
    }

    /// The grid and the copy.
    fn into_parts(mut self) -> (Grid, HostMemory) {
        let built = self.built.take();
        (built.unwrap_or_else(|| self.memory()), self.copy)
    }

    /// Keeps a grid for its memory.
    fn keep(&self, old: Grid) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        *spare = Some(old);
    }
}
