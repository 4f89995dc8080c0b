//! Traces in the formats of other programs.

mod chrome;
mod csv;
mod events;
mod fit;
mod perfetto;

pub use self::chrome::write_chrome;
pub use self::csv::{write_activities_csv, write_steps_csv};
pub use self::perfetto::write_perfetto;
