//! Traces as programs write and read them.

mod analysis;
mod made;
mod reading;
mod recording;
