//! The scratch that candidates are gathered into: small, contiguous, reused for every cell.

use crate::{aligned::Aligned, simd::LANES};

/// Candidates of one group of targets, as structure of arrays.
///
/// Every array is at least [`LANES`] longer than the candidates, and [`seal`](Self::seal) fills
/// that tail with positions that are no neighbours, so vector loops need no remainder.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    len: usize,
    shifted: bool,
    x: Aligned<f32>,
    y: Aligned<f32>,
    z: Aligned<f32>,
    /// Image vector per candidate; meaningful when `shifted`.
    shift: [Aligned<f32>; 3],
    tag: Aligned<u32>,
    /// Tag plus one where the image is lexicographically positive; meaningful when `shifted`.
    rank: Aligned<u32>,
}

/// Raw view of all arrays for vector code.
pub(crate) struct Arrays {
    pub(crate) position: [*mut f32; 3],
    pub(crate) shift: [*mut f32; 3],
    pub(crate) tag: *mut u32,
}

impl Candidates {
    /// Forgets all candidates; `shifted` says whether the next ones carry image vectors.
    pub(crate) fn clear(&mut self, shifted: bool) {
        self.len = 0;
        self.shifted = shifted;
    }

    /// Makes room for `more` candidates and a vector behind them.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = self.len + more + LANES;
        if needed > self.x.len() {
            self.grow(needed);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let room = needed.next_power_of_two();
        let [sx, sy, sz] = &mut self.shift;
        for array in [&mut self.x, &mut self.y, &mut self.z, sx, sy, sz] {
            array.grow(room);
        }
        self.tag.grow(room);
        self.rank.grow(room);
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let [sx, sy, sz] = &self.shift;
        let floats = [&self.x, &self.y, &self.z, sx, sy, sz].map(Aligned::bytes);
        floats.iter().sum::<usize>() + self.tag.bytes() + self.rank.bytes()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn shifted(&self) -> bool {
        self.shifted
    }

    /// Sets the number of candidates after vector code has written them.
    ///
    /// # Safety
    /// All candidates below `len` have been written and `len + LANES` elements are there.
    #[inline(always)]
    pub(crate) unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len + LANES <= self.x.len());
        self.len = len;
    }

    /// The arrays, for writing behind the candidates.
    #[inline(always)]
    pub(crate) fn arrays_mut(&mut self) -> Arrays {
        let [sx, sy, sz] = &mut self.shift;
        Arrays {
            position: [
                self.x.as_mut_ptr(),
                self.y.as_mut_ptr(),
                self.z.as_mut_ptr(),
            ],
            shift: [sx.as_mut_ptr(), sy.as_mut_ptr(), sz.as_mut_ptr()],
            tag: self.tag.as_mut_ptr(),
        }
    }

    pub(crate) fn push(&mut self, position: [f32; 3], tag: u32) {
        self.reserve(1);
        let at = self.len;
        [self.x[at], self.y[at], self.z[at]] = position;
        self.tag[at] = tag;
        self.len += 1;
    }

    pub(crate) fn set_last_shift(&mut self, shift: [f32; 3]) {
        for (array, value) in self.shift.iter_mut().zip(shift) {
            array[self.len - 1] = value;
        }
    }

    /// Ranks of the candidates from `begin` on: their tag, plus one in positive images.
    pub(crate) fn rank_from(&mut self, begin: usize, positive_image: bool) {
        let more = u32::from(positive_image);
        for k in begin..self.len {
            self.rank[k] = self.tag[k] + more;
        }
    }

    /// Fills the vector behind the last candidate with points infinitely far away.
    pub(crate) fn seal(&mut self) {
        self.reserve(0);
        let tail = self.len..self.len + LANES;
        for array in [&mut self.x, &mut self.y, &mut self.z] {
            array[tail.clone()].fill(f32::INFINITY);
        }
        for array in &mut self.shift {
            array[tail.clone()].fill(0.0);
        }
    }

    #[inline(always)]
    pub(crate) fn axes(&self) -> [&[f32]; 3] {
        [&self.x, &self.y, &self.z]
    }

    #[inline(always)]
    pub(crate) fn shifts(&self) -> [&[f32]; 3] {
        [&self.shift[0], &self.shift[1], &self.shift[2]]
    }

    #[inline(always)]
    pub(crate) fn tags(&self) -> &[u32] {
        &self.tag
    }

    /// What half lists compare with the target's index.
    #[inline(always)]
    pub(crate) fn ranks(&self) -> &[u32] {
        if self.shifted { &self.rank } else { &self.tag }
    }

    pub(crate) fn position(&self, k: usize) -> [f32; 3] {
        [self.x[k], self.y[k], self.z[k]]
    }

    pub(crate) fn shift(&self, k: usize) -> [f32; 3] {
        [self.shift[0][k], self.shift[1][k], self.shift[2][k]]
    }

    pub(crate) fn tag(&self, k: usize) -> u32 {
        self.tag[k]
    }

    pub(crate) fn rank(&self, k: usize) -> u32 {
        self.ranks()[k]
    }
}
