//! From hits to light: the colour of every sample of the picture.
//!
//! Fluid is lit by a key light with shadows, a fill light from the other side
//! and the sky, each dimmed where neighbours stand in the way. Around it lie a
//! glass tank, a floor that takes its shadow and a plain backdrop. Colours are
//! linear.

use glam::{Vec2, Vec3};

use super::camera::Ray;
use super::colors::from_hex;
use super::frame::{SAMPLES, View};
use super::occlusion::{Probes, Reach, Surface, openness};
use super::stage::{PENUMBRA, Stage};
use super::tank::Exit;

/// Some rows of the picture as linear colours, row by row.
pub(super) struct Canvas {
    pub(super) width: usize,
    /// Row of the picture that is the first here.
    pub(super) first: usize,
    pub(super) colors: Vec<Vec3>,
}

/// Colours the samples of `rows` rows from row `first` on.
pub(super) fn shade(stage: &Stage<'_>, first: usize, rows: usize) -> Canvas {
    let width = stage.hits.width;
    let palette = Palette::new();
    let mut colors = vec![Vec3::ZERO; width * rows];
    for row in (0..rows).step_by(SAMPLES) {
        for column in (0..width).step_by(SAMPLES) {
            let place = |index: usize| [column + index % SAMPLES, row + index / SAMPLES];
            let mut hits = [None; SAMPLES * SAMPLES];
            for (index, hit) in hits.iter_mut().enumerate() {
                let [column, row] = place(index);
                *hit = stage.hits.at(column as i32, (first + row) as i32);
            }
            // The surroundings change slowly: one colour does for a pixel that sees nothing else.
            let empty = hits.iter().all(Option::is_none).then(|| {
                let middle = Vec2::new(column as f32, (first + row) as f32) + 0.5 * SAMPLES as f32;
                let looks = Looks {
                    around: &palette.probes.all,
                    to_light: &PENUMBRA,
                };
                surroundings(stage, &palette, middle, looks)
            });
            let mut particle = None;
            for (index, hit) in hits.into_iter().enumerate() {
                let [column, row] = place(index);
                let pixel = Vec2::new(column as f32 + 0.5, (first + row) as f32 + 0.5);
                let looks = Looks {
                    around: &palette.probes.patterns[index],
                    to_light: &PENUMBRA[index % 2 * HALF..][..HALF],
                };
                colors[row * width + column] = match (empty, hit) {
                    (Some(color), _) => color,
                    (None, Some(hit)) => {
                        let known = particle.filter(|known: &Particle| known.index == hit.sphere);
                        let seen = known.unwrap_or_else(|| Particle::new(stage, hit.sphere));
                        particle = Some(seen);
                        fluid(stage, &palette, pixel, (hit.depth, seen), looks)
                    }
                    (None, None) => surroundings(stage, &palette, pixel, looks),
                };
            }
        }
    }
    Canvas {
        width,
        first,
        colors,
    }
}

/// Half of the places where the edge of a shadow is probed.
const HALF: usize = PENUMBRA.len() / 2;

/// Where a sample looks for what stands in its light.
#[derive(Clone, Copy)]
struct Looks<'a> {
    around: &'a [Vec2],
    to_light: &'a [Vec2],
}

/// A particle as samples of one pixel see it.
#[derive(Clone, Copy)]
struct Particle {
    index: u32,
    center: Vec3,
    color: Vec3,
}

impl Particle {
    fn new(stage: &Stage<'_>, index: u32) -> Self {
        Self {
            index,
            center: stage.center(index as usize),
            color: stage.color(index as usize),
        }
    }
}

/// Colours and probes, which are the same for all samples.
struct Palette {
    backdrop: [Vec3; 2],
    floor: Vec3,
    glass: Vec3,
    key: Vec3,
    fill: Vec3,
    sky: Vec3,
    ground: Vec3,
    probes: Probes,
}

impl Palette {
    fn new() -> Self {
        Self {
            backdrop: [from_hex(0x1a222e), from_hex(0x2c394a)],
            floor: from_hex(0x506179),
            glass: from_hex(0x8fb4d8),
            key: Vec3::new(1.0, 0.95, 0.87) * 1.10,
            fill: Vec3::new(0.62, 0.78, 1.0) * 0.22,
            sky: Vec3::new(0.80, 0.90, 1.0) * 0.42,
            ground: Vec3::new(0.50, 0.60, 0.78) * 0.22,
            probes: Probes::new(),
        }
    }
}

/// Light leaving the surface of the particle that `pixel` sees at a depth.
fn fluid(
    stage: &Stage<'_>,
    palette: &Palette,
    pixel: Vec2,
    (depth, particle): (f32, Particle),
    looks: Looks<'_>,
) -> Vec3 {
    let Ray { origin, per_depth } = stage.camera.ray(pixel);
    let point = origin + per_depth * depth;
    let bulge = (point - particle.center) / stage.radius;
    // Flat discs read better than balls when nothing lies behind them.
    let normal = if stage.view == View::Side2d {
        (bulge - 0.9 * Vec3::Z).normalize()
    } else {
        bulge
    };
    let surface = Surface { point, normal };
    let open = openness(stage, looks.around, Reach::Both, pixel, surface);
    let lit = stage.lit(stage.camera.scene(point), looks.to_light);
    let to_light = stage.camera.view_direction(stage.to_light);
    let up = stage.camera.view_direction(Vec3::Z);
    let key = palette.key * normal.dot(to_light).max(0.0) * lit;
    let fill = palette.fill * normal.dot(Vec3::new(0.75, 0.1, -0.65)).max(0.0);
    let sky = palette.ground.lerp(palette.sky, 0.5 + 0.5 * normal.dot(up));
    let glint = highlight(normal, to_light, point) * lit * open;
    particle.color * (key * (0.4 + 0.6 * open) + (fill + sky) * open) + Vec3::splat(glint)
}

/// Strength of the key light's reflection (Blinn 1977, DOI 10.1145/563858.563893).
fn highlight(normal: Vec3, to_light: Vec3, point: Vec3) -> f32 {
    let halfway = (to_light - point.normalize()).normalize();
    0.10 * normal.dot(halfway).max(0.0).powi(36)
}

/// Light of what lies behind the fluid: glass, floor and backdrop.
fn surroundings(stage: &Stage<'_>, palette: &Palette, pixel: Vec2, looks: Looks<'_>) -> Vec3 {
    let Ray { origin, per_depth } = stage.camera.ray(pixel);
    let share = pixel / Vec2::new(stage.hits.width as f32, stage.hits.height as f32);
    let glow = (1.0 - (share - Vec2::new(0.5, 0.55)).length_squared() * 2.2).clamp(0.0, 1.0);
    let backdrop = palette.backdrop[0].lerp(palette.backdrop[1], glow);
    let from = stage.camera.scene(origin);
    let direction = stage.camera.scene(origin + per_depth) - from;
    let behind = if direction.z < -1e-3 {
        let floor = floor(stage, palette, backdrop, pixel, looks, from, direction);
        floor.unwrap_or(backdrop)
    } else {
        backdrop
    };
    match stage.tank.exit(from, direction) {
        Exit::Wall(height) => behind.lerp(palette.glass, 0.035 + 0.035 * (1.0 - height)),
        _ if stage.view == View::Side2d => behind.lerp(palette.glass, in_side_view(stage, from)),
        _ => behind,
    }
}

/// Opacity of the glass in the side view, where the tank has no depth.
fn in_side_view(stage: &Stage<'_>, point: Vec3) -> f32 {
    let inside = (0.0..=stage.tank.size.x).contains(&point.x)
        && (0.0..=stage.tank.size.z).contains(&point.z);
    if inside {
        0.035 + 0.035 * (1.0 - point.z / stage.tank.size.z)
    } else {
        0.0
    }
}

/// Light of the floor where a scene ray meets it; none away from the tank, where it has faded into
/// the backdrop.
fn floor(
    stage: &Stage<'_>,
    palette: &Palette,
    backdrop: Vec3,
    pixel: Vec2,
    looks: Looks<'_>,
    from: Vec3,
    direction: Vec3,
) -> Option<Vec3> {
    let point = from - direction * (from.z / direction.z);
    let away = stage.tank.distance_on_floor(point) / stage.tank.size.x;
    // Farther away the strength is below 0.004, too little to be seen.
    let faded = (away / 0.16).powi(2);
    if faded > 5.2 {
        return None;
    }
    let strength = (-faded).exp() * 0.75 + if away == 0.0 { 0.25 } else { 0.0 };
    let surface = Surface {
        point: stage.camera.view(point),
        normal: stage.camera.view_direction(Vec3::Z),
    };
    let open = openness(stage, looks.around, Reach::Broad, pixel, surface);
    let light = (0.35 + 0.65 * stage.lit(point, looks.to_light)) * (0.25 + 0.75 * open);
    Some(backdrop.lerp(palette.floor * light, 0.85 * strength))
}
