//! NumPy arrays, whose bytes are put together here as NumPy's format describes them.

use nearfield_io::{Dimensions, ErrorKind, Format, Place};

use crate::{good, refused};

/// A file with this header dictionary.
fn npy(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = dictionary.len() + 1;
    match version {
        1 => file.extend((length as u16).to_le_bytes()),
        _ => file.extend((length as u32).to_le_bytes()),
    }
    file.extend(dictionary.as_bytes());
    file.push(b'\n');
    file.extend(data);
    file
}

fn array(element: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dictionary =
        format!("{{'descr': '{element}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    npy(1, &dictionary, data)
}

const POINTS: [[f32; 3]; 2] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];

macro_rules! every_type {
    ($($name:literal $type:ty),*) => {
        #[test]
        fn every_real_type_is_read_in_both_byte_orders() {
            $(
                let numbers = [1 as $type, 2 as $type, 3 as $type, 4 as $type, 5 as $type, 6 as $type];
                let little: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                let big: Vec<u8> = numbers.iter().flat_map(|x| x.to_be_bytes()).collect();
                for (order, data) in [("<", little), (">", big)] {
                    let file = array(&format!("{order}{}", $name), "False", "(2, 3)", &data);
                    let cloud = good(file, Format::Npy);
                    assert_eq!(cloud.positions, POINTS, "{order}{}", $name);
                    assert_eq!(cloud.positions_f64, None);
                    assert_eq!(cloud.dimensions, Dimensions::Three);
                }
            )*
        }
    };
}
every_type!("i1" i8, "u1" u8, "i2" i16, "u2" u16, "i4" i32, "u4" u32, "i8" i64, "u8" u64,
            "f4" f32, "f8" f64);

#[test]
fn half_precision_is_widened() {
    // 1, -2, 65504 (the largest), the smallest subnormal, infinity, NaN.
    let halves: [u16; 6] = [0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x7e00];
    let data: Vec<u8> = halves.iter().flat_map(|x| x.to_be_bytes()).collect();
    let cloud = good(array(">f2", "False", "(2, 3)", &data), Format::Npy);
    assert_eq!(cloud.positions[0], [1.0, -2.0, 65504.0]);
    assert_eq!(cloud.positions[1][..2], [2.0_f32.powi(-24), f32::INFINITY]);
    assert!(cloud.positions[1][2].is_nan());
}

#[test]
fn fortran_order_is_transposed() {
    let data: Vec<u8> = [1_u8, 4, 2, 5, 3, 6].to_vec();
    assert_eq!(
        good(array("|u1", "True", "(2, 3)", &data), Format::Npy).positions,
        POINTS
    );
    assert_eq!(
        good(array("|u1", "True", "(3, 2)", &data), Format::Npy).positions,
        [[1.0, 5.0, 0.0], [4.0, 3.0, 0.0], [2.0, 6.0, 0.0]]
    );
}

#[test]
fn two_columns_are_points_of_a_plane() {
    let cloud = good(
        array("|i1", "False", "(3, 2)", &[1, 2, 3, 4, 5, 255]),
        Format::Npy,
    );
    assert_eq!(cloud.dimensions, Dimensions::Two);
    assert_eq!(
        cloud.positions,
        [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [5.0, -1.0, 0.0]]
    );
}

#[test]
fn double_precision_is_kept_beside_the_rounded_values() {
    let data: Vec<u8> = [0.1_f64, 2.0, 1e300]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let cloud = good(array("<f8", "False", "(1, 3)", &data), Format::Npy);
    assert_eq!(cloud.positions, [[0.1_f32, 2.0, f32::INFINITY]]);
    assert_eq!(cloud.positions_f64, Some(vec![[0.1, 2.0, 1e300]]));
}

#[test]
fn all_versions_and_spellings_of_the_header_are_read() {
    for version in 1..=3 {
        let dictionary = r#"{"shape":(2,3),"fortran_order":False,"descr":"|u1"}"#;
        let file = npy(version, dictionary, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(good(file, Format::Npy).positions, POINTS);
    }
    let error = refused(npy(4, "{}", &[]), Format::Npy);
    assert_eq!(
        error.to_string(),
        "NPY data, byte 6: version 4.0 is not read; 1 to 3 are"
    );
}

#[test]
fn an_array_of_no_points_is_read() {
    assert!(good(array("<f4", "False", "(0, 3)", &[]), Format::Npy).is_empty());
}

#[test]
fn other_shapes_are_refused_by_name() {
    for shape in [
        "(6,)",
        "()",
        "(1, 2, 3)",
        "(2, 4)",
        "(3, 2, 1)",
        "(-1, 3)",
        "7",
        "(2, 3",
    ] {
        let error = refused(array("|u1", "False", shape, &[0; 6]), Format::Npy);
        let expected =
            format!("NPY data: the array's shape is '{shape}; (N, 3) or (N, 2) is needed");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with(&expected[..30]), "{error}");
    }
    let error = refused(array("<f4", "False", "(4, 4)", &[0; 64]), Format::Npy);
    assert_eq!(
        error.to_string(),
        "NPY data: the array's shape is '(4, 4)'; (N, 3) or (N, 2) is needed"
    );
}

#[test]
fn other_types_are_refused_by_name() {
    for element in ["|b1", "<c8", "<f16", "|O", "<U3", "<M8[ns]", "", "é"] {
        let error = refused(array(element, "False", "(2, 3)", &[0; 6]), Format::Npy);
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error.to_string().contains(&format!("'{element}'")),
            "{error}"
        );
    }
    let dictionary = "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3)}";
    let error = refused(npy(1, dictionary, &[0; 24]), Format::Npy);
    assert!(error.to_string().contains("[('x'"), "{error}");
}

#[test]
fn data_of_another_length_are_refused_with_both_lengths() {
    let error = refused(array("<f4", "False", "(2, 3)", &[0; 23]), Format::Npy);
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(
        error.to_string().contains("shape (2, 3) needs 24 bytes"),
        "{error}"
    );
    assert!(error.to_string().ends_with("23 follow"), "{error}");
    let error = refused(array("<f4", "False", "(2, 3)", &[0; 25]), Format::Npy);
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[test]
fn absurd_shapes_are_refused_at_once() {
    for points in [
        "1000000000000",
        "18446744073709551615",
        "99999999999999999999999",
    ] {
        refused(
            array("<f8", "False", &format!("({points}, 3)"), &[0; 48]),
            Format::Npy,
        );
    }
    let mut header = b"\x93NUMPY\x02\x00".to_vec();
    header.extend(u32::MAX.to_le_bytes());
    let error = refused(header, Format::Npy);
    assert_eq!(
        (error.kind(), error.place()),
        (ErrorKind::Truncated, Place::Byte(6))
    );
}
