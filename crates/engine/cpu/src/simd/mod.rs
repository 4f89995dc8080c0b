//! The inner loops, and the choice of an instruction set at run time.
//!
//! * `gather` copies the candidates of a run that can be within the radius of any target in a box;
//! * `select` writes the indices of the candidates within the radius of one target;
//! * `pack` does the same with the geometry and the source channels of the neighbours;
//! * `filter` writes the places of those that are to be decided in double precision.
//!
//! [`loops`] holds them, written once over [`Vector`]; one module per instruction set says what a
//! vector is; everything around them is generic Rust, compiled once per level by [`with_level`].
//! All levels evaluate the contract's arithmetic, so they give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod loops;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod vector;

use crate::{
    all_pairs::Wide,
    candidates::{Arrays, Candidates},
    group::{Group, Groups, Scratch},
};
use nearfield_grid::SortedPoints;
use std::ops::Range;
pub(crate) use vector::Vector;

/// Widest vectors of any level; scratch arrays are padded by this many elements.
pub(crate) const LANES: usize = 16;

/// Targets that are searched together, each writing its list to a stream of its own: a store that
/// follows one to the same cache line waits for it.
pub(crate) const STREAMS: usize = 4;

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
    /// Four lanes: 64-bit ARM.
    Neon,
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
        match cfg!(target_arch = "aarch64") {
            true => &[Self::Scalar, Self::Neon],
            false => &[Self::Scalar],
        }
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
            Self::Neon => "neon",
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

/// What the inner loops must do beyond the plain search; a set of bits, so that it can be a
/// constant parameter of the loops.
pub(crate) type Mode = u8;
/// Candidates carry image vectors.
pub(crate) const SHIFTED: Mode = 1;
/// Only candidates whose rank is above the target's tag are neighbours.
pub(crate) const HALF: Mode = 2;
/// Candidates carry squared radii of their own.
pub(crate) const RADII: Mode = 4;

/// Whether `mode` has the bits `what`.
#[inline(always)]
pub(crate) const fn has(mode: Mode, what: Mode) -> bool {
    mode & what != 0
}

/// Calls `$run::<MODE>()`-like expressions with what candidates carry as a constant: `$mode` must be
/// a value, of which [`SHIFTED`] and [`RADII`] count, and `$constant` names the constant in `$body`.
/// Everything in `$body` is compiled for each of the four, for every kernel and level.
macro_rules! with_mode {
    ($mode:expr, $constant:ident => $body:expr) => {{
        use $crate::simd::{RADII, SHIFTED, has};
        match (has($mode, SHIFTED), has($mode, RADII)) {
            (false, false) => with_mode!(@ 0, $constant, $body),
            (true, false) => with_mode!(@ SHIFTED, $constant, $body),
            (false, true) => with_mode!(@ RADII, $constant, $body),
            (true, true) => with_mode!(@ SHIFTED | RADII, $constant, $body),
        }
    }};
    (@ $value:expr, $constant:ident, $body:expr) => {{
        const $constant: $crate::simd::Mode = $value;
        $body
    }};
}
pub(crate) use with_mode;

/// One run of candidates and the box of the targets they are for.
pub(crate) struct Gather<'a> {
    pub(crate) points: &'a SortedPoints,
    /// Squared radius of every sorted point, for [`RADII`]; as long as the points' padded arrays.
    pub(crate) source_r2: &'a [f32],
    pub(crate) tag: Tag,
    /// Image vector added to every difference; stored per candidate for [`SHIFTED`].
    pub(crate) shift: [f32; 3],
    pub(crate) low: [f32; 3],
    pub(crate) high: [f32; 3],
    /// Largest squared radius of any target in the box.
    pub(crate) r2: f32,
}

/// One target and what keeps a candidate out of its list besides the distance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Select {
    pub(crate) target: [f32; 3],
    /// Squared radius; for [`RADII`] the larger of this and the candidate's own counts.
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

/// Gathers channels of the candidates, which are tagged by slot, from arrays in the order of the
/// sorted points.
///
/// # Safety
/// Every array has a value for every tag, and `to` has room for the channels of all candidates.
#[inline(always)]
pub(crate) unsafe fn gather_channels(from: &[Vec<f32>], candidates: &Candidates, to: Channels) {
    let tags = &candidates.tags()[..candidates.len()];
    for (channel, sorted) in from.iter().enumerate() {
        for (k, &slot) in tags.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                to.at(channel, k)
                    .write(*sorted.get_unchecked(slot as usize))
            };
        }
    }
}

/// Squared distance by the contract: one rounding per operation, fused multiply-add.
#[inline(always)]
pub(crate) fn squared(d: [f32; 3]) -> f32 {
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

/// The same in double precision.
#[inline(always)]
pub(crate) fn squared_f64(d: [f64; 3]) -> f64 {
    d[2].mul_add(d[2], d[1].mul_add(d[1], d[0] * d[0]))
}

/// The inner loops of one level.
///
/// The methods are inlined into tasks that [`with_level`] compiles for the level, so that nothing
/// is passed through memory between the loops of a group.
pub(crate) trait Simd {
    /// What the loops work on.
    type Vector: Vector;
    /// What sums over all pairs work on, in `f32`.
    type Single: Wide<Real = f32>;
    /// The same in `f64`.
    type Double: Wide<Real = f64>;

    /// Runs `task` as a function of its own: loops that the compiler must vectorise come out
    /// better when they are not part of a larger function.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn call<T: Task>(task: T);

    /// [`Groups::next`], compiled for the level here and not again with every kernel of a program.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn next_group(groups: &mut Groups<'_>, scratch: &mut Scratch) -> Option<(Group, Mode)>;

    /// Copies the candidates among the sorted points `slots` to the arrays `to`, behind the `len`
    /// that are there; returns how many there are then.
    ///
    /// # Safety
    /// The processor has the level, the points are there, the arrays have room for the run and
    /// [`LANES`] more, and `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn gather<const MODE: Mode>(
        args: &Gather<'_>,
        slots: Range<usize>,
        to: &Arrays,
        len: usize,
    ) -> usize {
        // SAFETY: the caller's promises.
        unsafe { loops::gather::<Self::Vector, MODE>(args, slots, to, len) }
    }

    /// Writes the tags of the candidates that are neighbours of each target to its list and
    /// returns how many.
    ///
    /// # Safety
    /// The processor has the level, the lists have room for `candidates.len() + LANES` tags, and
    /// `MODE` says what candidates carry.
    #[inline(always)]
    unsafe fn select<const MODE: Mode, const TARGETS: usize>(
        args: &[Select; TARGETS],
        candidates: &Candidates,
        lists: [*mut u32; TARGETS],
    ) -> [usize; TARGETS] {
        // SAFETY: the caller's promises.
        unsafe { loops::select::<Self::Vector, MODE, TARGETS>(args, candidates, lists) }
    }

    /// Writes the places of the candidates within the radius of a target, itself included if it is
    /// among them, and returns how many; half lists are not looked at.
    ///
    /// # Safety
    /// As for [`select`](Self::select).
    #[inline(always)]
    unsafe fn filter<const MODE: Mode>(
        args: &Select,
        candidates: &Candidates,
        places: *mut u32,
    ) -> usize {
        // SAFETY: the caller's promises.
        unsafe { loops::filter::<Self::Vector, MODE>(args, candidates, places) }
    }

    /// Packs the candidates that are neighbours next to each other in `packed` and returns how
    /// many: the displacement and its square as channels 0 to 3, then the `channels`.
    ///
    /// # Safety
    /// As for [`select`](Self::select); every channel of `channels` has a value per candidate and
    /// a vector more, every channel of `packed` has room for as many.
    #[inline(always)]
    unsafe fn pack<const MODE: Mode>(
        args: &Select,
        candidates: &Candidates,
        channels: Channels,
        packed: Channels,
    ) -> usize {
        // SAFETY: the caller's promises.
        unsafe { loops::pack::<Self::Vector, MODE>(args, candidates, channels, packed) }
    }
}

/// Work that is compiled for every level; `run` must be `#[inline(always)]`, and so must all it
/// calls that comes down to vectors.
pub(crate) trait Task {
    /// # Safety
    /// The processor has the level.
    unsafe fn run<S: Simd>(self);
}

/// Implements [`Simd`] for a level by its vectors and the module of the functions compiled for it.
macro_rules! level {
    ($(#[$attribute:meta])* $level:ident, $vector:ty, $double:ty, $functions:ident) => {
        $(#[$attribute])*
        pub(crate) struct $level;

        $(#[$attribute])*
        impl Simd for $level {
            type Vector = $vector;
            type Single = $vector;
            type Double = $double;

            #[inline(always)]
            unsafe fn call<T: Task>(task: T) {
                // SAFETY: the caller's promise.
                unsafe { $functions::call(task) }
            }

            #[inline(always)]
            unsafe fn next_group(
                groups: &mut Groups<'_>,
                scratch: &mut Scratch,
            ) -> Option<(Group, Mode)> {
                // SAFETY: the caller's promise.
                unsafe { $functions::next_group(groups, scratch) }
            }
        }
    };
}
level!(Scalar, f32, f64, scalar);
level!(
    #[cfg(target_arch = "x86_64")]
    Avx2,
    std::arch::x86_64::__m256,
    std::arch::x86_64::__m256d,
    avx2
);
level!(
    #[cfg(target_arch = "x86_64")]
    Avx512,
    std::arch::x86_64::__m512,
    std::arch::x86_64::__m512d,
    avx512
);
level!(
    #[cfg(target_arch = "aarch64")]
    Neon,
    std::arch::aarch64::float32x4_t,
    std::arch::aarch64::float64x2_t,
    neon
);

/// Runs `task` compiled for `level`, which the processor must have (see [`crate::CpuBackend`]).
pub(crate) fn with_level<T: Task>(level: SimdLevel, task: T) {
    // SAFETY: backends only hold levels that were detected.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => Avx512::call(task),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => Avx2::call(task),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => Neon::call(task),
            _ => Scalar::call(task),
        }
    }
}
