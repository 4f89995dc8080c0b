//! Events of a step of both backends for listeners of `tracing`: the times that the controller
//! sees, by backend and subregion.
//!
//! A step emits a `balance.subregion` per backend and subregion that has work, when it has ended:
//! times are known only then, so events say how long ago the step began. Nothing is computed while
//! no one listens. `docs/trace-format.md` defines the fields.
//!
//! Bytes of a real device are estimates: the entries of its lists, four bytes each, shared out by
//! work. Uploads of positions and fields are spans of their own (`gpu.upload`), because they serve
//! all subregions.

use super::done::GpuDone;
use super::planned::{BrickPlan, SplitState};
use crate::backend::Job;
use nearfield_balance::{Action, Cut, Decision, GpuSpans, Load, Policy, Span, StepTimes};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Classes of points in a brick, octaves.
const CLASSES: u32 = 32;

/// Milliseconds as whole nanoseconds; negative ones count as 0.
fn nanoseconds(ms: f64) -> u64 {
    (ms.max(0.0) * 1e6) as u64
}

/// Whether a listener is installed.
pub(super) fn is_on() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// One backend in one subregion.
struct Line<'a> {
    subregion: usize,
    pass: u64,
    /// `cpu` or `gpu`.
    backend: &'static str,
    load: &'a Load,
    /// To the device, and back.
    bytes: [u64; 2],
    /// Nanoseconds by which the device's clock may be off.
    clock_error: u64,
    /// Threshold of the subregion.
    theta: f64,
    origin: Origin,
}

/// The moment that the times of a step count from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    began: Instant,
    /// `virtual` for times of an emulated device's clock; none for the host's clock.
    clock: Option<&'static str>,
    /// Number of the job. The trace gives all lines of a job one origin; those of their events
    /// would differ by the time between them.
    job: Option<u64>,
}

/// Number of the next job.
static NEXT_JOB: AtomicU64 = AtomicU64::new(1);

impl Origin {
    /// `took` before now.
    pub(super) fn before_now(took: Duration, emulated: bool) -> Self {
        let now = Instant::now();
        Self {
            began: now.checked_sub(took).unwrap_or(now),
            clock: emulated.then_some("virtual"),
            job: is_on().then(|| NEXT_JOB.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Nanoseconds since then.
    fn ago(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Line<'_> {
    fn emit(&self, spans: GpuSpans) {
        let Self {
            subregion,
            pass,
            backend,
            load,
            bytes,
            clock_error,
            theta,
            origin,
        } = *self;
        let at = |span: Span| match span.ms() > 0.0 {
            true => (
                Some(nanoseconds(span.start_ms)),
                Some(nanoseconds(span.end_ms)),
            ),
            false => (None, None),
        };
        let (upload, compute, download) = (at(spans.upload), at(spans.compute), at(spans.download));
        tracing::debug!(
            name: "balance.subregion",
            subregion = subregion as u64,
            pass,
            backend,
            points = load.targets,
            cells = u64::from(load.bricks),
            work = load.work(),
            bytes_up = bytes[0],
            bytes_down = bytes[1],
            upload_start = upload.0,
            upload_end = upload.1,
            compute_start = compute.0,
            compute_end = compute.1,
            download_start = download.0,
            download_end = download.1,
            clock_error,
            theta,
            origin_ago = origin.ago(),
            clock = origin.clock,
            job = origin.job,
        );
    }
}

/// A step, as it was timed; `gpu` is a real GPU's account of it and how long its backend took,
/// milliseconds.
pub(super) fn subregions(
    planned: &BrickPlan,
    times: &StepTimes,
    origin: Origin,
    gpu: Option<(&GpuDone, f64)>,
) {
    if !is_on() {
        return;
    }
    let (layout, plan) = (planned.layout(), planned.plan());
    // Strategies that go from cell to cell do not tell subregions apart.
    let told_apart = gpu.filter(|(done, _)| done.bounds.len() == plan.stages().len() + 1);
    let on_device = told_apart.map(|(done, gpu_ms)| done.spans(gpu_ms));
    let pairs = gpu.map_or(0, |(done, _)| done.pairs) as f64;
    let work: u64 = plan
        .stages()
        .iter()
        .map(|stage| stage.gpu.load.work())
        .sum();
    for (subregion, stage) in plan.stages().iter().enumerate() {
        let cut: Cut = plan.cuts()[subregion];
        let line = |backend, load, bytes, clock_error| Line {
            subregion,
            pass: 0,
            backend,
            load,
            bytes,
            clock_error,
            theta: layout.theta_of(subregion, cut),
            origin,
        };
        if !stage.cpu.load.is_empty() {
            line("cpu", &stage.cpu.load, [0; 2], 0).emit(GpuSpans {
                compute: times.cpu[subregion],
                ..GpuSpans::default()
            });
        }
        if !stage.gpu.load.is_empty() {
            let entries = 4.0 * pairs * stage.gpu.load.work() as f64 / work.max(1) as f64;
            let bytes = match gpu {
                Some(_) => [0, entries as u64],
                None => [stage.upload as u64, stage.download as u64],
            };
            let known = on_device.as_ref().and_then(|spans| spans.get(subregion));
            let spans = known.copied().unwrap_or(times.gpu[subregion]);
            let error = gpu.map_or(0, |(done, _)| done.clock_error);
            line("gpu", &stage.gpu.load, bytes, error).emit(spans);
        }
    }
    if origin.clock.is_some() && times.recovery.ms() > 0.0 {
        // After a fault the CPU backend does what the device has left, as a pass of its own.
        let mut load = Load::default();
        for (stage, spans) in plan.stages().iter().zip(&times.gpu) {
            if spans.compute.ms() == 0.0 {
                load += stage.gpu.load;
            }
        }
        let line = Line {
            subregion: 0,
            pass: 1,
            backend: "cpu",
            load: &load,
            bytes: [0; 2],
            clock_error: 0,
            theta: planned.theta(),
            origin,
        };
        line.emit(GpuSpans {
            compute: times.recovery,
            ..GpuSpans::default()
        });
    }
}

/// A step that one backend did alone, as it does without a plan: what was whose, but no times,
/// which stand in the spans of what the backend did.
pub(super) fn alone(planned: &BrickPlan) {
    if !is_on() {
        return;
    }
    let (layout, plan) = (planned.layout(), planned.plan());
    let origin = Origin::before_now(Duration::ZERO, false);
    for (subregion, stage) in plan.stages().iter().enumerate() {
        for (backend, load) in [("cpu", &stage.cpu.load), ("gpu", &stage.gpu.load)] {
            let line = Line {
                subregion,
                pass: 0,
                backend,
                load,
                bytes: [0; 2],
                clock_error: 0,
                theta: layout.theta_of(subregion, plan.cuts()[subregion]),
                origin,
            };
            if !load.is_empty() {
                line.emit(GpuSpans::default());
            }
        }
    }
}

/// The subregion whose cut changes, if it is the only one.
pub(super) fn moved(before: &[Cut], after: &[Cut]) -> Option<usize> {
    if !is_on() {
        return None;
    }
    let mut changed = (0..before.len().min(after.len())).filter(|&at| before[at] != after[at]);
    changed.next().filter(|_| changed.next().is_none())
}

/// A decision, also one to leave things as they are, after a split and with the only subregion
/// that it moves.
pub(super) fn retune(
    job: Job,
    policy: Policy,
    (before, moved): (SplitState, Option<usize>),
    planned: &BrickPlan,
    decision: &Decision,
) {
    if !is_on() {
        return;
    }
    let now = planned.split();
    tracing::debug!(
        name: "balance.retune",
        kernel = %job.kind,
        targets = job.targets as u64,
        sources = job.sources as u64,
        policy = %policy,
        subregion = moved.map(|at| at as u64),
        theta_before = before.theta,
        theta = now.theta,
        share_before = before.share,
        share = now.share,
        exploration = decision.action == Action::Explore,
        reason = %decision.reason,
    );
}

/// A new plan, which moves thresholds without a decision of the policy.
pub(super) fn replan(
    job: Job,
    policy: Policy,
    before: Option<SplitState>,
    planned: &BrickPlan,
    decision: &Decision,
) {
    if !is_on() {
        return;
    }
    let reason = match before {
        Some(_) => {
            "a new plan, because points have moved: about the same share of new bricks".into()
        }
        None => format!("a first plan: {}", decision.reason),
    };
    let decision = Decision {
        cuts: Vec::new(),
        action: Action::Keep,
        reason,
    };
    let before = before.unwrap_or_else(|| planned.split());
    retune(job, policy, (before, None), planned, &decision);
}

/// How many points bricks hold.
pub(super) fn occupancy(planned: &BrickPlan) {
    if !is_on() {
        return;
    }
    let mut counts = [0u64; CLASSES as usize];
    for brick in planned.layout().bricks().as_slice() {
        if brick.targets > 0 {
            counts[(brick.targets.ilog2().min(CLASSES - 1)) as usize] += 1;
        }
    }
    let counts: Vec<String> = (counts.iter().enumerate())
        .filter(|(_, count)| **count > 0)
        .map(|(class, count)| format!("{}:{count}", 1u64 << class))
        .collect();
    tracing::debug!(name: "balance.occupancy", of = "bricks", one_in = 1u64, counts = counts.join(" "));
}
