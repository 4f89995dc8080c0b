//! A pair kernel as the GPU runs it: CUDA text, the name of its function, and the number of its
//! channels.
//!
//! The text is fused into a traversal at compile time, so the inner loop calls no function pointer.
//! Two programs with equal texts, names and channels are one entry of the table of loaded programs.
//! Uniforms are no part of it: they travel with every launch, so changing one compiles nothing.
//!
//! The text defines a function of the signature `(uniforms, pair, target, source, result)` in CUDA
//! C++; the traversal calls it as `pair`. [`PairProgram::user_text`] adds that name behind the text
//! if the kernel's function has another one, so line numbers of compile errors are the user's own.
//!
//! Numbers of channels become macros of the program. They are checked here against limits that keep
//! every product with a number of points within 64 bits, so no later room computes with numbers
//! that overflow.

use crate::{
    error::{Error, ErrorKind},
    launch::MAX_UNIFORMS,
};
use nearfield_pairs::{Channels, Cuda, PairKernel, Reduce};
use std::{
    borrow::Cow,
    fmt::Write,
    hash::{Hash, Hasher},
};

/// Text and channels from which a pair kernel is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairProgram {
    /// Name of the text in compile errors.
    pub(crate) name: Cow<'static, str>,
    /// CUDA C++.
    pub(crate) text: Cow<'static, str>,
    /// Function of the text that evaluates a pair.
    pub(crate) function: Cow<'static, str>,
    /// Channels that the function reads of a target.
    pub(crate) targets: usize,
    /// Channels that the function reads of a source.
    pub(crate) sources: usize,
    /// Channels of a result.
    pub(crate) outputs: usize,
    /// How the results of the pairs of a target are put together.
    pub(crate) reduce: Reduce,
    /// Type of the kernel, if the library translated its text: errors of the compiler then say that
    /// the translation is at fault, and name the type, because the user never saw the text.
    pub(crate) translated: Option<String>,
}

/// Channels of a point or a result that programs are made for: what is multiplied by the number of
/// points then fits into 64 bits. No kernel comes near.
const MAX_CHANNELS: usize = 1 << 16;

impl Hash for PairProgram {
    /// Of the text the length alone: programs are looked up at every step, and few have the same
    /// names.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.function, self.text.len()).hash(state);
    }
}

impl PairProgram {
    /// The CUDA text of a kernel, with the number of its channels.
    ///
    /// # Errors
    /// [`ErrorKind::NoCuda`] when it has none, [`ErrorKind::TooManyUniforms`] above 160 and
    /// [`ErrorKind::TooManyChannels`] above 65,536.
    pub fn of<K: PairKernel>(kernel: &K) -> Result<(Self, Vec<f32>), Error> {
        const {
            assert!(
                K::Output::FLOATS,
                "results of a pair kernel are combined as f32: integers cannot be among them"
            );
        };
        let name = std::any::type_name::<K>();
        let cuda = kernel.cuda().ok_or_else(|| {
            Error::from(ErrorKind::NoCuda {
                kernel: name.to_owned(),
            })
        })?;
        let channels = [K::Target::COUNT, K::Source::COUNT, K::Output::COUNT];
        Self::with_channels(name, cuda, channels, K::REDUCE)
    }

    /// A text that reads `channels[0]` channels of a target and `channels[1]` of a source and gives
    /// `channels[2]`, for kernels that are known at run time only. Errors call it by the name of
    /// the text.
    ///
    /// # Errors
    /// [`ErrorKind::TooManyUniforms`] and [`ErrorKind::TooManyChannels`].
    pub fn new(
        cuda: Cuda,
        channels: [usize; 3],
        reduce: Reduce,
    ) -> Result<(Self, Vec<f32>), Error> {
        let name = cuda.parts().name.clone();
        Self::with_channels(&name, cuda, channels, reduce)
    }

    /// A program of these channels, and the uniforms of the kernel.
    fn with_channels(
        kernel: &str,
        cuda: Cuda,
        [targets, sources, outputs]: [usize; 3],
        reduce: Reduce,
    ) -> Result<(Self, Vec<f32>), Error> {
        let cuda = cuda.into_parts();
        if cuda.uniforms.len() > MAX_UNIFORMS {
            return Err(Error::from(ErrorKind::TooManyUniforms {
                kernel: kernel.to_owned(),
                found: cuda.uniforms.len(),
                most: MAX_UNIFORMS,
            }));
        }
        let channels = [
            ("a target", targets),
            ("a source", sources),
            ("a result", outputs),
        ];
        if let Some(&(what, found)) = channels.iter().find(|channels| channels.1 > MAX_CHANNELS) {
            return Err(Error::from(ErrorKind::TooManyChannels {
                kernel: kernel.to_owned(),
                what,
                found,
                most: MAX_CHANNELS,
            }));
        }
        let program = Self {
            name: cuda.name,
            text: cuda.text,
            function: cuda.function,
            targets,
            sources,
            outputs,
            reduce,
            translated: cuda.translated.then(|| kernel.to_owned()),
        };
        Ok((program, cuda.uniforms))
    }

    /// The text with a function `pair` in it. A function of another name is called by one of
    /// this name, which the compiler inlines.
    pub(crate) fn user_text(&self) -> Cow<'_, str> {
        let mut text = Cow::Borrowed(self.text.as_ref());
        // Behind the kernel's own lines, so that messages keep their numbers.
        if self.function != "pair" {
            let _ = write!(
                text.to_mut(),
                "\n__device__ __forceinline__ void pair(const float* u, const Pair& p, \
                 const float* t, const float* s, float* r) {{ {}(u, p, t, s, r); }}\n",
                self.function
            );
        }
        text
    }
}
