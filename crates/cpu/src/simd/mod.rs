//! The two inner loops, once per instruction set, and the choice between them at run time.
//!
//! * `gather` copies the candidates of a run that can be within the radius of any target in a box;
//! * `select` writes the indices of the candidates within the radius of one target;
//! * everything around them is generic Rust, compiled once per level by [`with_level`].
//!
//! All levels evaluate the contract's arithmetic, so they give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use crate::candidates::Candidates;
use nearfield_grid::SortedPoints;
use std::ops::Range;

/// Widest vectors of any level; scratch arrays are padded by this many elements.
pub(crate) const LANES: usize = 16;

/// Instruction sets the inner loops are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SimdLevel {
    /// Plain Rust.
    Scalar,
    /// Eight lanes: x86-64 with AVX2, FMA, BMI and POPCNT.
    Avx2,
    /// Sixteen lanes with compression: the above and AVX-512 F, VL and DQ.
    Avx512,
}

impl SimdLevel {
    /// The best level this processor has.
    pub fn detect() -> Self {
        *Self::available().last().unwrap_or(&Self::Scalar)
    }

    /// Every level this processor has, worst first.
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            if avx2 && avx512 {
                return &[Self::Scalar, Self::Avx2, Self::Avx512];
            } else if avx2 {
                return &[Self::Scalar, Self::Avx2];
            }
        }
        &[Self::Scalar]
    }

    /// Whether this processor has the level.
    pub fn is_available(self) -> bool {
        Self::available().contains(&self)
    }

    /// Name as the command line prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// What a gathered candidate is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The caller's index of the point, for lists.
    Index,
    /// The sorted point, for traversals.
    Slot,
}

/// One run of candidates and the box of the targets they are for.
pub(crate) struct Gather<'a> {
    pub(crate) points: &'a SortedPoints,
    pub(crate) slots: Range<usize>,
    pub(crate) tag: Tag,
    /// Image vector added to every difference; stored per candidate when `shifted`.
    pub(crate) shift: [f32; 3],
    pub(crate) shifted: bool,
    pub(crate) low: [f32; 3],
    pub(crate) high: [f32; 3],
    pub(crate) r2: f32,
}

/// One target and what keeps a candidate out of its list besides the distance.
pub(crate) struct Select {
    pub(crate) target: [f32; 3],
    pub(crate) r2: f32,
    /// Tag that the target itself has among the candidates, or `u32::MAX`, which no point has.
    pub(crate) own_tag: u32,
    /// Place of the target itself among the candidates, or `usize::MAX`; used instead of the tag
    /// where candidates are shifted, because other images of the target have the same tag.
    pub(crate) own_place: usize,
}

/// Arrays of equal length behind each other: value `k` of channel `c` is at `c * stride + k`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channels {
    pub(crate) data: *mut f32,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl Channels {
    /// Where value `k` of a channel is.
    ///
    /// # Safety
    /// There is such a value.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, channel: usize, k: usize) -> *mut f32 {
        debug_assert!(channel < self.count && k < self.stride);
        // SAFETY: the caller's promise.
        unsafe { self.data.add(channel * self.stride + k) }
    }
}

/// Squared distance by the contract: one rounding per operation, fused multiply-add.
#[inline(always)]
pub(crate) fn squared(d: [f32; 3]) -> f32 {
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

/// The inner loops of one level.
///
/// The methods are inlined into tasks that [`with_level`] compiles for the level, so that nothing
/// is passed through memory between the loops of a group.
pub(crate) trait Simd {
    /// Appends the candidates of a run to `out`.
    ///
    /// # Safety
    /// The processor has the level, and `out` has room for the run and a vector.
    unsafe fn gather(args: &Gather<'_>, out: &mut Candidates);

    /// Writes the tags of the candidates that are neighbours to `list` and returns how many.
    ///
    /// # Safety
    /// The processor has the level, `list` has room for `candidates.len() + LANES` tags, and
    /// `SHIFTED` says whether the candidates are.
    unsafe fn select<const SHIFTED: bool, const HALF: bool>(
        args: &Select,
        candidates: &Candidates,
        list: *mut u32,
    ) -> usize;

    /// Packs the candidates that are neighbours next to each other in `packed` and returns how
    /// many: the displacement and its square as channels 0 to 3, then the `channels`.
    ///
    /// # Safety
    /// As for [`select`](Self::select); every channel of `channels` has a value per candidate and
    /// a vector more, every channel of `packed` has room for as many.
    unsafe fn pack<const SHIFTED: bool>(
        args: &Select,
        candidates: &Candidates,
        channels: Channels,
        packed: Channels,
    ) -> usize;

    /// Runs `task` as a function of its own: loops that the compiler must vectorise come out
    /// better when they are not part of a larger function.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn call<T: Task>(task: T);
}

/// Work that is compiled for every level; `run` must be `#[inline(always)]`.
pub(crate) trait Task {
    /// # Safety
    /// The processor has the level.
    unsafe fn run<S: Simd>(self);
}

/// Runs `task` compiled for `level`, which the processor must have (see [`crate::CpuLane`]).
pub(crate) fn with_level<T: Task>(level: SimdLevel, task: T) {
    // SAFETY: lanes only hold levels that were detected.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => avx512::Avx512::call(task),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => avx2::Avx2::call(task),
            _ => scalar::Scalar::call(task),
        }
    }
}
