//! `nearfield gravity` and `nearfield coulomb`.

use crate::{Workplace, text, words};
use nearfield_plot::Picture;
use serde_json::Value;
use std::path::Path;

/// Two equal bodies on a circle of diameter 1 around each other, as a table.
const PAIR: &str = "name,mass,x,y,z,vx,vy,vz\n\
    a,1,-0.5,0,0,0,-0.7071067811865476,0\nb,1,0.5,0,0,0,0.7071067811865476,0\n";

#[test]
fn gravity_tells_energies_and_writes_frames_energies_a_picture_and_checkpoints() {
    let place = Workplace::new();
    let file = place.file("pair.csv", PAIR);
    let out = place.0.path().join("out");
    let run = |file: &[&str], steps: &str, more: &[&str]| {
        let args = [
            &["gravity"],
            file,
            &["--steps", steps, "--device", "cpu", "--json"],
            more,
        ];
        place.json(&args.concat())
    };
    let folder = format!("--output {} --frames 3 --checkpoint 60", text(&out));
    let folder = words(&folder);
    let begun = [&["--dt", "0.01"], &folder[..]].concat();
    let found = run(&[text(&file)], "100", &begun);
    let number = |found: &Value, name: &str, part: &str| found[name][part].as_f64().unwrap();
    assert_eq!(
        (&found["bodies"], &found["steps"], &found["frames"]),
        (&2.into(), &100.into(), &3.into())
    );
    assert!(
        (number(&found, "energy_before", "total") + 0.5).abs() < 1e-12,
        "{found}"
    );
    assert!(
        found["energy_change"].as_f64().unwrap().abs() < 1e-4,
        "{found}"
    );
    for name in [
        "frame_0000.vtp",
        "frame_0001.npy",
        "frame_0002.vtp",
        "energy.csv",
        "gravity.png",
    ] {
        assert!(
            std::fs::metadata(out.join(name)).unwrap().len() > 0,
            "{name}"
        );
    }
    assert_eq!(
        std::fs::read_to_string(out.join("energy.csv"))
            .unwrap()
            .lines()
            .count(),
        4
    );

    // A run that goes on from step 60 ends with the bytes of the one that was not interrupted.
    let last = std::fs::read(out.join("frame_0002.npy")).unwrap();
    let checkpoint = out.join("gravity.checkpoint");
    let kept = place.0.path().join("kept");
    std::fs::copy(&checkpoint, &kept).unwrap();
    let found = run(&["--restart", text(&kept)], "100", &folder);
    assert_eq!(
        (&found["first_step"], &found["dt"]),
        (&60.into(), &0.01.into())
    );
    assert_eq!(std::fs::read(out.join("frame_0002.npy")).unwrap(), last);
    place.refuses(
        "--dt 0.5",
        &words(&format!(
            "gravity --restart {} --steps 100 --dt 0.5",
            text(&kept)
        )),
    );
    place.refuses(
        "f64",
        &words(&format!(
            "gravity --restart {} --steps 9 --precision f32",
            text(&kept)
        )),
    );
    let bare = place.file("bare.csv", "x,y,z\n0,0,0\n");
    place.refuses(
        "no column mass",
        &["gravity", text(&bare), "--steps", "1", "--dt", "1"],
    );
}

#[test]
fn coulomb_gives_the_potentials_of_atoms_as_arrays_and_images() {
    let place = Workplace::new();
    // One atom on a grid point, which it does not count for, and one beside the grid.
    let file = place.file("atoms.csv", "x,y,z,charge\n0,0,0,2\n0,0,5,-1\n");
    let array = place.0.path().join("potential.npy");
    let grid = words("--grid 3,2,1 --spacing 1 --origin 0,0,0 --device cpu --json");
    let run = |more: &[&str]| place.json(&[&["coulomb", text(&file)], &grid[..], more].concat());
    let potential = |x: f64, y: f64, cutoff: f64| {
        let [near, far] = [x.hypot(y), x.hypot(y).hypot(5.0)];
        let from = |charge: f64, d: f64| {
            if d > 0.0 && d <= cutoff {
                charge / d
            } else {
                0.0
            }
        };
        from(2.0, near) + from(-1.0, far)
    };
    for (more, cutoff, most) in [
        (&[][..], f64::INFINITY, 1e-6),
        (&["--exact", "--precision", "f64"], f64::INFINITY, 1e-15),
        (&["--cutoff", "2"], 2.0, 1e-6),
    ] {
        let found = run(&[more, &["--output", text(&array)]].concat());
        assert_eq!(found["atoms"], 2);
        let bytes = std::fs::read(&array).unwrap();
        let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!(npy.shape(), [1, 2, 3]);
        let values: Vec<f64> = if more.contains(&"f64") {
            npy.into_vec().unwrap()
        } else {
            npy.into_vec::<f32>()
                .unwrap()
                .into_iter()
                .map(f64::from)
                .collect()
        };
        for (n, value) in values.iter().enumerate() {
            let expected = potential((n % 3) as f64, (n / 3) as f64, cutoff);
            assert!(
                (value - expected).abs() <= most,
                "{more:?}: point {n}: {value}, {expected}"
            );
        }
        let max = values.iter().copied().fold(f64::MIN, f64::max);
        assert!((found["max"].as_f64().unwrap() - max).abs() < 1e-12);
    }
    let found = run(&["--field", "--output", text(&array)]);
    assert_eq!(found["output"].as_array().unwrap().len(), 2);
    let bytes = std::fs::read(place.0.path().join("potential_field.npy")).unwrap();
    let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(npy.shape(), [1, 2, 3, 3]);
    let field: Vec<f32> = npy.into_vec().unwrap();
    // At (1, 0, 0): along x from the charge of 2, and towards the one of -1.
    let far = 26f32.powf(-1.5);
    for (found, expected) in field[3..6].iter().zip([2.0 - far, 0.0, 5.0 * far]) {
        assert!((found - expected).abs() < 1e-6, "{field:?}");
    }
    let picture = place.0.path().join("potential.png");
    let drawn = run(&["--picture", text(&picture)]);
    assert_eq!(drawn["output"].as_array().unwrap().len(), 1);
    let shown = Picture::read_png(&picture).unwrap();
    // The charge of 2 has neighbours of positive potential in a row: warm colours, on white.
    let warm = shown
        .pixels()
        .iter()
        .filter(|[red, _, blue]| *red > 180 && *blue < 160);
    assert!(shown.size() == (900, 780) && warm.count() > 10_000);
    place.misused(
        "pictures are written as .png",
        &words("coulomb atoms.csv --grid 2,2,2 --spacing 1 --picture a.jpg"),
    );
    let image = place.0.path().join("potential.vti");
    run(&["--field", "--output", text(&image)]);
    let start = String::from_utf8_lossy(&std::fs::read(&image).unwrap()[..600]).into_owned();
    assert!(
        start.contains("WholeExtent=\"0 2 0 1 0 0\"") && start.contains("\"field\""),
        "{start}"
    );
    let bare = place.file("bare.txt", "0 0 0\n");
    let refused = |culprit: &str, file: &Path, more: &[&str]| {
        place.refuses(
            culprit,
            &[&["coulomb", text(file), "--grid", "2,2,2"], more].concat(),
        );
    };
    refused("3 columns", &bare, &["--spacing", "1"]);
    refused("spacing is 0", &file, &["--spacing", "0"]);
    let output = [
        "coulomb",
        text(&file),
        "--grid",
        "2,2,2",
        "--spacing",
        "1",
        "--output",
        "potential.csv",
    ];
    place.misused(".npy or .vti", &output);
}

#[test]
fn gravity_that_blows_up_fails_names_the_step_and_keeps_what_was_good() {
    let place = Workplace::new();
    // Two bodies that fall into each other, with steps that are far too long.
    let file = place.file(
        "fall.csv",
        "mass,x,y,z,vx,vy,vz\n1,-0.5,0,0,0,0.1,0\n1,0.5,0,0,0,-0.1,0\n",
    );
    let args = |more: &[&str]| -> Vec<String> {
        let all = [&["gravity", text(&file), "--device", "cpu"], more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    for (more, folder) in [
        (&["--steps", "400", "--dt", "0.02", "--json"][..], "one"),
        (
            &words("--steps 400 --dt 0.02 --json --integrator symplectic-euler"),
            "two",
        ),
    ] {
        let out = place.0.path().join(folder);
        let written = format!("--output {} --frames 101 --checkpoint 4", text(&out));
        let written = words(&written);
        let all = args(&[more, &written].concat());
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let output = place.run(&all);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(output.stdout.is_empty(), "JSON is one object or nothing");
        assert!(
            errors.contains("at step ") && errors.contains("blown up"),
            "{errors}"
        );
        let step = errors.split("at step ").nth(1).unwrap();
        let step: usize = step.split_whitespace().next().unwrap().parse().unwrap();
        assert!((1..400).contains(&step), "{errors}");
        // Energies up to then, a frame for each, and a checkpoint that a run can go on from.
        let table = std::fs::read_to_string(out.join("energy.csv")).unwrap();
        let rows: Vec<_> = table.lines().skip(1).collect();
        assert!(
            !rows.is_empty() && rows.len() <= step / 4 + 1,
            "{step}: {table}"
        );
        let energy = |row: &str| row.split(',').nth(1).unwrap().parse::<f64>().unwrap();
        assert!(rows.iter().all(|row| energy(row).abs() < 5.0), "{table}");
        for frame in 0..rows.len() {
            let frame = out.join(format!("frame_{frame:04}.vtp"));
            assert_eq!(nearfield_io::read_points(&frame).unwrap().len(), 2);
        }
        assert!(!out.join(format!("frame_{:04}.vtp", rows.len())).exists());
        // Without files it fails too.
        let all = args(more);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        place.refuses("blown up", &all);
    }
}

#[test]
fn negative_masses_are_refused_with_their_line() {
    let place = Workplace::new();
    place.file("row.txt", "# bodies\n\n1 0 0 0 0 0 0\n-1.5 1 0 0 0 0 0\n");
    place.file(
        "named.csv",
        "x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,1\n1,0,0,0,0,0,-1.5\n",
    );
    place.file(
        "nan.csv",
        "mass,x,y,z,vx,vy,vz\n1,0,0,0,0,0,0\nnan,1,0,0,0,0,0\n",
    );
    for (file, line, what) in [
        ("row.txt", 4, "mass of body 1 is -1.5"),
        ("named.csv", 3, "mass of body 1 is -1.5"),
        ("nan.csv", 3, "mass of body 1 holds NaN"),
    ] {
        let command = format!("gravity {file} --dt 0.1 --steps 1");
        place.refuses(
            &format!("{file}: line {line}: the {what}"),
            &words(&command),
        );
    }
}

#[test]
fn a_run_that_goes_on_keeps_the_energies_before() {
    let place = Workplace::new();
    let file = place.file("pair.csv", PAIR);
    let folder = ["--output", "out", "--frames", "5", "--json"];
    let begun = format!(
        "gravity {} --dt 0.01 --steps 40 --checkpoint 20",
        text(&file)
    );
    let begun = words(&begun);
    place.json(&[&begun[..], &folder].concat());
    let on = words("gravity --restart out/gravity.checkpoint --steps 80");
    place.json(&[&on[..], &folder].concat());
    let table = std::fs::read_to_string(place.0.path().join("out/energy.csv")).unwrap();
    let times: Vec<f64> = (table.lines().skip(1))
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert!(times.len() >= 6 && times[0] == 0.0, "{table}");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{table}");
}

#[test]
fn coulomb_takes_f64_where_f32_would_move_atoms() {
    let place = Workplace::new();
    place.file("far.csv", "x,y,z,charge\n1e7,0,0,1\n10000000.3,0,0,-1\n");
    let args = words("coulomb far.csv --grid 2,1,1 --spacing 1 --origin 1e7,1,0 --json");
    let found = place.json(&args);
    assert_eq!(found["precision"], "f64");
    let near = 1.0 - 1.0 / 1.09f64.sqrt();
    assert!(
        (found["max"].as_f64().unwrap() - near).abs() < 1e-7,
        "{found}"
    );
    let asked = place.run(&[&args[..], &["--precision", "f32"]].concat());
    assert!(asked.status.success());
    let warning = String::from_utf8(asked.stderr).unwrap();
    assert!(warning.contains("f32 moves point 1"), "{warning}");
}

#[test]
fn no_bodies_have_no_energy_and_none_that_changes() {
    let place = Workplace::new();
    place.file("none.csv", "m,x,y,z,vx,vy,vz\n");
    place.file(
        "massless.csv",
        "m,x,y,z,vx,vy,vz\n0,0,0,0,1,0,0\n0,1,0,0,0,0,0\n",
    );
    for file in ["none.csv", "massless.csv"] {
        let line = format!("gravity {file} --steps 3 --dt 0.5 --json --output run");
        let run = place.json(&words(&line));
        assert_eq!(run["energy_change"].as_f64(), Some(0.0), "{run}");
        for energy in ["energy_before", "energy_after"] {
            let total = run[energy]["total"].as_f64();
            assert_eq!(total.map(f64::to_bits), Some(0), "{run}");
        }
    }
}

#[test]
fn long_numbers_are_printed_briefly() {
    let place = Workplace::new();
    place.file("b.txt", "0 1 0 0 0 0 0 0\n1 1 1 0 0 0 0 0\n");
    for line in [
        "gravity b.txt --steps 1 --dt 1e300",
        "gravity b.txt --steps 1 --dt 1e-300 --softening 1e-300",
        "neighbors v.csv --radius 1e-300",
        "neighbors v.csv --radius 1e300",
        "lj v.csv --cutoff 1e-300",
        "lj v.csv --cutoff 0.1 --steps 1 --dt -1e300",
        "neighbors v.csv --radius 0.1 --box 1e-300,1,1",
        "coulomb b.txt --grid 2,2,2 --spacing 1e300",
    ] {
        place.file("v.csv", "x,y,z\n0.1,0,0\n0.2,0,0\n");
        let output = place.run(&words(line));
        for stream in [output.stdout, output.stderr] {
            let text = String::from_utf8(stream).unwrap();
            assert!(!text.contains("000000000000"), "{line}: {text}");
        }
    }
    place.misused("radius 1e-300", &words("neighbors v.csv --radius 1e-300"));
    place.misused("radius 1e300", &words("neighbors v.csv --radius 1e300"));
}
