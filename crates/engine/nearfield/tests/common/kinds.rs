//! A kernel whose meaning depends on types, names and conditions that no token shows: hashes in
//! `usize`, tables, literals whose type follows from their use, generic functions, and names that
//! are words of C++ or names of the engine's around the text.

#![allow(clippy::precedence, reason = "texts must have the precedence of Rust")]

use nearfield::kernels::Channels;
use nearfield::prelude::*;

const TABLE: [u32; 8] = [3, 1, 4, 1, 5, 9, 2, 6];
const DRAWS: u32 = 5;

mod consts {
    pub(crate) const MASK: u32 = 0x00ff_00ff;
    pub(crate) const LAST: u32 = u32::MAX;
}

/// Values of a point, with a name that the engine has too.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
pub(crate) struct Target {
    int: u32,
    r#type: i32,
    linux: f32,
}

struct Scaled<const N: u32>;

impl<const N: u32> Scaled<N> {
    #[nearfield::pair_fn(associated)]
    fn by(a: u32) -> u32 {
        a.wrapping_mul(N)
    }
}

#[nearfield::pair_fn]
fn signbit(hash: u32) -> u32 {
    let mut hash = hash;
    for k in 0..DRAWS {
        hash ^= (k << 31) >> 31;
        hash = hash.wrapping_add(k * 747796405);
    }
    for k in consts::LAST - 2..=consts::LAST {
        hash ^= k << 3;
    }
    hash
}

/// The kernel.
pub(crate) struct Kinds {
    pub(crate) seed: u64,
    pub(crate) place: usize,
}

impl Kinds {
    #[nearfield::pair_fn]
    fn wide(&self, a: u32) -> u32 {
        let mixed = (u64::from(a) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 29) as u32 ^ mixed as u32
    }
}

#[nearfield::pair_kernel]
impl PairKernel for Kinds {
    type Target = Target;
    type Source = Target;
    type Output = [f32; 6];

    #[inline(always)]
    fn pair(&self, pair: Pair, a: Target, b: Target) -> [f32; 6] {
        let h = a.int ^ b.int.rotate_left(7);
        let signbit = signbit(h);
        let place = (h as usize * 3 ^ 5) >> 2;
        let looked_up = TABLE[place % 8] + TABLE[!(h as usize) & 7] + TABLE[(self.place + 1) & 7];
        let even = h & 1 == 0 && !h & 6 == 2;
        #[cfg(any())]
        let looked_up = 0;
        let mut shadow = pair.d;
        let mut sum = 0.0;
        for v in shadow {
            shadow[2] = 10.0;
            sum += v;
        }
        let kind = match (a.r#type % 3, even) {
            (0, true) => 1,
            (k, false) if k > 1 => k + 10,
            (k @ -2..=1, _) => k + 20,
            (_, c) => c as i32,
        };
        let folded = Scaled::<2>::by(signbit) ^ Scaled::<3>::by(signbit) ^ self.wide(h);
        let part = if even {
            if sum > 3.0 {
                return [sum, a.linux, 1.0, 2.0, 3.0, 4.0];
            }
            b.linux
        } else {
            -a.linux
        };
        [
            (folded & consts::MASK) as f32,
            (folded >> 40 % 32) as f32,
            looked_up as f32,
            kind as f32 + shadow[2],
            sum + part,
            (place as f32) / 3.0,
        ]
    }
}
