//! Pair kernels fused into a traversal.

use super::{
    GpuLane,
    buffer::Buffer,
    layout::{MOST_UNIFORMS, Outlet},
    programs::{Traversal, Work},
    strategy::Strategy,
    walk::{PairOfPoints, Scratch},
};
use crate::{Error, Program};
use nearfield_pairs::{Channels, PairKernel, Reduce};
use std::borrow::Cow;

/// What a pair kernel is compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PairProgram {
    pub(crate) name: Cow<'static, str>,
    pub(crate) text: Cow<'static, str>,
    pub(crate) targets: usize,
    pub(crate) sources: usize,
    pub(crate) outputs: usize,
    pub(crate) reduce: Reduce,
}

/// Channels of the points, those of one point side by side, in the caller's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairFields<'a> {
    /// Of every target.
    pub targets: &'a [f32],
    /// Of every source.
    pub sources: &'a [f32],
}

impl PairProgram {
    /// The CUDA text of a kernel, with the number of its channels.
    ///
    /// # Errors
    /// [`Error::NoCuda`] when it has none, and [`Error::TooManyUniforms`].
    pub fn of<K: PairKernel>(kernel: &K) -> Result<(Self, Vec<f32>), Error> {
        let name = || std::any::type_name::<K>().to_owned();
        let cuda = kernel
            .cuda()
            .ok_or_else(|| Error::NoCuda { kernel: name() })?;
        if cuda.uniforms.len() > MOST_UNIFORMS {
            return Err(Error::TooManyUniforms {
                kernel: name(),
                found: cuda.uniforms.len(),
                most: MOST_UNIFORMS,
            });
        }
        let program = Self {
            name: cuda.name,
            text: cuda.text,
            targets: K::Target::COUNT,
            sources: K::Source::COUNT,
            outputs: K::Output::COUNT,
            reduce: K::REDUCE,
        };
        Ok((program, cuda.uniforms))
    }

    /// The whole program that one thread per target of one set in an open domain runs, for checks
    /// that need no GPU.
    pub fn program(&self) -> Program {
        let traversal = Traversal {
            strategy: Strategy::Flat,
            work: Work::Pairs(self.clone()),
            open: true,
            subdivision: 1,
            half: false,
        };
        traversal.program()
    }
}

/// Buffers of a traversal that evaluates a pair kernel, kept between steps.
#[derive(Debug)]
pub struct PairScratch {
    target_fields: Buffer<f32>,
    source_fields: Buffer<f32>,
    sources: Buffer<[f32; 4]>,
    more: Buffer<[f32; 4]>,
    results: Buffer<f32>,
    scratch: Scratch,
}

impl Default for PairScratch {
    fn default() -> Self {
        Self {
            target_fields: Buffer::new("fields of targets"),
            source_fields: Buffer::new("fields of sources"),
            sources: Buffer::new("sorted fields"),
            more: Buffer::new("sorted fields"),
            results: Buffer::new("results"),
            scratch: Scratch::default(),
        }
    }
}

impl PairScratch {
    /// Copies channels of the sources to the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn upload_source_fields(&mut self, lane: &GpuLane, fields: &[f32]) -> Result<(), Error> {
        self.source_fields.upload(&lane.stream, fields)
    }

    /// Copies channels of the targets to the device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and [`Error::Driver`].
    pub fn upload_target_fields(&mut self, lane: &GpuLane, fields: &[f32]) -> Result<(), Error> {
        self.target_fields.upload(&lane.stream, fields)
    }
}

impl GpuLane {
    /// Evaluates a pair kernel for every target over its neighbours; `results` has as many channels
    /// per target as the kernel, in the caller's order.
    ///
    /// # Errors
    /// [`Error::Compile`] with the kernel's own line numbers, [`Error::FieldLength`] and those of
    /// running a program.
    pub fn evaluate(
        &self,
        of: PairOfPoints<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        fields: PairFields<'_>,
        strategy: Strategy,
        results: &mut [f32],
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let (targets, sources) = (of.targets.len(), of.sources.len());
        fits(
            "fields of targets",
            fields.targets.len(),
            targets * program.targets,
        )?;
        fits(
            "fields of sources",
            fields.sources.len(),
            sources * program.sources,
        )?;
        fits("results", results.len(), targets * program.outputs)?;
        let identity = program.reduce.identity();
        if of.is_empty() {
            results.fill(identity);
            return Ok(());
        }
        scratch.target_fields.upload(&self.stream, fields.targets)?;
        scratch.source_fields.upload(&self.stream, fields.sources)?;
        scratch.results.reserve(&self.stream, results.len())?;
        self.evaluate_resident(of, (program, uniforms), strategy, scratch)?;
        scratch.results.download(&self.stream, 0, results)
    }

    /// As [`evaluate`](Self::evaluate), from fields that are in `scratch` already and into results
    /// that stay there, without waiting for the device.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluate_resident(
        &self,
        of: PairOfPoints<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        strategy: Strategy,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        scratch
            .results
            .reserve(&self.stream, of.targets.len() * program.outputs)?;
        let count = of.sources.len();
        let records = (program.sources + 2) / 4;
        // Loops over candidates read up to two points behind the last.
        scratch.sources.reserve(&self.stream, count + 2)?;
        scratch.more.reserve(&self.stream, (count + 2) * records)?;
        let traversal = of.traversal(strategy, Work::Pairs(program.clone()), false);
        let kernels = self
            .shared
            .traversals
            .get(&self.shared.modules, &traversal)?;
        let (sources, more) = (scratch.sources.address(), scratch.more.address());
        let fields = scratch.source_fields.address();
        kernels.gather(&self.stream, &of.sources.layout(), fields, sources, more)?;
        let mut outlet = Outlet {
            sources,
            more,
            target_fields: scratch.target_fields.address(),
            results: scratch.results.address(),
            ..Outlet::default()
        };
        for (to, from) in outlet.uniforms.iter_mut().zip(uniforms) {
            *to = *from;
        }
        self.traverse(&kernels, of, &outlet, &mut scratch.scratch)
    }
}

fn fits(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::FieldLength {
            what,
            found,
            expected,
        }),
    }
}
