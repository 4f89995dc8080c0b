//! The depth buffer: which sphere each pixel sees first.
//!
//! Spheres are intersected exactly along each pixel's ray, so that overlapping particles meet in
//! clean seams. Threads draw spheres in any order into one buffer: a pixel is one word, the depth
//! above the sphere's index, and takes the minimum of what it is offered. The minimum is the same
//! in any order, so the result does not depend on the number of threads. Spheres are drawn roughly
//! from front to back, so that most pixels see early what hides the rest.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::camera::{Camera, Ray};

/// The nearest sphere along one pixel's ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    /// View depth, positive.
    pub(super) depth: f32,
    /// Index of the sphere; of several at one depth the first.
    pub(super) sphere: u32,
}

impl Hit {
    /// A word that is smaller the nearer the hit: positive floats are ordered as their bits are.
    #[inline]
    fn pack(self) -> u64 {
        u64::from(self.depth.to_bits()) << 32 | u64::from(self.sphere)
    }

    #[inline]
    fn unpack(word: u64) -> Self {
        Self {
            depth: f32::from_bits((word >> 32) as u32),
            sphere: word as u32,
        }
    }
}

/// The word of a pixel that no sphere covers: an infinite depth.
const NOTHING: u64 = (f32::INFINITY.to_bits() as u64) << 32;

/// Width and height of a tile, in pixels.
const TILE: usize = 16;
/// Distance in pixels within which [`Hits::may_be_near`] looks for hits.
pub(super) const NEAR: f32 = 96.0;
/// Ranges of depth by which spheres are ordered.
const LAYERS: usize = 256;

/// A picture-sized array of hits, row by row.
pub(super) struct Hits {
    pub(super) width: usize,
    pub(super) height: usize,
    cells: Vec<AtomicU64>,
    /// Whether a sphere was drawn in or near each tile, row by row.
    near: Vec<bool>,
}

impl Hits {
    /// The hit at a pixel, or none outside the picture and where nothing is.
    #[inline]
    pub(super) fn at(&self, column: i32, row: i32) -> Option<Hit> {
        let (column, row) = (column as u32 as usize, row as u32 as usize);
        if column >= self.width || row >= self.height {
            return None;
        }
        let word = self.cells[row * self.width + column].load(Relaxed);
        (word < NOTHING).then(|| Hit::unpack(word))
    }

    /// Returns false only if no pixel within [`NEAR`] of this place holds a hit.
    #[inline]
    pub(super) fn may_be_near(&self, place: Vec2) -> bool {
        let tile = (place / TILE as f32).floor();
        let (column, row) = (tile.x as usize, tile.y as usize);
        let inside = tile.min_element() >= 0.0 && column < self.width.div_ceil(TILE);
        // Places outside of the picture may have hits nearby.
        !inside || (self.near.get(row * self.width.div_ceil(TILE) + column)).copied() != Some(false)
    }
}

/// Marks the tiles within [`NEAR`] of those that are marked.
fn spread(marked: &[AtomicBool], columns: usize) -> Vec<bool> {
    const REACH: usize = (NEAR as usize).div_ceil(TILE) + 1;
    let rows = marked.len() / columns.max(1);
    let window = |at: usize, end: usize| at.saturating_sub(REACH)..(at + REACH + 1).min(end);
    let mut along = vec![false; marked.len()];
    for (at, near) in along.iter_mut().enumerate() {
        let row = at / columns * columns;
        *near = window(at % columns, columns).any(|column| marked[row + column].load(Relaxed));
    }
    let around =
        |at: usize| window(at / columns, rows).any(|row| along[row * columns + at % columns]);
    (0..marked.len()).map(around).collect()
}

/// Finds for every pixel the nearest of `count` spheres of `radius`, whose view points `center`
/// returns. Spheres that reach behind the eye are left out.
pub(super) fn nearest_spheres(
    camera: &Camera,
    count: usize,
    center: impl Fn(usize) -> Vec3 + Sync,
    radius: f32,
    [width, height]: [usize; 2],
) -> Hits {
    let cells = (0..width * height).map(|_| AtomicU64::new(NOTHING));
    let columns = width.div_ceil(TILE);
    let tiles = (0..columns * height.div_ceil(TILE)).map(|_| AtomicBool::new(false));
    let mut hits = Hits {
        width,
        height,
        cells: cells.collect(),
        near: Vec::new(),
    };
    let tiles: Vec<AtomicBool> = tiles.collect();
    let draw = |sphere: u32| {
        let center = center(sphere as usize);
        draw_sphere(camera, sphere, center, radius, &hits, &tiles);
    };
    // Spheres of a pixel or two hide little, and are drawn faster in the order they lie in memory.
    if count < width * height {
        let order = front_to_back(count, &center);
        order.into_par_iter().with_min_len(1024).for_each(draw);
    } else {
        let all = (0..count as u32).into_par_iter();
        all.with_min_len(1024).for_each(draw);
    }
    hits.near = spread(&tiles, columns);
    hits
}

/// All spheres at finite places, those that are nearer roughly first.
fn front_to_back(count: usize, center: &(impl Fn(usize) -> Vec3 + Sync)) -> Vec<u32> {
    let mut depths = vec![f32::NAN; count];
    let spheres = depths.par_iter_mut().with_min_len(1024).enumerate();
    spheres.for_each(|(sphere, depth)| {
        let center = center(sphere);
        if center.is_finite() {
            *depth = center.z;
        }
    });
    let finite = || depths.iter().copied().filter(|depth| depth.is_finite());
    let (nearest, farthest) = (
        finite().fold(f32::INFINITY, f32::min),
        finite().fold(f32::NEG_INFINITY, f32::max),
    );
    let scale = LAYERS as f32 / (farthest - nearest).max(f32::MIN_POSITIVE);
    let layer = |depth: f32| (((depth - nearest) * scale) as usize).min(LAYERS - 1);
    // A counting sort: where each layer ends, filled from behind.
    let mut ends = [0; LAYERS];
    finite().for_each(|depth| ends[layer(depth)] += 1);
    for at in 1..LAYERS {
        ends[at] += ends[at - 1];
    }
    let mut order = vec![0; ends[LAYERS - 1]];
    for (sphere, &depth) in depths.iter().enumerate().rev() {
        if depth.is_finite() {
            let end = &mut ends[layer(depth)];
            *end -= 1;
            order[*end] = sphere as u32;
        }
    }
    order
}

/// Offers one sphere to all pixels that might see it.
fn draw_sphere(
    camera: &Camera,
    sphere: u32,
    center: Vec3,
    radius: f32,
    hits: &Hits,
    tiles: &[AtomicBool],
) {
    let nearest = center.z - radius;
    if !(center.is_finite() && nearest > 0.0) {
        return;
    }
    // The silhouette lies between the near and far poles' magnifications, so
    // the larger one, with the slant of off-axis spheres, bounds it.
    let reach = 1.05 * radius * camera.pixels_per_unit(nearest);
    let middle = camera.pixel(center);
    let (low, high) = (middle - reach, middle + reach);
    let last = |high: f32, end: usize| (high as usize).saturating_add(1).min(end);
    let (left, right) = (low.x as usize, last(high.x, hits.width));
    let (top, bottom) = (low.y as usize, last(high.y, hits.height));
    // No word that the sphere can offer is smaller; its depths are rounded.
    let least = Hit {
        depth: (nearest - 1e-4 * radius).max(0.0),
        sphere,
    };
    let least = least.pack();
    for row in top / TILE..bottom.div_ceil(TILE) {
        for column in left / TILE..right.div_ceil(TILE) {
            let tile = &tiles[row * hits.width.div_ceil(TILE) + column];
            if !tile.load(Relaxed) {
                tile.store(true, Relaxed);
            }
        }
    }
    for row in top..bottom {
        let cells = hits.cells[row * hits.width..].get(left..right);
        for (cell, column) in cells.unwrap_or_default().iter().zip(left..) {
            if cell.load(Relaxed) <= least {
                continue;
            }
            let pixel = Vec2::new(column as f32 + 0.5, row as f32 + 0.5);
            if let Some(depth) = intersect(camera.ray(pixel), center, radius) {
                let word = Hit { depth, sphere }.pack();
                if word < cell.load(Relaxed) {
                    cell.fetch_min(word, Relaxed);
                }
            }
        }
    }
}

/// Depth at which a ray enters a sphere.
#[inline]
fn intersect(ray: Ray, center: Vec3, radius: f32) -> Option<f32> {
    let Ray { origin, per_depth } = ray;
    let offset = center - origin;
    let steepness = per_depth.length_squared();
    let along = per_depth.dot(offset) / steepness;
    let miss = (offset - per_depth * along).length_squared();
    let inside = radius * radius - miss;
    (inside >= 0.0).then(|| along - (inside / steepness).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::camera::Window;
    use super::*;

    fn cameras() -> [Camera; 2] {
        let window = Window {
            low: Vec2::ZERO,
            high: Vec2::new(64.0, 48.0),
        };
        let corners = [Vec3::new(-2.0, -2.0, -2.0), Vec3::new(2.0, 2.0, 2.0)];
        [
            Camera::perspective(Vec3::Y, &corners, window),
            Camera::parallel(Vec3::Y, &corners, window),
        ]
    }

    #[test]
    fn every_pixel_shows_what_a_search_over_all_spheres_finds() {
        let mut state = 7_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 * 4.0 - 2.0
        };
        for camera in cameras() {
            let centers: Vec<Vec3> = (0..60)
                .map(|_| camera.view(Vec3::new(random(), random(), random())))
                .collect();
            let hits = nearest_spheres(&camera, 60, |i| centers[i], 0.3, [64, 48]);
            for index in 0..64 * 48 {
                let hit = hits.at(index % 64, index / 64);
                let pixel = Vec2::new((index % 64) as f32 + 0.5, (index / 64) as f32 + 0.5);
                let nearest = centers
                    .iter()
                    .filter_map(|&center| intersect(camera.ray(pixel), center, 0.3))
                    .fold(f32::INFINITY, f32::min);
                let depth = hit.map_or(f32::INFINITY, |hit| hit.depth);
                assert_eq!(depth, nearest, "pixel {pixel}");
            }
        }
    }

    #[test]
    fn spheres_that_are_nowhere_or_behind_the_eye_are_left_out() {
        let [camera, _] = cameras();
        let centers = [
            Vec3::NAN,
            Vec3::new(0.0, 0.0, -3.0),
            Vec3::new(0.0, 0.0, 0.1),
            Vec3::INFINITY,
        ];
        let hits = nearest_spheres(&camera, 4, |i| centers[i], 0.3, [64, 48]);
        assert!((0..64 * 48).all(|index| hits.at(index % 64, index / 64).is_none()));
    }

    #[test]
    fn of_spheres_at_one_place_the_first_is_seen_whatever_the_order() {
        let [camera, _] = cameras();
        let hits = nearest_spheres(&camera, 5000, |_| Vec3::Z * 8.0, 0.3, [64, 48]);
        let seen = camera.pixel(Vec3::Z * 8.0).as_ivec2();
        assert_eq!(hits.at(seen.x, seen.y).map(|hit| hit.sphere), Some(0));
    }

    #[test]
    fn an_empty_picture_and_an_empty_scene_are_fine() {
        let [camera, _] = cameras();
        let empty = nearest_spheres(&camera, 1, |_| Vec3::Z, 0.3, [0, 0]);
        assert!(empty.at(0, 0).is_none());
        let nothing = nearest_spheres(&camera, 0, |_| Vec3::Z, 0.3, [4, 4]);
        assert!(nothing.at(1, 1).is_none());
    }
}
