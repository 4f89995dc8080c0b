//! Candidates near the radius, decided one by one in double precision.
//!
//! In double precision vectors compare proxies in `f32`, whose distances are off by a known bound.
//! So there are two radii ([`Lattice::inner_r2`](nearfield_grid::Lattice::inner_r2)): candidates
//! whose proxies are beyond the outer one are not neighbours, those within the inner one are, and
//! only those between are decided by the positions as given. With r = 2 and coordinates up to 100
//! the radii differ by 1.5·10⁻⁴ of r, so that one candidate in some thousand lies between.
//!
//! # Where it does not pay
//!
//! The bound grows with the distance from the centre of all points. If a cloud is so large relative
//! to the radius that many candidates lie between, a group's positions are looked up at once and
//! compared by vectors of `f64` ([`EXACT`]). That follows from the positions of the targets
//! ([`Walk::decided`]). Both ways find the same pairs in the same order.

use super::{
    arrays::Candidates,
    mode::{Mode, SHIFTED, has},
};
use crate::contract::{difference_f64, squared_f64};
use nearfield_grid::DoublePoints;

/// A target with the positions that decide about candidates near its radius.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Near<'a> {
    /// Squared distance up to which proxies belong to neighbours.
    pub(crate) inner_r2: f32,
    /// The sorted target.
    pub(super) slot: usize,
    /// fl(r·r).
    pub(super) r2: f64,
    /// Targets and sources in double precision; `None` in single precision.
    pub(super) points: Option<[&'a DoublePoints; 2]>,
}

impl Near<'_> {
    /// Which of the candidates `between`, a bit per candidate from number `first` on, are not
    /// neighbours. `MODE` says whether they carry image vectors.
    ///
    /// # Safety
    /// They are candidates with their slots.
    #[inline(always)]
    pub(super) unsafe fn refused<const MODE: Mode>(
        &self,
        candidates: &Candidates,
        first: usize,
        mut between: u32,
    ) -> u32 {
        let Some([targets, sources]) = self.points else {
            return 0;
        };
        let target = targets.position(self.slot);
        let (slots, shifts, [x, y, z]) = (
            candidates.slots(),
            candidates.exact_shifts(),
            sources.axes(),
        );
        let mut refused = 0;
        while between != 0 {
            let lane = between.trailing_zeros();
            let number = first + lane as usize;
            // SAFETY: guaranteed by the caller; slots are those of sources.
            let d = unsafe {
                let slot = *slots.get_unchecked(number) as usize;
                let source = [
                    *x.get_unchecked(slot),
                    *y.get_unchecked(slot),
                    *z.get_unchecked(slot),
                ];
                let vector = if has(MODE, SHIFTED) {
                    [
                        *shifts[0].get_unchecked(number),
                        *shifts[1].get_unchecked(number),
                        *shifts[2].get_unchecked(number),
                    ]
                } else {
                    [0.0; 3]
                };
                difference_f64(target, source, vector)
            };
            refused |= u32::from(squared_f64(d) > self.r2) << lane;
            between &= between - 1;
        }
        refused
    }
}
