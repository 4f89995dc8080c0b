//! A backend with memory of its own beside the CPU backend, on real threads. Nothing here waits for a
//! time to pass: what must happen together meets, and a meeting that fails is an error.

use nearfield_balance::{Crew, Error, Progress, Span, Stages};
use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

/// Longer than any healthy step takes on any machine.
const NEVER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Upload,
    Compute,
    Download,
}
use Stage::{Compute, Download, Upload};

/// A backend that calls one closure for every stage and keeps what was called.
struct Backend<F> {
    stage: F,
    calls: Mutex<Vec<Call>>,
}

/// Stage, subregion, buffer, thread.
type Call = (Stage, usize, Option<usize>, ThreadId);

impl<F: Fn(Stage, usize) -> Result<(), String> + Sync> Backend<F> {
    fn new(stage: F) -> Self {
        Self {
            stage,
            calls: Mutex::default(),
        }
    }

    fn call(&self, stage: Stage, subregion: usize, buffer: Option<usize>) -> Result<(), String> {
        let call = (stage, subregion, buffer, thread::current().id());
        self.calls.lock().unwrap().push(call);
        (self.stage)(stage, subregion)
    }

    fn called(&self, stage: Stage) -> Vec<usize> {
        let calls = self.calls.lock().unwrap();
        let of_stage = calls.iter().filter(|call| call.0 == stage);
        of_stage.map(|call| call.1).collect()
    }

    fn threads(&self) -> HashSet<(Stage, ThreadId)> {
        let calls = self.calls.lock().unwrap();
        calls.iter().map(|call| (call.0, call.3)).collect()
    }
}

impl<F: Fn(Stage, usize) -> Result<(), String> + Sync> Stages for Backend<F> {
    type Error = String;

    fn upload(&self, subregion: usize) -> Result<(), String> {
        self.call(Upload, subregion, None)
    }

    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), String> {
        self.call(Compute, subregion, Some(buffer))
    }

    fn download(&self, subregion: usize, buffer: usize) -> Result<(), String> {
        self.call(Download, subregion, Some(buffer))
    }
}

/// A place where several threads meet; unlike a barrier it fails when one does not come.
#[derive(Default)]
struct Meeting {
    present: Mutex<usize>,
    changed: Condvar,
}

impl Meeting {
    fn of(&self, count: usize) {
        let mut present = self.present.lock().unwrap();
        *present += 1;
        self.changed.notify_all();
        let absent = |present: &mut usize| *present < count;
        let waited = self.changed.wait_timeout_while(present, NEVER, absent);
        present = waited.unwrap().0;
        assert!(*present >= count, "only {} of {count} came", *present);
    }
}

fn fine(_: Stage, _: usize) -> Result<(), String> {
    Ok(())
}

/// A step without faults must go through: what shows that a crew is in order.
fn works(crew: &Crew, buffers: usize) {
    let backend = Backend::new(fine);
    let subregions: Vec<usize> = (0..3 * buffers + 5).rev().collect();
    let (result, progress) = crew.run(&subregions, &backend, || 7).unwrap();
    assert_eq!(result, 7);
    assert_eq!(progress.fault, None);
    assert!(progress.finished.iter().all(|&finished| finished));
    for stage in [Upload, Compute, Download] {
        assert_eq!(backend.called(stage), subregions, "{stage:?}");
    }
}

#[test]
fn stages_come_one_after_the_other_in_the_order_given() {
    let crew = Crew::new(3).unwrap();
    let backend = Backend::new(fine);
    let subregions = [5, 2, 9, 0, 31, 7, 8, 4];
    let (_, progress) = crew.run(&subregions, &backend, || ()).unwrap();
    let calls = backend.calls.lock().unwrap();
    assert_eq!(calls.len(), 3 * subregions.len());
    let when = |stage, subregion| calls.iter().position(|c| (c.0, c.1) == (stage, subregion));
    for &subregion in &subregions {
        assert!(when(Upload, subregion) < when(Compute, subregion));
        assert!(when(Compute, subregion) < when(Download, subregion));
    }
    for (place, spans) in progress.spans.iter().enumerate() {
        let ordered = [spans.upload, spans.compute, spans.download];
        assert!(ordered.iter().all(|span| span.start_ms <= span.end_ms));
        assert!(
            ordered.is_sorted_by(|a, b| a.end_ms <= b.start_ms),
            "{place}"
        );
    }
    for pair in progress.spans.windows(2) {
        assert!(pair[0].upload.end_ms <= pair[1].upload.start_ms);
        assert!(pair[0].compute.end_ms <= pair[1].compute.start_ms);
        assert!(pair[0].download.end_ms <= pair[1].download.start_ms);
    }
}

#[test]
fn three_stages_of_three_subregions_and_the_cpu_backend_run_at_the_same_time() {
    let crew = Crew::new(2).unwrap();
    for first in 0..6 {
        let meeting = Meeting::default();
        let backend = Backend::new(|stage, subregion| {
            if subregion == first + [2, 1, 0][stage as usize] {
                meeting.of(4);
            }
            Ok(())
        });
        let subregions: Vec<usize> = (0..8).collect();
        let (_, progress) = crew.run(&subregions, &backend, || meeting.of(4)).unwrap();
        let at = |place: usize| progress.spans[place];
        let together: [Span; 4] = [
            at(first + 2).upload,
            at(first + 1).compute,
            at(first).download,
            progress.cpu,
        ];
        for one in &together {
            for other in &together {
                assert!(one.start_ms <= other.end_ms, "{together:?}");
            }
        }
    }
}

#[test]
fn uploads_wait_for_nobody() {
    let crew = Crew::new(2).unwrap();
    let all_uploaded = Meeting::default();
    let backend = Backend::new(|stage, subregion| {
        match (stage, subregion) {
            (Upload, 31) | (Compute, 0) => all_uploaded.of(2),
            _ => {}
        }
        Ok(())
    });
    let subregions: Vec<usize> = (0..32).collect();
    let (_, progress) = crew.run(&subregions, &backend, || ()).unwrap();
    assert!(progress.finished.iter().all(|&finished| finished));
}

#[test]
fn a_buffer_is_used_by_one_subregion_at_a_time() {
    for buffers in [2, 3, 5] {
        let crew = Crew::new(buffers).unwrap();
        // The first download does not end before the last buffer is being filled: they meet only where every
        // buffer can hold results at the same time.
        let full = Meeting::default();
        let backend = Backend::new(|stage, subregion| {
            match (stage, subregion) {
                (Compute, last) if last == buffers - 1 => full.of(2),
                (Download, 0) => full.of(2),
                _ => {}
            }
            Ok(())
        });
        let subregions: Vec<usize> = (0..40).collect();
        crew.run(&subregions, &backend, || ()).unwrap();
        let mut holds = vec![None; buffers];
        // A buffer is free when its download has returned; the call after that is the first that can
        // tell, and each download is called before its buffer is free.
        for &(stage, subregion, buffer, _) in backend.calls.lock().unwrap().iter() {
            match (stage, buffer) {
                (Compute, Some(buffer)) => {
                    assert_eq!(holds[buffer].replace(subregion), None, "buffer {buffer}");
                }
                (Download, Some(buffer)) => assert_eq!(holds[buffer].take(), Some(subregion)),
                _ => assert_eq!(stage, Upload),
            }
        }
        assert!(holds.iter().all(Option::is_none), "all came back");
    }
}

#[test]
fn a_fault_skips_what_comes_after_it_and_finishes_what_came_before() {
    let subregions = [3, 1, 4, 15, 9, 2, 6];
    let crew = Crew::new(2).unwrap();
    for failing in [Upload, Compute, Download] {
        for (place, &at) in subregions.iter().enumerate() {
            let backend =
                Backend::new(
                    |stage, subregion| match (stage, subregion) == (failing, at) {
                        true => Err(format!("{stage:?} {subregion}")),
                        false => Ok(()),
                    },
                );
            let (result, progress) = crew.run(&subregions, &backend, || "done").unwrap();
            assert_eq!(result, "done");
            assert_eq!(progress.fault, Some(format!("{failing:?} {at}")));
            for (other, spans) in progress.spans.iter().enumerate() {
                assert_eq!(progress.finished[other], other < place);
                let failed = [spans.upload, spans.compute, spans.download][failing as usize];
                assert_eq!(
                    failed.end_ms > 0.0,
                    other < place,
                    "{failing:?} {at}: {other}"
                );
            }
            assert_eq!(backend.called(failing), subregions[..=place]);
            works(&crew, 2);
        }
    }
}

#[test]
fn the_first_of_several_faults_is_kept() {
    let crew = Crew::new(2).unwrap();
    let both = Meeting::default();
    let recorded = Meeting::default();
    // The second upload fails while the first is being computed, which then fails too.
    let backend = Backend::new(|stage, subregion| match (stage, subregion) {
        (Upload, 1) => {
            both.of(2);
            Err("second upload".to_owned())
        }
        (Compute, 0) => {
            both.of(2);
            recorded.of(2);
            Err("first compute".to_owned())
        }
        _ => Ok(()),
    });
    // Nothing tells when a fault has been recorded; the upload's thread has by the time that it does
    // something else, which is the next step's upload.
    let (_, progress) = thread::scope(|scope| {
        let first = scope.spawn(|| crew.run(&[0, 1, 2], &backend, || ()).unwrap());
        let second = Backend::new(|stage, _| {
            if stage == Upload {
                recorded.of(2);
            }
            Ok(())
        });
        both.present_at_least(2);
        crew.run(&[0], &second, || ()).unwrap();
        first.join().unwrap()
    });
    assert_eq!(progress.fault.as_deref(), Some("second upload"));
    assert_eq!(progress.finished, [false; 3]);
    assert_eq!(backend.called(Download), []);
}

impl Meeting {
    /// Waits until so many have come, without being one of them.
    fn present_at_least(&self, count: usize) {
        let present = self.present.lock().unwrap();
        let absent = |present: &mut usize| *present < count;
        let waited = self.changed.wait_timeout_while(present, NEVER, absent);
        assert!(!waited.unwrap().1.timed_out());
    }
}

#[test]
fn a_panic_goes_on_in_the_caller_after_everything_has_stopped() {
    for buffers in [2, 4] {
        let crew = Crew::new(buffers).unwrap();
        for failing in [Upload, Compute, Download] {
            for at in [0, 4, 9] {
                let inside = AtomicUsize::new(0);
                let backend = Backend::new(|stage, subregion| {
                    inside.fetch_add(1, Ordering::SeqCst);
                    if (stage, subregion) == (failing, at) {
                        inside.fetch_sub(1, Ordering::SeqCst);
                        panic!("{stage:?} {subregion}");
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                });
                let subregions: Vec<usize> = (0..10).collect();
                let cpu = AtomicUsize::new(0);
                let run = || {
                    crew.run(&subregions, &backend, || cpu.fetch_add(1, Ordering::SeqCst))
                        .unwrap()
                };
                let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                assert_eq!(cpu.load(Ordering::SeqCst), 1);
                let words = panic.downcast_ref::<String>().unwrap();
                assert_eq!(*words, format!("{failing:?} {at}"));
                let before: Vec<usize> = (0..at).collect();
                assert!(backend.called(Download).starts_with(&before));
                works(&crew, buffers);
            }
        }
    }
}

#[test]
fn a_panic_of_the_cpu_backend_waits_for_the_other() {
    let crew = Crew::new(2).unwrap();
    let backend = Backend::new(fine);
    let run = || {
        crew.run(&[0, 1, 2], &backend, || -> u32 {
            panic!("the CPU backend")
        })
        .unwrap()
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the CPU backend"));
    assert_eq!(backend.called(Download), [0, 1, 2]);
    works(&crew, 2);
}

#[test]
fn every_stage_has_a_thread_of_its_own_which_it_keeps() {
    let crew = Crew::new(2).unwrap();
    let backend = Backend::new(fine);
    for _ in 0..20 {
        crew.run(&[0, 1, 2, 3], &backend, || ()).unwrap();
    }
    let threads = backend.threads();
    assert_eq!(threads.len(), 3);
    let ids: HashSet<ThreadId> = threads.iter().map(|&(_, thread)| thread).collect();
    assert_eq!(ids.len(), 3);
    assert!(!ids.contains(&thread::current().id()));
}

#[test]
fn without_subregions_only_the_cpu_backend_runs() {
    let crew = Crew::new(2).unwrap();
    let backend = Backend::new(fine);
    let (thread, progress) = crew.run(&[], &backend, || thread::current().id()).unwrap();
    assert_eq!(thread, thread::current().id());
    let Progress {
        spans,
        finished,
        fault,
        cpu,
    } = progress;
    assert!(spans.is_empty() && finished.is_empty() && fault.is_none());
    assert!(cpu.start_ms <= cpu.end_ms);
    assert_eq!(backend.called(Upload), []);
}

#[test]
fn steps_begun_at_once_or_inside_each_other_take_turns() {
    let crew = Crew::new(2).unwrap();
    let meeting = Meeting::default();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                meeting.of(4);
                for _ in 0..50 {
                    works(&crew, 2);
                }
            });
        }
    });
    let outer = Backend::new(fine);
    let (_, progress) = crew.run(&[0, 1, 2], &outer, || works(&crew, 2)).unwrap();
    assert_eq!(progress.finished, [true; 3]);
}

#[test]
fn a_stage_may_need_the_pool_whose_thread_began_the_step() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let crew = Crew::new(2).unwrap();
    let backend = Backend::new(|_, subregion| {
        assert_eq!(pool.install(|| subregion + 1), subregion + 1);
        Ok(())
    });
    let (_, progress) = pool.install(|| crew.run(&[0, 1, 2, 3, 4], &backend, || ()).unwrap());
    assert_eq!(progress.finished, [true; 5]);
}

#[test]
fn too_few_buffers_are_refused() {
    for buffers in [0, 1] {
        assert_eq!(Crew::new(buffers).unwrap_err(), Error::Buffers { buffers });
    }
    let words = Error::Buffers { buffers: 1 }.to_string();
    assert!(words.starts_with("1 buffers") && words.contains("at least 2"));
}
