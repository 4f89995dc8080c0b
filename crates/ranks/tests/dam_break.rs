//! The dam break on ranks as threads: the same files on any number of ranks, the physics of one
//! engine, and a run that goes on from a checkpoint on another number of ranks.

mod common;

use common::within;
use nearfield_dam_break::{Error, Summary};
use nearfield_ranks::dam_break::{Args, fault, run_on_threads};
use nearfield_sph::{Checkpoint, Dimensions};
use std::path::Path;

/// A small run in deterministic mode.
fn small(output: &Path) -> Args {
    Args {
        run: nearfield_dam_break::Args {
            particles: Some(450),
            dim: Some(Dimensions::Two),
            seconds: Some(0.4),
            frames: Some(4),
            threads: 1,
            output: output.to_owned(),
            ..nearfield_dam_break::Args::default()
        },
        deterministic: true,
        ..Args::default()
    }
}

fn run(args: Args, ranks: usize) -> Result<Summary, Error> {
    within(240, move || run_on_threads(&args, ranks))
}

/// The files of a directory by name, but for the summary, which has times in it.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).unwrap();
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    let mut files: Vec<_> = entries.map(entry).collect();
    files.retain(|(name, _)| name != "summary.json" && name != "dam_break.checkpoint");
    files.sort();
    files
}

fn assert_same(found: &Path, expected: &Path) {
    let (found, expected) = (files(found), files(expected));
    let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&found), names(&expected));
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        assert!(found == expected, "{name} has other bytes");
    }
}

/// The numbers of a table.
fn table(directory: &Path, name: &str) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(directory.join(name)).unwrap();
    let row = |line: &str| line.split(',').map(|word| word.parse().unwrap()).collect();
    text.lines().skip(1).map(row).collect()
}

#[test]
fn files_are_the_same_on_any_number_of_ranks_and_near_those_of_one_engine() {
    let home = tempfile::tempdir().unwrap();
    let on = |ranks: usize| home.path().join(ranks.to_string());
    let summaries: Vec<Summary> = [1, 2, 3]
        .map(|ranks| run(small(&on(ranks)), ranks).unwrap())
        .into();
    for (summary, ranks) in summaries.iter().zip(1..) {
        assert_same(&on(ranks), &on(1));
        let spread = summary.spread.as_ref().unwrap();
        assert_eq!(spread.ranks, ranks);
        let mine = &spread.particles_per_rank;
        // Domains follow measured times: on a busy machine a rank may end with no particles.
        assert_eq!(mine.iter().sum::<u64>(), summary.particles as u64);
        assert_eq!(mine.len(), ranks);
        assert!(ranks > 1 || spread.halo_points == 0);
        assert_eq!(
            format!("{:?}", summary.energy),
            format!("{:?}", summaries[0].energy)
        );
        let json = nearfield_dam_break::to_json(summary).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["ranks"], ranks);
        assert_eq!(json["particles_per_rank"].as_array().unwrap().len(), ranks);
        assert_eq!(json["halo_points"], spread.halo_points);
        assert_eq!(
            json["device_per_rank"],
            serde_json::json!(vec!["cpu"; ranks])
        );
    }

    let args = small(&on(0)).run;
    let one = within(240, move || nearfield_dam_break::run(&args)).unwrap();
    assert!(one.spread.is_none());
    assert!(
        !nearfield_dam_break::to_json(&one)
            .unwrap()
            .contains("ranks")
    );
    assert_eq!((one.particles, one.wall_particles), {
        let ranked = &summaries[2];
        (ranked.particles, ranked.wall_particles)
    });
    // The same physics, in other orders of summation.
    assert!(one.steps.abs_diff(summaries[2].steps) <= 2);
    for name in ["front.csv", "energy.csv"] {
        let (found, expected) = (table(&on(3), name), table(&on(0), name));
        assert_eq!(found.len(), expected.len());
        let largest = expected
            .iter()
            .flatten()
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!(
                (found - expected).abs() < 2e-3 * largest,
                "{name}: {found} and {expected}"
            );
        }
    }
}

#[test]
fn sums_as_fast_as_can_be_give_the_same_physics() {
    let home = tempfile::tempdir().unwrap();
    let args = Args {
        deterministic: false,
        ..small(home.path())
    };
    let summary = run(args, 3).unwrap();
    assert!(summary.energy.drift.abs() < 5e-3, "{:?}", summary.energy);
    assert!(summary.momentum_residual < 1e-6);
    assert_eq!(summary.frames, 4);
}

#[test]
fn a_run_goes_on_from_a_checkpoint_on_another_number_of_ranks() {
    let home = tempfile::tempdir().unwrap();
    let (whole, parts) = (home.path().join("whole"), home.path().join("parts"));
    let mut args = small(&whole);
    args.run.checkpoint = Some(1);
    let checkpoint = args.run.checkpoint_path();
    // Another thread keeps one of the checkpoints that the run replaces.
    let (kept, path) = (home.path().join("kept"), checkpoint.clone());
    let keeps = kept.clone();
    let keeper = std::thread::spawn(move || {
        while std::fs::copy(&path, &keeps).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    run(args, 3).unwrap();
    keeper.join().unwrap();
    for (rank, ranks) in [(0, 0), (1, 1), (usize::MAX, 3)] {
        assert!(
            Checkpoint::read(&kept, rank, ranks).is_err(),
            "rank {rank} of {ranks}"
        );
    }
    let read = Checkpoint::read(&kept, 0, 1).unwrap();
    let next = u64::from_le_bytes(*read.notes().first_chunk().unwrap()) as usize;
    assert!(
        (1..4).contains(&next) && read.time() < 0.4,
        "frame {next} is next"
    );
    std::fs::create_dir(&parts).unwrap();
    for frame in (0..next).flat_map(|k| ["vtp", "png"].map(|kind| format!("frame_{k:04}.{kind}"))) {
        std::fs::copy(whole.join(&frame), parts.join(&frame)).unwrap();
    }

    let mut args = small(&parts);
    args.run.restart = Some(kept.clone());
    let summary = run(args, 2).unwrap();
    assert_eq!(summary.frames, 4);
    assert_same(&parts, &whole);

    // Another run's, a file cut short, and none.
    let restart = |path: &Path, change: &dyn Fn(&mut nearfield_dam_break::Args)| {
        let mut args = small(&home.path().join("other"));
        args.run.restart = Some(path.to_owned());
        change(&mut args.run);
        let error = run(args, 2).unwrap_err();
        assert!(fault(&error).is_none(), "{error} is a consequence");
        error.to_string()
    };
    let error = restart(&kept, &|args| args.particles = Some(800));
    assert!(error.contains("another run"), "{error}");
    let error = restart(&kept, &|args| args.frames = Some(9));
    assert!(error.contains("4 frames"), "{error}");
    let error = restart(&kept, &|args| args.seconds = Some(0.5));
    assert!(error.contains("after 0.4 s"), "{error}");
    let error = restart(&kept, &|args| args.dim = Some(Dimensions::Three));
    assert!(error.contains("another scene"), "{error}");
    let bytes = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &bytes[..bytes.len() - 1]).unwrap();
    let error = restart(&checkpoint, &|_| {});
    assert!(error.contains("dam_break.checkpoint: its"), "{error}");
    // The last particle is in the share of the last rank, and all have the error.
    let mut bad = bytes.clone();
    let last = bytes.len() - 8;
    bad[last..].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&checkpoint, &bad).unwrap();
    let error = restart(&checkpoint, &|_| {});
    assert!(
        error.contains("it has the id 18446744073709551615"),
        "{error}"
    );
    // Without the frames of its beginning.
    let error = restart(&kept, &|_| {});
    assert!(error.contains("frame_0000.png"), "{error}");
    let error = restart(&home.path().join("nothing"), &|_| {});
    assert!(error.contains("nothing"), "{error}");
}

/// Positions and velocities of files, by id; the file that joins them names them all.
fn by_id(directory: &Path, stem: &str, ranks: usize) -> Vec<(u64, [[u32; 3]; 2])> {
    let names: Vec<String> = match ranks {
        0 => vec![format!("{stem}.vtp")],
        _ => {
            let names = (0..ranks).map(|rank| format!("{stem}.rank{rank}.vtp"));
            let joined = std::fs::read_to_string(directory.join(format!("{stem}.pvtp"))).unwrap();
            let pieces = joined.lines().filter(|line| line.starts_with("<Piece"));
            let expected = names
                .clone()
                .map(|name| format!("<Piece Source=\"{name}\"/>"));
            assert_eq!(pieces.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            names.collect()
        }
    };
    let mut all = Vec::new();
    for name in names {
        let file = nearfield_io::read_points(directory.join(name)).unwrap();
        // A rank may have no particles.
        if file.is_empty() {
            continue;
        }
        let column = |name: &str| file.quantity(name).unwrap();
        let (ids, velocities) = (column("id").to_doubles(), column("velocity").to_vectors());
        let bits = |vector: [f32; 3]| vector.map(f32::to_bits);
        let rows = ids.iter().zip(&file.positions).zip(velocities.unwrap());
        all.extend(rows.map(|((id, x), v)| (*id as u64, [bits(*x), bits(v)])));
    }
    all.sort_unstable();
    all
}

#[test]
fn frames_in_pieces_hold_what_whole_frames_hold() {
    let home = tempfile::tempdir().unwrap();
    let [whole, pieces] = ["whole", "pieces"].map(|name| home.path().join(name));
    let mut args = small(&whole);
    args.run.checkpoint = Some(4);
    let first = args.run.checkpoint_path();
    run(args, 2).unwrap();
    let in_pieces = || {
        let mut args = small(&pieces);
        args.run.pieces = true;
        args
    };
    // Files that an older run has left, and the one by which they are known.
    std::fs::create_dir(&pieces).unwrap();
    let older = "nearfield run 1\nset command dam-break\nframes 10 vtp png rank.vtp\n";
    std::fs::write(pieces.join(".nearfield-run"), older).unwrap();
    for name in ["frame_0009.png", "frame_0000.rank3.vtp", "frame_0001.vtp"] {
        std::fs::write(pieces.join(name), "").unwrap();
    }
    let mut args = in_pieces();
    args.run.checkpoint = Some(4);
    let second = args.run.checkpoint_path();
    assert_eq!(run(args, 3).unwrap().frames, 4);
    for frame in 0..4 {
        let stem = format!("frame_{frame:04}");
        let found = by_id(&pieces, &stem, 3);
        assert!(found == by_id(&whole, &stem, 0), "{stem} differs");
    }
    let names: Vec<String> = files(&pieces).into_iter().map(|(name, _)| name).collect();
    let frames = |name: &&String| name.starts_with("frame_");
    assert_eq!(
        names.iter().filter(frames).count(),
        4 * (3 + 1),
        "{names:?}"
    );
    let walls = names.iter().filter(|name| name.starts_with("wall"));
    assert_eq!(walls.count(), 3 + 1);
    assert!(!names.iter().any(|name| name.ends_with(".gif")));
    for name in ["front.csv", "energy.csv"] {
        assert_eq!(table(&pieces, name), table(&whole, name), "{name}");
    }
    // Particles came to rank 0 in two parts, and in three.
    let [first, second] = [first, second].map(|path| std::fs::read(path).unwrap());
    assert!(first == second, "checkpoints differ");

    // A piece that cannot be written is the error of the run, on whatever rank.
    std::fs::remove_file(pieces.join("frame_0002.rank1.vtp")).unwrap();
    std::fs::create_dir(pieces.join("frame_0002.rank1.vtp")).unwrap();
    std::fs::remove_file(pieces.join("frame_0002.pvtp")).unwrap();
    let error = run(in_pieces(), 3).unwrap_err();
    assert!(
        error.to_string().contains("frame_0002.rank1.vtp"),
        "{error}"
    );
    assert!(fault(&error).is_none() && !pieces.join("frame_0002.pvtp").exists());
}

#[test]
fn a_frame_that_cannot_be_written_is_the_error_of_the_run_and_ends_all_ranks() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("frame_0002.vtp")).unwrap();
    let error = run(small(home.path()), 3).unwrap_err();
    assert!(error.to_string().contains("frame_0002.vtp"), "{error}");
    assert!(
        fault(&error).is_none(),
        "the cause, and no consequence of it"
    );
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let error = run(small(home.path()), 0).unwrap_err().to_string();
    assert!(error.contains("ranks is 0"), "{error}");
    let error = run(small(home.path()), 100_000).unwrap_err().to_string();
    assert!(error.contains("ranks is 100000"), "{error}");
    let mut args = small(home.path());
    args.run.particles = Some(20);
    let error = run(args, 25).unwrap_err().to_string();
    assert!(error.contains("ranks is 25"), "{error}");
    let mut args = small(home.path());
    args.run.seconds = Some(f64::NAN);
    let error = run(args, 3).unwrap_err().to_string();
    assert!(error.contains("seconds is NaN"), "{error}");
    let mut args = small(home.path());
    args.run.device = nearfield::Device::Gpu(7).into();
    let error = run(args, 2).unwrap_err().to_string();
    assert!(error.contains("gpu:7"), "{error}");
}
