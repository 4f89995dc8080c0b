//! The geometry of pairs whose images follow from the coordinates.
//!
//! Where the faces of a cell are more than two radii apart, a pair has one image at most, and
//! [`ImagesInReach::only`] names it by a difference of fractions.
//!
//! Most points of a large cell are so far from its faces that none of their neighbours is an image.
//! The extremes of all fractions tell that of a point, and its pairs are written without asking. In
//! a straight box the loop over the others has no branch, because which neighbours lie across a
//! face is as good as random: every pair is moved, most of them by zero.
//!
//! **Invariant:** images, displacements and distances have the bits of a search that hands them on.

use super::{
    input::SystemReal,
    place::{Place, displacement},
    quantities::{PairIndex, Quantities},
};
use crate::lists::neighbor_lists::NeighborLists;
use nearfield_grid::{Bounds, Domain, ImagesInReach, Radius};
use std::ops::Range;

/// Lists, and what names the image of each pair.
#[derive(Debug)]
pub(super) struct OneImage {
    /// The neighbours of the system's points, each at most once.
    pub(super) lists: NeighborLists,
    /// Made for the bounds of its points.
    reach: ImagesInReach,
    /// Its cell, enumerated by short vectors, as the counts of `reach` are.
    domain: Domain,
    /// Where the fractions of its points lie, along each axis.
    fractions: [[f64; 2]; 3],
}

impl OneImage {
    /// What names the images of the pairs of points within `bounds`, which still have to be found;
    /// `None` if a pair can have several images.
    pub(super) fn new(domain: Domain, radius: Radius, bounds: &Bounds) -> Option<Self> {
        let reach = ImagesInReach::new(&domain, radius, bounds);
        reach.names_one(bounds).then(|| Self {
            lists: NeighborLists::default(),
            reach,
            domain,
            fractions: reach.fractions_within(bounds),
        })
    }

    /// Writes the geometry of the pairs of a point, by its number in the system whose positions are
    /// given, to `entries`, as many as its list has.
    #[inline(always)]
    pub(super) fn write<T: SystemReal, I: PairIndex>(
        &self,
        positions: &[[T; 3]],
        number: usize,
        wanted: Quantities,
        to: &mut Place<'_, T, I>,
        entries: Range<usize>,
    ) {
        let from = positions[number];
        let target = self.reach.fractions(doubles(from));
        let list = self.lists.of(number);
        let mut to = to.geometry(wanted, entries);
        if !self.reach.may_need_images(target, self.fractions) {
            to.write(list, |source: u32| {
                let none = [T::default(); 3];
                ([0; 3], displacement(from, positions[source as usize], none))
            });
        } else if let Some(lengths) = self.domain.straight_lengths() {
            to.write(list, |source: u32| {
                let at = positions[source as usize];
                let n = self.image(at, target);
                let shift = [
                    T::of(n[0] * lengths[0]),
                    T::of(n[1] * lengths[1]),
                    T::of(n[2] * lengths[2]),
                ];
                (whole(n), displacement(from, at, shift))
            });
        } else {
            to.write(list, |source: u32| {
                let at = positions[source as usize];
                let n = self.image(at, target);
                if n == [0.0; 3] {
                    return ([0; 3], displacement(from, at, [T::default(); 3]));
                }
                let n = whole(n).map(i64::from);
                let given = self.domain.given_image(n).map(|n| n as i32);
                let shift = self.domain.image_vector_f64(n).map(T::of);
                (given, displacement(from, at, shift))
            });
        }
    }

    /// The image through which a source can be a neighbour of a target with these fractions.
    #[inline(always)]
    fn image<T: SystemReal>(&self, source: [T; 3], target: [f64; 3]) -> [f64; 3] {
        let source = self.reach.fractions(doubles(source));
        [
            self.reach.only(0, source[0], target[0]),
            self.reach.only(1, source[1], target[1]),
            self.reach.only(2, source[2], target[2]),
        ]
    }
}

/// Coordinates in double precision.
#[inline(always)]
fn doubles<T: SystemReal>([x, y, z]: [T; 3]) -> [f64; 3] {
    [x.double(), y.double(), z.double()]
}

/// Whole numbers below 2³¹ as integers. The last bits of their sum with 3 · 2⁵¹ are those of the
/// integer. A conversion by `as` also has an answer for numbers that are too large, so it takes
/// several instructions for each number.
#[inline(always)]
fn whole(n: [f64; 3]) -> [i32; 3] {
    const LARGE: f64 = (3u64 << 51) as f64;
    [
        (n[0] + LARGE).to_bits() as i32,
        (n[1] + LARGE).to_bits() as i32,
        (n[2] + LARGE).to_bits() as i32,
    ]
}
