//! The inner loops with sixteen lanes. Hits are compressed in a register and stored whole: the
//! compressing store to memory is microcoded on some processors.

use super::{Channels, Gather, LANES, Select, Simd, Tag, Task};
use crate::candidates::Candidates;
use std::arch::x86_64::*;

/// Sixteen lanes.
pub(super) struct Avx512;

impl Simd for Avx512 {
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
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn gather(args: &Gather<'_>, out: &mut Candidates) {
    let source = args.points.axes().map(<[f32]>::as_ptr);
    let index = args.points.index().as_ptr();
    let shift = args.shift.map(|s| _mm512_set1_ps(s));
    let low = args.low.map(|x| _mm512_set1_ps(x));
    let high = args.high.map(|x| _mm512_set1_ps(x));
    let r2 = _mm512_set1_ps(args.r2);
    let zero = _mm512_setzero_ps();
    let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let arrays = out.arrays_mut();
    let mut len = out.len();
    let mut slot = args.slots.start;
    while slot < args.slots.end {
        let rest = (args.slots.end - slot).min(LANES);
        let inside = (u32::MAX >> (32 - rest)) as __mmask16;
        let mut position = [zero; 3];
        let mut d = [zero; 3];
        for axis in 0..3 {
            // SAFETY: sorted points are padded by a vector.
            let x = unsafe { _mm512_loadu_ps(source[axis].add(slot)) };
            let below = _mm512_add_ps(_mm512_sub_ps(x, high[axis]), shift[axis]);
            let above = _mm512_add_ps(_mm512_sub_ps(x, low[axis]), shift[axis]);
            let outside = _mm512_max_ps(below, _mm512_sub_ps(zero, above));
            position[axis] = x;
            d[axis] = _mm512_max_ps(outside, zero);
        }
        let d2 = squared(d);
        let near = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(inside, d2, r2);
        let tags = match args.tag {
            // SAFETY: indices are padded as the coordinates are.
            Tag::Index => unsafe { _mm512_loadu_si512(index.add(slot).cast()) },
            Tag::Slot => _mm512_add_epi32(_mm512_set1_epi32(slot as i32), lanes),
        };
        // SAFETY: room for the run and a vector is the caller's promise.
        unsafe {
            for axis in 0..3 {
                let kept = _mm512_maskz_compress_ps(near, position[axis]);
                _mm512_storeu_ps(arrays.position[axis].add(len), kept);
                if args.shifted {
                    _mm512_storeu_ps(arrays.shift[axis].add(len), shift[axis]);
                }
            }
            let kept = _mm512_maskz_compress_epi32(near, tags);
            _mm512_storeu_si512(arrays.tag.add(len).cast(), kept);
        }
        len += near.count_ones() as usize;
        slot += LANES;
    }
    // SAFETY: everything below `len` was written.
    unsafe { out.set_len(len) };
}

/// See [`Simd::select`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn select<const SHIFTED: bool, const HALF: bool>(
    args: &Select,
    candidates: &Candidates,
    list: *mut u32,
) -> usize {
    let source = candidates.axes().map(<[f32]>::as_ptr);
    let shift = candidates.shifts().map(<[f32]>::as_ptr);
    let tag = candidates.tags().as_ptr();
    let rank = candidates.ranks().as_ptr();
    let target = args.target.map(|x| _mm512_set1_ps(x));
    let r2 = _mm512_set1_ps(args.r2);
    let own = _mm512_set1_epi32(args.own_tag as i32);
    let mut end = list;
    let mut k = 0;
    while k < candidates.len() {
        // SAFETY: candidate arrays are padded by a vector; the list has room for one more.
        unsafe {
            let d = difference::<SHIFTED>(source, shift, target, k);
            let mut near = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(squared(d), r2);
            let tags = _mm512_loadu_si512(tag.add(k).cast());
            if HALF {
                let ranks = _mm512_loadu_si512(rank.add(k).cast());
                near = _mm512_mask_cmpgt_epu32_mask(near, ranks, own);
            } else if SHIFTED {
                near &= !own_lane(args.own_place, k);
            } else {
                near = _mm512_mask_cmpneq_epi32_mask(near, tags, own);
            }
            _mm512_storeu_si512(end.cast(), _mm512_maskz_compress_epi32(near, tags));
            end = end.add(near.count_ones() as usize);
        }
        k += LANES;
    }
    // SAFETY: both pointers are into the list.
    unsafe { end.offset_from(list) as usize }
}

/// See [`Simd::pack`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn pack<const SHIFTED: bool>(
    args: &Select,
    candidates: &Candidates,
    channels: Channels,
    packed: Channels,
) -> usize {
    let source = candidates.axes().map(<[f32]>::as_ptr);
    let shift = candidates.shifts().map(<[f32]>::as_ptr);
    let tag = candidates.tags().as_ptr();
    let target = args.target.map(|x| _mm512_set1_ps(x));
    let r2 = _mm512_set1_ps(args.r2);
    let own = _mm512_set1_epi32(args.own_tag as i32);
    let (mut found, mut k) = (0, 0);
    while k < candidates.len() {
        // SAFETY: candidate arrays are padded by a vector, and so are the channels.
        unsafe {
            let d = difference::<SHIFTED>(source, shift, target, k);
            let d2 = squared(d);
            let near = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(d2, r2);
            let near = if SHIFTED {
                near & !own_lane(args.own_place, k)
            } else {
                let tags = _mm512_loadu_si512(tag.add(k).cast());
                _mm512_mask_cmpneq_epi32_mask(near, tags, own)
            };
            for (channel, value) in [d[0], d[1], d[2], d2].into_iter().enumerate() {
                let kept = _mm512_maskz_compress_ps(near, value);
                _mm512_storeu_ps(packed.at(channel, found), kept);
            }
            for channel in 0..channels.count {
                let value = _mm512_loadu_ps(channels.at(channel, k));
                let kept = _mm512_maskz_compress_ps(near, value);
                _mm512_storeu_ps(packed.at(4 + channel, found), kept);
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
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn difference<const SHIFTED: bool>(
    source: [*const f32; 3],
    shift: [*const f32; 3],
    target: [__m512; 3],
    k: usize,
) -> [__m512; 3] {
    let mut d = [_mm512_setzero_ps(); 3];
    for axis in 0..3 {
        // SAFETY: the caller's promise.
        unsafe {
            d[axis] = _mm512_sub_ps(_mm512_loadu_ps(source[axis].add(k)), target[axis]);
            if SHIFTED {
                d[axis] = _mm512_add_ps(d[axis], _mm512_loadu_ps(shift[axis].add(k)));
            }
        }
    }
    d
}

/// Mask of the lane of the vector from `k` on that holds the target itself, if any. Branch-free,
/// because where the target stands is unpredictable.
#[inline]
fn own_lane(own_place: usize, k: usize) -> u16 {
    u16::from(own_place / LANES == k / LANES) << (own_place % LANES)
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
fn squared(d: [__m512; 3]) -> __m512 {
    _mm512_fmadd_ps(
        d[2],
        d[2],
        _mm512_fmadd_ps(d[1], d[1], _mm512_mul_ps(d[0], d[0])),
    )
}

/// See [`Simd::call`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt")]
unsafe fn run<T: Task>(task: T) {
    // SAFETY: the level is there.
    unsafe { task.run::<Avx512>() }
}
