//! The CUDA text of a pair kernel.
//!
//! It is translated from Rust, or written by hand. NVRTC compiles it at run time for the GPU that
//! is there, together with the traversal around it, so the compiler inlines it and no function
//! pointer is called per pair. Parameters are arguments of the launch, so a time step that changes
//! compiles nothing.
//!
//! A text by hand must give the results of the Rust code, up to rounding in the last places.
//! Nothing can check that in general.

use crate::texts;
use nearfield_shared::Header;
use std::borrow::Cow;

/// A pair kernel as CUDA C++, compiled into the traversal at run time.
///
/// The text defines
///
/// ```cuda
/// void pair(const float* uniform, const Pair& pair, const float* target, const float* source,
///           float* result);
/// ```
///
/// (or a function of another name, see [`function`](Self::function)), where `pair.d[3]` and
/// `pair.d2` are those of [`Pair`](crate::Pair), `target` and `source` the channels that the kernel
/// reads, in order, and `result` the channels it gives. `uniform` holds
/// [`uniforms`](Self::uniforms). `fast_sqrt` and `fast_rsqrt` are there, off by at most one unit in
/// the last place. Multiplications and additions are not contracted; write `__fmaf_rn` where that
/// is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Cuda {
    parts: CudaParts,
}

/// The parts of a [`Cuda`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CudaParts {
    /// The name of the text in compile errors, such as a file name.
    pub name: Cow<'static, str>,
    /// The text.
    pub text: Cow<'static, str>,
    /// The function that it defines, `pair` unless said otherwise.
    pub function: Cow<'static, str>,
    /// Parameters, at most 160: they are arguments of the launch, so changing them compiles
    /// nothing.
    pub uniforms: Vec<f32>,
    /// Whether the library wrote the text, by `#[pair_kernel]`: a compiler that refuses it has
    /// found a bug of the translation.
    pub translated: bool,
}

impl CudaParts {
    /// Headers with functions that the text may call. A program of your own that includes the text
    /// includes these before it.
    pub const HEADERS: [Header; 1] = [texts::FAST];
}

impl Cuda {
    /// A text without parameters; `name` is what compile errors call it.
    ///
    /// ```
    /// use nearfield_pairs::{Cuda, Pair, PairKernel};
    ///
    /// struct Count;
    ///
    /// impl PairKernel for Count {
    ///     type Target = ();
    ///     type Source = ();
    ///     type Output = f32;
    ///
    ///     fn pair(&self, _: Pair, (): (), (): ()) -> f32 {
    ///         1.0
    ///     }
    ///
    ///     fn cuda(&self) -> Option<Cuda> {
    ///         let text = "void pair(const float*, const Pair&, const float*, const float*,
    ///                               float* r) {
    ///             r[0] = 1.0f;
    ///         }";
    ///         // SAFETY: it reads nothing and writes the one channel that the kernel gives.
    ///         Some(unsafe { Cuda::new("count.cu", text) })
    ///     }
    /// }
    /// ```
    ///
    /// # Safety
    /// The text is compiled and run on the GPU as it is, in a context that the whole process
    /// shares: whatever it does there, nothing checks. For every kernel that hands this out,
    /// - it reads `target` and `source` only below the numbers of channels of the kernel, and
    ///   `uniform` only below 160;
    /// - it writes `result` only, below its number of channels, and all of these;
    /// - it accesses no other memory, and leaves it to the kernel around it to meet other threads;
    /// - it ends, for every pair, channel and uniform, those that are NaN or infinite included;
    /// - its lines, and `name`, leave the rest of the program as it is: brackets are balanced, and
    ///   it defines no macros and no names other than its own.
    pub unsafe fn new(
        name: impl Into<Cow<'static, str>>,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            parts: CudaParts {
                name: name.into(),
                text: text.into(),
                function: Cow::Borrowed("pair"),
                uniforms: Vec::new(),
                translated: false,
            },
        }
    }

    /// The same, with a function of this name: one text can serve several kernels. Characters that
    /// no name of a function has are replaced by underscores.
    pub fn function(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.parts.function = as_name(name.into());
        self
    }

    /// The same with these parameters.
    pub fn uniforms(mut self, uniforms: impl Into<Vec<f32>>) -> Self {
        self.parts.uniforms = uniforms.into();
        self
    }

    /// The same, as a text of the library's: see [`translated`](CudaParts::translated).
    #[doc(hidden)]
    pub fn translated(mut self) -> Self {
        self.parts.translated = true;
        self
    }

    /// Its parts.
    pub fn parts(&self) -> &CudaParts {
        &self.parts
    }

    /// The same, taken apart.
    pub fn into_parts(self) -> CudaParts {
        self.parts
    }
}

/// A name with underscores for characters that no name of a function has.
fn as_name(name: Cow<'static, str>) -> Cow<'static, str> {
    let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(belongs) {
        name
    } else {
        name.replace(|c| !belongs(c), "_").into()
    }
}
