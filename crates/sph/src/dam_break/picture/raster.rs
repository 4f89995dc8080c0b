//! The depth buffer: which sphere each pixel sees first.
//!
//! Spheres are intersected exactly along each pixel's ray, so that overlapping particles meet in clean
//! seams. Threads draw spheres in any order into one buffer: a pixel is one word, the depth above the
//! sphere's index, and takes the minimum of what it is offered. The minimum is the same in any order,
//! so the result does not depend on the number of threads.
//!
//! Most spheres of a fluid are hidden by others. Each tile of pixels knows a word that none of its
//! pixels exceeds; a sphere that cannot offer less is passed over without looking at the pixels.
//! Spheres are drawn roughly from front to back, so that tiles are covered early. Words only ever
//! shrink, so an old bound of a tile still holds.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::camera::Camera;

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
/// After this many spheres that were drawn into a tile, its bound is found anew.
const DRAWN: u32 = 6;
/// Ranges of depth by which spheres are ordered.
const LAYERS: usize = 256;

/// A picture-sized array of hits, row by row.
pub(super) struct Hits {
    pub(super) width: usize,
    pub(super) height: usize,
    cells: Vec<AtomicU64>,
    tiles: Vec<Tile>,
}

/// A square of pixels.
struct Tile {
    /// No pixel of the tile holds a larger word.
    bound: AtomicU64,
    /// Spheres that were drawn into it.
    drawn: AtomicU32,
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

    fn nothing(width: usize, height: usize) -> Self {
        let tiles = width.div_ceil(TILE) * height.div_ceil(TILE);
        let tile = || Tile {
            bound: AtomicU64::new(NOTHING),
            drawn: AtomicU32::new(0),
        };
        Self {
            width,
            height,
            cells: (0..width * height)
                .map(|_| AtomicU64::new(NOTHING))
                .collect(),
            tiles: (0..tiles).map(|_| tile()).collect(),
        }
    }

    /// Words of some columns of a row.
    fn cells(&self, row: usize, columns: Range<usize>) -> &[AtomicU64] {
        let first = row * self.width;
        let cells = self.cells.get(first + columns.start..first + columns.end);
        cells.unwrap_or_default()
    }

    /// Finds the bound of a tile anew.
    fn tighten(&self, tile: &Tile, rows: Range<usize>, columns: Range<usize>) {
        let words = rows.flat_map(|row| self.cells(row, columns.clone()));
        let largest = words.map(|cell| cell.load(Relaxed)).max();
        tile.bound.fetch_min(largest.unwrap_or(NOTHING), Relaxed);
    }
}

/// Finds for every pixel the nearest of `count` spheres of `radius`, whose view points `center` returns.
/// Spheres that reach behind the eye are left out.
pub(super) fn nearest_spheres(
    camera: &Camera,
    (count, center): (usize, impl Fn(usize) -> Vec3 + Sync),
    radius: f32,
    [width, height]: [usize; 2],
) -> Hits {
    let hits = Hits::nothing(width, height);
    front_to_back(count, &center)
        .into_par_iter()
        .with_min_len(1024)
        .for_each(|sphere| draw_sphere(camera, (sphere, center(sphere as usize)), radius, &hits));
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
fn draw_sphere(camera: &Camera, (sphere, center): (u32, Vec3), radius: f32, hits: &Hits) {
    let nearest = center.z - radius;
    if nearest <= 0.0 {
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
    // No word that this sphere can offer is smaller; its depths are rounded.
    let least = Hit {
        depth: (nearest - 1e-4 * radius).max(0.0),
        sphere,
    };
    let least = least.pack();
    let whole = |tile: usize, end: usize| tile * TILE..((tile + 1) * TILE).min(end);
    let part =
        |tile: Range<usize>, low: usize, high: usize| tile.start.max(low)..tile.end.min(high);
    for tile_row in top / TILE..bottom.div_ceil(TILE) {
        for tile_column in left / TILE..right.div_ceil(TILE) {
            let tile = &hits.tiles[tile_row * hits.width.div_ceil(TILE) + tile_column];
            if tile.bound.load(Relaxed) <= least {
                continue;
            }
            let (rows, columns) = (whole(tile_row, hits.height), whole(tile_column, hits.width));
            let mut drew = false;
            for row in part(rows.clone(), top, bottom) {
                let columns = part(columns.clone(), left, right);
                for (cell, column) in hits.cells(row, columns.clone()).iter().zip(columns) {
                    if cell.load(Relaxed) <= least {
                        continue;
                    }
                    let pixel = Vec2::new(column as f32 + 0.5, row as f32 + 0.5);
                    if let Some(depth) = intersect(camera.ray(pixel), center, radius) {
                        let word = Hit { depth, sphere }.pack();
                        if word < cell.load(Relaxed) {
                            cell.fetch_min(word, Relaxed);
                            drew = true;
                        }
                    }
                }
            }
            if drew && tile.drawn.fetch_add(1, Relaxed) % DRAWN == DRAWN - 1 {
                hits.tighten(tile, rows, columns);
            }
        }
    }
}

/// Depth at which a ray enters a sphere.
#[inline]
fn intersect((origin, per_depth): (Vec3, Vec3), center: Vec3, radius: f32) -> Option<f32> {
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
            let hits = nearest_spheres(&camera, (60, |i| centers[i]), 0.3, [64, 48]);
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
        let hits = nearest_spheres(&camera, (4, |i| centers[i]), 0.3, [64, 48]);
        assert!((0..64 * 48).all(|index| hits.at(index % 64, index / 64).is_none()));
    }

    #[test]
    fn of_spheres_at_one_place_the_first_is_seen_whatever_the_order() {
        let [camera, _] = cameras();
        let hits = nearest_spheres(&camera, (5000, |_| Vec3::Z * 8.0), 0.3, [64, 48]);
        let seen = camera.pixel(Vec3::Z * 8.0).as_ivec2();
        assert_eq!(hits.at(seen.x, seen.y).map(|hit| hit.sphere), Some(0));
    }

    #[test]
    fn an_empty_picture_and_an_empty_scene_are_fine() {
        let [camera, _] = cameras();
        let empty = nearest_spheres(&camera, (1, |_| Vec3::Z), 0.3, [0, 0]);
        assert!(empty.at(0, 0).is_none());
        let nothing = nearest_spheres(&camera, (0, |_| Vec3::Z), 0.3, [4, 4]);
        assert!(nothing.at(1, 1).is_none());
    }
}
