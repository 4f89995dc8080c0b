//! Draws a frame: sets the stage, shades bands of rows on all threads, and puts the labels on top.
//!
//! Every pixel depends on the frame alone, so pictures are the same for any number of threads.

use glam::Vec3;
use nearfield_plot::{Picture, Pixel};
use rayon::prelude::*;

use super::colors::to_pixel;
use super::frame::{Frame, SAMPLES};
use super::overlay;
use super::shading::{self, Canvas};
use super::stage::{Stage, StageStorage};
use super::surroundings::SharedSurroundings;

/// Rows of pixels that a thread draws at a time.
const BAND: usize = 8;

/// Memory reused from picture to picture, and the scenery, which all pictures of a run share. It
/// changes no picture.
#[derive(Default)]
pub struct Brush {
    storage: StageStorage,
    surroundings: SharedSurroundings,
}

impl Brush {
    /// A brush for another thread, which shares the scenery.
    pub fn for_thread(&self) -> Self {
        Self {
            storage: StageStorage::default(),
            surroundings: self.surroundings.clone(),
        }
    }
}

impl Frame<'_> {
    /// Draws the frame, `width`×`height` pixels; without particles, the empty
    /// tank.
    pub fn render(&self, width: u32, height: u32) -> Picture {
        self.render_with(width, height, &mut Brush::default())
    }

    /// As [`render`](Self::render), with the memory and scenery of earlier pictures.
    pub fn render_with(&self, width: u32, height: u32, brush: &mut Brush) -> Picture {
        let columns = width as usize;
        let span = tracing::debug_span!("beside.draw.spheres").entered();
        let storage = std::mem::take(&mut brush.storage);
        let (wide, high) = (columns * SAMPLES, height as usize * SAMPLES);
        let stage = Stage::new(self, wide, high, storage);
        drop(span);
        let _span = tracing::debug_span!("beside.draw.shade").entered();
        let surroundings = brush.surroundings.of(&stage);
        let lines = overlay::outline(&stage);
        let mut picture = Picture::new(width, height);
        (picture.pixels_mut())
            .par_chunks_mut(columns.max(1) * BAND)
            .enumerate()
            .for_each_init(Canvas::default, |canvas, (band, pixels)| {
                let rows = pixels.len() / columns * SAMPLES;
                let first = band * BAND * SAMPLES;
                shading::shade(&stage, &surroundings, first, rows, canvas);
                lines.iter().for_each(|line| line.draw(&stage, canvas));
                develop(canvas, pixels);
            });
        brush.storage = stage.into_storage();
        overlay::labels(self, &mut picture);
        picture
    }
}

/// Averages the samples of each pixel and encodes them.
fn develop(canvas: &Canvas, pixels: &mut [Pixel]) {
    let width = canvas.width;
    for (index, pixel) in pixels.iter_mut().enumerate() {
        let (row, column) = (index * SAMPLES / width, index * SAMPLES % width);
        let first = row * SAMPLES * width + column;
        let sample =
            |index: usize| canvas.colors[first + index / SAMPLES * width + index % SAMPLES];
        let sum: Vec3 = (0..SAMPLES * SAMPLES).map(sample).sum();
        *pixel = to_pixel(sum / (SAMPLES * SAMPLES) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Up, View};
    use super::*;

    fn frame<'a>(positions: &'a [[f32; 3]], velocities: &'a [[f32; 3]], view: View) -> Frame<'a> {
        Frame {
            positions,
            velocities,
            particle_radius: 0.05,
            tank: [4.0, 1.0, 2.0],
            obstacles: &[],
            up: Up::Z,
            view,
            time_s: 0.42,
            dimensionless_time: 1.87,
            top_speed: 4.0,
            caption: "a caption",
        }
    }

    /// Pixels in which two pictures differ.
    fn changed(one: &Picture, other: &Picture) -> usize {
        let pairs = one.pixels().iter().zip(other.pixels());
        pairs.filter(|(one, other)| one != other).count()
    }

    #[test]
    fn no_particles_draw_the_empty_tank() {
        for view in [View::Side2d, View::Perspective3d] {
            let empty = frame(&[], &[], view).render(320, 180);
            assert_eq!(empty.size(), (320, 180));
            let one = frame(&[[2.0, 0.0, 0.5]], &[[1.0, 0.0, 0.0]], view).render(320, 180);
            assert!(changed(&empty, &one) > 20);
        }
    }

    #[test]
    fn fast_particles_are_brighter_than_slow_ones() {
        let brightness = |speed: f32| {
            let picture =
                frame(&[[2.0, 0.0, 0.5]], &[[0.0, speed, 0.0]], View::Side2d).render(320, 180);
            let empty = frame(&[], &[], View::Side2d).render(320, 180);
            let pairs = picture.pixels().iter().zip(empty.pixels());
            let fluid = pairs.filter(|(one, other)| one != other);
            fluid
                .flat_map(|(pixel, _)| pixel.map(u32::from))
                .sum::<u32>()
        };
        assert!(brightness(4.0) > brightness(2.0) && brightness(2.0) > brightness(0.0));
    }

    #[test]
    fn either_axis_may_point_upwards() {
        let (tall, deep) = ([[1.0, 0.25, 1.5]], [[1.0, 1.5, 0.25]]);
        let z_up = frame(&tall, &[[1.0, 0.0, 0.0]], View::Perspective3d);
        let y_up = Frame {
            positions: &deep,
            up: Up::Y,
            ..z_up
        };
        assert_eq!(changed(&z_up.render(160, 90), &y_up.render(160, 90)), 0);
    }

    #[test]
    fn particles_nowhere_change_nothing() {
        let lost = [
            [f32::NAN, 0.0, 0.0],
            [0.0, f32::INFINITY, 0.0],
            [1e30, 1e30, 1e30],
        ];
        let with = frame(&lost, &[[1.0, 0.0, 0.0]], View::Perspective3d).render(160, 90);
        assert_eq!(
            changed(&with, &frame(&[], &[], View::Perspective3d).render(160, 90)),
            0
        );
    }

    #[test]
    fn storage_of_other_pictures_changes_nothing() {
        let mut brush = Brush::default();
        let one = frame(&[[2.0, 0.0, 0.5]], &[[1.0, 0.0, 0.0]], View::Perspective3d);
        let other = frame(&[[1.0, 0.5, 1.0]; 7], &[], View::Side2d);
        for _ in 0..2 {
            for (frame, size) in [(one, [160, 90]), (other, [200, 120]), (one, [64, 36])] {
                let fresh = frame.render(size[0], size[1]);
                let again = frame.render_with(size[0], size[1], &mut brush);
                assert_eq!(changed(&fresh, &again), 0);
            }
        }
    }

    #[test]
    fn unusable_sizes_and_scales_still_give_a_picture() {
        let odd = Frame {
            particle_radius: f32::NAN,
            tank: [0.0; 3],
            top_speed: 0.0,
            ..frame(&[[0.5; 3]], &[], View::Perspective3d)
        };
        assert_eq!(odd.render(64, 36).size(), (64, 36));
        for (width, height) in [(0, 0), (0, 5), (5, 0), (1, 1), (3, 200)] {
            assert_eq!(odd.render(width, height).size(), (width, height));
        }
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let positions: Vec<[f32; 3]> = (0..500)
            .map(|i| {
                [
                    (i % 10) as f32 * 0.1,
                    (i / 100) as f32 * 0.2,
                    (i / 10 % 10) as f32 * 0.1,
                ]
            })
            .collect();
        let frame = frame(
            &positions,
            &[[1.0; 3], [2.0; 3], [3.0; 3]],
            View::Perspective3d,
        );
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a small pool starts");
            pool.install(|| frame.render(160, 90))
        };
        assert_eq!(changed(&with_threads(1), &with_threads(3)), 0);
    }
}
