//! Sorting an engine's sets on the GPU, into cells of its own.
//!
//! The GPU's cells may be finer than the host's: their number to a radius follows from the
//! occupancy, or, with the strategy `auto`, from the times of steps.
//!
//! A sort is begun and finished by two calls, because the host has time in between: it sends the
//! fields of a kernel while the device sorts. All sets are sorted onto one lattice.
//!
//! With the strategy `auto` a configuration, strategy and cells, is chosen when a sort begins and
//! stays for all jobs until the next sort: another one would need other cells.

use super::{
    bulk::{BulkModel, RadiusClasses},
    cells::{GpuCells, MAX_CELLS, Occupancy, cells_of},
    state::{GpuJobError, GpuState, Order},
};
use crate::{
    backend::{Job, StepInput},
    balance::Strategy,
};
use nearfield_balance::{Class, Configuration};
use nearfield_gpu::{self as gpu, DeviceLattice, Event};
use nearfield_grid::{Bounds, Lattice, Precision, Radii, Radius};
use std::hash::Hash;

impl GpuState {
    /// The configuration to run: that of the engine's settings, or what the times so far speak for.
    fn configuration(&mut self, input: &StepInput<'_>) -> Configuration {
        let (strategy, all) = (input.options.strategy, input.bounds);
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

    /// A mark before work whose time is [booked](Self::book) afterwards; `None` if no times are
    /// wanted.
    pub(super) fn mark_begin(&self) -> Result<Option<Event>, gpu::Error> {
        let timed = self.times.configuration().is_some();
        timed.then(|| self.backend.mark()).transpose()
    }

    /// Books the time since `begin`; `name` tells the work from other jobs of the step. Work that
    /// goes on after the device has done its part has a mark there, `end`.
    pub(super) fn book(
        &mut self,
        name: impl Hash,
        begin: Option<Event>,
        end: Option<Event>,
    ) -> Result<(), gpu::Error> {
        let Some(begin) = begin else { return Ok(()) };
        let took = match end {
            Some(end) => self.backend.between(&begin, &end),
            None => self.backend.since(&begin),
        };
        self.times.book(name, took?);
        Ok(())
    }

    /// Brings all sets onto a lattice for the GPU, which has its own cell size, for a job.
    pub(super) fn sort(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
    ) -> Result<Strategy, GpuJobError> {
        let bulk = self.bulk_for(input, job)?;
        let strategy = self.begin_sort(input, &input.bounds, bulk)?;
        self.finish_sort(input)?;
        Ok(strategy)
    }

    /// Brings all sets into the cells of the host, and so into the order that they have there.
    pub(super) fn sort_as_host(&mut self, input: &StepInput<'_>) -> Result<(), gpu::Error> {
        let per_radius = input.options.subdivision.max(1);
        self.begin_sort_onto(input, input.lattice.clone(), per_radius, None)?;
        self.finish_sort(input)
    }

    /// The radius that cells are made for if a job is faster so, where that is not the lattice's.
    pub(super) fn bulk_for(
        &mut self,
        input: &StepInput<'_>,
        job: Job,
    ) -> Result<Option<Radius>, GpuJobError> {
        let rules = input.rules(job).map_err(GpuJobError::Host)?.radii;
        let counts = [rules.targets().is_some(), rules.sources().is_some()];
        let (radius, options) = (input.lattice.radius(), input.options);
        let flat = matches!(options.strategy, Strategy::Auto | Strategy::Flat);
        let single = radius.precision() == Precision::Single;
        if counts == [false; 2] || options.subdivision > 1 || !flat || !single {
            return Ok(None);
        }
        let (mut all, largest) = (RadiusClasses::NONE, radius.value());
        for (set, of) in self.sets.iter_mut().zip(input.all_sets()) {
            if let Radii::Single(radii) = of.radii
                && radii.len() == of.grid.len()
            {
                all = all.and((set.radii).count(radii, of.radii_stamp, largest, input.cpu));
            }
        }
        let room = (&input.bounds, input.lattice.domain());
        let bulk = BulkModel::new(all, counts, input.points, room).choose(largest, None);
        Ok(bulk.and_then(|bulk| Radius::new(bulk).ok()))
    }

    /// Asks the device to sort all sets that are not sorted, for the job to come. Nothing else may
    /// be done with them before [`finish_sort`](Self::finish_sort).
    /// The lattice holds points within `bounds`, which are at least those of all sets. Its cells
    /// are for the radius `bulk` if the job has been [found](Self::bulk_for) to be faster so.
    pub(super) fn begin_sort(
        &mut self,
        input: &StepInput<'_>,
        bounds: &Bounds,
        bulk: Option<Radius>,
    ) -> Result<Strategy, gpu::Error> {
        if let Some(bulk) = bulk {
            let radius = [bulk.value_f64(); 3];
            let cells = Occupancy::new(input.points, input.bounds.extent(), radius);
            let cells = cells.cells(Strategy::Flat);
            let lattice = cells.lattice(bulk, *input.lattice.domain(), bounds);
            let largest = input.lattice.radius();
            let fits = |lattice: &Lattice| DeviceLattice::may_be_for_bulk(lattice, largest);
            if let Some(lattice) = lattice.ok().filter(fits) {
                self.times.forget_step();
                self.begin_sort_onto(input, lattice, cells.per_radius, Some(largest))?;
                return Ok(Strategy::Flat);
            }
        }
        let config = self.configuration(input);
        let before = self.mark_begin()?;
        let given = input.options.subdivision > 1;
        let edges = input.lattice.edges();
        let cells = GpuCells {
            per_radius: config.subdivision,
            along_x: match config.strategy {
                Strategy::Flat if !given => {
                    let extent = input.bounds.extent();
                    Occupancy::new(input.points, extent, edges).along_x(config.subdivision)
                }
                _ => 1,
            },
        };
        self.begin_sort_by(input, cells, bounds)?;
        if let Some(before) = before {
            self.sorting = Some([before, self.backend.mark()?]);
        }
        Ok(config.strategy)
    }

    pub(super) fn begin_sort_by(
        &mut self,
        input: &StepInput<'_>,
        cells: GpuCells,
        bounds: &Bounds,
    ) -> Result<(), gpu::Error> {
        let (radius, domain) = (input.lattice.radius(), *input.lattice.domain());
        let lattice = match cells.lattice(radius, domain, bounds) {
            Ok(lattice) => lattice,
            // Such cells there are: the engine's own, or those that it would make for a query.
            Err(_) => {
                Lattice::new(radius, domain, 1, bounds).unwrap_or_else(|_| input.lattice.clone())
            }
        };
        self.begin_sort_onto(input, lattice, cells.per_radius, None)
    }

    /// Asks the device to sort the sets that are not sorted onto this lattice, which is for the
    /// bulk of the points if some have radii up to `largest`.
    fn begin_sort_onto(
        &mut self,
        input: &StepInput<'_>,
        lattice: Lattice,
        per_radius: u32,
        largest: Option<Radius>,
    ) -> Result<(), gpu::Error> {
        let _span = tracing::debug_span!("gpu.begin_sort").entered();
        let all = largest.unwrap_or(lattice.radius());
        let same = |old: &DeviceLattice| *old.lattice() == lattice && old.largest() == all;
        if !self.lattice.as_ref().is_some_and(same) {
            let made = self.backend.lattice(&lattice, per_radius)?;
            self.lattice = match largest {
                Some(largest) => made.for_bulk(largest),
                None => Some(made),
            };
            for set in &mut self.sets {
                set.order = Order::AsGiven;
            }
        }
        let Some(lattice) = &self.lattice else {
            return Ok(());
        };
        for (number, set) in self.sets.iter_mut().enumerate().take(input.sets.len()) {
            if set.order == Order::AsGiven {
                let bounds = input.sets.set(number).grid.bounds();
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
            for (number, set) in self.sets.iter_mut().enumerate().take(input.sets.len()) {
                if set.order == Order::Begun {
                    let bounds = input.sets.set(number).grid.bounds();
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

/// The cells that an engine's settings or its points ask for.
pub(super) fn cells(input: &StepInput<'_>, bounds: &Bounds) -> GpuCells {
    let strategy = input.options.strategy;
    match input.options.subdivision {
        0 | 1 => {
            let (points, edges) = (input.points, input.lattice.edges());
            Occupancy::new(points, bounds.extent(), edges).cells(strategy)
        }
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
    let points = input.points;
    let affordable = |k: &u32| f64::from(*k).powi(3) * cells <= MAX_CELLS * points as f64;
    let finest = (2..=3).rev().find(affordable).unwrap_or(1);
    (Class::of(points, cells), finest)
}
