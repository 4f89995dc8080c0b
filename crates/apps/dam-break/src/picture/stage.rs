//! A frame set up for drawing: cameras, the spheres each one sees, colours.
//!
//! The key light is a second camera with parallel rays; what it does not see
//! lies in shadow (Williams 1978, DOI 10.1145/800248.807402).

use glam::{Vec2, Vec3};

use super::camera::{Camera, Window};
use super::colors::SpeedColors;
use super::frame::{Frame, View, label_height};
use super::raster::{Hits, NEAR, Storage, nearest};
use super::smooth::Smoothed;
use super::tank::Tank;

/// Width and height of the light's picture, as a share of the main one's width.
const LIGHT_SHARE: f32 = 0.5;
/// Smallest and largest width and height of the light's picture, in pixels.
const LIGHT_PIXELS: (usize, usize) = (400, 2400);

/// Points of a disc at which the edge of a shadow is probed: the first half for samples of odd
/// numbers in their pixel, the other for the others, all for a pixel that is looked at once.
pub(super) const PENUMBRA: [Vec2; 8] = [
    Vec2::new(0.30, 0.12),
    Vec2::new(-0.42, -0.22),
    Vec2::new(0.46, 0.70),
    Vec2::new(-0.58, -0.76),
    Vec2::new(-0.18, 0.38),
    Vec2::new(0.14, -0.56),
    Vec2::new(0.72, -0.18),
    Vec2::new(-0.66, 0.62),
];

/// Storage of the hits of camera and light, reused between frames.
#[derive(Default)]
pub(super) struct StageStorage {
    camera: Storage,
    light: Storage,
}

/// Everything a pixel's colour depends on.
pub(super) struct Stage<'a> {
    frame: &'a Frame<'a>,
    pub(super) view: View,
    pub(super) tank: Tank,
    pub(super) camera: Camera,
    /// Particle radius in scene units, positive.
    pub(super) radius: f32,
    pub(super) hits: Hits,
    /// The boxes in the tank: lowest and highest corners in the scene.
    pub(super) blocks: Vec<[Vec3; 2]>,
    /// The surface that the particles stand for.
    pub(super) smoothed: Smoothed,
    /// Towards the key light, in the scene, of length 1.
    pub(super) to_light: Vec3,
    light: Option<Light>,
    colors: SpeedColors,
    /// Speed at the end of the colours.
    top_speed: f32,
}

/// The key light's camera and its hits.
struct Light {
    camera: Camera,
    hits: Hits,
    /// Depth by which a point may lie behind the seen one and still be lit.
    tolerance: f32,
    /// Radius of the probed disc, in the light's pixels.
    softness: f32,
}

impl<'a> Stage<'a> {
    /// Sets up a frame for a picture of `width`×`height` samples.
    pub(super) fn new(
        frame: &'a Frame<'a>,
        width: usize,
        height: usize,
        storage: StageStorage,
    ) -> Self {
        let tank = Tank::new(frame.tank_lengths());
        let radius = frame.usable_radius();
        let camera = main_camera(frame.view, &tank, width, height);
        let blocks = blocks(frame, &tank);
        let drawn = Drawn {
            frame,
            radius,
            blocks: &blocks,
        };
        let hits = drawn.seen_by(&camera, [width, height], storage.camera);
        let smoothed = Smoothed::new(&hits, &camera, radius);
        let to_light = light_direction(frame.view);
        let light_pixels =
            ((width as f32 * LIGHT_SHARE) as usize).clamp(LIGHT_PIXELS.0, LIGHT_PIXELS.1);
        let light = (frame.view == View::Perspective3d)
            .then(|| Light::new(to_light, &tank, &drawn, light_pixels, storage.light));
        let top_speed = if frame.top_speed > 0.0 {
            frame.top_speed
        } else {
            f32::INFINITY
        };
        Self {
            frame,
            view: frame.view,
            tank,
            camera,
            radius,
            hits,
            blocks,
            smoothed,
            to_light,
            light,
            colors: SpeedColors::new(),
            top_speed,
        }
    }

    /// The storage, for the stage of another frame.
    pub(super) fn into_storage(self) -> StageStorage {
        StageStorage {
            camera: self.hits.into_storage(),
            light: self
                .light
                .map_or_else(Storage::default, |light| light.hits.into_storage()),
        }
    }

    /// View coordinates of a particle.
    #[inline]
    pub(super) fn center(&self, particle: usize) -> Vec3 {
        self.camera.view(self.frame.scene_position(particle))
    }

    /// Linear colour of a particle by its speed; without a velocity it counts as resting.
    #[inline]
    pub(super) fn color(&self, particle: usize) -> Vec3 {
        let velocity = self.frame.velocities.get(particle);
        let speed = velocity.map_or(0.0, |&velocity| Vec3::from(velocity).length());
        self.colors.at(speed / self.top_speed)
    }

    /// The pixel of the light's picture that shows a scene point; any where nothing casts a shadow.
    pub(super) fn on_light(&self, point: Vec3) -> Vec2 {
        let on = |light: &Light| light.camera.pixel(light.camera.view(point));
        self.light.as_ref().map_or(Vec2::ZERO, on)
    }

    /// Returns true only if all light reaches the point seen [there](Self::on_light).
    #[inline]
    pub(super) fn is_clear(&self, on_light: Vec2) -> bool {
        let is_clear = |light: &Light| light.is_clear(on_light);
        self.light.as_ref().is_none_or(is_clear)
    }

    /// Share of the key light that reaches a scene point, in [0, 1], by probes of [`PENUMBRA`].
    #[inline]
    pub(super) fn lit(&self, point: Vec3, probes: &[Vec2]) -> f32 {
        self.light
            .as_ref()
            .map_or(1.0, |light| light.reaches(point, probes))
    }
}

/// Corners of the boxes in the tank, in the scene; without depth where the tank has none.
fn blocks(frame: &Frame<'_>, tank: &Tank) -> Vec<[Vec3; 2]> {
    let seen = Vec3::new(1.0, if tank.size.y == 0.0 { 0.0 } else { 1.0 }, 1.0);
    let corners = |ends: &[[f32; 3]; 2]| ends.map(|end| Vec3::from(end) * seen);
    frame.obstacles.iter().map(corners).collect()
}

/// What a camera sees.
struct Drawn<'a> {
    frame: &'a Frame<'a>,
    radius: f32,
    blocks: &'a [[Vec3; 2]],
}

impl Drawn<'_> {
    /// What is nearest along the rays of a camera.
    fn seen_by(&self, camera: &Camera, size: [usize; 2], storage: Storage) -> Hits {
        let center = |particle| camera.view(self.frame.scene_position(particle));
        let spheres = (self.frame.positions.len(), center);
        nearest(camera, spheres, self.radius, self.blocks, size, storage)
    }
}

impl Light {
    fn new(
        to_light: Vec3,
        tank: &Tank,
        drawn: &Drawn<'_>,
        pixels: usize,
        storage: Storage,
    ) -> Self {
        let window = Window {
            low: Vec2::splat(8.0),
            high: Vec2::splat(pixels as f32 - 8.0),
        };
        let camera = Camera::parallel(-to_light, &tank.corners(), window);
        let hits = drawn.seen_by(&camera, [pixels, pixels], storage);
        let radius = drawn.radius;
        let softness = 2.0 * radius * camera.pixels_per_unit(1.0);
        Self {
            camera,
            hits,
            tolerance: 2.0 * radius,
            softness,
        }
    }

    /// Returns true only if nothing is near enough to this pixel to take light from it.
    #[inline]
    fn is_clear(&self, pixel: Vec2) -> bool {
        self.softness < NEAR && !self.hits.may_be_near(pixel)
    }

    fn reaches(&self, point: Vec3, probes: &[Vec2]) -> f32 {
        let view = self.camera.view(point);
        let pixel = self.camera.pixel(view);
        if self.is_clear(pixel) {
            return 1.0;
        }
        let mut blocked = 0;
        for &offset in probes {
            let probe = pixel + offset * self.softness;
            let depth = self.hits.depth(probe.x as i32, probe.y as i32);
            blocked += u32::from(depth + self.tolerance < view.z);
        }
        1.0 - blocked as f32 / probes.len() as f32
    }
}

/// The camera of the picture, with room for the labels at the top.
fn main_camera(view: View, tank: &Tank, width: usize, height: usize) -> Camera {
    let size = Vec2::new(width as f32, height as f32);
    let low = Vec2::new(0.05 * size.x, label_height(size));
    let window = Window {
        low,
        high: size * Vec2::new(0.95, 0.94),
    };
    match view {
        View::Perspective3d => {
            Camera::perspective(Vec3::new(-0.34, 0.89, -0.31), &tank.corners(), window)
        }
        View::Side2d => Camera::parallel(Vec3::Y, &tank.corners(), window),
    }
}

/// Towards the key light: from above and the left, so that the face the front
/// turns to the viewer lies in soft shade and the shadow falls ahead of it.
fn light_direction(view: View) -> Vec3 {
    match view {
        View::Perspective3d => Vec3::new(-0.40, -0.50, 0.85).normalize(),
        View::Side2d => Vec3::new(-0.45, -0.75, 0.60).normalize(),
    }
}
