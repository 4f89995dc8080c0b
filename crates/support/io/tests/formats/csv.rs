//! Tables of numbers.

use nearfield_io::{Dimensions, ErrorKind, Format, Place};

use crate::{good, refused};

const POINTS: [[f32; 3]; 2] = [[1.0, 2.0, 3.0], [-4.0, 5e-3, 6.0]];

#[test]
fn every_separator_is_recognised() {
    for text in [
        "1,2,3\n-4,5e-3,6\n",
        "1;2;3\n-4;5e-3;6",
        "1\t2\t3\r\n-4\t5e-3\t6\r\n",
        "  1   2 3 \n-4\t5e-3 6\n",
        "1, 2 ,3\n\n-4, +.005,6.\n\n",
        "1,2,3,\n-4,5e-3,6,\n",
        "\u{feff}1,2,3\n-4,5e-3,6\n",
        "1.0D+00,2d0,.3D1\n-4.D0,5D-3,6\n",
    ] {
        assert_eq!(good(text, Format::Csv).positions, POINTS, "{text:?}");
    }
}

#[test]
fn a_header_names_the_columns() {
    for text in [
        "x,y,z\n1,2,3\n-4,5e-3,6\n",
        "id,Z,Y,X\n7,3,2,1\nnone,6,5e-3,-4\n",
        "# x y z\n1 2 3\n-4 5e-3 6\n",
        "# made by hand\n#\n x; y; z\n1;2;3\n# a comment\n-4;5e-3;6\n",
        "\"name\",\"x\",\"y\",\"z\"\n\"a, b\",1,2,3\n\"\",\"-4\",5e-3,6\n",
        "\"Density\",\"Points:0\",\"Points:1\",\"Points:2\"\n0,1,2,3\n0,-4,5e-3,6\n",
        "Points_0,Points_1,Points_2,x_velocity\n1,2,3,0\n-4,5e-3,6,0\n",
    ] {
        assert_eq!(good(text, Format::Csv).positions, POINTS, "{text:?}");
    }
}

#[test]
fn columns_that_are_not_read_are_named() {
    let unread = |text: &str| good(text, Format::Csv).unread;
    assert_eq!(unread("id,x,y,depth,\n1,2,3,4,\n"), ["id", "depth"]);
    assert_eq!(unread("# z y x mass\n1 2 3 4\n"), ["mass"]);
    assert!(unread("x,y,z\n1,2,3\n").is_empty() && unread("1,2\n").is_empty());
}

#[test]
fn without_z_the_points_lie_in_a_plane() {
    for text in ["x,y\n1,2\n3,4\n", "1,2\n3,4\n", "mass,y,x\n0,2,1\n0,4,3\n"] {
        let cloud = good(text, Format::Csv);
        assert_eq!(cloud.dimensions, Dimensions::Two);
        assert_eq!(cloud.positions, [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]);
    }
}

#[test]
fn numbers_that_are_not_finite_are_passed_on() {
    let cloud = good("x,y,z\nnan,inf,-Infinity\n", Format::Csv);
    assert!(cloud.positions[0][0].is_nan());
    assert_eq!(cloud.positions[0][1..], [f32::INFINITY, f32::NEG_INFINITY]);
    assert_eq!(cloud.positions_f64, None);
}

#[test]
fn decimals_are_kept_in_double_precision() {
    let cloud = good("0.5,0.25,1\n0.1,16777217,0\n", Format::Csv);
    assert_eq!(cloud.positions[1], [0.1, 16777216.0, 0.0]);
    assert_eq!(
        cloud.positions_f64,
        Some(vec![[0.5, 0.25, 1.0], [0.1, 16777217.0, 0.0]])
    );
}

#[test]
fn a_header_alone_means_no_points() {
    assert!(good("x,y,z\n", Format::Csv).is_empty());
    let error = refused("\n# nothing\n\n", Format::Csv);
    assert_eq!(error.kind(), ErrorKind::Empty);
}

#[test]
fn what_is_no_number_is_named_with_line_and_column() {
    let error = refused("x,y,z\n\n# note\n1,2,3\n4,five,6\n", Format::Csv);
    assert_eq!(error.place(), Place::Column { line: 5, column: 2 });
    assert_eq!(
        error.to_string(),
        "CSV data, line 5, column 2: 'five' is not a number"
    );
    let error = refused("id;x;y\n1;2;3\n1;2,5;3\n", Format::Csv);
    assert_eq!(
        error.to_string(),
        "CSV data, line 3, column 2: '2,5' is not a number; write decimals with a point"
    );
    let error = refused("x,y,z\n1,,3\n", Format::Csv);
    assert_eq!(
        error.to_string(),
        "CSV data, line 2, column 2: '' is not a number"
    );
}

#[test]
fn binary_files_are_refused_by_what_they_are() {
    for (bytes, what) in [
        (
            &b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'shape': (1, 3)}\n"[..],
            "a NumPy array (.npy)",
        ),
        (
            b"PK\x03\x04\x14\0abc,\n,,,",
            "a ZIP archive, as .npz, .xlsx and .ods are",
        ),
        (b"\x1f\x8b\x08\x08", "compressed by gzip"),
        (b"\xff\xfex\0,\0y\0\n\0", "text in UTF-16"),
        (b"x,y,z\n\0\0\0\n", "binary data"),
    ] {
        for format in [Format::Csv, Format::Xyz] {
            let error = refused(bytes, format);
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(
                error
                    .to_string()
                    .contains(&format!("this is {what}, not text")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_coordinate_with_two_columns_is_refused() {
    for (text, message) in [
        (
            "x,y,z,x\n1,2,3,4\n",
            "line 1, column 4: a second column of x, after column 1",
        ),
        (
            "id;Y;x;y\n1;2;3;4\n",
            "line 1, column 4: a second column of y, after column 2",
        ),
        (
            "Points:0,Points:1,Points:2,Points:2\n1,2,3,4\n",
            "line 1, column 4: a second column of z, after column 3",
        ),
    ] {
        assert_eq!(
            refused(text, Format::Csv).to_string(),
            format!("CSV data, {message}")
        );
    }
    assert_eq!(
        good("x,y,z,q,q\n1,2,3,4,5\n", Format::Csv).len(),
        1,
        "not read"
    );
}

#[test]
fn a_folder_is_refused_as_one_whatever_its_name() {
    let place = tempfile::tempdir().unwrap();
    for name in ["points.csv", "points.npy", "points"] {
        let path = place.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let error = nearfield_io::read_points(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("cannot read: this is a folder; name a file"),
            "{error}"
        );
        let error = nearfield_io::read_table(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("cannot read: this is a folder; name a file"),
            "{error}"
        );
    }
}

#[test]
fn wrong_columns_are_refused() {
    for (text, message) in [
        (
            "1,2,3,4\n",
            "line 1: 4 columns without names: 2 or 3 are needed, or a first line that names x, y and z",
        ),
        (
            "5\n",
            "line 1: 1 columns without names: 2 or 3 are needed, or a first line that names x, y and z",
        ),
        ("1,2,3\n4,5\n", "line 2: 2 columns where 3 are expected"),
        ("1,2\n4,5,6\n", "line 2: 3 columns where 2 are expected"),
        (
            "id,x,y,z\n1,2,3\n",
            "line 2: 3 columns, but z is in column 4",
        ),
        (
            "a,b,c\n1,2,3\n",
            "line 1: neither numbers nor column names with x and y: 'a', 'b', 'c'",
        ),
        (
            "1,2,x\n",
            "line 1: neither numbers nor column names with x and y: '1', '2', 'x'",
        ),
    ] {
        assert_eq!(
            refused(text, Format::Csv).to_string(),
            format!("CSV data, {message}")
        );
    }
}
