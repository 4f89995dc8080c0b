//! Work by class of occupancy before places of a ladder, for predictions of any costs.
//!
//! What a backend takes for places of a ladder is a sum over their classes. Policies ask for that
//! after every step, with other costs each time, so sums along the ladder are kept at a thousand or
//! two of its places, however many bricks there are. Between two of them work decides, which is
//! near enough since bricks next to each other on a ladder are alike; those of two subregions are
//! not, so sums are kept where subregions begin too.

use super::load::CLASSES;
use nearfield_grid::memory::{Shortage, make_room, make_room_for_one};

/// The name of the memory in messages.
const WHAT: &str = "sums of work";

/// Places of a ladder at which sums are kept at least, where it has as many.
const KEPT: usize = 1024;

/// Sums before the beginning of every subregion and every so many places behind it, and before the
/// end.
#[derive(Debug, Clone)]
pub(crate) struct ClassSums {
    stride: usize,
    /// The first sum of every subregion, and its first place.
    first: Vec<(usize, usize)>,
    sums: Vec<[f64; CLASSES]>,
}

impl ClassSums {
    /// No sums yet, of a ladder of `len` places.
    pub(super) fn new(len: usize) -> Self {
        Self {
            stride: (len / KEPT).max(1),
            first: Vec::new(),
            sums: vec![[0.0; CLASSES]],
        }
    }

    /// The next subregion, with the class and work of its `len` places.
    pub(super) fn push(
        &mut self,
        place: usize,
        works: impl ExactSizeIterator<Item = (usize, f64)>,
    ) -> Result<(), Shortage> {
        let Some(mut sums) = self.sums.pop() else {
            return Ok(());
        };
        make_room_for_one(&mut self.first, WHAT)?;
        self.first.push((self.sums.len(), place));
        let more = works.len().div_ceil(self.stride) + 1;
        let room = self.sums.len() + more;
        make_room(&mut self.sums, room, WHAT)?;
        for (number, (class, work)) in works.enumerate() {
            if number % self.stride == 0 {
                self.sums.push(sums);
            }
            sums[class] += work;
        }
        self.sums.push(sums);
        Ok(())
    }

    /// The sums.
    pub(crate) fn sums(&self) -> &[[f64; CLASSES]] {
        &self.sums
    }

    /// The sum at or before a place of a subregion, the place it belongs to, and the place of the
    /// next one.
    pub(crate) fn around(&self, subregion: usize, place: usize) -> (usize, [usize; 2]) {
        let (sum, first) = self.first[subregion];
        let behind = (place - first) / self.stride;
        let begin = first + behind * self.stride;
        (sum + behind, [begin, begin + self.stride])
    }
}
