//! Pair kernels over the sets of an engine, on the GPU.

use super::{GpuSide, State, landing::Landing, pieces::Pieces};
use crate::{Engine, Error, PairKernel, Traversal, engine::traverse::put};
use nearfield_cpu::{CpuBackend, Fields, Output};
use nearfield_gpu::{
    self as gpu, Destination, GpuBackend, HostBuffer, PairProgram, StagedField, StagedFields,
    StagedSides,
};
use nearfield_pairs::{Channels, Field};

impl State {
    /// Room for so many results, kept from before where it suffices.
    pub(super) fn room(&mut self, len: usize) -> Result<HostBuffer<f32>, gpu::Error> {
        self.backend.host_room(self.results.take(), len)
    }
}

impl GpuSide {
    /// Asks the device to sort, and sends it fields meanwhile, for a part of a work that both backends then
    /// [begin](Self::evaluate_part); gives the number of the fields. Should the GPU fail, or be in use, that
    /// shows there.
    pub(crate) fn prepare_part(&self, engine: &Engine, fields: Fields<'_>) -> u64 {
        let prepared = self.attempt(|state| {
            let _span = tracing::debug_span!("engine.prepare").entered();
            state.begin_sort_by(engine, engine.gpu_subdivision(&engine.bounds()))?;
            state.staged.fill(&state.backend, &engine.backend, fields)?;
            Ok(state.staged.number())
        });
        prepared.unwrap_or_default()
    }

    /// Whether a kernel has CUDA text that compiles; true when the GPU has failed or is in use, as it
    /// then does not matter.
    pub(crate) fn takes<K: PairKernel>(&self, kernel: &K) -> bool {
        // The kernel is the caller's code, which nothing is held for.
        let program = PairProgram::of(kernel);
        let taken = self.attempt(|state| {
            let State { backend, taken, .. } = state;
            let known = taken.entry(std::any::type_name::<K>()).or_insert_with(|| {
                let compiled =
                    program.and_then(|(program, _)| backend.load(&program.program()).map(drop));
                compiled.err().map(|error| {
                    tracing::warn!(%error, "the CPU backend keeps this kernel for itself");
                    error.to_string()
                })
            });
            Ok(known.is_none())
        });
        taken.unwrap_or(true)
    }
}

impl<K: PairKernel> Traversal<'_, K> {
    /// Evaluates the kernel on the GPU; gives `output` back when the CPU backend has to.
    pub(crate) fn run_on_gpu<'o>(
        &self,
        output: Output<'o, K::Output>,
    ) -> Result<Option<Output<'o, K::Output>>, Error> {
        let engine = self.engine;
        let Some(side) = engine.gpu_for_jobs() else {
            return Ok(Some(output));
        };
        let (targets, sources) = (engine.points(self.targets)?, engine.points(self.sources)?);
        self.fields.check::<K>(targets, sources)?;
        let (Output::Write(values) | Output::Combine(values)) = &output;
        if values.len() != targets {
            // The CPU backend says what is wrong.
            return Ok(Some(output));
        }
        // A kernel without CUDA text is the caller's mistake, not the GPU's.
        let (program, uniforms) = PairProgram::of(self.kernel).map_err(Error::Gpu)?;
        let mut refused = None;
        let mut output = output;
        let done = side.attempt(|state| {
            let mut results = state.room(targets * K::Output::COUNT)?;
            let strategy = state.begin_sort(engine)?;
            // Fields come while positions are sorted.
            state
                .staged
                .fill(&state.backend, &engine.backend, self.fields)?;
            state.finish_sort(engine)?;
            let mut staged = std::mem::take(&mut state.staged);
            let mut scratch = std::mem::take(&mut state.scratch);
            let name = (&program, self.targets, self.sources);
            let kernel = std::any::type_name::<K>();
            let span = tracing::debug_span!("gpu.evaluate", targets, kernel).entered();
            let evaluated = state.booked(name, |state, end| {
                let State { backend, .. } = &*state;
                let Some(pair) = state.pair(self.targets.0, self.sources.0) else {
                    return Ok(false);
                };
                let (values, combine) = match &mut output {
                    Output::Write(values) => (values, false),
                    Output::Combine(values) => (values, true),
                };
                let landing = Landing::new(values, K::Output::COUNT);
                let results = &mut results[..targets * K::Output::COUNT];
                let to = Destination::in_pieces(results, landing.piece(), |arrivals| {
                    *end = Some(backend.mark()?);
                    let put = |from: &[f32], to: &mut [_]| put_all::<K>(from, to, combine);
                    // What was combined with some of the results cannot be done again.
                    landing.hand_over((&engine.backend, span), arrivals, combine, put)
                });
                let program = (&program, &uniforms[..]);
                backend
                    .evaluate_staged(pair, program, staged.fields(), strategy, to, &mut scratch)
                    .map(|()| true)
            });
            (state.scratch, state.staged, state.results) = (scratch, staged, Some(results));
            match evaluated {
                Err(error @ gpu::Error::Compile { .. }) => {
                    refused = Some(error);
                    Ok(false)
                }
                evaluated => evaluated,
            }
        });
        match refused {
            Some(error) => Err(Error::Gpu(error)),
            // Where the GPU has failed the CPU backend writes all values.
            None => Ok((done != Some(true)).then_some(output)),
        }
    }
}

/// Results of some targets into the caller's values.
fn put_all<K: PairKernel>(results: &[f32], values: &mut [K::Output], combine: bool) {
    let results = results.chunks_exact(K::Output::COUNT);
    for (value, result) in values.iter_mut().zip(results) {
        put::<K>(value, K::Output::read(|k| result[k]), combine);
    }
}

/// Fields on their way to the device, through memory that the GPU reads directly.
#[derive(Debug, Default)]
pub(super) struct Staged {
    copy: Option<HostBuffer<f32>>,
    on_device: StagedFields,
    /// Tells what was sent last from what was before, from 1 on.
    number: u64,
    targets: Vec<StagedField>,
    sources: Vec<StagedField>,
}

impl Staged {
    /// Sends the fields of targets and sources to the device, each once.
    pub(super) fn fill(
        &mut self,
        backend: &GpuBackend,
        cpu: &CpuBackend,
        fields: Fields<'_>,
    ) -> Result<(), gpu::Error> {
        self.number += 1;
        let (mut all, mut len) = (Vec::new(), 0);
        self.targets.clear();
        self.sources.clear();
        for (fields, staged) in [
            (fields.targets, &mut self.targets),
            (fields.sources, &mut self.sources),
        ] {
            staged.extend(fields.iter().map(|field| place(field, &mut all, &mut len)));
        }
        let bytes = size_of::<f32>() * len;
        let _span = tracing::debug_span!("gpu.upload", bytes).entered();
        // The memory may be in use until the device says that it expects others.
        backend.expect_fields(&mut self.on_device, len)?;
        let mut copy = backend.host_room(self.copy.take(), len)?;
        let pieces = Pieces::new(&all, &mut copy, |_| ());
        let sent = pieces.send(cpu, |first, numbers| {
            backend.receive_fields(&mut self.on_device, first, numbers)
        });
        self.copy = Some(copy);
        sent
    }

    /// The number of what was sent last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What was sent last.
    pub(super) fn fields(&mut self) -> (&mut StagedFields, StagedSides<'_>) {
        let Self {
            on_device,
            targets,
            sources,
            ..
        } = self;
        (on_device, StagedSides { targets, sources })
    }

    /// Bytes held on the device.
    pub(super) fn bytes(&self) -> usize {
        self.on_device.bytes()
    }
}

/// Where a field comes to lie behind `all` the others, `len` numbers, unless it is one of them.
fn place<'a>(field: &Field<'a>, all: &mut Vec<&'a [f32]>, len: &mut usize) -> StagedField {
    let (values, channels) = (field.values(), field.channels());
    let mut first = 0;
    for known in all.iter() {
        if std::ptr::eq(*known, values) {
            return StagedField { first, channels };
        }
        first += known.len();
    }
    all.push(values);
    *len += values.len();
    StagedField { first, channels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_sent_once() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let (mut all, mut len) = (Vec::new(), 0);
        let fields = [
            Field::from(&mass),
            Field::from(&velocity),
            Field::from(&mass),
        ];
        let placed = fields
            .each_ref()
            .map(|field| place(field, &mut all, &mut len));
        let of = |first, channels| StagedField { first, channels };
        assert_eq!(placed, [of(0, 1), of(2, 3), of(0, 1)]);
        assert_eq!(
            (all.concat(), len),
            (vec![7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8)
        );
    }
}
