//! What the device notes of a sort: the status at its beginning, and the bounds that it measured.
//!
//! The device has atomics for the minimum and maximum of integers only, so bounds are kept as
//! integers that sort like the coordinates: the sign bit is set on numbers from +0 on, and all bits
//! of negative ones are inverted. Each precision has bounds of its own, because a coordinate in
//! `f64` must not be rounded where cells depend on how far coordinates reach.

use super::{layout::Status, skin_pairs::SkinStatus};
use nearfield_grid::{self as grid, Precision};

/// The number of double precision that sorts as these bits do.
fn double(bits: u64) -> f64 {
    f64::from_bits(match bits >> 63 {
        0 => !bits,
        _ => bits & (u64::MAX >> 1),
    })
}

impl SkinStatus {
    /// The largest displacement of a point.
    pub(crate) fn farthest(&self) -> f64 {
        f64::from_bits(self.moved).sqrt()
    }

    /// The extent of the coordinates along each axis; not a number without points.
    pub(crate) fn extent(&self) -> [f64; 3] {
        [0, 1, 2].map(|axis| double(self.extremes[axis]) + double(self.extremes[3 + axis]))
    }
}

impl Status {
    /// The status at the beginning of a step.
    pub(crate) const BEFORE: Self = Self {
        bad: 0,
        first_bad: u32::MAX,
        outside: 0,
        wrapped: 0,
        large_cells: 0,
        ticket: 0,
        bricks: 0,
        failed: 0,
        bounds: [u32::MAX, u32::MAX, u32::MAX, 0, 0, 0],
        pairs: 0,
        double_bounds: [u64::MAX, u64::MAX, u64::MAX, 0, 0, 0],
    };

    /// Smallest and largest coordinates, in the precision of the sort.
    pub(crate) fn bounds(&self, precision: Precision) -> grid::Bounds {
        let value = |at: usize| match precision {
            Precision::Single => {
                let bits = self.bounds[at];
                f64::from(f32::from_bits(match bits >> 31 {
                    0 => !bits,
                    _ => bits & (u32::MAX >> 1),
                }))
            }
            Precision::Double => double(self.double_bounds[at]),
        };
        grid::Bounds {
            min: [value(0), value(1), value(2)],
            max: [value(3), value(4), value(5)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats on the host what `sortable` of grid.cu does, for signs, zeros and subnormal numbers.
    #[test]
    fn sortable_bounds_become_the_coordinates_they_were() {
        let sortable = |value: f32| match value.to_bits() {
            bits if bits & 0x8000_0000 != 0 => !bits,
            bits => bits | 0x8000_0000,
        };
        let values = [-1.5f32, -0.0, 3e-40, 2.0, 5e30, f32::MAX];
        let status = Status {
            bounds: values.map(sortable),
            ..Status::BEFORE
        };
        let bounds = status.bounds(Precision::Single);
        let found = [bounds.min, bounds.max].concat();
        let given = values.map(f64::from);
        assert_eq!(bits(&found), bits(&given));
        let status = Status {
            double_bounds: given.map(|value| match value.to_bits() {
                bits if bits >> 63 == 1 => !bits,
                bits => bits | 1 << 63,
            }),
            ..Status::BEFORE
        };
        let bounds = status.bounds(Precision::Double);
        assert_eq!(bits(&[bounds.min, bounds.max].concat()), bits(&given));
        assert!(sortable(-2.0) < sortable(-1.0) && sortable(-0.0) < sortable(0.0));
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }
}
