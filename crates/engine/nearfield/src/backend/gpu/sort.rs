//! Sorting an engine's sets on the GPU, into cells of its own.
//!
//! The GPU's cells may be finer than the host's: their number to a radius follows from the
//! occupancy, or, with the strategy `auto`, from the times of steps.
//!
//! Finer cells fit the ball of the radius more closely, so fewer candidates are tested; their table
//! has more entries, which are filled at every sort. So cells become finer where they hold enough
//! points to pay for the table. Cells that are finer along x alone cut the ends of a row, which is
//! one run of memory whatever its cells are, so they cost table entries but no additional rows.
//!
//! A sort is begun and finished by two calls, because the host has time in between: it sends the
//! fields of a kernel while the device sorts. All sets are sorted onto one lattice.
//!
//! With the strategy `auto` a configuration, strategy and cells, is chosen when a sort begins and
//! stays for all jobs until the next sort: another one would need other cells.

use super::state::{Order, State};
use crate::{backend::StepInput, balance::Strategy};
use nearfield_balance::{Class, Configuration};
use nearfield_gpu::{self as gpu, cudarc::driver::CudaEvent};
use nearfield_grid::{Bounds, Domain, Lattice, Radius};
use std::hash::Hash;

/// Mean points in a cell of the radius' edge from which finer cells are worth their table, for
/// strategies that go from cell to cell…
const FINER_FROM: f64 = 4.0;
/// …or cells per point that the finer table may have.
const FINER_CELLS: f64 = 12.0;
/// The same for `flat`, whose rows are cut at both ends by cells that are finer along x.
const FLAT_FINER_FROM: f64 = 10.0;
/// Cells per point up to which cells are divided along x.
const DIVIDED_CELLS: f64 = 10.0;
/// Most cells along x for one along y and z.
const MAX_ALONG_X: u32 = 4;
/// Cells per point that a table may have to be tried by the strategy `auto`.
const MAX_CELLS: f64 = 20.0;

impl State {
    /// The configuration to run: that of the engine's settings, or what the times so far speak for.
    fn configuration(&mut self, input: &StepInput<'_>) -> Configuration {
        let (strategy, all) = (input.options.strategy, input.bounds());
        if strategy != Strategy::Auto {
            return Configuration {
                strategy,
                subdivision: cells(input, &all).per_radius,
            };
        }
        let sorted =
            self.lattice.is_some() && self.sets.iter().all(|set| set.order == Order::Sorted);
        match self.times.configuration().filter(|_| sorted) {
            Some(config) => config,
            None => {
                let (class, finest) = occupancy(input, &all);
                self.times.next(class, finest)
            }
        }
    }

    /// Does `work` and books its time; `name` tells it from the other jobs of the step. Work that
    /// goes on after the device has done its part leaves a mark there.
    pub(super) fn booked<T>(
        &mut self,
        name: impl Hash,
        work: impl FnOnce(&mut Self, &mut Option<CudaEvent>) -> Result<T, gpu::Error>,
    ) -> Result<T, gpu::Error> {
        let timed = self.times.configuration().is_some();
        let begin = timed.then(|| self.backend.mark()).transpose()?;
        let mut end = None;
        let done = work(self, &mut end)?;
        if let Some(begin) = begin {
            let took = match end {
                Some(end) => self.backend.between(&begin, &end),
                None => self.backend.since(&begin),
            };
            self.times.book(name, took?);
        }
        Ok(done)
    }

    /// Brings all sets onto a lattice for the GPU, which has its own cell size.
    pub(super) fn sort(&mut self, input: &StepInput<'_>) -> Result<Strategy, gpu::Error> {
        let strategy = self.begin_sort(input)?;
        self.finish_sort(input)?;
        Ok(strategy)
    }

    /// Asks the device to sort all sets that are not sorted, for the job to come. Nothing else may
    /// be done with them before [`finish_sort`](Self::finish_sort).
    pub(super) fn begin_sort(&mut self, input: &StepInput<'_>) -> Result<Strategy, gpu::Error> {
        let config = self.configuration(input);
        let timed = self.times.configuration().is_some();
        let before = timed.then(|| self.backend.mark()).transpose()?;
        let given = input.options.subdivision > 1;
        let edges = input.lattice.edges();
        let cells = GpuCells {
            per_radius: config.subdivision,
            along_x: match config.strategy {
                Strategy::Flat if !given => {
                    let extent = input.bounds().extent();
                    along_x(config.subdivision, input.points(), extent, edges)
                }
                _ => 1,
            },
        };
        self.begin_sort_by(input, cells)?;
        if let Some(before) = before {
            self.sorting = Some([before, self.backend.mark()?]);
        }
        Ok(config.strategy)
    }

    pub(super) fn begin_sort_by(
        &mut self,
        input: &StepInput<'_>,
        cells: GpuCells,
    ) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.begin_sort").entered();
        let all = input.bounds();
        let (radius, domain) = (input.lattice.radius(), *input.lattice.domain());
        let lattice = match cells.lattice(radius, domain, &all) {
            Ok(lattice) => lattice,
            // The engine's own lattice was made for the same radius, domain and points.
            Err(_) => input.lattice.clone(),
        };
        if (self.lattice.as_ref()).is_none_or(|old| *old.lattice() != lattice) {
            self.lattice = Some(self.backend.lattice(&lattice, cells.per_radius)?);
            for set in &mut self.sets {
                set.order = Order::AsGiven;
            }
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (set, on_host) in self.sets.iter_mut().zip(&input.sets) {
            if set.order == Order::AsGiven {
                let bounds = on_host.grid.bounds();
                self.backend.begin_sort(&mut set.points, lattice, bounds)?;
                set.order = Order::Begun;
            }
        }
        Ok(())
    }

    /// Waits for the sort.
    pub(super) fn finish_sort(&mut self, input: &StepInput<'_>) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.sort").entered();
        if let Some(lattice) = &self.lattice {
            for (set, on_host) in self.sets.iter_mut().zip(&input.sets) {
                if set.order == Order::Begun {
                    let bounds = on_host.grid.bounds();
                    self.backend.finish(&mut set.points, lattice, bounds)?;
                    set.order = Order::Sorted;
                }
            }
        }
        if let Some([before, after]) = self.sorting.take() {
            self.times
                .book("sort", self.backend.between(&before, &after)?);
        }
        Ok(())
    }
}

/// The cells of a lattice for the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuCells {
    /// Cells to a radius along y and z.
    pub(crate) per_radius: u32,
    /// Cells along x for each of these.
    pub(crate) along_x: u32,
}

impl GpuCells {
    /// The lattice of these cells. Those that are divided along x are for `flat`, which searches
    /// around single targets, so they are fitted to a box.
    ///
    /// # Errors
    /// As [`Lattice::new`].
    pub(crate) fn lattice(
        self,
        radius: Radius,
        domain: Domain,
        bounds: &Bounds,
    ) -> Result<Lattice, nearfield_grid::Error> {
        let Self {
            per_radius,
            along_x,
        } = self;
        let make = if along_x > 1 {
            Lattice::fitted
        } else {
            Lattice::divided
        };
        let to_a_radius = [per_radius * along_x, per_radius, per_radius];
        make(radius, domain, to_a_radius, bounds)
    }
}

/// The cells that an engine's settings or its points ask for.
pub(super) fn cells(input: &StepInput<'_>, bounds: &Bounds) -> GpuCells {
    let strategy = input.options.strategy;
    match input.options.subdivision {
        0 | 1 => finer_cells(
            strategy,
            input.points(),
            bounds.extent(),
            input.lattice.edges(),
        ),
        given => GpuCells {
            per_radius: given,
            along_x: 1,
        },
    }
}

/// Class of occupancy of cells whose edge is the radius, and the finest cells whose table is small
/// enough.
fn occupancy(input: &StepInput<'_>, bounds: &Bounds) -> (Class, u32) {
    let cells = cells_of(bounds.extent(), input.lattice.edges());
    let points = input.points();
    let affordable = |k: &u32| f64::from(*k).powi(3) * cells <= MAX_CELLS * points as f64;
    let finest = (2..=3).rev().find(affordable).unwrap_or(1);
    (Class::of(points, cells), finest)
}

/// Cells that a box has, about.
fn cells_of(extent: [f64; 3], edges: [f64; 3]) -> f64 {
    (0..3)
        .map(|axis| extent[axis] / edges[axis] + 1.0)
        .product()
}

/// Cells for a number of points in a box: finer ones test fewer candidates, but their table has to
/// be filled every step. `edges` are those of one cell to a radius.
///
/// The numbers are measurements (docs/measurements/gpu.md, walks), not times of this run: results
/// depend on the order of candidates, so on the cells.
pub(crate) fn finer_cells(
    strategy: Strategy,
    points: usize,
    extent: [f64; 3],
    edges: [f64; 3],
) -> GpuCells {
    let (cells, number) = (cells_of(extent, edges), points.max(1) as f64);
    if strategy == Strategy::Flat {
        let per_radius = if number / cells >= FLAT_FINER_FROM {
            2
        } else {
            1
        };
        return GpuCells {
            per_radius,
            along_x: along_x(per_radius, points, extent, edges),
        };
    }
    let finer = number / cells >= FINER_FROM || 8.0 * cells <= FINER_CELLS * number;
    GpuCells {
        per_radius: if finer { 2 } else { 1 },
        along_x: 1,
    }
}

/// Cells along x for one along y and z, as many as the table allows.
fn along_x(per_radius: u32, points: usize, extent: [f64; 3], edges: [f64; 3]) -> u32 {
    let cubic = f64::from(per_radius).powi(3) * cells_of(extent, edges);
    let room = DIVIDED_CELLS * points as f64 / cubic;
    [MAX_ALONG_X, MAX_ALONG_X / 2]
        .into_iter()
        .find(|&along_x| f64::from(along_x) <= room)
        .unwrap_or(1)
}
