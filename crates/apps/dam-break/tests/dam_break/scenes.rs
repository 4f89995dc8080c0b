//! Scenes of files, from the file to the tables.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nearfield_dam_break::{Args, Scene, run};
use nearfield_sph::Dimensions;

fn shipped(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/scenes");
    folder.join(name)
}

fn of(scene: PathBuf, output: &Path) -> Args {
    Args {
        scene: Some(scene),
        frames: Some(0),
        output: output.to_owned(),
        ..Args::default()
    }
}

/// The columns of a table by name.
fn columns(path: &Path) -> HashMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut columns: HashMap<String, Vec<f64>> = HashMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split(',')) {
            let column = columns.entry((*name).to_owned()).or_default();
            column.push(value.parse().unwrap());
        }
    }
    columns
}

#[test]
fn the_scenes_that_are_shipped_can_be_read() {
    let folder = std::fs::read_dir(shipped("")).unwrap();
    let scenes: Vec<Scene> = folder
        .map(|entry| Scene::read(&entry.unwrap().path()).unwrap())
        .collect();
    assert!(scenes.len() >= 2 && scenes.iter().all(|scene| scene.spacing.is_some()));
}

#[test]
fn water_at_rest_has_the_hydrostatic_pressure_within_two_percent() {
    let directory = tempfile::tempdir().unwrap();
    let args = of(shipped("still_water.toml"), directory.path());
    let summary = run(&args).unwrap();
    assert_eq!((summary.particles, summary.dim), (800, 2));
    assert!(summary.rounding_m < 1e-6 && summary.front.is_none());
    let columns = columns(&directory.path().join("probes.csv"));
    let last = |name: &str| {
        let both = columns["time_s"].iter().zip(&columns[name]);
        let late: Vec<f64> = both
            .filter(|pair| *pair.0 > 3.0)
            .map(|pair| *pair.1)
            .collect();
        assert!(late.len() > 90, "{}", late.len());
        late.iter().sum::<f64>() / late.len() as f64
    };
    for (name, depth) in [("floor_pa", 0.5), ("wall_pa", 0.25), ("middle_pa", 0.3)] {
        let off = last(name) / (9810.0 * depth) - 1.0;
        assert!(off.abs() < 0.02, "{name} is off by {off}");
    }
    assert!((last("height_m") - 0.5).abs() < 0.005);
    assert!((columns["floor_pa"][0] / 4905.0 - 1.0).abs() < 0.01);
}

#[test]
fn a_scene_writes_tables_pictures_and_walls_but_no_front() {
    let directory = tempfile::tempdir().unwrap();
    let args = Args {
        particles: Some(10_000),
        frames: Some(2),
        seconds: Some(0.02),
        ..of(shipped("dam_break_obstacle.toml"), directory.path())
    };
    let summary = run(&args).unwrap();
    // A quarter of the obstacle's height: 31 by 25 by 14 cells of water.
    assert_eq!((summary.dim, summary.particles), (3, 31 * 25 * 14));
    assert!((summary.spacing_m - 0.161 / 4.0).abs() < 1e-6);
    assert!(summary.rounding_m <= 0.5 * summary.spacing_m);
    assert_eq!(summary.frames, 2);
    let probes = columns(&directory.path().join("probes.csv"));
    assert_eq!(probes.len(), 1 + 8 + 4);
    assert_eq!(probes["time_s"].len(), summary.probes.unwrap().samples);
    // The water has not reached the obstacle, and the gauge in it shows its height.
    assert!(probes["P1_pa"].iter().all(|&pressure| pressure == 0.0));
    assert!(
        probes["H4_m"]
            .iter()
            .all(|height| (height - 0.55).abs() < 0.02)
    );
    let path = |name: &str| directory.path().join(name);
    assert!(path("frame_0001.png").is_file() && path("energy.csv").is_file());
    assert!(!path("front.csv").exists() && !path("front.png").exists());
    let page = std::fs::read_to_string(path("index.html")).unwrap();
    for words in [
        "\"solids\":[[[0.",
        "Pressure at probes, Pa",
        "Height of the water, m",
        "\"H4_m\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let walls = nearfield_io::read_points(path("wall.vtp")).unwrap();
    let in_obstacle =
        |x: &&[f32; 3]| x[2] > 0.0 && (0.6..0.9).contains(&x[0]) && (0.25..0.75).contains(&x[1]);
    assert!(walls.positions.iter().filter(in_obstacle).count() > 100);
}

#[test]
fn flags_that_do_not_fit_a_scene_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let args = of(shipped("still_water.toml"), directory.path());
    let refusal = |args: &Args| run(args).unwrap_err().to_string();
    let flat = Args {
        dim: Some(Dimensions::Three),
        ..args.clone()
    };
    assert!(refusal(&flat).contains("it has 2 dimensions, but --dim is 3"));
    let thin = directory.path().join("thin.toml");
    let text = std::fs::read_to_string(shipped("still_water.toml")).unwrap();
    let wall = "\n[[obstacle]]\nfrom = [0.5, 0.6]\nto = [0.51, 0.7]\n";
    std::fs::write(&thin, text + wall).unwrap();
    let refused = refusal(&of(thin, directory.path()));
    assert!(
        refused.contains("obstacle 1 is") && refused.contains("spacing of 0.025"),
        "{refused}"
    );
    let crowd = Args {
        particles: Some(usize::MAX),
        ..args
    };
    assert!(refusal(&crowd).contains("between 1 and 50 million"));
}
