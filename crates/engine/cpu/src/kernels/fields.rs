//! The values per point that a kernel reads, and the array that it writes.
//!
//! Fields come in the caller's order, packed or strided. Source channels are sorted once per
//! traversal, as structure of arrays, and gathered per group like the coordinates; target values
//! are read once per target, straight from the caller's memory.
//!
//! # Why channels
//!
//! The compiler's vectoriser loads sixteen values of one array at once, but not sixteen structs. So
//! source values are split into channels, each an array in the order of the sorted points, and
//! gathered per group into arrays parallel to the candidates. A kernel's `Source::read` then asks
//! for channel k of candidate n, which is a vector load for sixteen candidates. They are gathered
//! by the lanes that were kept of every vector of sorted points, as the coordinates were: two
//! instructions for up to sixteen candidates of a channel.
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

use super::reduce::MAX_OUTPUTS;
use crate::{
    candidates::{aligned::Aligned, arrays::Candidates, scan::Channels as Arrays},
    error::{Error, ErrorKind, check_outputs},
    pool::CpuBackend,
    simd::vector::Compress,
};
use nearfield_grid::{
    Grid, PADDING, SharedMut,
    memory::{Shortage, make_room},
    parallel::PoolLoops,
};
use nearfield_pairs::{Channels, Field, PairKernel};
use rayon::prelude::*;

/// Points whose channels are sorted at a time.
const SORTED_AT_A_TIME: usize = 1 << 12;

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

impl<'a, T> Output<'a, T> {
    /// The array, and true if results are combined with it.
    ///
    /// # Errors
    /// [`ErrorKind::OutputLength`] unless it has `expected` values.
    pub fn of_length(self, expected: usize) -> Result<(&'a mut [T], bool), Error> {
        let (values, combine) = match self {
            Self::Write(values) => (values, false),
            Self::Combine(values) => (values, true),
        };
        check_outputs(values.len(), expected)?;
        Ok((values, combine))
    }
}

impl Fields<'_> {
    /// Checks that the fields have a value per channel of `K` for each of `targets` and `sources`.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] and [`ErrorKind::FieldChannels`].
    ///
    /// Called by every traversal before anything runs.
    pub fn check<K: PairKernel>(&self, targets: usize, sources: usize) -> Result<(), Error> {
        const {
            assert!(
                K::Output::COUNT <= MAX_OUTPUTS,
                "a pair kernel gives at most 16 numbers (channels of PairKernel::Output): use two kernels"
            );
            assert!(
                K::Output::FLOATS,
                "results of a pair kernel are combined as f32: integers cannot be among them"
            );
        };
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
/// per channel, each padded by a vector. Arrays come from the backend and go back to it: fresh
/// memory costs more than filling it.
pub(super) fn sorted_channels(
    backend: &CpuBackend,
    sources: &Grid,
    fields: &[Field<'_>],
    channels: &mut Vec<Vec<f32>>,
) -> Result<(), Error> {
    let (len, padded) = (sources.points().len(), sources.points().len() + PADDING);
    let index = &sources.points().index()[..len];
    let first = channels.len();
    let count: usize = fields.iter().map(Field::channels).sum();
    for _ in 0..count {
        let mut sorted = backend.take_channel();
        make_room(&mut sorted, padded, "sorted fields")?;
        // Arrays that sets of several sizes take in turn are not cut, so none is filled again.
        if sorted.len() < padded {
            sorted.resize(padded, 0.0);
        }
        sorted[len..padded].fill(0.0);
        channels.push(sorted);
    }
    let sorted = channels[first..].iter_mut();
    let sorted: Vec<_> = sorted.map(|sorted| SharedMut::new(sorted)).collect();
    // All channels at once: the values of a point lie next to each other, and workers are woken
    // once.
    backend.install_for(len, || {
        let ranges = (0..len.div_ceil(SORTED_AT_A_TIME)).into_par_iter();
        ranges.with_max_len(1).run(|number| {
            let begin = number * SORTED_AT_A_TIME;
            let end = (begin + SORTED_AT_A_TIME).min(len);
            let of_fields = fields.iter().flat_map(|field| {
                let channels = 0..field.channels();
                channels.map(move |channel| (field, channel))
            });
            let index = &index[begin..end];
            let kept = is_in_order(index);
            for ((field, channel), sorted) in of_fields.zip(&sorted) {
                // SAFETY: every range is one task's.
                let sorted = unsafe { sorted.slice_mut(begin, end) };
                match kept.then_some(index) {
                    Some([first, ..]) => field.copy_channel(*first as usize, channel, sorted),
                    _ => field.pick_channel(index, channel, sorted),
                }
            }
        });
    });
    Ok(())
}

/// Whether points are next to each other in the caller's order too, as those of a set that was
/// brought into spatial order and rests.
fn is_in_order(index: &[u32]) -> bool {
    let [first, ..] = *index else {
        return true;
    };
    // Without a way out: the compiler compares by vectors.
    let same = |(k, &i): (u32, &u32)| i.wrapping_sub(first) == k;
    let places = (0..).zip(index);
    places.fold(true, |all, place| all & same(place)) && first <= index[index.len() - 1]
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

/// Returns the number of the first channel of `part` among those of `all`, if its fields are some
/// of `all`, in the same places of memory and next to each other.
pub(super) fn first_channel_of(part: &[Field<'_>], all: &[Field<'_>]) -> Option<usize> {
    let places = all.windows(part.len().max(1));
    let same = |fields: &[Field<'_>]| (fields.iter().zip(part)).all(|(a, b)| a.is_same_place(b));
    let before = places.take_while(|fields| !same(fields)).count();
    let found = part.is_empty() || before + part.len() <= all.len();
    found.then(|| all[..before].iter().map(Field::channels).sum())
}

/// Gathers channels of the candidates, which are called by slot, from arrays in the order of the
/// sorted points, by the chunks that the candidates come from.
///
/// # Safety
/// The processor has the vector's level. Every array has a value for every sorted point and
/// [`LANES`](crate::simd::LANES) more, and `to` has room for the channels of all candidates and
/// [`LANES`](crate::simd::LANES) more.
#[inline(always)]
pub(super) unsafe fn gather_channels<V: Compress>(
    from: &[Vec<f32>],
    candidates: &Candidates,
    to: Arrays,
) {
    let mut k = 0;
    for chunk in candidates.chunks() {
        // SAFETY: guaranteed by the caller; chunks begin at sorted points.
        unsafe {
            let order = V::order(chunk.lanes);
            for (channel, sorted) in from.iter().enumerate() {
                let values = V::load(sorted.as_ptr().add(chunk.slot));
                values.compress(order, to.at(channel, k));
            }
        }
        k += chunk.lanes.count_ones() as usize;
    }
    debug_assert_eq!(k, candidates.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_the_callers_order_are_told_from_others() {
        assert!(is_in_order(&[]) && is_in_order(&[7]) && is_in_order(&[3, 4, 5, 6]));
        for others in [[3, 4, 6], [4, 3, 5], [5, 5, 5], [0, 2, 1], [2, 1, 0]] {
            assert!(!is_in_order(&others), "{others:?}");
        }
        assert!(!is_in_order(&[u32::MAX, 0]));
    }

    #[test]
    fn fields_are_found_among_others_by_their_place_in_memory() {
        let (vectors, numbers) = ([[1.0f32, 2.0, 3.0]; 4], [5.0f32; 4]);
        let copy = numbers;
        let (v, n, c) = (
            Field::from(&vectors),
            Field::from(&numbers),
            Field::from(&copy),
        );
        assert_eq!(first_channel_of(&[v, n], &[v, n]), Some(0));
        assert_eq!(first_channel_of(&[n], &[v, n]), Some(3));
        assert_eq!(first_channel_of(&[n, c], &[c, v, n, c]), Some(4));
        assert_eq!(first_channel_of(&[], &[v]), Some(0));
        assert_eq!(first_channel_of(&[], &[]), Some(0));
        assert_eq!(first_channel_of(&[c], &[v, n]), None);
        assert_eq!(first_channel_of(&[n, v], &[v, n]), None);
        assert_eq!(first_channel_of(&[v, n], &[n]), None);
        assert_eq!(first_channel_of(&[v], &[]), None);
    }
}
