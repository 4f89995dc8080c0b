//! XYZ and extended XYZ.

use nearfield_io::{Dimensions, ErrorKind, Format, Place, PointData, SimulationBox, Values};

use crate::{good, refused};

#[test]
fn a_plain_file_has_symbols_and_positions() {
    let cloud = good(
        "3\nwater\nO 0 0 0.5\nH  1 0 0 extra 7\nO -1 2e1 0\n",
        Format::Xyz,
    );
    assert_eq!(
        cloud.positions,
        [[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [-1.0, 20.0, 0.0]]
    );
    let species = cloud.species.unwrap();
    assert_eq!(species.names, ["O", "H"]);
    assert_eq!(species.of_point, [0, 1, 0]);
    assert_eq!(cloud.simulation_box, None);
    assert!(cloud.data.is_empty());
}

#[test]
fn symbols_may_be_missing_or_numbers() {
    let bare = good("2\n\n1 2 3\n4 5 6\n", Format::Xyz);
    assert_eq!(bare.positions, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(bare.species, None);
    let numbered = good("1\n\n18 1 2 3\n", Format::Xyz);
    assert_eq!(numbered.positions, [[1.0, 2.0, 3.0]]);
    assert_eq!(numbered.species.unwrap().names, ["18"]);
}

#[test]
fn symbols_that_read_the_same_are_one_name() {
    let cloud = good(b"3\n\n\xfe 1 2 3\n\xff 4 5 6\nH 7 8 9\n", Format::Xyz);
    let species = cloud.species.unwrap();
    assert_eq!(species.names, ["\u{fffd}", "H"]);
    assert_eq!(species.of_point, [0, 0, 1]);
}

#[test]
fn the_extended_comment_is_honoured() {
    let text = "2\n\
        Lattice=\"4.0 0 0 0.5 5 0 0 0 6\" pbc=\"T F T\" Time=2.5 note={a b} \
        Properties=id:I:1:velo:R:3:species:S:1:pos:R:3:fixed:L:1:mass:R:1\n\
        7 1 2 3 Ar 0.1 0.2 0.3 T 1.5\n\
        -8 4 5 6 Kr 1 2 3 F 2.5\n";
    let cloud = good(text, Format::Xyz);
    assert_eq!(cloud.positions, [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]);
    assert_eq!(cloud.positions_f64.as_ref().unwrap()[0], [0.1, 0.2, 0.3]);
    let vectors = [[4.0, 0.0, 0.0], [0.5, 5.0, 0.0], [0.0, 0.0, 6.0]];
    let expected = SimulationBox {
        vectors,
        periodic: [true, false, true],
    };
    assert_eq!(cloud.simulation_box, Some(expected));
    assert_eq!(cloud.time, Some(2.5));
    assert_eq!(
        cloud.quantity("id").unwrap().values(),
        &Values::from(vec![7_i64, -8])
    );
    assert_eq!(
        cloud.quantity("velo").and_then(PointData::to_vectors),
        Some(vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    );
    assert_eq!(
        cloud.quantity("mass").and_then(PointData::to_scalars),
        Some(vec![1.5, 2.5])
    );
    assert_eq!(cloud.data.len(), 3);
    assert_eq!(cloud.species.unwrap().names, ["Ar", "Kr"]);
}

#[test]
fn a_lattice_without_pbc_is_periodic_everywhere() {
    let cloud = good("0\nlattice=\"1 0 0 0 2 0 0 0 3\"\n", Format::Xyz);
    let simulation_box = cloud.simulation_box.unwrap();
    assert_eq!(simulation_box.periodic, [true; 3]);
    assert_eq!(simulation_box.lengths(), Some([1.0, 2.0, 3.0]));
}

#[test]
fn only_the_first_frame_is_read() {
    let cloud = good("1\nfirst\nA 1 2 3\n1\nsecond\nA 4 5 6\n", Format::Xyz);
    assert_eq!(cloud.positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn two_coordinates_are_points_of_a_plane() {
    let cloud = good("1\nProperties=pos:R:2\n1 2\n", Format::Xyz);
    assert_eq!(
        (cloud.dimensions, cloud.positions),
        (Dimensions::Two, vec![[1.0, 2.0, 0.0]])
    );
}

#[test]
fn a_missing_point_is_refused() {
    let error = refused("3\n\nA 1 2 3\nA 4 5 6\n", Format::Xyz);
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(
        error.to_string(),
        "XYZ data, line 5: the file ends after 2 of 3 points"
    );
}

#[test]
fn wrong_lines_are_named() {
    for (text, message) in [
        ("two\n\n", "line 1: 'two' is not a number of points"),
        ("-1\n\n", "line 1: '-1' is not a number of points"),
        ("1", "line 2: the file ends before the comment line"),
        (
            "1\n\nA 1 2\n",
            "line 3: the line ends after 3 columns, before a coordinate",
        ),
        (
            "2\n\nA 1 2 3\nA 1 2 z\n",
            "line 4, column 4: 'z' is not a number",
        ),
        (
            "1\nProperties=pos:R:3:n:I:1\n1 2 3 4.5\n",
            "line 3, column 4: '4.5' is not a number",
        ),
        (
            "1\nLattice=\"1 2 3\"\nA 1 2 3\n",
            "line 2: Lattice='1 2 3' is not nine numbers",
        ),
        (
            "1\npbc=\"T T\"\nA 1 2 3\n",
            "line 2: pbc='T T' is not three of T and F",
        ),
    ] {
        assert_eq!(
            refused(text, Format::Xyz).to_string(),
            format!("XYZ data, {message}")
        );
    }
    for properties in [
        "pos:R:4",
        "pos:R",
        "species:S:1",
        "pos:R:3:pos:R:3",
        "pos:R:3:q:R:1:Q:R:1",
        "pos:R:0",
        "pos:Q:3",
    ] {
        let error = refused(format!("1\nProperties={properties}\n1 2 3\n"), Format::Xyz);
        assert_eq!(error.place(), Place::Line(2), "{error}");
    }
}

#[test]
fn an_absurd_count_is_refused_at_once() {
    for count in ["1000000000000", "18446744073709551615"] {
        let error = refused(format!("{count}\n\nA 1 2 3\n"), Format::Xyz);
        assert!(
            error.to_string().ends_with("but only 8 bytes follow"),
            "{error}"
        );
    }
    refused("99999999999999999999999\n\nA 1 2 3\n", Format::Xyz);
    refused(
        "1\nProperties=pos:R:3:a:S:18446744073709551615\n1 2 3\n",
        Format::Xyz,
    );
}
