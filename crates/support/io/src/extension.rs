//! Chooses a format by the extension of a file.

use std::{ffi::OsStr, path::Path};

use crate::{
    error::{Error, ErrorKind, Fault, Place},
    format::{EXTENSIONS, Format},
};

impl Format {
    /// The format of `path` by its extension, in upper or lower case.
    ///
    /// # Errors
    /// When the extension is missing or unknown; the message lists the known ones and names a tool
    /// that converts.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        EXTENSIONS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(extension))
            .map(|&(_, format)| format)
            .ok_or_else(|| unknown(path, extension))
    }
}

fn unknown(path: &Path, extension: &str) -> Error {
    let known: Vec<String> = Format::extensions()
        .map(|known| format!(".{known}"))
        .collect();
    let found = match extension {
        "" => "the file name has no extension".to_owned(),
        other => format!("the extension '.{other}' is not known"),
    };
    let message = format!(
        "{found}; known are {}: {}",
        known.join(", "),
        remedy(extension)
    );
    Fault::new(ErrorKind::UnknownFormat, Place::Whole, message).in_file(path)
}

/// How to make a file that is read of one that is not.
fn remedy(extension: &str) -> &'static str {
    match extension.to_ascii_lowercase().as_str() {
        "txt" | "dat" | "tsv" | "asc" | "pts" => {
            "a text table of points can be called .csv, with a first line that names x, y and z"
        }
        "gz" | "bz2" | "xz" | "zst" | "zip" => "unpack it first",
        "npz" | "h5" | "hdf5" | "parquet" => "save the array by numpy.save as .npy",
        "las" | "laz" | "e57" | "pcd" => {
            "PDAL or CloudCompare convert point clouds to .ply or .csv"
        }
        "pdb" | "cif" | "gro" | "lammpstrj" | "dump" | "lmp" | "vasp" | "traj" | "xtc" | "dcd" => {
            "ASE (ase convert) and OVITO convert files of atoms to .extxyz"
        }
        "stl" | "obj" | "off" | "msh" | "xdmf" | "vtm" | "pvtp" | "pvtu" | "pvd" => {
            "meshio (meshio convert) and ParaView convert meshes to .vtu, .vtp or .ply"
        }
        _ => {
            "meshio and ParaView convert meshes, ASE and OVITO atoms, PDAL and CloudCompare point \
             clouds"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_in_either_case() {
        assert_eq!(Format::from_path(Path::new("a/b.VTU")), Ok(Format::XmlVtk));
        assert_eq!(Format::from_path(Path::new("b.tar.csv")), Ok(Format::Csv));
    }

    #[test]
    fn an_unknown_extension_is_refused_with_the_known_ones() {
        for name in ["cloud.stl", "cloud", ".npy"] {
            let error = Format::from_path(Path::new(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownFormat);
            let text = error.to_string();
            assert!(text.starts_with(name), "{text}");
            assert!(
                text.contains("known are .npy, .csv, .xyz, .extxyz, .vtk, .vtp, .vtu, .ply: "),
                "{text}"
            );
            assert!(text.contains("meshio"), "{text}");
        }
        for (name, tool) in [
            ("a.LAS", "PDAL"),
            ("a.pdb", "ASE"),
            ("a.txt", ".csv"),
            ("a.gz", "unpack"),
        ] {
            let error = Format::from_path(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(tool), "{error}");
        }
    }
}
