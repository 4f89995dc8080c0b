//! The event model of a GPU backend: three streams, one thing at a time on each.
//!
//! Upload of subregion s + 1, computing of s and download of s − 1 overlap. A stage starts when
//! its stream is free and the stage before it, of the same subregion, has ended. The model
//! predicts the time of a step from the durations of its stages: about the longest stream plus one
//! upload and one download, when subregions are many.
//!
//! Production devices need not follow the model to the letter. Its purpose is to rank thresholds,
//! and the policies learn the factor by which it is off.
//!
//! **Invariant:** spans of one stream do not overlap, and a subregion's stages follow each other.

use super::times::{GpuSpans, Span};

/// Durations of a subregion's stages, milliseconds; zero where there is nothing to do.
///
/// A stage of zero duration takes no slot of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Durations {
    /// Sources to the GPU.
    pub upload: f64,
    /// Kernels.
    pub compute: f64,
    /// Results back.
    pub download: f64,
}

/// When every stage runs, from time 0 on.
///
/// The model knows no waiting for buffers and no slowing of one stream by another; what these cost
/// shows in the bias of a backend, which policy `model` learns.
pub fn overlapped(subregions: impl IntoIterator<Item = Durations>) -> Vec<GpuSpans> {
    let mut free = [0.0f64; 3];
    subregions
        .into_iter()
        .map(|durations| {
            let mut ready = 0.0f64;
            let stages = [durations.upload, durations.compute, durations.download];
            let [upload, compute, download] = std::array::from_fn(|stage| {
                if stages[stage] <= 0.0 {
                    return Span::default();
                }
                let start_ms = ready.max(free[stage]);
                let end_ms = start_ms + stages[stage];
                ready = end_ms;
                free[stage] = end_ms;
                Span { start_ms, end_ms }
            });
            GpuSpans {
                upload,
                compute,
                download,
            }
        })
        .collect()
}

/// One thing after the other, from time 0 on.
///
/// The model of the CPU backend, which does one subregion after the other.
pub fn in_turn(durations: impl IntoIterator<Item = f64>) -> Vec<Span> {
    let mut now = 0.0;
    durations
        .into_iter()
        .map(|duration| {
            if duration <= 0.0 {
                return Span::default();
            }
            let start_ms = now;
            now += duration;
            Span {
                start_ms,
                end_ms: now,
            }
        })
        .collect()
}
