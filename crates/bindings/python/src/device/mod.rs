//! Engines for data that live on a GPU: device arrays in and out, nothing copied to the host.
//!
//! Arguments may be any object that speaks DLPack or `__cuda_array_interface__` (`given`); results
//! speak both (`array`, `neighbors`, `pairs`,
//! `results`). Work is done on one stream (`stream`), and memory
//! is kept until that stream has used it (`shared`). Python code of others runs in the exchange, so
//! the engine is never locked meanwhile; and what it hands over is checked before it is believed.

mod array;
mod chunks;
mod columns;
mod dlpack;
mod engine;
mod fate;
mod function;
mod given;
mod layout;
mod neighbors;
mod pairs;
mod point_data;
mod results;
mod search;
mod settings;
mod shared;
mod shared_chunks;
mod stream;
mod systems;
mod verlet;

pub(crate) use array::PyDeviceArray;
pub(crate) use chunks::PyDeviceListChunks;
pub(crate) use engine::PyDeviceEngine;
pub(crate) use given::{PyArrayAt, check_apart, check_points};
pub(crate) use neighbors::PyDeviceNeighbors;
pub(crate) use pairs::PyDevicePairs;
pub(crate) use systems::PyDeviceSystemSearch;
pub(crate) use verlet::PyDeviceVerletLists;
