//! What the device refused of data of points that came from its arrays.
//!
//! The host cannot look at such data before they are used. Kernels replace values that cannot be
//! used (`kernels/cuda/point_data.cu`), count them, and remember the first; the host reads these
//! notes when it waits anyway. Two words of 64 bits tell of each kind of data: the complement of
//! the index and the value of the first, so that a maximum finds it and zero means none, and how
//! many there are.

use super::gpu::GpuBackend;
use crate::{
    error::Error,
    memory::{Buffer, HostCopy},
};

/// Values of points that were refused: the first, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedValues {
    /// The caller's index of the first.
    pub first: u32,
    /// Its value, bit for bit; `u32::MAX` for whole numbers that do not fit.
    pub bits: u32,
    /// How many.
    pub count: u64,
    /// Number of points.
    pub points: usize,
}

/// What was refused since the host last asked, by kind of data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedPointData {
    /// Radii that are out of range.
    pub radii: Option<RefusedValues>,
    /// Types that there are not.
    pub types: Option<RefusedValues>,
    /// Molecules that have no number of 32 bits.
    pub molecules: Option<RefusedValues>,
}

/// The notes on the device, two words for each of radii, types and molecules.
#[derive(Debug)]
pub(super) struct RefusedData {
    pub(super) words: Buffer<u64>,
    /// Where the host reads them.
    pub(super) answer: Option<HostCopy<u64>>,
    /// Values were taken that the host has not asked about.
    pub(super) unlooked: bool,
}

/// Words on the device.
pub(super) const WORDS: usize = 6;

impl Default for RefusedData {
    fn default() -> Self {
        Self {
            words: Buffer::new("notes on data of points"),
            answer: None,
            unlooked: false,
        }
    }
}

impl RefusedData {
    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// The address of the words of a kind of data, which will be written to.
    pub(super) fn words_of(&mut self, backend: &GpuBackend, kind: usize) -> Result<u64, Error> {
        self.words.reserve_zeroed(&backend.stream, WORDS)?;
        self.unlooked = true;
        Ok(self.words.address() + (2 * kind * size_of::<u64>()) as u64)
    }
}
