//! The depth buffer: which sphere each pixel sees first.
//!
//! Spheres are intersected exactly along each pixel's ray, so that overlapping
//! particles meet in clean seams. The picture is cut into bands of rows; each
//! band is filled by one thread from the list of spheres that reach it, in the
//! order given, so the result does not depend on the number of threads.

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::camera::Camera;

/// Rows per band.
const BAND: usize = 16;

/// What a pixel sees that no sphere covers.
const NOTHING: Hit = Hit {
    depth: f32::INFINITY,
    sphere: u32::MAX,
};

/// The nearest sphere along one pixel's ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    /// View depth, infinite where nothing was hit.
    pub(super) depth: f32,
    /// Index of the sphere, meaningful where the depth is finite.
    pub(super) sphere: u32,
}

/// A picture-sized array of hits, row by row.
pub(super) struct Hits {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) cells: Vec<Hit>,
}

impl Hits {
    /// The hit at a pixel, or none outside the picture and where nothing is.
    pub(super) fn at(&self, column: i32, row: i32) -> Option<Hit> {
        let inside =
            (0..self.width as i32).contains(&column) && (0..self.height as i32).contains(&row);
        let hit = inside.then(|| self.cells[row as usize * self.width + column as usize])?;
        hit.depth.is_finite().then_some(hit)
    }
}

/// A sphere's rows and columns in the picture, ends excluded.
struct Footprint {
    sphere: u32,
    columns: [i32; 2],
    rows: [i32; 2],
}

/// Finds the nearest sphere of `radius` around the view points `centers` for
/// every pixel. Spheres that reach behind the eye are left out.
pub(super) fn nearest_spheres(
    camera: &Camera,
    centers: &[Vec3],
    radius: f32,
    width: usize,
    height: usize,
) -> Hits {
    let bands = footprints_by_band(camera, centers, radius, width, height);
    let mut cells = vec![NOTHING; width * height];
    cells
        .par_chunks_mut(BAND * width.max(1))
        .zip(bands)
        .enumerate()
        .for_each(|(band, (cells, footprints))| {
            for footprint in footprints {
                let center = centers[footprint.sphere as usize];
                draw_sphere(
                    camera,
                    center,
                    radius,
                    &footprint,
                    (band * BAND) as i32,
                    width,
                    cells,
                );
            }
        });
    Hits {
        width,
        height,
        cells,
    }
}

/// Lists, for each band of rows, the spheres that reach it.
fn footprints_by_band(
    camera: &Camera,
    centers: &[Vec3],
    radius: f32,
    width: usize,
    height: usize,
) -> Vec<Vec<Footprint>> {
    let mut bands: Vec<Vec<Footprint>> = (0..height.div_ceil(BAND)).map(|_| Vec::new()).collect();
    for (sphere, &center) in centers.iter().enumerate() {
        let Some([low, high]) = bounds(camera, center, radius) else {
            continue;
        };
        let columns = [
            (low.x as i32).max(0),
            (high.x as i32).saturating_add(1).min(width as i32),
        ];
        let rows = [
            (low.y as i32).max(0),
            (high.y as i32).saturating_add(1).min(height as i32),
        ];
        if columns[0] >= columns[1] || rows[0] >= rows[1] {
            continue;
        }
        for band in rows[0] as usize / BAND..(rows[1] as usize).div_ceil(BAND) {
            bands[band].push(Footprint {
                sphere: sphere as u32,
                columns,
                rows,
            });
        }
    }
    bands
}

/// A box of the picture that contains the sphere, or none if the sphere is not
/// wholly in front of the eye.
fn bounds(camera: &Camera, center: Vec3, radius: f32) -> Option<[Vec2; 2]> {
    let nearest = center.z - radius;
    let visible = center.is_finite() && nearest > 0.0;
    // The silhouette lies between the near and far poles' magnifications, so
    // the larger one, with the slant of off-axis spheres, bounds it.
    let reach = 1.05 * radius * camera.pixels_per_unit(nearest);
    visible
        .then(|| camera.pixel(center))
        .map(|middle| [middle - reach, middle + reach])
}

/// Draws one sphere into a band that starts at row `first`.
fn draw_sphere(
    camera: &Camera,
    center: Vec3,
    radius: f32,
    footprint: &Footprint,
    first: i32,
    width: usize,
    cells: &mut [Hit],
) {
    let nearest = center.z - radius;
    let last = first + (cells.len() / width) as i32;
    for row in footprint.rows[0].max(first)..footprint.rows[1].min(last) {
        for column in footprint.columns[0]..footprint.columns[1] {
            let cell = &mut cells[(row - first) as usize * width + column as usize];
            if cell.depth <= nearest {
                continue;
            }
            let pixel = Vec2::new(column as f32 + 0.5, row as f32 + 0.5);
            if let Some(depth) = intersect(camera.ray(pixel), center, radius)
                && depth < cell.depth
            {
                *cell = Hit {
                    depth,
                    sphere: footprint.sphere,
                };
            }
        }
    }
}

/// Depth at which a ray enters a sphere.
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
            let hits = nearest_spheres(&camera, &centers, 0.3, 64, 48);
            for (index, hit) in hits.cells.iter().enumerate() {
                let pixel = Vec2::new((index % 64) as f32 + 0.5, (index / 64) as f32 + 0.5);
                let nearest = centers
                    .iter()
                    .filter_map(|&center| intersect(camera.ray(pixel), center, 0.3))
                    .fold(f32::INFINITY, f32::min);
                assert_eq!(hit.depth, nearest, "pixel {pixel}");
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
        let hits = nearest_spheres(&camera, &centers, 0.3, 64, 48);
        assert!(hits.cells.iter().all(|&hit| hit == NOTHING));
    }

    #[test]
    fn an_empty_picture_and_an_empty_scene_are_fine() {
        let [camera, _] = cameras();
        assert!(
            nearest_spheres(&camera, &[Vec3::Z], 0.3, 0, 0)
                .cells
                .is_empty()
        );
        assert!(nearest_spheres(&camera, &[], 0.3, 4, 4).at(1, 1).is_none());
    }
}
