//! The points that the CPU backend needs for its part of a step, sorted.
//!
//! The device sorts for itself. Sorting all points on the host too would cost as much as a small
//! part of the work saves, so only points in the CPU backend's bricks and within reach of them are
//! sorted, from the copy of the positions that was made for the device. A sort is kept for all jobs
//! that follow with the same positions and the same plan.
//!
//! **Invariant:** a partial grid holds every point within reach of every target of the CPU backend,
//! in its own cells. Its lists are therefore those of the whole set; neighbours are named by the
//! caller's index in both.

use super::{
    super::{Job, StepInput},
    planned::BrickPlan,
};
use crate::{Error, ErrorKind};
use nearfield_cpu::{PairOfSets, SetRadii};
use nearfield_grid::Grid;
use std::collections::HashMap;

/// Part of the memory held that more memory has to exceed to be much.
const MUCH: usize = 8;

/// Those points of a set that the CPU backend needs for a plan.
#[derive(Debug)]
pub(super) struct PartOfSet {
    grid: Grid,
    /// Number of the positions, and of the plan, that it was made for.
    stamp: u64,
    version: u64,
    /// Whether much memory was taken for it since this was last asked. Taking it takes longer than
    /// the sort. A few points more than ever before are none of that: most steps have them.
    grew: bool,
}

/// The sets of a job as the CPU backend needs them for its part: whole where they are sorted
/// anyway, else the points within reach of its bricks.
pub(super) fn sets_of_share<'a>(
    input: &'a StepInput<'_>,
    sorted: &'a mut HashMap<usize, PartOfSet>,
    planned: &BrickPlan,
    job: Job,
) -> Result<PairOfSets<'a>, Error> {
    let Some(needed) = planned.needed() else {
        return input.pair(job);
    };
    let sets = [job.targets, job.sources];
    if sets
        .iter()
        .any(|&set| input.sets.set(set).grid.made().is_some())
    {
        return input.pair(job);
    }
    for number in sets {
        let set = input.sets.set(number);
        let Some(positions) = set.grid.copied() else {
            return input.pair(job);
        };
        let part = sorted.entry(number).or_insert_with(|| PartOfSet {
            grid: Grid::new(input.lattice.clone()),
            stamp: 0,
            version: 0,
            grew: false,
        });
        if (part.stamp, part.version) == (set.stamp, planned.version()) {
            continue;
        }
        let positions = positions.as_chunks::<3>().0;
        let (lattice, grid) = (planned.lattice(), &mut part.grid);
        let (held, bounds) = (grid.bytes(), set.grid.bounds());
        let build = || grid.build_part(positions, bounds, lattice, needed, 1);
        (input.cpu.install(build)).map_err(|source| ErrorKind::Positions {
            set: set.id,
            source,
        })?;
        (part.stamp, part.version) = (set.stamp, planned.version());
        part.grew |= part.grid.bytes() > held + held / MUCH;
    }
    let grid = |set: usize| sorted.get(&set).map(|part| &part.grid);
    match (grid(job.targets), grid(job.sources)) {
        (Some(targets), Some(sources)) => Ok(PairOfSets {
            targets,
            sources,
            same_set: job.targets == job.sources,
            radii: SetRadii::Uniform,
            filter: Default::default(),
            share: None,
        }),
        _ => input.pair(job),
    }
}

/// Whether memory was taken for any of these parts since this was asked last.
pub(super) fn have_grown(parts: &mut HashMap<usize, PartOfSet>) -> bool {
    let grown = |part: &mut PartOfSet| std::mem::take(&mut part.grew);
    parts
        .values_mut()
        .fold(false, |any, part| grown(part) | any)
}
