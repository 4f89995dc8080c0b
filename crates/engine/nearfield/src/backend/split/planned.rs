//! A plan: which bricks are whose, made from the points of some step.
//!
//! Occupied cells of both sets are counted and put together to bricks, whose work is the number of
//! pairs they have to test. A controller's cuts divide the bricks; the outcome is a map from bricks
//! to parts, one byte each, that both backends read: the CPU backend on the host, a GPU from a copy
//! that it keeps by the plan's version.
//!
//! The map covers the box around all bricks, empty ones too, and whatever lies outside of it
//! belongs to some part. So a plan stays complete when points move, and only becomes uneven.
//!
//! **Invariant:** two plans with the same version are the same plan.
//!
//! Bricks are the unit, not cells, because the map is looked up per cell and its size is that of
//! the box: bricks of 2³ cells make it an eighth. Larger bricks would mix cells of different
//! occupancy, and the threshold tells bricks apart by occupancy. Points that lie far apart make the
//! box large for its contents; edges are doubled until the map has at most 65,536 bricks, or 64 for
//! each that holds points.
//!
//! On an open domain, where the points were not sorted on the host anyway, the CPU backend sorts
//! only the points of its own bricks and those within reach ([`needed`](BrickPlan::needed)). In a
//! periodic one, where its bricks are most of the work, or where their surroundings hold most of
//! the points, it sorts all: leaving out the few others would cost more than it saves.

use super::settings::Settings;
use nearfield_balance::{
    Backend, Bricks, CellLoad, Decision, EmulatedSpec, Layout, Machine, Neighbourhood, Plan,
    RowOffset, Traffic,
};
use nearfield_cpu::PairOfSets;
use nearfield_grid::{
    BrickParts, Grid, Lattice,
    memory::{Shortage, collected},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of the CPU backend have this bit; subregions are below it.
pub(crate) const OF_CPU: u8 = 0x80;

/// Bricks that a map may have per brick that holds points…
const SPREAD: usize = 64;
/// …and always.
const SMALL_MAP: usize = 1 << 16;
/// Thresholds that are compared where times do not count.
const USUAL_THETAS: usize = 16;
/// Share of the work, and of the points within reach, above which the CPU backend sorts all points.
const MAX_SHARE: f64 = 0.7;
const MAX_NEEDED: f64 = 0.7;

/// Plans made so far.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

/// A version that no plan of this process has had.
pub(super) fn next_version() -> u64 {
    VERSIONS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Division of the bricks between the backends.
#[derive(Debug)]
pub(crate) struct BrickPlan {
    /// The bricks, in subregions and in the order in which they go over.
    pub(super) layout: Layout,
    /// The bricks of either backend by the last cuts.
    pub(super) plan: Plan,
    /// The same as a map: subregion numbers, those of the CPU backend with [`OF_CPU`].
    pub(super) parts: BrickParts,
    /// Bricks whose points the CPU backend needs, as part 1; None where it needs all.
    pub(super) needed: Option<BrickParts>,
    /// Cells of a brick along each axis.
    pub(super) edge: u32,
    pub(super) lattice: Lattice,
    /// Tells the plan from all others.
    pub(super) version: u64,
}

/// How the work is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitState {
    /// Mean threshold over subregions.
    pub(super) theta: f64,
    /// The CPU backend's share of the work, 0 to 1.
    pub(super) share: f64,
}

impl BrickPlan {
    /// The bricks, cut into subregions.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bricks of either backend, with what crosses between them.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The part of every brick.
    pub(crate) fn parts(&self) -> &BrickParts {
        &self.parts
    }

    /// Bricks whose points the CPU backend needs, as part 1; None where it may as well have all.
    pub(crate) fn needed(&self) -> Option<&BrickParts> {
        self.needed.as_ref()
    }

    /// Cells of a brick.
    pub(crate) fn cells_of_brick(&self) -> u64 {
        u64::from(self.edge).saturating_pow(3)
    }

    /// The lattice that the parts were made for.
    pub(crate) fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Tells the plan, and its division, from all others of the process.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Divides the bricks as a decision says; after an error they are divided as before.
    pub(super) fn cut(&mut self, decision: &Decision) -> Result<(), nearfield_balance::Error> {
        let plan = Plan::new(&self.layout, &decision.cuts)?;
        let parts = parts_of(&self.layout, &plan, self.edge)?;
        self.needed = needed(&parts, (&self.layout, &plan), &self.lattice)?;
        (self.plan, self.parts, self.version) = (plan, parts, next_version());
        Ok(())
    }

    /// How the work is divided, for traces.
    pub(super) fn split(&self) -> SplitState {
        SplitState {
            theta: self.theta(),
            share: self.plan.share(),
        }
    }

    /// Mean threshold over subregions, weighted by work.
    pub(crate) fn theta(&self) -> f64 {
        let (mut sum, mut work) = (0.0, 0.0);
        for (subregion, &cut) in self.plan.cuts().iter().enumerate() {
            let weight = self.layout.work(subregion) as f64;
            sum += weight * self.layout.theta_of(subregion, cut);
            work += weight;
        }
        if work > 0.0 { sum / work } else { 0.0 }
    }

    /// Subregions that there are.
    pub(crate) fn subregions(&self) -> usize {
        self.layout.subregions().len()
    }
}

/// Bricks of the points as they are, cut into subregions, and the edge of the bricks: larger than
/// asked for where points lie so far apart that a map of all bricks would be a burden.
pub(super) fn layout(
    of: PairOfSets<'_>,
    settings: &Settings,
    traffic: Traffic,
) -> Result<(Layout, u32), nearfield_balance::Error> {
    let lattice = of.targets.lattice();
    let near = neighbourhood(lattice)?;
    let mut edge = settings.brick_edge;
    loop {
        let bricks = Bricks::new(cells(of)?, &near, edge)?;
        let (_, dims) = extent(&bricks);
        let map = dims
            .iter()
            .try_fold(1usize, |all, &dim| all.checked_mul(dim as usize));
        let most = SMALL_MAP.max(SPREAD * bricks.as_slice().len());
        if map.is_none_or(|map| map > most) && edge > 1 << 29 {
            // Cells as far apart as cells can be: one backend has to do.
            let nothing = Bricks::new([], &near, edge)?;
            let layout = Layout::new(nothing, settings.subregions, traffic)?;
            return Ok((layout, edge));
        }
        if map.is_some_and(|map| map <= most) {
            let layout = Layout::with_ties(bricks, settings.subregions, traffic, settings.ties)?;
            return Ok((layout, edge));
        }
        edge *= 2;
    }
}

/// The threshold that suits a typical machine.
pub(super) fn usual_theta(layout: &Layout) -> Result<f64, nearfield_balance::Error> {
    let machine = Machine::new(EmulatedSpec::default());
    let mut best = (f64::INFINITY, 0.0);
    for theta in layout.thetas(USUAL_THETAS)? {
        let plan = Plan::new(layout, &layout.cuts(theta))?;
        let total = machine.quiet(layout, &plan).total_ms();
        if total < best.0 {
            best = (total, theta);
        }
    }
    Ok(best.1)
}

/// Occupied cells of both sets; those of one set once.
fn cells(of: PairOfSets<'_>) -> Result<impl Iterator<Item = CellLoad>, Shortage> {
    let of_grid = |grid: &'_ Grid| {
        let all = 0..grid.points().len();
        // Collected, because the iterator of cells borrows the grid's table mutably in turn.
        let cells = grid.cells(all);
        collected(
            cells.map(|(cell, slots)| (cell, slots.len() as u32)),
            "occupied cells",
        )
    };
    let targets = of_grid(of.targets)?;
    let sources = match of.same_set {
        true => Vec::new(),
        false => of_grid(of.sources)?,
    };
    let same_set = of.same_set;
    let targets = targets.into_iter().map(move |(cell, points)| CellLoad {
        cell,
        targets: points,
        sources: if same_set { points } else { 0 },
    });
    Ok(
        targets.chain(sources.into_iter().map(|(cell, points)| CellLoad {
            cell,
            targets: 0,
            sources: points,
        })),
    )
}

/// The rows of cells that a cell's targets reach into, and the number of cells along periodic axes.
fn neighbourhood(lattice: &Lattice) -> Result<Neighbourhood, Shortage> {
    let rows = lattice.rows().iter().map(|row| RowOffset {
        y: row.y,
        z: row.z,
        reach: row.reach,
    });
    Ok(Neighbourhood {
        rows: collected(rows, "rows of cells in reach")?,
        periods: [0, 1, 2].map(|axis| Some(lattice.scale(axis).cells).filter(|&cells| cells > 0)),
    })
}

/// First brick and number of bricks along each axis.
fn extent(bricks: &Bricks) -> ([i64; 3], [u32; 3]) {
    let (mut low, mut high) = ([i64::MAX; 3], [i64::MIN; 3]);
    for brick in bricks.as_slice() {
        for axis in 0..3 {
            low[axis] = low[axis].min(brick.at[axis]);
            high[axis] = high[axis].max(brick.at[axis]);
        }
    }
    let dims = std::array::from_fn(|axis| {
        let dim = high[axis].saturating_sub(low[axis]).saturating_add(1);
        u32::try_from(dim).unwrap_or(if dim < 0 { 0 } else { u32::MAX })
    });
    (low, dims)
}

/// Owner of every brick: its subregion, with [`OF_CPU`] set if it is the CPU backend's. Points
/// outside of all bricks go to the device.
///
/// A point outside of the map lies outside of everything that the plan was made from. The device
/// has all points of all sets sorted, so it can do such a target without anything being brought
/// over.
pub(super) fn parts_of(layout: &Layout, plan: &Plan, edge: u32) -> Result<BrickParts, Shortage> {
    let bricks = layout.bricks();
    let (first, dims) = extent(bricks);
    // Layouts are made so that the map is small.
    let parts = BrickParts::new(edge, first, dims, 0, usize::MAX)?;
    let mut parts = parts.unwrap_or_else(|| BrickParts::everywhere(0));
    for (number, subregion) in layout.subregions().iter().enumerate() {
        for brick in subregion.bricks.clone() {
            let part = match plan.backend(brick) {
                Some(Backend::Cpu) => OF_CPU | number as u8,
                _ => number as u8,
            };
            parts.set(bricks.as_slice()[brick].at, part);
        }
    }
    Ok(parts)
}

/// The CPU backend's bricks and those within reach, where leaving out the others is worth it.
///
/// Reach is the largest number of cells that a row of the neighbourhood extends, along any axis,
/// rounded up to whole bricks. So the map holds too much rather than too little.
pub(super) fn needed(
    parts: &BrickParts,
    (layout, plan): (&Layout, &Plan),
    lattice: &Lattice,
) -> Result<Option<BrickParts>, Shortage> {
    let domain = lattice.domain();
    if domain.is_periodic() || plan.share() == 0.0 || plan.share() > MAX_SHARE {
        return Ok(None);
    }
    let rows = lattice.rows().iter();
    let reach = rows
        .map(|row| row.reach.max(row.y.abs()).max(row.z.abs()))
        .max();
    let Some(reach) = reach.and_then(|reach| u32::try_from(reach).ok()) else {
        return Ok(None);
    };
    let reach = reach.div_ceil(parts.edge());
    let needed = parts.around(|part| part & OF_CPU != 0, reach)?;
    let (mut all, mut near) = (0u64, 0u64);
    for brick in layout.bricks().as_slice() {
        let points = u64::from(brick.sources.max(brick.targets));
        let cell = brick.at.map(|at| at * i64::from(parts.edge()));
        all += points;
        near += points * u64::from(needed.part(cell));
    }
    Ok(((near as f64) < MAX_NEEDED * all as f64).then_some(needed))
}
