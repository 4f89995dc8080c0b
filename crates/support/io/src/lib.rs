//! Readers and writers of particle files.
//!
//! [`read_points`] reads a cloud of points in the format given by the file's extension;
//! [`write_points`] and related functions write one. Other data of a file (simulation box, time,
//! velocities, identifiers, element symbols) are read if the format has them.
//!
//! ```
//! use nearfield_io::{read_points, write_points};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("cloud.npy");
//! write_points(&path, &[[0.0, 0.0, 0.0], [0.5, 0.25, -1.0]])?;
//! let cloud = read_points(&path)?;
//! assert_eq!(cloud.len(), 2);
//! assert_eq!(cloud.positions[1], [0.5, 0.25, -1.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | extension | read | written |
//! | --- | --- | --- |
//! | `.npy` | N×3 or N×2 of f2, f4, f8, i1…i8 or u1…u8; either byte order, C or Fortran order | N×3 of f4 or f8 |
//! | `.npz` | the array of N×3 or N×2, by its name if there are several | neighbour lists ([`write_csr_npz`]) |
//! | `.csv` | columns named x, y and perhaps z, or two or three unnamed ones; separated by comma, semicolon, tab or blanks; `#` begins a comment | `x,y,z` and quantities |
//! | `.txt`, `.dat`, `.tsv`, `.asc`, `.pts` | as `.csv`; without names x, y and z come first; a line of one whole number counts the rows behind it; `//` begins a comment too | – |
//! | `.xyz`, `.extxyz` | any one frame ([`read_frame`]) or all ([`for_each_frame`]); `Lattice`, `pbc`, `Properties` and `Time` of the comment ([`extxyz`]); without `Properties` rows of `species x y z` or `x y z`; an `.xyz` without a count is a cloud as `.txt` is | everything |
//! | `.dump`, `.lammpstrj`, `.lammpsdump` | LAMMPS dumps of atoms as text, any frame; boxes of all kinds; x, xu, xs or xsu; all columns | – |
//! | `.data`, `.lmp` | LAMMPS data: the section `Atoms` and the box | – |
//! | `.gro` | GROMACS, any frame, with velocities and any box | – |
//! | `.pdb`, `.ent` | `ATOM` and `HETATM`, the cell of `CRYST1`, any model | – |
//! | `.cif`, `.mmcif` | `atom_site` of the first block and model, Cartesian or as parts of the cell; the cell; no symmetry | – |
//! | `.poscar`, `.vasp`, `POSCAR*`, `CONTCAR*` | VASP, direct or cartesian | – |
//! | `.vtk` | legacy PolyData and unstructured grids up to version 5.1, text and binary | – |
//! | `.vtp`, `.vtu` | ascii, binary, appended (raw and base64); either byte order; zlib, LZ4 or no compression | `.vtp`, zlib |
//! | `.ply` | text and both binary encodings, any scalar type | – |
//! | `.pcd` | text, binary and compressed | – |
//! | `.las` | LAS 1.0 to 1.4, not compressed, with intensity and classification | – |
//! | `.gsd` | HOOMD-blue, GSD 1 and 2, any frame, with the box, types and all quantities of particles | – |
//! | `.vti` | – | quantities on a regular grid ([`write_vti`]) |
//! | `.html` | – | a page that shows points in a browser ([`write_view`]), at many moments ([`View`]) |
//!
//! Files of every format may be packed by gzip or zstd, with `.gz` or `.zst` behind the extension.
//!
//! [`write_cloud`] writes a cloud with its quantities. [`read_table`] reads any table of numbers,
//! and [`write_array`] writes an array of any shape.
//!
//! # What callers can rely on
//! - Positions are the file's values rounded once to `f32`. If that loses digits,
//!   [`PointCloud::positions_f64`] has them in double precision. NaN and infinite values are kept;
//!   the engine refuses them and names the index.
//! - Text may begin with a byte order mark, end its lines in either way, and write exponents with a
//!   D.
//! - [`PointCloud::unread`] and [`PointCloud::notes`] name the contents of a file that a reader
//!   skipped.
//! - Readers neither panic nor allocate memory just because a file announces much data: a header
//!   with 10¹² points before ten bytes of data is refused. A truncated file is refused if its
//!   format allows detecting it.
//! - An [`Error`] is one line that names the file, the place and the offending text.
//! - A file is written under a temporary name in the same folder and then renamed, so a failed run
//!   leaves no partial file.

#![forbid(unsafe_code)]

mod cloud;
mod cursor;
mod error;
mod extension;
pub mod extxyz;
mod format;
mod number;
mod point_data;
mod raw;
mod read;
mod write;

pub use cloud::{Dimensions, Frame, Frames, PointCloud, SimulationBox, Species};
pub use error::{Error, ErrorKind, Place};
pub use format::Format;
pub use number::parse_number;
pub use point_data::{PointData, Values};
pub use read::{
    Column, Table, for_each_frame, parse_frame, parse_points, parse_table, read_frame, read_points,
    read_table,
};
pub use write::{
    Chart, ChartLine, Detail, FrameWriter, Scale, View, ViewFrame, ViewWriter, VtpWriter,
    write_array, write_cloud, write_csr_npz, write_csv, write_frames, write_npy, write_points,
    write_view, write_vti, write_vtp,
};
