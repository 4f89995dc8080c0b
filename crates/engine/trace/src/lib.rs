//! Where the time of a step went: recording and reading of traces. The crate
//! `nearfield-trace-analysis` says what they mean and shows them.
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
//! [`record`] gives a layer instead, for programs that have a `tracing` subscriber. A program that
//! marks its steps, with a span that has a field `step`, has them told apart in the analysis;
//! otherwise a step begins at the first update of positions after a search or a traversal.
//!
//! The recording holds the engine's `tracing` spans and events: stages of a step and not more, so
//! a step costs some microseconds when it is recorded and nothing that could be measured when not.

#![forbid(unsafe_code)]

mod error;
mod layer;
mod machine;
pub mod model;
pub mod ranks;
mod read;
mod recording;
mod write;

pub use error::{Error, ErrorKind};
pub use machine::processor;
pub use read::{Damage, Trace};
pub use recording::{BoxedLayer, Options, Recording, record, start};
pub use write::Writer;
