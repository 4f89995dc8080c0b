//! The values per point that a kernel reads, and the array that it writes.
//!
//! Fields come in the caller's order, packed or strided. Source channels are sorted once per
//! traversal, as structure of arrays, and gathered per group like the coordinates; target values
//! are read once per target, straight from the caller's memory.
//!
//! # Why channels
//!
//! The compiler's vectoriser loads sixteen values of one array at once, but not sixteen structs.
//! So source values are split into channels, each an array in the order of the sorted points, and
//! gathered per group into arrays beside the candidates. A kernel's `Source::read` then asks for
//! channel k of candidate n, which is a vector load for sixteen candidates.
//!
//! Target values are uniform over a target's candidates; they are read once per target and stay in
//! registers.
//!
//! # Strided fields
//!
//! A field may lie inside the caller's structs. It differs from a packed one by its stride alone,
//! so the same loops read both. Sorting the source channels also packs them: traversals over cells
//! gather from packed arrays in either case. Traversals over lists read source values where they
//! lie, as they read target values.
//!
//! # Memory
//!
//! Sorted channels are kept by the backend between traversals. Fresh memory from the system costs
//! more than filling it, because every page is zeroed first.

use crate::{
    candidates::{aligned::Aligned, arrays::Candidates, scan::Channels as Arrays},
    error::{Error, ErrorKind},
    pool::CpuBackend,
};
use nearfield_grid::{
    Grid, PADDING,
    memory::{Shortage, make_room},
    parallel::PoolLoops,
};
use nearfield_pairs::{Channels, Field, PairKernel};
use rayon::prelude::*;

/// Per-point values a kernel reads, in the caller's order.
///
/// A kernel declares the channels it reads per target and per source as a type; fields are given
/// in the order of that type. A velocity of three channels and a density make four channels in two
/// fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// Fields of the target set.
    pub targets: &'a [Field<'a>],
    /// Fields of the source set.
    pub sources: &'a [Field<'a>],
}

/// The array for the results: one value per target in the caller's order.
///
/// Combining serves sums over several source sets: the first traversal writes, the others combine.
#[derive(Debug)]
pub enum Output<'a, T> {
    /// Overwrite the array.
    Write(&'a mut [T]),
    /// Combine with the values in the array, by the kernel's reduction.
    Combine(&'a mut [T]),
}

impl Fields<'_> {
    /// Checks that the fields have a value per channel of `K` for each of `targets` and `sources`.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] and [`ErrorKind::FieldChannels`].
    ///
    /// Called by every traversal before anything runs.
    pub fn check<K: PairKernel>(&self, targets: usize, sources: usize) -> Result<(), Error> {
        check_fields("target", self.targets, targets, K::Target::COUNT)?;
        check_fields("source", self.sources, sources, K::Source::COUNT)
    }
}

/// Room for `count` channels of `stride` values in `array`. Strides are multiples of a vector, so
/// channels are aligned as the array is.
#[inline(always)]
pub(crate) fn room(
    array: &mut Aligned<f32>,
    count: usize,
    stride: usize,
) -> Result<Arrays, Shortage> {
    array.grow(count * stride)?;
    Ok(Arrays {
        data: array.as_mut_ptr(),
        stride,
        count,
    })
}

/// Checks that every field has a value for each of `points`, and that all of them have `channels`.
pub(crate) fn check_fields(
    role: &'static str,
    fields: &[Field<'_>],
    points: usize,
    channels: usize,
) -> Result<(), Error> {
    for (field, values) in fields.iter().enumerate() {
        if values.len() != points {
            return Err(ErrorKind::FieldLength {
                role,
                field,
                found: values.len(),
                expected: points,
            }
            .into());
        }
    }
    let found = fields.iter().map(Field::channels).sum();
    if found != channels {
        return Err(ErrorKind::FieldChannels {
            role,
            found,
            expected: channels,
        }
        .into());
    }
    Ok(())
}

/// Appends every channel of the fields to `channels`, in the order of the sorted points, one array
/// per channel. Arrays come from the backend and go back to it: fresh memory costs more than
/// filling it.
pub(super) fn sorted_channels(
    backend: &CpuBackend,
    sources: &Grid,
    fields: &[Field<'_>],
    channels: &mut Vec<Vec<f32>>,
) -> Result<(), Error> {
    let points = sources.points();
    let index = &points.index()[..points.len()];
    for field in fields {
        for channel in 0..field.channels() {
            let mut sorted = backend.take_channel();
            sorted.clear();
            make_room(&mut sorted, points.len() + PADDING, "sorted fields")?;
            backend.install_for(points.len(), || {
                index
                    .par_iter()
                    .with_min_len(1 << 12)
                    .map(|&i| field.value(i as usize, channel))
                    .put_into(&mut sorted);
            });
            channels.push(sorted);
        }
    }
    Ok(())
}

/// One value of the target type, read from the caller's arrays, which may be strided. The walk over
/// fields is resolved at compile time once the loop is unrolled.
///
/// The fields have been [checked](check_fields), so there is one for every channel.
#[inline(always)]
pub(crate) fn target_value<T: Channels>(fields: &[Field<'_>], index: usize) -> T {
    let (mut field, mut first) = (0, 0);
    T::read(|channel| {
        while channel - first >= fields[field].channels() {
            first += fields[field].channels();
            field += 1;
        }
        fields[field].value(index, channel - first)
    })
}

/// Gathers channels of the candidates, which are tagged by slot, from arrays in the order of the
/// sorted points.
///
/// # Safety
/// Every array has a value for every tag, and `to` has room for the channels of all candidates.
#[inline(always)]
pub(super) unsafe fn gather_channels(from: &[Vec<f32>], candidates: &Candidates, to: Arrays) {
    let tags = &candidates.tags()[..candidates.len()];
    for (channel, sorted) in from.iter().enumerate() {
        for (k, &slot) in tags.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                to.at(channel, k)
                    .write(*sorted.get_unchecked(slot as usize))
            };
        }
    }
}

/// Gives `to` the channels of the sources `indices`, read from the caller's arrays.
///
/// # Safety
/// `to` has room for all of them.
pub(crate) unsafe fn gather_fields(fields: &[Field<'_>], indices: &[u32], to: Arrays) {
    let mut first = 0;
    for field in fields {
        for channel in 0..field.channels() {
            for (k, &index) in indices.iter().enumerate() {
                let value = field.value(index as usize, channel);
                // SAFETY: guaranteed by the caller.
                unsafe { to.at(first + channel, k).write(value) };
            }
        }
        first += field.channels();
    }
}
