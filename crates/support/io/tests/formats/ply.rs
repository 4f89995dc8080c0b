//! Polygon files.

use nearfield_io::{Dimensions, ErrorKind, Format, Place};

use crate::{good, refused};

fn ply(format: &str, elements: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("ply\nformat {format} 1.0\ncomment made by hand\n{elements}end_header\n");
    [header.as_bytes(), body].concat()
}

const XYZ: &str = "property float x\nproperty float y\nproperty float z\n";

fn text(elements: &str, body: &str) -> Vec<u8> {
    ply("ascii", elements, body.as_bytes())
}

macro_rules! every_type {
    ($($short:literal $long:literal $type:ty),*) => {
        #[test]
        fn every_scalar_type_is_read_in_every_encoding() {
            $(for name in [$short, $long] {
                let properties: String = ["x", "y", "z"]
                    .map(|axis| format!("property {name} {axis}\n")).concat();
                let elements = format!("element vertex 2\n{properties}");
                let numbers = [1, 2, 3, 4, 5, 6].map(|x| x as $type);
                let little: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                let big: Vec<u8> = numbers.iter().flat_map(|x| x.to_be_bytes()).collect();
                for file in [
                    ply("binary_little_endian", &elements, &little),
                    ply("binary_big_endian", &elements, &big),
                    text(&elements, "1 2 3\n4 5 6\n"),
                ] {
                    let cloud = good(file, Format::Ply);
                    assert_eq!(cloud.positions, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "{name}");
                }
            })*
        }
    };
}
every_type!("char" "int8" i8, "uchar" "uint8" u8, "short" "int16" i16, "ushort" "uint16" u16,
            "int" "int32" i32, "uint" "uint32" u32, "float" "float32" f32, "double" "float64" f64);

#[test]
fn other_properties_and_elements_are_passed_over() {
    let elements = "\
        obj_info anything\nelement before 2\nproperty list uchar short items\n\
        element vertex 2\nproperty uchar red\nproperty float y\nproperty list ushort double more\n\
        property float x\nproperty float z\nelement face 1\nproperty list uchar int indices\n";
    let lists = "2 10 20\n0\n255 2 1 0.5 1 3\n\n0 5 0 4 6\n3 0 1 0\n";
    let mut binary = vec![2, 0, 10, 0, 20, 0]; // [10, 20] and []
    let vertex = |red: u8, y: f32, more: &[f64], x: f32, z: f32| {
        let mut bytes = vec![red];
        bytes.extend(y.to_be_bytes());
        bytes.extend((more.len() as u16).to_be_bytes());
        bytes.extend(more.iter().flat_map(|x| x.to_be_bytes()));
        bytes.extend([x, z].iter().flat_map(|x| x.to_be_bytes()));
        bytes
    };
    binary.extend(vertex(255, 2.0, &[0.5], 1.0, 3.0));
    binary.extend(vertex(0, 5.0, &[], 4.0, 6.0));
    binary.extend([3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    for file in [
        text(elements, lists),
        ply("binary_big_endian", elements, &binary),
    ] {
        let cloud = good(&file, Format::Ply);
        assert_eq!(cloud.positions, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let error = refused(&file[..file.len() - 2], Format::Ply);
        assert!(error.to_string().contains("face") || error.to_string().contains("indices"));
    }
}

#[test]
fn lines_may_end_as_in_windows_and_numbers_need_not_be_finite() {
    let file = "ply\r\nformat ascii 1.0\r\nelement vertex 2\r\nproperty float x\r\n\
        property double y\r\nproperty float z\r\nend_header\r\nnan -inf 1e3\r\n+1 .5 2.\r\n";
    let cloud = good(file, Format::Ply);
    assert!(cloud.positions[0][0].is_nan());
    assert_eq!(cloud.positions[0][1..], [f32::NEG_INFINITY, 1000.0]);
    assert_eq!(cloud.positions[1], [1.0, 0.5, 2.0]);
}

#[test]
fn without_z_the_points_lie_in_a_plane() {
    let cloud = good(
        text(
            "element vertex 1\nproperty int x\nproperty int Y\n",
            "1 2\n",
        ),
        Format::Ply,
    );
    assert_eq!(
        (cloud.dimensions, cloud.positions),
        (Dimensions::Two, vec![[1.0, 2.0, 0.0]])
    );
}

#[test]
fn wrong_headers_are_refused() {
    for (file, message) in [
        (
            "plx\n".into(),
            ", line 1: the file does not begin with the line 'ply'",
        ),
        (
            "ply\n".into(),
            ", line 2: the file ends before the line 'end_header'",
        ),
        (
            "ply\nend_header\n".into(),
            ", line 2: the header has no line 'format … 1.0'",
        ),
        (
            ply("binary_middle_endian", "", b""),
            ", line 2: the format 'binary_middle_endian' is not read; ascii, \
             binary_little_endian and binary_big_endian are",
        ),
        (text("", ""), ": the header announces no element 'vertex'"),
        (
            text("element vertex 1\n", ""),
            ": the element 'vertex' has no property 'x'",
        ),
        (
            text(
                "element vertex 1\nproperty float x\nproperty list int int y\n",
                "",
            ),
            ": the element 'vertex' has no property 'y'",
        ),
        (
            text("property float x\n", ""),
            ", line 4: 'property float x' is not understood",
        ),
        (
            text("element vertex -1\n", ""),
            ", line 4: 'element vertex -1' is not understood",
        ),
        (
            text("element a 1\nproperty list float int b\n", ""),
            ", line 5: 'property list float int b' is not understood",
        ),
    ] {
        let file: Vec<u8> = file;
        assert_eq!(
            refused(file, Format::Ply).to_string(),
            format!("PLY data{message}")
        );
    }
}

#[test]
fn wrong_lines_are_named() {
    let elements = format!("element vertex 2\n{XYZ}");
    for (body, message) in [
        (
            "1 2 3\n4 5 x\n",
            "line 10, column 3: 'x' is not a number of the type expected here",
        ),
        (
            "1 2 3\n4 5  \n7",
            "line 10: the line ends before the property 'z'",
        ),
        (
            "1 2 3 4\n5 6\n",
            "line 9, column 4: '4' is more than the properties announced",
        ),
        (
            "1 2 345678\n",
            "line 10: the file ends after 1 of 2 elements 'vertex'",
        ),
    ] {
        let error = refused(text(&elements, body), Format::Ply);
        assert_eq!(error.to_string(), format!("PLY data, {message}"));
    }
}

#[test]
fn absurd_counts_are_refused_at_once() {
    for count in ["1000000000000", "18446744073709551615"] {
        let elements = format!("element vertex {count}\n{XYZ}");
        for format in ["ascii", "binary_little_endian"] {
            let error = refused(ply(format, &elements, b"1 2 3 4 5 6 7 8"), Format::Ply);
            assert_eq!(error.kind(), ErrorKind::Truncated);
        }
        let nothing = format!("element empty {count}\nelement vertex 1\n{XYZ}");
        assert_eq!(good(text(&nothing, "1 2 3\n"), Format::Ply).len(), 1);
        assert_eq!(
            good(ply("binary_big_endian", &nothing, &[0; 12]), Format::Ply).len(),
            1
        );
    }
    let list = format!("element a 1\nproperty list uint double b\nelement vertex 1\n{XYZ}");
    let error = refused(ply("binary_big_endian", &list, &[255; 20]), Format::Ply);
    assert!(matches!(error.place(), Place::Byte(_)), "{error}");
    let list = list.replace("uint", "char");
    let error = refused(ply("binary_big_endian", &list, &[255; 20]), Format::Ply);
    assert!(
        error.to_string().ends_with("has a list of negative length"),
        "{error}"
    );
}
