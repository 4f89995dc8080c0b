//! Periodic axes that can be treated as open.
//!
//! Rounding in a vast box would enlarge its cells. Where a box is so long that no point can be near
//! an image of another, the axis is taken as open, and nothing need be covered.
//!
//! A simulation in a box of a kilometre with a radius of a millimetre is the case in mind: its
//! points fill a corner of the box.
//!
//! **Invariant:** the pairs found on the effective domain are those of the domain as given.

use crate::{Bounds, Domain, domain::tilt::along};

/// Radii from which on a box is so long that what rounding in it adds to distances enlarges cells
/// by a 64th or more.
const VAST: f64 = (1u64 << 15) as f64;

impl Domain {
    /// The domain as points within `bounds` see it when they search within `radius`: an axis whose
    /// box is over [`VAST`] radii long is open where the points extend over less than half of it,
    /// so that none can be near an image of another.
    ///
    /// # Why the pairs are the same
    ///
    /// Let e be the extent along such an axis, L the length of its box and r the radius, with e +
    /// 2r at most L/2. Through an image n other than 0 the contract's difference is at least
    /// L·|n|·(1 − 2⁻²³) less e·(1 + 2⁻²²), which is more than r. Through image 0 the difference is
    /// that of an open axis. So the pairs are the same, and the rounding of a vast box need not be
    /// covered by larger cells.
    ///
    /// An axis whose vector leans, or that another vector leans along, stays periodic, and so do
    /// all axes of a [reduced](Self::reduced) box.
    pub(crate) fn effective(&self, bounds: &Bounds, radius: f64) -> Self {
        let (vectors, extent) = (self.vectors(), bounds.extent());
        let is_alone = |k: usize| {
            let others = (0..3).filter(|&other| other != k);
            let mut leaning = others
                .filter_map(|other| vectors[other])
                .map(|other| other[k]);
            vectors[k].is_some_and(|v| v == along(k, v[k])) && leaning.all(|lean| lean == 0.0)
        };
        let is_open = |k: usize| {
            self.lengths()[k].is_some_and(|length| {
                length > VAST * radius && extent[k] + 2.0 * radius <= 0.5 * length && is_alone(k)
            })
        };
        let opened = [0, 1, 2].map(is_open);
        if opened == [false; 3] || self.is_reduced() {
            return *self;
        }
        let seen = std::array::from_fn(|k| vectors[k].filter(|_| !opened[k]));
        Self::from_vectors(seen).unwrap_or(*self)
    }
}
