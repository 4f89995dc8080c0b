//! How much of the surroundings' light reaches a point between the spheres.
//!
//! A screen-space estimate after the scalable ambient obscurance of McGuire,
//! Mara and Luebke (2012, DOI 10.2312/EGGH/HPG12/097-103): probes around a
//! sample look up the depth buffer, and what rises above the point's tangent
//! plane dims it. There are two reaches, one about the gaps between particles
//! and one about the shape of the whole.

use glam::{Vec2, Vec3};

use super::camera::Ray;
use super::frame::SAMPLES;
use super::raster::NEAR;
use super::stage::Stage;

/// Probes per reach and sample: four times as many for a pixel.
const PROBES: usize = 4;
/// Patterns of probes.
const PATTERNS: usize = SAMPLES * SAMPLES;
/// Turn from one probe to the next: the golden angle, in radians.
const TURN: f32 = 2.399_963;
/// The gaps between particles: reach in particle radii, strength.
const FINE: (f32, f32) = (3.0, 0.9);
/// The shape of the whole: reach in particle radii, strength.
const BROAD: (f32, f32) = (16.0, 1.5);
/// Largest reach in samples, so that close-ups stay cheap and local.
const LONGEST_REACH: f32 = 90.0;

/// Places of the probes in a disc of radius 1.
pub(super) struct Probes {
    /// Differently turned, one pattern for each sample of a pixel.
    patterns: [[Vec2; PROBES]; PATTERNS],
}

impl Probes {
    pub(super) fn new() -> Self {
        let place = |pattern: usize, probe: usize| {
            let distance = ((probe as f32 + 0.5) / PROBES as f32).sqrt();
            Vec2::from_angle(probe as f32 * TURN + pattern as f32 * 0.61) * distance
        };
        let pattern = |pattern: usize| std::array::from_fn(|probe| place(pattern, probe));
        Self {
            patterns: std::array::from_fn(pattern),
        }
    }

    /// Probes of a single sample.
    pub(super) fn of_one(&self, sample: usize) -> &[Vec2] {
        &self.patterns[sample]
    }

    /// Probes of two samples, for several samples together.
    pub(super) fn of_two(&self) -> &[Vec2] {
        self.patterns[..2].as_flattened()
    }

    /// Probes of all samples, for a whole pixel.
    pub(super) fn all(&self) -> &[Vec2] {
        self.patterns.as_flattened()
    }
}

/// A piece of surface in view coordinates.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    pub(super) point: Vec3,
    /// Of length 1.
    pub(super) normal: Vec3,
}

/// Share of the light that reaches a view point with the given normal, seen at `pixel`; in [0, 1].
/// The gaps between particles count by the share `gaps`.
pub(super) fn openness(
    stage: &Stage<'_>,
    probes: &[Vec2],
    gaps: f32,
    pixel: Vec2,
    surface: Surface,
) -> f32 {
    let open = |(radii, strength): (f32, f32)| {
        let blocked = obscurance(stage, probes, pixel, surface, radii * stage.radius);
        (1.0 - strength * blocked).max(0.0)
    };
    if gaps > 0.0 {
        open(BROAD) * (1.0 - gaps * (1.0 - open(FINE)))
    } else {
        open(BROAD)
    }
}

/// Obscurance by the spheres within `reach` of a view point, in scene units.
fn obscurance(
    stage: &Stage<'_>,
    probes: &[Vec2],
    pixel: Vec2,
    surface: Surface,
    reach: f32,
) -> f32 {
    let Surface { point, normal } = surface;
    let scale = stage.camera.pixels_per_unit(point.z);
    let reach = reach.min(LONGEST_REACH / scale);
    const { assert!(LONGEST_REACH < NEAR) };
    if !stage.hits.may_be_near(pixel) {
        return 0.0;
    }
    let mut blocked = 0.0;
    for &offset in probes {
        let at = pixel + offset * (reach * scale);
        let depth = stage.hits.depth(at.x as i32, at.y as i32);
        if depth == f32::INFINITY {
            continue;
        }
        let Ray { origin, per_depth } = stage.camera.ray(at);
        let to = origin + per_depth * depth - point;
        let rise = to.dot(normal) - 0.02 * reach;
        let falloff = 1.0 - to.length_squared() / (reach * reach);
        if rise > 0.0 && falloff > 0.0 {
            blocked += falloff * rise / (to.length() + 0.05 * reach);
        }
    }
    2.0 * blocked / probes.len() as f32
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Frame, Up, View};
    use super::super::stage::StageStorage;
    use super::*;

    /// Openness at the middle of a picture of one sphere with others around it,
    /// all in one plane facing the viewer.
    fn openness_of_the_middle(others: &[[f32; 3]], gaps: f32) -> f32 {
        let mut positions = others.to_vec();
        positions.push([2.0, 0.0, 1.0]);
        let frame = Frame {
            positions: &positions,
            velocities: &[],
            particle_radius: 0.2,
            tank: [4.0, 0.0, 2.0],
            obstacles: &[],
            up: Up::Z,
            view: View::Side2d,
            time_s: 0.0,
            dimensionless_time: 0.0,
            top_speed: 1.0,
            caption: "",
        };
        let stage = Stage::new(&frame, 400, 240, StageStorage::default());
        let beside = stage.camera.view(Vec3::new(2.19, 0.0, 1.0));
        let normal = Vec3::new(0.6, 0.0, -0.8);
        let probes = Probes::new();
        openness(
            &stage,
            probes.of_one(0),
            gaps,
            stage.camera.pixel(beside),
            Surface {
                point: beside,
                normal,
            },
        )
    }

    #[test]
    fn neighbors_darken_a_gap_and_a_lonely_sphere_stays_bright() {
        let alone = openness_of_the_middle(&[], 1.0);
        let beside = openness_of_the_middle(&[[2.4, 0.0, 1.0]], 1.0);
        assert!(alone > 0.8, "{alone}");
        assert!(
            beside < alone - 0.05,
            "{beside} beside a neighbour, {alone} alone"
        );
    }

    #[test]
    fn gaps_never_brighten() {
        let broad = openness_of_the_middle(&[[2.4, 0.0, 1.0]], 0.0);
        let both = openness_of_the_middle(&[[2.4, 0.0, 1.0]], 1.0);
        assert!(both <= broad && (0.0..=1.0).contains(&both));
    }
}
