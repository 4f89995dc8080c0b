//! The check of a pair kernel before it runs, wherever that is.
//!
//! A sum over neighbours within the radius is silently wrong for a kernel that reaches farther. The
//! kernel knows its reach and the engine its radius, so they are compared once per traversal.

use crate::{Error, ErrorKind, PairKernel};

/// Refuses a kernel that reaches farther than pairs are searched for.
///
/// # Errors
/// [`ErrorKind::Support`]; not where the support is but rounded differently from the radius.
pub(crate) fn check_support<K: PairKernel>(kernel: &K, radius: f32) -> Result<(), Error> {
    match kernel.support() {
        Some(support) if support > radius.next_up() && support.is_finite() => {
            Err(ErrorKind::Support {
                kernel: std::any::type_name::<K>(),
                support,
                radius,
            }
            .into())
        }
        _ => Ok(()),
    }
}
