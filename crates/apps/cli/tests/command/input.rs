//! Forms of files that commands read, and what they say of what they leave out.

use crate::{Workplace, words};

/// Twelve points with 28 pairs within 0.4 in the open, and 40 in [`SLAB`].
const POINTS: &str = "0.086 0.237 0.801\n0.582 0.094 0.433\n0.479 0.160 0.735\n0.114 0.391 0.517\n\
                      0.431 0.587 0.738\n0.956 0.284 0.649\n0.696 0.293 0.001\n0.973 0.298 0.314\n\
                      0.892 0.585 0.471\n0.773 0.030 0.707\n0.374 0.091 0.661\n0.931 0.207 0.630\n";

const SLAB: &str = "Lattice=\"1.1 0 0 0 1.2 0 0 0 1.3\" pbc=\"T T F\"";

/// A frame of the points, each row between these.
fn frame(comment: &str, before: &str, behind: &str) -> String {
    let rows: String = (POINTS.lines())
        .map(|row| format!("{before}{row}{behind}\n"))
        .collect();
    format!("12\n{comment}\n{rows}")
}

/// The number of pairs of a file, and standard error.
fn pairs(place: &Workplace, file: &str, more: &[&str]) -> (u64, String) {
    let args = ["neighbors", file, "--radius", "0.4", "--json"];
    let output = place.run(&[&args, more].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{file}: {errors}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (found["pairs"].as_u64().unwrap(), errors)
}

#[test]
fn rows_without_a_species_are_points() {
    let place = Workplace::new();
    for (name, text, note) in [
        ("noname3", frame("c", "", ""), ""),
        (
            "noname5",
            frame("x y z vx", "", " 0.5"),
            "column 4 has no name",
        ),
        (
            "noname6",
            frame("", "", " 0 0 1"),
            "columns 4 to 6 have no names",
        ),
        ("named", frame("c", "Ar ", ""), ""),
        ("mark", format!("\u{feff}{}", frame("c", "Ar\t", "\r")), ""),
    ] {
        let name = format!("{name}.xyz");
        place.file(&name, text);
        let (found, errors) = pairs(&place, &name, &[]);
        assert_eq!(found, 28, "{name}");
        assert_eq!(
            errors.lines().count(),
            usize::from(!note.is_empty()),
            "{errors}"
        );
        assert!(errors.contains(note), "{errors}");
    }
    place.file("cloud.xyz", POINTS);
    place.file(
        "cloud.txt",
        frame("", "", " 0 117").replace("12\n\n", "12\n"),
    );
    for (name, note) in [("cloud.xyz", ""), ("cloud.txt", "columns 4 to 5")] {
        let (found, errors) = pairs(&place, name, &[]);
        assert_eq!((found, errors.contains(note)), (28, true), "{errors}");
    }
    let rows = frame("c", "", " 0 117 130 149").replace("12\nc\n", "12\n");
    place.file("pts.xyz", rows);
    place.refuses(
        "call the file .pts",
        &words("neighbors pts.xyz --radius 0.4"),
    );
    place.file("a.xtc", "binary");
    place.misused("OVITO convert", &words("neighbors a.xtc --radius 0.4"));
}

/// A LAMMPS trajectory of two frames with the points, in the box of [`SLAB`].
fn dump() -> String {
    let rows: String = (POINTS.lines().zip(1..))
        .map(|(row, id)| format!("{id} 1 {row} 0.5 0 0\n"))
        .collect();
    let frame = |step: u32| {
        format!(
            "ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n12\nITEM: BOX BOUNDS pp pp ff\n\
             0 1.1\n0 1.2\n0 1.3\nITEM: ATOMS id type x y z vx vy vz\n{rows}"
        )
    };
    frame(0) + &frame(100)
}

#[test]
fn files_are_converted_with_their_box_and_their_frames() {
    let place = Workplace::new();
    place.file("run.lammpstrj", dump() + "ITEM: TIMESTEP\n200\n");
    assert_eq!(pairs(&place, "run.lammpstrj", &["--frame", "2"]).0, 40);
    let all = place.json(&words(
        "convert run.lammpstrj all.extxyz --frame all --json",
    ));
    assert_eq!((&all["frames"], &all["points"]), (&2.into(), &24.into()));
    let (found, errors) = pairs(&place, "all.extxyz", &["--frame", "last"]);
    assert_eq!(found, 40);
    assert!(errors.contains("read frame 2 of 2"), "{errors}");
    for (to, lost, found) in [
        ("a.extxyz", "", 40),
        ("a.csv", "a.csv: not written: the box", 28),
        ("a.vtp", "a.vtp: not written: the box", 28),
        (
            "a.npy",
            "a.npy: not written: the box, id, type, velocity",
            28,
        ),
    ] {
        let output = place.run(&["convert", "run.lammpstrj", to]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && errors.contains(lost), "{errors}");
        assert_eq!(errors.contains("not written"), !lost.is_empty(), "{errors}");
        assert_eq!(pairs(&place, to, &[]).0, found, "{to}");
    }
    let line = "convert run.lammpstrj a.npy --frame all";
    place.misused("only .extxyz and .xyz hold several frames", &words(line));
    place.misused("use one of these", &words("convert run.lammpstrj a.dump"));
    place.misused("use one of these", &words("convert a.csv a.csv.gz"));
    place.refuses(
        "there is no frame 4",
        &words("convert run.lammpstrj b.csv --frame 4"),
    );
    for line in [
        "convert a.csv a.csv",
        "convert run.lammpstrj a.csv --frame first",
        "neighbors run.lammpstrj --radius 0.4 --frame all",
    ] {
        assert_eq!(place.run(&words(line)).status.code(), Some(2), "{line}");
    }
}

#[test]
fn boxes_in_comments_are_the_outer_ones_in_every_style() {
    let place = Workplace::new();
    for comment in [
        SLAB,
        "Lattice = \"1.1 0 0 0 1.2 0 0 0 1.3\" Properties = species:S:1:pos:R:3 pbc = \"T T F\"",
        "Lattice=[[1.1,0,0],[0,1.2,0],[0,0,1.3]] Properties=species:S:1:pos:R:3 pbc=[T, T, F]",
        "Lattice={1.1D+00 1.2d0 1.3} pbc={1 1 0} Origin=\"3 3 3\"",
        r#"history="\" Lattice={9 9 9} pbc=F \"" Lattice="1.1 1.2 1.3" pbc="true True f""#,
    ] {
        place.file("frame.xyz", frame(comment, "Ar ", ""));
        let (found, errors) = pairs(&place, "frame.xyz", &[]);
        assert_eq!((found, errors.as_str()), (40, ""), "{comment}");
    }
    place.file(
        "open.xyz",
        frame("pbc=\"T T T\" Properties=pos:R:3", "", ""),
    );
    for line in [
        "neighbors open.xyz --radius 0.4",
        "lj open.xyz --cutoff 0.4",
        "bench --cloud open.xyz --radius 0.4 --repetitions 1",
        "tune open.xyz --radius 0.4",
    ] {
        place.refuses("pbc=\"T T T\" but no Lattice: give --box", &words(line));
    }
    assert_eq!(pairs(&place, "open.xyz", &["--periodic", ""]).0, 28);
    let slab = ["--box", "1.1,1.2,1.3", "--periodic", "xy"];
    assert_eq!(pairs(&place, "open.xyz", &slab).0, 40);
}

#[test]
fn frames_are_counted_and_can_be_chosen() {
    let place = Workplace::new();
    let two = "2\nsecond\nAr 0 0 0\nAr 0.3 0 0\n";
    place.file(
        "run.xyz",
        frame("first", "Ar ", "") + two + "1\nthird\nAr 0 0 0\n\n",
    );
    for (more, expected, said) in [
        (
            &[][..],
            28,
            "read frame 1 of 3; select another by --frame N or --frame last",
        ),
        (&["--frame", "2"], 2, "read frame 2 of 3"),
        (&["--frame", "last"], 0, "read frame 3 of 3"),
    ] {
        let (found, errors) = pairs(&place, "run.xyz", more);
        assert_eq!(found, expected, "{more:?}");
        assert!(errors.contains(said), "{errors}");
    }
    for line in [
        "neighbors run.xyz --radius 0.4",
        "lj run.xyz --cutoff 0.4",
        "coulomb run.xyz --grid 2,2,2 --spacing 1",
        "bench --cloud run.xyz --radius 0.4",
        "tune run.xyz --radius 0.4",
    ] {
        place.refuses(
            "no frame 4: the file has 3",
            &words(&format!("{line} --frame 4")),
        );
    }
    place.misused(
        "lattice is a named cloud",
        &words("bench --frame 2 --points 10"),
    );
    let output = place.run(&words("lj run.xyz --cutoff 0.4 --frame 0"));
    assert_eq!(output.status.code(), Some(2));
    place.file(
        "torn.xyz",
        frame("first", "Ar ", "") + "2\nsecond\nAr 0 0 0\n",
    );
    let (found, errors) = pairs(&place, "torn.xyz", &["--frame", "last"]);
    assert_eq!(found, 28);
    assert!(
        errors.contains("read frame 1 of 1 (another one is truncated)"),
        "{errors}"
    );
}

#[test]
fn lj_takes_momenta_masses_and_charges_as_ase_writes_them() {
    let place = Workplace::new();
    let comment = "Lattice=\"8 0 0 0 8 0 0 0 8\" pbc=\"T T T\" Properties=species:S:1:pos:R:3";
    let columns = ":masses:R:1:momenta:R:3:initial_charges:R:1";
    let ase = |mass: &str, half: &str| {
        format!(
            "2\n{comment}{columns}\nAr 0 0 0 {mass} 0.5 0 0 0.3\nAr 1.2 0 0 {half} -0.5 0 0 -0.3\n"
        )
    };
    place.file("ase.extxyz", ase("1.0", "1.0"));
    place.file("heavy.extxyz", ase("2.0", "2.0"));
    place.file(
        "table.csv",
        "x,y,z,mass,px,py,pz,q\n0,0,0,2,.5,0,0,.3\n1.2,0,0,2,-.5,0,0,-.3\n",
    );
    let flags = "--cutoff 3 --shift force --steps 2 --dt 1e-6 --json --output";
    for (file, energy) in [
        ("ase.extxyz", 0.25),
        ("heavy.extxyz", 0.125),
        ("table.csv", 0.125),
    ] {
        let line = format!("lj {file} {flags} {file}.run");
        let output = place.run(&words(&line));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        assert!(
            errors.contains("velocities are momenta / mass") && errors.contains("eV"),
            "{errors}"
        );
        let table = place.0.path().join(format!("{file}.run/observations.csv"));
        let table = std::fs::read_to_string(table).unwrap();
        let first: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(first[3].parse::<f64>().unwrap(), energy, "{file}");
        let line = format!("lj {file} --cutoff 3 --json");
        let bare = place.json(&words(&line))["pair_energy"].as_f64().unwrap();
        let charged = place.json(&words(&format!("{line} --charges")));
        let more = charged["pair_energy"].as_f64().unwrap() - bare;
        assert!((more + 0.09 / 1.2).abs() < 1e-5, "{file}: {more}");
    }
    // A run that starts from a frame has the same energy.
    let frame =
        "lj heavy.extxyz.run/trajectory.extxyz --frame 1 --cutoff 3 --steps 1 --dt 1e-6 --json";
    let again = place.json(&words(frame))["kinetic_energy"]
        .as_f64()
        .unwrap();
    assert!((again - 0.125).abs() < 1e-4, "{again}");
    place.file("two.extxyz", ase("1.0", "2.0"));
    let line = "lj two.extxyz --cutoff 3";
    place.refuses("atom 1 has mass 2 and atom 0 has mass 1", &words(line));
    place.file(
        "flat.extxyz",
        "1\nProperties=pos:R:3:momenta:R:2\n0 0 0 1 1\n",
    );
    place.refuses(
        "'momenta' needs three numbers per point, but has 2",
        &words("lj flat.extxyz --cutoff 3"),
    );
    place.file("none.extxyz", ase("-1.0", "-1.0"));
    place.refuses("a mass is -1", &words("lj none.extxyz --cutoff 3"));
}

#[test]
fn columns_of_unknown_meaning_are_named_on_every_command() {
    let place = Workplace::new();
    let said = |line: &str| {
        let output = place.run(&words(line));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{line}: {errors}");
        errors
    };
    let columns = "id:I:1:pos:R:3:speed:R:3:move_mask:L:1:charge:R:1";
    place.file(
        "a.xyz",
        format!("1\nProperties={columns}\n7 0 0 0 1 2 3 T 1\n"),
    );
    place.file("b.csv", "id,x,y,z,speed,move_mask,charge\n7,0,0,0,1,1,1\n");
    place.file(
        "c.csv",
        "id,m,x,y,z,vx,vy,vz,speed,move_mask\n7,1,0,0,0,0,0,0,1,1\n",
    );
    for line in [
        "neighbors a.xyz --radius 1",
        "neighbors b.csv --radius 1",
        "lj a.xyz --cutoff 1 --charges",
        "lj b.csv --cutoff 1 --charges",
        "coulomb a.xyz --grid 2,2,2 --spacing 1",
        "coulomb b.csv --grid 2,2,2 --spacing 1",
        "bench --cloud a.xyz --radius 1 --repetitions 1",
        "gravity c.csv --steps 1 --dt 0.1",
    ] {
        assert!(
            said(line).contains("not used: 'speed', 'move_mask'"),
            "{line}: {}",
            said(line)
        );
    }
    assert!(
        said("lj a.xyz --cutoff 1").contains("'charge' is not used: add --charges"),
        "charges without --charges"
    );
    place.file("quiet.csv", "id,x,y,z,charge\n7,0,0,0,1\n");
    assert_eq!(said("neighbors quiet.csv --radius 1"), "");
    let box_of = "1\nLattice=\"2 2 2\" Properties=pos:R:3:q:R:1\n0 0 0 1\n";
    place.file("box.xyz", box_of);
    let line = "coulomb box.xyz --grid 2,2,2 --spacing 1";
    assert!(
        said(line).contains("periodic box is not used"),
        "{}",
        said(line)
    );
}

#[test]
fn pairs_near_the_radius_are_counted() {
    let place = Workplace::new();
    let mut lattice = String::new();
    for k in 0..512 {
        lattice += &format!("{},{},{}\n", k / 64, k / 8 % 8, k % 8);
    }
    let tenth = lattice.replace(',', "e-1,").replace('\n', "e-1\n");
    place.file("tenth.csv", tenth);
    place.file("whole.csv", lattice);
    for (file, radius, near) in [
        ("tenth.csv", "0.1", 2688),
        ("whole.csv", "1", 2688),
        ("tenth.csv", "0.10000005", 2688),
        ("tenth.csv", "0.09999995", 2688),
        ("whole.csv", "1.01", 0),
    ] {
        for precision in [&[][..], &["--precision", "f64"]] {
            let args = ["neighbors", file, "--radius", radius, "--json"];
            let output = place.run(&[&args, precision].concat());
            let errors = String::from_utf8(output.stderr).unwrap();
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(found["pairs_near_radius"], near, "{file} {radius}");
            let said = errors.contains(&format!("{near} pairs within 1e-6 of the radius"));
            assert_eq!(said, near > 0, "{errors}");
        }
    }
}
