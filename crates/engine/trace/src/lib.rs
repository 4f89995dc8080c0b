//! Records and reads traces, which show where the time of a step goes. The crate
//! `nearfield-trace-analysis` analyses and displays them.
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

mod compressed;
mod error;
mod layer;
mod machine;
pub mod model;
pub mod ranks;
mod read;
mod recording;
mod write;

pub use compressed::{Compressor, is_compressed};
pub use error::{Error, ErrorKind};
pub use machine::processor;
pub use read::{Damage, Trace};
pub use recording::{BoxedLayer, Options, Recording, record, start};
pub use write::Writer;
