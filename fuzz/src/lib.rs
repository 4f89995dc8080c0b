//! What the fuzz targets run; each target is three lines in `fuzz_targets/`.
//!
//! `scripts/fuzz` runs them and `docs/testing.md` tells how; the seeds are in `seeds/`, the words of
//! the formats in `dictionaries/`.

pub mod engine;
pub mod readers;

pub use nearfield_io::Format;
