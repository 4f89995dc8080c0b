//! Traces as programs write and read them.

mod analysis;
mod compare;
mod device;
mod export;
mod made;
mod merge;
mod reading;
mod recording;
mod report;
mod schema;
mod verdicts;
mod virtual_clock;
