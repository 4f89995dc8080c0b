//! Files of atoms: LAMMPS, GROMACS, the Protein Data Bank, VASP.

use nearfield_io::{
    ErrorKind, Format, Frame, PointData, SimulationBox, Values, for_each_frame, parse_frame,
    read_frame, read_points,
};

use crate::{data, good, refused};

pub(crate) const DUMP: &str = "\
ITEM: UNITS
lj
ITEM: TIME
0.25
ITEM: TIMESTEP
50
ITEM: NUMBER OF ATOMS
2
ITEM: BOX BOUNDS xy xz yz pp ff pp
-1 5.5 1.5
0 6 0
0 7 -1
ITEM: ATOMS id type element x y z vx vy vz q ix
2 1 Ar 0.5 1.5 2.5 1 2 3 -0.5 0
1 2 Kr -1 3 1e3 4 5 6 0.5 -1
";

pub(crate) const DATA: &str = "\
water, 2 atoms

2 atoms
2 atom types
-1.0 4.0 xlo xhi
0 5 ylo yhi
0 6 zlo zhi
0.5 0 -1 xy xz yz

Masses

1 15.9994 # O
2 1.008

Atoms # full

1 1 2 -0.8 0.5 1.5 2.5 0 0 1 # first
2 1 1 0.4 -1 3 1e3 0 0 0

Velocities

1 0 0 0
2 0 0 0
";

pub(crate) const GRO: &str = "\
water t=   1.50000 step= 7
    2
    1WATER  OW1    1   0.126   1.624   1.679  0.1227 -0.0580  0.0434
    1WATER  HW2    2   0.190   1.661  -1.747  0.8085  0.3191 -0.7791
   1.82060   1.82060   1.82060
";

pub(crate) const PDB: &str = "\
REMARK a protein
CRYST1   10.000   20.000   30.000  90.00  90.00  90.00 P 1           1
MODEL        1
ATOM      1  N   MET A   1      27.340  24.430   2.614  1.00  9.67           N  \n\
HETATM    2 ZN    ZN A   2      -1.500   0.125 100.000  1.00  9.67          ZN2+\n\
ENDMDL
";

pub(crate) const CIF: &str = "\
data_test
# a comment
_cell.length_a 10.0(2)
_cell.length_b 20
_cell.length_c 30
_cell.angle_alpha 90
_cell.angle_beta 90.00
_cell.angle_gamma 90
_symmetry.space_group_name_H-M 'P 21 21 21'
_struct.title
;a text of
loop_
;
loop_
_citation.id
_citation.title
1 \"it's a title\"
loop_
_atom_site.group_PDB
_atom_site.type_symbol
_atom_site.label_alt_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.pdbx_PDB_model_num
ATOM N . 27.340 24.430 2.614 1
HETATM ZN B -1.5 0.125(7)
1e2 1
ATOM N . 0 0 0 2
#
";

pub(crate) const POSCAR: &str = "\
cubic
2.0
1 0 0
0 2 0
0.5 0 3
Fe_pv O
1 2
Selective dynamics
Direct
0.5 0.5 0.5 T T F
0.25 0 0 T T T
0 0 0.125 F F F
";

fn periodic(vectors: [[f64; 3]; 3]) -> Option<SimulationBox> {
    Some(SimulationBox {
        vectors,
        periodic: [true; 3],
    })
}

fn ids(cloud: &nearfield_io::PointCloud) -> Vec<i64> {
    match cloud.quantity("id").unwrap().values() {
        Values::I64(ids) => ids.to_vec(),
        other => panic!("identifiers are whole numbers, not {other:?}"),
    }
}

#[test]
fn a_dump_has_its_box_its_time_and_its_columns() {
    let cloud = good(DUMP, Format::LammpsDump);
    assert_eq!(cloud.positions, [[0.5, 1.5, 2.5], [-1.0, 3.0, 1e3]]);
    assert_eq!(cloud.time, Some(0.25));
    // The bounds along x and y are widened by the tilts.
    let found = cloud.simulation_box.unwrap();
    assert_eq!(found.periodic, [true, false, true]);
    assert_eq!(
        found.vectors,
        [[5.0, 0.0, 0.0], [1.5, 5.0, 0.0], [0.0, -1.0, 7.0]]
    );
    assert_eq!(ids(&cloud), [2, 1]);
    let names: Vec<_> = cloud.data.iter().map(PointData::name).collect();
    assert_eq!(names, ["id", "type", "velocity", "q", "ix"]);
    let velocity = cloud.quantity("velocity").unwrap();
    assert_eq!(
        velocity.to_vectors().unwrap(),
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    );
    let species = cloud.species.unwrap();
    assert_eq!(
        (species.names, species.of_point),
        (vec!["Ar".into(), "Kr".into()], vec![0, 1])
    );
}

#[test]
fn scaled_positions_of_a_dump_are_parts_of_the_box() {
    let head = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\n";
    let rows = "ITEM: ATOMS id type xs ys zs\n1 1 0.5 0.25 1\n";
    let bounds = "ITEM: BOX BOUNDS pp pp pp\n-1 1\n0 4\n2 3\n";
    let cloud = good(format!("{head}{bounds}{rows}"), Format::LammpsDump);
    assert_eq!(cloud.positions, [[0.0, 1.0, 3.0]]);
    let vectors = "ITEM: BOX BOUNDS abc origin pp pp fs\n1 1 0 5\n0 4 0 6\n0 0 2 7\n";
    let cloud = good(format!("{head}{vectors}{rows}"), Format::LammpsDump);
    assert_eq!(cloud.positions, [[5.5, 7.5, 9.0]]);
    assert_eq!(cloud.simulation_box.unwrap().periodic, [true, true, false]);
    let error = refused(format!("{head}{rows}"), Format::LammpsDump).to_string();
    assert!(
        error.contains("line 5") && error.contains("ITEM: BOX BOUNDS"),
        "{error}"
    );
    let both = "ITEM: ATOMS xs ys zs xu yu zu\n0.5 0.25 1 7 8 9\n";
    let cloud = good(format!("{head}{both}"), Format::LammpsDump);
    assert_eq!(cloud.positions, [[7.0, 8.0, 9.0]]);
}

#[test]
fn dumps_that_contradict_themselves_are_refused() {
    let head = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n";
    for (text, words) in [
        ("1\nITEM: ATOMS id x y\n1 2 3\n", "no columns x y z"),
        (
            "1\nITEM: ATOMS x y z\n1 2\n",
            "2 columns where ITEM: ATOMS names 3",
        ),
        (
            "1\nITEM: ATOMS x y z\n1 2 3 4\n",
            "'4' follows the 3 columns",
        ),
        (
            "1\nITEM: ATOMS x y z\n1 2 c\n",
            "line 6, column 3: 'c' is not a number",
        ),
        (
            "1\nITEM: ATOMS id x y z\n1.5 1 2 3\n",
            "'1.5' is not a whole number",
        ),
        ("-1\nITEM: ATOMS x y z\n", "'-1' is not a number of atoms"),
        (
            "2\nITEM: ATOMS x y z\n1 2 3\n",
            "2 atoms are announced, but only 6 bytes follow",
        ),
        (
            "2\nITEM: ATOMS x y z\n1.00 2.00 3.00\n",
            "the file ends before atom 1 of 2",
        ),
        (
            "1\nITEM: ENTRIES c_1\n1\n",
            "'ENTRIES c_1' is not an item of a dump of atoms",
        ),
        (
            "1\nITEM: BOX BOUNDS pp pp pp\n0\n0 1\n0 1\n",
            "expected 2 numbers",
        ),
        ("1\nAr 0 0 0\n", "expected a line ITEM: …, found 'Ar 0 0 0'"),
        ("99999999999999999999\n", "is not a number of atoms"),
    ] {
        let error = refused(format!("{head}{text}"), Format::LammpsDump).to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = refused("ITEM: ATOMS x y z\n", Format::LammpsDump).to_string();
    assert!(error.contains("before ITEM: NUMBER OF ATOMS"), "{error}");
}

#[test]
fn frames_of_every_format_are_counted_and_read_in_turn() {
    let place = tempfile::tempdir().unwrap();
    for (name, format, text) in [
        ("a.dump", Format::LammpsDump, DUMP),
        ("a.gro", Format::Gro, GRO),
        ("a.pdb", Format::Pdb, PDB),
        ("a.xyz", Format::Xyz, "2\n\nA 0 0 0\nB 1 0 0\n"),
    ] {
        let three = text.repeat(3);
        let path = place.path().join(name);
        // A PDB frame without an end is complete: the format has no count.
        let cut = if format == Format::Pdb {
            ""
        } else {
            &text[..text.len() / 2]
        };
        std::fs::write(&path, format!("{three}{cut}")).unwrap();
        let mut frames = Vec::new();
        for_each_frame(&path, |cloud| {
            assert_eq!(cloud.len(), 2, "{name}");
            frames.push(cloud.frames);
            Ok::<(), nearfield_io::Error>(())
        })
        .unwrap();
        let seen: Vec<_> = frames.iter().map(|one| (one.number, one.count)).collect();
        assert_eq!(seen, [(1, 3), (2, 3), (3, 3)], "{name}");
        assert!(
            frames.iter().all(|one| one.cut_off != cut.is_empty()),
            "{name}"
        );
        let last = read_frame(&path, Frame::Last).unwrap();
        assert_eq!(last.frames, frames[2], "{name}");
        let error = parse_frame(three.as_bytes(), format, Frame::Number(4)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("there is no frame 4: the file has 3"),
            "{error}"
        );
        // What the caller returns ends it.
        let mut calls = 0;
        let stopped = for_each_frame(&path, |_| {
            calls += 1;
            Err(read_frame("no/such.xyz", Frame::FIRST).unwrap_err())
        });
        assert!(stopped.is_err() && calls == 1);
    }
    let path = place.path().join("one.csv");
    std::fs::write(&path, "1,2,3\n").unwrap();
    let mut points = 0;
    for_each_frame(&path, |cloud| {
        points += cloud.len();
        Ok::<(), nearfield_io::Error>(())
    })
    .unwrap();
    assert_eq!(points, 1);
}

#[test]
fn lammps_data_are_read_in_the_style_that_they_name() {
    let cloud = good(DATA, Format::LammpsData);
    assert_eq!(cloud.positions, [[0.5, 1.5, 2.5], [-1.0, 3.0, 1e3]]);
    let vectors = [[5.0, 0.0, 0.0], [0.5, 5.0, 0.0], [0.0, -1.0, 6.0]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    assert_eq!(ids(&cloud), [1, 2]);
    assert_eq!(cloud.quantity("type").unwrap().to_doubles(), [2.0, 1.0]);
    assert_eq!(cloud.unread, ["Velocities"]);
    assert!(cloud.notes[0].contains("--periodic"), "{:?}", cloud.notes);
    let bare = |rows: &str| format!("c\n1 atoms\nAtoms\n\n{rows}\n");
    for (rows, position) in [
        ("1 1 0.5 1 2", [0.5, 1.0, 2.0]),
        ("1 1 -0.5 0.5 1 2", [0.5, 1.0, 2.0]),
        ("1 1 1 -0.5 0.5 1 2", [0.5, 1.0, 2.0]),
        ("1 1 0.5 1 2 0 -1 0", [0.5, 1.0, 2.0]),
    ] {
        let cloud = good(bare(rows), Format::LammpsData);
        assert_eq!(cloud.positions, [position], "{rows}");
        assert!(cloud.notes[0].contains("Atoms has no style"));
    }
    for (text, words) in [
        (bare("1 1 2 3"), "4 columns and no style"),
        (bare("1 1 0.5 1 2 0 0"), "columns 5 to 7"),
        ("c\nAtoms\n\n1 1 0 0 0\n".to_owned(), "not LAMMPS data"),
        ("c\n1 atoms\n".to_owned(), "the section Atoms"),
        (
            "c\n2 atoms\nAtoms\n\n1 1 0 0 0\n\nBonds\n\n1 1 1 1\n".to_owned(),
            "after 1 of 2",
        ),
        (
            DATA.replace("full", "peri"),
            "the atom style 'peri' is not read; atomic,",
        ),
        (
            DATA.replace("1 1 2 -0.8", "1 1 2"),
            "columns where 7, or 10 with image flags",
        ),
        (
            DATA.replace("-1.0 4.0 xlo", "-1.0 four xlo"),
            "line 5, column 2: 'four'",
        ),
        (
            DATA.replace("Velocities", "Atoms"),
            "a second section Atoms",
        ),
    ] {
        match nearfield_io::parse_points(text.as_bytes(), Format::LammpsData) {
            Ok(cloud) => assert!(cloud.notes[0].contains(words), "{words}: {:?}", cloud.notes),
            Err(error) => assert!(error.to_string().contains(words), "{error}"),
        }
    }
}

#[test]
fn gro_columns_are_as_wide_as_their_decimals_say() {
    let cloud = good(GRO, Format::Gro);
    assert_eq!(
        cloud.positions,
        [[0.126, 1.624, 1.679], [0.190, 1.661, -1.747]]
    );
    assert_eq!(cloud.time, Some(1.5));
    let side = 1.8206;
    let vectors = [[side, 0.0, 0.0], [0.0, side, 0.0], [0.0, 0.0, side]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    assert_eq!(cloud.species.unwrap().names, ["OW1", "HW2"]);
    let velocity = cloud.data[0].to_vectors().unwrap();
    assert_eq!(velocity[1], [0.8085, 0.3191, -0.7791]);
    // Five decimals, no blank between numbers, no velocities, a tilted box.
    let fine = "t\n1\n    1WATER  OW1    1 -10.12345-200.12345 100.12345\n2 3 4 0 0 0.5 0 1 1.5\n";
    let cloud = good(fine, Format::Gro);
    let exact = cloud.positions_f64.unwrap();
    assert_eq!(exact, [[-10.12345, -200.12345, 100.12345]]);
    assert!(cloud.data.is_empty() && cloud.time.is_none());
    let vectors = [[2.0, 0.0, 0.0], [0.5, 3.0, 0.0], [1.0, 1.5, 4.0]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    let open = GRO.replace("1.82060", "0.00000");
    assert_eq!(good(open, Format::Gro).simulation_box, None);
    for (text, words) in [
        (GRO.replace("    2\n", "    3\n"), "columns 37 to 44"),
        (
            GRO.replace("    2\n", "  two\n"),
            "line 2: 'two' is not a number of atoms",
        ),
        (GRO.replace("1.624", "1,624"), "columns"),
        (
            GRO.replace("0.3191", "      "),
            "line 4: '' in columns 53 to 60",
        ),
        ("t\n1\n    1WATER  OW1    1\n1 1 1\n".to_owned(), "35 bytes"),
        (GRO.replace("   1.82060\n", "\n"), "expected 3 numbers"),
        (
            GRO.replace("1.82060\n", "1.82060 0\n"),
            "4 numbers where 3 or 9",
        ),
    ] {
        let error = refused(text, Format::Gro).to_string();
        assert!(words == "35 bytes" || error.contains(words), "{error}");
    }
}

#[test]
fn pdb_records_are_read_by_their_columns() {
    let cloud = good(PDB, Format::Pdb);
    let exact = cloud.positions_f64.as_ref().unwrap();
    assert_eq!(*exact, [[27.34, 24.43, 2.614], [-1.5, 0.125, 100.0]]);
    let vectors = [[10.0, 0.0, 0.0], [0.0, 20.0, 0.0], [0.0, 0.0, 30.0]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    assert_eq!(cloud.species.unwrap().names, ["N", "ZN"]);
    assert!(cloud.notes.is_empty(), "{:?}", cloud.notes);
    let unit = "CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1";
    let cell = "CRYST1   10.000   20.000   30.000  90.00  90.00  90.00 P 1           1";
    assert_eq!(
        good(PDB.replace(cell, unit), Format::Pdb).simulation_box,
        None
    );
    let noted = |text: String, words: &str| {
        let notes = good(text, Format::Pdb).notes.join("; ");
        assert!(notes.contains(words), "{notes}");
    };
    noted(
        PDB.replace("P 1 ", "P 21"),
        "space group 'P 21' is not applied",
    );
    noted(
        PDB.replace(" N   MET", " N  BMET"),
        "1 records are alternative",
    );
    noted(PDB.replace("          ZN2+", ""), "1 atoms have no element");
    // Frames without models, as VMD writes them; the first cell holds for both.
    let frames = format!(
        "{}END\n{}END\n",
        &PDB[..PDB.len() - 7],
        &PDB[PDB.find("ATOM").unwrap()..PDB.len() - 7]
    );
    let second = parse_frame(frames.as_bytes(), Format::Pdb, Frame::Number(2)).unwrap();
    assert_eq!((second.len(), second.frames.count), (2, 2));
    assert!(second.simulation_box.is_some());
    for (text, words) in [
        (
            PDB.replace(" 27.340", " 27,340"),
            "line 4: '27,340' in columns 31 to 38",
        ),
        (
            PDB.replace("10.000   20", " 0.000   20"),
            "no cell with the lengths",
        ),
        (
            "REMARK nothing\nEND\n".to_owned(),
            "no ATOM or HETATM record",
        ),
        ("ATOM      1  N\n".to_owned(), "columns 31 to 38"),
    ] {
        let error = refused(text, Format::Pdb).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn poscar_positions_are_parts_of_the_vectors_or_scaled() {
    let cloud = good(POSCAR, Format::Poscar);
    assert_eq!(
        cloud.positions,
        [[1.5, 2.0, 3.0], [0.5, 0.0, 0.0], [0.125, 0.0, 0.75]]
    );
    let vectors = [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [1.0, 0.0, 6.0]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    let species = cloud.species.unwrap();
    assert_eq!(
        (species.names, species.of_point),
        (vec!["Fe".into(), "O".into()], vec![0, 1, 1])
    );
    let cartesian = good(POSCAR.replace("Direct", "cartesian"), Format::Poscar);
    assert_eq!(cartesian.positions[0], [1.0, 1.0, 1.0]);
    // The volume of the vectors is 6: a scale of -48 doubles lengths.
    let volume = good(POSCAR.replace("2.0\n", "-48\n"), Format::Poscar);
    for (found, expected) in volume.positions.iter().zip(&cloud.positions) {
        (0..3).for_each(|axis| assert!((found[axis] - expected[axis]).abs() < 1e-6));
    }
    let old = good(POSCAR.replace("Fe_pv O\n", ""), Format::Poscar);
    assert!(old.species.is_none() && old.len() == 3);
    let moving = format!("{POSCAR}\n0 0 0\n0 0 0\n0 0 0\n");
    assert_eq!(good(moving, Format::Poscar).unread, ["velocities"]);
    for (text, words) in [
        (
            POSCAR.replace("2.0\n", "0\n"),
            "the scale '0' gives no cell",
        ),
        (
            POSCAR.replace("1 2\n", "1 2 3\n"),
            "more counts than species",
        ),
        (POSCAR.replace("1 2\n", "1\n"), "more species than counts"),
        (
            POSCAR.replace("1 2\n", "1 two\n"),
            "more species than counts",
        ),
        (POSCAR.replace("1 2\n", "one\n"), "are not the counts"),
        (
            POSCAR.replace("1 2\n", "1 3\n"),
            "the file ends before the last position",
        ),
        (
            POSCAR.replace("1 2\n", "1 18446744073709551615\n"),
            "but only",
        ),
        (
            POSCAR.replace("Direct", "Fractional"),
            "neither Direct nor Cartesian",
        ),
        (
            POSCAR.replace("0 2 0", "0 two 0"),
            "line 4, column 2: 'two'",
        ),
    ] {
        let error = refused(text, Format::Poscar).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn binary_data_are_no_files_of_atoms() {
    for format in [
        Format::LammpsDump,
        Format::LammpsData,
        Format::Gro,
        Format::Pdb,
        Format::Poscar,
    ] {
        let error = refused(b"\x1f\x8b\x08\0", format);
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains("compressed by gzip"), "{error}");
    }
}

#[test]
fn files_of_other_writers_hold_the_same_points() {
    let truth = read_points(data("atoms/truth.npy")).unwrap();
    let truth = truth.positions_f64.unwrap();
    // Units per unit of the truth, and the digits that the writer has kept.
    for (name, unit, error, has_box) in [
        ("ase.vasp", 1.0, 1e-12, true),
        ("ase.data", 1.0, 1e-12, true),
        ("ase.pdb", 1.0, 5.1e-4, true),
        ("ase.gro", 0.1, 5.1e-4, true),
        ("gzip.gro.gz", 0.1, 5.1e-4, true),
        ("numpy_compressed.npz", 1.0, 0.0, false),
        ("pypcd4_binary.pcd", 1.0, 5e-7, false),
        ("pypcd4_compressed.pcd", 1.0, 5e-7, false),
    ] {
        let cloud = read_points(data("atoms").join(name)).unwrap();
        assert_eq!(cloud.len(), truth.len(), "{name}");
        let exact = |point: usize| match &cloud.positions_f64 {
            Some(exact) => exact[point],
            None => cloud.positions[point].map(f64::from),
        };
        for (point, expected) in truth.iter().enumerate() {
            for (found, expected) in exact(point).iter().zip(expected) {
                let off = found - unit * expected;
                assert!(off.abs() <= error, "{name}: {off} at point {point}");
            }
        }
        assert_eq!(cloud.simulation_box.is_some(), has_box, "{name}");
        let Some(cell) = cloud.simulation_box else {
            continue;
        };
        let expected = [[10.0, 0.0, 0.0], [2.0, 11.0, 0.0], [-1.0, 1.5, 12.0]];
        let vectors = cell.vectors.as_flattened().iter();
        for (found, expected) in vectors.zip(expected.as_flattened()) {
            let off = found - unit * expected;
            assert!(off.abs() <= 2e-3 * unit, "{name}: {:?}", cell.vectors);
        }
    }
}

#[test]
fn a_cif_has_its_cell_its_elements_and_the_first_model() {
    let cloud = good(CIF, Format::Cif);
    assert_eq!(
        cloud.positions,
        [[27.34, 24.43, 2.614], [-1.5, 0.125, 100.0]]
    );
    let vectors = [[10.0, 0.0, 0.0], [0.0, 20.0, 0.0], [0.0, 0.0, 30.0]];
    assert_eq!(cloud.simulation_box, periodic(vectors));
    let species = cloud.species.unwrap();
    assert_eq!(
        (species.names, species.of_point),
        (vec!["N".into(), "ZN".into()], vec![0, 1])
    );
    let notes = cloud.notes.join("; ");
    for words in [
        "1 atoms of later models",
        "1 rows are alternative",
        "'P 21 21 21' is not",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    // A crystal: parts of the cell, tags without dots, and no element but a label.
    let cell = CIF.split("_symmetry").next().unwrap();
    let crystal = cell
        .replace('.', "_")
        .replace("_00", "")
        .replace("10_0", "10.0")
        .to_uppercase()
        + "loop_\n_atom_site_label\n_atom_site_fract_x\n_atom_site_fract_y\n\
           _atom_site_fract_z\nNa1 0.5 0.25(3) -1\ndata_other\n_cell_length_a 1\n";
    let cloud = good(crystal, Format::Cif);
    assert_eq!(cloud.positions, [[5.0, 5.0, -30.0]]);
    assert_eq!(cloud.species.unwrap().names, ["Na1"]);
    assert_eq!(cloud.simulation_box, periodic(vectors));
    assert_eq!(cloud.notes, ["1 later data blocks are not read"]);
}

#[test]
fn a_wrong_cif_names_the_line() {
    let atoms = "loop_\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n";
    let parts = atoms.replace("Cartn", "fract");
    for (text, words) in [
        (
            "data_x\n_cell.length_a 5\n".to_owned(),
            "no loop with _atom_site.Cartn_x",
        ),
        (
            format!("{atoms}1 2 3\n4 5\n"),
            "line 6: the last row has 2 of 3 values",
        ),
        (
            format!("{atoms}1 2 3\n4 ? 6\n"),
            "line 6: '?' is not a number",
        ),
        (
            format!("{atoms}1 2 'three\n"),
            "line 5: a quoted text has no end",
        ),
        (
            format!("{atoms}1 2 3\n_text\n;abc\n"),
            "line 7: a text that begins",
        ),
        (format!("{parts}0.5 0.5 0.5\n"), "the file has no cell"),
        (
            "data_x\nstray 1\n".to_owned(),
            "line 2: 'stray' belongs to no tag",
        ),
        (
            "data_x\nloop_ 1 2\n".to_owned(),
            "line 2: '1' belongs to no tag",
        ),
        ("_a\nloop_\n".to_owned(), "line 1: '_a' has no value"),
    ] {
        let error = refused(&text, Format::Cif).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
