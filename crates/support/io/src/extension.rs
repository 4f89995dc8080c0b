//! Chooses a format by the extension of a file.

use std::{ffi::OsStr, path::Path};

use crate::{
    error::{Error, ErrorKind, Fault, Place},
    format::{EXTENSIONS, Format},
};

/// The program that packed a file, by an extension behind that of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

/// How `path` is packed, and its name without the extension that says so.
pub(crate) fn packing(path: &Path) -> (Option<Packing>, &Path) {
    let known = [("gz", Packing::Gzip), ("zst", Packing::Zstd)];
    let packing = known.iter().find(|(name, _)| is_extension(path, name));
    match (packing, path.file_stem()) {
        (Some(&(_, packing)), Some(stem)) => (Some(packing), Path::new(stem)),
        _ => (None, path),
    }
}

fn is_extension(path: &Path, extension: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// The name that VASP gives to files, perhaps with something behind it.
fn is_poscar(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["POSCAR", "CONTCAR"]
        .iter()
        .any(|known| name.starts_with(known))
}

impl Format {
    /// The format of `path` by its extension, in upper or lower case; `.gz` and `.zst` may follow
    /// it.
    ///
    /// # Errors
    /// When the extension is missing or unknown; the message lists the known ones and names a tool
    /// that converts.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        let (packing, name) = packing(path);
        if let Some((_, format)) = known(name) {
            return Ok(format);
        }
        if is_poscar(name) {
            return Ok(Self::Poscar);
        }
        let extension = name.extension().and_then(OsStr::to_str).unwrap_or_default();
        Err(unknown(path, extension, packing))
    }

    /// Whether `.gz` or `.zst` says that a file is packed. Packed files are read, not written.
    pub fn is_packed(path: &Path) -> bool {
        packing(path).0.is_some()
    }

    /// The known extension of `path` in lower case, without `.gz` or `.zst` behind it.
    pub fn extension_of(path: &Path) -> Option<&'static str> {
        known(packing(path).1).map(|(extension, _)| extension)
    }
}

fn known(name: &Path) -> Option<(&'static str, Format)> {
    let mut all = EXTENSIONS.iter().copied();
    all.find(|(known, _)| is_extension(name, known))
}

fn unknown(path: &Path, extension: &str, packing: Option<Packing>) -> Error {
    let known: Vec<String> = Format::extensions()
        .map(|known| format!(".{known}"))
        .collect();
    let found = match extension {
        "" if packing.is_some() => {
            "the file name has no extension before that of the packing".to_owned()
        }
        "" => "the file name has no extension".to_owned(),
        other => format!("the extension '.{other}' is not known"),
    };
    // The remedy first: a message is cut where it is long, and the list is.
    let message = format!(
        "{found}: {}; known are {}",
        remedy(extension),
        known.join(", ")
    );
    Fault::new(ErrorKind::UnknownFormat, Place::Whole, message).in_file(path)
}

/// How to make a file that is read of one that is not.
fn remedy(extension: &str) -> &'static str {
    match extension.to_ascii_lowercase().as_str() {
        "bz2" | "xz" | "zip" | "lz4" | "tar" | "7z" => {
            "unpack it first, or pack it by gzip or zstd"
        }
        "h5" | "hdf5" => {
            "save the array that h5py reads, such as PartType0/Coordinates, by numpy.save as .npy"
        }
        "parquet" | "mat" => "save the array by numpy.save as .npy",
        "e57" | "e00" => {
            "PDAL (pdal translate) and CloudCompare convert point clouds to .ply, .pcd or .csv"
        }
        "traj" | "xtc" | "trr" | "dcd" | "xsf" | "cfg" | "g96" => {
            "ASE (ase convert), MDAnalysis and OVITO convert files of atoms to .extxyz, .gro or .pdb"
        }
        "stl" | "obj" | "off" | "msh" | "xdmf" | "vtm" | "vti" | "pvtp" | "pvtu" | "pvd" => {
            "meshio (meshio convert) and ParaView convert meshes to .vtu, .vtp or .ply"
        }
        _ => "meshio converts meshes, ASE atoms, PDAL point clouds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_in_either_case() {
        for (name, format) in [
            ("a/b.VTU", Format::XmlVtk),
            ("b.tar.csv", Format::Csv),
            ("b.csv.GZ", Format::Csv),
            ("run.lammpstrj.zst", Format::LammpsDump),
            ("POSCAR", Format::Poscar),
            ("run/CONTCAR.gz", Format::Poscar),
            ("POSCAR_Si", Format::Poscar),
            ("POSCAR.xyz", Format::Xyz),
        ] {
            assert_eq!(Format::from_path(Path::new(name)), Ok(format), "{name}");
        }
        let extension = |name| Format::extension_of(Path::new(name));
        assert_eq!(extension("a.VTP.gz"), Some("vtp"));
        assert_eq!(extension("a.xtc"), None);
    }

    #[test]
    fn an_unknown_extension_is_refused_with_the_known_ones() {
        for name in ["cloud.stl", "cloud", ".npy", "cloud.gz", "cloud.gz.gz"] {
            let error = Format::from_path(Path::new(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownFormat);
            let text = error.to_string();
            assert!(text.starts_with(name), "{text}");
            assert!(
                text.contains("known are .npy, .npz, .csv, ")
                    && text.ends_with(", .las, .laz, .gsd"),
                "{text}"
            );
            assert!(text.contains("meshio"), "{text}");
        }
        for (name, tool) in [
            ("a.E57", "PDAL"),
            ("a.dcd", "ASE"),
            ("a.xtc.gz", "MDAnalysis"),
            ("snapshot.hdf5", "h5py"),
            ("a.csv.bz2", "unpack"),
            ("a.foo", "PDAL point clouds"),
        ] {
            let error = Format::from_path(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(tool), "{error}");
        }
    }
}
