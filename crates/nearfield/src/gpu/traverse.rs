//! Pair kernels over the sets of an engine, on the GPU.

use super::{COPIED, GpuSide, State};
use crate::{Error, PairKernel, Traversal};
use nearfield_cpu::{CpuLane, Fields, Output};
use nearfield_gpu::{self as gpu, GpuLane, HostBuffer, PairFields, PairProgram};
use nearfield_pairs::{Channels, Field};
use rayon::prelude::*;

/// Results that one thread hands over at a time.
const MIN_LEN: usize = 1 << 13;

impl State {
    /// Room for so many results, kept from before where it suffices.
    pub(super) fn room(&mut self, len: usize) -> Result<HostBuffer<f32>, gpu::Error> {
        self.lane.host_room(self.results.take(), len)
    }
}

impl GpuSide {
    /// Whether a kernel has CUDA text that compiles; true when the GPU has failed, as it then does
    /// not matter.
    pub(crate) fn takes<K: PairKernel>(&self, kernel: &K) -> bool {
        let taken = self.attempt(|state| {
            let State { lane, taken, .. } = state;
            let known = taken.entry(std::any::type_name::<K>()).or_insert_with(|| {
                let compiled = PairProgram::of(kernel)
                    .and_then(|(program, _)| lane.load(&program.program()).map(drop));
                if let Err(error) = &compiled {
                    tracing::warn!(%error, "the CPU lane keeps this kernel for itself");
                }
                compiled.is_ok()
            });
            Ok(*known)
        });
        taken.unwrap_or(true)
    }
}

impl<K: PairKernel> Traversal<'_, K> {
    /// Evaluates the kernel on the GPU; gives `output` back when the CPU lane has to.
    pub(crate) fn run_on_gpu<'o>(
        &self,
        output: Output<'o, K::Output>,
    ) -> Result<Option<Output<'o, K::Output>>, Error> {
        let engine = self.engine;
        let Some(side) = engine.gpu_for_lists() else {
            return Ok(Some(output));
        };
        let (targets, sources) = (engine.points(self.targets)?, engine.points(self.sources)?);
        self.fields.check::<K>(targets, sources)?;
        let (Output::Write(values) | Output::Combine(values)) = &output;
        if values.len() != targets {
            // The CPU lane says what is wrong.
            return Ok(Some(output));
        }
        // A kernel without CUDA text is the caller's mistake, not the GPU's.
        let (program, uniforms) = PairProgram::of(self.kernel).map_err(Error::Gpu)?;
        let mut refused = None;
        let mut output = Some(output);
        side.attempt(|state| {
            let mut results = state.room(targets * K::Output::COUNT)?;
            // While positions are on their way.
            let (mut staged, points) = (std::mem::take(&mut state.staged), [targets, sources]);
            staged.fill::<K>(&state.lane, &engine.lane, self.fields, points)?;
            let strategy = state.sort(engine)?;
            let mut scratch = std::mem::take(&mut state.scratch);
            let fields = staged.fields::<K>(points);
            let name = (&program, self.targets, self.sources);
            let kernel = std::any::type_name::<K>();
            let span = tracing::debug_span!("gpu.evaluate", targets, kernel).entered();
            let evaluated = state.booked(name, |state| {
                let Some(pair) = state.pair(self.targets.0, self.sources.0) else {
                    return Ok(());
                };
                state.lane.evaluate(
                    pair,
                    (&program, &uniforms),
                    fields,
                    strategy,
                    &mut results[..targets * K::Output::COUNT],
                    &mut scratch,
                )
            });
            drop(span);
            (state.scratch, state.staged) = (scratch, staged);
            match evaluated {
                Err(error @ gpu::Error::Compile { .. }) => refused = Some(error),
                Err(error) => return Err(error),
                Ok(()) => {
                    if let Some(output) = output.take() {
                        engine.lane.install(|| deliver::<K>(&results, output));
                    }
                }
            }
            state.results = Some(results);
            Ok(())
        });
        match refused {
            Some(error) => Err(Error::Gpu(error)),
            // Still there when the GPU has failed.
            None => Ok(output),
        }
    }
}

/// Results of the device into the caller's values.
fn deliver<K: PairKernel>(results: &[f32], output: Output<'_, K::Output>) {
    let channels = K::Output::COUNT;
    let result = |target: usize, k: usize| results[target * channels + k];
    match output {
        Output::Write(values) => {
            let values = values.par_iter_mut().with_min_len(MIN_LEN).enumerate();
            values.for_each(|(target, value)| *value = K::Output::read(|k| result(target, k)));
        }
        Output::Combine(values) => {
            let values = values.par_iter_mut().with_min_len(MIN_LEN).enumerate();
            values.for_each(|(target, value)| {
                let mut before = [0.0; 16];
                value.write(|k, channel| before[k] = channel);
                *value = K::Output::read(|k| K::REDUCE.combine(before[k], result(target, k)));
            });
        }
    }
}

/// The channels of every point side by side.
fn interleave(fields: &[Field<'_>], channels: usize, to: &mut [f32]) {
    if let [field] = fields {
        let to = to.par_chunks_mut(COPIED);
        to.zip(field.values().par_chunks(COPIED))
            .for_each(|(to, from)| gpu::copy_for_gpu(to, from));
        return;
    }
    let points = to.par_chunks_mut(channels.max(1)).with_min_len(MIN_LEN);
    points.enumerate().for_each(|(point, to)| {
        let mut first = 0;
        for field in fields {
            let width = field.channels();
            let from = &field.values()[point * width..(point + 1) * width];
            to[first..first + width].copy_from_slice(from);
            first += width;
        }
    });
}

/// Channels of targets and sources, in memory that the GPU reads directly.
#[derive(Debug, Default)]
pub(super) struct Staged([Option<HostBuffer<f32>>; 2]);

impl Staged {
    /// Puts the channels of so many targets and sources there.
    pub(super) fn fill<K: PairKernel>(
        &mut self,
        lane: &GpuLane,
        cpu: &CpuLane,
        fields: Fields<'_>,
        points: [usize; 2],
    ) -> Result<(), gpu::Error> {
        let sides = [
            (fields.targets, K::Target::COUNT),
            (fields.sources, K::Source::COUNT),
        ];
        for (side, (fields, channels)) in sides.into_iter().enumerate() {
            let len = points[side] * channels;
            let mut buffer = lane.host_room(self.0[side].take(), len)?;
            cpu.install(|| interleave(fields, channels, &mut buffer[..len]));
            self.0[side] = Some(buffer);
        }
        Ok(())
    }

    /// What was put there last.
    pub(super) fn fields<K: PairKernel>(&self, points: [usize; 2]) -> PairFields<'_> {
        let side = |side: usize, channels: usize| {
            let buffer = self.0[side].as_deref();
            buffer.map_or(&[][..], |buffer| &buffer[..points[side] * channels])
        };
        PairFields {
            targets: side(0, K::Target::COUNT),
            sources: side(1, K::Source::COUNT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_interleaved_in_their_order() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let fields = [Field::from(&velocity), Field::from(&mass)];
        let mut found = [0.0; 8];
        interleave(&fields, 4, &mut found);
        assert_eq!(found, [1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0]);
        let mut found = [0.0; 6];
        interleave(&fields[..1], 3, &mut found);
        assert_eq!(found, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        interleave(&[], 0, &mut []);
    }
}
