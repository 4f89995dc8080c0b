//! The depth buffer: which sphere each pixel sees first.
//!
//! Spheres are intersected exactly along each pixel's ray, so that overlapping particles meet in
//! clean seams. A thread draws a band of rows at a time, with all spheres that reach into it, so no
//! two threads write to one place. The nearest hit wins, and of several at one depth that of the
//! first sphere, whatever the order: the result does not depend on the number of threads. Spheres
//! are drawn roughly from front to back, so that early spheres hide most of the later ones. Boxes
//! come last, by the same rule.

use std::ops::Range;

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::camera::{Camera, Ray};

/// Width and height of a tile, in pixels.
const TILE: usize = 16;
/// Rows of a band.
const BAND: usize = 2 * TILE;
/// Distance in pixels within which [`Hits::may_be_near`] looks for hits.
pub(super) const NEAR: f32 = 96.0;
/// Ranges of depth by which spheres are ordered.
const LAYERS: usize = 256;

/// Storage of hits, to be used again.
#[derive(Default)]
pub(super) struct Storage {
    depths: Vec<f32>,
    spheres: Vec<u32>,
}

/// A picture-sized array of hits, row by row.
pub(super) struct Hits {
    pub(super) width: usize,
    pub(super) height: usize,
    /// View depths, infinite where no sphere is, and the spheres there.
    storage: Storage,
    /// Whether a sphere was drawn in or near each tile, row by row.
    near: Vec<bool>,
}

impl Hits {
    /// Place of a pixel, or none outside of the picture.
    #[inline]
    fn place(&self, column: i32, row: i32) -> Option<usize> {
        let (column, row) = (column as u32 as usize, row as u32 as usize);
        (column < self.width && row < self.height).then(|| row * self.width + column)
    }

    /// The hits of a row of the picture.
    pub(super) fn line(&self, row: usize) -> Line<'_> {
        let places = row * self.width..(row + 1) * self.width;
        Line {
            depths: &self.storage.depths[places.clone()],
            spheres: &self.storage.spheres[places],
        }
    }

    /// View depth of the hit at a pixel, infinite outside the picture and where nothing is.
    #[inline]
    pub(super) fn depth(&self, column: i32, row: i32) -> f32 {
        let place = self.place(column, row);
        place.map_or(f32::INFINITY, |place| self.storage.depths[place])
    }

    /// The storage, for the hits of another picture.
    pub(super) fn into_storage(self) -> Storage {
        self.storage
    }

    /// Returns false only if no pixel within [`NEAR`] of this place holds a hit.
    #[inline]
    pub(super) fn may_be_near(&self, place: Vec2) -> bool {
        let (column, row) = (place.x as usize / TILE, place.y as usize / TILE);
        let columns = self.width.div_ceil(TILE);
        let inside = place.min_element() >= 0.0 && column < columns;
        // Places outside of the picture may have hits nearby.
        !inside || self.near.get(row * columns + column).copied() != Some(false)
    }
}

/// No sphere.
pub(super) const NOTHING: u32 = u32::MAX;
/// A box instead of a sphere.
pub(super) const BLOCK: u32 = u32::MAX - 1;

/// A row of hits.
pub(super) struct Line<'a> {
    /// View depths, infinite where no sphere is.
    pub(super) depths: &'a [f32],
    /// The spheres where one is.
    pub(super) spheres: &'a [u32],
}

/// Marks the tiles within [`NEAR`] of those that are marked.
fn spread(marked: &[bool], columns: usize) -> Vec<bool> {
    const REACH: usize = (NEAR as usize).div_ceil(TILE) + 1;
    let rows = marked.len() / columns.max(1);
    let window = |at: usize, end: usize| at.saturating_sub(REACH)..(at + REACH + 1).min(end);
    let mut along = vec![false; marked.len()];
    for (at, near) in along.iter_mut().enumerate() {
        let row = at / columns * columns;
        *near = window(at % columns, columns).any(|column| marked[row + column]);
    }
    let around =
        |at: usize| window(at / columns, rows).any(|row| along[row * columns + at % columns]);
    (0..marked.len()).map(around).collect()
}

/// A sphere as seen by a camera.
struct Silhouette {
    index: u32,
    center: Vec3,
    /// A view depth that no point of the sphere is in front of, rounding included.
    nearest: f32,
    columns: Range<usize>,
    rows: Range<usize>,
}

impl Silhouette {
    /// The sphere and the pixels that might see it; none if it is nowhere, or reaches behind the
    /// eye.
    #[inline]
    fn new(
        camera: &Camera,
        index: u32,
        center: Vec3,
        radius: f32,
        [width, height]: [usize; 2],
    ) -> Option<Self> {
        let nearest = center.z - radius;
        if !(center.is_finite() && nearest > 0.0) {
            return None;
        }
        // The silhouette lies between the near and far poles' magnifications, so
        // the larger one, with the slant of off-axis spheres, bounds it.
        let reach = 1.05 * radius * camera.pixels_per_unit(nearest);
        let middle = camera.pixel(center);
        let (low, high) = (middle - reach, middle + reach);
        let range = |low: f32, high: f32, end: usize| {
            low as usize..(high as usize).saturating_add(1).min(end)
        };
        Some(Self {
            index,
            center,
            nearest: (nearest - 1e-4 * radius).max(0.0),
            columns: range(low.x, high.x, width),
            rows: range(low.y, high.y, height),
        })
    }

    /// The bands that it reaches into.
    fn bands(&self) -> Range<u32> {
        if self.rows.is_empty() || self.columns.is_empty() {
            return 0..0;
        }
        (self.rows.start / BAND) as u32..self.rows.end.div_ceil(BAND) as u32
    }
}

/// Finds for every pixel the nearest of `count` spheres of `radius`, whose view points `center`
/// returns, or of `blocks`: lowest and highest corners of boxes in the scene. Spheres that reach
/// behind the eye are left out.
pub(super) fn nearest(
    camera: &Camera,
    (count, center): (usize, impl Fn(usize) -> Vec3 + Sync),
    radius: f32,
    blocks: &[[Vec3; 2]],
    [width, height]: [usize; 2],
    mut storage: Storage,
) -> Hits {
    let columns = width.div_ceil(TILE);
    let seen = |sphere: u32| {
        let center = center(sphere as usize);
        Silhouette::new(camera, sphere, center, radius, [width, height])
    };
    let of_bands = by_band(count, height.div_ceil(BAND), width * height, &seen, &center);
    // Bands begin without depths; entries of `spheres` count only where there is a depth.
    storage.depths.resize(width * height, 0.0);
    storage.spheres.resize(width * height, 0);
    let mut tiles = vec![false; columns * height.div_ceil(TILE)];
    let pixels = (width * BAND).max(1);
    let bands = (storage.depths.par_chunks_mut(pixels))
        .zip(storage.spheres.par_chunks_mut(pixels))
        .zip(tiles.par_chunks_mut((columns * BAND / TILE).max(1)))
        .zip(of_bands);
    bands
        .enumerate()
        .for_each(|(band, (((depths, spheres), tiles), within))| {
            depths.fill(f32::INFINITY);
            let mut band = Band {
                first: band * BAND,
                width,
                depths,
                spheres,
                tiles,
            };
            for sphere in within.into_iter().filter_map(seen) {
                band.draw(camera, &sphere, radius);
            }
            for block in blocks {
                band.draw_block(camera, block);
            }
        });
    Hits {
        width,
        height,
        storage,
        near: spread(&tiles, columns),
    }
}

/// Which spheres reach into each band, in the order in which they are to be drawn.
fn by_band(
    count: usize,
    bands: usize,
    pixels: usize,
    seen: &(impl Fn(u32) -> Option<Silhouette> + Sync),
    center: &(impl Fn(usize) -> Vec3 + Sync),
) -> Vec<Vec<u32>> {
    let reached = |sphere| seen(sphere).map_or(0..0, |seen| seen.bands());
    let spheres = (0..count as u32).into_par_iter().with_min_len(1024);
    let reached: Vec<Range<u32>> = spheres.map(reached).collect();
    let mut numbers = vec![0; bands];
    for band in reached.iter().cloned().flatten() {
        numbers[band as usize] += 1;
    }
    let mut within: Vec<Vec<u32>> = numbers.into_iter().map(Vec::with_capacity).collect();
    let mut put = |sphere: u32| {
        for band in reached[sphere as usize].clone() {
            within[band as usize].push(sphere);
        }
    };
    // Spheres of a pixel or two hide little, and are drawn faster in the order they lie in memory.
    if count < pixels {
        front_to_back(count, center).into_iter().for_each(&mut put);
    } else {
        (0..count as u32).for_each(&mut put);
    }
    within
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

/// Rows of hits that one thread draws.
struct Band<'a> {
    /// Row of the picture that is the first here.
    first: usize,
    width: usize,
    depths: &'a mut [f32],
    spheres: &'a mut [u32],
    /// Whether a sphere may have been drawn in each tile.
    tiles: &'a mut [bool],
}

impl Band<'_> {
    /// Those of these rows of the picture that are here.
    fn within(&self, rows: &Range<usize>) -> Range<usize> {
        let end = self.first + self.depths.len() / self.width;
        rows.start.max(self.first)..rows.end.min(end)
    }

    /// Marks the tiles of a rectangle of the picture.
    fn mark(&mut self, columns: &Range<usize>, rows: &Range<usize>) {
        for row in rows.start / TILE..rows.end.div_ceil(TILE) {
            let first = (row - self.first / TILE) * self.width.div_ceil(TILE);
            let tiles = columns.start / TILE..columns.end.div_ceil(TILE);
            self.tiles[first + tiles.start..first + tiles.end].fill(true);
        }
    }

    /// Offers a box to all pixels that might see it.
    fn draw_block(&mut self, camera: &Camera, block: &[Vec3; 2]) {
        let [columns, rows] = extent(camera, block);
        let (rows, columns) = (
            self.within(&rows),
            columns.start..columns.end.min(self.width),
        );
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        self.mark(&columns, &rows);
        for row in rows {
            let start = (row - self.first) * self.width;
            let rays = camera.rays(row as f32 + 0.5);
            for column in columns.clone() {
                let found = enter(camera, rays.at(column as f32 + 0.5), block);
                if found < self.depths[start + column] {
                    self.depths[start + column] = found;
                    self.spheres[start + column] = BLOCK;
                }
            }
        }
    }

    /// Offers a sphere to all pixels that might see it.
    fn draw(&mut self, camera: &Camera, sphere: &Silhouette, radius: f32) {
        let rows = self.within(&sphere.rows);
        let columns = sphere.columns.clone();
        self.mark(&columns, &rows);
        for row in rows {
            let start = (row - self.first) * self.width;
            let places = start + columns.start..start + columns.end;
            let (depths, spheres) = (&mut self.depths[places.clone()], &mut self.spheres[places]);
            let visible = |any: bool, &depth: &f32| any | (depth >= sphere.nearest);
            if !depths.iter().fold(false, visible) {
                continue;
            }
            let rays = camera.rays(row as f32 + 0.5);
            let pixels = depths.iter_mut().zip(spheres);
            for (column, (depth, owner)) in (columns.start as i32..).zip(pixels) {
                let ray = rays.at(column as f32 + 0.5);
                let found = intersect(ray, sphere.center, radius);
                let first = (found == *depth) & (sphere.index < *owner);
                let wins = (found < *depth) | first;
                *depth = if wins { found } else { *depth };
                *owner = if wins { sphere.index } else { *owner };
            }
        }
    }
}

/// Columns and rows of the pixels that might see a box.
fn extent(camera: &Camera, [low, high]: &[Vec3; 2]) -> [Range<usize>; 2] {
    let corner = |bits: usize| {
        let end = |axis: usize| if bits >> axis & 1 == 0 { low } else { high }[axis];
        camera.view(Vec3::new(end(0), end(1), end(2)))
    };
    let (mut first, mut last) = (Vec2::INFINITY, Vec2::NEG_INFINITY);
    for corner in (0..8).map(corner) {
        if !(corner.z > 0.0 && corner.is_finite()) {
            return [0..usize::MAX, 0..usize::MAX];
        }
        let pixel = camera.pixel(corner);
        (first, last) = (first.min(pixel), last.max(pixel));
    }
    [0, 1].map(|axis| first[axis] as usize..(last[axis] as usize).saturating_add(1))
}

/// Depth at which a ray enters a box in the scene; infinite if it misses it.
fn enter(camera: &Camera, ray: Ray, [low, high]: &[Vec3; 2]) -> f32 {
    let (from, direction) = camera.scene_ray(ray);
    let (mut enters, mut leaves) = (0.0, f32::INFINITY);
    for axis in 0..3 {
        // Not a number where a ray runs within a face: it counts as inside, as `min` and `max` do.
        let at = |end: &Vec3| (end[axis] - from[axis]) / direction[axis];
        let (one, other) = (at(low), at(high));
        enters = one.min(other).max(enters);
        leaves = one.max(other).min(leaves);
    }
    if enters <= leaves && enters > 0.0 {
        enters
    } else {
        f32::INFINITY
    }
}

/// Depth at which a ray enters a sphere; infinite if it misses it.
#[inline]
fn intersect(ray: Ray, center: Vec3, radius: f32) -> f32 {
    let Ray { origin, per_depth } = ray;
    let offset = center - origin;
    let steepness = per_depth.length_squared();
    let along = per_depth.dot(offset) / steepness;
    let miss = (offset - per_depth * along).length_squared();
    let inside = radius * radius - miss;
    // Without a branch, so that a row is intersected by vectors: the root of a ray that misses is
    // not a number.
    let entry = along - (inside / steepness).sqrt();
    if inside >= 0.0 { entry } else { f32::INFINITY }
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
            let hits = nearest(
                &camera,
                (60, |i| centers[i]),
                0.3,
                &[],
                [64, 48],
                Storage::default(),
            );
            for index in 0..64 * 48 {
                let depth = hits.depth(index % 64, index / 64);
                let pixel = Vec2::new((index % 64) as f32 + 0.5, (index / 64) as f32 + 0.5);
                let nearest = centers
                    .iter()
                    .map(|&center| intersect(camera.ray(pixel), center, 0.3))
                    .fold(f32::INFINITY, f32::min);
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
        let hits = nearest(
            &camera,
            (4, |i| centers[i]),
            0.3,
            &[],
            [64, 48],
            Storage::default(),
        );
        let is_empty = |index| hits.depth(index % 64, index / 64) == f32::INFINITY;
        assert!((0..64 * 48).all(is_empty));
    }

    #[test]
    fn of_spheres_at_one_place_the_first_is_seen_whatever_the_order() {
        let [camera, _] = cameras();
        let hits = nearest(
            &camera,
            (5000, |_| Vec3::Z * 8.0),
            0.3,
            &[],
            [64, 48],
            Storage::default(),
        );
        let seen = camera.pixel(Vec3::Z * 8.0).as_ivec2();
        assert!(hits.depth(seen.x, seen.y) < 8.0);
        assert_eq!(hits.line(seen.y as usize).spheres[seen.x as usize], 0);
    }

    #[test]
    fn boxes_are_seen_where_a_march_along_the_ray_meets_them_first() {
        let blocks = [
            [Vec3::new(-1.0, -0.5, -1.0), Vec3::new(0.5, 0.5, 0.25)],
            [Vec3::new(0.0, 1.0, -1.5), Vec3::new(1.5, 1.5, 1.0)],
        ];
        let inside = |point: Vec3| {
            let within =
                |[low, high]: &[Vec3; 2]| point.cmpge(*low).all() && point.cmple(*high).all();
            blocks.iter().any(within)
        };
        for camera in cameras() {
            let center = camera.view(Vec3::new(-0.5, -1.0, 0.0));
            let storage = Storage::default();
            let hits = nearest(&camera, (1, |_| center), 0.3, &blocks, [64, 48], storage);
            let mut kinds = [0; 3];
            for at in 0..64 * 48 {
                let (column, row) = (at % 64, at / 64);
                let ray = camera.ray(Vec2::new(column as f32 + 0.5, row as f32 + 0.5));
                let at = |depth: f32| camera.scene(ray.origin + ray.per_depth * depth);
                let steps = (0..4000).map(|step| step as f32 * 0.005);
                let met = steps
                    .filter(|&depth| inside(at(depth)))
                    .fold(f32::INFINITY, f32::min);
                let sphere = intersect(ray, center, 0.3);
                let depth = hits.depth(column, row);
                let seen = hits.line(row as usize).spheres[column as usize];
                if sphere < met - 0.01 {
                    assert_eq!((depth, seen), (sphere, 0));
                    kinds[0] += 1;
                } else if met < f32::INFINITY && sphere > met + 0.01 {
                    assert!(
                        seen == BLOCK && (depth - met).abs() < 0.011,
                        "{depth}, {met}"
                    );
                    kinds[1] += 1;
                }
                kinds[2] += usize::from(depth == f32::INFINITY);
                assert!(
                    depth == f32::INFINITY
                        || hits.may_be_near(Vec2::new(column as f32, row as f32))
                );
            }
            assert!(kinds.iter().all(|&kind| kind > 10), "{kinds:?}");
        }
    }

    #[test]
    fn an_empty_picture_and_an_empty_scene_are_fine() {
        let [camera, _] = cameras();
        let empty = nearest(
            &camera,
            (1, |_| Vec3::Z),
            0.3,
            &[],
            [0, 0],
            Storage::default(),
        );
        assert_eq!(empty.depth(0, 0), f32::INFINITY);
        let nothing = nearest(
            &camera,
            (0, |_| Vec3::Z),
            0.3,
            &[],
            [4, 4],
            Storage::default(),
        );
        assert_eq!(nothing.depth(1, 1), f32::INFINITY);
    }
}
