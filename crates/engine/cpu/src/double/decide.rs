//! Decides in `f64` which of the candidates that passed the filter are neighbours.
//!
//! For every target the filter writes the numbers of the candidates that pass, in order.
//! Candidates of one image follow each other, so they are decided image by image with one image
//! vector. The decision is scalar code: about as many candidates pass as are neighbours, and their
//! positions are gathered from all over memory, so vectors would gain little.
//!
//! Every candidate is written to the next free entry, and the entry is kept by moving on if it is
//! a neighbour. There is no branch to be mispredicted.

use crate::{
    candidates::{
        aligned::Aligned,
        arrays::Candidates,
        groups::Group,
        mode::{HALF, Mode, SHIFTED, has},
        scan::{Numbers, Select, scan},
        scratch::{Piece, Scratch},
        walk::Walk,
    },
    contract::{Image, difference_f64, squared_f64},
    simd::Simd,
};
use nearfield_grid::DoublePoints;

/// A group of targets whose candidates are to be decided.
///
/// It borrows the gathered group; one is made per group.
pub(crate) struct Decide<'a> {
    /// The search.
    pub(crate) walk: &'a Walk<'a>,
    /// The group.
    pub(crate) group: &'a Group,
    /// Its candidates.
    candidates: &'a Candidates,
    /// Consecutive candidates of one image each; meaningful when they carry image vectors.
    pieces: &'a [Piece],
    /// Positions of the targets as given.
    targets: &'a DoublePoints,
    /// Positions of the sources as given.
    sources: &'a DoublePoints,
    /// fl(r·r) in `f64`.
    r2: f64,
}

/// A target that searches.
#[derive(Clone, Copy)]
struct Target {
    /// Its position as given.
    position: [f64; 3],
    /// The caller's index of it.
    index: u32,
    /// Its slot among the sorted sources, or `u32::MAX`, which no point has.
    own_slot: u32,
}

/// Takes neighbours as they are decided.
///
/// Lists take the caller's index; kernels take displacement, square and channels.
pub(crate) trait Receive {
    /// Takes the source `slot` in an image as neighbour number `number`, until another is put
    /// there.
    ///
    /// # Safety
    /// There is room for neighbour `number`, and a source `slot`.
    unsafe fn put(&mut self, number: usize, slot: usize, image: Image, d: [f64; 3], d2: f64);
}

impl<'a> Decide<'a> {
    /// The candidates of `group` that `scratch` holds; None in single precision.
    #[inline(always)]
    pub(crate) fn new(walk: &'a Walk<'_>, group: &'a Group, scratch: &'a Scratch) -> Option<Self> {
        let [targets, sources] = walk.double()?;
        Some(Self {
            walk,
            group,
            candidates: &scratch.candidates,
            pieces: &scratch.pieces,
            targets,
            sources,
            r2: walk.sources.lattice().radius().squared_f64(),
        })
    }

    /// Maximum number of neighbours of a target.
    #[inline(always)]
    pub(crate) fn max_len(&self) -> usize {
        self.candidates.len()
    }

    /// Writes the list of sorted target `slot` to `to` and returns how long it is.
    ///
    /// # Safety
    /// The processor has the level `S`; `MODE` says what candidates carry, with [`HALF`] for half
    /// lists; `passed` has room for all candidates and [`LANES`](crate::simd::LANES) more; and `to`
    /// has room for all neighbours and one more.
    #[inline(always)]
    pub(crate) unsafe fn list<S: Simd, const MODE: Mode>(
        &self,
        slot: usize,
        passed: &mut Aligned<u32>,
        to: *mut u32,
    ) -> usize {
        let index = self.walk.sources.points().index();
        // SAFETY: guaranteed by the caller.
        unsafe { self.target::<S, MODE, _>(slot, passed, &mut ListOf { to, index }) }
    }

    /// Hands the neighbours of sorted target `slot` to `to` and returns how many they are.
    ///
    /// # Safety
    /// As for [`list`](Self::list), and `to` has room for all candidates and one more.
    ///
    /// Candidates that pass are divided among the pieces by their numbers, which ascend.
    #[inline(always)]
    pub(crate) unsafe fn target<S: Simd, const MODE: Mode, R: Receive>(
        &self,
        slot: usize,
        passed: &mut Aligned<u32>,
        to: &mut R,
    ) -> usize {
        let points = self.walk.targets.points();
        let filter = Select {
            target: points.position(slot),
            r2: self.walk.r2(slot),
            own_tag: u32::MAX,
            own_candidate: usize::MAX,
        };
        let target = Target {
            position: self.targets.position(slot),
            index: points.index()[slot],
            own_slot: if self.walk.same_set {
                slot as u32
            } else {
                u32::MAX
            },
        };
        let begin = passed.as_mut_ptr();
        // SAFETY: guaranteed by the caller; the end lies in the same array as the beginning.
        let count = unsafe {
            let numbers = [Numbers::<false> { end: begin }];
            let [kept] = scan::<S::Single, _, MODE, 1>(&[filter], self.candidates, numbers);
            kept.end.offset_from(begin) as usize
        };
        let mut rest = &passed[..count];
        if !has(MODE, SHIFTED) {
            let image = ImageOf::CENTRAL;
            // SAFETY: as above.
            return unsafe { self.image::<MODE, R>(&target, rest, &image, to, 0) };
        }
        let mut found = 0;
        for piece in self.pieces {
            let end = piece.end as u32;
            let count = rest
                .iter()
                .take_while(|&&candidate| candidate < end)
                .count();
            let (here, others) = rest.split_at(count);
            rest = others;
            let image = ImageOf {
                image: piece.image,
                vector: piece.image_vector,
            };
            // SAFETY: as above.
            found = unsafe { self.image::<MODE, R>(&target, here, &image, to, found) };
        }
        found
    }

    /// Decides candidates of one image, behind the `found` that are there; returns how many there
    /// are then.
    ///
    /// # Safety
    /// `passed` are numbers of candidates, which are tagged by sorted source, and `to` has room for
    /// them and one more.
    #[inline(always)]
    unsafe fn image<const MODE: Mode, R: Receive>(
        &self,
        target: &Target,
        passed: &[u32],
        through: &ImageOf,
        to: &mut R,
        mut found: usize,
    ) -> usize {
        let tags = self.candidates.tags();
        let index = self.walk.sources.points().index();
        let [x, y, z] = self.sources.axes();
        let own_slot = if through.image == [0; 3] {
            target.own_slot
        } else {
            u32::MAX
        };
        let positive = u32::from(through.image > [0; 3]);
        for &candidate in passed {
            // SAFETY: the caller guarantees the numbers and the room, and tags are slots of
            // sources.
            unsafe {
                let slot = *tags.get_unchecked(candidate as usize);
                let at = slot as usize;
                let source = [
                    *x.get_unchecked(at),
                    *y.get_unchecked(at),
                    *z.get_unchecked(at),
                ];
                let d = difference_f64(target.position, source, through.vector);
                let d2 = squared_f64(d);
                let counts = if has(MODE, HALF) {
                    *index.get_unchecked(at) + positive > target.index
                } else {
                    slot != own_slot
                };
                to.put(found, at, through.image, d, d2);
                found += usize::from((d2 <= self.r2) & counts);
            }
        }
        found
    }
}

/// The image that sources are seen through, and its vector.
struct ImageOf {
    /// The image.
    image: Image,
    /// Its vector in `f64`.
    vector: [f64; 3],
}

impl ImageOf {
    /// No image.
    const CENTRAL: Self = Self {
        image: [0; 3],
        vector: [0.0; 3],
    };
}

/// A list being written.
struct ListOf<'a> {
    /// The first entry.
    to: *mut u32,
    /// The caller's index of every source.
    index: &'a [u32],
}

impl Receive for ListOf<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, number: usize, slot: usize, _: Image, _: [f64; 3], _: f64) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.to.add(number).write(*self.index.get_unchecked(slot)) };
    }
}
