//! Packs the neighbours of one target next to each other, by functions that all kernels share.
//!
//! What is packed depends on the mode of the candidates and on how many channels a kernel reads,
//! never on the kernel itself. So there is one function per level and mode, compiled with this
//! crate, and a kernel adds one loop over packed neighbours ([`ReducePacked`]) instead of one for
//! every mode.
//!
//! [`ReducePacked`]: super::reduce::ReducePacked

use crate::{
    candidates::{
        arrays::Candidates,
        mode::{Mode, with_exact_mode, with_mode},
        scan::{PackNeighbors, Select, scan},
    },
    simd::{Simd, Task, WithLevel, at_level, level::SimdLevel},
};

/// Packs the neighbours of a target, and returns how many there are.
///
/// # Safety
/// The processor has the level, candidates carry what the mode says, and there is room for all of
/// them and [`LANES`](crate::simd::LANES) more.
pub(super) type Pack = unsafe fn(&Select<'_>, &Candidates, PackNeighbors) -> usize;

/// The function for candidates of a mode, in single or double precision.
#[inline(never)]
pub(super) fn pack_at(level: SimdLevel, mode: Mode, double: bool) -> Pack {
    if double {
        with_exact_mode!(mode, MODE => at_level(level, Packs::<MODE>))
    } else {
        with_mode!(mode, MODE => at_level(level, Packs::<MODE>))
    }
}

/// The functions of a mode, one for each level.
struct Packs<const MODE: Mode>;

impl<const MODE: Mode> WithLevel for Packs<MODE> {
    type Output = Pack;

    fn at<S: Simd>(self) -> Pack {
        pack::<S, MODE>
    }
}

/// # Safety
/// As for [`Pack`].
unsafe fn pack<S: Simd, const MODE: Mode>(
    target: &Select<'_>,
    candidates: &Candidates,
    mut to: PackNeighbors,
) -> usize {
    let task = PackTask::<'_, MODE> {
        target,
        candidates,
        to: &mut to,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { S::call(task) };
    to.count
}

/// The neighbours of one target, to be packed.
struct PackTask<'a, const MODE: Mode> {
    /// The target.
    target: &'a Select<'a>,
    /// Its candidates.
    candidates: &'a Candidates,
    /// Where its neighbours go.
    to: &'a mut PackNeighbors,
}

impl<const MODE: Mode> Task for PackTask<'_, MODE> {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: guaranteed by the caller of `pack`.
        let packed =
            unsafe { scan::<S::Single, _, MODE, 1>(&[*self.target], self.candidates, [*self.to]) };
        *self.to = packed[0];
    }
}
