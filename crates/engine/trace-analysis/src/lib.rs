//! What a recorded trace says: analysis, comparison, a page to look at, and formats of other
//! programs.
//!
//! ```no_run
//! use nearfield_trace_analysis::{Analysis, Trace};
//! let trace = Trace::open("trace.jsonl".as_ref())?;
//! let analysis = Analysis::of(&trace)?;
//! println!("{}", analysis.summary);
//! # Ok::<(), nearfield_trace_analysis::Error>(())
//! ```
//!
//! A crate of its own, because a program that records traces needs none of it. It hands on all of
//! [`nearfield_trace`], which records and reads them.

#![forbid(unsafe_code)]

pub mod analysis;
mod compare;
mod export;
mod merge;
mod report;

pub use analysis::{Analysis, CauseKind, Clock, Finding, Markdown, Summary, TimedBy};
pub use compare::{BackendChange, Change, Comparison, Side, Verdict};
pub use export::{write_activities_csv, write_chrome, write_perfetto, write_steps_csv};
pub use merge::write_merged;
pub use nearfield_trace::*;
pub use report::write_report;
