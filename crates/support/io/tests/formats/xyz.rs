//! XYZ and extended XYZ.

use nearfield_io::{
    Dimensions, ErrorKind, Format, Frame, Frames, Place, PointData, SimulationBox, Values,
    parse_frame,
};

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
    let numbered = good("1\n\n18 1.0 2.0 3.0\n", Format::Xyz);
    assert_eq!(numbered.positions, [[1.0, 2.0, 3.0]]);
    assert_eq!(numbered.species.unwrap().names, ["18"]);
}

const ROWS: [[f32; 3]; 2] = [[0.5, 2.0, 0.25], [1.0, 0.0, 0.75]];

#[test]
fn a_number_that_is_not_whole_is_x() {
    for (text, note) in [
        ("2\nx y z\n0.5 2 0.25\n1 0 0.75\n", None),
        (
            "2\nx y z v\n0.5 2 0.25 7\n1 0 0.75 8\n",
            Some("column 4 has no name"),
        ),
        (
            "2\n\n0.5 2 0.25 0 0 1\r\n1 0 0.75 0 0 1\r\n",
            Some("columns 4 to 6 have no names"),
        ),
        (
            "2\n\n\t0.5\t2\t0.25\t0\n1 0 0.75 0\n\n\n",
            Some("column 4 has no name"),
        ),
        ("\u{feff}2\n\n5D-1 2 2.5d-01\n1.0 0 .75\n", None),
    ] {
        let cloud = good(text, Format::Xyz);
        assert_eq!(cloud.positions, ROWS, "{text:?}");
        assert_eq!(cloud.species, None, "{text:?}");
        match (note, &cloud.notes[..]) {
            (None, []) => {}
            (Some(note), [found]) => assert!(found.starts_with(note), "{found}"),
            (note, found) => panic!("{note:?}: {found:?}"),
        }
    }
    assert!(good("1\n\nnan 0 0 1\n", Format::Xyz).positions[0][0].is_nan());
}

#[test]
fn whole_numbers_are_species_only_where_nothing_else_is_meant() {
    for text in ["1\n\n18 1 2 3\n", "2\n\n18 0.1 2 3 0.5\n1 1 2 3 0\n"] {
        let cloud = good(text, Format::Xyz);
        assert_eq!(cloud.species.unwrap().names[0], "18");
        assert!(
            cloud.notes[0].contains("taken for the species"),
            "{:?}",
            cloud.notes
        );
    }
    for text in [
        "2\n\n0 0.1 0.2 0.3\n0 0.4 0.5 0.6\n",
        "1\n\n1 2 3 0 0 1\n",
        "1\n\n-7 2 3 4\n",
        "1\n\n500 2 3 4\n",
        "2\n\n1 2 3\n4 5 6 7\n",
    ] {
        let error = refused(text, Format::Xyz).to_string();
        for part in [
            "columns begin with whole numbers",
            "line 2",
            "Properties=pos:R:3",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
    let error = refused("2\n\nAr 1 2 3\n0.5 1 2 3\n", Format::Xyz).to_string();
    assert!(
        error.contains("'Ar' in line 3 and with '0.5' in line 4"),
        "{error}"
    );
}

#[test]
fn point_clouds_with_a_count_and_no_comment_are_told_what_is_missing() {
    let pts = "3\n0.1 0.2 0.3 0 117 130 149\n0.4 0.5 0.6 0 117 130 149\n0.7 0 1 0 117 130 149\n";
    let error = refused(format!("{pts}\n\n"), Format::Xyz).to_string();
    assert!(error.contains("call the file .pts"), "{error}");
    let error = refused("a comment\n1 2 3\n", Format::Xyz).to_string();
    assert!(
        error.contains("rows without a count") && error.contains(".txt"),
        "{error}"
    );
    // The comment may be numbers, such as the lengths of the box.
    assert_eq!(good("1\n9.0 9.0 9.0\nA 1 2 3\n", Format::Xyz).len(), 1);
    let error = refused("2\n9.0 9.0\nA 1 2 3\n", Format::Xyz).to_string();
    assert!(
        error.ends_with("the file ends after 1 of 2 points"),
        "{error}"
    );
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
fn the_box_of_a_comment_is_found_in_every_style() {
    let vectors = [[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 6.0]];
    for comment in [
        r#"Lattice="4 0 0 0 5 0 0 0 6" pbc="T T F" note="Lattice={9 9 9} \" pbc=F""#,
        r#"history="old \" Lattice={9 0 0 0 9 0 0 0 9} \" end" pbc="T T F" Lattice="4 5 6""#,
        r#"Lattice = "4 0 0 0 5 0 0 0 6" Properties = pos:R:3 pbc = "1 1 0""#,
        "Lattice=[[4,0,0],[0,5,0],[0,0,6]] pbc=[T, T, F] Origin=\"-1 -1 -1\"",
        "pbc={true True false} lattice={4.0D+00 5d0 6}",
    ] {
        let found = good(format!("1\n{comment}\n1 2 3\n"), Format::Xyz).simulation_box;
        let periodic = [true, true, false];
        assert_eq!(
            found,
            Some(SimulationBox { vectors, periodic }),
            "{comment}"
        );
    }
}

#[test]
fn axes_without_a_box_are_handed_over() {
    let cloud = |comment: &str| good(format!("1\n{comment}\n1 2 3\n"), Format::Xyz);
    let found = cloud("pbc=\"T F T\"");
    assert_eq!(found.periodic_without_box, Some([true, false, true]));
    assert_eq!(found.simulation_box, None);
    assert_eq!(
        cloud("Lattice=\"1 2 3\" pbc=\"T F T\"").periodic_without_box,
        None
    );
}

#[test]
fn columns_of_text_and_flags_are_named() {
    let text = "1\nProperties=move_mask:L:3:pos:R:3:tag:S:1:species:S:1\nT F T 1 2 3 core Ar\n";
    let cloud = good(text, Format::Xyz);
    assert_eq!(cloud.unread, ["move_mask", "tag"]);
    assert_eq!(cloud.species.unwrap().names, ["Ar"]);
}

const TRAJECTORY: &str = "1\nfirst\nA 1 2 3\n2\nsecond\nA 4 5 6\nB 7 8 9\n\n0\nthird\n";

fn frame(text: &str, frame: Frame) -> Result<(usize, Frames), String> {
    let cloud = parse_frame(text.as_bytes(), Format::Xyz, frame);
    let cloud = cloud.map_err(|error| error.to_string())?;
    Ok((cloud.len(), cloud.frames))
}

#[test]
fn every_frame_can_be_read_and_all_are_counted() {
    let frames = |number| Frames {
        number,
        count: 3,
        cut_off: false,
    };
    for (asked, points) in [(1, 1), (2, 2), (3, 0)] {
        for text in [TRAJECTORY.to_owned(), TRAJECTORY.replace('\n', "\r\n")] {
            let found = frame(&text, Frame::Number(asked));
            assert_eq!(found, Ok((points, frames(asked))), "{asked}");
        }
    }
    assert_eq!(frame(TRAJECTORY, Frame::Last), Ok((0, frames(3))));
    let cloud = good(TRAJECTORY, Format::Xyz);
    assert_eq!(
        (cloud.positions, cloud.frames),
        (vec![[1.0, 2.0, 3.0]], frames(1))
    );
    let error = frame(TRAJECTORY, Frame::Number(4)).unwrap_err();
    assert!(
        error.ends_with("there is no frame 4: the file has 3, counted from 1"),
        "{error}"
    );
    let wrong = TRAJECTORY.replace("8 9", "8 x");
    let error = frame(&wrong, Frame::Number(2)).unwrap_err();
    assert_eq!(error, "XYZ data, line 7, column 4: 'x' is not a number");
    let pbc = TRAJECTORY.replace("second", "pbc=T=F");
    let error = frame(&pbc, Frame::Number(2)).unwrap_err();
    assert!(error.contains("line 5: pbc='T=F'"), "{error}");
    assert!(frame(&pbc, Frame::FIRST).is_ok());
}

#[test]
fn a_last_frame_that_is_cut_off_is_left_out_and_told() {
    let torn = format!("{TRAJECTORY}3\ncut\nA 1 2 3\nB 4");
    let frames = |number| Frames {
        number,
        count: 3,
        cut_off: true,
    };
    assert_eq!(frame(&torn, Frame::FIRST), Ok((1, frames(1))));
    assert_eq!(frame(&torn, Frame::Last), Ok((0, frames(3))));
    let error = frame(&torn, Frame::Number(4)).unwrap_err();
    assert!(
        error.ends_with("line 14: the line ends after 2 columns, before a coordinate"),
        "{error}"
    );
    let error = frame("2\n\nA 1 2 3\n", Frame::Last).unwrap_err();
    assert!(
        error.ends_with("the file ends after 1 of 2 points"),
        "{error}"
    );
}

#[test]
fn what_follows_a_frame_and_is_none_is_refused() {
    let error = refused("1\n\nA 1 2 3\nA 4 5 6\n", Format::Xyz);
    assert_eq!(error.place(), Place::Line(4));
    let error = error.to_string();
    assert!(error.contains("'A 4 5 6' follows frame 1"), "{error}");
    let one = parse_frame(b"x,y,z\n1,2,3\n", Format::Csv, Frame::Number(2)).unwrap_err();
    assert_eq!(one.kind(), ErrorKind::InvalidArgument);
    assert!(parse_frame(b"x,y,z\n1,2,3\n", Format::Csv, Frame::Last).is_ok());
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
            "1\nLattice=\"1 2\"\nA 1 2 3\n",
            "line 2: Lattice='1 2' is not three lengths, nine numbers or three rows of three",
        ),
        (
            "1\npbc=\"T T\"\nA 1 2 3\n",
            "line 2: pbc='T T' is not three of T and F",
        ),
        (
            "1\nLattice=\nA 1 2 3\n",
            "line 2: Lattice='' is not three lengths, nine numbers or three rows of three",
        ),
        (
            "1\npbc=\"F F F\" Lattice=\"1 2 3\nA 1 2 3\n",
            "line 2: character 21: the string that begins here does not end",
        ),
        (
            "1\nPBC=\"F F F\" pbc=\"T F F\"\nA 1 2 3\n",
            "line 2: 'pbc' is given twice",
        ),
        (
            "1\nProperties=species:S:1:pos:R:3\n0.5 1 2 3\n",
            "line 3: expected a species, found '0.5'",
        ),
        (
            "1\nProperties=pos:R:3\n1 2 3 4 5\n",
            "line 3: '4 5' follows the 3 columns that Properties name",
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
