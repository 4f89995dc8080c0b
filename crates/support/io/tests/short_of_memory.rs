//! Files that memory is too short for are errors that name the bytes, in every format. A process of
//! its own, whose allocator refuses what the test tells it to.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use nearfield_io::{
    ErrorKind, Format, PointData, VtpWriter, parse_points, parse_table, read_points,
};
use nearfield_testkit::memory::Refusing;
use std::{
    io::Write,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// One test at a time: what others take would be refused too.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const POINTS: usize = 30_000;

/// Requests from here on grow with the number of points; those of a decompressor do not.
const GROWS: usize = 4 * POINTS;

/// Part of the message of an error for lack of memory.
const SAID: &str = "bytes are needed for";

/// Parses with one more request granted every time, until it succeeds.
fn squeezed(name: &str, bytes: &[u8], format: Format, times: usize) {
    let (cloud, refused) = MEMORY.squeeze(GROWS, SAID, || {
        parse_points(bytes, format)
            .inspect_err(|error| assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}"))
    });
    assert_eq!(cloud.len(), POINTS, "{name}");
    assert!(refused >= times, "{name} was refused {refused} times");
}

fn lines(line: &str) -> String {
    line.repeat(POINTS)
}

/// The bytes of a frame with the quantities of a fluid.
fn frame(folder: &std::path::Path) -> Vec<u8> {
    let positions: Vec<[f32; 3]> = (0..POINTS).map(|k| [k as f32; 3]).collect();
    let ids: Vec<u64> = (0..POINTS as u64).collect();
    let doubles = vec![[0.1, 0.2, 0.3]; POINTS];
    let path = folder.join("frame.vtp");
    VtpWriter::new(&positions)
        .data(PointData::scalars("id", &ids))
        .data(PointData::vectors("velocity", &doubles))
        .write(&path)
        .unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn text_files_that_memory_is_too_short_for_are_errors() {
    let _turn = turn();
    squeezed("csv", lines("0.1,2,3\n").as_bytes(), Format::Csv, 4);
    let atoms = format!(
        "{POINTS}\nProperties=species:S:1:pos:R:3:q:R:1:n:I:1\n{}",
        lines("H 0.1 2 3 0.5 7\n")
    );
    squeezed("xyz", atoms.as_bytes(), Format::Xyz, 5);
    let many: String = (0..POINTS).map(|k| format!("X{k} 1 2 3\n")).collect();
    let many = format!("{POINTS}\n\n{many}");
    squeezed("kinds", many.as_bytes(), Format::Xyz, 5);
    let vertices = format!(
        "ply\nformat ascii 1.0\nelement vertex {POINTS}\nproperty double x\nproperty double y\n\
         property double z\nend_header\n{}",
        lines("0.1 2 3\n")
    );
    squeezed("ply", vertices.as_bytes(), Format::Ply, 4);
    let legacy = format!(
        "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\nPOINTS {POINTS} double\n{}\
         POINT_DATA {POINTS}\nSCALARS q float\nLOOKUP_TABLE default\n{}",
        lines("0.1 2 3\n"),
        lines("1\n")
    );
    squeezed("vtk", legacy.as_bytes(), Format::LegacyVtk, 4);
    let xml = format!(
        "<VTKFile type=\"PolyData\"><PolyData><Piece NumberOfPoints=\"{POINTS}\"><Points>\
         <DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"ascii\">{}</DataArray>\
         </Points></Piece></PolyData></VTKFile>",
        lines("0.1 2 3 ")
    );
    squeezed("ascii vtp", xml.as_bytes(), Format::XmlVtk, 3);

    for head in ["", "a,b,c\n"] {
        let table = head.to_owned() + &lines("1,2,3\n");
        let (table, refused) = MEMORY.squeeze(GROWS, SAID, || parse_table(table.as_bytes()));
        assert_eq!(table.columns().len(), 3);
        assert!(refused > 2, "a table was refused {refused} times");
    }
    let wide = "1,".repeat(20_000);
    let (_, refused) = MEMORY.squeeze(GROWS, SAID, || parse_table(wide.as_bytes()));
    assert!(refused > 2, "a wide table was refused {refused} times");
}

#[test]
fn binary_files_that_memory_is_too_short_for_are_errors() {
    let _turn = turn();
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({POINTS}, 3), }}\n");
    while (header.len() + 10) % 64 != 0 {
        header.insert(header.len() - 1, ' ');
    }
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    let doubles: Vec<u8> = [0.1f64, 2.0, 3.0].map(f64::to_le_bytes).concat();
    array.extend(doubles.repeat(POINTS));
    squeezed("npy", &array, Format::Npy, 2);

    let mut vertices = format!(
        "ply\nformat binary_little_endian 1.0\nelement vertex {POINTS}\nproperty double x\n\
         property double y\nproperty double z\nend_header\n"
    )
    .into_bytes();
    vertices.extend(doubles.repeat(POINTS));
    squeezed("ply", &vertices, Format::Ply, 4);

    let folder = tempfile::tempdir().unwrap();
    squeezed("vtp", &frame(folder.path()), Format::XmlVtk, 5);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![0; 12 * POINTS]).unwrap();
    let block = encoder.finish().unwrap();
    let words = [1, 12 * POINTS as u64, 0, block.len() as u64];
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (compressor, parts) in [
        (" compressor=\"vtkZLibDataCompressor\"", vec![words, block]),
        (
            "",
            vec![
                [
                    &(12 * POINTS as u64).to_le_bytes()[..],
                    &vec![0; 12 * POINTS],
                ]
                .concat(),
            ],
        ),
    ] {
        let text: Vec<String> = parts.iter().map(|part| STANDARD.encode(part)).collect();
        let file = format!(
            "<VTKFile type=\"PolyData\" byte_order=\"LittleEndian\" header_type=\"UInt64\"\
             {compressor}><PolyData><Piece NumberOfPoints=\"{POINTS}\"><Points><DataArray \
             type=\"Float32\" NumberOfComponents=\"3\" format=\"binary\">\n{}\n</DataArray></Points>\
             </Piece></PolyData></VTKFile>",
            text.join("\n")
        );
        squeezed("base64", file.as_bytes(), Format::XmlVtk, 2);
    }
}

#[test]
fn a_file_that_does_not_fit_is_named_with_its_bytes() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.csv");
    let text = lines("1,2,3\n");
    std::fs::write(&path, &text).unwrap();
    let error = MEMORY.while_short(GROWS, 0, || read_points(&path).unwrap_err());
    let said = error.to_string();
    let bytes = format!("{} bytes are needed for", text.len());
    assert!(
        said.contains("points.csv") && said.contains(&bytes),
        "{said}"
    );
}
