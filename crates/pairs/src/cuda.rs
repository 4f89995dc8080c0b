//! The CUDA twin of a pair kernel.

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
/// (or a function of another name, see [`function`](Self::function)), where `pair.d[3]` and `pair.d2` are those of [`Pair`](crate::Pair), `target` and `source` the
/// channels that the kernel reads, in order, and `result` the channels it gives. `uniform` holds
/// [`uniforms`](Self::uniforms). `fast_sqrt` and `fast_rsqrt` are there, off by at most one unit in
/// the last place. Multiplications and additions are not contracted; write `__fmaf_rn` where that
/// is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Cuda {
    /// What compile errors call the text, such as a file name.
    pub name: Cow<'static, str>,
    /// The text.
    pub text: Cow<'static, str>,
    /// The function that it defines, `pair` unless said otherwise.
    pub function: Cow<'static, str>,
    /// Parameters, at most 160: they are arguments of the launch, so changing them compiles nothing.
    pub uniforms: Vec<f32>,
    /// For kernels whose pairs may be evaluated once for both points: the channels of the result that
    /// change their sign where the points of a pair change places, all others staying as they are. The
    /// three of a force, for example, that is equal and opposite. `None`, the default, where what the
    /// two get differs in more than signs, such as by their masses, or nothing is known of it.
    pub turned: Option<Vec<usize>>,
}

impl Cuda {
    /// A text without parameters; `name` is what compile errors call it.
    pub fn new(name: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            function: Cow::Borrowed("pair"),
            uniforms: Vec::new(),
            turned: None,
        }
    }

    /// The same, with a function of this name: one text can serve several kernels.
    pub fn function(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.function = name.into();
        self
    }

    /// The same with these parameters.
    pub fn uniforms(mut self, uniforms: impl Into<Vec<f32>>) -> Self {
        self.uniforms = uniforms.into();
        self
    }

    /// The same, saying that these channels of the result change their sign where the points of a pair
    /// change places, and the others do not: see [`turned`](Self::turned).
    pub fn turned(mut self, channels: impl Into<Vec<usize>>) -> Self {
        self.turned = Some(channels.into());
        self
    }
}
