//! The dam break from its flags to its files.

use std::path::Path;

use nearfield_dam_break::{Args, Error, ErrorKind, FrontSummary, Summary, run, to_json};
use nearfield_plot::Picture;
use nearfield_sph::Dimensions;

fn small(output: &Path) -> Args {
    Args {
        particles: Some(600),
        dim: Some(Dimensions::Two),
        frames: Some(3),
        output: output.to_owned(),
        ..Args::default()
    }
}

fn front(summary: &Summary) -> &FrontSummary {
    summary.front.as_ref().unwrap()
}

fn deviations(summary: &Summary) -> Vec<f64> {
    front(summary)
        .series
        .iter()
        .map(|one| one.max_deviation.abs())
        .collect()
}

#[test]
fn a_small_run_writes_all_its_files_and_its_front_is_near_the_experiments() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    let summary = run(&small(&output)).unwrap();

    assert_eq!(
        (summary.particles, summary.dim, summary.frames),
        (578, 2, 3)
    );
    assert!((summary.mass_kg - 2000.0).abs() < 0.01);
    assert!(summary.energy.drift.abs() < 5e-3, "{:?}", summary.energy);
    assert!(summary.momentum_residual < 1e-6);
    assert_eq!(front(&summary).series.len(), 3);
    assert!(
        deviations(&summary).iter().all(|&share| share < 0.2),
        "{:?}",
        summary.front
    );

    for name in ["wall.vtp", "energy.csv", "dam_break.gif", "front.png"] {
        let bytes = std::fs::metadata(output.join(name)).unwrap().len();
        assert!(bytes > 1000, "{name}: {bytes} bytes");
    }
    let page = std::fs::read_to_string(output.join("index.html")).unwrap();
    assert_eq!(page.matches("<script>add({\"points\":578,").count(), 3);
    // The front beside the experiments, as far as the tank goes, and the energies.
    let (_, charts) = page.split_once("<script>finish(").unwrap();
    let charts = charts.split_once(")</script>").unwrap().0;
    let charts: serde_json::Value = serde_json::from_str(charts).unwrap();
    assert_eq!(charts[0]["lines"].as_array().unwrap().len(), 4);
    for line in &charts[0]["lines"].as_array().unwrap()[1..] {
        let points = line["points"].as_array().unwrap();
        let inside = |point: &serde_json::Value| point[1].as_f64().unwrap() <= 4.0;
        assert!(points.len() > 3 && points.iter().all(inside), "{line}");
    }
    assert_eq!(charts[1]["title"], "Energy, J per metre of depth");
    assert!(charts[1]["lines"][0]["points"][100][1].as_f64().unwrap() > 0.0);
    let table = std::fs::read_to_string(output.join("front.csv")).unwrap();
    assert!(table.starts_with("time_s,front_m,T,Z\n") && table.lines().count() > 200);
    let written = std::fs::read_to_string(output.join("summary.json")).unwrap();
    assert_eq!(written, to_json(&summary).unwrap());
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(json["particles"], 578);
    assert!(summary.solver_seconds > 0.0 && summary.output_seconds > 0.0);
    assert!(summary.solver_seconds + summary.output_seconds <= summary.wall_seconds);
    // Read back to a unit in the last place.
    let read = json["output_seconds"].as_f64().unwrap();
    assert!((read - summary.output_seconds).abs() < 1e-12);
    assert!(json["front"]["series"][2]["at_T"].is_f64() && json["T"].as_f64() > Some(3.5));
}

#[test]
fn frames_hold_every_particle_and_show_water() {
    let directory = tempfile::tempdir().unwrap();
    run(&Args {
        seconds: Some(0.05),
        ..small(directory.path())
    })
    .unwrap();
    let frame = nearfield_io::read_points(directory.path().join("frame_0002.vtp")).unwrap();
    assert_eq!(frame.len(), 578);
    assert!((frame.time.unwrap() - 0.05).abs() < 1e-9);
    for name in ["velocity", "density", "pressure", "id"] {
        assert!(frame.quantity(name).is_some(), "{name} is missing");
    }
    let open = |name: &str| Picture::read_png(&directory.path().join(name)).unwrap();
    let (first, last) = (open("frame_0000.png"), open("frame_0002.png"));
    let is_blue = |pixel: &&[u8; 3]| pixel[2] > 120 && pixel[0] < 80;
    let blue = first.pixels().iter().filter(is_blue).count();
    assert!(blue > 20_000, "{blue} pixels of water");
    assert!(first != last, "nothing moved");
}

#[test]
fn the_same_flags_give_the_same_front() {
    let fronts = [1, 2].map(|threads| {
        let directory = tempfile::tempdir().unwrap();
        let args = small(directory.path());
        run(&Args {
            threads,
            seconds: Some(0.2),
            frames: Some(0),
            ..args
        })
        .unwrap();
        std::fs::read_to_string(directory.path().join("front.csv")).unwrap()
    });
    assert_eq!(fronts[0], fronts[1]);
}

#[test]
fn every_frame_is_the_same_bytes_for_any_number_of_threads() {
    let frames = [1, 4].map(|threads| {
        let directory = tempfile::tempdir().unwrap();
        let args = Args {
            particles: Some(2000),
            dim: Some(Dimensions::Three),
            threads,
            seconds: Some(0.2),
            frames: Some(9),
            ..small(directory.path())
        };
        assert_eq!(run(&args).unwrap().frames, 9);
        let read = |name: String| std::fs::read(directory.path().join(&name)).expect(&name);
        let names = (0..9).flat_map(|frame| ["vtp", "png"].map(|kind| (frame, kind)));
        let mut files: Vec<Vec<u8>> = names
            .map(|(frame, kind)| read(format!("frame_{frame:04}.{kind}")))
            .collect();
        files.push(read("dam_break.gif".to_owned()));
        files.push(read("index.html".to_owned()));
        files
    });
    for (index, (one, four)) in frames[0].iter().zip(&frames[1]).enumerate() {
        assert!(one == four, "file {index} depends on the number of threads");
    }
}

#[test]
fn a_frame_that_cannot_be_written_fails_the_run_by_its_path() {
    let directory = tempfile::tempdir().unwrap();
    // No frame is named so, so the folder stays until its frame is due.
    let in_the_way = directory.path().join("dam_break.gif");
    std::fs::create_dir(&in_the_way).unwrap();
    let args = Args {
        seconds: Some(0.05),
        ..small(directory.path())
    };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.contains("dam_break.gif"), "{error}");
    assert!(!directory.path().join("summary.json").exists());
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let endless = Args {
        seconds: Some(f64::INFINITY),
        ..small(directory.path())
    };
    let setting = |error: &Error, wanted: &str| matches!(error.kind(), ErrorKind::Setting { name, .. } if *name == wanted);
    let error = run(&endless).unwrap_err();
    assert!(setting(&error, "seconds"), "{error}");
    for particles in [Some(0), Some(usize::MAX)] {
        let error = run(&Args {
            particles,
            ..small(directory.path())
        })
        .unwrap_err();
        assert!(setting(&error, "particles"), "{error}");
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = run(&small(&file.join("out"))).unwrap_err().to_string();
    assert!(error.contains("file/out"), "{error}");
    let device = nearfield::Device::Gpu(7);
    let error = run(&Args {
        device: device.into(),
        ..small(directory.path())
    })
    .unwrap_err()
    .to_string();
    assert!(error.contains("gpu:7"), "{error}");
}

/// Takes minutes without optimisation (`cargo test --release -p nearfield-dam-break -- --ignored`).
/// In space it has half as many particles as the program has by default.
#[test]
#[ignore = "takes minutes without optimisation"]
fn the_front_stays_inside_the_band_in_the_plane_and_in_space() {
    for (dim, particles) in [(Dimensions::Two, None), (Dimensions::Three, Some(32_000))] {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().to_owned();
        let summary = run(&Args {
            dim: Some(dim),
            particles,
            frames: Some(0),
            output,
            ..Args::default()
        })
        .unwrap();
        assert_eq!(
            front(&summary).inside,
            Some(true),
            "{dim:?}: {:?}",
            summary.front
        );
        assert!(
            summary.energy.drift.abs() < 1e-3,
            "{dim:?}: {:?}",
            summary.energy
        );
    }
}
