//! Writes the moments of a run: particles, pictures, and the animation.

use std::path::{Path, PathBuf};

use image::RgbImage;
use image::imageops::{FilterType, resize};
use rayon::ThreadPool;

use super::column::{Column, HEIGHT, TANK, WIDTH};
use super::group_digits;
use super::picture::{Animation, Frame, Up, View};
use super::units::Units;
use crate::{Dimensions, Error, Simulation};

/// Width and height of the pictures, pixels.
const PICTURE: (u32, u32) = (1280, 720);

/// Width and height of the animation, pixels.
const ANIMATION: (u32, u32) = (640, 360);

/// Time per frame of the animation, milliseconds.
const FRAME_MS: u32 = 60;

/// Frames for which the animation shows the last moment.
const HOLD: usize = 12;

/// Radius of the drawn particles in spacings: they overlap, as water has no
/// gaps.
const RADIUS: f32 = 0.6;

/// Writes frames of one run into a directory.
pub(crate) struct Frames {
    directory: PathBuf,
    column: Column,
    animation: Animation,
    last: Option<RgbImage>,
    count: usize,
    pool: ThreadPool,
}

impl Frames {
    /// Frames of the column, to be drawn by `threads` threads (0: all cores).
    pub(crate) fn create(
        directory: &Path,
        column: Column,
        threads: usize,
    ) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads { threads, reason: error.to_string() })?;
        Ok(Self {
            directory: directory.to_owned(),
            column,
            animation: Animation::create(directory.join("dam_break.gif"), FRAME_MS)?,
            last: None,
            count: 0,
            pool,
        })
    }

    /// Writes the present moment of `simulation` as the next frame.
    pub(crate) fn write(&mut self, simulation: &Simulation) -> Result<(), Error> {
        let name = format!("frame_{:04}", self.count);
        simulation.write_frame(&self.directory.join(&name).with_extension("vtp"))?;
        let picture = self.pool.install(|| draw(self.column, simulation));
        let path = self.directory.join(&name).with_extension("png");
        picture.save(&path).map_err(|error| Error::Output { path, reason: error.to_string() })?;
        let small = resize(&picture, ANIMATION.0, ANIMATION.1, FilterType::CatmullRom);
        self.animation.push(&small)?;
        self.last = Some(small);
        self.count += 1;
        Ok(())
    }

    /// Completes the animation and returns the number of frames written.
    pub(crate) fn finish(mut self) -> Result<usize, Error> {
        if let Some(last) = &self.last {
            for _ in 0..HOLD {
                self.animation.push(last)?;
            }
            self.animation.finish()?;
        }
        Ok(self.count)
    }
}

/// The picture of the present moment of `simulation`.
fn draw(column: Column, simulation: &Simulation) -> RgbImage {
    let config = simulation.config();
    let (up, view, place, depth) = match column.dimensions {
        Dimensions::Two => (Up::Y, View::Side2d, "the plane", 0.0),
        Dimensions::Three => (Up::Z, View::Perspective3d, "space", WIDTH as f32),
    };
    let speeds: Vec<f32> = simulation.velocities().iter().map(|v| v.length()).collect();
    let count = group_digits(speeds.len());
    let fall = (2.0 * f64::from(config.gravity.length()) * HEIGHT).sqrt();
    Frame {
        positions: bytemuck::cast_slice(simulation.positions()),
        speeds: &speeds,
        particle_radius: RADIUS * config.spacing,
        tank: [TANK[0] as f32, depth, TANK[1] as f32],
        up,
        view,
        time_s: simulation.time(),
        dimensionless_time: Units::of(config).scaled_time(simulation.time()),
        top_speed: fall.round() as f32,
        caption: &format!("{count} particles in {place}"),
    }
    .render(PICTURE.0, PICTURE.1)
}
