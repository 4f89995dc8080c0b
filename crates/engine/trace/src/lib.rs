//! Records, reads, analyses and displays traces, which show where the time of a step goes.
//!
//! Two lines record a program that uses Nearfield:
//!
//! ```no_run
//! let trace = nearfield_trace::start("trace.jsonl")?;
//! // ... build an engine; update, search, traverse; update, search, traverse ...
//! trace.finish()?;
//! # Ok::<(), nearfield_trace::Error>(())
//! ```
//!
//! [`record`] returns a layer instead, for programs that have a `tracing` subscriber. A program
//! marks its steps by a span with a field `step`. Without such spans, a step begins at the first
//! update of positions after a search or a traversal.
//!
//! A recording holds the engine's `tracing` spans and events. Spans mark only the stages of a step,
//! so recording costs some microseconds per step, and nothing measurable when it is off.

#![forbid(unsafe_code)]

pub mod analysis;
mod compare;
mod error;
mod export;
mod layer;
mod machine;
mod merge;
pub mod model;
mod ranks;
mod read;
mod recording;
mod report;
mod write;

pub use analysis::{Analysis, Clock, Summary, TimedBy};
pub use compare::{BackendChange, Change, Comparison, Side, Verdict};
pub use error::{Error, ErrorKind};
pub use export::{write_activities_csv, write_chrome, write_steps_csv};
pub use machine::processor;
pub use merge::write_merged;
pub use read::{Damage, Trace};
pub use recording::{BoxedLayer, Options, Recording, record, start};
pub use report::write_report;
pub use write::Writer;
