//! Readers take at most four times the memory of what they hand over, and 64 MB: a small file
//! cannot take a machine's memory, whatever it announces.

use flate2::{Compression, write::ZlibEncoder};
use nearfield_io::{Column, Format, PointCloud, Values, parse_points, parse_table};
use nearfield_testkit::memory::Counting;
use std::{
    io::Write,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[global_allocator]
static MEMORY: Counting = Counting::new();
/// One test at a time: what others take would be counted too.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handed_over(cloud: &PointCloud) -> usize {
    let values = |values: &Values<'_>| match values {
        Values::F64(_) | Values::I64(_) | Values::U64(_) => 8 * values.len(),
        _ => 4 * values.len(),
    };
    let doubles = cloud.positions_f64.as_ref().map_or(0, |all| 24 * all.len());
    let species = cloud.species.as_ref();
    12 * cloud.len()
        + doubles
        + species.map_or(0, |species| 4 * species.of_point.len())
        + cloud
            .data
            .iter()
            .map(|data| values(data.values()))
            .sum::<usize>()
}

/// Reads a file and checks the bound; returns what was handed over, or the message.
fn check(name: &str, bytes: &[u8], format: Format) -> Result<usize, String> {
    let (found, peak) = MEMORY.peak(|| parse_points(bytes, format));
    let given = found.as_ref().map_or(0, handed_over);
    let bound = 4 * given + (64 << 20);
    assert!(
        peak <= bound,
        "{name}: {peak} bytes at most for {given} handed over by a file of {}",
        bytes.len()
    );
    found.map(|_| given).map_err(|error| error.to_string())
}

/// A `.vtp` of these arrays (type, name, components, offset, in positions or data), with this
/// behind it.
struct Vtp {
    points: usize,
    compressor: &'static str,
    positions: (&'static str, usize),
    data: Vec<(&'static str, usize, usize)>,
    appended: Vec<u8>,
}

impl Vtp {
    fn bytes(&self) -> Vec<u8> {
        let tag = |kind: &str, name: &str, components: usize, offset: usize| {
            format!(
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" \
                 format=\"appended\" offset=\"{offset}\"/>"
            )
        };
        let data: String = (self.data.iter().enumerate())
            .map(|(n, (kind, components, offset))| {
                tag(kind, &format!("a{n}"), *components, *offset)
            })
            .collect();
        let (kind, offset) = self.positions;
        let mut bytes = format!(
            "<VTKFile type=\"PolyData\" byte_order=\"LittleEndian\" header_type=\"UInt64\"{}>\
             <PolyData><Piece NumberOfPoints=\"{}\"><PointData>{data}</PointData><Points>{}</Points>\
             </Piece></PolyData><AppendedData encoding=\"raw\">_",
            self.compressor,
            self.points,
            tag(kind, "Points", 3, offset),
        )
        .into_bytes();
        bytes.extend(&self.appended);
        bytes.extend(b"</AppendedData></VTKFile>");
        bytes
    }
}

const ZLIB: &str = " compressor=\"vtkZLibDataCompressor\"";

/// Zeros in one block, packed as well as that goes.
fn packed_zeros(length: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 16];
    for from in (0..length).step_by(zeros.len()) {
        encoder
            .write_all(&zeros[..zeros.len().min(length - from)])
            .unwrap();
    }
    let block = encoder.finish().unwrap();
    let head = [1, length as u64, length as u64, block.len() as u64];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(block);
    bytes
}

#[test]
fn small_files_that_unpack_to_much_stay_within_the_bound() {
    let _turn = turn();
    for (kind, size) in [("Float64", 8), ("Float32", 4), ("Int8", 1), ("Int16", 2)] {
        let points = (100 << 20) / (3 * size);
        let file = Vtp {
            points,
            compressor: ZLIB,
            positions: (kind, 0),
            data: Vec::new(),
            appended: packed_zeros(3 * size * points),
        };
        let bytes = file.bytes();
        assert!(bytes.len() < 150_000);
        assert_eq!(check(kind, &bytes, Format::XmlVtk), Ok(12 * points));
    }
}

#[test]
fn small_files_that_are_damaged_far_behind_take_no_memory() {
    let _turn = turn();
    let (points, size) = (1 << 20, 8);
    let good = packed_zeros(3 * size * points);
    for damage in ["cut", "wrong", "long"] {
        let mut appended = good.clone();
        let second = appended.len();
        let mut bad = good.clone();
        match damage {
            "cut" => bad.truncate(good.len() / 2),
            "wrong" => bad[200] ^= 0x55,
            _ => bad[24..32].fill(0x7f),
        }
        appended.extend(bad);
        let file = Vtp {
            points,
            compressor: ZLIB,
            positions: ("Float64", 0),
            data: vec![("Float64", 3, 0), ("Float64", 3, second)],
            appended,
        };
        check(damage, &file.bytes(), Format::XmlVtk).unwrap_err();
    }
}

#[test]
fn arrays_that_share_their_data_hand_over_no_more_than_a_file_holds() {
    let _turn = turn();
    let points = 10_000;
    let raw = 12 * points;
    let mut appended = (raw as u64).to_le_bytes().to_vec();
    appended.resize(8 + raw, 0);
    let shared = |count| Vtp {
        points,
        compressor: "",
        positions: ("Float32", 0),
        data: vec![("Float32", 3, 0); count],
        appended: appended.clone(),
    };
    // As the file of 117 kB that took 730 MB.
    let error = check("many", &shared(5_000).bytes(), Format::XmlVtk).unwrap_err();
    assert!(error.contains("share their data"), "{error}");
    // Two equal arrays may be one in the file.
    assert_eq!(
        check("two", &shared(1).bytes(), Format::XmlVtk),
        Ok(24 * points)
    );
    let packed = Vtp {
        points: 1 << 20,
        compressor: ZLIB,
        positions: ("Float32", 0),
        data: vec![("Float32", 3, 0); 5_000],
        appended: packed_zeros(12 << 20),
    };
    check("packed", &packed.bytes(), Format::XmlVtk).unwrap_err();
}

#[test]
fn announcements_are_not_believed() {
    let _turn = turn();
    let many = usize::MAX / 64;
    let far = |format, text: String| check(&text, text.as_bytes(), format).unwrap_err();
    for count in [many, 1 << 40, 1 << 30] {
        far(Format::Xyz, format!("{count}\n\n1 2 3\n"));
        far(Format::Cloud, format!("{count}\n1 2 3\n"));
        let columns = "id x y z vx vy vz";
        far(
            Format::LammpsDump,
            format!("ITEM: NUMBER OF ATOMS\n{count}\nITEM: ATOMS {columns}\n1 2 3 4 5 6 7\n"),
        );
        far(
            Format::LammpsData,
            format!("\n{count} atoms\nAtoms # full\n\n1 1 1 0 1 2 3\n"),
        );
        far(
            Format::Gro,
            format!("\n{count}\n    1SOL     OW    1   0.230   0.628   0.113\n"),
        );
        far(
            Format::Poscar,
            format!("\n1\n1 0 0\n0 1 0\n0 0 1\n{count}\nDirect\n0 0 0\n"),
        );
        for kind in ["ascii", "binary", "binary_compressed"] {
            let header = format!(
                "FIELDS x y z\nSIZE 8 8 8\nTYPE F F F\nPOINTS {count}\nDATA {kind}\n1 2 3 4 5 6\n"
            );
            far(Format::Pcd, header);
        }
        for kind in ["ascii", "binary_little_endian"] {
            let header = format!(
                "ply\nformat {kind} 1.0\nelement vertex {count}\nproperty double x\n\
                 property double y\nproperty double z\nend_header\n1 2 3\n"
            );
            far(Format::Ply, header);
        }
        for kind in ["ASCII", "BINARY"] {
            let header = format!(
                "# vtk DataFile Version 3.0\nt\n{kind}\nDATASET POLYDATA\nPOINTS {count} double\n"
            );
            far(Format::LegacyVtk, header + "1 2 3\n");
        }
        for format in ["ascii", "binary", "appended"] {
            let text = format!(
                "<VTKFile type=\"PolyData\"><PolyData><Piece NumberOfPoints=\"{count}\"><Points>\
                 <DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"{format}\">AAAA\
                 </DataArray></Points></Piece></PolyData></VTKFile>"
            );
            far(Format::XmlVtk, text);
        }
        let shape =
            format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({count}, 3), }}\n");
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend((shape.len() as u16).to_le_bytes());
        npy.extend(shape.as_bytes());
        npy.extend([0; 24]);
        check("npy", &npy, Format::Npy).unwrap_err();
    }
    let mut npy = b"\x93NUMPY\x02\x00".to_vec();
    npy.extend(u32::MAX.to_le_bytes());
    check("npy header", &npy, Format::Npy).unwrap_err();
}

/// Lines and headers that would take more memory than their bytes.
#[test]
fn long_lines_and_headers_stay_within_the_bound() {
    let _turn = turn();
    let long = 24 << 20;
    let commas = ",".repeat(long);
    check("commas", commas.as_bytes(), Format::Csv).unwrap_err();
    let late = format!("x,y,z\n{commas}\n");
    check("late commas", late.as_bytes(), Format::Csv).unwrap_err();
    let words = "1 ".repeat(long / 2);
    check("words", words.as_bytes(), Format::Csv).unwrap_err();
    for line in [
        format!("1\n\n{words}\n"),
        format!("1\nLattice=\"{words}\"\n1 2 3\n"),
        format!("1\npbc=\"{words}\"\n1 2 3\n"),
        format!("1\nProperties={}\n1 2 3\n", "a:R:1:".repeat(long / 6)),
    ] {
        let _ = check("xyz", line.as_bytes(), Format::Xyz);
    }
    for line in ["comment a\n", "property char a\n", "element a 0\n"] {
        let lines = line.repeat(long / line.len());
        let header = format!("ply\nformat ascii 1.0\nelement a 0\n{lines}");
        check("ply", header.as_bytes(), Format::Ply).unwrap_err();
    }
    for format in [
        Format::Cloud,
        Format::LammpsDump,
        Format::LammpsData,
        Format::Gro,
    ] {
        check("words", words.as_bytes(), format).unwrap_err();
    }
    let columns = format!("ITEM: NUMBER OF ATOMS\n1\nITEM: ATOMS x y z {words}\n1 2 3\n");
    check("dump", columns.as_bytes(), Format::LammpsDump).unwrap_err();
    let counts = format!("\n1\n1 0 0\n0 1 0\n0 0 1\n{words}\n");
    check("poscar", counts.as_bytes(), Format::Poscar).unwrap_err();
    let fields = format!("FIELDS {words}\nSIZE {words}\nTYPE {words}\nPOINTS 1\nDATA ascii\n");
    check("pcd", fields.as_bytes(), Format::Pcd).unwrap_err();
    let header = format!("ply\nformat ascii 1.0\n{words}\n");
    check("ply words", header.as_bytes(), Format::Ply).unwrap_err();
    for text in [&commas, &words, &format!("a,b\n{commas}")] {
        let (found, peak) = MEMORY.peak(|| parse_table(text.as_bytes()));
        assert!(found.is_err() && peak <= 64 << 20, "{peak}");
    }
}

/// Files in order stay within the bound too, in every format.
#[test]
fn large_files_in_order_stay_within_the_bound() {
    let _turn = turn();
    let points = 1_000_000;
    let lines: String = (0..points).map(|n| format!("0.1,{n},3\n")).collect();
    assert_eq!(check("csv", lines.as_bytes(), Format::Csv), Ok(36 * points));
    let short = "1,2,3\n".repeat(points);
    assert_eq!(
        check("short", short.as_bytes(), Format::Csv),
        Ok(12 * points)
    );
    let atoms = format!("{points}\n\n{}", "H 1 2 3\n".repeat(points));
    assert_eq!(check("xyz", atoms.as_bytes(), Format::Xyz), Ok(16 * points));
    let rows = "1 1 2 3 4 5 6\n".repeat(points);
    let dump = format!("ITEM: NUMBER OF ATOMS\n{points}\nITEM: ATOMS id x y z vx vy vz\n{rows}");
    assert_eq!(
        check("dump", dump.as_bytes(), Format::LammpsDump),
        Ok((12 + 8 + 24) * points)
    );
    let vertices = format!(
        "ply\nformat ascii 1.0\nelement vertex {points}\nproperty double x\nproperty double y\n\
         property double z\nend_header\n{}",
        "1 2 3\n".repeat(points)
    );
    assert_eq!(
        check("ply", vertices.as_bytes(), Format::Ply),
        Ok(12 * points)
    );
    for (kind, given) in [("double", 12), ("float", 12)] {
        let legacy = format!(
            "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\nPOINTS {points} {kind}\n{}",
            "1 2 3\n".repeat(points)
        );
        assert_eq!(
            check("vtk", legacy.as_bytes(), Format::LegacyVtk),
            Ok(given * points)
        );
    }
    let (table, peak) = MEMORY.peak(|| parse_table(short.as_bytes()).unwrap());
    let numbers = |column: &Column| matches!(column, Column::Numbers(n) if n.len() == points);
    assert!(table.columns().iter().all(numbers));
    assert!(peak <= 4 * 24 * points + (64 << 20), "{peak}");
}
