//! What the fuzz targets run; each target is three lines in `fuzz_targets/`.
//!
//! `scripts/fuzz` runs them and `docs/testing.md` tells how; the seeds are in `seeds/`, the words
//! of the formats in `dictionaries/`. `tests/replay.rs` gives every target its seeds, what was
//! found before, and changed copies of both, without libFuzzer.

pub mod capi;
pub mod capsules;
pub mod checkpoints;
pub mod comments;
pub mod engine;
mod files;
mod message;
pub mod readers;
pub mod tables;
pub mod texts;
pub mod traces;

use arbitrary::{Arbitrary, Unstructured};
use nearfield_io::Format;

/// A target: takes any bytes, and panics where a promise is broken.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 25] = [
    ("npy", |bytes| readers::read(bytes, Format::Npy)),
    ("csv", |bytes| readers::read(bytes, Format::Csv)),
    ("xyz", |bytes| readers::read(bytes, Format::Xyz)),
    ("comment", comments::read),
    ("vtk", |bytes| readers::read(bytes, Format::LegacyVtk)),
    ("vtk_xml", |bytes| readers::read(bytes, Format::XmlVtk)),
    ("ply", |bytes| readers::read(bytes, Format::Ply)),
    ("npz", |bytes| readers::read(bytes, Format::Npz)),
    ("cloud", |bytes| readers::read(bytes, Format::Cloud)),
    ("lammps_dump", |bytes| {
        readers::read(bytes, Format::LammpsDump)
    }),
    ("lammps_data", |bytes| {
        readers::read(bytes, Format::LammpsData)
    }),
    ("gro", |bytes| readers::read(bytes, Format::Gro)),
    ("pdb", |bytes| readers::read(bytes, Format::Pdb)),
    ("cif", |bytes| readers::read(bytes, Format::Cif)),
    ("poscar", |bytes| readers::read(bytes, Format::Poscar)),
    ("pcd", |bytes| readers::read(bytes, Format::Pcd)),
    ("las", |bytes| readers::read(bytes, Format::Las)),
    ("gsd", |bytes| readers::read(bytes, Format::Gsd)),
    ("tables", tables::read),
    ("checkpoints", checkpoints::read),
    ("trace", traces::read),
    ("texts", texts::read),
    ("capsules", |bytes| with(bytes, &capsules::check)),
    ("capi", |bytes| with(bytes, &capi::run)),
    ("engine", |bytes| with(bytes, &engine::run)),
];

/// The target of this name.
///
/// # Panics
/// When there is none.
pub fn target(name: &str) -> Target {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("there is no target {name}"))
        .1
}

/// Makes of `bytes` what a target works on. Bytes that spell nothing are passed over.
fn with<T: for<'a> Arbitrary<'a>>(bytes: &[u8], work: &dyn Fn(&T)) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(bytes)) {
        work(&input);
    }
}

/// Describes the input that a target makes of `bytes`: the calls of a session, or the bytes as
/// text.
pub fn describe(name: &str, bytes: &[u8]) -> String {
    let rest = || Unstructured::new(bytes);
    match name {
        "capsules" => format!("{:#?}", capsules::Given::arbitrary_take_rest(rest())),
        "capi" => format!("{:#?}", capi::Session::arbitrary_take_rest(rest())),
        "engine" => format!("{:#?}", engine::Session::arbitrary_take_rest(rest())),
        _ => bytes.escape_ascii().to_string(),
    }
}
