//! From settings to an engine.
//!
//! Checks come first: of numbers, then of what this build and the device can do. Threads and a
//! device are started only after them, so a setting that is refused costs nothing.
//!
//! **Invariant:** an engine that has been built can do every job on the CPU backend. A device that
//! was named has been started, and takes the precision, the radii and the box of the engine.

use super::{EngineParts, builder::Builder, later::LaterGpu, point_data::EngineFilters};
use crate::{
    Device, Engine, Error, ErrorKind, Precision,
    backend::{
        accelerator::Accelerator,
        emulated::EmulatedDevice,
        gpu::{self, Note},
        rates::machine,
        split::{Settings, Split, ties_for},
        support::{Choice, Feature, choose, in_build},
    },
    balance::Strategy,
};
use nearfield_balance::{Controller, Subdivision};
use nearfield_cpu::{CpuBackend, RadiusRule};
use nearfield_grid::{Bounds, Lattice, Radius};
use nearfield_pairs::ListKind;
use std::ops::RangeInclusive;

/// Cells along an edge of a brick.
const BRICK_EDGES: RangeInclusive<u32> = 1..=8;
/// Subregions of a step.
const SUBREGION_COUNTS: RangeInclusive<usize> = 1..=64;

impl Builder {
    /// Starts the engine.
    ///
    /// Nothing is allocated for points. A GPU that was named is started here, which takes longer
    /// than searching a million points.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] for a radius or box that cannot be used,
    /// [`ErrorKind::DeviceUnavailable`], [`ErrorKind::Cpu`] if threads cannot be started, if
    /// [cut-offs](Self::cutoffs) cannot be used, or for half lists with [`RadiusRule::Gather`] or
    /// [`RadiusRule::Scatter`], [`ErrorKind::NoNearest`], [`ErrorKind::Combined`] for two settings
    /// that exclude each other, [`ErrorKind::StrictRadii`] for
    /// them [strictly within](Self::strictly_within), and [`ErrorKind::BrickEdge`],
    /// [`ErrorKind::Subregions`] and [`ErrorKind::Schedule`] for values that cannot divide a step.
    pub fn build(mut self) -> Result<Engine, Error> {
        if self.deterministic && self.strategy == Strategy::Auto {
            self.strategy = Strategy::Flat;
        }
        let radius = self.checked_radius()?;
        let mut domain = self.domain.clone().map_err(ErrorKind::Setup)?;
        // A GPU computes image vectors itself, from the vectors by which images are counted.
        if !matches!(self.device, Device::Gpu(_) | Device::Hybrid(_)) {
            domain = domain.reduced();
        }
        let lattice = Lattice::new(radius, domain, self.subdivision, &Bounds::EMPTY)
            .map_err(ErrorKind::Setup)?;
        if self.lists == ListKind::Half && !self.rule.is_symmetric() {
            return Err(ErrorKind::Cpu(nearfield_cpu::Error::from(
                nearfield_cpu::ErrorKind::HalfRule { rule: self.rule },
            ))
            .into());
        }
        let precision = radius.precision();
        let filters = EngineFilters::new(&self, radius)?;
        // Also for a device that divides nothing, so that settings do not become wrong with the
        // machine.
        self.check_division()?;
        let slanted = lattice.domain().is_slanted();
        let on_cpu = self.check_device(precision, slanted, filters.feature())?;
        let accelerator = self.open_device()?;
        let (later, reason) = match (self.device, on_cpu) {
            (Device::Auto, Some(why)) => (None, format!("the CPU backend: {why}")),
            (Device::Auto, None) if self.deterministic => {
                let reason = "the CPU backend: results are to be the same on every machine";
                (None, reason.to_owned())
            }
            (Device::Auto, None) => match LaterGpu::find() {
                (Some(_), _) if domain.is_reduced() => {
                    let reason = "the CPU backend: the box leans so far that it is searched by \
                                  shorter vectors, which a GPU does not do";
                    (None, reason.to_owned())
                }
                found => found,
            },
            _ => (None, "asked for".to_owned()),
        };
        let backend = CpuBackend::new(self.threads)?;
        let backend = match self.simd {
            Some(level) => backend.with_level(level),
            None => backend,
        };
        let divides = matches!(self.device, Device::Hybrid(_) | Device::Emulated(_));
        let device = accelerator.as_deref().filter(|_| divides);
        let split = device.map(|device| {
            let note = self.rates_note(device, backend.threads());
            Split::new(self.division(), note)
        });
        let parts = EngineParts {
            filters,
            backend,
            accelerator,
            split,
            later,
            reason: reason.into(),
        };
        let engine = Engine::new(self, lattice, parts);
        engine.announce();
        Ok(engine)
    }

    /// The radius, as strict as the settings say.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] for a radius that is not within 2⁻⁵⁰ to 2⁶³, and
    /// [`ErrorKind::StrictRadii`].
    pub(crate) fn checked_radius(&self) -> Result<Radius, Error> {
        let radius = match self.precision {
            Precision::Single => Radius::rounded(self.radius),
            Precision::Double => Radius::new_f64(self.radius),
        }
        .map_err(ErrorKind::Setup)?;
        match (self.strict, self.rule) {
            (true, RadiusRule::Uniform) => Ok(radius.strict()),
            (true, rule) => Err(ErrorKind::StrictRadii(rule).into()),
            (false, _) => Ok(radius),
        }
    }

    /// Refuses what no step can be divided by, whatever the device.
    fn check_division(&self) -> Result<(), Error> {
        if !BRICK_EDGES.contains(&self.brick_edge) {
            return Err(ErrorKind::BrickEdge(self.brick_edge).into());
        }
        if !SUBREGION_COUNTS.contains(&self.subregions) {
            return Err(ErrorKind::Subregions(self.subregions).into());
        }
        Controller::new(self.policy)?;
        Ok(())
    }

    /// Checks that the device can do what the settings ask for; says why [`Device::Auto`] stays on
    /// the CPU, if it has to.
    ///
    /// These are the features that concern all jobs. A named device, alone or in a hybrid engine,
    /// is refused them here instead of at the first job.
    fn check_device(
        &self,
        precision: Precision,
        slanted: bool,
        filters: Option<Feature>,
    ) -> Result<Option<String>, Error> {
        in_build(self.device)?;
        let asked = [
            (precision == Precision::Double, Feature::Double),
            (self.rule != RadiusRule::Uniform, Feature::PointRadii),
            (slanted, Feature::SlantedBox),
        ];
        let asked = asked.into_iter().filter(|(asked, _)| *asked);
        let mut on_cpu = None;
        for feature in asked.map(|(_, feature)| feature).chain(filters) {
            if let Choice::Cpu(unsupported) = choose(self.device, &feature)? {
                on_cpu.get_or_insert(unsupported.to_string());
            }
        }
        Ok(on_cpu)
    }

    /// How steps are divided between two backends.
    ///
    /// Asked once, when the engine gets its second backend: at the start, or when the GPU of
    /// [`Device::Auto`] is ready.
    pub(crate) fn division(&self) -> Settings {
        Settings {
            policy: self.policy,
            brick_edge: self.brick_edge,
            subregions: Subdivision {
                count: self.subregions,
                equal: self.equal,
            },
            ties: ties_for(self.strategy, self.policy),
            deterministic: self.deterministic,
        }
    }

    /// The note about the rates of a device beside a CPU backend of so many threads, if the
    /// settings allow it.
    pub(super) fn rates_note(&self, device: &dyn Accelerator, threads: usize) -> Option<Note> {
        if self.deterministic || !self.known_rates {
            return None;
        }
        device.rates_note(&machine(threads))
    }

    /// The device of an engine that is asked to have one.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] with the missing part, and [`ErrorKind::Cpu`] when an
    /// emulated device gets no thread.
    fn open_device(&self) -> Result<Option<Box<dyn Accelerator>>, Error> {
        let device = self.device;
        Ok(match device {
            Device::Gpu(number) | Device::Hybrid(number) => {
                let started = gpu::start(number, self.strategy, self.precision);
                Some(started.map_err(|missing| ErrorKind::DeviceUnavailable { device, missing })?)
            }
            Device::Emulated(spec) => Some(Box::new(EmulatedDevice::new(spec)?)),
            Device::Cpu | Device::Auto => None,
        })
    }
}

impl Engine {
    /// Settings for an engine with this search radius, in the unit of the coordinates; the largest
    /// radius where points have [radii of their own](Builder::radii).
    ///
    /// A radius given as `f32` is taken as it is. One given as `f64` is rounded to `f32` once,
    /// unless the engine is built in [`Precision::Double`].
    ///
    /// ```
    /// use nearfield::prelude::*;
    /// let engine = Engine::builder(0.1).periodic([Some(1.0), None, None]).threads(2).build()?;
    /// assert_eq!(engine.radius(), f64::from(0.1f32));
    /// # Ok::<(), nearfield::Error>(())
    /// ```
    pub fn builder(radius: impl Into<f64>) -> Builder {
        Builder::new(radius.into())
    }
}
