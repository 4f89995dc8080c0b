//! Probes: the pressure at points and the height of the water over points, as time goes on.
//!
//! A pressure is interpolated from the water within the support of the smoothing kernel,
//! `p = Σ Vⱼ W (pⱼ + ρⱼ g·(x − xⱼ)) / max(Σ Vⱼ W, ¼)`: Shepard's normalisation (D. Shepard 1968,
//! DOI 10.1145/800186.810616), with the weight of the water between particle and probe (S. Adami,
//! X. Y. Hu & N. A. Adams 2012, eq. 27, DOI 10.1016/j.jcp.2012.05.005), so that a probe on a wall
//! reads the pressure at the wall although all water is on one side of it. Σ Vⱼ W is one half at a
//! wet wall; below a quarter the rest counts as air, whose pressure is zero.
//!
//! A height is the volume of the water in a column two spacings wide on either side, weighted by
//! hat functions, over the area of that column inside the tank: how much water there is, whether
//! or not there is air between.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use glam::{DVec3, Vec3};
use nearfield_sph::{Config, Dimensions, PendingMoment, Simulation};

use crate::scene::{Probe, Scene};
use crate::{Error, ErrorKind};

/// Half the width of a height probe's column, in spacings: hats of a whole number of spacings add
/// up to the same on every site of a lattice.
const REACH: f64 = 2.0;

/// Moments that may wait to be read; the solver waits for room beyond.
const WAITING: usize = 1;

/// Share of the kernel that must be filled for a pressure to count in full.
const WET: f64 = 0.25;

/// The probes of a run and what they read, on a thread of their own beside the solver.
pub(crate) struct Readings {
    interval: f64,
    due: f64,
    header: String,
    samples: usize,
    meter: Arc<Meter>,
    /// `None` before the first moment and once the readings are settled.
    reader: Option<Reader>,
    rows: Rows,
}

/// The thread that reads, and the way to it.
struct Reader {
    moments: SyncSender<PendingMoment>,
    thread: JoinHandle<Result<Rows, Error>>,
}

impl Reader {
    fn start(meter: Arc<Meter>) -> Result<Self, Error> {
        let (sender, moments) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("probes".to_owned());
        let thread = thread.spawn(move || meter.read(moments));
        let thread = thread.map_err(|error| ErrorKind::Threads {
            threads: 1,
            reason: error.to_string(),
        })?;
        Ok(Self {
            moments: sender,
            thread,
        })
    }
}

/// Time and one value per probe, for every sample.
type Rows = Vec<Vec<f64>>;

/// The probes, as the reading thread has them.
struct Meter {
    pressure: Vec<Probe>,
    height: Vec<Column>,
}

impl Meter {
    /// Reads all moments that come, in their order.
    fn read(&self, moments: Receiver<PendingMoment>) -> Result<Rows, Error> {
        let mut rows = Rows::new();
        for moment in moments {
            let moment = moment.wait()?;
            let _span = tracing::debug_span!("beside.probes").entered();
            let (config, positions) = (moment.config(), moment.positions());
            let mut row = vec![moment.time()];
            row.extend(pressures(
                config,
                &self.pressure,
                positions,
                moment.compressions(),
            ));
            row.extend(heights(config, &self.height, positions));
            rows.push(row);
        }
        Ok(rows)
    }
}

/// The column of a height probe: its middle and the area of its hat inside the tank.
#[derive(Debug)]
struct Column {
    middle: [f64; 2],
    area: f64,
}

impl Readings {
    /// Of the probes of `scene` at this spacing; `None` when it has none.
    pub(crate) fn of(scene: &Scene, spacing: f64) -> Option<Self> {
        let probes = &scene.probes;
        if probes.pressure.is_empty() && probes.height.is_empty() {
            return None;
        }
        let reach = REACH * spacing;
        let column = |probe: &Probe| {
            let middle = [probe.at.x, probe.at.y];
            let across = match scene.dimensions {
                Dimensions::Two => 1.0,
                Dimensions::Three => hat_within(middle[1], scene.tank.y, reach),
            };
            Column {
                middle,
                area: hat_within(middle[0], scene.tank.x, reach) * across,
            }
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
        let meter = Meter {
            pressure: probes.pressure.clone(),
            height: probes.height.iter().map(column).collect(),
        };
        Some(Self {
            interval: probes.interval,
            due: 0.0,
            header,
            samples: 0,
            meter: Arc::new(meter),
            reader: None,
            rows: Rows::new(),
        })
    }

    /// Hands the present moment in when it is time for the next sample.
    ///
    /// # Errors
    /// When the fluid cannot be copied, an earlier moment could not be read, or no thread can be
    /// started.
    pub(crate) fn follow(&mut self, simulation: &Simulation) -> Result<(), Error> {
        // Steps add up with rounding: a hair early is on time.
        if simulation.time() < self.due - 1e-9 * self.interval {
            return Ok(());
        }
        let moment = simulation.moment()?;
        // On ranks, rank 0 has the particles.
        if simulation.rank() == 0 {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(Reader::start(self.meter.clone())?),
            };
            if reader.moments.send(moment).is_err() {
                return self.settle();
            }
        }
        self.samples += 1;
        self.wait_from(simulation.time());
        Ok(())
    }

    /// Waits until all moments that were handed in are read.
    ///
    /// # Errors
    /// When one could not be copied or read.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        let Some(Reader { moments, thread }) = self.reader.take() else {
            return Ok(());
        };
        drop(moments);
        let panicked = "the thread that reads the probes panicked";
        let rows = thread.join();
        let rows = rows.map_err(|_| Error::output(Path::new("probes.csv"), panicked))??;
        self.rows.extend(rows);
        Ok(())
    }

    /// The settled rows, for a file.
    pub(crate) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Numbers of a row: the time and one per probe.
    pub(crate) fn width(&self) -> usize {
        1 + self.meter.pressure.len() + self.meter.height.len()
    }

    /// Goes on from such rows.
    pub(crate) fn restore(&mut self, rows: Vec<Vec<f64>>) {
        if let Some(row) = rows.last() {
            self.wait_from(row[0]);
        }
        (self.samples, self.rows) = (rows.len(), rows);
    }

    /// Sets the time of the next sample after one at `time`.
    fn wait_from(&mut self, time: f64) {
        let passed = (time / self.interval * (1.0 + 1e-12)).floor();
        self.due = (passed + 1.0) * self.interval;
    }

    /// Number of samples.
    pub(crate) fn len(&self) -> usize {
        self.samples
    }

    /// The settled readings as a table.
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

/// Pressures at the probes, Pa.
fn pressures(
    config: &Config,
    probes: &[Probe],
    positions: &[Vec3],
    compressions: &[f32],
) -> Vec<f64> {
    let (kernel, water) = (config.kernel(), config.water_state());
    let (volume, gravity) = (
        f64::from(config.particle_volume()),
        config.gravity.as_dvec3(),
    );
    let density = f64::from(config.density);
    let reach = f64::from(kernel.support());
    // Sums of weights and of weighted pressures.
    let mut sums = vec![(0.0, 0.0); probes.len()];
    let Some((low, high)) = bounds(probes.iter().map(|probe| probe.at), reach) else {
        return Vec::new();
    };
    for (position, &compression) in positions.iter().zip(compressions) {
        let place = position.as_dvec3();
        if !(place.cmpge(low).all() && place.cmple(high).all()) {
            continue;
        }
        for (probe, sum) in probes.iter().zip(&mut sums) {
            let off = probe.at - place;
            if off.length_squared() > reach * reach {
                continue;
            }
            let stretch = 1.0 + f64::from(compression);
            let weight = volume / stretch * f64::from(kernel.value(off.length_squared() as f32));
            let head = density * stretch * gravity.dot(off);
            sum.0 += weight;
            sum.1 += weight * (f64::from(water.pressure(compression)) + head);
        }
    }
    sums.iter()
        .map(|&(weight, sum)| (sum / f64::max(weight, WET)).max(0.0))
        .collect()
}

/// Heights of the water, metres.
fn heights(config: &Config, columns: &[Column], positions: &[Vec3]) -> Vec<f64> {
    let (volume, reach) = (
        f64::from(config.particle_volume()),
        REACH * f64::from(config.spacing),
    );
    let mut sums = vec![0.0; columns.len()];
    for position in positions {
        for (column, sum) in columns.iter().zip(&mut sums) {
            let along = hat(f64::from(position.x) - column.middle[0], reach);
            if along > 0.0 {
                *sum += along
                    * match config.dimensions {
                        Dimensions::Two => 1.0,
                        Dimensions::Three => hat(f64::from(position.y) - column.middle[1], reach),
                    };
            }
        }
    }
    columns
        .iter()
        .zip(sums)
        .map(|(column, sum)| volume * sum / column.area)
        .collect()
}

/// The box around all points and what is within `reach` of them.
fn bounds(points: impl Iterator<Item = DVec3>, reach: f64) -> Option<(DVec3, DVec3)> {
    let boxes = points.map(|point| (point - reach, point + reach));
    boxes.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// 1 at zero, 0 from `reach` on.
fn hat(off: f64, reach: f64) -> f64 {
    (1.0 - off.abs() / reach).max(0.0)
}

/// ∫ hat(x − middle) dx from 0 to `end`.
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
    fn a_lattice_under_its_own_weight_is_read_exactly() {
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            let config = Config::water(dimensions, 0.1, 1.0);
            let water = config.water_state();
            let low = [0, 0, 0];
            let high = [30, 10, 10];
            let positions =
                nearfield_sph::scene::block(dimensions, low, high, config.spacing).unwrap();
            let up = dimensions.up();
            let pressure = |x: &Vec3| 9810.0 * (1.0 - x.dot(up));
            let compressions: Vec<f32> = positions
                .iter()
                .map(|x| water.compression(pressure(x) / config.density))
                .collect();
            let mut at = DVec3::new(1.52, 0.43, 0.0);
            at[dimensions.count() as usize - 1] = 0.0;
            let floor = Probe {
                name: "floor".to_owned(),
                at,
            };
            let above = Probe {
                at: at + 4.0 * up.as_dvec3(),
                ..floor.clone()
            };
            let probes = [floor, above];
            let found = pressures(&config, &probes, &positions, &compressions);
            assert!((found[0] / 9810.0 - 1.0).abs() < 5e-3, "{found:?}");
            assert_eq!(found[1], 0.0);
            let column = Column {
                middle: [1.52, 0.43],
                area: 0.2_f64.powi(dimensions.count() as i32 - 1),
            };
            let height = heights(&config, &[column], &positions)[0];
            assert!((height - 1.0).abs() < 1e-4, "{height}");
        }
    }
}
