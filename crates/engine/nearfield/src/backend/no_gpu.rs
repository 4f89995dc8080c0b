//! What stands in for [`gpu`](super) in a build without the cargo feature `gpu`.
//!
//! The rest of the crate is the same in both builds. It asks for a GPU here and is told that there
//! is none, or holds an `Option` of a type that has no value, so code that would use a GPU compiles
//! to nothing. Only this file and the re-exports at the root of the crate ask for the feature.
//!
//! **Invariant:** every name that a build without the feature takes from [`gpu`](super) exists here
//! with the signature that it has there. A name that is missing is found by a build with
//! `--no-default-features`.

use super::{DeviceError, accelerator::Accelerator, sums::SumWork};
use crate::{
    Error, ListKind, PairKernel,
    all_pairs::Real,
    balance::Strategy,
    systems::{PairIndex, Quantities, SystemPairs, SystemReal, Systems},
};
use nearfield_grid::Precision;
use std::ops::{Deref, DerefMut};

/// Whether the crate was built with the GPU backend.
pub(crate) const BUILT: bool = false;

const NO_GPU: &str = "this build of nearfield has no GPU backend: it lacks the cargo feature gpu";

/// Says that this build has no use for a driver.
pub(crate) fn find_driver() -> Result<(), String> {
    Err(NO_GPU.to_owned())
}

/// Says that this build sees no GPU.
pub(crate) fn visible() -> Result<Vec<String>, String> {
    Err(NO_GPU.to_owned())
}

/// Says that this build starts no GPU.
pub(crate) fn start(
    _number: u32,
    _: Strategy,
    _: Precision,
) -> Result<Box<dyn Accelerator>, String> {
    Err(NO_GPU.to_owned())
}

/// A note about a GPU. It has no value.
#[derive(Debug)]
pub(crate) enum Note {}

impl Note {
    pub(crate) fn read(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn write(&self, _: &str) -> std::io::Result<()> {
        match *self {}
    }
}

/// A pair kernel for the GPU. It has no value.
#[derive(Debug, Clone)]
pub(crate) enum Program {}

/// Says that this build compiles no kernels for a GPU.
pub(crate) fn program_of<K: PairKernel>(_: &K) -> Result<Program, String> {
    Err(NO_GPU.to_owned())
}

/// Memory of a driver. It has no value.
#[derive(Debug)]
pub(crate) enum PageLocked {}

impl Deref for PageLocked {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match *self {}
    }
}

impl DerefMut for PageLocked {
    fn deref_mut(&mut self) -> &mut [f32] {
        match *self {}
    }
}

/// A GPU that sums over all pairs. It has no value.
#[derive(Debug)]
pub(crate) enum PairSums {}

impl PairSums {
    pub(crate) fn start(_number: u32) -> Result<Self, String> {
        Err(NO_GPU.to_owned())
    }

    pub(crate) fn number(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn usable(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn may_try(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn failed(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn run<T: Real>(
        &mut self,
        _: SumWork<'_, T>,
        _: &mut [T],
    ) -> Result<(), DeviceError> {
        match *self {}
    }
}

/// A GPU that searches many systems. It has no value.
#[derive(Debug)]
pub(crate) enum GpuSystems {}

impl GpuSystems {
    pub(crate) fn start(_number: u32) -> Result<Self, String> {
        Err(NO_GPU.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn usable(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn may_try(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn failed(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn run<T: SystemReal, I: PairIndex>(
        &mut self,
        _: &Systems<'_, T>,
        _: ListKind,
        _: Quantities,
        _: &mut SystemPairs<T, I>,
    ) -> Result<(), DeviceError> {
        match *self {}
    }
}
