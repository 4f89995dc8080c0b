//! Runs that are killed or run out of disk space and then go on: every file is that of a run
//! without a break, whenever it was interrupted.

use crate::{Workplace, text, words};
use nearfield_md::Checkpoint;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Steps of the runs of `lj`, whose flag counts from where a run goes on.
const STEPS: u64 = 300;
/// Times that each case is interrupted and goes on to its end.
const ROUNDS: usize = 5;

/// A command with checkpoints.
struct Case {
    /// Arguments of a run that begins, but for its output.
    begin: String,
    /// Arguments of one that goes on, but for its checkpoint and its output.
    on: String,
    /// The checkpoint in the folder of the output.
    checkpoint: &'static str,
}

fn dam_break(ranks: usize) -> Case {
    let flags = format!(
        "dam-break --particles 300 --seconds 0.15 --frames 4 --threads 1 --dim 2 --deterministic \
         --ranks {ranks} --checkpoint 1"
    );
    Case {
        begin: flags.clone(),
        on: flags,
        checkpoint: "dam_break.checkpoint",
    }
}

impl Case {
    /// The arguments of a run in this folder, which goes on from the checkpoint that is there; none
    /// where no step is left.
    fn args(&self, folder: &Path) -> Option<Vec<String>> {
        let checkpoint = folder.join(self.checkpoint);
        let mut args = words(&self.begin);
        let mut more = vec!["--output", text(folder)];
        let there = checkpoint.exists();
        if there {
            args = words(&self.on);
            more.extend(["--restart", text(&checkpoint)]);
        }
        let left = match args[0] {
            "lj" if there => STEPS - Checkpoint::read(&checkpoint).unwrap().steps(),
            _ => STEPS,
        };
        let left = left.to_string();
        match args[0] {
            "lj" if left == "0" => return None,
            "lj" => more.extend(["--steps", &left]),
            _ => {}
        }
        args.extend(more);
        Some(args.into_iter().map(str::to_owned).collect())
    }

    fn command(place: &Workplace, args: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearfield"));
        command.args(args).current_dir(place.0.path());
        command.stdout(Stdio::null());
        command
    }

    /// Runs to the end, from wherever the folder stands.
    fn finish(&self, place: &Workplace, folder: &Path) {
        let Some(args) = self.args(folder) else {
            return;
        };
        let output = Self::command(place, &args).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
    }

    /// Interrupts runs at moments at random, and compares what they come to with the run without a
    /// break.
    fn survives(&self, place: &Workplace, seed: u64) {
        let whole = place.0.path().join("whole");
        let begin = Instant::now();
        self.finish(place, &whole);
        let time = begin.elapsed();
        let mut state = seed;
        let mut moment = || {
            // A linear congruential generator (Knuth's MMIX).
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            time.mul_f64((state >> 33) as f64 / f64::from(1u32 << 31))
        };
        for round in 0..ROUNDS {
            let folder = place.0.path().join(format!("round{round}"));
            // Every other round is killed a second time.
            let moments: Vec<Duration> = (0..=round % 2).map(|_| moment()).collect();
            for &after in &moments {
                if let Some(args) = self.args(&folder) {
                    let mut command = Self::command(place, &args);
                    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
                    std::thread::sleep(after);
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
            self.finish(place, &folder);
            assert_same(&folder, &whole, &format!("killed after {moments:?}"));
        }
        self.survives_a_full_disk(place, &whole);
    }

    /// A run in a file system that is too small for it, or, where none can be made, with a limit
    /// for each file; what it leaves goes on where there is room.
    fn survives_a_full_disk(&self, place: &Workplace, whole: &Path) {
        let [full, torn] = ["full", "torn"].map(|name| place.0.path().join(name));
        fs::create_dir(&full).unwrap();
        fs::create_dir(&torn).unwrap();
        let lens = fs::read_dir(whole).unwrap();
        let lens = lens.map(|entry| entry.unwrap().metadata().unwrap().len());
        let lens: Vec<u64> = lens.collect();
        let all: u64 = lens.iter().map(|len| len.next_multiple_of(4096)).sum();
        let script = format!(
            "mount -t tmpfs -o size={} none full 2> /dev/null || {{ trap '' XFSZ; ulimit -f {}; }}
             \"$@\" > /dev/null 2> full.log && exit 78
             cp -r full/. torn/",
            all * 6 / 10,
            lens.iter().max().unwrap() * 7 / 10 / 1024,
        );
        let mut shell = Command::new("unshare");
        let separate = Command::new("unshare").args(["-rm", "true"]).output();
        if separate.is_ok_and(|output| output.status.success()) {
            shell.args(["-rm", "bash"]);
        } else {
            shell = Command::new("bash");
        }
        let args = self.args(&full).unwrap();
        shell.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_nearfield")]);
        let status = shell.args(args).current_dir(place.0.path()).status();
        let errors = fs::read_to_string(place.0.path().join("full.log")).unwrap_or_default();
        assert!(status.unwrap().success(), "no full disk: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        self.finish(place, &torn);
        assert_same(&torn, whole, "a full disk");
    }
}

/// Compares all files of two folders by name and content, but for the summary, which has times in
/// it.
fn assert_same(found: &Path, expected: &Path, when: &str) {
    let files = |folder: &Path| -> BTreeMap<OsString, Vec<u8>> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()));
        files.filter(|(name, _)| name != "summary.json").collect()
    };
    let (found, expected) = (files(found), files(expected));
    let names =
        |files: &BTreeMap<OsString, Vec<u8>>| -> Vec<OsString> { files.keys().cloned().collect() };
    assert_eq!(names(&found), names(&expected), "{when}");
    for (name, content) in &found {
        assert!(
            *content == expected[name],
            "{when}: {name:?} has other bytes"
        );
    }
}

/// Bodies at random places of a cube.
fn bodies(count: usize, seed: u64) -> String {
    let mut state = seed;
    let mut number = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f64 / f64::from(1u32 << 24) * 10.0
    };
    let mut text = String::from("mass,x,y,z,vx,vy,vz\n");
    for _ in 0..count {
        let [x, y, z] = [number(), number(), number()];
        text += &format!("0.001,{x},{y},{z},0,0,0\n");
    }
    text
}

fn gravity(place: &Workplace) -> Case {
    place.file("bodies.csv", bodies(400, 3));
    let flags = "--steps 300 --softening 0.1 --frames 9 --checkpoint 20 --threads 1 --device cpu";
    Case {
        begin: format!("gravity bodies.csv --dt 0.01 {flags}"),
        on: format!("gravity {flags}"),
        checkpoint: "gravity.checkpoint",
    }
}

fn lj(place: &Workplace) -> Case {
    let mut atoms = String::from("216\nLattice=\"7.5 0 0 0 7.5 0 0 0 7.5\" pbc=\"T T T\"\n");
    for k in 0..216 {
        let [x, y, z] = [k / 36, k / 6 % 6, k % 6].map(|at| f64::from(at) * 1.25);
        atoms += &format!("A {x} {y} {z}\n");
    }
    place.file("atoms.xyz", atoms);
    let flags = "--cutoff 3 --shift force --threads 1 --every 7 --checkpoint 20";
    Case {
        begin: format!("lj atoms.xyz {flags} --temperature 0.9"),
        on: format!("lj {flags}"),
        checkpoint: "run.checkpoint",
    }
}

#[test]
fn gravity_goes_on_from_any_moment_with_the_same_files() {
    let place = Workplace::new();
    gravity(&place).survives(&place, 1);
}

#[test]
fn lj_goes_on_from_any_moment_with_the_same_files() {
    let place = Workplace::new();
    lj(&place).survives(&place, 2);
}

#[test]
fn the_dam_break_goes_on_from_any_moment_with_the_same_files() {
    let place = Workplace::new();
    dam_break(1).survives(&place, 3);
}

#[test]
fn the_dam_break_on_ranks_goes_on_from_any_moment_with_the_same_files() {
    let place = Workplace::new();
    dam_break(3).survives(&place, 4);
}

#[test]
fn runs_do_not_mix_in_a_folder() {
    let place = Workplace::new();
    let at = |name: &str| place.0.path().join(name);
    place.file("other.csv", bodies(20, 9));
    place.file("bodies.csv", bodies(20, 3));
    let run = |args: &str| assert!(place.run(&words(args)).status.success(), "{args}");
    let begin = "gravity bodies.csv --steps 40 --dt 0.01 --checkpoint 25 --threads 1 --output";
    run(&format!("{begin} out --frames 9"));
    place.file("out/frame_0007.txt", "mine");
    place.file("out/.gravity.pngAbC123.tmp", "left by a killed run");
    run(&format!("{begin} out --frames 5"));
    assert!(at("out/frame_0004.vtp").exists() && !at("out/frame_0005.vtp").exists());
    assert!(at("out/frame_0007.txt").exists() && !at("out/.gravity.pngAbC123.tmp").exists());
    place.file("out/frame_0009.vtp", "not of a run");
    place.refuses("frame_0009.vtp", &words(&format!("{begin} out --frames 5")));
    fs::remove_file(at("out/frame_0009.vtp")).unwrap();

    place.file("out/.gravity.checkpointAbC123.tmp", "left by a killed run");
    // Its checkpoint goes on in no folder of another run, and in a new one with tables of its own.
    run("gravity other.csv --steps 40 --dt 0.01 --threads 1 --frames 5 --output other");
    let on = "gravity --restart out/gravity.checkpoint --steps 40 --frames 5 --threads 1 --output";
    place.refuses(
        "other/energy.csv: is of another run",
        &words(&format!("{on} other")),
    );
    run(&format!("{on} new"));
    let table = |name: &str| fs::read_to_string(at(name).join("energy.csv")).unwrap();
    let (new, whole) = (table("new"), table("out"));
    assert_eq!(new.lines().next(), Some("time,energy"));
    let behind: Vec<_> = whole.lines().skip(4).collect();
    assert_eq!(new.lines().skip(1).collect::<Vec<_>>(), behind);
    assert!(!at("new/frame_0002.vtp").exists() && at("new/frame_0003.vtp").exists());
    let picture = |name: &str| fs::read(at(name).join("gravity.png")).unwrap();
    assert!(picture("new") == picture("out"));
    place.refuses(
        "exact is true here and false there",
        &words(&format!("{on} out --exact")),
    );
    run(&format!("{on} out"));
    assert!(!at("out/.gravity.checkpointAbC123.tmp").exists());
    fs::write(at("out/energy.csv"), "time,energy\n").unwrap();
    place.refuses("energy.csv: has 12 bytes", &words(&format!("{on} out")));
}

#[test]
fn lj_goes_on_in_files_of_its_own_run_alone() {
    let place = Workplace::new();
    let case = lj(&place);
    let at = |name: &str| place.0.path().join(name);
    let begin = format!("{} --steps 40 --output run", case.begin);
    assert!(place.run(&words(&begin)).status.success());
    let on = format!(
        "{} --steps 14 --restart run/run.checkpoint --output",
        case.on
    );
    place.refuses(
        "dt is 0.001 here and 0.002 there",
        &words(&format!("{on} run --dt 0.001")),
    );
    assert!(
        place
            .run(&words(&format!("{on} new --dt 0.001")))
            .status
            .success()
    );
    let table = fs::read_to_string(at("new/observations.csv")).unwrap();
    assert!(table.starts_with("step,time") && table.lines().nth(1).unwrap().starts_with("42,"));
    fs::remove_file(at("run/observations.csv")).unwrap();
    place.refuses("run/observations.csv: ", &words(&format!("{on} run")));
    // Those of the former format.
    place.file("old", b"nearfield-md checkpoint 1\n\0\0");
    let old = "lj --restart old --cutoff 3 --steps 2";
    place.refuses(
        "it is nearfield-md checkpoint 1, and this program reads",
        &words(old),
    );
}

#[test]
fn a_checkpoint_may_replace_the_one_that_is_gone_on_from() {
    let place = Workplace::new();
    let flags = "dam-break --particles 100 --seconds 0.02 --frames 2 --dim 2 --threads 1";
    let run = |more: &str| {
        let all = format!("{flags} --output out {more}");
        place.run(&words(&all))
    };
    assert!(run("--checkpoint 1").status.success());
    let on = "--restart out/dam_break.checkpoint";
    assert!(run(&format!("--checkpoint 1 {on}")).status.success());
    let clash = run(&format!("{on} --trace ./out/dam_break.checkpoint"));
    assert_eq!(clash.status.code(), Some(2));
}
