//! The settings of sums over all pairs: device, threads, instruction set and arithmetic. There is
//! no radius, no domain and no set: points are arguments of every sum.
//!
//! **Invariant:** nothing is started before [`AllPairsBuilder::build`], so settings cost nothing
//! and may be dropped.

use super::{backends::SumBackends, sums::AllPairs};
use crate::{Device, Engine, Error, all_pairs::Arithmetic, report::SimdLevel};

/// Settings of sums over all pairs, made by [`Engine::all_pairs`].
#[derive(Debug, Clone, Default)]
#[must_use = "settings do nothing until build() is called"]
pub struct AllPairsBuilder {
    pub(super) device: Device,
    pub(super) threads: usize,
    pub(super) simd: Option<SimdLevel>,
    pub(super) arithmetic: Arithmetic,
}

impl Engine {
    /// Settings for sums over all pairs of points, without a radius: gravity, electric potentials.
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let mut sums = Engine::all_pairs().device(Device::Cpu).build()?;
    /// let pull = sums.gravity(&[[0.0f32; 3], [1.0, 0.0, 0.0]], &[1.0, 1.0], 0.0)?;
    /// assert!((pull[0][0] - 1.0).abs() < 1e-6);
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn all_pairs() -> AllPairsBuilder {
        AllPairsBuilder::default()
    }
}

impl AllPairsBuilder {
    /// Hardware to use; [`Device::Auto`] by default: the CPU backend, and where there is a GPU that
    /// one for every sum of a million pairs or more, once so much has been summed that starting it
    /// pays. [`AllPairs::report`] says what ran and why.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Worker threads of the CPU backend; 0, the default, for one per core, or one less beside a
    /// GPU.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Holds the CPU backend to an instruction set, for tests and measurements; a level that the
    /// processor lacks is ignored.
    pub fn simd(mut self, level: SimdLevel) -> Self {
        self.simd = Some(level);
        self
    }

    /// How reciprocal roots are computed; [`Arithmetic::Fast`] by default.
    ///
    /// [`Arithmetic::Exact`] costs correctly rounded roots and divisions, and gives the same bits
    /// on every device.
    pub fn arithmetic(mut self, arithmetic: Arithmetic) -> Self {
        self.arithmetic = arithmetic;
        self
    }

    /// Starts the backends.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) when the device asked
    /// for is not there, and [`ErrorKind::Cpu`](crate::ErrorKind::Cpu) when threads cannot be
    /// started.
    pub fn build(self) -> Result<AllPairs, Error> {
        Ok(AllPairs {
            arithmetic: self.arithmetic,
            backends: SumBackends::new(self.device, self.threads, self.simd)?,
        })
    }
}
