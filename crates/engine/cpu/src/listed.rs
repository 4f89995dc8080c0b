//! The pairs that the stored list of a target names, laid out for kernels.
//!
//! Whatever precision the positions are in and however pairs are looked at, kernels read the same
//! arrays; so this is compiled once per precision and SIMD level, and not again for every kernel.

use crate::{
    Coordinate, SimdLevel,
    aligned::Aligned,
    coordinate::sealed::Sealed,
    evaluate::Neighbors,
    simd::{Channels, LANES, Simd, Task, with_level},
    stored::{Batch, ListWalk},
};
use nearfield_grid::memory::Shortage;
use nearfield_pairs::{Field, Pair};

/// Pairs of one target in the order of its list. Those beyond the radius, where they were not left
/// out, are infinitely far away.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    len: usize,
    sources: Aligned<u32>,
    d: [Aligned<f32>; 3],
    d2: Aligned<f32>,
    /// Scratch for lists in which sources repeat.
    seen: Vec<u32>,
    /// Memory that was refused; the pairs are then of no use.
    failed: Option<Shortage>,
}

impl Listed {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let d: usize = self.d.iter().map(Aligned::bytes).sum();
        self.sources.bytes() + d + self.d2.bytes() + size_of::<u32>() * self.seen.capacity()
    }

    /// Source of every pair.
    #[inline(always)]
    pub(crate) fn sources(&self) -> &[u32] {
        &self.sources[..self.len]
    }

    /// Displacements and squared distances from pair `first` on, [`LANES`] of them; infinitely far away
    /// behind the last.
    #[inline(always)]
    pub(crate) fn block(&self, first: usize) -> ([&[f32; LANES]; 3], &[f32; LANES]) {
        let [x, y, z] = &self.d;
        let d = [lanes(x, first), lanes(y, first), lanes(z, first)];
        (d, lanes(&self.d2, first))
    }

    /// The pairs as kernels read them, with the channels of their sources.
    pub(crate) fn neighbors(&mut self, channels: Channels) -> Neighbors {
        let [x, y, z] = &mut self.d;
        Neighbors {
            d: [x.as_ptr(), y.as_ptr(), z.as_ptr()],
            d2: self.d2.as_mut_ptr(),
            channels,
        }
    }

    /// Whether memory was refused.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The memory that was refused, once.
    pub(crate) fn take_failed(&mut self) -> Option<Shortage> {
        self.failed.take()
    }

    /// Makes room for `len` pairs and a vector more; false where there is none.
    #[inline(always)]
    fn grow(&mut self, len: usize) -> bool {
        let room = len + 2 * LANES;
        room <= self.sources.len() || self.lengthen(room)
    }

    #[cold]
    #[inline(never)]
    fn lengthen(&mut self, room: usize) -> bool {
        let [x, y, z] = &mut self.d;
        // The sources last: by them it is told whether there is room.
        let grown = (self.d2.grow(room))
            .and_then(|()| x.grow(room))
            .and_then(|()| y.grow(room))
            .and_then(|()| z.grow(room))
            .and_then(|()| self.sources.grow(room));
        self.failed = grown.err();
        self.failed.is_none()
    }

    #[inline(always)]
    fn push(&mut self, source: u32, pair: Pair) {
        if !self.grow(self.len) {
            return;
        }
        self.sources[self.len] = source;
        for axis in 0..3 {
            self.d[axis][self.len] = pair.d[axis];
        }
        self.d2[self.len] = pair.d2;
        self.len += 1;
    }

    /// Adds the pairs with up to [`LANES`] sources, behind whole batches.
    #[inline(always)]
    fn push_batch(&mut self, sources: &[u32], (d, d2, near): &Batch) {
        let batch = self.len..self.len + LANES;
        for axis in 0..3 {
            self.d[axis][batch.clone()].copy_from_slice(&d[axis]);
        }
        let to = &mut self.d2[batch];
        for lane in 0..LANES {
            to[lane] = if near[lane] { d2[lane] } else { f32::INFINITY };
        }
        self.sources[self.len..self.len + sources.len()].copy_from_slice(sources);
        self.len += sources.len();
    }
}

/// [`LANES`] values from `first` on.
#[inline(always)]
fn lanes(values: &[f32], first: usize) -> &[f32; LANES] {
    const NONE: [f32; LANES] = [f32::INFINITY; LANES];
    values[first..].first_chunk().unwrap_or(&NONE)
}

/// Gives `to` the channels of the sources `indices`, read from the caller's arrays.
///
/// # Safety
/// `to` has room for all of them.
pub(crate) unsafe fn gather_fields(fields: &[Field<'_>], indices: &[u32], to: Channels) {
    let mut first = 0;
    for field in fields {
        for channel in 0..field.channels() {
            for (k, &index) in indices.iter().enumerate() {
                let value = field.values()[index as usize * field.channels() + channel];
                // SAFETY: the caller's promise.
                unsafe { to.at(first + channel, k).write(value) };
            }
        }
        first += field.channels();
    }
}

/// Lists of targets, in whatever precision.
pub(crate) trait Lists: Sync {
    /// Lays out the pairs of a target; none where it has no list.
    fn lay_out(&self, level: SimdLevel, target: usize, listed: &mut Listed);
}

impl<T: Coordinate> Lists for ListWalk<'_, T> {
    fn lay_out(&self, level: SimdLevel, target: usize, listed: &mut Listed) {
        let work = LayOut {
            walk: self,
            target,
            listed,
        };
        T::lay_out(level, work);
    }
}

/// One target whose pairs are to be laid out.
pub(crate) struct LayOut<'a, T> {
    walk: &'a ListWalk<'a, T>,
    target: usize,
    listed: &'a mut Listed,
}

impl<T: Coordinate> Task for LayOut<'_, T> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let (walk, target, listed) = (self.walk, self.target, self.listed);
        listed.len = 0;
        match &walk.nearest {
            Some(nearest) => {
                let list = walk.list(target);
                if !listed.grow(list.len()) {
                    return;
                }
                for batch in list.chunks(LANES) {
                    listed.push_batch(batch, &nearest.batch(walk.pairs, target, batch));
                }
            }
            None => {
                let mut seen = std::mem::take(&mut listed.seen);
                let visited = walk.visit(target, &mut seen, &mut |source, pair| {
                    listed.push(source, pair);
                });
                listed.seen = seen;
                if let Err(shortage) = visited {
                    listed.failed = Some(shortage);
                    return;
                }
            }
        }
        // What lies behind the last counts for nothing.
        if !listed.grow(listed.len) {
            return;
        }
        for lane in 0..LANES {
            listed.d2[listed.len + lane] = f32::INFINITY;
        }
    }
}

#[expect(private_interfaces, reason = "nobody outside can call it")]
impl Sealed for f32 {
    fn lay_out(level: SimdLevel, work: LayOut<'_, f32>) {
        with_level(level, work);
    }
}

#[expect(private_interfaces, reason = "nobody outside can call it")]
impl Sealed for f64 {
    fn lay_out(level: SimdLevel, work: LayOut<'_, f64>) {
        with_level(level, work);
    }
}
