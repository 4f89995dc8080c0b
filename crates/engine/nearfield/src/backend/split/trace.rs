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
use super::planned::BrickPlan;
use nearfield_balance::{Action, Cut, Decision, GpuSpans, Load, Policy, Span, StepTimes};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
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
    /// Nanoseconds before now.
    ago: u64,
    /// `virtual` for times of an emulated device's clock; none for the host's clock.
    clock: Option<&'static str>,
    /// Tells steps on a virtual clock apart: the moments of their events do not.
    job: Option<u64>,
}

/// Number of the next job on a virtual clock.
static NEXT_JOB: AtomicU64 = AtomicU64::new(1);

impl Origin {
    /// `took` before now.
    pub(super) fn before_now(took: Duration, emulated: bool) -> Self {
        Self {
            ago: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
            clock: emulated.then_some("virtual"),
            job: emulated.then(|| NEXT_JOB.fetch_add(1, Ordering::Relaxed)),
        }
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
            origin_ago = origin.ago,
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
                origin: Origin::before_now(Duration::ZERO, false),
            };
            if !load.is_empty() {
                line.emit(GpuSpans::default());
            }
        }
    }
}

/// A decision, also one to leave things as they are; `before` are θ and the CPU backend's share.
pub(super) fn retune(policy: Policy, before: (f64, f64), planned: &BrickPlan, decision: &Decision) {
    if !is_on() {
        return;
    }
    tracing::debug!(
        name: "balance.retune",
        policy = %policy,
        theta_before = before.0,
        theta = planned.theta(),
        share_before = before.1,
        share = planned.plan().share(),
        exploration = decision.action == Action::Explore,
        reason = %decision.reason,
    );
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
