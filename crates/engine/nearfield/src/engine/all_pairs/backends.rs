//! The backends of sums over all pairs, and the targets of each.
//!
//! With both backends the targets are cut in two: the first go to the CPU, the others to the GPU,
//! at the same time. Where they are cut follows from what either backend took the last time, so
//! both end together from the second sum on. Sums of a target never mix backends.
//!
//! A sum is a [`SplitJob`] like those of an engine, with a plan of one number, the border between
//! the targets. All pairs cost the same, so there is nothing to learn but two speeds, which are
//! kept per kind of sum.
//!
//! A fault of the GPU costs no result: its part is summed by the CPU backend in the same call,
//! nothing is learnt from that step, and the GPU is tried again after a number of sums.
//!
//! **Invariant:** while both work, results before the border are written by the CPU backend alone
//! and those behind it by the GPU alone, so neither needs a lock or a copy.

use super::report::AllPairsReport;
use crate::{
    Device, Error, ErrorKind,
    all_pairs::{Arithmetic, PairSum, Real},
    backend::{
        DeviceError, Fault,
        gpu::{self, PairSums},
        split::{self, Compute, ComputeEnd, Drive, DriveEnd, Halves, Outcome, SplitJob},
        sums::{SumWork, Targets},
        support::{Feature, choose, in_build},
    },
    report::SimdLevel,
};
use nearfield_cpu::CpuBackend;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Pairs below which `Auto` leaves the GPU alone: the way there and back takes longer.
const WORTH_A_GPU: u64 = 1 << 20;
/// Pairs in all from which `Auto` starts a GPU: to start one takes about as long as a few cores
/// take for them.
const WORTH_STARTING: u64 = 1 << 33;
/// Share of the targets that the CPU backend gets before the first measurement.
///
/// One measured step corrects it.
const FIRST_SHARE: f64 = 1.0 / 64.0;

/// Tells sums from each other whose speeds differ: sum, arithmetic, bytes of a number, and
/// whether targets are rows.
type SumKind = (PairSum, Arithmetic, usize, bool);

/// Both backends.
#[derive(Debug)]
pub(super) struct SumBackends {
    requested: Device,
    reason: String,
    cpu: CpuBackend,
    /// Started, though it may have failed since.
    gpu: Option<PairSums>,
    /// Whether a GPU may be started, and the pairs summed until then.
    later: Option<u64>,
    /// The CPU backend's share of the targets, by kind of sum.
    shares: HashMap<SumKind, f64>,
    last: LastSum,
}

/// Size and outcome of the last sum.
#[derive(Debug, Clone, Copy, Default)]
struct LastSum {
    /// Whether the GPU had any part that counts.
    on_gpu: bool,
    /// Targets times sources.
    pairs: u64,
    /// Share of the targets, 0 to 1; 1 if the CPU backend had to do the GPU's part.
    cpu_share: f64,
    time: Duration,
}

impl SumBackends {
    /// `Gpu` starts its GPU now and leaves every sum to it, `Hybrid` divides every sum, and `Auto`
    /// waits until enough has been summed.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`], [`ErrorKind::Unsupported`] for an emulated device or a
    /// build without GPUs, and [`ErrorKind::Cpu`] when threads cannot be started.
    pub(super) fn new(
        device: Device,
        threads: usize,
        simd: Option<SimdLevel>,
    ) -> Result<Self, Error> {
        choose(device, &Feature::AllPairs)?;
        in_build(device)?;
        let missing = |missing| Error::from(ErrorKind::DeviceUnavailable { device, missing });
        let (mut gpu, mut later) = (None, None);
        let mut reason = "asked for".to_owned();
        match device {
            Device::Cpu => {}
            Device::Gpu(number) | Device::Hybrid(number) => {
                gpu = Some(PairSums::start(number).map_err(missing)?);
            }
            Device::Auto => match gpu::find_driver() {
                Err(missing) => reason = format!("the CPU backend: {missing}"),
                Ok(()) => {
                    reason =
                        "the CPU backend, until there is more to sum than starting a GPU takes"
                            .to_owned();
                    later = Some(0);
                }
            },
            Device::Emulated(_) => {}
        }
        let cpu = CpuBackend::new(threads)?;
        let cpu = match simd {
            Some(level) => cpu.with_level(level),
            None => cpu,
        };
        Ok(Self {
            requested: device,
            reason,
            cpu,
            gpu,
            later,
            shares: HashMap::new(),
            last: LastSum::default(),
        })
    }

    /// Sums; everything has been checked.
    pub(super) fn run<T: Real>(
        &mut self,
        work: SumWork<'_, T>,
        results: &mut [T],
    ) -> Result<(), Error> {
        self.gpu.as_ref().map_or(Ok(()), PairSums::usable)?;
        let begin = Instant::now();
        let pairs = work.targets.points() as u64 * work.sources.points.len() as u64;
        self.start_gpu(pairs);
        let worth = pairs >= WORTH_A_GPU || self.requested != Device::Auto;
        let gpu = self.gpu.as_mut().filter(|_| worth);
        let gpu = gpu.and_then(|gpu| gpu.may_try().then_some(gpu));
        let share = if let Device::Hybrid(_) = self.requested {
            let rows = matches!(work.targets, Targets::Rows(..));
            let settings = work.settings;
            let sum = (settings.sum, settings.arithmetic, size_of::<T>(), rows);
            Some(self.shares.entry(sum).or_insert(FIRST_SHARE))
        } else {
            None
        };
        let mut step = SumStep {
            cpu: &self.cpu,
            gpu,
            share,
            border: 0,
            work,
            results,
        };
        let outcome = split::run(&self.cpu, &mut step)?;
        let units = step.work.targets.units().max(1);
        let cpu_share = match outcome.backends {
            _ if outcome.failed() => 1.0,
            split::Backends::Cpu => 1.0,
            split::Backends::Device => 0.0,
            split::Backends::Both => step.border as f64 / units as f64,
        };
        self.last = LastSum {
            on_gpu: cpu_share < 1.0,
            pairs,
            cpu_share,
            time: begin.elapsed(),
        };
        Ok(())
    }

    /// Starts the GPU of `Auto` once what has been summed, and is about to be, is worth it.
    ///
    /// It is tried once: a GPU that cannot be started leaves the CPU backend in place, with the
    /// reason. The call that reaches the bound waits for the start.
    fn start_gpu(&mut self, pairs: u64) {
        let Some(before) = self.later else { return };
        let summed = before.saturating_add(pairs);
        self.later = Some(summed);
        if summed >= WORTH_STARTING {
            self.later = None;
            match PairSums::start(0) {
                Ok(gpu) => {
                    self.gpu = Some(gpu);
                    self.reason = "a GPU sums pairs fastest".to_owned();
                }
                Err(error) => self.reason = format!("the CPU backend: {error}"),
            }
        }
    }

    /// A GPU that failed counts as the CPU backend until it is tried again.
    pub(super) fn report(&self) -> AllPairsReport {
        let failed = self.gpu.as_ref().and_then(PairSums::failed);
        let number = self.gpu.as_ref().map(PairSums::number);
        let few = self.requested == Device::Auto && !self.last.on_gpu && self.last.pairs > 0;
        let own = self.reason.clone();
        let (device, reason) = match (number, self.requested) {
            (None, _) => (Device::Cpu, own),
            (Some(_), _) if failed.is_some() => (Device::Cpu, "the GPU has failed".to_owned()),
            (Some(_), Device::Hybrid(number)) => (Device::Hybrid(number), own),
            (Some(_), _) if few => (Device::Cpu, "too few pairs to be worth a GPU".to_owned()),
            (Some(number), _) => (Device::Gpu(number), own),
        };
        AllPairsReport {
            requested: self.requested,
            device,
            reason,
            gpu: self.gpu.as_ref().map(|gpu| gpu.name().to_owned()),
            failed,
            threads: self.cpu.threads(),
            simd: self.cpu.level(),
            pairs: self.last.pairs,
            cpu_share: self.last.cpu_share,
            time: self.last.time,
        }
    }
}

/// A sum by the CPU backend, a GPU, or both: the first targets are the CPU's, the others the GPU's.
struct SumStep<'s, 'a, T> {
    cpu: &'s CpuBackend,
    gpu: Option<&'s mut PairSums>,
    /// The CPU backend's share of the targets, where both work.
    share: Option<&'s mut f64>,
    /// Targets of the CPU backend, points or rows.
    border: usize,
    work: SumWork<'a, T>,
    results: &'s mut [T],
}

impl<'a, T: Real> SumStep<'_, 'a, T> {
    /// The part of either backend, and the room for its results.
    ///
    /// A unit is a point or a row of a grid. All units have the same number of results, so one
    /// border cuts targets and results alike.
    fn parts(&mut self) -> [(SumWork<'a, T>, &mut [T]); 2] {
        let numbers = self.results.len() / self.work.targets.units().max(1);
        let (of_cpu, of_gpu) = self.work.clone().split(self.border);
        let (to_cpu, to_gpu) = self.results.split_at_mut(self.border * numbers);
        [(of_cpu, to_cpu), (of_gpu, to_gpu)]
    }
}

impl<T: Real> SplitJob for SumStep<'_, '_, T> {
    fn plan(&mut self) -> Result<split::Backends, Error> {
        Ok(match (&self.gpu, &self.share) {
            (None, _) => split::Backends::Cpu,
            (Some(_), None) => split::Backends::Device,
            (Some(_), Some(share)) => {
                let units = self.work.targets.units();
                self.border = ((**share * units as f64).round() as usize).min(units);
                split::Backends::Both
            }
        })
    }

    fn by_cpu(&mut self) -> Result<(), Error> {
        self.work.clone().on_cpu(self.cpu, self.results)
    }

    fn by_device(&mut self) -> Result<(), DeviceError> {
        match &mut self.gpu {
            Some(gpu) => gpu.run(self.work.clone(), self.results),
            None => Err(Fault::Behind.into()),
        }
    }

    fn divide(&mut self) -> Result<Halves<impl Drive, impl Compute>, DeviceError> {
        let (cpu, gpu) = (self.cpu, self.gpu.take());
        let [(of_cpu, to_cpu), (of_gpu, to_gpu)] = self.parts();
        let drive = move |_: Instant| {
            let gpu = gpu.ok_or(DeviceError::Fault(Fault::Behind))?;
            gpu.run(of_gpu, to_gpu)?;
            Ok(DriveEnd::Done)
        };
        let compute = move || {
            of_cpu.on_cpu(cpu, to_cpu)?;
            Ok(ComputeEnd::default())
        };
        Ok(Halves { drive, compute })
    }

    fn join(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn recover(&mut self) -> Result<(), Error> {
        let cpu = self.cpu;
        let [_, (work, results)] = self.parts();
        work.on_cpu(cpu, results)
    }

    fn learn(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if let (Some(share), false) = (&mut self.share, outcome.failed()) {
            let seconds = [outcome.cpu_ms, outcome.device_ms].map(|ms| ms / 1e3);
            **share = next_share(
                self.border,
                self.work.targets.units(),
                seconds[0],
                seconds[1],
            );
        }
        Ok(())
    }
}

/// The share of the CPU backend with which both backends, as fast as they were, end together. A
/// backend whose part was empty keeps a small one, so that it is measured again.
///
/// With speeds c and g in units per second the times c_units/c and g_units/g are equal for the
/// share c/(c + g).
fn next_share(cpu_units: usize, units: usize, cpu_seconds: f64, gpu_seconds: f64) -> f64 {
    let least = 1.0 / units.max(1) as f64;
    let speed = |units: usize, seconds: f64| units.max(1) as f64 / seconds.max(1e-9);
    let cpu = speed(cpu_units, cpu_seconds);
    let gpu = speed(units - cpu_units, gpu_seconds);
    let share = match cpu_units {
        0 => least,
        _ if cpu_units == units => 1.0 - FIRST_SHARE,
        _ => cpu / (cpu + gpu),
    };
    share.clamp(least.min(0.5), (1.0 - least).max(0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_go_where_both_backends_end_together() {
        // Ten of a hundred took the CPU as long as thirty would have taken the GPU.
        let share = next_share(10, 100, 1.0, 3.0);
        assert!((share - 0.25).abs() < 1e-12, "{share}");
        // Nothing is for ever.
        assert_eq!(next_share(0, 100, 0.0, 1.0), 0.01);
        assert!(next_share(100, 100, 1.0, 0.0) < 1.0);
        assert!(next_share(1, 100, 100.0, 1e-6) >= 0.01);
        assert!((0.0..=1.0).contains(&next_share(0, 0, 0.0, 0.0)));
        assert_eq!(next_share(1, 1, 1.0, 1.0), 0.5);
    }
}
