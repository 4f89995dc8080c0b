//! From clocks to what controllers learn from.
//!
//! A controller needs the time of each subregion on each backend. The work of a backend for all
//! its subregions together (sorting, counting, copying) is its setup: paid once by a backend that
//! has any work.
//!
//! Neither clock gives that directly. Workers of the CPU pool add up the time they spend on targets
//! of each part; divided by their number it is the time of a subregion if all worked all the time.
//! A device times the pieces it works on, which may hold several parts, or none told apart. Times
//! of pieces are shared out by targets, and by work where even those are not known. The rest of a
//! backend's whole time, which subregions do not explain, is its setup.
//!
//! **Invariant:** setup and spans of a backend add up to its whole time, whatever its clocks say.

use super::{
    done::Piece,
    planned::{BrickPlan, OF_CPU},
    report::BackendReport,
};
use nearfield_balance::{DeviceFault, GpuSpans, Load, Span, Stage, StepTimes};
use nearfield_cpu::Spent;

/// A step in numbers, for the report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct StepMeasurement {
    /// The CPU backend's share of the pairs tested, 0 to 1.
    pub(super) share: f64,
    /// Targets of the CPU backend and of the device.
    pub(super) points: [usize; 2],
    /// Milliseconds of both, 0 for a backend without work.
    pub(super) backend_ms: [f64; 2],
    /// Milliseconds of the whole step, planning left out.
    pub(super) total_ms: f64,
    pub(super) planning_ms: f64,
}

impl StepMeasurement {
    /// A step that the CPU backend did alone.
    pub(super) fn by_cpu(targets: usize, total_ms: f64) -> Self {
        Self {
            share: 1.0,
            points: [targets, 0],
            backend_ms: [total_ms, 0.0],
            total_ms,
            planning_ms: 0.0,
        }
    }

    /// Both backends, as reports name them.
    pub(super) fn backends(&self) -> [BackendReport; 2] {
        [0, 1].map(|backend| BackendReport {
            name: ["cpu", "gpu"][backend],
            points: self.points[backend],
            milliseconds: self.backend_ms[backend],
        })
    }
}

/// Time of a backend in all, and the part of it that is known per subregion.
#[derive(Debug, Clone, Default)]
pub(super) struct BackendTimes {
    pub(super) total_ms: f64,
    /// By subregion; empty when nothing is known.
    pub(super) own_ms: Vec<f64>,
}

impl BackendTimes {
    /// A backend whose total time alone is known.
    pub(super) fn whole(total_ms: f64) -> Self {
        Self {
            total_ms,
            own_ms: Vec::new(),
        }
    }

    /// The CPU backend's, from what its workers have spent.
    ///
    /// Workers wait for each other at the end of a part and steal in between, so the subregions may
    /// add up to less than the whole; the difference counts as setup.
    pub(super) fn of_cpu(total_ms: f64, spent: &Spent, threads: usize, subregions: usize) -> Self {
        let own = (0..subregions).map(|subregion| {
            let nanoseconds = spent.on(OF_CPU | subregion as u8) as f64;
            nanoseconds / 1e6 / threads.max(1) as f64
        });
        Self {
            total_ms,
            own_ms: own.collect(),
        }
    }

    /// A device's, from when it worked on which of its targets, and the targets before every part.
    ///
    /// A piece counts from its beginning or from the end of the one before, whichever is later, so
    /// that pieces which overlap are not counted twice.
    pub(super) fn of_device(total_ms: f64, pieces: &[Piece], bounds: &[u64]) -> Self {
        let mut own_ms = vec![0.0; bounds.len().saturating_sub(1)];
        let (mut first, mut free) = (0u64, 0.0f64);
        for piece in pieces {
            let took = (piece.end_ms - piece.begin_ms.max(free)).max(0.0);
            let targets = piece.behind.saturating_sub(first).max(1) as f64;
            for (part, own) in own_ms.iter_mut().enumerate() {
                let low = bounds[part].max(first);
                let high = bounds[part + 1].min(piece.behind);
                *own += took * high.saturating_sub(low) as f64 / targets;
            }
            (first, free) = (piece.behind, piece.end_ms);
        }
        Self { total_ms, own_ms }
    }

    /// The same, by subregion also where the device did not tell them apart: then the work decides,
    /// and what a cell of a brick takes on top of it, `per_cell`, in pairs tested. `cells` is the
    /// maximum number of occupied cells per brick.
    pub(super) fn told_apart(mut self, loads: &[Load], per_cell: f64, cells: u64) -> Self {
        if let ([all], true) = (&self.own_ms[..], loads.len() > 1) {
            let took = |load: &Load| {
                let occupied = load
                    .targets
                    .min(u64::from(load.bricks).saturating_mul(cells));
                load.work() as f64 + per_cell * occupied as f64
            };
            let sum: f64 = loads.iter().map(took).sum();
            let part = |load: &Load| all * took(load) / sum.max(1.0);
            self.own_ms = loads.iter().map(part).collect();
        }
        self
    }

    /// The setup, and after it consecutive spans of the subregions that the backend has work in;
    /// together they take as long as the backend did. `usual` is the backend's setup where only the
    /// whole is known.
    fn spans(&self, loads: &[Load], usual: f64) -> (Span, Vec<Span>) {
        let has_work = |subregion: usize| !loads[subregion].is_empty();
        let work: f64 = loads.iter().map(|load| load.work() as f64).sum();
        let own = |subregion: usize| self.own_ms.get(subregion).copied().unwrap_or(0.0);
        let known: f64 = (0..loads.len()).filter(|&s| has_work(s)).map(own).sum();
        if !(0..loads.len()).any(has_work) {
            return (Span::default(), vec![Span::default(); loads.len()]);
        }
        let setup_ms = match known > 0.0 {
            // Clocks may disagree by a little.
            true => (self.total_ms - known).max(0.0),
            false => usual.min(0.9 * self.total_ms),
        };
        let rest = self.total_ms - setup_ms;
        let mut now = setup_ms;
        let spans = loads.iter().enumerate().map(|(subregion, load)| {
            if load.is_empty() {
                return Span::default();
            }
            let start_ms = now;
            now += rest
                * match known > 0.0 {
                    true => own(subregion) / known,
                    false => load.work() as f64 / work.max(1.0),
                };
            Span {
                start_ms,
                end_ms: now,
            }
        });
        let spans = spans.collect();
        let setup = Span {
            start_ms: 0.0,
            end_ms: setup_ms,
        };
        (setup, spans)
    }
}

/// Times that a controller learns from; `usual` are the last known setups of both backends.
///
/// Downloads are not told apart from computing here: a controller asks how long a subregion keeps
/// its backend, and the trace has the rest.
pub(super) fn step_times(
    planned: &BrickPlan,
    (cpu, gpu): (&BackendTimes, &BackendTimes),
    usual: [f64; 2],
    recovery_ms: f64,
    fault: Option<DeviceFault>,
) -> StepTimes {
    let loads =
        |of: fn(&Stage) -> Load| -> Vec<Load> { planned.plan().stages().iter().map(of).collect() };
    let (cpu_setup, cpu_spans) = cpu.spans(&loads(|stage| stage.cpu.load), usual[0]);
    let (gpu_setup, gpu_spans) = gpu.spans(&loads(|stage| stage.gpu.load), usual[1]);
    StepTimes {
        cpu: cpu_spans,
        gpu: (gpu_spans.into_iter())
            .map(|compute| GpuSpans {
                compute,
                ..GpuSpans::default()
            })
            .collect(),
        setup: [cpu_setup, gpu_setup],
        recovery: Span {
            start_ms: cpu.total_ms,
            end_ms: cpu.total_ms + recovery_ms,
        },
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(work: u64) -> Load {
        let mut load = Load {
            bricks: u32::from(work > 0),
            targets: work,
            ..Load::default()
        };
        load.by_class[0] = work;
        load
    }

    #[test]
    fn what_subregions_do_not_explain_is_setup() {
        let times = BackendTimes {
            total_ms: 10.0,
            own_ms: vec![1.0, 5.0, 3.0],
        };
        let (setup, spans) = times.spans(&[load(2), load(0), load(6)], 0.5);
        assert_eq!(setup.end_ms, 6.0);
        assert_eq!((spans[0].start_ms, spans[0].end_ms), (6.0, 7.0));
        assert_eq!(spans[1], Span::default());
        assert_eq!(spans[2].end_ms, 10.0);
    }

    #[test]
    fn without_more_knowledge_work_decides() {
        let (setup, spans) = BackendTimes::whole(8.0).spans(&[load(1), load(3)], 2.0);
        assert_eq!(
            (setup.end_ms, spans[0].ms(), spans[1].end_ms),
            (2.0, 1.5, 8.0)
        );
        // Clocks that say more than the whole are scaled down.
        let times = BackendTimes {
            total_ms: 6.0,
            own_ms: vec![4.0, 8.0],
        };
        let (setup, spans) = times.spans(&[load(1), load(1)], 2.0);
        assert_eq!(
            (setup.end_ms, spans[0].ms(), spans[1].end_ms),
            (0.0, 2.0, 6.0)
        );
        let (setup, spans) = times.spans(&[load(0)], 2.0);
        assert_eq!((setup, spans[0]), (Span::default(), Span::default()));
    }

    #[test]
    fn a_device_ends_with_one_part_after_the_other() {
        // Four subregions of ten targets, done in two parts.
        let bounds = [0, 10, 20, 30, 40];
        let piece = |behind, begin_ms, end_ms| Piece {
            behind,
            begin_ms,
            computed_ms: begin_ms,
            end_ms,
        };
        let pieces = [piece(20, 1.0, 5.0), piece(40, 3.0, 11.0)];
        let times = BackendTimes::of_device(12.0, &pieces, &bounds);
        assert_eq!(times.own_ms, [2.0, 2.0, 3.0, 3.0]);
        let loads = [load(1), load(0), load(2), load(1)];
        assert_eq!(
            times.clone().told_apart(&loads, 0.0, 8).own_ms,
            [2.0, 2.0, 3.0, 3.0]
        );
        // Strategies that go from cell to cell do not group their targets.
        let times = BackendTimes::of_device(12.0, &[piece(40, 1.0, 9.0)], &[0, 40]);
        assert_eq!(
            times.clone().told_apart(&loads, 0.0, 8).own_ms,
            [2.0, 0.0, 4.0, 2.0]
        );
        // Two cells of three in all: each takes as long as a pair.
        let apart = times.told_apart(&loads, 1.0, 1).own_ms;
        assert_eq!(apart, [16.0 / 7.0, 0.0, 24.0 / 7.0, 16.0 / 7.0]);
    }
}
