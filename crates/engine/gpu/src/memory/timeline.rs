//! Times of kernels, copies and exchanges by events of the device, and their reports.
//!
//! An operation is timed between two events of its stream. It waits in the [`Timeline`] until both
//! have passed and an [`Anchor`] ties the clock of the device to that of the host; its report then
//! says how long ago it began and ended, so that the subscriber needs no clock of the device. How
//! the clocks are tied is told in [the module of the queue](super::queue).
//!
//! **Invariant:** an event is either in `spare` or in use, so none is recorded again before its
//! time was read.

use cudarc::driver::{CudaEvent, result};
use std::{mem, time::Instant};

/// Number of timed kernels and copies that may await their report. More of them are not timed,
/// which a warning in the trace tells.
const MAX_PENDING: usize = 1 << 14;
/// A moment on a stream, as the device times it; made by
/// [`Queue::moment`](crate::Queue::moment).
#[derive(Debug)]
pub struct Moment(pub(super) CudaEvent);

impl Moment {
    /// Milliseconds from this moment to another one of the same device, less than none if that was
    /// earlier; none before both have passed.
    pub fn until(&self, other: &Self) -> Option<f32> {
        let passed = self.0.is_complete() && other.0.is_complete();
        // SAFETY: both events have been recorded and have ended.
        let elapsed =
            || unsafe { result::event::elapsed(self.0.cu_event(), other.0.cu_event()) }.ok();
        passed.then(elapsed).flatten()
    }
}

/// Where a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToHost,
    ToDevice,
    OnDevice,
}

/// An operation that is timed.
#[derive(Debug)]
pub(super) enum Work {
    /// Its name.
    Kernel(String),
    /// Name of the values, direction, and bytes.
    Copy(&'static str, Direction, u64),
    /// Name of the values.
    Exchange(&'static str),
}

/// A kernel or a copy between two events of the device.
#[derive(Debug)]
pub(super) struct Timed {
    pub(super) work: Work,
    pub(super) begin: CudaEvent,
    pub(super) end: CudaEvent,
}

impl Direction {
    /// As traces call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ToHost => "to_host",
            Self::ToDevice => "to_device",
            Self::OnDevice => "on_device",
        }
    }
}

/// Times that were not reported yet.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// In the order in which they were started on their streams.
    pub(super) pending: Vec<Timed>,
    /// Events that are not in use: making one takes as long as recording it.
    pub(super) spare: Vec<CudaEvent>,
    /// None before the first wait.
    pub(super) anchor: Option<Anchor>,
    /// Kernels and copies that were not timed, as too many awaited their report.
    pub(super) untimed: u64,
}

/// An event that ended while the host watched, which ties the two clocks together.
#[derive(Debug)]
pub(super) struct Anchor {
    pub(super) event: CudaEvent,
    /// When the host saw its end.
    pub(super) at: Instant,
    /// Nanoseconds that the event may have ended before that.
    pub(super) clock_error: u64,
    /// Time that two events without work between them measure, milliseconds.
    pub(super) nothing: f32,
}

impl Timeline {
    /// Keeps work for its report, unless too much awaits one.
    pub(super) fn add(&mut self, timed: Timed) {
        if self.pending.len() < MAX_PENDING {
            self.pending.push(timed);
        } else {
            self.untimed += 1;
        }
    }

    /// Reports what has ended, and keeps the rest. Does nothing before there is an anchor.
    pub(super) fn report(&mut self) {
        let Self {
            pending,
            spare,
            anchor: Some(anchor),
            untimed,
        } = self
        else {
            return;
        };
        if *untimed > 0 {
            let count = mem::take(untimed);
            tracing::warn!(
                count,
                "kernels and copies of the GPU were not timed: the GPU computed more than the trace shows"
            );
        }
        let has_ended = |one: &Timed| one.begin.is_complete() && one.end.is_complete();
        let (ended, open): (Vec<_>, Vec<_>) = (mem::take(pending).into_iter()).partition(has_ended);
        *pending = open;
        for Timed { work, begin, end } in ended {
            let since = |event: &CudaEvent| {
                // SAFETY: both events have been recorded and have ended.
                unsafe { result::event::elapsed(anchor.event.cu_event(), event.cu_event()) }.ok()
            };
            let times = since(&begin).zip(since(&end));
            spare.extend([begin, end]);
            let Some((begin, end)) = times else { continue };
            let now = anchor.at.elapsed().as_secs_f64() * 1e3;
            let ago = |ms: f32| nanoseconds(now - f64::from(ms));
            let clock_error = anchor.clock_error;
            let (begin_ago, end_ago) = (ago(begin), ago((end - anchor.nothing).max(begin)));
            match work {
                Work::Kernel(kernel) => tracing::debug!(
                    name: "gpu.kernel",
                    kernel,
                    begin_ago,
                    end_ago,
                    clock_error
                ),
                Work::Exchange(what) => tracing::debug!(
                    name: "gpu.exchange",
                    what,
                    begin_ago,
                    end_ago,
                    clock_error
                ),
                Work::Copy(what, direction, bytes) => tracing::debug!(
                    name: "gpu.copy",
                    what,
                    direction = direction.name(),
                    bytes,
                    begin_ago,
                    end_ago,
                    clock_error
                ),
            }
        }
    }
}

/// Milliseconds as whole nanoseconds; less than none is 0.
fn nanoseconds(ms: f64) -> u64 {
    (ms.max(0.0) * 1e6) as u64
}
