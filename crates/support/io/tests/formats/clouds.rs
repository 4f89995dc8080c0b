//! Point clouds: text without a format of its own, and files of the Point Cloud Library.

use nearfield_io::{Dimensions, ErrorKind, Format};

use crate::{good, refused};

const POINTS: [[f32; 3]; 2] = [[0.5, 1.5, 2.5], [-1.0, 3.0, 1e3]];

pub(crate) const PCD: &str = "\
# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS x rgb y z normal
SIZE 4 4 4 8 4
TYPE F U F F F
COUNT 1 1 1 1 3
WIDTH 2
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 2
DATA ascii
0.5 255 1.5 2.5 0 0 1
-1 4294967295 3 1e3 nan nan nan
";

/// The same points, binary or compressed.
pub(crate) fn pcd(kind: &str) -> Vec<u8> {
    let mut bytes = PCD.as_bytes()[..PCD.find("ascii").unwrap()].to_vec();
    bytes.extend(kind.as_bytes());
    bytes.push(b'\n');
    let f4 = |value: f32| value.to_le_bytes().to_vec();
    let normal = f4(f32::NAN).repeat(3);
    let z = |value: f64| value.to_le_bytes().to_vec();
    let [[ax, ay, az], [bx, by, bz]] = POINTS;
    let a = [f4(ax), vec![9; 4], f4(ay), z(az.into()), normal.clone()];
    let b = [f4(bx), vec![8; 4], f4(by), z(bz.into()), normal];
    if kind == "binary" {
        bytes.extend([a.concat(), b.concat()].concat());
        return bytes;
    }
    let fields: Vec<u8> = a
        .iter()
        .zip(&b)
        .flat_map(|(a, b)| [&a[..], b].concat())
        .collect();
    // Runs of 32 bytes as they are; the normals, all alike, as a copy of the 12 bytes before.
    let mut packed = Vec::new();
    let (head, tail) = fields.split_at(fields.len() - 12);
    for run in head.chunks(32) {
        packed.push(run.len() as u8 - 1);
        packed.extend(run);
    }
    assert_eq!(tail, &head[head.len() - 12..]);
    packed.extend([7 << 5, 12 - 2 - 7, 11]);
    for length in [packed.len(), fields.len()] {
        bytes.extend((length as u32).to_le_bytes());
    }
    bytes.extend(packed);
    bytes
}

#[test]
fn rows_of_a_cloud_begin_with_their_coordinates() {
    for text in [
        "0.5 1.5 2.5\n-1 3 1e3\n",
        "0.5 1.5 2.5 7 1 2 3\n-1 3 1e3 7 1 2 3\n",
        "2\n0.5 1.5 2.5 0 117 130 149\n-1 3 1e3 0 117 130 149\n\n",
        "1\n0.5 1.5 2.5 7\n1\n-1 3 1e3 8\n",
        "//X Y Z Intensity\n0.5 1.5 2.5 7\n-1 3 1e3 8\n",
        "# made by hand\n\n0.5\t1.5\t2.5\n// a note\n-1\t3\t1e3\n",
        "id z y x\n1 2.5 1.5 0.5\n2 1e3 3 -1\n",
        "0.5;1.5;2.5;7\n-1;3;1e3;8\n",
    ] {
        assert_eq!(good(text, Format::Cloud).positions, POINTS, "{text:?}");
    }
    let cloud = good("1 2\n3 4\n", Format::Cloud);
    assert_eq!(cloud.dimensions, Dimensions::Two);
    let notes = good("1 2 3 4 5\n", Format::Cloud).notes;
    assert_eq!(notes, ["columns 4 to 5 have no names and are not read"]);
    assert_eq!(good("x y z t\n1 2 3 4\n", Format::Cloud).unread, ["t"]);
}

#[test]
fn counts_of_a_cloud_are_kept() {
    for (text, words) in [
        (
            "3\n1 2 3\n4 5 6\n",
            "line 1: 3 points are announced, but 2 rows follow",
        ),
        (
            "1\n1 2 3\n4 5 6\n",
            "line 3: more rows than the 1 that line 1 announces",
        ),
        (
            "2\n1 2 3\n1\n4 5 6\n",
            "line 1: 2 points are announced, but 1 rows",
        ),
        ("1 2 3\n7\n", "line 2: 1 columns where 3 are expected"),
        ("1 2 3\n4 5\n", "2 columns where 3"),
        (
            "version: 1\nn_points: 68\n",
            "neither numbers nor column names",
        ),
        ("18446744073709551615\n1 2 3\n", "are announced, but 1 rows"),
    ] {
        let error = refused(text, Format::Cloud).to_string();
        assert!(error.contains(words), "{error}");
    }
    for text in ["# nothing\n", "0\n", "\n\n"] {
        assert_eq!(
            refused(text, Format::Cloud).kind(),
            ErrorKind::Empty,
            "{text:?}"
        );
    }
}

#[test]
fn an_xyz_without_a_count_is_a_cloud() {
    for text in [
        "0.5 1.5 2.5\n-1 3 1e3\n",
        "0.5,1.5,2.5,7\n-1,3,1e3,8\n",
        "//X Y Z Intensity\n0.5 1.5 2.5 7\n-1 3 1e3 8\n",
        "x y z\n0.5 1.5 2.5\n-1 3 1e3\n",
    ] {
        assert_eq!(good(text, Format::Xyz).positions, POINTS, "{text:?}");
    }
}

#[test]
fn every_encoding_of_pcd_holds_the_same_points() {
    for bytes in [
        PCD.as_bytes().to_vec(),
        pcd("binary"),
        pcd("binary_compressed"),
    ] {
        let cloud = good(bytes, Format::Pcd);
        assert_eq!(cloud.positions, POINTS);
        assert_eq!(cloud.unread, ["rgb", "normal"]);
    }
    let flat = "FIELDS x y\nSIZE 2 2\nTYPE I U\nWIDTH 2\nDATA ascii\n-1 2\n3 4\n";
    let cloud = good(flat, Format::Pcd);
    assert_eq!(
        (cloud.dimensions, cloud.positions[0]),
        (Dimensions::Two, [-1.0, 2.0, 0.0])
    );
}

#[test]
fn headers_of_pcd_that_contradict_themselves_are_refused() {
    for (from, to, words) in [
        ("FIELDS x rgb y z", "FIELDS x rgb w z", "no x and y"),
        ("SIZE 4 4", "SIZE 4", "SIZE has 4 words for 5 FIELDS"),
        (
            "SIZE 4 4 4 8",
            "SIZE 3 4 4 8",
            "'x' has TYPE 'F' and SIZE '3'",
        ),
        ("COUNT 1 1", "COUNT 1 -1", "'-1' is not the COUNT"),
        (
            "POINTS 2",
            "POINTS 3",
            "POINTS is 3, but WIDTH times HEIGHT is 2",
        ),
        (
            "WIDTH 2",
            "WIDTH two",
            "line 7: 'two' is not a number of points",
        ),
        ("HEIGHT 1", "WIDTH 2", "'WIDTH' is given twice"),
        ("VERSION 0.7", "VERTICES 2", "'VERTICES' is not a key"),
        ("DATA ascii", "DATA zip", "'zip': ascii, binary and"),
        (
            "1.5 2.5",
            "1.5",
            "line 12: 6 columns where the FIELDS have 7",
        ),
        ("0.5 255", "0.5.1 255", "line 12, column 1: '0.5.1'"),
        (
            "nan\n",
            "nan\n1 2 3\n",
            "line 14: '1 2 3' follows the last point",
        ),
    ] {
        let error = refused(PCD.replacen(from, to, 1), Format::Pcd).to_string();
        assert!(error.contains(words), "{error}");
    }
    let huge = "FIELDS x y\nSIZE 4 4\nTYPE F F\nCOUNT 1 1\nPOINTS 18446744073709551615\n";
    for kind in ["ascii", "binary", "binary_compressed"] {
        let error = refused(format!("{huge}DATA {kind}\n1 2 3 4 5 6 7 8"), Format::Pcd);
        assert!(
            [ErrorKind::Truncated, ErrorKind::Malformed].contains(&error.kind()),
            "{error}"
        );
    }
    // No point, and fields wider than any number says.
    let none = "FIELDS a b x y\nSIZE 8 8 4 4\nTYPE F F F F\nPOINTS 0\n\
                COUNT 18446744073709551615 18446744073709551615 1 1\n";
    for kind in ["ascii", "binary"] {
        assert!(good(format!("{none}DATA {kind}\n"), Format::Pcd).is_empty());
    }
}

#[test]
fn scans_of_laspy_have_their_points_intensities_and_classes() {
    for name in ["scans/laspy_1_2.las", "scans/laspy_1_4.las"] {
        let cloud = nearfield_io::read_points(crate::data(name)).unwrap();
        let exact = cloud.positions_f64.as_ref().unwrap();
        let expected = [
            [400_000.125, 5_000_000.25, 0.0],
            [400_001.5, 5_000_002.0, 1.5],
            [399_999.0, 5_000_001.0, -20.0],
        ];
        for (found, expected) in exact.as_flattened().iter().zip(expected.as_flattened()) {
            assert!(
                (found - expected).abs() < 1e-9,
                "{name}: {found}, {expected}"
            );
        }
        let quantity = |name: &str| cloud.quantity(name).unwrap().to_doubles();
        assert_eq!(quantity("intensity"), [7.0, 65535.0, 0.0]);
        assert_eq!(quantity("classification"), [2.0, 31.0, 6.0]);
        let unread = cloud.unread.join(", ");
        assert!(
            unread.contains("time") && unread.ends_with("extra bytes"),
            "{unread}"
        );
    }
}

#[test]
fn scans_that_cannot_be_read_say_why() {
    let whole = std::fs::read(crate::data("scans/laspy_1_2.las")).unwrap();
    for (at, bytes, words) in [
        (0, &b"L"[..], None),
        (0, b"M", Some("MASF")),
        (25, &[5], Some("version 1.5 is not read")),
        (
            104,
            &[0x83],
            Some("compressed (LAZ): unpack them by laszip"),
        ),
        (104, &[11], Some("point format 11 is not known")),
        (
            105,
            &[33, 0],
            Some("records of 33 bytes are too short for point format 3"),
        ),
        (
            107,
            &[0xff; 4],
            Some("4294967295 points of 38 bytes are announced, but 114 bytes"),
        ),
        (
            96,
            &[0xff; 4],
            Some("3 points of 38 bytes are announced, but 0 bytes"),
        ),
    ] {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        match words {
            None => assert_eq!(good(&file, Format::Las).len(), 3),
            Some(words) => {
                let error = refused(&file, Format::Las).to_string();
                assert!(error.contains(words), "{error}");
            }
        }
    }
}
