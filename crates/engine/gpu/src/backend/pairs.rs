//! Pair kernels fused into a traversal.
//!
//! The kernel's CUDA text is compiled into the traversal, so the loop over candidates calls no
//! function. Channels of the sources are first brought into sorted order: position and first
//! channel of a source are one load of 16 bytes, as is every further group of four. Targets read
//! their channels once, from the caller's order, and write results there, so results need no pass
//! of their own.
//!
//! ```text
//!   sources[k] = (x, y, z, c0)                       k: rank of the source
//!   more[k·R + n] = (c4n+1, c4n+2, c4n+3, c4n+4)      n < R = (channels + 2) / 4
//! ```
//!
//! A kernel of at most one channel is evaluated for every candidate and the result masked: all that
//! it reads has been loaded for the distance anyway. With more channels only neighbours load them.
//!
//! # Where fields come from
//!
//! Fields arrive in one of three ways: from memory of the host ([`GpuBackend::evaluate`]), from
//! arrays of the device ([`GpuBackend::evaluate_on_device`]), or staged piece by piece beside other
//! work ([`GpuBackend::evaluate_staged`]). The three meet in `evaluate_at`, which knows only
//! addresses, and serves searches and stored lists alike. Before it is called, the lengths of all
//! arrays have been checked against the sets and the kernel.

use super::{
    device_fields::{Channels, DeviceFields},
    gpu::{GpuBackend, elapsed},
    stored::{ListedPairs, VisitLists},
    walk::{PairOfPoints, Scratch},
};
use crate::constants::READ_AHEAD;
use crate::{
    error::{Error, fits},
    handles::{DeviceViewMut, Event},
    launch::{Outlet, StridedChannels, Traverse},
    memory::{Arrivals, Buffer, Destination, kept_buffers},
    traversal::{PairProgram, Strategy, Work},
};
use cudarc::driver::sys::CUdeviceptr;

/// A pair kernel that a traversal evaluates: its program, and the numbers that this call passes to
/// it. Calls with other numbers run the same machine code.
#[derive(Debug, Clone, Copy)]
pub struct PairCall<'a> {
    /// Text and channels of the kernel.
    pub program: &'a PairProgram,
    /// Its parameters, as [`PairProgram::of`] returns them.
    pub uniforms: &'a [f32],
}

/// Channels of the points in memory of the host, those of one point side by side, in the caller's
/// order. Both are uploaded before the traversal; sources that are the targets are uploaded twice.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairFields<'a> {
    /// Of every target.
    pub targets: &'a [f32],
    /// Of every source.
    pub sources: &'a [f32],
}

/// Use of results that are on the device already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deliver {
    /// They overwrite what was there.
    #[default]
    Write,
    /// They are added to it, or the smaller or larger is kept, as the kernel's reduction says.
    Combine,
}

/// Results on the device, and what is done with those that are there already.
#[derive(Debug)]
pub struct DeviceResults<'a, 'v> {
    /// Channels of a result, those of one target side by side, in the caller's order.
    pub values: &'a mut DeviceViewMut<'v, f32>,
    /// Overwrite or combine.
    pub deliver: Deliver,
}

/// How a traversal finds its pairs.
#[derive(Debug)]
pub(super) enum Visit {
    /// By a search, fused with the kernel.
    Strategy(Strategy),
    /// Over lists.
    Lists(Box<VisitLists>),
}

/// Where a traversal puts results.
#[derive(Debug, Clone, Copy)]
struct ResultsAt {
    /// Results of the first target.
    address: CUdeviceptr,
    /// Overwrite or combine.
    deliver: Deliver,
}

kept_buffers! {
    /// Buffers of a traversal that evaluates a pair kernel, kept between steps.
    pub struct PairScratch {
        /// Channels of the targets: from the host, or from several fields of the device.
        target_fields: f32 = "fields of targets",
        /// Channels of the sources, likewise.
        source_fields: f32 = "fields of sources",
        /// Position and first channel of every sorted source.
        sources: [f32; 4] = "sorted fields",
        /// Further channels of the sorted sources, four at a time.
        more: [f32; 4] = "sorted fields",
        /// Results for the host, in the caller's order.
        results: f32 = "results",
        /// Neighbours of every target for the host, in the caller's order.
        counts: u32 = "counts of neighbours",
    }
    with {
        /// Of the traversal.
        scratch: Scratch,
        /// Before and after the last traversal, fields brought over and sorted.
        marks: Option<[Event; 2]>,
    }
}

impl PairScratch {
    /// When the last traversal of a share began and ended, in milliseconds of the device since a
    /// mark; what comes before and after is copies and sorting. Waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`].
    ///
    /// [`ErrorKind::Driver`]: crate::ErrorKind::Driver
    pub fn traversed(&self, since: &Event) -> Result<Option<[f32; 2]>, Error> {
        let Some([begin, end]) = &self.marks else {
            return Ok(None);
        };
        Ok(Some([elapsed(since, begin)?, elapsed(since, end)?]))
    }

    /// Bytes held on the device.
    pub fn bytes(&self) -> usize {
        self.held() + self.scratch.held()
    }

    /// The buffers of counting: counts for the host, and those of the traversal.
    pub(super) fn counting(&mut self) -> (&mut Buffer<u32>, &mut Scratch) {
        (&mut self.counts, &mut self.scratch)
    }
}

impl GpuBackend {
    /// Evaluates a pair kernel for every target over its neighbours, and waits; `results` has as
    /// many channels per target as the kernel, in the caller's order.
    ///
    /// ```no_run
    /// use nearfield_gpu::{
    ///     Error, GpuBackend, PairCall, PairFields, PairOfPoints, PairProgram, PairScratch,
    ///     Strategy,
    /// };
    /// use nearfield_pairs::{SphDensity, WendlandC2};
    ///
    /// /// Densities of particles with these masses, smoothed over the radius of the lattice.
    /// fn densities(
    ///     backend: &GpuBackend,
    ///     of: PairOfPoints<'_>,
    ///     radius: f32,
    ///     masses: &[f32],
    /// ) -> Result<Vec<f32>, Error> {
    ///     let kernel = SphDensity {
    ///         kernel: WendlandC2::with_support(radius),
    ///     };
    ///     let (program, uniforms) = PairProgram::of(&kernel)?;
    ///     let call = PairCall {
    ///         program: &program,
    ///         uniforms: &uniforms,
    ///     };
    ///     // The kernel reads a mass of every source and nothing of a target.
    ///     let fields = PairFields {
    ///         targets: &[],
    ///         sources: masses,
    ///     };
    ///     let mut found = vec![0.0; of.targets.len()];
    ///     let scratch = &mut PairScratch::default();
    ///     backend.evaluate(of, call, fields, Strategy::Flat, &mut found, scratch)?;
    ///     Ok(found)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] with the kernel's own line numbers, [`ErrorKind::FieldLength`] and
    /// those of running a program.
    ///
    /// [`ErrorKind::Compile`]: crate::ErrorKind::Compile
    /// [`ErrorKind::FieldLength`]: crate::ErrorKind::FieldLength
    pub fn evaluate(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        fields: PairFields<'_>,
        strategy: Strategy,
        results: &mut [f32],
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let upload = |what, buffer: &mut Buffer<f32>, values: &[f32], points, channels| {
            fits(what, values.len(), points * channels)?;
            buffer.upload(&self.stream, values)?;
            Ok::<_, Error>(StridedChannels {
                address: buffer.address(),
                stride: channels as u32,
                channels: channels as u32,
            })
        };
        let program = call.program;
        let (targets, sources) = (of.targets.len(), of.sources.len());
        let (to, from) = (&mut scratch.target_fields, fields.targets);
        let targets = upload("fields of targets", to, from, targets, program.targets)?;
        let (to, from) = (&mut scratch.source_fields, fields.sources);
        let sources = upload("fields of sources", to, from, sources, program.sources)?;
        let channels = Channels { targets, sources };
        let to = Destination::whole(results);
        let visit = Visit::Strategy(strategy);
        self.evaluate_to_host(of, call, channels, visit, to, scratch)
    }

    /// Evaluates from channels on the device, and delivers the results to the host.
    ///
    /// # Errors
    /// [`ErrorKind::FieldLength`] when `to` has another length than the results, and those of
    /// running a program.
    ///
    /// [`ErrorKind::FieldLength`]: crate::ErrorKind::FieldLength
    pub(super) fn evaluate_to_host<'r>(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        channels: Channels,
        visit: Visit,
        to: Destination<'r, f32, impl FnOnce(&mut Arrivals<'r, f32>) -> Result<(), Error>>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let all = to.memory.len();
        fits("results", all, of.targets.len() * call.program.outputs)?;
        scratch.results.reserve(&self.stream, all)?;
        let results = ResultsAt {
            address: scratch.results.address(),
            deliver: Deliver::Write,
        };
        // Results that are not computed are those of targets without neighbours.
        if all > 0 && (of.share.is_some() || of.is_empty()) {
            let identity = call.program.reduce.identity();
            (self.shared.grid).fill_values(&self.stream, results.address, all, identity)?;
        }
        if !of.is_empty() {
            self.evaluate_at(of, call, channels, results, visit, scratch)?;
        }
        to.deliver(&self.stream, &scratch.results)
    }

    /// As [`evaluate`](Self::evaluate), from channels on the device into results on the device,
    /// without waiting for it. With strategies that launch kernels from kernels it waits for them.
    ///
    /// ```no_run
    /// use nearfield_gpu::{
    ///     Deliver, DeviceField, DeviceFields, DeviceResults, Error, GpuBackend, PairCall,
    ///     PairOfPoints, PairScratch, Strategy, DeviceBuffer,
    /// };
    ///
    /// /// Adds the sums of a kernel that reads one number of every source.
    /// fn add(
    ///     backend: &GpuBackend,
    ///     of: PairOfPoints<'_>,
    ///     call: PairCall<'_>,
    ///     charges: &DeviceBuffer<f32>,
    ///     sums: &mut DeviceBuffer<f32>,
    /// ) -> Result<(), Error> {
    ///     let fields = DeviceFields {
    ///         targets: Vec::new(),
    ///         sources: vec![DeviceField::new(charges.as_view(), 1)],
    ///     };
    ///     let results = DeviceResults {
    ///         values: &mut sums.as_view_mut(),
    ///         deliver: Deliver::Combine,
    ///     };
    ///     let scratch = &mut PairScratch::default();
    ///     backend.evaluate_on_device(of, call, &fields, results, Strategy::Flat, scratch)
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`evaluate`](Self::evaluate), and [`ErrorKind::OtherDevice`].
    ///
    /// [`ErrorKind::OtherDevice`]: crate::ErrorKind::OtherDevice
    pub fn evaluate_on_device(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        fields: &DeviceFields<'_>,
        results: DeviceResults<'_, '_>,
        strategy: Strategy,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let visit = Visit::Strategy(strategy);
        self.evaluate_fields(of, call, fields, results, visit, scratch)
    }

    /// Evaluates a pair kernel for every target over the sources that its list names, without
    /// waiting. Of lists with a skin that may miss a pair nothing is computed, and `results` stay
    /// as they were.
    ///
    /// # Errors
    /// [`ErrorKind::OtherLists`](crate::ErrorKind::OtherLists) when the sets were sorted since the
    /// lists were found, and those of [`evaluate_on_device`](Self::evaluate_on_device).
    pub fn evaluate_over_lists(
        &self,
        mut over: ListedPairs<'_>,
        call: PairCall<'_>,
        fields: &DeviceFields<'_>,
        results: DeviceResults<'_, '_>,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let visit = self.visit_lists(&mut over)?;
        self.evaluate_fields(over.of, call, fields, results, visit, scratch)
    }

    /// The way over lists, whose entries are brought to sorted places if they are not there.
    ///
    /// # Errors
    /// As [`evaluate_over_lists`](Self::evaluate_over_lists).
    pub(super) fn visit_lists(&self, over: &mut ListedPairs<'_>) -> Result<Visit, Error> {
        if over.of.is_empty() {
            return Ok(Visit::Strategy(Strategy::Flat));
        }
        self.find_slots(over)?;
        Ok(Visit::Lists(Box::new(over.visit()?)))
    }

    /// Evaluates from fields on the device into results on the device, by a search or over lists.
    ///
    /// # Errors
    /// As [`evaluate_on_device`](Self::evaluate_on_device).
    fn evaluate_fields(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        fields: &DeviceFields<'_>,
        results: DeviceResults<'_, '_>,
        visit: Visit,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let (stream, program) = (&self.stream, call.program);
        let DeviceResults { values, deliver } = results;
        self.holds("results", values.ordinal())?;
        fits("results", values.len(), of.targets.len() * program.outputs)?;
        // The guards tell the streams that own the arrays how long they are in use here.
        let placed = fields.place(self, of, program)?;
        let to = [&mut scratch.target_fields, &mut scratch.source_fields];
        let channels = self.side_by_side(&placed, of, to)?;
        let (address, _held) = values.device_ptr_mut(stream);
        let results = ResultsAt { address, deliver };
        self.evaluate_at(of, call, channels, results, visit, scratch)
    }

    /// Sorts the channels of the sources, and runs the traversal. Targets that are not searched for
    /// are left alone.
    fn evaluate_at(
        &self,
        of: PairOfPoints<'_>,
        call: PairCall<'_>,
        channels: Channels,
        results: ResultsAt,
        visit: Visit,
        scratch: &mut PairScratch,
    ) -> Result<(), Error> {
        let program = call.program;
        scratch.marks = None;
        if of.searching() == 0 {
            return Ok(());
        }
        let count = of.sources.len();
        if count == 0 {
            let all = of.targets.len() * program.outputs;
            let (grid, identity) = (&self.shared.grid, program.reduce.identity());
            return match results.deliver {
                Deliver::Combine => Ok(()),
                Deliver::Write => grid.fill_values(&self.stream, results.address, all, identity),
            };
        }
        // The first channel lies beside the position; the others follow four at a time.
        let records = (program.sources + 2) / 4;
        let room = count + READ_AHEAD as usize;
        scratch.sources.reserve(&self.stream, room)?;
        scratch.more.reserve(&self.stream, room * records)?;
        let work = Work::Pairs(program.clone());
        let traversal = match &visit {
            Visit::Strategy(strategy) => of.traversal(*strategy, work, false),
            Visit::Lists(lists) => lists.traversal(&of, work),
        };
        let kernels = self.traversal(traversal?)?;
        let (mut sources, more) = (scratch.sources.address(), scratch.more.address());
        let points = match &visit {
            Visit::Strategy(_) => of.sources.layout(),
            Visit::Lists(lists) => lists.walk(&of).walk.sources,
        };
        if program.sources == 0 && matches!(visit, Visit::Lists(_)) {
            // Nothing is read behind the last, nor beside the position.
            sources = points.at;
        } else {
            kernels.gather(&self.stream, &points, channels.sources, sources, more)?;
        }
        let mut outlet = Outlet {
            sources,
            more,
            target_fields: channels.targets.address,
            target_stride: channels.targets.stride,
            results: results.address,
            combine: u32::from(results.deliver == Deliver::Combine),
            ..Outlet::default()
        };
        for (to, from) in outlet.uniforms.iter_mut().zip(call.uniforms) {
            *to = *from;
        }
        if let (Visit::Lists(lists), Traverse::OverLists(kernel)) = (&visit, &kernels.traverse) {
            let (walk, outlet) = (lists.walk(&of), lists.outlet(outlet));
            return kernel.run(&self.stream, &walk, &outlet, lists.stored());
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
