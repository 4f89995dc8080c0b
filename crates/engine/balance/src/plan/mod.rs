//! Which backend works on which brick, in what order, and the data that cross between them.
//!
//! A plan is a pure function of the [`Layout`] and one [`Cut`] per subregion. Its order is that of
//! the sort rule: key = [subregion | backend | brick | cell], so the bricks of one backend within
//! one subregion are contiguous and move in one transfer.
//!
//! # Halo
//!
//! Bricks of one backend that lie near bricks of the other are its halo. A pass that needs results
//! of neighbours, as a force needs densities, exchanges only these. In a compact split the halo is
//! a surface, some percent of the bricks.
//!
//! # Uploads
//!
//! The GPU needs the sources of its own bricks and of all bricks near them. Each brick is sent
//! once, with the first subregion that needs it, so the first subregion can start when its own
//! part has arrived.
//!
//! **Invariant others rely on:** every brick that holds targets stands in the order exactly once;
//! the parts of both backends, subregion by subregion, cover the order without gaps; and when a
//! source of one backend's brick can be a neighbour of a target of the other's, its brick is in
//! the halo.

pub(crate) mod cut;
pub(crate) mod pipeline;
pub(crate) mod times;

use crate::{Error, ErrorKind, Layout, Load};
use cut::{Backend, Cut};
use nearfield_grid::memory::{Shortage, collected, copied, filled, make_room, make_room_for_one};
use std::ops::Range;

/// The name of the memory in messages.
const PLAN: &str = "a plan of bricks";

/// The part of one backend in one subregion.
///
/// Ranges and not lists, because the order of the plan makes them contiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePart {
    /// Its bricks, as places in [`Plan::order`].
    pub bricks: Range<usize>,
    /// Its targets, numbered in that order.
    pub slots: Range<u64>,
    /// Its load.
    pub load: Load,
    /// Those of its bricks that the other backend needs results of, as places in
    /// [`Plan::halo`] of the backend.
    pub halo: Range<usize>,
}

/// One subregion of a plan.
///
/// A stage of the pipeline: its upload may begin while the stage before computes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The CPU backend's part.
    pub cpu: StagePart,
    /// The GPU backend's part.
    pub gpu: StagePart,
    /// Bricks whose sources the GPU needs from here on, as places in [`Plan::uploads`].
    pub uploads: Range<usize>,
    /// Bytes to the GPU.
    pub upload: f64,
    /// Bytes back.
    pub download: f64,
}

/// The assignment of bricks to backends for a step.
///
/// It owns all its lists and refers to nothing, so it can be handed to other threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The cuts it was made from.
    cuts: Vec<Cut>,
    /// The subregions.
    stages: Vec<Stage>,
    /// Backend of every brick; None without targets.
    backends: Vec<Option<Backend>>,
    /// Bricks with targets, in the order of the sort rule.
    order: Vec<u32>,
    /// First target of every brick of the order.
    slots: Vec<u64>,
    /// Bricks to send, in order.
    uploads: Vec<u32>,
    /// Halo of either backend.
    halo: [Vec<u32>; 2],
    /// The load of either backend in all.
    loads: [Load; 2],
}

impl Plan {
    /// Splits every subregion of `layout` at its cut.
    ///
    /// # Errors
    /// [`ErrorKind::Cuts`] unless there is one cut per subregion, [`ErrorKind::Memory`].
    ///
    /// Costs some microseconds per thousand bricks and their near bricks.
    pub fn new(layout: &Layout, cuts: &[Cut]) -> Result<Self, Error> {
        let subregions = layout.subregions().len();
        if cuts.len() != subregions {
            return Err(ErrorKind::Cuts {
                cuts: cuts.len(),
                subregions,
            }
            .into());
        }
        let mut plan = Self {
            cuts: copied(cuts, PLAN)?,
            stages: Vec::new(),
            backends: backends(layout, cuts)?,
            order: Vec::new(),
            slots: Vec::new(),
            uploads: Vec::new(),
            halo: [Vec::new(), Vec::new()],
            loads: [Load::default(); 2],
        };
        let bricks = plan.backends.len();
        make_room(&mut plan.stages, subregions, PLAN)?;
        make_room(&mut plan.order, bricks, PLAN)?;
        make_room(&mut plan.slots, bricks + 1, PLAN)?;
        plan.slots.push(0);
        let mut sent = filled(bricks, false, PLAN)?;
        for subregion in 0..subregions {
            let cpu = plan.push_part(layout, subregion, Backend::Cpu)?;
            let gpu = plan.push_part(layout, subregion, Backend::Gpu)?;
            for (sum, part) in plan.loads.iter_mut().zip([&cpu, &gpu]) {
                *sum += part.load;
            }
            let (uploads, upload) = plan.push_uploads(layout, gpu.bricks.clone(), &mut sent)?;
            plan.stages.push(Stage {
                download: layout.traffic().download(gpu.load.targets, gpu.load.work()),
                cpu,
                gpu,
                uploads,
                upload,
            });
        }
        Ok(plan)
    }

    /// The part of a backend, in the room that was made for all bricks.
    ///
    /// Bricks of the part in row order, with the load and the part of the halo.
    fn push_part(
        &mut self,
        layout: &Layout,
        subregion: usize,
        backend: Backend,
    ) -> Result<StagePart, Shortage> {
        let first = self.order.len();
        let halo = &mut self.halo[backend as usize];
        let first_of_halo = halo.len();
        let mut load = Load::default();
        for brick in layout.subregions()[subregion].bricks.clone() {
            if self.backends[brick] != Some(backend) {
                continue;
            }
            let points = &layout.bricks().as_slice()[brick];
            self.order.push(brick as u32);
            self.slots
                .push(self.slots[self.slots.len() - 1] + u64::from(points.targets));
            load.add(points);
            let mut near = layout.bricks().near(brick).iter();
            if near.any(|&near| self.backends[near as usize].is_some_and(|other| other != backend))
            {
                make_room_for_one(halo, PLAN)?;
                halo.push(brick as u32);
            }
        }
        Ok(StagePart {
            bricks: first..self.order.len(),
            slots: self.slots[first]..self.slots[self.order.len()],
            load,
            halo: first_of_halo..halo.len(),
        })
    }

    /// Lists the bricks that the GPU's part of a subregion needs and that were not sent before;
    /// returns their range and bytes.
    fn push_uploads(
        &mut self,
        layout: &Layout,
        bricks: Range<usize>,
        sent: &mut [bool],
    ) -> Result<(Range<usize>, f64), Shortage> {
        let first = self.uploads.len();
        let mut bytes = 0.0;
        if layout.traffic().sends_nothing() {
            return Ok((first..first, bytes));
        }
        for &brick in &self.order[bricks] {
            for &near in layout.bricks().near(brick as usize) {
                if !std::mem::replace(&mut sent[near as usize], true) {
                    make_room_for_one(&mut self.uploads, PLAN)?;
                    self.uploads.push(near);
                    bytes += layout
                        .traffic()
                        .upload(&layout.bricks().as_slice()[near as usize]);
                }
            }
        }
        Ok((first..self.uploads.len(), bytes))
    }

    /// The cuts it was made from.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// The subregions.
    ///
    /// One per subregion, also where a backend has no work in it.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The backend of a brick; None when it holds no targets.
    ///
    /// A look-up.
    pub fn backend(&self, brick: usize) -> Option<Backend> {
        self.backends[brick]
    }

    /// Bricks that hold targets, in the order of the sort rule.
    ///
    /// An engine sorts its targets by it, so that a part is a range of the sorted targets.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// First target of each brick of the order, and at the end the number of targets.
    ///
    /// A prefix sum of the targets of the bricks.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Bricks whose sources go to the GPU, each once, before the subregion that needs it first;
    /// none when nothing is sent for any.
    ///
    /// In the order in which they are sent.
    pub fn uploads(&self) -> &[u32] {
        &self.uploads
    }

    /// Bricks of a backend that lie near bricks of the other one: between passes that need
    /// neighbours' results only theirs are exchanged.
    ///
    /// Both halos together are the surface between the backends.
    pub fn halo(&self, backend: Backend) -> &[u32] {
        &self.halo[backend as usize]
    }

    /// The load of a backend in all.
    ///
    /// The sum over all stages.
    pub fn load(&self, backend: Backend) -> Load {
        self.loads[backend as usize]
    }

    /// The CPU backend's share of the work, 0 to 1.
    ///
    /// By work and not by points.
    pub fn share(&self) -> f64 {
        let cpu = self.load(Backend::Cpu).work() as f64;
        let all = cpu + self.load(Backend::Gpu).work() as f64;
        if all > 0.0 { cpu / all } else { 0.0 }
    }

    /// Bytes that the GPU must hold: all sources sent, and the results of three subregions at a
    /// time (one being computed, one fetched, one waiting).
    ///
    /// A lower bound by the plan; an engine's buffers have some room more.
    pub fn device_bytes(&self) -> f64 {
        let uploads: f64 = self.stages.iter().map(|stage| stage.upload).sum();
        let results = self
            .stages
            .windows(3.min(self.stages.len()).max(1))
            .map(|stages| stages.iter().map(|stage| stage.download).sum())
            .fold(0.0, f64::max);
        uploads + results
    }
}

/// The backend of every brick: the GPU, except for the bricks that the cuts give to the CPU
/// backend; None for bricks without targets.
fn backends(layout: &Layout, cuts: &[Cut]) -> Result<Vec<Option<Backend>>, Shortage> {
    let all = layout.bricks().as_slice().iter();
    let backends = all.map(|brick| (brick.targets > 0).then_some(Backend::Gpu));
    let mut backends = collected(backends, PLAN)?;
    for (subregion, &cut) in cuts.iter().enumerate() {
        let bricks = layout.bricks_of(subregion, cut);
        match cut {
            Cut::Occupancy { .. } => {
                for &brick in &layout.ladder(subregion)[..bricks] {
                    backends[brick as usize] = Some(Backend::Cpu);
                }
            }
            Cut::Leading(_) => backends[layout.subregions()[subregion].bricks.clone()]
                .iter_mut()
                .flatten()
                .take(bricks)
                .for_each(|backend| *backend = Backend::Cpu),
        }
    }
    Ok(backends)
}
