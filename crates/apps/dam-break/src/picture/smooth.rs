//! The surface that the spheres stand for, where they are too small to be seen one by one.
//!
//! Spheres of a few pixels that still lie as on the lattice they began on are lit in stripes. So
//! depths are averaged over cells of a sphere's radius and blurred, after the screen-space fluids
//! of van der Laan, Green and Sainz (2009, DOI 10.1145/1507149.1507164), by a filter that leaves
//! edges sharp; the result has normals. The smaller the spheres, the more these count: large
//! spheres, and those that fly alone, keep their shape.

use glam::{Vec2, Vec3};
use rayon::prelude::*;

use super::camera::{Camera, Ray};
use super::frame::SAMPLES;
use super::raster::{BLOCK, Hits};

/// Radius in pixels from which spheres are drawn as they are, and below which as a surface only.
const LARGE: f32 = 8.0;
const SMALL: f32 = 3.0;
/// Share of the surface's normal in that of the smallest spheres.
const MOST: f32 = 0.92;
/// Cells on either side that the filter looks at, and its standard deviation in cells.
const REACH: usize = 5;
const DEVIATION: f32 = 2.2;
/// Depths of one surface differ by less, in radii of a sphere: at one place, and for each cell
/// between two.
const STEP: f32 = 3.0;
const SLOPE: f32 = 5.0;

/// Normals of the smoothed surface.
#[derive(Default)]
pub(super) struct Smoothed {
    /// Samples along the edge of a cell.
    cell: f32,
    columns: usize,
    rows: usize,
    /// Row by row the view direction of the normal, as long as it counts.
    normals: Vec<Vec3>,
}

impl Smoothed {
    /// The surface of these hits of spheres of `radius`; nothing if the spheres are large.
    pub(super) fn new(hits: &Hits, camera: &Camera, radius: f32) -> Self {
        let Some(nearest) = nearest_depth(hits) else {
            return Self::default();
        };
        let size = radius * camera.pixels_per_unit(nearest);
        let share = MOST * ((LARGE - size / SAMPLES as f32) / (LARGE - SMALL)).clamp(0.0, 1.0);
        if share <= 0.0 {
            return Self::default();
        }
        let cell = (size.round() as usize).max(SAMPLES);
        let (columns, rows) = (hits.width.div_ceil(cell), hits.height.div_ceil(cell));
        let coarse = (0..columns * rows).into_par_iter();
        let coarse = coarse.map(|at| mean(hits, at % columns, at / columns, cell, STEP * radius));
        let grid = Grid {
            columns,
            cells: coarse.collect(),
            radius,
        };
        let grid = grid.blurred(1, columns).blurred(columns, rows);
        let place = |column: usize, row: usize| {
            let middle = Vec2::new(column as f32 + 0.5, row as f32 + 0.5) * cell as f32;
            let Ray { origin, per_depth } = camera.ray(middle);
            origin + per_depth * grid.cells[row * columns + column].depth
        };
        let normal = |at: usize| {
            let (column, row) = (at % columns, at / columns);
            let across = grid.slope(at, [1, column, columns], |to| place(to, row));
            let down = grid.slope(at, [columns, row, rows], |to| place(column, to));
            // Rows count downwards: the product points to the viewer.
            let normal = across.cross(down).normalize_or_zero();
            let counts = ((grid.cells[at].share - 0.35) / 0.3).clamp(0.0, 1.0);
            normal * (share * counts)
        };
        let normals = (0..columns * rows).into_par_iter().map(normal).collect();
        Self {
            cell: cell as f32,
            columns,
            rows,
            normals,
        }
    }

    /// The normal at a place of the picture, of length 1, and by how much it counts.
    #[inline]
    pub(super) fn normal(&self, pixel: Vec2) -> (Vec3, f32) {
        if self.normals.is_empty() {
            return (Vec3::ZERO, 0.0);
        }
        let at = (pixel / self.cell - 0.5).max(Vec2::ZERO);
        let (column, row) = (at.x as usize, at.y as usize);
        let part = at - Vec2::new(column as f32, row as f32);
        let of = |column: usize, row: usize| {
            let (column, row) = (column.min(self.columns - 1), row.min(self.rows - 1));
            self.normals[row * self.columns + column]
        };
        let above = of(column, row).lerp(of(column + 1, row), part.x);
        let below = of(column, row + 1).lerp(of(column + 1, row + 1), part.x);
        let normal = above.lerp(below, part.y);
        let length = normal.length();
        (normal.normalize_or_zero(), length.min(MOST))
    }
}

/// The least depth of all hits of spheres.
fn nearest_depth(hits: &Hits) -> Option<f32> {
    let rows = (0..hits.height).into_par_iter();
    let least = |row| (hits.line(row).depths.iter().copied()).fold(f32::INFINITY, f32::min);
    let least = rows.map(least).reduce(|| f32::INFINITY, f32::min);
    (least < f32::INFINITY).then_some(least)
}

/// Depth of the surface in a cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    depth: f32,
    /// Share of the cell, or of its neighbourhood, that shows this surface.
    share: f32,
}

/// Mean depth of those spheres in a cell that are within `step` of the nearest.
fn mean(hits: &Hits, column: usize, row: usize, cell: usize, step: f32) -> Cell {
    let columns = column * cell..((column + 1) * cell).min(hits.width);
    let depths = || {
        let rows = row * cell..((row + 1) * cell).min(hits.height);
        let lines = rows.map(|row| hits.line(row));
        lines.flat_map(|line| {
            let of_line = columns
                .clone()
                .map(move |at| (line.depths[at], line.spheres[at]));
            of_line.filter(|&(depth, sphere)| depth < f32::INFINITY && sphere != BLOCK)
        })
    };
    let nearest = depths().fold(f32::INFINITY, |least, (depth, _)| least.min(depth));
    let same = depths().filter(|&(depth, _)| depth < nearest + step);
    let (sum, count) = same.fold((0.0, 0), |(sum, count), (depth, _)| {
        (sum + depth, count + 1)
    });
    match count {
        0 => Cell::default(),
        _ => Cell {
            depth: sum / count as f32,
            share: count as f32 / (cell * cell) as f32,
        },
    }
}

/// Cells row by row.
struct Grid {
    columns: usize,
    cells: Vec<Cell>,
    radius: f32,
}

impl Grid {
    /// Returns true if two cells, so many apart, may show one surface.
    fn is_same(&self, one: Cell, other: Cell, apart: usize) -> bool {
        let step = (STEP + SLOPE * apart as f32) * self.radius;
        one.share > 0.0 && other.share > 0.0 && (one.depth - other.depth).abs() < step
    }

    /// Blurs along an axis with `count` cells, which lie `stride` apart.
    fn blurred(&self, stride: usize, count: usize) -> Self {
        let weights: [f32; REACH + 1] =
            std::array::from_fn(|away| (-0.5 * (away as f32 / DEVIATION).powi(2)).exp());
        let all = weights[0] + 2.0 * weights[1..].iter().sum::<f32>();
        let blurred = |at: usize| {
            let (cell, along) = (self.cells[at], at / stride % count);
            let (mut depth, mut share, mut total) = (0.0, 0.0, 0.0);
            for to in along.saturating_sub(REACH)..(along + REACH + 1).min(count) {
                let away = to.abs_diff(along);
                let other = self.cells[at + to * stride - along * stride];
                if self.is_same(cell, other, away) {
                    let weight = weights[away] * other.share;
                    depth += weight * other.depth;
                    share += weights[away] * other.share;
                    total += weight;
                }
            }
            if total > 0.0 {
                Cell {
                    depth: depth / total,
                    share: share / all,
                }
            } else {
                Cell::default()
            }
        };
        Self {
            columns: self.columns,
            cells: (0..self.cells.len()).into_par_iter().map(blurred).collect(),
            radius: self.radius,
        }
    }

    /// Difference of the places of the cells on either side along an axis, or of one of them and
    /// the cell itself, which is number `along` of `count`.
    fn slope(
        &self,
        at: usize,
        [stride, along, count]: [usize; 3],
        place: impl Fn(usize) -> Vec3,
    ) -> Vec3 {
        let goes_on = |to: usize| {
            let other = self.cells[at + to * stride - along * stride];
            self.is_same(self.cells[at], other, 1)
        };
        let before = if along > 0 && goes_on(along - 1) {
            along - 1
        } else {
            along
        };
        let after = if along + 1 < count && goes_on(along + 1) {
            along + 1
        } else {
            along
        };
        place(after) - place(before)
    }
}

#[cfg(test)]
mod tests {
    use super::super::camera::Window;
    use super::super::raster::{Storage, nearest};
    use super::*;

    const SIZE: [usize; 2] = [320, 200];

    fn camera() -> Camera {
        let window = Window {
            low: Vec2::ZERO,
            high: Vec2::new(320.0, 200.0),
        };
        let corners = [Vec3::new(-2.0, -2.0, -2.0), Vec3::new(2.0, 2.0, 2.0)];
        Camera::perspective(Vec3::new(-0.34, 0.89, -0.31), &corners, window)
    }

    /// The surface of spheres of this radius at these places of the scene.
    fn smoothed(places: &[Vec3], radius: f32) -> Smoothed {
        let camera = camera();
        let centers = (places.len(), |at: usize| camera.view(places[at]));
        let hits = nearest(&camera, centers, radius, &[], SIZE, Storage::default());
        Smoothed::new(&hits, &camera, radius)
    }

    #[test]
    fn a_lattice_of_small_spheres_is_lit_as_the_plane_that_it_fills() {
        let spacing = 0.05;
        let place = |at: usize| {
            let (column, row) = (at % 60, at / 60);
            Vec3::new(column as f32 - 30.0, row as f32 - 30.0, 0.0) * spacing
        };
        let places: Vec<Vec3> = (0..3600).map(place).collect();
        let (camera, smooth) = (camera(), smoothed(&places, 0.55 * spacing));
        let up = camera.view_direction(Vec3::Z);
        for (x, y) in [(0.0, 0.0), (0.313, 0.2), (-0.52, 0.31), (0.07, -0.44)] {
            let pixel = camera.pixel(camera.view(Vec3::new(x, y, 0.55 * spacing)));
            let (normal, share) = smooth.normal(pixel);
            assert!(share > 0.8, "{share}");
            assert!(normal.dot(up) > 0.97, "{normal} at ({x}, {y}), not {up}");
        }
    }

    #[test]
    fn large_spheres_and_those_that_are_alone_keep_their_shape() {
        let middle = camera().pixel(camera().view(Vec3::ZERO));
        assert_eq!(smoothed(&[Vec3::ZERO], 0.5).normal(middle).1, 0.0);
        assert_eq!(smoothed(&[Vec3::ZERO], 0.03).normal(middle).1, 0.0);
        assert_eq!(smoothed(&[], 0.03).normal(middle).1, 0.0);
    }
}
