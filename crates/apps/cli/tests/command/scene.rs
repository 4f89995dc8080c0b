//! `nearfield dam-break --scene FILE`.

use super::{Workplace, text, words};

const SCENE: &str = "dimensions = 2\nspacing = 0.05\nseconds = 0.05\ntank = [1.0, 0.5]\n\
    [[water]]\nfrom = [0.0, 0.0]\nto = [0.4, 0.3]\n\
    [[obstacle]]\nfrom = [0.6, 0.0]\nto = [0.7, 0.1]\n\
    [probes]\ninterval = 0.01\n\
    [[probes.pressure]]\nname = \"P\"\nat = [0.0, 0.05]\n\
    [[probes.height]]\nname = \"H\"\nat = [0.2]\n";

#[test]
fn a_scene_runs_with_the_flags_of_the_column() {
    let place = Workplace::new();
    place.file("scene.toml", SCENE);
    let run = |output: &str, flags: &str| {
        let line =
            format!("dam-break --scene scene.toml --frames 2 --json --output {output} {flags}");
        place.json(&words(&line))
    };
    let summary = run("one", "--device cpu --threads 1 --trace one.jsonl");
    assert_eq!(
        (&summary["particles"], &summary["dim"]),
        (&48.into(), &2.into())
    );
    assert!(
        summary["front"].is_null() && summary["probes"]["samples"] == 6,
        "{summary}"
    );
    let read = |path: &str| std::fs::read_to_string(place.0.path().join(path)).unwrap();
    let table = read("one/probes.csv");
    assert!(table.starts_with("time_s,P_pa,H_m\n"), "{table}");
    // 0.25 m of water above the probe but for the face that has let go.
    let first: Vec<f64> = (table.lines().nth(1).unwrap().split(','))
        .map(|value| value.parse().unwrap())
        .collect();
    assert!(
        (1000.0..2452.0).contains(&first[1]) && (first[2] - 0.3).abs() < 0.02,
        "{first:?}"
    );
    assert!(read("one.jsonl").contains("sph.step"));
    // Backends and threads only divide the work.
    for flags in ["--device cpu --threads 3", "--device emulated"] {
        run("two", flags);
        assert_eq!(read("two/probes.csv"), table, "{flags}");
    }
    // Settings take effect where there is something to set, and the summary says so.
    let summary = run("two", "--device cpu --policy band --strategy auto");
    assert!(summary["policy"].is_null() && summary["strategy"].is_null());
    for policy in ["model", "fixed:3"] {
        let flags = format!("--device emulated --policy {policy} --strategy child-per-cell");
        for more in ["", "--ranks 2"] {
            let summary = run("two", &format!("{flags} {more}"));
            assert_eq!(summary["policy"], policy, "{summary}");
        }
    }
    let finer = run("three", "--particles 192 --seconds 0.01 --quick");
    assert_eq!(
        finer["spacing_m"].as_f64().map(|x| (1000.0 * x).round()),
        Some(25.0)
    );
}

#[test]
fn a_bad_scene_is_refused_with_its_line_and_value() {
    let place = Workplace::new();
    for (from, to, culprit) in [
        (
            "to = [0.4, 0.3]",
            "to = [0.4, 0.6]",
            "bad.toml: line 7: water 1: to[1] is 0.6",
        ),
        (
            "to = [0.4, 0.3]",
            "to = [0.65, 0.3]",
            "line 9: obstacle 1 overlaps water 1",
        ),
        ("at = [0.2]", "at = [1.2]", "line 18: probe H: at[0] is 1.2"),
        ("tank", "tnak", "line 4: unknown field `tnak`"),
    ] {
        place.file("bad.toml", SCENE.replacen(from, to, 1));
        place.refuses(culprit, &words("dam-break --scene bad.toml --output out"));
        assert!(!place.0.path().join("out").exists());
    }
    place.refuses("none.toml", &words("dam-break --scene none.toml"));
    // An output must not replace the scene.
    let scene = place.file("summary.json", SCENE);
    let output = place.run(&["dam-break", "--output", ".", "--scene", text(&scene)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(scene.is_file());
}
