//! The kernel of `sph_density`.

use nearfield::kernels::{Dimensions, SphDensity, WendlandC2};
use pyo3::{exceptions::PyValueError, prelude::*};

/// The kernel of sph_density(), normalised for the dimensions asked for, or for those of two sets
/// that were both given with two coordinates, or both with three.
pub(crate) fn density_kernel(
    support: f64,
    asked: Option<u32>,
    flat: [bool; 2],
) -> PyResult<SphDensity> {
    let rounded = support as f32;
    if !(rounded.is_finite() && rounded > 0.0) {
        return Err(PyValueError::new_err(format!(
            "the support is {support:?}: it must be positive and within the range of float32"
        )));
    }
    let dimensions = match (asked, flat) {
        (Some(2), _) | (None, [true, true]) => Dimensions::Two,
        (Some(3), _) | (None, [false, false]) => Dimensions::Three,
        (Some(other), _) => {
            return Err(PyValueError::new_err(format!(
                "dimensions is 2 or 3, not {other}"
            )));
        }
        (None, _) => {
            return Err(PyValueError::new_err(
                "one set has points of two coordinates and the other of three: say dimensions=2 \
                 or dimensions=3, which the kernel is to be normalised for",
            ));
        }
    };
    Ok(SphDensity {
        kernel: WendlandC2::with_support(rounded).in_dimensions(dimensions),
    })
}
