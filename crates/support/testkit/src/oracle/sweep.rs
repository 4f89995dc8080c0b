//! Brute force that skips most pairs, proven not to lose any.
//!
//! Sources are sorted along x and cut into strips of equal count, each sorted
//! along y. For a target and an image, the difference along an axis (computed
//! exactly as the contract does) never decreases along the sorted order, and
//! a difference whose rounded square alone exceeds r2 rules the pair out. So
//! a bisection with that very test finds the ends of what is left, and no
//! tolerance is involved.

use std::ops::Range;

use super::metric::Metric;
use super::neighbor::Neighbor;
use super::real::Real;

/// A sweep is refused on an axis along which the points span more boxes than
/// this: stepping through the images would take longer than the brute force.
const MAX_BOXES: f64 = 100.0;

/// Sources in strips.
#[derive(Debug)]
pub(super) struct Sweep<T> {
    metric: Metric<T>,
    strips: Vec<Strip<T>>,
}

/// Consecutive sources along x, ascending along y, and their extent in x.
#[derive(Debug)]
struct Strip<T> {
    low: T,
    high: T,
    sources: Vec<Source<T>>,
}

#[derive(Debug, Clone, Copy)]
struct Source<T> {
    at: [T; 3],
    index: u32,
}

impl<T: Real> Sweep<T> {
    /// Sorts the sources, or returns `None` when they cannot be swept: some
    /// coordinate is not finite, they span very many boxes, or the box leans.
    pub(super) fn new(metric: Metric<T>, points: &[[T; 3]]) -> Option<Self> {
        let finite = points.as_flattened().iter().all(|at| at.is_finite());
        let narrow = (0..3).all(|axis| spans_narrow(&metric, points, axis));
        (finite && narrow && metric.axes_are_independent()).then(|| Self {
            metric,
            strips: strips(points),
        })
    }

    /// Calls `found` for every source and image within the radius of a target.
    pub(super) fn visit(&self, target: [T; 3], found: &mut dyn FnMut(Neighbor)) {
        let (Some(first), Some(last)) = (self.strips.first(), self.strips.last()) else {
            return;
        };
        let axis = &self.metric.axes[0];
        for image in axis.images(first.low - target[0], last.high - target[0]) {
            let shift = axis.shift(image);
            for strip in &self.strips[self.strips_within(target[0], shift)] {
                self.visit_strip(&strip.sources, target, (image, shift), found);
            }
        }
    }

    fn strips_within(&self, x: T, shift: T) -> Range<usize> {
        let below = |strip: &Strip<T>| self.metric.below((strip.high - x) + shift);
        let above = |strip: &Strip<T>| self.metric.above((strip.low - x) + shift);
        self.strips.partition_point(below)..self.strips.partition_point(|strip| !above(strip))
    }

    /// The same among the sources of one strip, seen through one image along x.
    fn visit_strip(
        &self,
        sources: &[Source<T>],
        target: [T; 3],
        (image_x, shift_x): (i64, T),
        found: &mut dyn FnMut(Neighbor),
    ) {
        let (Some(first), Some(last)) = (sources.first(), sources.last()) else {
            return;
        };
        let axis = &self.metric.axes[1];
        let y = |source: &Source<T>| source.at[1] - target[1];
        for image_y in axis.images(y(first), y(last)) {
            let shift_y = axis.shift(image_y);
            let start = sources.partition_point(|source| self.metric.below(y(source) + shift_y));
            let near = |source: &&Source<T>| !self.metric.above(y(source) + shift_y);
            for source in sources[start..].iter().take_while(near) {
                let x = (source.at[0] - target[0]) + shift_x;
                if !self.metric.below(x) && !self.metric.above(x) {
                    let y = y(source) + shift_y;
                    self.visit_column(source, [x, y, target[2]], |image_z| {
                        let index = source.index;
                        found(Neighbor {
                            index,
                            image: [image_x, image_y, image_z],
                        });
                    });
                }
            }
        }
    }

    /// Calls `found` for the images along z of one source within the radius,
    /// given the differences along x and y and the target's z.
    fn visit_column(&self, source: &Source<T>, [x, y, from]: [T; 3], mut found: impl FnMut(i64)) {
        let (axis, difference) = (&self.metric.axes[2], source.at[2] - from);
        for image in axis.images(difference, difference) {
            if self.metric.within([x, y, difference + axis.shift(image)]) {
                found(image);
            }
        }
    }
}

/// Whether an axis is open or holds few enough images to step through.
fn spans_narrow<T: Real>(metric: &Metric<T>, points: &[[T; 3]], axis: usize) -> bool {
    let Some(length) = metric.axes[axis].length() else {
        return true;
    };
    let along = || points.iter().map(|at| at[axis].to_f64());
    let low = along().fold(f64::INFINITY, f64::min);
    let high = along().fold(f64::NEG_INFINITY, f64::max);
    high - low <= MAX_BOXES * length
}

/// All points in strips; about as many strips as points along a strip's
/// longer sides.
fn strips<T: Real>(points: &[[T; 3]]) -> Vec<Strip<T>> {
    let source = |(index, &at)| Source { at, index };
    let mut sources: Vec<Source<T>> = (0..).zip(points).map(source).collect();
    sources.sort_unstable_by(|a, b| a.at[0].total_cmp(&b.at[0]));
    let strip_len = (points.len() as f64).powf(2.0 / 3.0).ceil() as usize;
    sources.chunks(strip_len.max(1)).map(Strip::new).collect()
}

impl<T: Real> Strip<T> {
    /// A strip of sources that ascend along x.
    fn new(ascending: &[Source<T>]) -> Self {
        let mut sources = ascending.to_vec();
        sources.sort_unstable_by(|a, b| a.at[1].total_cmp(&b.at[1]));
        let x = |source: Option<&Source<T>>| source.map_or(T::default(), |source| source.at[0]);
        Self {
            low: x(ascending.first()),
            high: x(ascending.last()),
            sources,
        }
    }
}
