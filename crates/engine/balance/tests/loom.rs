//! The hand-offs between the stages of a backend, under every interleaving of their threads that has
//! at most `LOOM_MAX_PREEMPTIONS` preemptions (all of them when it is not set).
//!
//! Run by `scripts/loom`; without `--cfg loom` there is nothing here.
#![cfg(loom)]

use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use nearfield_balance::{
    Stages,
    run::stations::{Faults, Step, line},
};
use std::time::Instant;

const SUBREGIONS: [usize; 3] = [4, 0, 7];
const BUFFERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Upload,
    Compute,
    Download,
}

/// Where the backend fails.
type Failing = Option<(Stage, usize)>;

/// A backend whose memory loom watches: two accesses that no hand-off puts in order fail the model.
struct Device {
    failing: Failing,
    sources: [UnsafeCell<usize>; SUBREGIONS.len()],
    buffers: [UnsafeCell<usize>; BUFFERS],
    results: [UnsafeCell<usize>; SUBREGIONS.len()],
    calls: [[AtomicUsize; SUBREGIONS.len()]; 3],
}

impl Device {
    fn new(failing: Failing) -> Self {
        let cells = || std::array::from_fn(|_| UnsafeCell::new(0));
        Self {
            failing,
            sources: cells(),
            buffers: std::array::from_fn(|_| UnsafeCell::new(0)),
            results: cells(),
            calls: std::array::from_fn(|_| std::array::from_fn(|_| AtomicUsize::new(0))),
        }
    }

    fn begin(&self, stage: Stage, subregion: usize) -> Result<usize, (Stage, usize)> {
        let place = SUBREGIONS.iter().position(|&s| s == subregion).unwrap();
        let before = self.calls[stage as usize][place].fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "{stage:?} of place {place} twice");
        match self.failing == Some((stage, place)) {
            true => Err((stage, place)),
            false => Ok(place),
        }
    }

    fn called(&self, stage: Stage, place: usize) -> bool {
        self.calls[stage as usize][place].load(Ordering::Relaxed) == 1
    }
}

fn set(cell: &UnsafeCell<usize>, value: usize) {
    // SAFETY: loom fails the model when another access is not ordered before or after this one.
    cell.with_mut(|at| unsafe { *at = value });
}

fn get(cell: &UnsafeCell<usize>) -> usize {
    // SAFETY: as in `set`.
    cell.with(|at| unsafe { *at })
}

impl Stages for Device {
    type Error = (Stage, usize);

    fn upload(&self, subregion: usize) -> Result<(), Self::Error> {
        let place = self.begin(Stage::Upload, subregion)?;
        set(&self.sources[place], 10 + subregion);
        Ok(())
    }

    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error> {
        let place = self.begin(Stage::Compute, subregion)?;
        set(&self.buffers[buffer], 2 * get(&self.sources[place]));
        Ok(())
    }

    fn download(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error> {
        let place = self.begin(Stage::Download, subregion)?;
        set(&self.results[place], get(&self.buffers[buffer]));
        Ok(())
    }
}

// SAFETY: everything in it is loom's, which checks that accesses are in order.
unsafe impl Sync for Device {}

/// A device, its faults, and the step that stations take part in.
#[derive(Clone)]
struct Case {
    device: Arc<Device>,
    faults: Arc<Faults<(Stage, usize)>>,
}

impl Case {
    fn new(failing: Failing) -> Self {
        Self {
            device: Arc::new(Device::new(failing)),
            faults: Arc::new(Faults::default()),
        }
    }

    fn step<R>(&self, work: impl FnOnce(&Step<'_, Device>) -> R) -> R {
        work(&Step {
            device: &self.device,
            subregions: &SUBREGIONS,
            faults: &self.faults,
            began: Instant::now(),
        })
    }
}

/// Runs a whole step in every interleaving and checks what came of it. The second station keeps its end
/// of the free buffers to be counted, or hangs up when it is done, as in a crew.
fn explore(failing: Failing, keeps: bool) {
    loom::model(move || {
        let case = Case::new(failing);
        let (uploads, computes, downloads) = line(BUFFERS, SUBREGIONS.len());
        let (one, two) = (case.clone(), case.clone());
        let first = thread::spawn(move || one.step(|step| uploads.run(step)));
        let second = thread::spawn(move || {
            let free = two.step(|step| computes.run(step).1);
            keeps.then_some(free)
        });
        let (_, finished) = case.step(|step| downloads.run(step));
        first.join().unwrap();
        let free = second.join().unwrap();

        if let Some(free) = free {
            assert_eq!(free.count(), BUFFERS, "a buffer was not handed back");
        }
        assert_eq!(case.faults.take_first(), failing);
        let whole = failing.map_or(SUBREGIONS.len(), |(_, place)| place);
        for place in 0..SUBREGIONS.len() {
            assert_eq!(finished[place], place < whole);
            if place < whole {
                assert_eq!(
                    get(&case.device.results[place]),
                    2 * (10 + SUBREGIONS[place])
                );
            }
            // The stages after the fault never see the subregion, nor does the last any later one.
            let failed = failing.map_or(Stage::Download, |(stage, _)| stage);
            let skipped = place > whole || (place == whole && failed != Stage::Download);
            assert!(!(skipped && case.device.called(Stage::Download, place)));
        }
    });
}

#[test]
fn every_subregion_is_done_once_and_every_buffer_handed_back() {
    explore(None, true);
}

#[test]
fn results_are_fetched_after_the_station_before_has_hung_up() {
    explore(None, false);
}

#[test]
fn a_fault_in_any_stage_ends_the_step_and_loses_no_buffer() {
    for stage in [Stage::Upload, Stage::Compute, Stage::Download] {
        for place in 0..SUBREGIONS.len() {
            explore(Some((stage, place)), true);
        }
    }
}

#[test]
fn a_station_that_vanishes_ends_the_others() {
    // What unwinding does: a station's ends of the channels are dropped, whatever the others do.
    for vanishing in [Stage::Upload, Stage::Compute, Stage::Download] {
        loom::model(move || {
            let case = Case::new(None);
            let (uploads, computes, downloads) = line(BUFFERS, SUBREGIONS.len());
            let (one, two) = (case.clone(), case.clone());
            let first = thread::spawn(move || match vanishing {
                Stage::Upload => drop(uploads),
                _ => drop(one.step(|step| uploads.run(step))),
            });
            let second = thread::spawn(move || match vanishing {
                Stage::Compute => drop(computes),
                _ => drop(two.step(|step| computes.run(step))),
            });
            match vanishing {
                Stage::Download => drop(downloads),
                _ => drop(case.step(|step| downloads.run(step))),
            }
            first.join().unwrap();
            second.join().unwrap();
        });
    }
}
