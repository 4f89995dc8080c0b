//! The mode of candidates: the data that they carry in addition to positions, as a constant
//! parameter of the loops.
//!
//! A search of one radius in an open domain loads three coordinates and a tag per candidate. Image
//! vectors, ranks and radii of single points are further arrays and further operations. Each is a
//! bit of [`Mode`], and the loops take the mode as a `const` parameter, so a search pays only for
//! the bits that it sets. The price is code: a kernel's loops are compiled once per combination.
//!
//! # Combinations
//!
//! In single precision three bits make eight modes. List loops have all eight, kernels four,
//! because they are never evaluated over half lists here, and gathering two. Loops of symmetric
//! kernels have three, because they take radii of single points in open domains only. In double
//! precision proxies do not decide where points have radii of their own, so lists have twelve more
//! modes, kernels four, symmetric ones two, and gathering one.

/// A set of [`SHIFTED`], [`HALF`], [`RADII`], [`EXACT`] and [`PROXIES`].
pub(crate) type Mode = u8;
/// Candidates carry image vectors.
pub(crate) const SHIFTED: Mode = 1;
/// Only candidates whose rank is above the target's tag are neighbours.
pub(crate) const HALF: Mode = 2;
/// Candidates carry squared radii of their own.
pub(crate) const RADII: Mode = 4;

/// Candidates carry positions in double precision, which decide.
pub(crate) const EXACT: Mode = 8;
/// Candidates carry their slots, by which positions in double precision are looked up where proxies
/// cannot [decide](super::near).
pub(crate) const PROXIES: Mode = 16;

/// Returns true if `mode` has the bit `bit`.
#[inline(always)]
pub(crate) const fn has(mode: Mode, bit: Mode) -> bool {
    mode & bit != 0
}

/// The constant parameter of a loop whose mode is known only at run time.
pub(crate) const ANY: Mode = 1 << 7;

/// Returns true if candidates carry what `bit` says: by the constant `MODE` or, where that is
/// [`ANY`], by `mode`.
#[inline(always)]
pub(crate) const fn carries<const MODE: Mode>(mode: Mode, bit: Mode) -> bool {
    if MODE == ANY {
        has(mode, bit)
    } else {
        has(MODE, bit)
    }
}

/// The name of a gathered candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The caller's index of the point, for lists.
    Index,
    /// The slot of the sorted point, for traversals and double precision.
    Slot,
}

/// Evaluates `$body` with the constant `$constant` equal to the bits [`SHIFTED`] and [`RADII`] of
/// the value `$mode`. `$body` is compiled for each of the four, for every kernel and level.
macro_rules! with_mode {
    ($mode:expr, $constant:ident => $body:expr) => {{
        use $crate::candidates::mode::{RADII, SHIFTED, has};
        match (has($mode, SHIFTED), has($mode, RADII)) {
            (false, false) => with_mode!(@ 0, $constant, $body),
            (true, false) => with_mode!(@ SHIFTED, $constant, $body),
            (false, true) => with_mode!(@ RADII, $constant, $body),
            (true, true) => with_mode!(@ SHIFTED | RADII, $constant, $body),
        }
    }};
    (@ $value:expr, $constant:ident, $body:expr) => {{
        const $constant: $crate::candidates::mode::Mode = $value;
        $body
    }};
}
pub(crate) use with_mode;

/// As [`with_mode`] for gathering, where the bits are [`RADII`] and [`PROXIES`].
macro_rules! with_gather_mode {
    ($mode:expr, $constant:ident => $body:expr) => {{
        use $crate::candidates::mode::{PROXIES, RADII, has, with_mode};
        match (has($mode, RADII), has($mode, PROXIES)) {
            (false, false) => with_mode!(@ 0, $constant, $body),
            (true, _) => with_mode!(@ RADII, $constant, $body),
            (_, true) => with_mode!(@ PROXIES, $constant, $body),
        }
    }};
}
pub(crate) use with_gather_mode;

/// As [`with_mode`] for lists in double precision, where the bits are [`SHIFTED`] and one of
/// [`EXACT`], with or without [`RADII`], and [`PROXIES`].
macro_rules! with_double_mode {
    ($mode:expr, $constant:ident => $body:expr) => {{
        use $crate::candidates::mode::{PROXIES, SHIFTED, has, with_exact_mode, with_mode};
        match (has($mode, PROXIES), has($mode, SHIFTED)) {
            (true, true) => with_mode!(@ PROXIES | SHIFTED, $constant, $body),
            (true, false) => with_mode!(@ PROXIES, $constant, $body),
            (false, _) => with_exact_mode!($mode, $constant => $body),
        }
    }};
}
pub(crate) use with_double_mode;

/// As [`with_mode`] in double precision, where the bits are [`EXACT`], [`SHIFTED`] and [`RADII`].
macro_rules! with_exact_mode {
    ($mode:expr, $constant:ident => $body:expr) => {{
        use $crate::candidates::mode::{EXACT, RADII, SHIFTED, has, with_mode};
        match (has($mode, SHIFTED), has($mode, RADII)) {
            (false, false) => with_mode!(@ EXACT, $constant, $body),
            (true, false) => with_mode!(@ EXACT | SHIFTED, $constant, $body),
            (false, true) => with_mode!(@ EXACT | RADII, $constant, $body),
            (true, true) => with_mode!(@ EXACT | SHIFTED | RADII, $constant, $body),
        }
    }};
}
pub(crate) use with_exact_mode;
