//! Report of a device on its part of a job: how much it was, and when the device worked on it.
//!
//! Times are on the device's own clock. [`place`]
//! puts them on the host's: between asking and having the last result there is some slack, and the
//! clock's origin is taken in its middle, so the error is at most half of it.
//!
//! [`place`]: GpuDone::place

use crate::balance::Strategy;
use nearfield_balance::{GpuSpans, Span};
use std::time::{Duration, Instant};

/// Targets that a device worked on together, in the order in which it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Its targets end before this one.
    pub(crate) behind: u64,
    /// When their work began, when it was done, and when their results had arrived; on the device's
    /// clock since it began.
    pub(crate) begin_ms: f64,
    pub(crate) computed_ms: f64,
    pub(crate) end_ms: f64,
}

/// Outcome of the device's part of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct GpuDone {
    /// Targets that were the GPU's, and where each part of them ends.
    /// One more than there are parts, from 0 on; two for strategies that do not group their targets
    /// by part, none for an emulated device.
    pub(crate) bounds: Vec<u64>,
    pub(crate) pieces: Vec<Piece>,
    /// When the device's clock began, milliseconds since both backends did, and how far off that
    /// may be in nanoseconds.
    pub(crate) origin_ms: f64,
    pub(crate) clock_error: u64,
    /// Cost of a cell without its pairs, in pairs tested.
    pub(crate) per_cell: f64,
    /// Entries of its lists.
    pub(crate) pairs: u64,
    /// Whether there was room for them; nothing was written if not.
    pub(crate) fitted: bool,
}

/// Cost of launching a kernel for a cell on an H200, about 5 µs, in pairs tested of 3 ps.
const LAUNCH: f64 = 1.7e6;

impl GpuDone {
    /// Nothing yet, of targets whose parts have these bounds.
    pub(crate) fn of(bounds: &[u64], strategy: Strategy) -> Self {
        Self {
            bounds: bounds.to_vec(),
            per_cell: match strategy {
                Strategy::ChildPerCell => LAUNCH,
                _ => 0.0,
            },
            fitted: true,
            ..Self::default()
        }
    }

    /// Places the device's clock on the host's: it began after the host had asked it to, `asked`
    /// after both backends began, and its last piece had ended when the host had it, now.
    ///
    /// The true origin lies between `asked` and the latest moment that lets the last piece end now.
    /// Its middle is at most half of that interval off, which is what `clock_error` says. Without
    /// pieces nothing is placed.
    pub(crate) fn place(&mut self, began: Instant, asked: Duration) {
        let Some(last) = self.pieces.last() else {
            return;
        };
        let now = began.elapsed().as_secs_f64() * 1e3;
        let asked = asked.as_secs_f64() * 1e3;
        let slack = (now - last.end_ms - asked).max(0.0);
        self.origin_ms = asked + slack / 2.0;
        self.clock_error = (slack / 2.0 * 1e6) as u64;
    }

    /// When which part of a share was worked on, since both backends began: within a piece one part
    /// after the other.
    ///
    /// `gpu_ms` is the time of the whole part on the host's clock; spans are placed so that none
    /// ends later. A download begins when its piece is computed and the copy before it has ended,
    /// because copies of one direction follow each other. Cost: pieces × parts.
    pub(super) fn spans(&self, gpu_ms: f64) -> Vec<GpuSpans> {
        let parts = self.bounds.len().saturating_sub(1);
        let mut spans = vec![GpuSpans::default(); parts];
        let Some(last) = self.pieces.last() else {
            return spans;
        };
        // The device's clock began when the host had asked it to.
        let shift = self.origin_ms.min((gpu_ms - last.end_ms).max(0.0));
        let (mut first, mut copied) = (0u64, 0.0f64);
        for piece in &self.pieces {
            let targets = piece.behind.saturating_sub(first).max(1) as f64;
            for (part, spans) in spans.iter_mut().enumerate() {
                let low = self.bounds[part].clamp(first, piece.behind);
                let high = self.bounds[part + 1].clamp(first, piece.behind);
                if low == high {
                    continue;
                }
                let from = (low - first) as f64 / targets;
                let to = (high - first) as f64 / targets;
                let slice = |begin: f64, end: f64| Span {
                    start_ms: shift + begin + (end - begin) * from,
                    end_ms: shift + begin + (end - begin) * to,
                };
                let join = |whole: Span, slice: Span| match whole.ms() > 0.0 {
                    true => Span {
                        end_ms: slice.end_ms,
                        ..whole
                    },
                    false => slice,
                };
                let download = piece.computed_ms.max(copied);
                spans.compute = join(spans.compute, slice(piece.begin_ms, piece.computed_ms));
                spans.download = join(spans.download, slice(download, piece.end_ms.max(download)));
            }
            (first, copied) = (piece.behind, piece.end_ms);
        }
        spans
    }
}
