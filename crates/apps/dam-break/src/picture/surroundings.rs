//! The background of the fluid: the glass of the tank, a floor with shadow, and a backdrop.
//!
//! Away from the fluid it is the same in every picture of a run, so it is computed once.

use std::sync::{Arc, Mutex, PoisonError};

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::colors::from_hex;
use super::frame::{SAMPLES, View};
use super::occlusion::{Probes, Surface, openness};
use super::stage::{PENUMBRA, Stage};
use super::tank::Exit;

/// Colours of the background.
struct Colors {
    backdrop: [Vec3; 2],
    floor: Vec3,
    glass: Vec3,
}

impl Colors {
    fn new() -> Self {
        Self {
            backdrop: [from_hex(0x1a222e), from_hex(0x2c394a)],
            floor: from_hex(0x506179),
            glass: from_hex(0x8fb4d8),
        }
    }
}

/// The view of a pixel where no fluid is near.
struct Plain {
    color: Vec3,
    /// Share of the floor's colour in it; zero where it does not see the floor.
    floor: f32,
    /// Where the light sees that point of the floor.
    on_light: Vec2,
}

impl Plain {
    /// The view from this place of the picture.
    fn new(stage: &Stage<'_>, colors: &Colors, pixel: Vec2) -> Self {
        let share = pixel / Vec2::new(stage.hits.width as f32, stage.hits.height as f32);
        let glow = (1.0 - (share - Vec2::new(0.5, 0.55)).length_squared() * 2.2).clamp(0.0, 1.0);
        let backdrop = colors.backdrop[0].lerp(colors.backdrop[1], glow);
        let (from, direction) = stage.camera.scene_ray(stage.camera.ray(pixel));
        let through = |height: f32| 0.035 + 0.035 * (1.0 - height);
        let glass = match stage.tank.exit(from, direction) {
            Exit::Wall(height) => through(height),
            // The tank has no depth there.
            _ if stage.view == View::Side2d && stage.tank.covers(from) => {
                through(from.z / stage.tank.size.z)
            }
            _ => 0.0,
        };
        let (point, floor) = if direction.z < -1e-3 {
            let point = on_floor(from, direction);
            (point, strength(stage, point))
        } else {
            (Vec3::ZERO, 0.0)
        };
        let behind = backdrop.lerp(colors.floor, floor);
        Self {
            color: behind.lerp(colors.glass, glass),
            floor: floor * (1.0 - glass),
            on_light: stage.on_light(point),
        }
    }
}

/// Where a ray that points downwards meets the floor.
fn on_floor(from: Vec3, direction: Vec3) -> Vec3 {
    from - direction * (from.z / direction.z)
}

/// How much the floor covers what is behind it; zero away from the tank, where it has faded into
/// the backdrop.
fn strength(stage: &Stage<'_>, point: Vec3) -> f32 {
    let away = stage.tank.distance_on_floor(point) / stage.tank.size.x;
    // Farther away the strength is below 0.004, too little to be seen.
    let faded = (away / 0.16).powi(2);
    if faded > 5.2 {
        return 0.0;
    }
    0.85 * ((-faded).exp() * 0.75 + if away == 0.0 { 0.25 } else { 0.0 })
}

/// Middle of a pixel whose first sample this is.
fn middle(column: usize, row: usize) -> Vec2 {
    Vec2::new(column as f32, row as f32) + 0.5 * SAMPLES as f32
}

/// The scenery of a picture, with its light at all pixels where no fluid is near.
pub(super) struct Surroundings {
    view: View,
    tank: Vec3,
    /// Samples of the picture.
    size: [usize; 2],
    colors: Colors,
    /// Row by row.
    pixels: Vec<Plain>,
}

impl Surroundings {
    fn new(stage: &Stage<'_>) -> Self {
        let (view, tank, size) = Self::key(stage);
        let colors = Colors::new();
        let columns = size[0].div_ceil(SAMPLES);
        let pixels = (0..columns * size[1].div_ceil(SAMPLES)).into_par_iter();
        let plain = |at: usize| {
            let pixel = middle(at % columns * SAMPLES, at / columns * SAMPLES);
            Plain::new(stage, &colors, pixel)
        };
        Self {
            view,
            tank,
            size,
            pixels: pixels.with_min_len(1024).map(plain).collect(),
            colors,
        }
    }

    /// Light that a pixel sees of them, at its middle; `column` and `row` are its first sample.
    #[inline]
    pub(super) fn seen(
        &self,
        stage: &Stage<'_>,
        probes: &Probes,
        [column, row]: [usize; 2],
    ) -> Vec3 {
        let pixel = middle(column, row);
        let columns = self.size[0].div_ceil(SAMPLES);
        let plain = &self.pixels[row / SAMPLES * columns + column / SAMPLES];
        let is_plain = !stage.hits.may_be_near(pixel) && stage.is_clear(plain.on_light);
        if plain.floor == 0.0 || is_plain {
            return plain.color;
        }
        let (from, direction) = stage.camera.scene_ray(stage.camera.ray(pixel));
        let point = on_floor(from, direction);
        let surface = Surface {
            point: stage.camera.view(point),
            normal: stage.camera.view_direction(Vec3::Z),
        };
        let open = openness(stage, probes.all(), 0.0, pixel, surface);
        let light = (0.35 + 0.65 * stage.lit(point, &PENUMBRA)) * (0.25 + 0.75 * open);
        plain.color - self.colors.floor * (plain.floor * (1.0 - light))
    }

    /// All that they depend on.
    fn key(stage: &Stage<'_>) -> (View, Vec3, [usize; 2]) {
        let size = [stage.hits.width, stage.hits.height];
        (stage.view, stage.tank.size, size)
    }
}

/// The surroundings of the last picture, shared by all that draw the same scene.
#[derive(Clone, Default)]
pub(super) struct SharedSurroundings(Arc<Mutex<Option<Arc<Surroundings>>>>);

impl SharedSurroundings {
    /// The surroundings of the stage, computed if they have changed.
    pub(super) fn of(&self, stage: &Stage<'_>) -> Arc<Surroundings> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there = kept().clone();
        let is_same =
            |one: &Arc<Surroundings>| (one.view, one.tank, one.size) == Surroundings::key(stage);
        // Not locked meanwhile: a thread that waits in the pool may take up another picture.
        there.filter(is_same).unwrap_or_else(|| {
            let new = Arc::new(Surroundings::new(stage));
            *kept() = Some(new.clone());
            new
        })
    }
}
