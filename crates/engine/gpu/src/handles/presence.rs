//! Whether the driver's library is there, which everything that calls it asks first: the bindings
//! panic where it is missing.

use cudarc::driver::sys;
use nearfield_grid::PerProcess;
use std::sync::OnceLock;

/// Returns true if the driver's library can be loaded. A process looks for it once: looking tries
/// names that systems do not have, a search of all library folders each.
pub(crate) fn is_present() -> bool {
    // Of a forked child its own: its parent may have been asking when it was forked.
    static PRESENT: PerProcess<OnceLock<bool>> = PerProcess::empty();
    // SAFETY: this loads the driver's library, whose initialisers need nothing from us.
    let load = || unsafe { sys::is_culib_present() };
    *PRESENT.get_or_make(OnceLock::new).get_or_init(load)
}
