//! Which of a vector of sources a target does not exclude.
//!
//! Lists of exclusions are short, and most vectors hold no source between the first and the last of
//! them, which two comparisons tell. A few names are then compared with all lanes, one after the
//! other; longer lists are searched by halves, for lanes within their range only. Molecules are
//! looked up lane by lane.
//!
//! Loops over lists of either kind ([`crate::lists`]) inline this, so that it is compiled for the
//! level with them.

use super::exclusions::Excluded;
use crate::simd::{LANES, vector::Compress};

/// Lists up to this length are compared by the vector.
const FEW: usize = 16;

/// The lanes of a vector of sources that are not excluded, a bit for each; bits above them are not
/// specified. `at` is where the sources are.
///
/// # Safety
/// The processor has the vector's level, and `names` are the sources from `at` on, which all are
/// points of the set.
#[inline(always)]
pub(crate) unsafe fn kept_lanes<V: Compress>(
    excluded: &Excluded<'_>,
    names: V::Ints,
    at: *const u32,
) -> u32 {
    // SAFETY: guaranteed by the caller; exclusions are for all points of the set.
    unsafe {
        match *excluded {
            Excluded::None => u32::MAX,
            Excluded::Molecule { of, own } => {
                let (of, mut molecules) = (of.as_ptr(), [0; LANES]);
                for lane in 0..V::LANES {
                    molecules[lane] = *of.add(*at.add(lane) as usize);
                }
                V::unequal(V::load_u32(molecules.as_ptr()), own)
            }
            Excluded::Listed(list) => {
                let [Some(&first), Some(&last)] = [list.first(), list.last()] else {
                    return u32::MAX;
                };
                let from_first = match first {
                    0 => u32::MAX,
                    _ => V::above(names, first - 1),
                };
                let near = from_first & !V::above(names, last);
                let near = near & (u32::MAX >> (32 - V::LANES as u32));
                if near == 0 {
                    return u32::MAX;
                }
                if list.len() <= FEW {
                    let mut kept = u32::MAX;
                    for &name in list {
                        kept &= V::unequal(names, name);
                    }
                    return kept;
                }
                let (mut kept, mut left) = (u32::MAX, near);
                while left != 0 {
                    let lane = left.trailing_zeros();
                    let is_in = list.binary_search(&*at.add(lane as usize)).is_ok();
                    kept &= !(u32::from(is_in) << lane);
                    left &= left - 1;
                }
                kept
            }
        }
    }
}
