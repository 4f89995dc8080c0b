//! The file formats known here, and the extensions of their files.

use std::fmt;

/// A format of particle files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// NumPy array file, `.npy`.
    Npy,
    /// Table of numbers as text, `.csv`.
    Csv,
    /// XYZ and extended XYZ, `.xyz` and `.extxyz`.
    Xyz,
    /// Legacy VTK, `.vtk`.
    LegacyVtk,
    /// VTK XML: PolyData or UnstructuredGrid, `.vtp` and `.vtu`.
    XmlVtk,
    /// Polygon file format (Stanford), `.ply`.
    Ply,
}

/// Extensions by which formats are chosen.
pub(crate) const EXTENSIONS: [(&str, Format); 8] = [
    ("npy", Format::Npy),
    ("csv", Format::Csv),
    ("xyz", Format::Xyz),
    ("extxyz", Format::Xyz),
    ("vtk", Format::LegacyVtk),
    ("vtp", Format::XmlVtk),
    ("vtu", Format::XmlVtk),
    ("ply", Format::Ply),
];

impl Format {
    /// Every known extension, without the dot.
    pub fn extensions() -> impl Iterator<Item = &'static str> {
        EXTENSIONS.iter().map(|&(extension, _)| extension)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Npy => "NPY",
            Self::Csv => "CSV",
            Self::Xyz => "XYZ",
            Self::LegacyVtk => "legacy VTK",
            Self::XmlVtk => "VTK XML",
            Self::Ply => "PLY",
        })
    }
}
