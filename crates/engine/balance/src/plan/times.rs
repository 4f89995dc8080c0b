//! The times of a step: everything that policies see of the machine.
//!
//! Times are spans on one clock, in milliseconds since the step began, so overlap and waiting can
//! be told from work. Measured steps and emulated ones have the same form, and a policy cannot
//! tell them apart.
//!
//! # Faults and recovery
//!
//! After a fault the CPU backend does the GPU's part, or the rest of it. That time stands in
//! `recovery`, apart from the spans of its own part, so a policy never takes it for work that it
//! gave to the CPU backend.
//!
//! **Invariant:** times that [`StepTimes::check`] accepted have one entry per subregion of the
//! plan, and no span is negative or infinite.

use super::Plan;
use crate::{Error, ErrorKind};

/// From when to when, milliseconds since the step began; both zero for what did not happen.
///
/// A span of zero length means that the stage had nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Span {
    /// Start.
    pub start_ms: f64,
    /// End.
    pub end_ms: f64,
}

impl Span {
    /// Its length in milliseconds.
    pub fn ms(&self) -> f64 {
        self.end_ms - self.start_ms
    }
}

/// A subregion on the GPU backend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GpuSpans {
    /// Sources to the GPU.
    pub upload: Span,
    /// Kernels.
    pub compute: Span,
    /// Results back.
    pub download: Span,
}

/// Why the GPU backend did not finish a step.
///
/// Other errors of a device are errors of the step, not faults that a policy reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceFault {
    /// Its memory did not suffice.
    OutOfMemory,
    /// The device is gone for good.
    Lost,
}

/// A step as it was measured, or as an emulated machine's clock has it.
///
/// Vectors have one element per subregion of the plan, also for subregions without work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepTimes {
    /// The CPU backend, one span per subregion.
    pub cpu: Vec<Span>,
    /// The GPU backend, one entry per subregion.
    pub gpu: Vec<GpuSpans>,
    /// The setup of the CPU and of the GPU backend, before their subregions and for all of them
    /// together: bringing data over, sorting, counting. A backend that has no work has none of it.
    pub setup: [Span; 2],
    /// The time that the CPU backend spent on the GPU's part after a fault.
    pub recovery: Span,
    /// The fault.
    pub fault: Option<DeviceFault>,
}

impl StepTimes {
    /// From the CPU backend's first subregion to its last result; 0 when it had nothing to do.
    pub fn cpu_ms(&self) -> f64 {
        extent(self.cpu.iter().chain([&self.setup[0], &self.recovery]))
    }

    /// From the first upload to the last result; 0 when the GPU had nothing to do.
    pub fn gpu_ms(&self) -> f64 {
        extent(
            self.gpu
                .iter()
                .flat_map(|spans| [&spans.upload, &spans.compute, &spans.download])
                .chain([&self.setup[1]]),
        )
    }

    /// From the beginning of the step to the last result of either backend.
    pub fn total_ms(&self) -> f64 {
        let gpu = self
            .gpu
            .iter()
            .flat_map(|s| [&s.upload, &s.compute, &s.download]);
        self.cpu
            .iter()
            .chain([&self.recovery])
            .chain(&self.setup)
            .chain(gpu)
            .map(|span| span.end_ms)
            .fold(0.0, f64::max)
    }

    /// Refuses times that do not belong to `plan`, run backwards or are not finite.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), Error> {
        let subregions = plan.stages().len();
        if self.cpu.len() != subregions || self.gpu.len() != subregions {
            return Err(ErrorKind::Times {
                cpu: self.cpu.len(),
                gpu: self.gpu.len(),
                subregions,
            }
            .into());
        }
        for (subregion, (cpu, gpu)) in self.cpu.iter().zip(&self.gpu).enumerate() {
            check_span(cpu, "CPU work", subregion)?;
            check_span(&gpu.upload, "GPU upload", subregion)?;
            check_span(&gpu.compute, "GPU compute", subregion)?;
            check_span(&gpu.download, "GPU download", subregion)?;
        }
        check_span(&self.setup[0], "CPU setup", subregions)?;
        check_span(&self.setup[1], "GPU setup", subregions)?;
        check_span(&self.recovery, "CPU recovery", subregions)
    }
}

/// Refuses a span that is not finite or runs backwards.
fn check_span(span: &Span, stage: &'static str, subregion: usize) -> Result<(), Error> {
    let Span { start_ms, end_ms } = *span;
    if start_ms.is_finite() && end_ms.is_finite() && start_ms <= end_ms {
        Ok(())
    } else {
        Err(ErrorKind::Span {
            stage,
            subregion,
            start_ms,
            end_ms,
        }
        .into())
    }
}

/// Milliseconds from the first start to the last end; 0 without spans.
fn extent<'a>(spans: impl Iterator<Item = &'a Span>) -> f64 {
    let (mut start, mut end) = (f64::INFINITY, 0.0f64);
    for span in spans.filter(|span| span.ms() > 0.0) {
        start = start.min(span.start_ms);
        end = end.max(span.end_ms);
    }
    if end > 0.0 { end - start } else { 0.0 }
}
