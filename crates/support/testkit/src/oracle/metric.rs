//! Distances in the arithmetic of the contract, and the images that can matter.
//!
//! Others rely on two facts. First, everything here is monotone: rounding
//! keeps order, so along one axis d grows with the source's coordinate, and
//! d² is never below the rounded square of d along any single axis, because
//! each fma only adds a square that is not negative. Second,
//! [`Axis::images`] may name images that are too far but leaves out none that
//! could be within the radius.

use std::ops::RangeInclusive;

use super::real::{Real, whole};
use super::tilted::{Cell, Vectors};

/// One axis of the domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    length: Option<f64>,
    radius: f64,
}

impl Axis {
    fn new(radius: f64, length: Option<f64>) -> Self {
        Self {
            length: length.filter(|&length| length.is_finite() && length > 0.0),
            radius,
        }
    }

    /// The box length, or `None` when open.
    pub(super) fn length(&self) -> Option<f64> {
        self.length
    }

    /// Every image through which a difference between `low` and `high` can
    /// come within the radius.
    pub(super) fn images<T: Real>(&self, low: T, high: T) -> RangeInclusive<i64> {
        let Some(length) = self.length else {
            return 0..=0;
        };
        // Differences that overflowed stay out of reach but finite.
        let finite = |d: T| d.to_f64().clamp(-T::FAR, T::FAR);
        let (low, high) = (finite(low), finite(high));
        let reach = self.radius + T::SLACK * (self.radius + low.abs().max(high.abs()));
        let first = ((-reach - high) / length).ceil() - 1.0;
        let last = ((reach - low) / length).floor() + 1.0;
        whole(first)..=whole(last)
    }

    /// The shift S of an image.
    pub(super) fn shift<T: Real>(&self, image: i64) -> T {
        let length = self.length.unwrap_or(0.0);
        T::round(image as f64 * length)
    }
}

/// The radius and the domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric<T> {
    pub(super) axes: [Axis; 3],
    /// The box, when it is given by its vectors; the axes are not used then.
    cell: Option<Cell>,
    r2: T,
}

impl<T: Real> Metric<T> {
    pub(super) fn new(radius: T, periodic: [Option<f64>; 3], vectors: Option<Vectors>) -> Self {
        Self {
            axes: periodic.map(|length| Axis::new(radius.to_f64(), length)),
            cell: vectors.map(|vectors| Cell::new(radius.to_f64(), vectors)),
            r2: radius * radius,
        }
    }

    /// Whether distances along one axis say nothing about the images along
    /// the others.
    pub(super) fn axes_are_independent(&self) -> bool {
        self.cell.is_none()
    }

    /// Whether a difference along one axis is beyond the radius towards
    /// smaller coordinates, whatever the other axes say.
    pub(super) fn below(&self, d: T) -> bool {
        d < T::default() && d * d > self.r2
    }

    /// The same towards larger coordinates.
    pub(super) fn above(&self, d: T) -> bool {
        d > T::default() && d * d > self.r2
    }

    /// Whether a difference vector is within the radius.
    pub(super) fn within(&self, d: [T; 3]) -> bool {
        squared(d) <= self.r2
    }

    /// The displacement from target to source through `image`.
    pub(super) fn displacement(&self, target: [T; 3], source: [T; 3], image: [i64; 3]) -> [T; 3] {
        let shift = match &self.cell {
            Some(cell) => cell.shift(image),
            None => [0, 1, 2].map(|axis| self.axes[axis].shift(image[axis])),
        };
        [0, 1, 2].map(|axis| (source[axis] - target[axis]) + shift[axis])
    }

    /// Calls `found` for each image of `source` within the radius.
    pub(super) fn images_within(
        &self,
        target: [T; 3],
        source: [T; 3],
        mut found: impl FnMut([i64; 3]),
    ) {
        let difference = [0, 1, 2].map(|axis| source[axis] - target[axis]);
        if let Some(cell) = &self.cell {
            cell.images(difference, |image| {
                if self.within(self.displacement(target, source, image)) {
                    found(image);
                }
            });
            return;
        }
        let images = |axis: usize| self.axes[axis].images(difference[axis], difference[axis]);
        let moved = |axis: usize, image| difference[axis] + self.axes[axis].shift(image);
        for x in images(0) {
            for y in images(1) {
                for z in images(2) {
                    if self.within([moved(0, x), moved(1, y), moved(2, z)]) {
                        found([x, y, z]);
                    }
                }
            }
        }
    }

    /// The image whose shift brings `source` closest to `target`.
    pub(super) fn nearest_image(&self, target: [T; 3], source: [T; 3]) -> [i64; 3] {
        if let Some(cell) = &self.cell {
            return cell.nearest_image([0, 1, 2].map(|axis| source[axis] - target[axis]));
        }
        [0, 1, 2].map(|axis| {
            let difference = target[axis].to_f64() - source[axis].to_f64();
            let length = self.axes[axis].length();
            length.map_or(0, |length| (difference / length).round() as i64)
        })
    }
}

/// d² as the contract defines it.
pub(super) fn squared<T: Real>([x, y, z]: [T; 3]) -> T {
    z.mul_add(z, y.mul_add(y, x * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_is_rounded_after_each_fma_and_not_before() {
        // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 lies halfway between two floats.
        // Rounded alone it goes down; fused with 2^-30 it goes up.
        let (long, short) = (1.0 + 2.0_f32.powi(-12), 2.0_f32.powi(-15));
        let down = 1.0 + 2.0_f32.powi(-11);
        assert_eq!(squared([long, 0.0, short]), down);
        assert_eq!(squared([short, 0.0, long]), down.next_up());
        assert_eq!(squared([short, long, 0.0]), down.next_up());
    }

    #[test]
    fn the_shift_is_computed_in_f64_and_rounded_once() {
        let axis = Axis::new(1.0, Some(0.1));
        assert_eq!(axis.shift::<f32>(3), (3.0 * 0.1_f64) as f32);
        assert_eq!(axis.shift::<f32>(9), (9.0 * 0.1_f64) as f32);
        assert_ne!(axis.shift::<f32>(9), 9.0 * 0.1_f32);
        assert_eq!(axis.shift::<f64>(9), 9.0 * 0.1_f64);
        assert_eq!(Axis::new(1.0, None).shift::<f32>(3), 0.0);
    }

    #[test]
    fn no_image_within_the_radius_is_left_out() {
        for (radius, length) in [(1.0, 0.3), (1.0, 1.0), (0.1, 7.0), (2.5, 2.5)] {
            let axis = Axis::new(f64::from(radius), Some(length));
            for step in -400..400 {
                let d = step as f32 * 0.05;
                let images = axis.images(d, d);
                let inside = |n: &i64| (d + axis.shift::<f32>(*n)).abs() <= radius;
                let expected = (-2000..2000).filter(inside);
                assert!(expected.into_iter().all(|n| images.contains(&n)), "{d}");
            }
        }
    }

    #[test]
    fn a_difference_that_overflows_has_no_image_within_the_radius() {
        let metric = Metric::new(1.0_f32, [Some(1e38), None, None], None);
        let mut found = 0;
        metric.images_within([f32::MIN; 3], [f32::MAX; 3], |_| found += 1);
        assert_eq!(found, 0);
    }
}
