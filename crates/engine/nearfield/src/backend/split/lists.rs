//! Neighbour lists and counts by both backends.

use super::{
    BUFFERS, Backends, Clock, OF_CPU, Shared, Work, WorkKind,
    emulated::{EmulatedDevice, Marks, OwnLender, pair},
    have_grown, is_taken, locked,
    plan::Planned,
    share,
    step::{Both, Seen, Step, gpu_part, learn, learn_alone, on_both},
    times::Measured,
};
use crate::{
    Engine, Error, ListOrder, NeighborLists, PointSetId,
    backend::gpu::{GpuDone, GpuSide},
};
use nearfield_balance::Backend;
use nearfield_cpu::{JointLists, PairOfSets};
use nearfield_gpu::HostLists;
use nearfield_pairs::ListKind;
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

impl Engine {
    /// Writes all lists that are out of date; false when a single backend has to.
    pub(crate) fn find_on_both(&mut self) -> Result<bool, Error> {
        for at in 0..self.pairs.len() {
            if !self.pairs[at].active || self.pairs[at].current {
                continue;
            }
            let mut lists = std::mem::take(&mut self.pairs[at].lists);
            let found = self.lists_by_both(at, &mut lists);
            if matches!(found, Ok(true)) && self.settings.order == ListOrder::Ascending {
                self.backend.install(|| lists.sort());
            }
            let pair = &mut self.pairs[at];
            pair.lists = lists;
            pair.current = matches!(found, Ok(true));
            if !found? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the lists of one pair of sets; false when both backends together cannot.
    fn lists_by_both(&self, at: usize, lists: &mut NeighborLists) -> Result<bool, Error> {
        let Some((hybrid, gpu)) = self.hybrid_sides() else {
            return Ok(false);
        };
        let Some(mut shared) = hybrid.try_lock() else {
            return Ok(false);
        };
        let shared = &mut *shared;
        let work = Work {
            kind: WorkKind::Lists,
            targets: at / self.sets.len(),
            sources: at % self.sets.len(),
        };
        let clock = Clock::start(hybrid);
        let (backends, fits) = self.backends(hybrid, shared, work)?;
        let planning_ms = clock.since_begin_ms();
        let targets = self.sets[work.targets].grid.len();
        let emulated = fits.then(|| hybrid.virtual_times(shared, work)).flatten();
        match (backends, gpu) {
            (Backends::Device, Some(_)) if hybrid.emulated.is_none() => {
                if self.list_into(at, lists)? {
                    let took = (clock.ms(), planning_ms);
                    if let Some(state) = shared.works.get_mut(&work) {
                        learn_alone(state, Backend::Gpu, targets, took, None)?;
                    }
                    return Ok(true);
                }
                Ok(false)
            }
            (Backends::Cpu, _) => {
                self.lists_by_cpu(work, lists)?;
                let took = (clock.ms(), planning_ms);
                if let Some(state) = shared.works.get_mut(&work).filter(|_| fits) {
                    learn_alone(state, Backend::Cpu, targets, took, emulated)?;
                }
                Ok(true)
            }
            _ => {
                let step = Step {
                    hybrid,
                    work,
                    clock,
                    planning_ms,
                    emulated,
                };
                self.lists_joint(&step, gpu, shared, lists)
            }
        }
    }

    fn lists_by_cpu(&self, work: Work, lists: &mut NeighborLists) -> Result<(), Error> {
        let of = self.pair_of_sets(PointSetId(work.targets), PointSetId(work.sources))?;
        Ok(self.backend.search(of, self.settings.lists, lists)?)
    }

    fn lists_joint(
        &self,
        step: &Step<'_>,
        gpu: Option<&GpuSide>,
        shared: &mut Shared,
        lists: &mut NeighborLists,
    ) -> Result<bool, Error> {
        let Step { hybrid, work, .. } = *step;
        let targets = self.sets[work.targets].grid.len();
        shared.clear(targets)?;
        let Shared {
            works,
            taken,
            spent,
            lists: ours,
            sorted,
            unmarked,
        } = shared;
        let Some(state) = works.get_mut(&work) else {
            return Ok(false);
        };
        let [expected, theirs] = state.expected_pairs();
        let expected = expected + expected / 16 + self.backend.slack();
        let Some(planned) = state.planned() else {
            return Ok(false);
        };
        let joint = match (&hybrid.emulated, gpu) {
            (None, Some(gpu)) => {
                let joint = gpu.lend(|lender| lists.begin_joint(targets, theirs, expected, lender));
                match joint {
                    None => return Ok(false),
                    Some(joint) => joint.map_err(Error::Cpu)?,
                }
            }
            _ => lists.begin_joint(targets, theirs, expected, &OwnLender)?,
        };
        let JointLists {
            start,
            count,
            theirs: entries,
            ours: room,
        } = joint;
        let to = HostLists {
            start,
            count,
            entries,
        };
        let (taken, kind) = (&**taken, self.settings.lists);
        let cpu_share = share(planned, (taken, spent), (OF_CPU, u8::MAX));
        // A GPU copies starts and lengths of all lists before their entries, over everything.
        let (hand_over, places) = crossbeam_channel::bounded(1);
        let mut waited = Duration::ZERO;
        let cpu = || {
            let of = self.sets_of_share((hybrid, &mut *sorted), planned, work)?;
            let of = PairOfSets {
                share: Some(cpu_share),
                ..of
            };
            self.backend.search_share(of, kind, room, ours)?;
            let ready = Instant::now();
            let bookkeeping = places.recv();
            waited = ready.elapsed();
            // Nobody hands them over where the device has failed, or keeps them to the end.
            if let Ok((start, count)) = bookkeeping {
                ours.put(start, count, taken, theirs);
            }
            Ok(())
        };
        let mut done = GpuDone::default();
        let both = match (&hybrid.emulated, gpu) {
            (Some(emulated), _) => {
                drop(hand_over);
                let device = ListsOnEmulated::new((emulated, planned), work, kind, to)?;
                let compute = |subregion, buffer| device.compute(subregion, buffer);
                let download = |subregion, buffer| device.download(subregion, buffer);
                let both = step.on_emulated((emulated, planned), compute, download, cpu)?;
                done = device.done();
                both
            }
            (None, Some(gpu)) => {
                let (part, began) = (gpu_part(planned, work), Instant::now());
                let drive = || {
                    // Dropped at the latest when the GPU has done its part.
                    let placed = move |start, count| {
                        // Unless the CPU backend has given up.
                        let _ = hand_over.send((start, count));
                    };
                    let found = gpu.find_part(self, part, kind, (to, placed), began);
                    done = found.ok_or(None)?;
                    Ok(())
                };
                let both = on_both((&self.backend, began), drive, cpu)?;
                // A backend that waits for the other could have done more.
                let cpu_ms = both.cpu_ms - waited.as_secs_f64() * 1e3;
                Both { cpu_ms, ..both }
            }
            (None, None) => return Ok(false),
        };
        drop(places);
        let mut recovery_ms = 0.0;
        if both.failed || !done.fitted {
            let begin = step.clock.ms();
            self.lists_by_cpu(work, lists)?;
            recovery_ms = step.clock.ms() - begin;
        } else {
            lists.work_on(&self.backend);
            let is_put = ours.is_put();
            let mut join = || lists.join(ours, taken, theirs, done.pairs);
            match is_put {
                // Little is left to do, and waking a worker takes longer.
                true => join()?,
                false => self.backend.install(join)?,
            }
            *unmarked = true;
        }
        if !both.failed {
            let found = match done.fitted {
                true => lists.pairs() - done.pairs,
                false => 0,
            };
            state.found([found, done.pairs]);
        }
        let took_memory = gpu.is_some_and(GpuSide::took_memory);
        let seen = Seen {
            both: &both,
            spent,
            targets,
            gpu: Some(&done).filter(|_| hybrid.emulated.is_none()),
            lost: gpu.is_some_and(GpuSide::lost),
            recovery_ms,
            grew: took_memory | have_grown(sorted),
        };
        match done.fitted || both.failed {
            true => learn(&self.backend, state, step, seen)?,
            // A step that had to be done twice says little.
            false => state.note(Measured::by_cpu(targets, step.clock.ms())),
        }
        Ok(true)
    }
}

/// Lists of the subregions of an emulated device.
struct ListsOnEmulated<'a> {
    device: &'a EmulatedDevice,
    planned: &'a Planned,
    work: Work,
    kind: ListKind,
    /// The device's own memory.
    buffers: [Mutex<Buffer>; BUFFERS],
    arrived: Mutex<Arrived<'a>>,
}

/// Lists of a subregion, in the device's memory.
#[derive(Debug)]
struct Buffer {
    lists: NeighborLists,
    marks: Marks,
}

/// Lists on the host.
#[derive(Debug)]
struct Arrived<'a> {
    to: HostLists<'a>,
    pairs: u64,
    fitted: bool,
}

impl<'a> ListsOnEmulated<'a> {
    fn new(
        (device, planned): (&'a EmulatedDevice, &'a Planned),
        work: Work,
        kind: ListKind,
        to: HostLists<'a>,
    ) -> Result<Self, Error> {
        let targets = to.start.len();
        let [first, second] = [Marks::new(targets)?, Marks::new(targets)?];
        Ok(Self {
            device,
            planned,
            work,
            kind,
            buffers: [first, second].map(|marks| {
                Mutex::new(Buffer {
                    lists: NeighborLists::default(),
                    marks,
                })
            }),
            arrived: Mutex::new(Arrived {
                to,
                pairs: 0,
                fitted: true,
            }),
        })
    }

    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), Error> {
        let mut buffer = locked(&self.buffers[buffer]);
        let Buffer { lists, marks } = &mut *buffer;
        marks.clear();
        let sets = self.device.locked();
        let Some(of) = pair(&sets, self.work.targets, self.work.sources) else {
            return Ok(());
        };
        let part = subregion as u8;
        let of = PairOfSets {
            share: Some(share(
                self.planned,
                (&marks.taken, &marks.spent),
                (part, part),
            )),
            ..of
        };
        Ok(self.device.backend().search(of, self.kind, lists)?)
    }

    fn download(&self, _: usize, buffer: usize) -> Result<(), Error> {
        let buffer = locked(&self.buffers[buffer]);
        let mut arrived = locked(&self.arrived);
        for (target, _) in buffer
            .marks
            .taken
            .iter()
            .enumerate()
            .filter(|(_, t)| is_taken(t))
        {
            let list = buffer.lists.of(target);
            let (begin, end) = (arrived.pairs as usize, arrived.pairs as usize + list.len());
            arrived.pairs = end as u64;
            match arrived.to.entries.get_mut(begin..end) {
                Some(place) => place.copy_from_slice(list),
                None => arrived.fitted = false,
            }
            arrived.to.start[target] = begin as u64;
            arrived.to.count[target] = list.len() as u32;
        }
        Ok(())
    }

    fn done(&self) -> GpuDone {
        let arrived = locked(&self.arrived);
        GpuDone {
            pairs: arrived.pairs,
            fitted: arrived.fitted,
            ..GpuDone::default()
        }
    }
}
