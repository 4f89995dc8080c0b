//! The dam break and scenes of files, from flags to files.

mod files;
mod scenes;
