//! The inner loops with eight lanes. Hits are compressed by a permutation looked up from the mask.

use super::{Channels, Gather, Select, Simd, Tag, Task};
use crate::candidates::Candidates;
use std::arch::x86_64::*;

const LANES: usize = 8;

/// `COMPRESS[mask]` moves the lanes whose bit is set in `mask` to the front, in order.
static COMPRESS: [[u32; LANES]; 1 << LANES] = compress_table();

const fn compress_table() -> [[u32; LANES]; 1 << LANES] {
    let mut table = [[0; LANES]; 1 << LANES];
    let mut mask = 0;
    while mask < 1 << LANES {
        let (mut lane, mut place) = (0, 0);
        while lane < LANES {
            if mask >> lane & 1 == 1 {
                table[mask][place] = lane as u32;
                place += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// The permutation for a mask of eight bits.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
fn permutation(mask: i32) -> __m256i {
    let row = &COMPRESS[(mask & 0xff) as usize];
    // SAFETY: a row is eight `u32`.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

/// Eight lanes.
pub(super) struct Avx2;

impl Simd for Avx2 {
    #[inline(always)]
    unsafe fn gather(args: &Gather<'_>, out: &mut Candidates) {
        // SAFETY: the caller's promises.
        unsafe { gather(args, out) }
    }

    #[inline(always)]
    unsafe fn select<const SHIFTED: bool, const HALF: bool>(
        args: &Select,
        candidates: &Candidates,
        list: *mut u32,
    ) -> usize {
        // SAFETY: the caller's promises.
        unsafe { select::<SHIFTED, HALF>(args, candidates, list) }
    }

    #[inline(always)]
    unsafe fn pack<const SHIFTED: bool>(
        args: &Select,
        candidates: &Candidates,
        channels: Channels,
        packed: Channels,
    ) -> usize {
        // SAFETY: the caller's promises.
        unsafe { pack::<SHIFTED>(args, candidates, channels, packed) }
    }

    unsafe fn call<T: Task>(task: T) {
        // SAFETY: the caller's promises.
        unsafe { run(task) }
    }
}

/// See [`Simd::gather`].
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn gather(args: &Gather<'_>, out: &mut Candidates) {
    let source = args.points.axes().map(<[f32]>::as_ptr);
    let index = args.points.index().as_ptr();
    let shift = args.shift.map(|s| _mm256_set1_ps(s));
    let low = args.low.map(|x| _mm256_set1_ps(x));
    let high = args.high.map(|x| _mm256_set1_ps(x));
    let r2 = _mm256_set1_ps(args.r2);
    let zero = _mm256_setzero_ps();
    let lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    let arrays = out.arrays_mut();
    let mut len = out.len();
    let mut slot = args.slots.start;
    while slot < args.slots.end {
        let rest = (args.slots.end - slot).min(LANES);
        let mut position = [zero; 3];
        let mut d = [zero; 3];
        for axis in 0..3 {
            // SAFETY: sorted points are padded by a vector.
            let x = unsafe { _mm256_loadu_ps(source[axis].add(slot)) };
            let below = _mm256_add_ps(_mm256_sub_ps(x, high[axis]), shift[axis]);
            let above = _mm256_add_ps(_mm256_sub_ps(x, low[axis]), shift[axis]);
            let outside = _mm256_max_ps(below, _mm256_sub_ps(zero, above));
            position[axis] = x;
            d[axis] = _mm256_max_ps(outside, zero);
        }
        let near = _mm256_cmp_ps::<_CMP_LE_OQ>(squared(d), r2);
        let near = _mm256_movemask_ps(near) & ((1 << rest) - 1);
        let order = permutation(near);
        let tags = match args.tag {
            // SAFETY: indices are padded as the coordinates are.
            Tag::Index => unsafe { _mm256_loadu_si256(index.add(slot).cast()) },
            Tag::Slot => _mm256_add_epi32(_mm256_set1_epi32(slot as i32), lanes),
        };
        // SAFETY: room for the run and a vector is the caller's promise.
        unsafe {
            for axis in 0..3 {
                let kept = _mm256_permutevar8x32_ps(position[axis], order);
                _mm256_storeu_ps(arrays.position[axis].add(len), kept);
                if args.shifted {
                    _mm256_storeu_ps(arrays.shift[axis].add(len), shift[axis]);
                }
            }
            let kept = _mm256_permutevar8x32_epi32(tags, order);
            _mm256_storeu_si256(arrays.tag.add(len).cast(), kept);
        }
        len += near.count_ones() as usize;
        slot += LANES;
    }
    // SAFETY: everything below `len` was written.
    unsafe { out.set_len(len) };
}

/// See [`Simd::select`].
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn select<const SHIFTED: bool, const HALF: bool>(
    args: &Select,
    candidates: &Candidates,
    list: *mut u32,
) -> usize {
    let source = candidates.axes().map(<[f32]>::as_ptr);
    let shift = candidates.shifts().map(<[f32]>::as_ptr);
    let tag = candidates.tags().as_ptr();
    let rank = candidates.ranks().as_ptr();
    let target = args.target.map(|x| _mm256_set1_ps(x));
    let r2 = _mm256_set1_ps(args.r2);
    // AVX2 compares signed integers only; flipping the top bit makes that order unsigned.
    let flip = _mm256_set1_epi32(i32::MIN);
    let own = _mm256_set1_epi32(args.own_tag as i32);
    let mut end = list;
    let mut k = 0;
    while k < candidates.len() {
        // SAFETY: candidate arrays are padded by a vector; the list has room for one more.
        unsafe {
            let d = difference::<SHIFTED>(source, shift, target, k);
            let mut near = _mm256_cmp_ps::<_CMP_LE_OQ>(squared(d), r2);
            let tags = _mm256_loadu_si256(tag.add(k).cast());
            if HALF {
                let ranks = _mm256_xor_si256(_mm256_loadu_si256(rank.add(k).cast()), flip);
                let above = _mm256_cmpgt_epi32(ranks, _mm256_xor_si256(own, flip));
                near = _mm256_and_ps(near, _mm256_castsi256_ps(above));
            } else if !SHIFTED {
                let itself = _mm256_castsi256_ps(_mm256_cmpeq_epi32(tags, own));
                near = _mm256_andnot_ps(itself, near);
            }
            let mut near = _mm256_movemask_ps(near);
            if SHIFTED && !HALF {
                near &= !own_lane(args.own_place, k);
            }
            let kept = _mm256_permutevar8x32_epi32(tags, permutation(near));
            _mm256_storeu_si256(end.cast(), kept);
            end = end.add(near.count_ones() as usize);
        }
        k += LANES;
    }
    // SAFETY: both pointers are into the list.
    unsafe { end.offset_from(list) as usize }
}

/// See [`Simd::pack`].
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn pack<const SHIFTED: bool>(
    args: &Select,
    candidates: &Candidates,
    channels: Channels,
    packed: Channels,
) -> usize {
    let source = candidates.axes().map(<[f32]>::as_ptr);
    let shift = candidates.shifts().map(<[f32]>::as_ptr);
    let tag = candidates.tags().as_ptr();
    let target = args.target.map(|x| _mm256_set1_ps(x));
    let r2 = _mm256_set1_ps(args.r2);
    let own = _mm256_set1_epi32(args.own_tag as i32);
    let (mut found, mut k) = (0, 0);
    while k < candidates.len() {
        // SAFETY: candidate arrays are padded by a vector, and so are the channels.
        unsafe {
            let d = difference::<SHIFTED>(source, shift, target, k);
            let d2 = squared(d);
            let near = _mm256_cmp_ps::<_CMP_LE_OQ>(d2, r2);
            let near = if SHIFTED {
                _mm256_movemask_ps(near) & !own_lane(args.own_place, k)
            } else {
                let tags = _mm256_loadu_si256(tag.add(k).cast());
                let itself = _mm256_castsi256_ps(_mm256_cmpeq_epi32(tags, own));
                _mm256_movemask_ps(_mm256_andnot_ps(itself, near))
            };
            let order = permutation(near);
            for (channel, value) in [d[0], d[1], d[2], d2].into_iter().enumerate() {
                let kept = _mm256_permutevar8x32_ps(value, order);
                _mm256_storeu_ps(packed.at(channel, found), kept);
            }
            for channel in 0..channels.count {
                let value = _mm256_loadu_ps(channels.at(channel, k));
                let kept = _mm256_permutevar8x32_ps(value, order);
                _mm256_storeu_ps(packed.at(4 + channel, found), kept);
            }
            found += near.count_ones() as usize;
        }
        k += LANES;
    }
    found
}

/// Displacements from the target to the candidates from `k` on.
///
/// # Safety
/// The arrays go on for a vector from `k`.
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn difference<const SHIFTED: bool>(
    source: [*const f32; 3],
    shift: [*const f32; 3],
    target: [__m256; 3],
    k: usize,
) -> [__m256; 3] {
    let mut d = [_mm256_setzero_ps(); 3];
    for axis in 0..3 {
        // SAFETY: the caller's promise.
        unsafe {
            d[axis] = _mm256_sub_ps(_mm256_loadu_ps(source[axis].add(k)), target[axis]);
            if SHIFTED {
                d[axis] = _mm256_add_ps(d[axis], _mm256_loadu_ps(shift[axis].add(k)));
            }
        }
    }
    d
}

/// Mask of the lane of the vector from `k` on that holds the target itself, if any. Branch-free,
/// because where the target stands is unpredictable.
#[inline]
fn own_lane(own_place: usize, k: usize) -> i32 {
    i32::from(own_place / LANES == k / LANES) << (own_place % LANES)
}

#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
fn squared(d: [__m256; 3]) -> __m256 {
    _mm256_fmadd_ps(
        d[2],
        d[2],
        _mm256_fmadd_ps(d[1], d[1], _mm256_mul_ps(d[0], d[0])),
    )
}

/// See [`Simd::call`].
#[inline(never)]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn run<T: Task>(task: T) {
    // SAFETY: the level is there.
    unsafe { task.run::<Avx2>() }
}
