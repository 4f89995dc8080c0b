//! The hand-offs of an overlapped step, on real threads: a backend with memory of its own takes
//! subregions through upload, compute and download while the CPU backend works. Nothing is decided
//! here.
//!
//! # Threads
//!
//! Each of the three stages has a thread of its own, which a [`Crew`] keeps from one step to the
//! next; the CPU backend runs on the thread that calls [`Crew::run`].
//!
//! ```text
//!  caller     cpu() ──────────────────────────────────────────────▶ waits ─▶ (R, Progress)
//!    │                                                                ▲
//!    │ begins             places                places, buffers       │ end
//!    ├──▶ uploads ────────[s]────▶ computes ──────[s, b]────▶ downloads
//!    │                               ▲                            │
//!    │                               └───────────[b]──────────────┘
//!    │                                     free buffers
//! ```
//!
//! # States of a subregion
//!
//! ```text
//!  waiting ─upload─▶ sent ─(takes a free buffer)─compute─▶ computed ─download─▶ finished
//!     │                │                                      │      (buffer is free again)
//!     └────────────────┴──────────── skipped ◀────────────────┘
//! ```
//!
//! A subregion is in the hands of one thread at a time: whoever receives its place from a channel.
//! So is a buffer: free, with the second stage, or with the third.
//!
//! # Hand-offs
//!
//! 1. *Nobody waits for room.* The first channel has a slot for every subregion and the other two
//!    one for every buffer, of which there are no more. Threads wait in three places only: the
//!    second stage for an upload and for a free buffer, the third for results. Each of these
//!    comes from a thread that waits for an earlier subregion at most, so somebody can always go on.
//! 2. *A fault skips, it does not cut.* It marks its place; from there on stages pass subregions on
//!    untouched, and buffers go back as ever. Subregions before it are taken to the end, so what is
//!    finished is always a beginning of the list.
//! 3. *Whoever stops hangs up.* Ends of channels belong to the stage that uses them. When one has
//!    ended or panicked they are gone, its neighbours see that as soon as they have taken what is
//!    left, and end too; a panic goes on in the caller once all have.
//! 4. *Steps take turns.* The three jobs of a step are queued under a lock, in the same order on
//!    all threads, so steps that several callers begin at once follow each other on every thread.
//!
//! Waiting is spinning for at most 50 µs, then sleeping. The stages' loops are checked under every
//! interleaving by `scripts/loom`.

mod crew;
#[doc(hidden)]
pub mod stations;
#[cfg_attr(loom, path = "sync_loom.rs")]
pub(crate) mod sync;

pub use crew::Crew;

use crate::{GpuSpans, Span};

/// A backend with memory of its own, as the three stages of each subregion.
///
/// Each stage is called on a thread of its own, for subregions in the order given: `compute(s)`
/// after `upload(s)` has returned, `download(s)` after `compute(s)` has. Upload of s + 1, compute of s
/// and download of s − 1 overlap; uploads may be any number of subregions ahead. After an error
/// nothing more is called for this subregion and those behind it, as far as they have not begun.
pub trait Stages: Sync {
    /// Why a stage failed.
    type Error: Send;

    /// Sends the sources that the subregion needs and that were not sent before.
    ///
    /// # Errors
    /// When the backend cannot go on with this subregion.
    fn upload(&self, subregion: usize) -> Result<(), Self::Error>;

    /// Works on the subregion and leaves the results in `buffer`, which nobody else uses until
    /// `download` has returned.
    ///
    /// # Errors
    /// When the backend cannot go on with this subregion.
    fn compute(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error>;

    /// Fetches the results from `buffer`.
    ///
    /// # Errors
    /// When the backend cannot go on with this subregion.
    fn download(&self, subregion: usize, buffer: usize) -> Result<(), Self::Error>;
}

/// How far a step came. Times are milliseconds since [`Crew::run`] was called.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<E> {
    /// For every subregion in the order given, from when to when each of its stages was called; zero
    /// for a stage that was not called or failed.
    pub spans: Vec<GpuSpans>,
    /// Whether its results were fetched: the subregions before the first fault.
    pub finished: Vec<bool>,
    /// The fault that came first.
    pub fault: Option<E>,
    /// The CPU backend.
    pub cpu: Span,
}
