//! Probes: pressures at points, and heights of the water over points, against time.
//!
//! Pressures and volumes of water in columns are read by the solver
//! ([`nearfield_sph::Probes`]), where the particles are. A height is the volume in a column two
//! spacings wide on either side over the area of that column inside the tank: how much water there
//! is, whether or not there is air between.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use nearfield_sph::{Dimensions, ProbeColumn, Probes, Simulation};

use crate::Error;
use crate::reference::Point;
use crate::scene::{Probe, Scene};

/// Half the width of a height probe's column, in spacings: hats of a whole number of spacings add
/// up to the same on every site of a lattice.
const REACH: f64 = 2.0;

/// The name of a probe and its readings: seconds and values.
type Curve<'a> = (&'a str, Vec<Point>);

/// The probes of a run and their readings.
pub(crate) struct Readings {
    probes: Probes,
    /// Area of each column inside the tank.
    areas: Vec<f64>,
    interval: f64,
    due: f64,
    header: String,
    /// Time and one value per probe, for every sample.
    rows: Vec<Vec<f64>>,
    /// Time spent with reading.
    spent: Duration,
}

impl Readings {
    /// Of the probes of `scene` at this spacing; `None` when it has none.
    pub(crate) fn of(scene: &Scene, spacing: f64) -> Option<Self> {
        let probes = &scene.probes;
        if probes.pressure.is_empty() && probes.height.is_empty() {
            return None;
        }
        let reach = REACH * spacing;
        let area = |probe: &Probe| {
            let across = match scene.dimensions {
                Dimensions::Two => 1.0,
                Dimensions::Three => hat_within(probe.at.y, scene.tank.y, reach),
            };
            hat_within(probe.at.x, scene.tank.x, reach) * across
        };
        let column = |probe: &Probe| ProbeColumn {
            middle: probe.at.truncate(),
            reach,
        };
        let names = |probes: &[Probe], unit: &str| {
            let name = |probe: &Probe| format!(",{}_{unit}", probe.name);
            probes.iter().map(name).collect::<String>()
        };
        let header = format!(
            "time_s{}{}\n",
            names(&probes.pressure, "pa"),
            names(&probes.height, "m")
        );
        Some(Self {
            areas: probes.height.iter().map(area).collect(),
            probes: Probes {
                points: probes.pressure.iter().map(|probe| probe.at).collect(),
                columns: probes.height.iter().map(column).collect(),
            },
            interval: probes.interval,
            due: 0.0,
            header,
            rows: Vec::new(),
            spent: Duration::ZERO,
        })
    }

    /// Reads the probes when it is time for the next sample. Collective on ranks.
    ///
    /// # Errors
    /// When the solver cannot read them.
    pub(crate) fn follow(&mut self, simulation: &Simulation) -> Result<(), Error> {
        // Steps add up with rounding: a hair early is on time.
        if simulation.time() < self.due - 1e-9 * self.interval {
            return Ok(());
        }
        let begin = Instant::now();
        let _span = tracing::debug_span!("dam_break.probes").entered();
        let read = simulation.probe(&self.probes)?;
        let volumes = read.volumes.iter().zip(&self.areas);
        let mut row = vec![simulation.time()];
        row.extend(read.pressures);
        row.extend(volumes.map(|(volume, area)| volume / area));
        self.rows.push(row);
        self.wait_from(simulation.time());
        self.spent += begin.elapsed();
        Ok(())
    }

    /// The rows, for a file.
    pub(crate) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Titles of charts of pressures and of heights, with the names of probes and their curves:
    /// seconds and values.
    pub(crate) fn curves(&self) -> [(&'static str, Vec<Curve<'_>>); 2] {
        let names = self.header.trim_end().split(',').enumerate().skip(1);
        let curve = |(column, name): (usize, _)| {
            let points = self.rows.iter().map(|row| (row[0], row[column]));
            (name, points.collect())
        };
        let mut curves = names.map(curve);
        let pressures = curves.by_ref().take(self.probes.points.len()).collect();
        let titles = ["Pressure at probes, Pa", "Height of the water, m"];
        [(titles[0], pressures), (titles[1], curves.collect())]
    }

    /// Numbers of a row: the time and one per probe.
    pub(crate) fn width(&self) -> usize {
        1 + self.probes.points.len() + self.probes.columns.len()
    }

    /// Continues from these rows of a checkpoint.
    pub(crate) fn restore(&mut self, rows: Vec<Vec<f64>>) {
        if let Some(row) = rows.last() {
            self.wait_from(row[0]);
        }
        self.rows = rows;
    }

    /// Sets the time of the next sample after one at `time`.
    fn wait_from(&mut self, time: f64) {
        let passed = (time / self.interval * (1.0 + 1e-12)).floor();
        let due = (passed + 1.0) * self.interval;
        // Intervals far below any step are too many to be counted: every step is sampled.
        self.due = if due.is_finite() { due } else { time };
    }

    /// Number of samples.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Time spent with reading.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// The readings as a table.
    pub(crate) fn csv(&self) -> String {
        let mut table = self.header.clone();
        for row in &self.rows {
            for (index, value) in row.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let _ = write!(table, "{comma}{value:.6}");
            }
            table.push('\n');
        }
        table
    }
}

/// ∫ hat(x − middle) dx from 0 to `end`, where hat is 1 at zero and 0 from `reach` on.
fn hat_within(middle: f64, end: f64, reach: f64) -> f64 {
    // From −reach up to `off`.
    let below = |off: f64| {
        let share = (off / reach).clamp(-1.0, 1.0);
        reach * (0.5 + share - 0.5 * share * share.abs())
    };
    below(end - middle) - below(-middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hat_has_its_area_inside_the_tank() {
        assert!((hat_within(5.0, 10.0, 2.0) - 2.0).abs() < 1e-12);
        assert!((hat_within(0.0, 10.0, 2.0) - 1.0).abs() < 1e-12);
        assert!((hat_within(9.0, 10.0, 2.0) - (2.0 - 0.25)).abs() < 1e-12);
    }

    #[test]
    fn tiny_intervals_sample_every_step() {
        for interval in [0.25, 1e-200, f64::MIN_POSITIVE] {
            let mut readings = Readings {
                probes: Probes {
                    points: Vec::new(),
                    columns: Vec::new(),
                },
                areas: Vec::new(),
                interval,
                due: 0.0,
                header: String::new(),
                rows: Vec::new(),
                spent: Duration::ZERO,
            };
            readings.wait_from(0.3);
            // Ahead of the time by less than any step.
            let late = if interval == 0.25 { 0.5 } else { 0.3 + 1e-11 };
            assert!(
                (0.3..=late).contains(&readings.due),
                "{interval:e}: {}",
                readings.due
            );
        }
    }
}
