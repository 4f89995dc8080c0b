//! How far points may move before lists with a skin miss a pair, on the host and on a GPU.
//!
//! Let δ be the displacements of two points since the build, u = 2⁻²⁴ (2⁻⁵³ in double precision),
//! and E the extent of all coordinates, then and now, along the periodic axes. A pair that the
//! contract finds within r now has a true distance of at most r + u·(4E + 7R): the difference, the
//! image vector and their sum are each rounded once per axis, the square three times and r² once.
//! So its true distance at the build was at most that plus δ_i + δ_j, and the contract, which errs
//! as much once more, found it within R if r + δ_i + δ_j + u·(8E + 14R) ≤ R. The margin taken is
//! 32u·(E + R).
//!
//! In double precision the displacements are rounded by as much as the contract is, and the image
//! vectors of a tilted box are sums of terms. Each may be 2¹⁰ times as long as the box is wide, so
//! that 2⁻³⁷·(E + R) would be needed; the margin is 2⁻³⁴·(E + R), which is still negligible
//! compared with a skin.

use crate::Precision;

/// Outcome of [`VerletLists::refresh`](crate::lists::VerletLists::refresh).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// The lists still hold every pair within the radius and were kept.
    Kept,
    /// The lists were built anew.
    Rebuilt,
}

/// Share of E + R kept free for rounding (see the module's comment).
pub(crate) fn margin(precision: Precision) -> f64 {
    match precision {
        Precision::Single => 1.0 / (1u64 << 19) as f64,
        Precision::Double => 1.0 / (1u64 << 34) as f64,
    }
}

/// How far two points may have moved together since lists of `list_radius` were built before a pair
/// within `radius` can be missing; negative if the skin is smaller than the rounding. `extent` is
/// the largest extent of all coordinates along a periodic axis, then and now.
pub(crate) fn allowed_displacement(
    radius: f64,
    list_radius: f64,
    extent: f64,
    precision: Precision,
) -> f64 {
    list_radius - radius - margin(precision) * (extent + list_radius)
}
