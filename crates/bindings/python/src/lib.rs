//! Nearfield for Python: NumPy arrays in and out, without needless copies.
//!
//! Input arrays are copied (`points` explains why). While the engine works, other Python threads
//! run, and may use the same engine (`call`). The engine moves its lists into a Python object that
//! owns them, and every array that views them keeps this object alive, so no view can become stale.
//! `device` is for arrays on a GPU, where lists stay with the engine and a view checks whether it
//! is current.

mod call;
mod chunks;
mod density;
mod device;
mod domain;
mod edges;
mod engine;
mod errors;
mod filters;
mod kept;
mod lists;
mod neighbors;
mod one_call;
mod out;
mod pairs;
mod points;
mod recycled;
mod settings;
mod skin;
mod state;
mod systems;
mod verlet;

/// The compiled part of the package `nearfield`.
#[pyo3::pymodule]
mod _nearfield {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::chunks::PyListChunks;
    #[pymodule_export]
    use crate::device::{
        PyArrayAt, PyDeviceArray, PyDeviceEngine, PyDeviceListChunks, PyDeviceNeighbors,
        PyDevicePairs, PyDeviceSystemSearch, PyDeviceVerletLists, check_apart, check_points,
    };
    #[pymodule_export]
    use crate::domain::box_of;
    #[pymodule_export]
    use crate::edges::edges;
    #[pymodule_export]
    use crate::engine::PyEngine;
    #[pymodule_export]
    use crate::neighbors::PyNeighbors;
    #[pymodule_export]
    use crate::one_call::neighbors;
    #[pymodule_export]
    use crate::recycled::forget;
    #[pymodule_export]
    use crate::skin::PySkinSearch;
    #[pymodule_export]
    use crate::systems::PySystemSearch;
    #[pymodule_export]
    use crate::verlet::PyVerletLists;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
