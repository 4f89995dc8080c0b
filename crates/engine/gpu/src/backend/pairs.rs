//! Pair kernels fused into a traversal.

use super::{
    gpu::GpuBackend,
    walk::{PairOfPoints, Scratch},
};
use crate::{
    error::{Error, ErrorKind, fits},
    launch::Outlet,
    memory::{Arrivals, Buffer, Destination},
    traversal::{PairProgram, Strategy, Work},
};
use cudarc::driver::{
    CudaEvent, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice,
    sys::CUdeviceptr,
};
use nearfield_kernels::constants::READ_AHEAD;

/// Channels of the points, those of one point side by side, in the caller's order.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairFields<'a> {
    /// Of every target.
    pub targets: &'a [f32],
    /// Of every source.
    pub sources: &'a [f32],
}

/// Values on the device, so many a point, in the caller's order.
#[derive(Debug)]
pub struct DeviceField<'a> {
    values: CudaView<'a, f32>,
    stride: usize,
}

impl<'a> DeviceField<'a> {
    /// The values of a point begin `stride` numbers behind those of the one before. A kernel reads
    /// as many of them, from the first on, as it has channels; to read others, let `values` begin
    /// there.
    pub fn new(values: CudaView<'a, f32>, stride: usize) -> Self {
        Self { values, stride }
    }

    /// Address, numbers from a point to the next, and what tells the array's stream that it is in
    /// use.
    pub(super) fn place<'s>(
        &'s self,
        stream: &'s CudaStream,
    ) -> Result<(CUdeviceptr, u32, impl Drop + use<'s>), Error> {
        let stride = u32::try_from(self.stride).map_err(|_| {
            Error::from(ErrorKind::FieldLength {
                what: "numbers of a point",
                found: self.stride,
                expected: u32::MAX as usize,
            })
        })?;
        let (address, held) = self.values.device_ptr(stream);
        Ok((address, stride, held))
    }

    /// Whether `points` have `channels` each.
    pub(super) fn check(
        &self,
        backend: &GpuBackend,
        what: &'static str,
        points: usize,
        channels: usize,
    ) -> Result<(), Error> {
        backend.holds(what, self.values.stream().context().ordinal())?;
        let needed = match points {
            0 => 0,
            points => ((points - 1).saturating_mul(self.stride)).saturating_add(channels),
        };
        match self.values.len() >= needed && self.stride >= channels {
            true => Ok(()),
            false => Err(Error::from(ErrorKind::FieldLength {
                what,
                found: self.values.len(),
                expected: needed,
            })),
        }
    }
}

/// Channels on the device.
#[derive(Debug, Default)]
pub struct DeviceFields<'a> {
    /// Of every target; None where the kernel reads none.
    pub targets: Option<DeviceField<'a>>,
    /// Of every source.
    pub sources: Option<DeviceField<'a>>,
}

/// Use of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deliver {
    /// They overwrite what was there.
    #[default]
    Write,
    /// They are added to it, or the smaller or larger is kept, as the kernel's reduction says.
    Combine,
}

/// Where a traversal finds channels, and puts results.
#[derive(Debug, Clone, Copy)]
struct Channelled {
    targets: (CUdeviceptr, u32),
    sources: (CUdeviceptr, u32),
    results: CUdeviceptr,
    deliver: Deliver,
}

/// Buffers of a traversal that evaluates a pair kernel, kept between steps.
#[derive(Debug)]
pub struct PairScratch {
    target_fields: Buffer<f32>,
    source_fields: Buffer<f32>,
    sources: Buffer<[f32; 4]>,
    more: Buffer<[f32; 4]>,
    results: Buffer<f32>,
    counts: Buffer<u32>,
    counts_in_order: Buffer<u32>,
    scratch: Scratch,
    /// Before and after the last traversal, fields brought over and sorted.
    marks: Option<[CudaEvent; 2]>,
}

impl Default for PairScratch {
    fn default() -> Self {
        Self {
            target_fields: Buffer::new("fields of targets"),
            source_fields: Buffer::new("fields of sources"),
            sources: Buffer::new("sorted fields"),
            more: Buffer::new("sorted fields"),
            results: Buffer::new("results"),
            counts: Buffer::new("counts of neighbours"),
            counts_in_order: Buffer::new("counts of neighbours"),
            scratch: Scratch::default(),
            marks: None,
        }
    }
}

impl PairScratch {
    /// When the last traversal of a share began and ended, in milliseconds of the device since a
    /// mark; what comes before and after is copies and sorting. Waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    pub fn traversed(&self, since: &CudaEvent) -> Result<Option<[f32; 2]>, Error> {
        let Some([begin, end]) = &self.marks else {
            return Ok(None);
        };
        let at = |event: &CudaEvent| {
            let elapsed = since.elapsed_ms(event);
            elapsed.map_err(|error| Error::driver("cuEventElapsedTime", error))
        };
        Ok(Some([at(begin)?, at(end)?]))
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.target_fields.bytes()
            + self.source_fields.bytes()
            + self.sources.bytes()
            + self.more.bytes()
            + self.results.bytes()
            + self.counts.bytes()
            + self.counts_in_order.bytes()
            + self.scratch.bytes()
    }

    /// The buffers of counting: counts in sorted order, and in the caller's order.
    pub(super) fn counting(&mut self) -> ([&mut Buffer<u32>; 2], &mut Scratch) {
        let counts = [&mut self.counts, &mut self.counts_in_order];
        (counts, &mut self.scratch)
    }
}

impl GpuBackend {
    /// Evaluates a pair kernel for every target over its neighbours; `results` has as many channels
    /// per target as the kernel, in the caller's order.
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] with the kernel's own line numbers, [`ErrorKind::FieldLength`] and
    /// those of running a program.
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
        let PairScratch {
            target_fields,
            source_fields,
            ..
        } = scratch;
        target_fields.upload(&self.stream, fields.targets)?;
        source_fields.upload(&self.stream, fields.sources)?;
        let fields = [
            (target_fields.address(), program.targets as u32),
            (source_fields.address(), program.sources as u32),
        ];
        let to = Destination::whole(results);
        self.evaluate_to_host(of, (program, uniforms), fields, strategy, to, scratch)
    }

    /// Evaluates from channels at these addresses, so many numbers from a point to the next, and
    /// waits for the results.
    pub(super) fn evaluate_to_host<'r>(
        &self,
        of: PairOfPoints<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        [targets, sources]: [(CUdeviceptr, u32); 2],
        strategy: Strategy,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let all = to.memory.len();
        fits("results", all, of.targets.len() * program.outputs)?;
        let identity = program.reduce.identity();
        scratch.results.reserve(&self.stream, all)?;
        // Results that are not computed are those of targets without neighbours.
        if all > 0 && (of.share.is_some() || of.is_empty()) {
            let (grid, results) = (&self.shared.grid, scratch.results.address());
            grid.fill_values(&self.stream, results, all, identity)?;
        }
        if of.is_empty() {
            return to.deliver(&self.stream, &scratch.results);
        }
        let places = Channelled {
            targets,
            sources,
            results: scratch.results.address(),
            deliver: Deliver::Write,
        };
        self.evaluate_at(of, (program, uniforms), places, strategy, scratch)?;
        to.deliver(&self.stream, &scratch.results)
    }

    /// As [`evaluate`](Self::evaluate), from channels on the device into results on the device,
    /// without waiting for it. With strategies that launch kernels from kernels it waits for them.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate), and [`ErrorKind::OtherDevice`].
    pub fn evaluate_on_device(
        &self,
        of: PairOfPoints<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        fields: &DeviceFields<'_>,
        (results, deliver): (&mut CudaViewMut<'_, f32>, Deliver),
        strategy: Strategy,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let stream = &self.stream;
        self.holds("results", results.stream().context().ordinal())?;
        fits("results", results.len(), of.targets.len() * program.outputs)?;
        let sides = [
            (
                "fields of targets",
                &fields.targets,
                of.targets.len(),
                program.targets,
            ),
            (
                "fields of sources",
                &fields.sources,
                of.sources.len(),
                program.sources,
            ),
        ];
        let mut found = [(0, 0); 2];
        // The guards tell the streams that own the arrays how long they are in use here.
        let mut guards = Vec::with_capacity(2);
        for (place, (what, field, points, channels)) in found.iter_mut().zip(sides) {
            match field {
                _ if channels == 0 => {}
                None => fits(what, 0, points * channels)?,
                Some(field) => {
                    field.check(self, what, points, channels)?;
                    let (address, stride, guard) = field.place(stream)?;
                    *place = (address, stride);
                    guards.push(guard);
                }
            }
        }
        let [targets, sources] = found;
        let (results, _held) = results.device_ptr_mut(stream);
        let places = Channelled {
            targets,
            sources,
            results,
            deliver,
        };
        self.evaluate_at(of, (program, uniforms), places, strategy, scratch)
    }

    fn evaluate_at(
        &self,
        of: PairOfPoints<'_>,
        (program, uniforms): (&PairProgram, &[f32]),
        places: Channelled,
        strategy: Strategy,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        scratch.marks = None;
        if of.searching() == 0 {
            return Ok(());
        }
        let count = of.sources.len();
        if count == 0 {
            let (all, identity) = (
                of.targets.len() * program.outputs,
                program.reduce.identity(),
            );
            let grid = &self.shared.grid;
            return match places.deliver {
                Deliver::Combine => Ok(()),
                Deliver::Write => grid.fill_values(&self.stream, places.results, all, identity),
            };
        }
        let records = (program.sources + 2) / 4;
        let room = count + READ_AHEAD as usize;
        scratch.sources.reserve(&self.stream, room)?;
        scratch.more.reserve(&self.stream, room * records)?;
        let traversal = of.traversal(strategy, Work::Pairs(program.clone()), false)?;
        let kernels = self
            .shared
            .traversals
            .get(&self.shared.modules, &traversal)?;
        let (sources, more) = (scratch.sources.address(), scratch.more.address());
        let points = of.sources.layout();
        kernels.gather(&self.stream, &points, places.sources, sources, more)?;
        let mut outlet = Outlet {
            sources,
            more,
            target_fields: places.targets.0,
            target_stride: places.targets.1,
            results: places.results,
            combine: u32::from(places.deliver == Deliver::Combine),
            ..Outlet::default()
        };
        for (to, from) in outlet.uniforms.iter_mut().zip(uniforms) {
            *to = *from;
        }
        if of.share.is_none() {
            return self.traverse(&kernels, of, &outlet, &mut scratch.scratch);
        }
        let begin = self.mark()?;
        self.traverse(&kernels, of, &outlet, &mut scratch.scratch)?;
        scratch.marks = Some([begin, self.mark()?]);
        Ok(())
    }
}
