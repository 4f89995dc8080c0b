//! What the layer writes, and what it does when it cannot.

use nearfield_trace_analysis::{
    Analysis, Options, Trace,
    model::{GPU_FAILED, Interval, Phase, Theta, Value},
};
use std::{
    io::{self, Write},
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tempfile::TempDir;
use tracing::{Dispatch, dispatcher, field::Empty};
use tracing_subscriber::{Layer, Registry, layer::SubscriberExt};

pub(crate) const TARGET: &str = "nearfield_test";

pub(crate) fn options() -> Options {
    Options::default().program("solver", "1.2.3")
}

/// Runs `work` while it is recorded, and reads what was written.
pub(crate) fn recorded(options: Options, work: impl FnOnce()) -> Trace {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.jsonl");
    let (layer, recording) = options.record(&path).unwrap();
    let dispatch = Dispatch::new(Registry::default().with(layer));
    dispatcher::with_default(&dispatch, work);
    recording.finish().unwrap();
    Trace::open(&path).unwrap()
}

/// A step with a stage in it and a stage in that.
fn step(number: u64) {
    let step =
        tracing::debug_span!(target: TARGET, "sph.step", step = number, points = 8, theta = Empty);
    let _in = step.enter();
    step.record("theta", f64::INFINITY);
    let _update = tracing::debug_span!(target: TARGET, "engine.update").entered();
    let sort = tracing::debug_span!(target: TARGET, "grid.sort", points = 8, cells = Empty);
    sort.in_scope(|| sort.record("cells", 3));
}

#[test]
fn spans_become_stages_and_steps() {
    let trace = recorded(options(), || (0..3).for_each(step));
    assert!(trace.damage.is_none(), "{}", trace.damage);
    assert_eq!(trace.header.program.name, "solver");
    assert_eq!(trace.header.program.version, "1.2.3");
    let numbers: Vec<u64> = trace.steps.iter().map(|step| step.step).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(trace.steps[1].points, Some(8));
    assert_eq!(trace.steps[1].theta, Some(Theta(f64::INFINITY)));
    assert_eq!(trace.spans.len(), 9);
    let [sort, update, whole] = &trace.spans[3..6] else {
        unreachable!()
    };
    assert_eq!(
        [&*sort.name, &*update.name, &*whole.name],
        ["grid.sort", "engine.update", "sph.step"]
    );
    assert_eq!(
        (sort.parent, update.parent, whole.parent),
        (update.id, whole.id, 0)
    );
    assert_eq!(
        (sort.backend.as_deref(), sort.phase),
        (Some("cpu"), Phase::Compute)
    );
    assert_eq!(
        (update.backend.as_deref(), whole.backend.as_deref()),
        (None, None)
    );
    assert_eq!(sort.fields["cells"], Value::Count(3));
    assert!(sort.time.begin() >= update.time.begin() && sort.time.end() <= update.time.end());
    assert_eq!(whole.time, trace.steps[1].time);
}

#[test]
fn a_compressed_recording_is_read_like_any_other() {
    let folder = TempDir::new().unwrap();
    let [plain, compressed] = ["trace.jsonl", "trace.jsonl.zst"].map(|name| {
        let path = folder.path().join(name);
        let (layer, recording) = options().record(&path).unwrap();
        let dispatch = Dispatch::new(Registry::default().with(layer));
        dispatcher::with_default(&dispatch, || (0..2000).for_each(step));
        recording.finish().unwrap();
        path
    });
    let trace = Trace::open(&compressed).unwrap();
    assert!(trace.damage.is_none(), "{}", trace.damage);
    assert_eq!((trace.steps.len(), trace.spans.len()), (2000, 6000));
    assert_eq!(trace.steps[1999].step, 1999);
    let [all, short] = [&plain, &compressed].map(|path| path.metadata().unwrap().len());
    assert!(6 * short < all, "{short} of {all} bytes");

    // What a crash leaves: everything before the frame that is cut.
    let bytes = std::fs::read(&compressed).unwrap();
    let cut = folder.path().join("cut");
    std::fs::write(&cut, &bytes[..bytes.len() - 5]).unwrap();
    let trace = Trace::open(&cut).unwrap();
    assert!(
        trace.damage.cut && trace.damage.lines == 1,
        "{}",
        trace.damage
    );
    assert!(
        trace.damage.to_string().contains("Zstandard"),
        "{}",
        trace.damage
    );
    // Of a file that is cut within its header nothing can be told.
    std::fs::write(&cut, &bytes[..20]).unwrap();
    let refused = Trace::open(&cut).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[test]
fn a_step_within_a_step_is_a_stage() {
    let trace = recorded(options(), || {
        let _step = tracing::info_span!(target: TARGET, "coupled", step = 7).entered();
        step(100);
    });
    let numbers: Vec<u64> = trace.steps.iter().map(|step| step.step).collect();
    assert_eq!(numbers, [7]);
    assert!(trace.spans.iter().any(|span| span.name == "sph.step"));
}

#[test]
fn a_job_outside_of_steps_counts_in_none() {
    let job = |work: u64| {
        let _call = tracing::debug_span!(target: TARGET, "engine.find_neighbors").entered();
        tracing::debug!(
            name: "balance.subregion", target: TARGET, subregion = 0, backend = "cpu", points = 1,
            cells = 1, work, compute_start = 0, compute_end = 100,
        );
        tracing::debug!(
            name: "balance.retune", target: TARGET, policy = "model", reason = "nothing to do",
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    let steps = || {
        job(1);
        for step in 0..2u64 {
            let _step = tracing::debug_span!(target: TARGET, "sph.step", step).entered();
            job(10);
        }
        job(100);
    };
    let trace = recorded(options(), steps);
    let found: Vec<_> = trace
        .subregions
        .iter()
        .map(|one| (one.step, one.work))
        .collect();
    assert_eq!(
        found,
        [(None, 1), (Some(0), 10), (Some(1), 10), (None, 100)]
    );
    let after: Vec<_> = trace.retunes.iter().map(|one| one.step).collect();
    assert_eq!(after, [None, Some(0), Some(1), None]);
    let analysis = Analysis::of(&trace).unwrap();
    let work: Vec<_> = analysis.rows.iter().map(|row| row.work).collect();
    assert_eq!(work, [Some(10), Some(10)]);
    let outside = analysis.summary.outside.as_ref().expect("two jobs");
    assert_eq!((outside.subregions, outside.work), (2, 101));
    assert!(
        outside.stages["engine.find_neighbors"] >= 2.0,
        "{outside:?}"
    );
    assert!(outside.backends["cpu"] > 0.0, "{outside:?}");
    let text = analysis.summary.to_string();
    assert!(text.contains("outside     engine.find_neighbors"), "{text}");
    let mut chrome = Vec::new();
    nearfield_trace_analysis::write_chrome(&analysis, &mut chrome).unwrap();
    let chrome = String::from_utf8(chrome).unwrap();
    assert_eq!(
        chrome.matches(r#""pass":0,"step":null"#).count(),
        2,
        "{chrome}"
    );
    let mut report = Vec::new();
    nearfield_trace_analysis::write_report(&analysis, &mut report).unwrap();
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("outside of all steps: engine.find_neighbors"));
}

#[test]
fn jobs_of_a_program_that_marks_no_steps_count_in_those_of_its_calls() {
    let trace = recorded(options(), || {
        for work in [7u64, 8, 9] {
            drop(tracing::debug_span!(target: TARGET, "engine.update").entered());
            let _call = tracing::debug_span!(target: TARGET, "engine.find_neighbors").entered();
            tracing::debug!(
                name: "balance.subregion", target: TARGET, subregion = 0, backend = "cpu",
                points = 1, cells = 1, work, compute_start = 0, compute_end = 100,
            );
        }
    });
    let analysis = Analysis::of(&trace).unwrap();
    let work: Vec<_> = analysis.rows.iter().map(|row| row.work).collect();
    assert_eq!(work, [Some(7), Some(8), Some(9)]);
    assert_eq!(analysis.summary.outside, None);
}

#[test]
fn times_of_subregions_count_from_the_step() {
    let trace = recorded(options(), || {
        let _step = tracing::debug_span!(target: TARGET, "sph.step", step = 5).entered();
        let _stage = tracing::debug_span!(target: TARGET, "balance.run").entered();
        tracing::debug!(
            name: "balance.subregion", target: TARGET,
            subregion = 2, backend = "gpu", pass = 1, points = 10, cells = 4, work = 400u64, pairs = 60,
            bytes_up = 120, bytes_down = 40, theta = 12, theta_ties = 3, clock_error = 900,
            upload_start = 1000, upload_end = 2000, compute_start = 2000, compute_end = 5000,
            download_start = 5000, download_end = 5500,
        );
        // By message instead of by name, and without device times.
        tracing::debug!(target: TARGET, subregion = 3, backend = "cpu", points = 1, cells = 1, work = 9,
            compute_start = 10, compute_end = 20, theta = f64::INFINITY, "balance.subregion");
        tracing::debug!(
            name: "balance.retune", target: TARGET,
            subregion = 2, policy = "model", theta_before = 12, theta = 14.5, share_before = 0.25,
            share = 0.5, exploration = true, reason = "the CPU backend was ready 3 ms early",
        );
        tracing::debug!(name: "grid.occupancy", target: TARGET, of = "bricks", one_in = 4, counts = "0:7 1:2 16:1");
    });
    let origin = trace.steps[0].time.begin();
    let at = |begin: u64, end: u64| Some(Interval::new(origin + begin, origin + end));
    let [gpu, cpu] = &trace.subregions[..] else {
        panic!("{:?}", trace.subregions)
    };
    assert_eq!(
        (gpu.step, gpu.subregion, &*gpu.backend, gpu.pass),
        (Some(5), 2, "gpu", 1)
    );
    assert_eq!(
        (gpu.points, gpu.cells, gpu.work, gpu.pairs),
        (10, 4, 400, Some(60))
    );
    assert_eq!(
        (gpu.bytes_up, gpu.bytes_down, gpu.clock_error),
        (120, 40, 900)
    );
    assert_eq!((gpu.upload, gpu.compute), (at(1000, 2000), at(2000, 5000)));
    assert_eq!((gpu.download, gpu.exchange), (at(5000, 5500), None));
    assert_eq!((gpu.theta, gpu.theta_ties), (Some(Theta(12.0)), Some(3)));
    assert_eq!((cpu.upload, cpu.compute), (None, at(10, 20)));
    assert_eq!(cpu.theta, Some(Theta(f64::INFINITY)));
    let retune = &trace.retunes[0];
    assert_eq!(
        (retune.step, retune.subregion, &*retune.policy),
        (Some(5), Some(2), "model")
    );
    assert_eq!(
        (retune.theta_before, retune.theta),
        (Some(Theta(12.0)), Some(Theta(14.5)))
    );
    assert_eq!((retune.share_before, retune.share), (Some(0.25), Some(0.5)));
    assert!(retune.exploration);
    assert_eq!(retune.reason, "the CPU backend was ready 3 ms early");
    let occupancy = &trace.occupancies[0];
    assert_eq!((&*occupancy.of, occupancy.one_in), ("bricks", 4));
    assert_eq!(occupancy.counts, [[0, 7], [1, 2], [16, 1]]);
}

#[test]
fn other_events_become_notes_and_other_targets_nothing() {
    let trace = recorded(options().target("my_solver"), || {
        tracing::warn!(target: TARGET, error = "lost", "{GPU_FAILED}");
        tracing::info!(target: "my_solver::io", "frame written");
        tracing::warn!(target: "another_crate", "not ours");
        tracing::trace!(target: TARGET, "too fine");
        // What lacks a backend is not a subregion, but it is not lost either.
        tracing::debug!(name: "balance.subregion", target: TARGET, subregion = 2);
        let _span = tracing::info_span!(target: "another_crate", "busy", step = 3).entered();
    });
    let messages: Vec<&str> = trace.notes.iter().map(|note| &*note.message).collect();
    assert_eq!(messages, [GPU_FAILED, "frame written", "balance.subregion"]);
    assert_eq!(trace.notes[0].level, "warn");
    assert_eq!(trace.notes[0].fields["error"], Value::Text("lost".into()));
    assert!(trace.spans.is_empty() && trace.steps.is_empty() && trace.subregions.is_empty());
}

/// Counts the spans it sees.
struct Other(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Other {
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        _: &tracing::span::Id,
        _: tracing_subscriber::layer::Context<'_, S>,
    ) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn other_layers_see_all_they_saw_without_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.jsonl");
    let seen = Arc::new(AtomicUsize::new(0));
    let (layer, recording) = options().record(&path).unwrap();
    let subscriber = Registry::default().with(Other(seen.clone())).with(layer);
    dispatcher::with_default(&Dispatch::new(subscriber), || {
        step(0);
        let _theirs = tracing::trace_span!(target: "another_crate", "fine").entered();
    });
    drop(recording);
    assert_eq!(seen.load(Ordering::Relaxed), 4);
    assert_eq!(Trace::open(&path).unwrap().spans.len(), 3);
}

/// Takes a number of bytes and then fails, as a full disk does.
struct Full {
    left: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_once_and_the_run_goes_on() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = told.clone();
    let options = options()
        .queue(4)
        .on_error(move |error| list.lock().unwrap().push(error.to_string()));
    let (layer, recording) = options
        .record_to(Full { left: 700 }, "disk/trace.jsonl")
        .unwrap();
    let dispatch = Dispatch::new(Registry::default().with(layer));
    let steps = AtomicUsize::new(0);
    dispatcher::with_default(&dispatch, || {
        for number in 0..2000 {
            step(number);
            steps.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_eq!(steps.load(Ordering::Relaxed), 2000);
    let failed = recording.finish().unwrap_err().to_string();
    assert!(
        failed.starts_with("cannot write disk/trace.jsonl: "),
        "{failed}"
    );
    assert_eq!(*told.lock().unwrap(), [failed]);
}

#[test]
fn a_device_that_is_always_full_is_no_reason_to_stop() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let options = options().on_error(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let (layer, recording) = options.record("/dev/full").unwrap();
    dispatcher::with_default(&Dispatch::new(Registry::default().with(layer)), || {
        (0..100).for_each(step);
    });
    let failed = recording.finish().unwrap_err().to_string();
    assert!(failed.contains("No space left on device"), "{failed}");
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

/// Holds every byte back until it is opened.
#[derive(Clone, Default)]
struct Gate {
    open: Arc<(Mutex<bool>, Condvar)>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (open, changed) = &*self.open;
        let _open = changed
            .wait_while(open.lock().unwrap(), |open| !*open)
            .unwrap();
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_costs_records_and_not_time_or_memory() {
    let gate = Gate::default();
    let (layer, recording) = options().queue(16).record_to(gate.clone(), "slow").unwrap();
    dispatcher::with_default(&Dispatch::new(Registry::default().with(layer)), || {
        (0..50).for_each(step);
    });
    *gate.open.0.lock().unwrap() = true;
    gate.open.1.notify_all();
    recording.finish().unwrap();
    let written = gate.written.lock().unwrap();
    let trace = Trace::read(&written[..], "slow").unwrap();
    // A step makes four records, and all that were not written are counted.
    let kept = (trace.spans.len() + trace.steps.len()) as u64;
    assert!((1..=17).contains(&kept), "{kept}");
    assert_eq!(kept + trace.damage.dropped, 200);
    assert!(!trace.damage.cut && trace.damage.to_string().contains("dropped while recording"));
}

#[test]
fn what_came_before_a_panic_is_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.jsonl");
    let (layer, recording) = options().record(&path).unwrap();
    let dispatch = Dispatch::new(Registry::default().with(layer));
    let panicked = std::thread::spawn(move || {
        dispatcher::with_default(&dispatch, || {
            step(1);
            panic!("on purpose");
        })
    });
    assert!(panicked.join().is_err());
    // As when the process ends there: nothing is dropped.
    let trace = Trace::open(&path).unwrap();
    std::mem::forget(recording);
    assert_eq!(trace.steps.len(), 1);
    assert!(trace.damage.cut);
}

#[test]
fn dropping_the_guard_writes_everything_and_later_spans_are_ignored() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.jsonl");
    let (layer, recording) = options().record(&path).unwrap();
    let dispatch = Dispatch::new(Registry::default().with(layer));
    dispatcher::with_default(&dispatch, || {
        step(1);
        drop(recording);
        step(2);
    });
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.steps.len(), 1);
    assert!(trace.damage.is_none());
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let refused = options()
        .record::<Registry>("/nowhere/at/all.jsonl")
        .err()
        .unwrap()
        .to_string();
    assert!(
        refused.starts_with("cannot write /nowhere/at/all.jsonl: "),
        "{refused}"
    );
}
