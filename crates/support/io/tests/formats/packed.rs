//! Packed files: `.gz` and `.zst` of every format, and NumPy archives.

use flate2::{Compression, write::GzEncoder};
use nearfield_io::{ErrorKind, Format, read_points, read_table};
use std::{
    fs,
    io::{Cursor, Write},
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{data, good, refused};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The file of an array of this type, shape and data.
fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

fn archive(files: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in files {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// An archive of two points and their masses.
pub(crate) fn npz(method: CompressionMethod) -> Vec<u8> {
    let files = [
        ("mass.npy", npy("<f8", "(2,)", &doubles(&[1.0, 2.0]))),
        (
            "r.npy",
            npy("<f8", "(2, 3)", &doubles(&[0.1, 1.0, 2.0, 3.0, 4.0, 5.0])),
        ),
    ];
    archive(&files, method)
}

#[test]
fn every_format_may_be_packed() {
    let place = tempfile::tempdir().unwrap();
    let cloud = read_points(data("made/f8_vtk_binary_none_32_big.vtp")).unwrap();
    let bytes = fs::read(data("made/f8_vtk_binary_none_32_big.vtp")).unwrap();
    // Two members one behind the other are one file, and so are frames, with a skippable one.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let skippable = [&b"\x50\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
    for (name, packed) in [
        ("a.vtp.gz", gzip(&bytes)),
        ("b.VTP.GZ", [gzip(first), gzip(second)].concat()),
        ("c.vtp.zst", zstd(&bytes)),
        ("d.vtp.zst", [zstd(first), skippable, zstd(second)].concat()),
    ] {
        let path = place.path().join(name);
        fs::write(&path, packed).unwrap();
        assert_eq!(read_points(&path).unwrap(), cloud, "{name}");
    }
    let path = place.path().join("table.csv.gz");
    fs::write(&path, gzip(b"m,x\n1,2\n")).unwrap();
    assert_eq!(read_table(&path).unwrap().names(), ["m", "x"]);
}

#[test]
fn packed_files_that_are_damaged_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let text: String = (0..1000).map(|n| format!("{n},{},0.5\n", n * n)).collect();
    for (name, packed) in [
        ("a.csv.gz", gzip(text.as_bytes())),
        ("a.csv.zst", zstd(text.as_bytes())),
    ] {
        let path = place.path().join(name);
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = read_points(&path).unwrap_err();
            assert!(error.to_string().contains("cannot be unpacked"), "{error}");
            error.kind()
        };
        for cut in 1..packed.len() {
            let kind = refused(&packed[..cut]);
            assert!(
                [ErrorKind::Truncated, ErrorKind::Malformed].contains(&kind),
                "{cut}"
            );
        }
        let mut wrong = packed.clone();
        // The checksum of either is near the end.
        let end = wrong.len() - if name.ends_with("gz") { 6 } else { 2 };
        wrong[end] ^= 0x55;
        assert_eq!(refused(&wrong), ErrorKind::Malformed);
        assert_eq!(
            refused(text.as_bytes()),
            ErrorKind::Malformed,
            "not packed at all"
        );
    }
    let path = place.path().join("b.csv.gz");
    fs::write(&path, b"").unwrap();
    read_points(&path).unwrap_err();
}

#[test]
fn a_small_file_that_unpacks_to_much_is_refused_with_the_remedy() {
    let place = tempfile::tempdir().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let part = vec![b'0'; 1 << 20];
    (0..66).for_each(|_| encoder.write_all(&part).unwrap());
    // A frame with a window of 128 KiB, and blocks that repeat one byte so many times.
    let mut frames = b"\x28\xb5\x2f\xfd\x00\x38".to_vec();
    (0..66 * 8).for_each(|_| frames.extend([0x02, 0x00, 0x10, b'0']));
    frames.extend([1, 0, 0]);
    for (name, packed) in [
        ("a.csv.gz", encoder.finish().unwrap()),
        ("a.csv.zst", frames),
    ] {
        let path = place.path().join(name);
        fs::write(&path, packed).unwrap();
        let error = read_points(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let program = if name.ends_with("gz") {
            "gzip -d"
        } else {
            "zstd -d"
        };
        assert!(error.to_string().contains(program), "{error}");
    }
    let array = npy("<f8", "(2883584, 3)", &vec![0; 66 << 20]);
    let packed = archive(&[("points.npy", array)], CompressionMethod::Deflated);
    assert!(packed.len() < 1 << 20);
    let error = refused(packed, Format::Npz);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("unzip"), "{error}");
}

#[test]
fn the_points_of_an_archive_are_the_array_of_their_shape() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let cloud = good(npz(method), Format::Npz);
        assert_eq!(cloud.positions, [[0.1, 1.0, 2.0], [3.0, 4.0, 5.0]]);
        assert_eq!(cloud.positions_f64.unwrap()[0][0], 0.1);
        assert_eq!(cloud.unread, ["mass"]);
        let points = |from: f64| npy("<f8", "(1, 3)", &doubles(&[from, 0.0, 0.0]));
        let two = [("velocity.npy", points(1.0)), ("pos.npy", points(2.0))];
        let cloud = good(archive(&two, method), Format::Npz);
        assert_eq!(cloud.positions, [[2.0, 0.0, 0.0]]);
        assert_eq!(cloud.unread, ["velocity"]);
        let two = [("a.npy", points(1.0)), ("b.npy", points(2.0))];
        let error = refused(archive(&two, method), Format::Npz).to_string();
        assert!(
            error.contains("2 arrays may be the points: 'a', 'b'; call one"),
            "{error}"
        );
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lists.npz");
    nearfield_io::write_csr_npz(&path, &[0, 1], &[0]).unwrap();
    let error = read_points(&path).unwrap_err().to_string();
    assert!(
        error.contains("no array of N×3 or N×2") && error.contains("'offsets'"),
        "{error}"
    );
}

#[test]
fn archives_that_are_damaged_are_refused() {
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let good = npz(method);
        for cut in 1..good.len() {
            refused(&good[..cut], Format::Npz);
        }
        let data = good.windows(4).position(|four| four == b"r.np").unwrap() + 60;
        let mut wrong = good.clone();
        wrong[data] ^= 0x55;
        refused(&wrong, Format::Npz);
    }
    let error = refused(b"PK\x05\x06\0\0", Format::Npz);
    assert_eq!(error.kind(), ErrorKind::Truncated);
    let error = refused(b"x,y,z\n1,2,3\n", Format::Npz).to_string();
    assert!(error.contains("letters PK"), "{error}");
    let empty = archive(&[], CompressionMethod::Stored);
    assert!(
        refused(empty, Format::Npz)
            .to_string()
            .contains("none at all")
    );
}
