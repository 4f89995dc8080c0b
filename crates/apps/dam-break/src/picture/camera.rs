//! The camera: maps points of the scene to the picture and back.
//!
//! Scene coordinates are x along the tank, y away from the viewer, z up. View
//! coordinates are x to the right, y up, z into the picture, so that z is the
//! depth; pixels count from the top left and their centres lie at halves.

use glam::{Mat3, Vec2, Vec3};

/// Half the vertical opening angle of the perspective view, as a tangent; a
/// long lens, so that the far end of the tank does not shrink away.
const HALF_VIEW_TANGENT: f32 = 0.2;

/// Rounds of bisection for the camera's distance.
const FIT_ROUNDS: usize = 40;

/// A rectangle of the picture, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) low: Vec2,
    pub(super) high: Vec2,
}

impl Window {
    fn size(&self) -> Vec2 {
        (self.high - self.low).max(Vec2::ONE)
    }
}

/// How depth and distance from the axis make a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Projection {
    /// All rays leave the eye.
    Perspective,
    /// All rays are parallel.
    Parallel,
}

/// A ray in view coordinates: a point, and its change per unit of depth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ray {
    pub(super) origin: Vec3,
    pub(super) per_depth: Vec3,
}

/// The rays through a row of the picture, by an expression without branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rays {
    y: f32,
    center: f32,
    focal: f32,
    /// One if rays have origins of their own, else zero.
    origin: f32,
    /// One if rays have directions of their own, else zero.
    per_depth: f32,
}

impl Rays {
    /// The ray through the column `column` of the row.
    #[inline(always)]
    pub(super) fn at(self, column: f32) -> Ray {
        let x = (column - self.center) / self.focal;
        Ray {
            origin: Vec3::new(x * self.origin, self.y * self.origin, 0.0),
            per_depth: Vec3::new(x * self.per_depth, self.y * self.per_depth, 1.0),
        }
    }
}

/// A camera with its picture plane.
#[derive(Clone, Debug)]
pub(super) struct Camera {
    projection: Projection,
    eye: Vec3,
    /// Rows are the view's axes in the scene.
    to_view: Mat3,
    /// Pixels per unit of the ray coordinates.
    focal: f32,
    /// Pixel of the ray through the view's axis.
    center: Vec2,
}

impl Camera {
    /// A perspective camera looking along `forward` that fits `corners` as
    /// large as possible into `window`.
    pub(super) fn perspective(forward: Vec3, corners: &[Vec3], window: Window) -> Self {
        let (middle, reach) = bounding_ball(corners);
        let mut camera = Self {
            projection: Projection::Perspective,
            eye: middle,
            to_view: view_axes(forward),
            focal: 0.5 * window.size().y / HALF_VIEW_TANGENT,
            center: Vec2::ZERO,
        };
        let direction = forward.normalize();
        let (mut near, mut far) = (1.01 * reach, 200.0 * reach);
        for _ in 0..FIT_ROUNDS {
            let distance = 0.5 * (near + far);
            camera.eye = middle - direction * distance;
            if camera.spans(corners).cmple(window.size()).all() {
                far = distance
            } else {
                near = distance
            }
        }
        camera.eye = middle - direction * far;
        camera.center_on(corners, window);
        camera
    }

    /// A camera with parallel rays along `forward` that fits `corners` as large
    /// as possible into `window`.
    pub(super) fn parallel(forward: Vec3, corners: &[Vec3], window: Window) -> Self {
        let (middle, reach) = bounding_ball(corners);
        let mut camera = Self {
            projection: Projection::Parallel,
            eye: middle - forward.normalize() * 4.0 * reach,
            to_view: view_axes(forward),
            focal: 1.0,
            center: Vec2::ZERO,
        };
        let scale = window.size() / camera.spans(corners).max(Vec2::splat(1e-6 * reach));
        camera.focal = scale.min_element();
        camera.center_on(corners, window);
        camera
    }

    /// View coordinates of a scene point.
    #[inline]
    pub(super) fn view(&self, scene: Vec3) -> Vec3 {
        self.to_view * (scene - self.eye)
    }

    /// View direction of a scene direction.
    #[inline]
    pub(super) fn view_direction(&self, scene: Vec3) -> Vec3 {
        self.to_view * scene
    }

    /// Scene coordinates of a view point.
    #[inline]
    pub(super) fn scene(&self, view: Vec3) -> Vec3 {
        self.scene_direction(view) + self.eye
    }

    /// Scene direction of a view direction.
    #[inline]
    pub(super) fn scene_direction(&self, view: Vec3) -> Vec3 {
        self.to_view.transpose() * view
    }

    /// Pixel coordinates of a view point in front of the camera.
    #[inline]
    pub(super) fn pixel(&self, view: Vec3) -> Vec2 {
        let ray = match self.projection {
            Projection::Perspective => view.truncate() / view.z,
            Projection::Parallel => view.truncate(),
        };
        self.center + Vec2::new(ray.x, -ray.y) * self.focal
    }

    /// A ray in the scene: its origin, and its change per unit of depth.
    #[inline]
    pub(super) fn scene_ray(&self, ray: Ray) -> (Vec3, Vec3) {
        (self.scene(ray.origin), self.scene_direction(ray.per_depth))
    }

    /// The ray through a point of the picture.
    #[inline]
    pub(super) fn ray(&self, pixel: Vec2) -> Ray {
        self.rays(pixel.y).at(pixel.x)
    }

    /// The rays through a row of the picture.
    #[inline]
    pub(super) fn rays(&self, row: f32) -> Rays {
        let y = -((row - self.center.y) / self.focal);
        let [origin, per_depth] = match self.projection {
            Projection::Perspective => [0.0, 1.0],
            Projection::Parallel => [1.0, 0.0],
        };
        Rays {
            y,
            center: self.center.x,
            focal: self.focal,
            origin,
            per_depth,
        }
    }

    /// Pixels a unit length covers at view depth `depth`.
    #[inline]
    pub(super) fn pixels_per_unit(&self, depth: f32) -> f32 {
        match self.projection {
            Projection::Perspective => self.focal / depth,
            Projection::Parallel => self.focal,
        }
    }

    /// Width and height of the corners' picture, in pixels.
    fn spans(&self, corners: &[Vec3]) -> Vec2 {
        let (low, high) = self.bounds(corners);
        high - low
    }

    /// Lowest and highest pixel coordinates of the corners.
    fn bounds(&self, corners: &[Vec3]) -> (Vec2, Vec2) {
        let start = (Vec2::INFINITY, Vec2::NEG_INFINITY);
        corners
            .iter()
            .map(|&corner| self.pixel(self.view(corner)))
            .fold(start, |(low, high), pixel| {
                (low.min(pixel), high.max(pixel))
            })
    }

    /// Shifts the picture plane until the corners are centred in the window.
    fn center_on(&mut self, corners: &[Vec3], window: Window) {
        let (low, high) = self.bounds(corners);
        self.center += 0.5 * (window.low + window.high) - 0.5 * (low + high);
    }
}

/// Rows: right, up and forward for a camera looking along `forward`.
fn view_axes(forward: Vec3) -> Mat3 {
    let forward = forward.normalize();
    let right = forward.cross(Vec3::Z).normalize();
    Mat3::from_cols(right, right.cross(forward), forward).transpose()
}

/// Middle of the corners' box and the largest distance from it.
fn bounding_ball(corners: &[Vec3]) -> (Vec3, f32) {
    let low = corners
        .iter()
        .fold(Vec3::INFINITY, |low, &corner| low.min(corner));
    let high = corners
        .iter()
        .fold(Vec3::NEG_INFINITY, |high, &corner| high.max(corner));
    let middle = 0.5 * (low + high);
    (
        middle,
        (high - middle).length().max(f32::MIN_POSITIVE.sqrt()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        low: Vec2::new(100.0, 50.0),
        high: Vec2::new(900.0, 450.0),
    };

    fn box_corners() -> Vec<Vec3> {
        (0..8)
            .map(|i| {
                Vec3::new(
                    (i & 1) as f32 * 4.0,
                    (i >> 1 & 1) as f32,
                    (i >> 2) as f32 * 2.0,
                )
            })
            .collect()
    }

    fn both_cameras() -> [Camera; 2] {
        let forward = Vec3::new(-0.4, 0.9, -0.4);
        [
            Camera::perspective(forward, &box_corners(), WINDOW),
            Camera::parallel(forward, &box_corners(), WINDOW),
        ]
    }

    #[test]
    fn the_whole_box_fills_the_window_and_stays_inside() {
        for camera in both_cameras() {
            let (low, high) = camera.bounds(&box_corners());
            assert!(
                low.cmpge(WINDOW.low - 0.1).all() && high.cmple(WINDOW.high + 0.1).all(),
                "{low} {high}"
            );
            let slack = (WINDOW.size() - (high - low)).min_element();
            assert!(slack < 1.0, "{slack} pixels to spare");
        }
    }

    #[test]
    fn a_ray_passes_through_the_point_that_was_projected() {
        for camera in both_cameras() {
            let point = Vec3::new(1.3, 0.2, 0.7);
            let view = camera.view(point);
            let Ray { origin, per_depth } = camera.ray(camera.pixel(view));
            assert!((camera.scene(origin + per_depth * view.z) - point).length() < 1e-4);
        }
    }

    #[test]
    fn up_is_up_and_far_is_deep() {
        for camera in both_cameras() {
            let view = |scene| camera.view(scene);
            assert!(camera.pixel(view(Vec3::Z)).y < camera.pixel(view(Vec3::ZERO)).y);
            assert!(view(Vec3::Y).z > view(Vec3::ZERO).z);
            assert!(camera.pixel(view(Vec3::X)).x > camera.pixel(view(Vec3::ZERO)).x);
        }
    }
}
