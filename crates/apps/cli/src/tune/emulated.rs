//! The sweep on an emulated machine: real cells and bricks, times by a virtual clock.

use super::task::{Combination, Division, Outcome, Task, key};
use crate::{bench::Work, failure::Failure};
use nearfield::balance::emulated::EmulatedSpec;
use nearfield_balance::{
    Bricks, CellLoad, Layout, Machine, Neighbourhood, RowOffset, Ties, Traffic,
    tune::{Row, settle, sweep},
};
use nearfield_grid::{Bounds, Domain, Grid, Lattice, Radius, memory::collected};

/// Sweeps thresholds and runs the policies for every combination of the task.
pub(super) fn run(task: &Task, spec: EmulatedSpec) -> Result<Vec<Combination>, Failure> {
    let (cells, near) = cells(task)?;
    task.combinations()
        .map(|division| {
            let layout = layout(task, &cells, &near, division, Ties::Even)?;
            combination(task, spec, &layout, division)
        })
        .collect()
}

/// Points of every occupied cell, and which cells hold candidates of a cell.
pub(super) fn cells(task: &Task) -> Result<(Vec<CellLoad>, Neighbourhood), Failure> {
    let domain = task.boundaries.map_or(Ok(Domain::OPEN), |b| b.domain())?;
    let positions = (&task.positions).into();
    let bounds = Bounds::of(positions, &domain)?;
    let lattice = Lattice::new(Radius::new(task.radius)?, domain, 1, &bounds)?;
    let mut grid = Grid::new(lattice.clone());
    grid.build(positions, bounds, &lattice)?;
    let cells = grid.cells(0..grid.points().len()).map(|(cell, points)| {
        let points = points.len() as u32;
        CellLoad {
            cell,
            targets: points,
            sources: points,
        }
    });
    let near = Neighbourhood {
        rows: lattice
            .rows()
            .iter()
            .map(|row| RowOffset {
                y: row.y,
                z: row.z,
                reach: row.reach,
            })
            .collect(),
        periods: [0, 1, 2].map(|axis| {
            let cells = lattice.scale(axis).cells;
            (cells > 0).then_some(cells)
        }),
    };
    Ok((collected(cells, "the points of cells")?, near))
}

/// The cells as bricks and subregions.
pub(super) fn layout(
    task: &Task,
    cells: &[CellLoad],
    near: &Neighbourhood,
    division: Division,
    ties: Ties,
) -> Result<Layout, Failure> {
    let bricks = Bricks::new(cells.iter().copied(), near, division.edge)?;
    let traffic = traffic(task.work);
    Ok(Layout::with_ties(
        bricks,
        division.subregions,
        traffic,
        ties,
    )?)
}

/// Bytes that cross the bus for this job.
fn traffic(work: Work) -> Traffic {
    match work {
        Work::Lists | Work::Geometry => Traffic::LISTS,
        Work::Density => Traffic::SUMS,
        // Positions, and a number back.
        Work::Count => Traffic {
            upload_per_source: 12.0,
            ..Traffic::SUMS
        },
        // Positions, velocities, densities, pressures and masses, and a vector back.
        Work::Force => Traffic {
            upload_per_source: 36.0,
            download_per_target: 12.0,
            ..Traffic::SUMS
        },
    }
}

fn combination(
    task: &Task,
    spec: EmulatedSpec,
    layout: &Layout,
    division: Division,
) -> Result<Combination, Failure> {
    let sweep = sweep(layout, &Machine::new(spec), task.rows)?;
    let best = best(&sweep)?;
    let mut policies = Vec::new();
    for &policy in &task.policies {
        let settled = settle(layout, spec, policy, task.steps)?;
        let to_best = settled.total_ms / best.total_ms;
        policies.push((key(policy, &task.policies), Outcome { settled, to_best }));
    }
    Ok(Combination {
        bricks: division.edge,
        subregions: division.subregions.count,
        occupied_bricks: layout.bricks().as_slice().len(),
        highest: layout.highest(),
        sweep,
        best,
        policies,
    })
}

/// The row of least time.
pub(super) fn best(sweep: &[Row]) -> Result<Row, Failure> {
    sweep
        .iter()
        .min_by(|a, b| a.total_ms.total_cmp(&b.total_ms))
        .copied()
        .ok_or_else(|| Failure::Wrong("no threshold was swept".into()))
}
