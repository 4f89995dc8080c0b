//! The content of a picture: the fluid, its tank, and the view.

use glam::{Vec2, Vec3};

/// Samples per pixel along each axis.
pub(super) const SAMPLES: usize = 2;

/// Radius, as a share of the tank's length, of particles without a usable one.
const FALLBACK_RADIUS: f32 = 0.004;

/// From where the tank is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// From the side, without perspective: for two dimensions.
    Side2d,
    /// In perspective, from slightly above and the right.
    Perspective3d,
}

/// The axis of the positions that points upwards; the third axis is the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// y is the height, z the depth.
    Y,
    /// z is the height, y the depth.
    Z,
}

/// A state of the fluid to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Particle positions in metres; the tank's lower corner is the origin.
    /// Particles that are not at a finite place are left out.
    pub positions: &'a [[f32; 3]],
    /// Velocities in m/s, one per position; missing ones count as 0.
    pub velocities: &'a [[f32; 3]],
    /// Radius to draw the particles with, in metres; half their spacing makes
    /// neighbours touch, a little more closes the gaps.
    pub particle_radius: f32,
    /// Inner lengths of the tank in metres: along x, its depth (0 in two
    /// dimensions) and its height, whatever axis points upwards.
    pub tank: [f32; 3],
    /// Lowest and highest corners of boxes in the tank, in metres: along x, in
    /// depth and height: solids, with their edges.
    pub obstacles: &'a [[[f32; 3]; 2]],
    /// Which axis of the positions points upwards.
    pub up: Up,
    /// From where the tank is seen; the side view ignores the depth.
    pub view: View,
    /// Time since the gate was pulled, in seconds.
    pub time_s: f64,
    /// The same in units of sqrt(a / 2g), a being the column's width.
    pub dimensionless_time: f64,
    /// Speed at the upper end of the colour scale, in m/s.
    pub top_speed: f32,
    /// Line of text below the time.
    pub caption: &'a str,
}

/// Space between labels and the picture's edge, in design units.
pub(super) const MARGIN: f32 = 34.0;

impl Frame<'_> {
    /// The tank's length, depth and height as seen.
    pub(super) fn tank_lengths(&self) -> [f32; 3] {
        let [length, depth, height] = self.tank;
        [
            length,
            if self.view == View::Side2d {
                0.0
            } else {
                depth
            },
            height,
        ]
    }

    /// Position of a particle with z upwards and y away from the viewer.
    #[inline]
    pub(super) fn scene_position(&self, particle: usize) -> Vec3 {
        let depth_share = if self.view == View::Side2d { 0.0 } else { 1.0 };
        let [x, y, z] = self.positions[particle];
        match self.up {
            Up::Y => Vec3::new(x, z * depth_share, y),
            Up::Z => Vec3::new(x, y * depth_share, z),
        }
    }

    /// The particle radius, or one that suits the tank if it cannot be drawn.
    pub(super) fn usable_radius(&self) -> f32 {
        let usable = self.particle_radius.is_finite() && self.particle_radius > 0.0;
        if usable {
            self.particle_radius
        } else {
            FALLBACK_RADIUS * self.tank[0].abs()
        }
    }
}

/// Size of the labels' design unit for a picture of `size` pixels; small
/// pictures get relatively larger letters.
pub(super) fn label_unit(size: Vec2) -> f32 {
    (size.y.min(0.75 * size.x) / 720.0).max(0.01).powf(0.7)
}

/// Height that the labels of a canvas of `size` samples take up, in samples.
pub(super) fn label_height(size: Vec2) -> f32 {
    let pixels = size / SAMPLES as f32;
    (MARGIN + 72.0) * label_unit(pixels) * SAMPLES as f32
}
