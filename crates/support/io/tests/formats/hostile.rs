//! Damaged and arbitrary files: refused, never a panic, never memory without end.

use std::fs;

use nearfield_io::{ErrorKind, Format, PointData, VtpWriter, parse_points, read_points};
use proptest::prelude::*;
use zip::CompressionMethod;

use crate::{data, good};

const FORMATS: [Format; 17] = [
    Format::Npy,
    Format::Npz,
    Format::Csv,
    Format::Cloud,
    Format::Xyz,
    Format::LammpsDump,
    Format::LammpsData,
    Format::Gro,
    Format::Pdb,
    Format::Cif,
    Format::Poscar,
    Format::LegacyVtk,
    Format::XmlVtk,
    Format::Ply,
    Format::Pcd,
    Format::Las,
    Format::Gsd,
];

const TEXTS: [(&str, Format); 12] = [
    ("id,x,y,z\n1,0.5,1.5,2.5\n2,-1,\"3\",1e3\n", Format::Csv),
    ("2\n0.5 1.5 2.5 7 9\n-1 3 1e3 8 9\n", Format::Cloud),
    (
        "2\nLattice=\"4 0 0 0 5 0 0 0 6\" pbc=\"T F T\" Properties=species:S:1:pos:R:3:id:I:1\n\
         Ar 1 2 3 7\nKr 4 5 6 8\n",
        Format::Xyz,
    ),
    (crate::atoms::DUMP, Format::LammpsDump),
    (crate::atoms::DATA, Format::LammpsData),
    (crate::atoms::GRO, Format::Gro),
    (crate::atoms::PDB, Format::Pdb),
    (crate::atoms::CIF, Format::Cif),
    (crate::atoms::POSCAR, Format::Poscar),
    (crate::clouds::PCD, Format::Pcd),
    (
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n\
         property double z\nelement face 1\nproperty list uchar int i\nend_header\n\
         1 2 3\n4 5 6\n3 0 1 2\n",
        Format::Ply,
    ),
    (
        "# vtk DataFile Version 5.1\nt\nASCII\nDATASET POLYDATA\nPOINTS 2 float\n1 2 3 4 5 6\n\
         VERTICES 3 2\nOFFSETS vtktypeint64\n0 1 2\nCONNECTIVITY vtktypeint64\n0 1\n\
         POINT_DATA 2\nSCALARS a int 1\nLOOKUP_TABLE default\n1 2\n",
        Format::LegacyVtk,
    ),
];

/// Good small files of every format and encoding.
fn good_files() -> Vec<(Vec<u8>, Format)> {
    let mut files: Vec<_> = TEXTS
        .iter()
        .map(|&(text, format)| (text.as_bytes().to_vec(), format))
        .collect();
    for entry in fs::read_dir(data("made")).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_str().unwrap().contains("_lzma_") {
            files.push((fs::read(&path).unwrap(), Format::from_path(&path).unwrap()));
        }
    }
    files.push((written_frame(), Format::XmlVtk));
    for name in ["scans/laspy_1_2.las", "scans/laspy_1_4.las"] {
        files.push((fs::read(data(name)).unwrap(), Format::Las));
    }
    for version in [1, 2] {
        files.push((crate::gsd::small(version), Format::Gsd));
    }
    for kind in ["binary", "binary_compressed"] {
        files.push((crate::clouds::pcd(kind), Format::Pcd));
    }
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        files.push((crate::packed::npz(method), Format::Npz));
    }
    files
}

fn written_frame() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frame.vtp");
    let data = PointData::vectors("v", vec![[1.0, 2.0, 3.0]; 2]);
    VtpWriter::new(&[[0.5; 3]; 2])
        .time(1.0)
        .data(data)
        .write(&path)
        .unwrap();
    fs::read(&path).unwrap()
}

/// Bytes that may be cut off the end of a file unnoticed: blanks, and in
/// text the last digits or what a format has no count for.
fn is_open_ended(file: &[u8], format: Format) -> bool {
    let is_text = |mark: &[u8]| file.windows(mark.len()).any(|window| window == mark);
    match format {
        Format::Csv
        | Format::Cloud
        | Format::Xyz
        | Format::LammpsDump
        | Format::LammpsData
        | Format::Gro
        | Format::Pdb
        | Format::Cif
        | Format::Poscar => true,
        Format::Ply => is_text(b"format ascii"),
        Format::Pcd => is_text(b"DATA ascii"),
        _ => false,
    }
}

#[test]
fn files_cut_anywhere_are_refused_or_read_as_far_as_the_format_can_tell() {
    for (file, format) in good_files() {
        let whole = good(&file, format);
        for length in 0..file.len() {
            let Ok(cloud) = parse_points(&file[..length], format) else {
                continue;
            };
            let rest_is_blank = file[length..].iter().all(u8::is_ascii_whitespace);
            if rest_is_blank {
                assert_eq!(cloud, whole);
            } else if format == Format::LegacyVtk {
                // Its sections are optional, so a file may end before any of them.
                assert_eq!(cloud.positions.len(), whole.positions.len());
                assert!(cloud.data.len() <= whole.data.len());
            } else {
                assert!(is_open_ended(&file, format), "{format} cut to {length}");
                assert!(cloud.len() <= whole.len());
            }
        }
    }
}

#[test]
fn an_empty_file_is_refused_as_such() {
    for format in FORMATS {
        let error = parse_points(b"", format).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Empty);
        assert_eq!(
            error.to_string(),
            format!("{format} data: the file is empty")
        );
    }
}

#[test]
fn a_missing_file_is_refused_by_name() {
    let error = read_points("no/such/cloud.npy").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotFound));
    assert!(
        error
            .to_string()
            .starts_with("no/such/cloud.npy: cannot read: "),
        "{error}"
    );
    assert_eq!(error.path(), Some("no/such/cloud.npy".as_ref()));
}

#[test]
fn a_fault_in_a_file_names_file_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud.csv");
    fs::write(&path, "x,y,z\n1,2,three\n").unwrap();
    let error = read_points(&path).unwrap_err();
    let expected = format!(
        "{}, line 2, column 3: 'three' is not a number",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}

fn is_one_line(bytes: &[u8], format: Format) -> Result<(), TestCaseError> {
    if let Err(error) = parse_points(bytes, format) {
        let text = error.to_string();
        prop_assert!(!text.contains(char::is_control), "{text:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        text in "\\PC{0,80}",
        beginning in 0..6_usize,
    ) {
        let beginning: &[u8] =
            [&b""[..], b"ply\nformat ascii 1.0\n", b"\x93NUMPY\x01\x00", b"<VTKFile", b"FIELDS x y\n",
                b"ITEM: ATOMS x y z\n"][beginning];
        for format in FORMATS {
            is_one_line(&[beginning, &bytes].concat(), format)?;
            is_one_line(&[beginning, text.as_bytes()].concat(), format)?;
        }
    }

    #[test]
    fn damaged_files_never_panic(
        file in any::<proptest::sample::Index>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<proptest::sample::Index>(),
        insert in "[0-9 \n\"<>=:-]{0,12}",
    ) {
        thread_local! {
            static FILES: Vec<(Vec<u8>, Format)> = good_files();
        }
        let (mut bytes, format) = FILES.with(|files| file.get(files).clone());
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        is_one_line(&bytes, format)?;
        let cut = cut.index(bytes.len());
        bytes.splice(cut..cut, insert.bytes());
        is_one_line(&bytes, format)?;
        // A file under a wrong name is not a reason to panic either.
        for format in FORMATS {
            is_one_line(&bytes, format)?;
        }
    }
}
