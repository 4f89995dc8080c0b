//! From hits to light: the colour of every sample of the picture.
//!
//! Fluid is lit by a key light with shadows, a fill light from the other side
//! and the sky, each dimmed where neighbours stand in the way. Colours are
//! linear.

use glam::{Vec2, Vec3};

use super::camera::Ray;
use super::colors::from_hex;
use super::frame::{SAMPLES, View};
use super::occlusion::{Probes, Surface, openness};
use super::raster::{BLOCK, Line, NOTHING};
use super::stage::{PENUMBRA, Stage};
use super::surroundings::Surroundings;

/// Some rows of the picture as linear colours, row by row.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) width: usize,
    /// Row of the picture that is the first here.
    pub(super) first: usize,
    pub(super) colors: Vec<Vec3>,
}

/// Colours the samples of `rows` rows from row `first` on, before `surroundings`, on a canvas that
/// may hold others.
///
/// Samples of a pixel that see the same particle are coloured once, and so are those that see none:
/// within a pixel edges change much faster than light.
pub(super) fn shade(
    stage: &Stage<'_>,
    surroundings: &Surroundings,
    first: usize,
    rows: usize,
    canvas: &mut Canvas,
) {
    let width = stage.hits.width;
    let palette = Palette::new();
    (canvas.width, canvas.first) = (width, first);
    canvas.colors.resize(width * rows, Vec3::ZERO);
    let colors = &mut canvas.colors;
    for row in (0..rows).step_by(SAMPLES) {
        let lines: [Line<'_>; SAMPLES] = std::array::from_fn(|k| stage.hits.line(first + row + k));
        for column in (0..width).step_by(SAMPLES) {
            let samples = Samples::of(&lines, [column, first + row]);
            let mut left = ALL;
            while left != 0 {
                let number = left.trailing_zeros() as usize;
                let same = samples.seeing(samples.spheres[number]);
                let color = match samples.spheres[number] {
                    NOTHING => surroundings.seen(stage, &palette.probes, samples.first),
                    BLOCK => block(stage, &palette, &samples, same),
                    sphere => fluid(stage, &palette, sphere, &samples, same),
                };
                for at in numbers(same) {
                    colors[(row + at / SAMPLES) * width + column + at % SAMPLES] = color;
                }
                left &= !same;
            }
        }
    }
}

/// Samples of a pixel.
const OF_PIXEL: usize = SAMPLES * SAMPLES;

/// All samples of a pixel, a bit each.
const ALL: u32 = (1 << OF_PIXEL) - 1;

/// The samples of one pixel.
struct Samples {
    /// Column and row of the first of them.
    first: [usize; 2],
    depths: [f32; OF_PIXEL],
    /// The particles that they see, or [`NOTHING`].
    spheres: [u32; OF_PIXEL],
}

impl Samples {
    /// Those from `first` on, which lie in these lines of the picture.
    #[inline]
    fn of(lines: &[Line<'_>; SAMPLES], first: [usize; 2]) -> Self {
        let (mut depths, mut spheres) = ([0.0; OF_PIXEL], [NOTHING; OF_PIXEL]);
        for (k, line) in lines.iter().enumerate() {
            for at in 0..SAMPLES {
                let (number, column) = (k * SAMPLES + at, first[0] + at);
                depths[number] = line.depths[column];
                if line.depths[column] < f32::INFINITY {
                    spheres[number] = line.spheres[column];
                }
            }
        }
        Self {
            first,
            depths,
            spheres,
        }
    }

    /// A bit for each of those that see this.
    #[inline]
    fn seeing(&self, sphere: u32) -> u32 {
        let bit = |at: usize| u32::from(self.spheres[at] == sphere) << at;
        (0..OF_PIXEL).fold(0, |all, at| all | bit(at))
    }

    /// The place of one of them in the picture.
    #[inline]
    fn place(&self, number: usize) -> Vec2 {
        let [column, row] = self.first;
        let (column, row) = (column + number % SAMPLES, row + number / SAMPLES);
        Vec2::new(column as f32 + 0.5, row as f32 + 0.5)
    }
}

/// Numbers of the bits that are set.
fn numbers(bits: u32) -> impl Iterator<Item = usize> {
    (0..OF_PIXEL).filter(move |at| bits >> at & 1 != 0)
}

/// Half of the places where the edge of a shadow is probed.
const HALF: usize = PENUMBRA.len() / 2;

/// Colours of lights, and probes, which are the same for all samples.
struct Palette {
    key: Vec3,
    fill: Vec3,
    sky: Vec3,
    ground: Vec3,
    block: Vec3,
    probes: Probes,
}

impl Palette {
    fn new() -> Self {
        Self {
            key: Vec3::new(1.0, 0.95, 0.87) * 1.10,
            fill: Vec3::new(0.62, 0.78, 1.0) * 0.22,
            sky: Vec3::new(0.80, 0.90, 1.0) * 0.42,
            ground: Vec3::new(0.50, 0.60, 0.78) * 0.22,
            block: from_hex(0x9a958c),
            probes: Probes::new(),
        }
    }

    /// Light that falls on a surface of this normal, of which the key light reaches the share
    /// `lit`, and the others `open`.
    fn light(&self, stage: &Stage<'_>, normal: Vec3, lit: f32, open: f32) -> Vec3 {
        let to_light = stage.camera.view_direction(stage.to_light);
        let up = stage.camera.view_direction(Vec3::Z);
        let key = self.key * normal.dot(to_light).max(0.0) * lit;
        let fill = self.fill * normal.dot(Vec3::new(0.75, 0.1, -0.65)).max(0.0);
        let sky = self.ground.lerp(self.sky, 0.5 + 0.5 * normal.dot(up));
        key * (0.4 + 0.6 * open) + (fill + sky) * open
    }
}

/// The middle of what samples of a pixel see: its place in the picture, and its view point.
fn seen(stage: &Stage<'_>, samples: &Samples, seeing: u32) -> (Vec2, Vec3) {
    let (mut pixel, mut point) = (Vec2::ZERO, Vec3::ZERO);
    for number in numbers(seeing) {
        let place = samples.place(number);
        let Ray { origin, per_depth } = stage.camera.ray(place);
        pixel += place;
        point += origin + per_depth * samples.depths[number];
    }
    let count = seeing.count_ones() as f32;
    (pixel / count, point / count)
}

/// Light that leaves a box towards those samples of a pixel that see it.
fn block(stage: &Stage<'_>, palette: &Palette, samples: &Samples, seeing: u32) -> Vec3 {
    let (pixel, point) = seen(stage, samples, seeing);
    let place = stage.camera.scene(point);
    let normal = stage.camera.view_direction(face(&stage.blocks, place));
    let surface = Surface { point, normal };
    let open = openness(stage, palette.probes.of_two(), 0.0, pixel, surface);
    let lit = stage.lit(place, &PENUMBRA);
    palette.block * palette.light(stage, normal, lit, open)
}

/// Normal of the face of a box that is nearest to a point of the scene.
fn face(blocks: &[[Vec3; 2]], point: Vec3) -> Vec3 {
    let (mut normal, mut least) = (Vec3::NEG_Y, f32::INFINITY);
    for [low, high] in blocks {
        let outside = (point - point.clamp(*low, *high)).length();
        for axis in 0..3 {
            for (end, sign) in [(low, -1.0), (high, 1.0)] {
                let away = outside + (point[axis] - end[axis]).abs();
                if away < least {
                    least = away;
                    normal = Vec3::AXES[axis] * sign;
                }
            }
        }
    }
    normal
}

/// Light that leaves a particle towards those samples of a pixel that see it: at the middle of what
/// they see.
fn fluid(
    stage: &Stage<'_>,
    palette: &Palette,
    particle: u32,
    samples: &Samples,
    seeing: u32,
) -> Vec3 {
    let center = stage.center(particle as usize);
    let (pixel, middle) = seen(stage, samples, seeing);
    let bulge = (middle - center).normalize_or_zero();
    let point = center + bulge * stage.radius;
    let (smooth, share) = stage.smoothed.normal(pixel);
    let bulge = bulge.lerp(smooth, share).normalize_or_zero();
    // Flat discs read better than balls when nothing lies behind them.
    let normal = if stage.view == View::Side2d {
        (bulge - 0.9 * Vec3::Z).normalize()
    } else {
        bulge
    };
    // A single sample has half the probes, and others than its neighbours.
    let first = seeing.trailing_zeros() as usize;
    let (around, to_light) = match seeing.count_ones() {
        1 => (
            palette.probes.of_one(first),
            &PENUMBRA[first % 2 * HALF..][..HALF],
        ),
        _ => (palette.probes.of_two(), &PENUMBRA[..]),
    };
    let surface = Surface { point, normal };
    let open = openness(stage, around, 1.0 - share, pixel, surface);
    let lit = stage.lit(stage.camera.scene(point), to_light);
    let to_light = stage.camera.view_direction(stage.to_light);
    let glint = highlight(normal, to_light, point) * lit * open;
    let color = stage.color(particle as usize);
    color * palette.light(stage, normal, lit, open) + Vec3::splat(glint)
}

/// Strength of the key light's reflection (Blinn 1977, DOI 10.1145/563858.563893).
fn highlight(normal: Vec3, to_light: Vec3, point: Vec3) -> f32 {
    let halfway = (to_light - point.normalize()).normalize();
    0.10 * normal.dot(halfway).max(0.0).powi(36)
}
