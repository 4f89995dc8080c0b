//! Pair kernels over the sets of an engine, on the GPU.

use super::State;
use crate::{Error, PairKernel, Traversal};
use nearfield_cpu::Output;
use nearfield_gpu::{self as gpu, HostBuffer, PairFields, PairProgram};
use nearfield_pairs::{Channels, Field};
use rayon::prelude::*;
use std::borrow::Cow;

/// Results that one thread hands over at a time.
const MIN_LEN: usize = 1 << 13;

impl State {
    /// Room for so many results, kept from before where it suffices.
    pub(super) fn room(&mut self, len: usize) -> Result<HostBuffer<f32>, gpu::Error> {
        match self.results.take().filter(|results| results.len() >= len) {
            Some(results) => Ok(results),
            None => self.lane.host_buffer(len + len / 8),
        }
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
        let of_targets = interleaved(self.fields.targets, targets, K::Target::COUNT);
        let of_sources = interleaved(self.fields.sources, sources, K::Source::COUNT);
        let mut refused = None;
        let mut output = Some(output);
        side.attempt(|state| {
            let strategy = state.sort(engine)?;
            let mut results = state.room(targets * K::Output::COUNT)?;
            let mut scratch = std::mem::take(&mut state.scratch);
            let fields = PairFields {
                targets: &of_targets,
                sources: &of_sources,
            };
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
            state.scratch = scratch;
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

/// The channels of every point side by side; copied only when they come from several fields.
pub(super) fn interleaved<'a>(
    fields: &[Field<'a>],
    points: usize,
    channels: usize,
) -> Cow<'a, [f32]> {
    if let [field] = fields {
        return Cow::Borrowed(field.values());
    }
    let mut values = vec![0.0; points * channels];
    let mut first = 0;
    for field in fields {
        let width = field.channels();
        for (to, from) in values
            .chunks_mut(channels)
            .zip(field.values().chunks(width))
        {
            to[first..first + width].copy_from_slice(from);
        }
        first += width;
    }
    Cow::Owned(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_interleaved_in_their_order() {
        let velocity = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let mass = [7.0f32, 8.0];
        let fields = [Field::from(&velocity), Field::from(&mass)];
        let found = interleaved(&fields, 2, 4);
        assert_eq!(*found, [1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0]);
        assert!(matches!(interleaved(&fields[..1], 2, 3), Cow::Borrowed(_)));
        assert!(interleaved(&[], 2, 0).is_empty());
    }
}
