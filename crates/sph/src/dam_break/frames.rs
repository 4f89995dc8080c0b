//! Writes the moments of a run: particles, pictures, and the animation.

use indicatif::HumanCount;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::imageops::{FilterType, resize};
use image::{ImageFormat, RgbImage};
use rayon::ThreadPool;

use super::column::{Column, HEIGHT, TANK, WIDTH};
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
    /// Begun with the first frame.
    animation: Option<Animation>,
    last: Option<RgbImage>,
    count: usize,
    pool: ThreadPool,
}

impl Frames {
    /// Frames of the column, to be drawn by `threads` threads (0: all cores).
    /// Frames of an earlier run in the directory are removed when the first
    /// one is there.
    pub(crate) fn create(directory: &Path, column: Column, threads: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Threads {
                threads,
                reason: error.to_string(),
            })?;
        Ok(Self {
            directory: directory.to_owned(),
            column,
            animation: None,
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
        save(&picture, &path)?;
        if self.count == 0 {
            remove_frames(&self.directory, &name)?;
        }
        let small = resize(&picture, ANIMATION.0, ANIMATION.1, FilterType::CatmullRom);
        let animation = match &mut self.animation {
            Some(animation) => animation,
            none => none.insert(Animation::create(
                self.directory.join("dam_break.gif"),
                FRAME_MS,
            )?),
        };
        animation.push(&small)?;
        self.last = Some(small);
        self.count += 1;
        Ok(())
    }

    /// Completes the animation and returns the number of frames written.
    pub(crate) fn finish(self) -> Result<usize, Error> {
        if let (Some(mut animation), Some(last)) = (self.animation, self.last) {
            for _ in 0..HOLD {
                animation.push(&last)?;
            }
            animation.finish()?;
        }
        Ok(self.count)
    }
}

/// Writes a picture as a PNG file.
fn save(picture: &RgbImage, path: &Path) -> Result<(), Error> {
    let refused = |reason: String| Error::Output {
        path: path.to_owned(),
        reason,
    };
    let mut bytes = Cursor::new(Vec::new());
    let encoded = picture.write_to(&mut bytes, ImageFormat::Png);
    encoded.map_err(|error| refused(error.to_string()))?;
    nearfield_files::write(path, bytes.into_inner()).map_err(|error| refused(error.to_string()))
}

/// Removes the frames of an earlier run, which might have had more of them,
/// but not the one of this name.
fn remove_frames(directory: &Path, first: &str) -> Result<(), Error> {
    let refused = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| Error::Output {
            path,
            reason: error.to_string(),
        }
    };
    for entry in std::fs::read_dir(directory).map_err(refused(directory))? {
        let path = entry.map_err(refused(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let is_first = path.file_stem().is_some_and(|stem| stem == first);
        if is_frame(name.unwrap_or_default()) && !is_first {
            std::fs::remove_file(&path).map_err(refused(&path))?;
        }
    }
    Ok(())
}

/// Whether a file is named as frames are: `frame_0123.vtp` or `.png`.
pub(crate) fn is_frame(name: &str) -> bool {
    let number = name
        .strip_prefix("frame_")
        .and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(digits, extension)| {
        digits.len() >= 4
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && ["vtp", "png"].contains(&extension)
    })
}

/// The picture of the present moment of `simulation`.
fn draw(column: Column, simulation: &Simulation) -> RgbImage {
    let config = simulation.config();
    let (up, view, place, depth) = match column.dimensions {
        Dimensions::Two => (Up::Y, View::Side2d, "the plane", 0.0),
        Dimensions::Three => (Up::Z, View::Perspective3d, "space", WIDTH as f32),
    };
    let speeds: Vec<f32> = simulation.velocities().iter().map(|v| v.length()).collect();
    let count = HumanCount(speeds.len() as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_of_an_earlier_run_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let kept = [
            "frame_0000.vtp",
            "frame_12.png",
            "frame_0001.txt",
            "my_frame_0001.vtp",
            "frame_00x1.png",
        ];
        let frames = ["frame_0001.vtp", "frame_0047.png", "frame_12345.vtp"];
        for name in kept.iter().chain(&frames) {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        remove_frames(directory.path(), "frame_0000").unwrap();
        assert!(kept.iter().all(|name| directory.path().join(name).exists()));
        assert!(
            !frames
                .iter()
                .any(|name| directory.path().join(name).exists())
        );
    }
}
