//! `nearfield-ranks predict`: a model of steps on more ranks than there are.
//!
//! A step on P ranks of n points each takes
//!
//! `n·t_point + h·t_halo + w·(m·L + b·h/B + 2·k·⌈log₂ P⌉·L)`
//!
//! seconds. A rank has h halo points: f times the points within the search radius of its part of a
//! cube of n·P points, which is [halved](Parts) along one axis after the other. It sends m messages
//! to each of its neighbours, of b bytes per halo point, with latency L and bandwidth B, and takes
//! part in k reductions, which go up a tree of ranks and down. For each second of messages a rank
//! waits w seconds, and the rest is hidden behind work; w is above 1 if ranks wait for each other
//! instead of for messages. All of these except P and n are [measured](crate::measure).

use crate::{
    Failure,
    measure::{RADIUS, Step},
};
use nearfield_files::write;
use serde::{Deserialize, Serialize};
use std::{fmt, io, path::Path, path::PathBuf};

/// The flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Points of all ranks together
    #[arg(long, value_name = "N", value_parser = crate::count)]
    points: f64,

    /// Maximum number of ranks
    #[arg(long, value_name = "P", value_parser = crate::count)]
    ranks: f64,

    /// The file that measure wrote
    #[arg(long, value_name = "FILE")]
    machine: PathBuf,

    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// A measured machine; times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// Ranks that were measured, and threads of each.
    ranks: usize,
    threads: usize,
    /// The device of each.
    #[serde(default = "cpu")]
    pub(crate) device: String,
    /// Latency of a message.
    latency: f64,
    /// Bandwidth, bytes per second.
    bandwidth: f64,
    /// Time of a point, with lists and a density.
    seconds_per_point: f64,
    /// Time of a halo point.
    seconds_per_halo_point: f64,
    /// Halo points divided by the points within the radius of a rank's part of a cube.
    halo_factor: f64,
    /// Messages of a step to each neighbour.
    messages_per_neighbor: f64,
    bytes_per_halo_point: f64,
    reductions: f64,
    /// Seconds of waiting for each second of messages.
    waiting: f64,
}

/// The device of files that do not name one.
fn cpu() -> String {
    "cpu".to_owned()
}

/// A cube of points, 1 apart, in equal boxes, one of each rank.
///
/// The cube is halved log₂(ranks) times, along x, y and z in turn; between two powers of two the
/// last axis is divided by less than two. So 2, 4, 8 and 16 ranks make 2·1·1, 2·2·1, 2·2·2 and
/// 4·2·2 parts.
struct Parts {
    /// Sides of a box.
    sides: [f64; 3],
    /// Boxes along each axis.
    numbers: [f64; 3],
}

impl Parts {
    /// `ranks` boxes of `points` points each.
    fn of(points: f64, ranks: f64) -> Self {
        let halvings = ranks.log2();
        let all = (halvings / 3.0).floor();
        let numbers = [0.0, 1.0, 2.0].map(|axis| {
            let more = (halvings - 3.0 * all - axis).clamp(0.0, 1.0);
            (all + more).exp2()
        });
        let side = (points * ranks).cbrt();
        Self {
            sides: numbers.map(|number| side / number),
            numbers,
        }
    }

    /// Neighbours of a box on both sides of an axis: fewer than two on average, because the first
    /// and the last box have one.
    fn beside(number: f64) -> f64 {
        2.0 * (1.0 - 1.0 / number)
    }

    /// Points within the radius of a box that other boxes have, on average.
    fn halo(&self) -> f64 {
        let radius = f64::from(RADIUS);
        let reach = |axis: usize| self.sides[axis] + radius * Self::beside(self.numbers[axis]);
        let [all, own] = [[0, 1, 2].map(reach), self.sides];
        all.iter().product::<f64>() - own.iter().product::<f64>()
    }

    /// Boxes that touch a box, on average.
    fn neighbors(&self) -> f64 {
        let along = self.numbers.map(|number| 1.0 + Self::beside(number));
        along.iter().product::<f64>() - 1.0
    }
}

/// Depth of the tree of ranks.
fn depth(ranks: f64) -> f64 {
    ranks.log2().ceil().max(0.0)
}

impl Machine {
    /// Fits a machine to steps of two sizes, the smaller one first.
    pub(crate) fn fit(
        ranks: usize,
        threads: usize,
        [latency, bandwidth]: [f64; 2],
        [small, large]: [Step; 2],
    ) -> Self {
        let work = |step: Step| (step.seconds - step.waiting).max(0.0);
        // Two equations for two times; without a halo the second time is 0.
        let determinant = small.points * large.halo - large.points * small.halo;
        let mut point = work(large) / large.points;
        let mut halo = 0.0;
        if determinant != 0.0 {
            let both = (work(small) * large.halo - work(large) * small.halo) / determinant;
            if both > 0.0 && both <= point {
                point = both;
                halo = (work(large) - point * large.points) / large.halo;
            }
        }
        let parts = Parts::of(large.points, ranks as f64);
        let mut machine = Self {
            ranks,
            threads,
            device: cpu(),
            latency,
            bandwidth,
            seconds_per_point: point,
            seconds_per_halo_point: halo,
            halo_factor: large.halo / parts.halo(),
            messages_per_neighbor: large.messages / parts.neighbors(),
            bytes_per_halo_point: large.bytes / large.halo.max(1.0),
            reductions: large.reductions,
            waiting: 1.0,
        };
        if ranks == 1 {
            // No message was sent. The machine is assumed to wait for all messages, with the bytes
            // that the engine sends: id, position and a field.
            machine.halo_factor = 1.0;
            machine.messages_per_neighbor = 2.0;
            machine.bytes_per_halo_point = 24.0;
        } else {
            let messages = machine.messages(&parts, large.halo, ranks as f64);
            machine.waiting = (large.waiting / messages).max(0.0);
        }
        machine
    }

    /// Writes the machine into a file.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        write(path, text)
    }

    /// Reads a machine and checks its numbers. Errors name the file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let named = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let machine: Self = serde_json::from_str(&text).map_err(|error| named(&error))?;
        let numbers = [
            machine.latency,
            machine.bandwidth,
            machine.seconds_per_point,
            machine.seconds_per_halo_point,
            machine.halo_factor,
            machine.messages_per_neighbor,
            machine.bytes_per_halo_point,
            machine.reductions,
            machine.waiting,
        ];
        let usable = numbers
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0);
        if !usable || machine.seconds_per_point == 0.0 || machine.bandwidth == 0.0 {
            return Err(named(&"its numbers are not those of a machine"));
        }
        Ok(machine)
    }

    /// Time of the messages of a step.
    fn messages(&self, parts: &Parts, halo: f64, ranks: f64) -> f64 {
        let sent = self.messages_per_neighbor * parts.neighbors();
        let latencies = sent + 2.0 * self.reductions * depth(ranks);
        latencies * self.latency + self.bytes_per_halo_point * halo / self.bandwidth
    }

    /// A step of `points` points on `ranks` ranks.
    pub(crate) fn predict(&self, points: f64, ranks: f64) -> Row {
        let mine = points / ranks;
        let parts = Parts::of(mine, ranks);
        // All others' points at most.
        let halo = (self.halo_factor * parts.halo()).min(points - mine);
        let waiting = self.waiting * self.messages(&parts, halo, ranks);
        let border = self.seconds_per_halo_point * halo + waiting;
        let seconds = self.seconds_per_point * mine + border;
        Row {
            ranks,
            points,
            points_per_rank: mine,
            halo_points_per_rank: halo,
            messages: self.messages_per_neighbor * parts.neighbors(),
            bytes: self.bytes_per_halo_point * halo,
            step_seconds: seconds,
            halo_share: border / seconds,
            efficiency: self.seconds_per_point * mine / seconds,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ranks of {} threads on {}: {:.1} ns a point",
            self.ranks,
            self.threads,
            self.device,
            1e9 * self.seconds_per_point,
        )?;
        // One rank has neither a halo nor messages.
        if self.ranks == 1 {
            return write!(f, "; messages and halos take two ranks to be timed");
        }
        write!(
            f,
            ", {:.1} ns a halo point, messages {:.1} µs and {:.0} MB/s, {:.0} reductions a step; \
             {:.2} s of waiting for each second of messages",
            1e9 * self.seconds_per_halo_point,
            1e6 * self.latency,
            self.bandwidth / 1e6,
            self.reductions,
            self.waiting
        )
    }
}

/// A step that was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) ranks: f64,
    pub(crate) points: f64,
    pub(crate) points_per_rank: f64,
    pub(crate) halo_points_per_rank: f64,
    /// Messages that a rank sends in a step, without reductions, and their bytes.
    pub(crate) messages: f64,
    pub(crate) bytes: f64,
    pub(crate) step_seconds: f64,
    /// Share of the step that halos and waiting take.
    pub(crate) halo_share: f64,
    /// Work of the points over the time of the step.
    pub(crate) efficiency: f64,
}

/// The tables that are printed.
#[derive(Debug, Serialize)]
struct Prediction<'a> {
    machine: &'a Machine,
    /// As many points on each rank.
    weak: Vec<Row>,
    /// As many points on all ranks together.
    strong: Vec<Row>,
}

pub(crate) fn run(args: &Args, rank: usize) -> Result<String, Failure> {
    if rank != 0 {
        return Ok(String::new());
    }
    let shared = Failure::Shared;
    let machine = Machine::read(&args.machine).map_err(shared)?;
    if args.points < args.ranks {
        return Err(shared(format!(
            "{} points on {} ranks: give a point to each rank at least",
            args.points, args.ranks
        )));
    }
    let prediction = predict(&machine, args.points, args.ranks);
    if args.json {
        return crate::json(&prediction);
    }
    let mut text = format!("{machine}\n");
    for (name, rows) in [("weak", &prediction.weak), ("strong", &prediction.strong)] {
        text += &format!(
            "{name} scaling\n{:>10} {:>12} {:>12} {:>12} {:>8} {:>10}\n",
            "ranks", "points/rank", "halo/rank", "s/step", "halo", "efficiency"
        );
        for row in rows {
            text += &format!(
                "{:>10} {:>12.3e} {:>12.3e} {:>12.4} {:>7.1} % {:>10.3}\n",
                row.ranks,
                row.points_per_rank,
                row.halo_points_per_rank,
                row.step_seconds,
                100.0 * row.halo_share,
                row.efficiency
            );
        }
    }
    Ok(text.trim_end().to_owned())
}

/// Both tables, from one rank to `ranks`, four times as many in each row.
fn predict(machine: &Machine, points: f64, ranks: f64) -> Prediction<'_> {
    let mut numbers = Vec::new();
    let mut number = ranks;
    while number > 1.0 {
        numbers.push(number);
        number = (number / 4.0).floor();
    }
    numbers.push(1.0);
    numbers.reverse();
    let weak = |number: &f64| machine.predict(points / ranks * number, *number);
    let strong = |number: &f64| machine.predict(points, *number);
    Prediction {
        weak: numbers.iter().map(weak).collect(),
        strong: numbers.iter().map(strong).collect(),
        machine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of four ranks of a machine with known numbers.
    fn step(points: f64) -> Step {
        let halo = 1.3 * Parts::of(points, 4.0).halo();
        Step {
            points,
            halo,
            seconds: 200e-9 * points + 50e-9 * halo + 1e-3,
            waiting: 1e-3,
            messages: 30.0,
            bytes: 40.0 * halo,
            reductions: 12.0,
        }
    }

    fn machine() -> Machine {
        Machine::fit(4, 1, [2e-6, 1e10], [step(25e4), step(1e6)])
    }

    #[test]
    fn a_cube_is_halved_along_one_axis_after_the_other() {
        for (ranks, numbers, neighbors) in [
            (1.0, [1.0, 1.0, 1.0], 0.0),
            (2.0, [2.0, 1.0, 1.0], 1.0),
            (4.0, [2.0, 2.0, 1.0], 3.0),
            (8.0, [2.0, 2.0, 2.0], 7.0),
            (16.0, [4.0, 2.0, 2.0], 9.0),
        ] {
            let parts = Parts::of(1000.0, ranks);
            assert_eq!(parts.numbers, numbers);
            assert!(
                (parts.neighbors() - neighbors).abs() < 1e-9,
                "{ranks} ranks"
            );
        }
        // Two slabs of 20 × 20 × 10 points see 20 × 20 × 2 points of each other.
        assert!((Parts::of(4000.0, 2.0).halo() - 800.0).abs() < 1e-9);
        // A box among many sees all within the radius.
        let many = Parts::of(1000.0, 60f64.exp2()).halo();
        assert!((many - (14f64.powi(3) - 1000.0)).abs() < 1e-2, "{many}");
        let rows = (1..100).map(|ranks| Parts::of(1000.0, f64::from(ranks)).halo());
        let halos: Vec<f64> = rows.collect();
        assert!(halos.is_sorted(), "{halos:?}");
    }

    #[test]
    fn known_times_are_found_again() {
        let machine = machine();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
        assert!(near(machine.seconds_per_point, 200e-9), "{machine:?}");
        assert!(near(machine.seconds_per_halo_point, 50e-9), "{machine:?}");
        assert!(near(machine.halo_factor, 1.3) && near(machine.messages_per_neighbor, 10.0));
        let row = machine.predict(4e6, 4.0);
        assert!(near(row.step_seconds, step(1e6).seconds), "{row:?}");
    }

    #[test]
    fn efficiency_falls_with_ranks_and_rises_with_points() {
        let machine = machine();
        let prediction = predict(&machine, 1e12, 1e4);
        for rows in [&prediction.weak, &prediction.strong] {
            assert_eq!(
                rows.last().map(|row| (row.ranks, row.points)),
                Some((1e4, 1e12))
            );
            assert!(
                rows.windows(2)
                    .all(|pair| pair[1].efficiency <= pair[0].efficiency)
            );
        }
        assert_eq!(
            prediction.weak[0].halo_points_per_rank, 0.0,
            "on one rank there is no halo"
        );
        let [few, many] = [1e9, 1e12].map(|points| machine.predict(points, 1e4));
        assert!(few.halo_share > many.halo_share && many.efficiency > 0.9);
    }

    #[test]
    fn a_machine_survives_its_file_and_others_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("machine.json");
        machine().write(&path).unwrap();
        assert_eq!(Machine::read(&path), Ok(machine()));
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("\"latency\": 2e-6", "\"latency\": -1"),
            ("\"ranks\"", "\"rnks\""),
        ] {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert!(Machine::read(&path).is_err());
        }
        let one = Machine::fit(1, 1, [0.0, f64::MAX], [step(25e4), step(1e6)]);
        assert!(one.predict(1e9, 1e3).efficiency < 1.0);
    }
}
