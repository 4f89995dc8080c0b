//! The page of a run: its frames in a browser, coloured by speed or pressure, beside charts of its
//! tables.
//!
//! [`Page::frame`] packs the particles of a moment, on any thread; [`Page::earlier`] those of a
//! frame's file, for a run that goes on, with the same bytes. All frames together hold at most
//! [`MAX_POINTS`] particles, so that a browser can hold them: of larger runs a part is shown, the
//! same in every frame.

use std::path::Path;

use glam::Vec3;
use nearfield_grid::memory::with_room;
use nearfield_io::{
    Chart, ChartLine, Detail, PointData, Scale, View, ViewFrame, ViewWriter, read_points,
};
use nearfield_sph::{Dimensions, Energy, Moment};

use crate::journal::Journal;
use crate::probes::Readings;
use crate::reference::{Point, experiments};
use crate::scene::Scene;
use crate::units::Units;
use crate::{Error, ErrorKind};

/// Maximum number of particles in all frames of a page: 48 frames of 131,072.
const MAX_POINTS: usize = 48 << 17;

/// Maximum number of points of a curve.
const MAX_CURVE: usize = 1000;

/// The fractional parts of multiples of the golden ratio, as 64 bits: any first ids are spread
/// evenly by it.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is common to all frames of a page.
pub(crate) struct Page {
    view: View,
    units: Units,
    /// Whether charts are in the experiments' units.
    scaled: bool,
    frames: usize,
}

/// A particle as the page shows it.
struct Particle {
    id: u64,
    position: [f32; 3],
    velocity: Vec3,
    /// Pa.
    pressure: f32,
}

impl Page {
    /// A page of a run of `scene` with this number of frames.
    pub(crate) fn new(directory: &Path, scene: &Scene, frames: usize) -> Self {
        let flat = scene.dimensions == Dimensions::Two;
        let depth = scene.depth();
        let density = f64::from(scene.config(1.0).density);
        let scale = |name: &str, high: f64| Scale {
            name: name.to_owned(),
            low: 0.0,
            high,
            whole: false,
            open: true,
        };
        let fall = (2.0 * scene.gravity * depth).sqrt();
        let solids = (scene.obstacles.iter())
            .map(|block| [block.low, block.high].map(|corner| corner.as_vec3().to_array()));
        let place = if flat { "the plane" } else { "space" };
        let view = View {
            path: directory.join("index.html"),
            title: format!("Nearfield: {} in {place}", scene.title),
            scales: vec![
                scale("speed, m/s", fall),
                scale("pressure, kPa", 1e-3 * density * scene.gravity * depth),
            ],
            bounds: [[0.0; 3], scene.tank.as_vec3().to_array()],
            solids: solids.collect(),
            flat,
            detail: Detail::Coarse,
        };
        Self {
            view,
            units: Units::of(scene),
            scaled: scene.front.is_some(),
            frames,
        }
    }

    /// Begins the file.
    pub(crate) fn create(&self) -> Result<ViewWriter, Error> {
        Ok(self.view.create()?)
    }

    /// The frame of a moment.
    pub(crate) fn frame(&self, moment: &Moment) -> Result<ViewFrame, Error> {
        let _span = tracing::debug_span!("beside.page").entered();
        let pressures = moment.pressures()?;
        let particle = |index: usize| Particle {
            id: moment.ids()[index],
            position: moment.positions()[index].to_array(),
            velocity: moment.velocities()[index],
            pressure: pressures[index],
        };
        self.pack(moment.time(), (0..moment.ids().len()).map(particle))
    }

    /// The frame of a file that was written before the run went on.
    pub(crate) fn earlier(&self, path: &Path) -> Result<ViewFrame, Error> {
        let cloud = read_points(path)?;
        let quantity = |name: &str| {
            let known = cloud.quantity(name);
            known.ok_or_else(|| {
                let (path, reason) = (path.to_owned(), format!("it has no quantity {name}"));
                Error::from(ErrorKind::Earlier { path, reason })
            })
        };
        let mut velocities = quantity("velocity")?.doubles();
        let mut pressures = quantity("pressure")?.doubles();
        let mut ids = quantity("id")?.doubles();
        let particles = cloud.positions.iter().map(|&position| {
            let mut next = || velocities.next().unwrap_or_default() as f32;
            Particle {
                velocity: Vec3::new(next(), next(), next()),
                id: ids.next().unwrap_or_default() as u64,
                position,
                pressure: pressures.next().unwrap_or_default() as f32,
            }
        });
        self.pack(cloud.time.unwrap_or_default(), particles)
    }

    fn pack(
        &self,
        time: f64,
        particles: impl ExactSizeIterator<Item = Particle>,
    ) -> Result<ViewFrame, Error> {
        let count = particles.len();
        let max = (MAX_POINTS / self.frames.max(1)).max(1);
        let last = if count > max {
            (u64::MAX as f64 * (max as f64 / count as f64)) as u64
        } else {
            u64::MAX
        };
        let (room, what) = (count.min(max + max / 8), "particles of a page");
        let mut positions = with_room(room, what)?;
        let (mut speeds, mut pressures) = (with_room(room, what)?, with_room(room, what)?);
        for particle in particles.filter(|particle| particle.id.wrapping_mul(GOLDEN) <= last) {
            positions.push(particle.position);
            speeds.push(particle.velocity.length());
            pressures.push(1e-3 * particle.pressure);
        }
        let scaled = self.units.scaled_time(time);
        let (at, label) = if self.scaled {
            (scaled, format!("{time:.2} s, T = {scaled:.2}"))
        } else {
            (time, format!("{time:.2} s"))
        };
        let data = [
            PointData::scalars("speed", speeds),
            PointData::scalars("pressure", pressures),
        ];
        let frame = self.view.frame(at, &label, &positions, &data)?;
        Ok(if positions.len() < count {
            frame.part_of(count)
        } else {
            frame
        })
    }
}

/// The charts beside the page of a run of `scene`.
pub(crate) fn charts(scene: &Scene, journal: &Journal, readings: Option<&Readings>) -> Vec<Chart> {
    let units = Units::of(scene);
    let scaled = scene.front.is_some();
    let across = if scaled {
        "T = t·√(2g/a)"
    } else {
        "time, s"
    };
    let chart = |title: &str, lines: Vec<ChartLine>| Chart {
        title: title.to_owned(),
        across: across.to_owned(),
        lines,
    };
    let curve = |name: &str, seconds: &mut dyn Iterator<Item = Point>| {
        let time = |time: f64| {
            if scaled {
                units.scaled_time(time)
            } else {
                time
            }
        };
        let points = seconds.map(|(seconds, value)| (time(seconds), value));
        ChartLine {
            name: name.to_owned(),
            points: thinned(points.collect()),
            markers: false,
        }
    };
    let mut charts = Vec::new();
    if scaled {
        let ours = ChartLine {
            name: "this run".to_owned(),
            points: thinned(journal.front()),
            markers: false,
        };
        // Tanks of experiments are longer.
        let end = units.scaled_length(scene.tank.x);
        let inside = move |point: &Point| point.1 <= end;
        let measured = experiments().into_iter().map(|experiment| ChartLine {
            name: experiment.name.to_owned(),
            points: experiment.points.into_iter().filter(inside).collect(),
            markers: true,
        });
        let lines = [ours].into_iter().chain(measured).collect();
        charts.push(chart("Front, Z = x/a", lines));
    }
    type Part = fn(&Energy) -> f64;
    let energies: [(&str, Part); 4] = [
        ("kinetic", |energy| energy.kinetic),
        ("potential", |energy| energy.potential),
        ("fluid, all", Energy::mechanical),
        ("with losses", Energy::total),
    ];
    let energy = energies.map(|(name, value)| curve(name, &mut journal.energy(value)));
    let unit = match scene.dimensions {
        Dimensions::Two => "Energy, J per metre of depth",
        Dimensions::Three => "Energy, J",
    };
    charts.push(chart(unit, energy.into()));
    for (title, probes) in readings.into_iter().flat_map(Readings::curves) {
        let lines: Vec<ChartLine> = (probes.into_iter())
            .map(|(name, points)| curve(name, &mut points.into_iter()))
            .collect();
        if !lines.is_empty() {
            charts.push(chart(title, lines));
        }
    }
    charts
}

/// The points of a curve, of many the highest or lowest of every few.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let few = points.len().div_ceil(MAX_CURVE).max(1);
    let farthest = |points: &[Point]| {
        let far = |one: &&Point, other: &&Point| one.1.abs().total_cmp(&other.1.abs());
        points.iter().max_by(far).copied()
    };
    points.chunks(few).filter_map(farthest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_keep_their_peaks() {
        let mut points: Vec<Point> = (0..10_000).map(|n| (f64::from(n), 1.0)).collect();
        points[1234].1 = -7.0;
        let few = thinned(points.clone());
        assert_eq!(few.len(), MAX_CURVE);
        assert!(few.contains(&(1234.0, -7.0)) && few.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(thinned(points[..MAX_CURVE].to_vec()), points[..MAX_CURVE]);
        assert!(thinned(Vec::new()).is_empty());
    }
}
