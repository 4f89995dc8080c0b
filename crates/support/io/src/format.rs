//! The file formats known here, and the extensions of their files.

use std::fmt;

/// A format of particle files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// NumPy array file, `.npy`.
    Npy,
    /// NumPy archive of arrays, `.npz`.
    Npz,
    /// Table of numbers as text, `.csv`.
    Csv,
    /// Point cloud as text, `.txt`, `.dat`, `.tsv`, `.asc` and `.pts`.
    Cloud,
    /// XYZ and extended XYZ, `.xyz` and `.extxyz`.
    Xyz,
    /// Trajectory of LAMMPS, `.dump`, `.lammpstrj` and `.lammpsdump`.
    LammpsDump,
    /// Data file of LAMMPS, `.data` and `.lmp`.
    LammpsData,
    /// Coordinates of GROMACS, `.gro`.
    Gro,
    /// Protein Data Bank, `.pdb` and `.ent`.
    Pdb,
    /// Crystallographic information, `.cif` and `.mmcif`.
    Cif,
    /// Structure of VASP, `.poscar` and `.vasp`, and files called POSCAR or CONTCAR.
    Poscar,
    /// Legacy VTK, `.vtk`.
    LegacyVtk,
    /// VTK XML: PolyData or UnstructuredGrid, `.vtp` and `.vtu`.
    XmlVtk,
    /// Polygon file format (Stanford), `.ply`.
    Ply,
    /// Point Cloud Library, `.pcd`.
    Pcd,
    /// Laser scans (ASPRS), `.las`.
    Las,
    /// Trajectory of HOOMD-blue, `.gsd`.
    Gsd,
}

/// Extensions by which formats are chosen.
pub(crate) const EXTENSIONS: [(&str, Format); 30] = [
    ("npy", Format::Npy),
    ("npz", Format::Npz),
    ("csv", Format::Csv),
    ("tsv", Format::Cloud),
    ("txt", Format::Cloud),
    ("dat", Format::Cloud),
    ("asc", Format::Cloud),
    ("pts", Format::Cloud),
    ("xyz", Format::Xyz),
    ("extxyz", Format::Xyz),
    ("dump", Format::LammpsDump),
    ("lammpstrj", Format::LammpsDump),
    ("lammpsdump", Format::LammpsDump),
    ("data", Format::LammpsData),
    ("lmp", Format::LammpsData),
    ("gro", Format::Gro),
    ("pdb", Format::Pdb),
    ("ent", Format::Pdb),
    ("cif", Format::Cif),
    ("mmcif", Format::Cif),
    ("poscar", Format::Poscar),
    ("vasp", Format::Poscar),
    ("vtk", Format::LegacyVtk),
    ("vtp", Format::XmlVtk),
    ("vtu", Format::XmlVtk),
    ("ply", Format::Ply),
    ("pcd", Format::Pcd),
    ("las", Format::Las),
    ("laz", Format::Las),
    ("gsd", Format::Gsd),
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
            Self::Npz => "NPZ",
            Self::Csv => "CSV",
            Self::Cloud => "point cloud",
            Self::Xyz => "XYZ",
            Self::LammpsDump => "LAMMPS dump",
            Self::LammpsData => "LAMMPS data",
            Self::Gro => "GRO",
            Self::Pdb => "PDB",
            Self::Cif => "CIF",
            Self::Poscar => "POSCAR",
            Self::LegacyVtk => "legacy VTK",
            Self::XmlVtk => "VTK XML",
            Self::Ply => "PLY",
            Self::Pcd => "PCD",
            Self::Las => "LAS",
            Self::Gsd => "GSD",
        })
    }
}
