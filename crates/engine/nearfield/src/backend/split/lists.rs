//! Neighbour lists by the device and the CPU backend.
//!
//! Both write into one storage, the device from the front and the CPU backend behind it. A device
//! copies starts and lengths of all lists before their entries, over everything; the CPU backend
//! waits for that hand-over, and puts its own in their places while entries are still coming.
//!
//! Room for entries is guessed from the hits of earlier steps. A device counts before it writes, so
//! too little room is known before anything is written, and the CPU backend does the device's part
//! too; the next step has more room.
//!
//! **Invariant:** every target's start and count are written once by the device and, for targets
//! that the CPU backend has taken, once more by that, never at the same time.

use super::{
    super::{
        DeviceError, Job, StepInput,
        accelerator::{Accelerator, DevicePart, JointRoom},
    },
    done::GpuDone,
    part::{PARTS_OF_CPU, share},
    protocol::{Backends, Compute, ComputeEnd, Drive, DriveEnd, Halves, Outcome, SplitJob, run},
    shared::Split,
    sorted::sets_of_share,
    step::{DividedStep, EngineStep},
};
use crate::{Error, NeighborLists};
use nearfield_balance::run::hand_over;
use nearfield_cpu::{JointLists, PairOfSets};
use nearfield_grid::HostLists;
use std::time::Instant;

/// Writes the lists of a pair of sets with both backends, or with the one that the plan names.
/// Returns why the CPU backend did it alone against the plan, if it did.
///
/// # Errors
/// Those of the host. A fault of the device is not an error: the CPU backend then does the job.
pub(crate) fn find(
    device: &dyn Accelerator,
    split: &Split,
    input: &StepInput<'_>,
    job: Job,
    lists: &mut NeighborLists,
) -> Result<Option<String>, Error> {
    let mut step = ListsStep {
        on: EngineStep::begin(device, split, input, job),
        lists,
        done: GpuDone::default(),
        room: 0,
    };
    let outcome = run(input.cpu, &mut step)?;
    Ok(step.on.instead(&outcome))
}

/// Lists of a pair of sets, as a job of two backends.
struct ListsStep<'s> {
    on: EngineStep<'s>,
    lists: &'s mut NeighborLists,
    /// The device's account of its part.
    done: GpuDone,
    /// Entries that the device has room for.
    room: usize,
}

impl SplitJob for ListsStep<'_> {
    fn plan(&mut self) -> Result<Backends, Error> {
        self.on.plan()
    }

    fn by_cpu(&mut self) -> Result<(), Error> {
        self.on.input.search(self.on.job, self.lists)
    }

    fn by_device(&mut self) -> Result<(), DeviceError> {
        self.on.device.find(self.on.input, self.on.job, self.lists)
    }

    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError> {
        let EngineStep {
            input, device, job, ..
        } = self.on;
        let targets = input.points_of(job)[0];
        let DividedStep {
            planned,
            expected: [of_cpu, of_device],
            taken,
            spent,
            lists: ours,
            sorted,
        } = self.on.divide(targets)?;
        self.room = of_device;
        let room = JointRoom {
            device: of_device,
            cpu: of_cpu + of_cpu / 16 + input.cpu.slack(),
        };
        let JointLists {
            start,
            count,
            theirs: entries,
            ours: place,
        } = device.begin_joint(self.lists, targets, room)?;
        let to = HostLists {
            start,
            count,
            entries,
        };
        let (give, places) = hand_over();
        let done = &mut self.done;
        let drive = move |began: Instant| {
            let part = DevicePart {
                job,
                planned,
                began,
            };
            let mut give = Some(give);
            let placed = &mut |start, count| {
                if let Some(give) = give.take() {
                    give.give((start, count));
                }
            };
            *done = device.find_part(input, part, to, placed)?;
            Ok(if done.fitted {
                DriveEnd::Done
            } else {
                DriveEnd::NoRoom
            })
        };
        let compute = move || {
            let of = sets_of_share(input, sorted, planned, job)?;
            let of = PairOfSets {
                filter: Default::default(),
                share: Some(share(planned, taken, spent, PARTS_OF_CPU)),
                ..of
            };
            input
                .cpu
                .search_share(of, input.options.lists, place, ours)?;
            let ready = Instant::now();
            // A device that has failed hands nothing over.
            let handed = places.wait();
            let waited = ready.elapsed();
            if let Some((start, count)) = handed {
                ours.put(start, count, taken, of_device);
            }
            Ok(ComputeEnd { waited })
        };
        Ok(Halves { drive, compute })
    }

    fn join(&mut self) -> Result<(), Error> {
        let (input, found_by_device) = (self.on.input, self.done.pairs);
        let Some(shared) = self.on.shared.as_deref_mut() else {
            return Ok(());
        };
        let (ours, taken, room) = (&mut shared.lists, &shared.taken, self.room);
        self.lists.work_on(input.cpu);
        let is_put = ours.is_put();
        let mut join = || self.lists.join(ours, taken, room, found_by_device);
        if is_put {
            // Little is left to do, and waking a worker takes longer.
            join()?;
        } else {
            input.cpu.install(join)?;
        }
        shared.unmarked = true;
        let found_by_cpu = self.lists.pairs() - found_by_device;
        self.on.found([found_by_cpu, found_by_device]);
        Ok(())
    }

    fn recover(&mut self) -> Result<(), Error> {
        self.by_cpu()
    }

    fn learn(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if outcome.no_room {
            self.on.found([0, self.done.pairs]);
        }
        self.on.learn(outcome, &self.done)
    }
}
