//! The CUDA text of functions that the macros of `nearfield-macros` translate.
//!
//! A macro sees the tokens of one function and no types. It writes a text with holes: names of
//! types, names of the functions called, values of constants. Code that it writes beside the
//! function fills them in at run time, where the compiler knows the types: [`Device`] collects the
//! functions that a kernel calls, each once and before its callers, and the structs that they use.
//!
//! Fields of `self` are uniforms. A function of a kernel reads them through the pointer `uniform`,
//! those of a method of a field from where they begin.
//!
//! The code for a kernel with one field, `radius`, which calls `squared`, has this shape:
//!
//! ```text
//! let mut function = device.begin_of_kernel("crate::Kernel::pair:1:1", "Kernel_pair");
//! function.field(device, "self_radius", "self.radius", self.radius); // a uniform, in every call
//! if function.wanted() {                                   // the text, in the first call only
//!     function.text("__forceinline__ float ");
//!     …                                                    // name, parameters, declarations
//!     function.text("    return ::");
//!     let part = <squared as DeviceFunction>::device(device);
//!     function.text(&part);                                // adds `squared` before this function
//!     function.text("(self_radius);\n}\n");
//! }
//! device.end(function)
//! ```
//!
//! The functions `pair` and `symmetric` of a kernel have the same `self`. A value that both read is
//! among the uniforms once, found by the Rust expression, so that a table of coefficients takes its
//! room once.
//!
//! A step that changes a field thus costs a few moves of numbers. A text is made once per process
//! and type of kernel. It is found again by the address of the code that writes it, because a
//! static variable in a generic function would be one for all types.
//!
//! **Invariant:** texts come from the translator. It writes no loops but those over constant ranges
//! and arrays, indices that are checked, and pointers nowhere, so the conditions of
//! [`Cuda::new`](crate::Cuda::new) hold for every text.

pub mod fast;
mod value;

pub use value::{DeviceTable, DeviceValue, Types};

pub use crate::{Cuda, Field, FieldsOf};

use crate::{Channels, PairKernel};
use nearfield_kernels::pairs;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::Write,
    sync::{PoisonError, RwLock},
};

/// Names that the text around a kernel has: a function of the user's gets another one.
const RESERVED: [&str; 13] = [
    "pair",
    "symmetric",
    "Pair",
    "fast_sqrt",
    "fast_rsqrt",
    "fast_recip",
    "fast_mul_add",
    "fast_saturate",
    "potential",
    "nf",
    "visit",
    "main",
    "combined",
];

/// A function that has a text, under the name of the function: the macro `pair_fn` writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no text for the GPU",
    note = "mark the function with #[pair_fn]"
)]
pub trait DeviceFunction {
    /// Adds the function and returns its name in the text.
    fn device(device: &mut Device) -> String;
}

/// A method of a value that is among the uniforms.
#[derive(Debug, Clone)]
pub struct Method {
    name: String,
    /// Place of its first uniform among those of the kernel.
    start: usize,
}

/// The text of a kernel on the way, and its uniforms.
#[derive(Debug)]
pub struct Device {
    /// Values of all fields used so far, function by function.
    uniforms: Vec<f32>,
    /// False if the text is there from an earlier call, and only uniforms are wanted.
    wanted: bool,
    types: Types,
    /// Functions that are complete, callees before callers.
    functions: Vec<Done>,
    /// Names of all functions that have begun.
    names: Vec<String>,
    /// Functions that have begun and not ended, by identity.
    open: Vec<Identity>,
    /// There is no text: a function calls itself, which no GPU kernel here may, or a potential has
    /// none.
    refused: bool,
    /// A part was written by hand and may change with the kernel's values.
    by_hand: bool,
    /// Uniforms of the kernel's own functions, which share them: the Rust expression and the place.
    placed: Vec<(&'static str, usize)>,
    /// Methods of the kernel and of its fields that those functions call: the Rust expression.
    called: Vec<(&'static str, Method)>,
}

/// Tells functions apart: module, name and place, and for those of generic types the address of the
/// code that writes their text. Two types share that code only if it writes the same.
type Identity = (&'static str, usize);

/// A function whose text is complete.
#[derive(Debug)]
struct Done {
    id: Identity,
    name: String,
    text: String,
}

/// A function whose text is being written.
#[derive(Debug)]
pub struct Function {
    id: Identity,
    /// The name in the text: the user's, with a number where two functions have the same.
    name: String,
    /// Place of its first uniform among those of the kernel.
    start: usize,
    /// Lines for fields and constants that the text has not got yet.
    declarations: String,
    text: String,
    /// False if another call has written it.
    wanted: bool,
}

impl Function {
    /// Whether its text is to be written.
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// Its name in the text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Appends a part of the text, which comes from the translator as it is.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// A field of `self`, as the variable `name`. Its value is a uniform. Functions of the kernel
    /// itself share the uniforms of equal keys; the key of others is empty.
    pub fn field<T: DeviceValue>(
        &mut self,
        device: &mut Device,
        name: &str,
        key: &'static str,
        value: T,
    ) {
        let at = device.place(key, value) - self.start;
        if self.wanted {
            let ty = T::name(&mut device.types);
            let read = if ty == "float" {
                format!("uniform[{at}]")
            } else {
                format!("nf::read<{ty}>(uniform + {at})")
            };
            let _ = writeln!(self.declarations, "    const {ty} {name} = {read};");
        }
    }

    /// An array or a vector of `self` that is indexed, as the variable `name`.
    pub fn table<T: DeviceTable>(
        &mut self,
        device: &mut Device,
        name: &str,
        key: &'static str,
        value: T,
    ) {
        let at = device.place(key, value) - self.start;
        if self.wanted {
            let ty = T::Elements::name(&mut device.types);
            let _ = writeln!(
                self.declarations,
                "    const nf::table<{ty}> {name} = {{uniform + {at}}};"
            );
        }
    }

    /// The beginning of a call of a method of `self`, or of a field of it: name and first argument.
    /// The method's uniforms lie behind those added to this function before it.
    pub fn method(&self, method: &Method) -> String {
        format!("{}(uniform + {}", method.name, method.start - self.start)
    }

    /// A constant, as the variable `name`.
    pub fn constant<T: DeviceValue>(&mut self, device: &mut Device, name: &str, value: T) {
        if !self.wanted {
            return;
        }
        let ty = T::name(&mut device.types);
        let _ = writeln!(
            self.declarations,
            "    const {ty} {name} = {};",
            value.literal(&mut device.types)
        );
    }

    /// The variables declared so far; the body of the function begins with them.
    pub fn declarations(&mut self) {
        self.text.push_str(&std::mem::take(&mut self.declarations));
    }
}

impl Device {
    /// An empty text; without one, `wanted` is false and functions add uniforms only.
    fn new(wanted: bool) -> Self {
        Self {
            uniforms: Vec::new(),
            wanted,
            types: Types::default(),
            functions: Vec::new(),
            names: RESERVED.map(str::to_owned).into(),
            open: Vec::new(),
            refused: false,
            by_hand: false,
            placed: Vec::new(),
            called: Vec::new(),
        }
    }

    /// The place of a value among the uniforms. With a `key`, it is put there once.
    fn place<T: DeviceValue>(&mut self, key: &'static str, value: T) -> usize {
        if let Some(known) = self.placed.iter().find(|known| known.0 == key) {
            return known.1;
        }
        let at = self.uniforms.len();
        value.uniforms(&mut self.uniforms);
        if !key.is_empty() {
            self.placed.push((key, at));
        }
        at
    }

    /// A method that the kernel's own functions call, which `added` adds to the text: once for each
    /// key.
    pub fn shared(&mut self, key: &'static str, added: impl FnOnce(&mut Self) -> Method) -> Method {
        if let Some(known) = self.called.iter().find(|known| known.0 == key) {
            return known.1.clone();
        }
        let method = added(self);
        self.called.push((key, method.clone()));
        method
    }

    /// Begins a function; its `place` tells it from all others.
    pub fn begin(&mut self, place: &'static str, name: &str) -> Function {
        self.begin_generic(place, 0, name)
    }

    /// Begins a function of the kernel itself: its uniforms are all from the first on.
    pub fn begin_of_kernel(&mut self, place: &'static str, name: &str) -> Function {
        let mut function = self.begin(place, name);
        function.start = 0;
        function
    }

    /// Begins a function of a generic type, whose text is written by the code at `address`.
    pub fn begin_generic(&mut self, place: &'static str, address: usize, name: &str) -> Function {
        let id = (place, address);
        let known = self.functions.iter().find(|done| done.id == id);
        // Values of one type can have different texts by hand.
        let known = known.filter(|_| address == 0 || !self.by_hand);
        let open = self.open.contains(&id);
        self.refused |= open;
        let wanted = self.wanted && known.is_none() && !open;
        let name = match known {
            Some(done) => done.name.clone(),
            None => self.free(name),
        };
        if wanted {
            self.names.push(name.clone());
        }
        self.open.push(id);
        Function {
            id,
            name,
            start: self.uniforms.len(),
            declarations: String::new(),
            text: String::new(),
            wanted,
        }
    }

    /// A name that no function has: this one, or with a number.
    fn free(&self, name: &str) -> String {
        let taken = |name: &String| self.names.contains(name);
        let mut numbered = (2..).map(|number| format!("{name}_{number}"));
        let plain = Some(name.to_owned()).filter(|name| !taken(name));
        let unique = plain.or_else(|| numbered.find(|name| !taken(name)));
        unique.unwrap_or_default()
    }

    /// Adds the text of a potential that was written by hand; `P` is the type of its points, and
    /// `E` that of energy and force.
    pub fn by_hand<E: DeviceValue, P: DeviceValue>(&mut self, cuda: Option<Cuda>) -> Method {
        self.by_hand = true;
        let start = self.uniforms.len();
        let Some(cuda) = cuda.map(Cuda::into_parts) else {
            self.refused = true;
            let name = String::new();
            return Method { name, start };
        };
        self.uniforms.extend(cuda.uniforms);
        let id = ("", 0);
        let known = |done: &Done| done.id == id && done.text == cuda.text;
        if !self.functions.iter().any(known) {
            let (name, text) = (String::new(), cuda.text.into_owned());
            self.functions.push(Done { id, name, text });
        }
        let (found, point) = (self.name_of::<E>(), self.name_of::<P>());
        let (name, room) = (self.free("by_hand"), P::NUMBERS.max(1));
        let text = format!(
            "__forceinline__ {found} {name}(const float* uniform, float d2, const {point} a, \
             const {point} b) {{\n    \
             float of_a[{room}], of_b[{room}];\n    \
             nf::write(of_a, a);\n    nf::write(of_b, b);\n    \
             {found} found;\n    \
             {}(uniform, d2, of_a, of_b, found.energy, found.force_over_r);\n    \
             return found;\n}}\n",
            cuda.function,
        );
        self.names.push(name.clone());
        self.functions.push(Done {
            id,
            name: name.clone(),
            text,
        });
        Method { name, start }
    }

    /// Ends a function and returns it as a method whose uniforms begin where the function did.
    pub fn end(&mut self, function: Function) -> Method {
        self.open.pop();
        let Function {
            id,
            name,
            start,
            text,
            wanted,
            ..
        } = function;
        if wanted {
            self.functions.push(Done {
                id,
                name: name.clone(),
                text,
            });
        }
        Method { name, start }
    }

    /// The name of a type in the text.
    pub fn name_of<T: DeviceValue>(&mut self) -> String {
        T::name(&mut self.types)
    }

    /// Prelude, structs and functions, callees first.
    fn assembled(&self) -> String {
        let mut text = pairs::SUBSET.to_owned();
        for declaration in self.types.declarations() {
            let _ = write!(text, "\n{declaration}");
        }
        for function in &self.functions {
            let _ = write!(text, "\n{}", function.text);
        }
        text
    }
}

impl Method {
    /// Its name in the text.
    pub fn name(self) -> String {
        self.name
    }
}

/// The text of some functions and all that they need, with the values of the fields that they read.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled<T> {
    /// The value that `added` returned.
    pub added: T,
    /// Prelude, structs and functions.
    pub text: String,
    /// Values that `uniform` points to.
    pub uniforms: Vec<f32>,
}

/// Assembles the functions that `added` adds, for tests of the translator; None if one of them
/// calls itself.
pub fn assembled<T>(added: impl FnOnce(&mut Device) -> T) -> Option<Assembled<T>> {
    let mut device = Device::new(true);
    let added = added(&mut device);
    (!device.refused).then(|| Assembled {
        added,
        text: device.assembled(),
        uniforms: device.uniforms,
    })
}

/// Texts by the address of the code that writes them; each is made once per process and type.
static TEXTS: RwLock<BTreeMap<usize, &'static str>> = RwLock::new(BTreeMap::new());

/// The text of a kernel whose function `pair` adds, with its uniforms. None if a function calls
/// itself.
pub fn kernel<K, F>(file: &'static str, antisymmetric: Option<&[usize]>, pair: F) -> Option<Cuda>
where
    K: PairKernel<Target: DeviceValue, Source: DeviceValue, Output: DeviceValue>,
    F: FnOnce(&mut Device) -> Method,
{
    let of_type = kernel::<K, F> as fn(&'static str, Option<&[usize]>, F) -> Option<Cuda>;
    let cuda = whole(file, of_type as usize, pair, with_entry::<K>)?;
    Some(match antisymmetric {
        Some(channels) => cuda.antisymmetric(channels),
        None => cuda,
    })
}

/// The text of a kernel with a function for both points of a pair, which `symmetric` adds; it may
/// call `pair`, which it is given. A kernel that does not set [`PairKernel::SYMMETRIC`] has no use
/// for it.
pub fn symmetric_kernel<K, F, S>(file: &'static str, pair: F, symmetric: S) -> Option<Cuda>
where
    K: PairKernel<Target: DeviceValue, Source: DeviceValue, Output: DeviceValue>,
    F: FnOnce(&mut Device) -> Method,
    S: FnOnce(&mut Device, &Method) -> Method,
{
    if !K::SYMMETRIC {
        return kernel::<K, F>(file, None, pair);
    }
    let of_type = symmetric_kernel::<K, F, S> as fn(&'static str, F, S) -> Option<Cuda>;
    let both = |device: &mut Device| {
        let pair = pair(device);
        let symmetric = symmetric(device, &pair);
        (pair, symmetric)
    };
    let cuda = whole(file, of_type as usize, both, with_both_entries::<K>)?;
    Some(cuda.symmetric("symmetric"))
}

/// The text of a potential of points `P` whose function `translated` adds, in the form that
/// [`PairPotential::cuda`](crate::PairPotential::cuda) asks for.
pub fn potential<P, F>(file: &'static str, translated: F) -> Option<Cuda>
where
    P: DeviceValue,
    F: FnOnce(&mut Device) -> Method,
{
    let of_type = potential::<P, F> as fn(&'static str, F) -> Option<Cuda>;
    let cuda = whole(file, of_type as usize, translated, with_values::<P>)?;
    Some(cuda.function("potential"))
}

/// The text that the code at `of_type` writes, kept unless it may change.
fn whole<M>(
    file: &'static str,
    of_type: usize,
    translated: impl FnOnce(&mut Device) -> M,
    entry: impl FnOnce(&mut Device, &M) -> String,
) -> Option<Cuda> {
    let texts = TEXTS.read().unwrap_or_else(PoisonError::into_inner);
    let found = texts.get(&of_type).copied();
    drop(texts);
    let mut device = Device::new(found.is_none());
    let method = translated(&mut device);
    if device.refused {
        return None;
    }
    let text = match found {
        Some(found) => Cow::Borrowed(found),
        None if device.by_hand => Cow::Owned(entry(&mut device, &method)),
        None => {
            let text = entry(&mut device, &method);
            let mut texts = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
            // One for each type of a kernel, kept until the process ends.
            Cow::Borrowed(*texts.entry(of_type).or_insert_with(|| text.leak()))
        }
    };
    // SAFETY: the translator's texts index arrays within their bounds only, end, and use no other
    // memory; entries read and write the channels that the types count; and the makers of texts by
    // hand guarantee the same of theirs.
    let cuda = unsafe { Cuda::new(file, text) }.uniforms(device.uniforms);
    // A mistake in a text by hand is its author's.
    Some(if device.by_hand {
        cuda
    } else {
        cuda.translated()
    })
}

/// The whole text: the function `pair` reads and writes the channels.
fn with_entry<K>(device: &mut Device, method: &Method) -> String
where
    K: PairKernel<Target: DeviceValue, Source: DeviceValue>,
{
    const { assert!(<K::Target as Channels>::COUNT == <K::Target as DeviceValue>::NUMBERS) };
    const { assert!(<K::Source as Channels>::COUNT == <K::Source as DeviceValue>::NUMBERS) };
    let (target, source) = (device.name_of::<K::Target>(), device.name_of::<K::Source>());
    let mut text = device.assembled();
    let _ = write!(
        text,
        "\n__forceinline__ void pair(const float* uniform, const Pair& pair, const float* target, \
         const float* source, float* result) {{\n    \
         const nf::Pair seen = {{{{{{pair.d[0], pair.d[1], pair.d[2]}}}}, pair.d2}};\n    \
         nf::write(result, {}(uniform, seen, nf::read<{target}>(target), nf::read<{source}>(source)));\n}}\n",
        method.name,
    );
    text
}

/// The same, and the function `symmetric`.
fn with_both_entries<K>(device: &mut Device, (pair, symmetric): &(Method, Method)) -> String
where
    K: PairKernel<Target: DeviceValue, Source: DeviceValue>,
{
    let mut text = with_entry::<K>(device, pair);
    let (target, source) = (device.name_of::<K::Target>(), device.name_of::<K::Source>());
    let point = |of: &str| {
        format!(
            "nf::tuple<{target}, {source}>{{nf::read<{target}>(target_{of}), nf::read<{source}>(source_{of})}}"
        )
    };
    let _ = write!(
        text,
        "\n__forceinline__ void symmetric(const float* uniform, const Pair& pair, \
         const float* target_i, const float* source_i, const float* target_j, \
         const float* source_j, float* on_i, float* on_j) {{\n    \
         const nf::Pair seen = {{{{{{pair.d[0], pair.d[1], pair.d[2]}}}}, pair.d2}};\n    \
         const auto both = {}(uniform, seen, {}, {});\n    \
         nf::write(on_i, both._0);\n    nf::write(on_j, both._1);\n}}\n",
        symmetric.name,
        point("i"),
        point("j"),
    );
    text
}

/// The whole text of a potential: the function `potential` reads the channels and gives energy and
/// force apart.
fn with_values<P: DeviceValue>(device: &mut Device, method: &Method) -> String {
    let point = device.name_of::<P>();
    let mut text = device.assembled();
    let _ = write!(
        text,
        "\n__forceinline__ void potential(const float* uniform, float d2, const float* a, \
         const float* b, float& energy, float& over) {{\n    \
         const auto found = {}(uniform, d2, nf::read<{point}>(a), nf::read<{point}>(b));\n    \
         energy = found.energy;\n    over = found.force_over_r;\n}}\n",
        method.name,
    );
    text
}

/// The CUDA text that a kernel is compiled from on a GPU; None for those that run on the CPU only.
///
/// For kernels under `#[pair_kernel]` it is the translation, behind the numbers and functions of
/// Rust that it is written with. Constants are in it, uniforms are not.
///
/// ```
/// use nearfield_pairs::{Pair, PairKernel, cuda_source, pair_kernel};
///
/// struct Occupancy {
///     radius: f32,
/// }
///
/// #[pair_kernel(crate = nearfield_pairs)] // #[nearfield::pair_kernel] elsewhere
/// impl PairKernel for Occupancy {
///     type Target = ();
///     type Source = f32;
///     type Output = f32;
///
///     #[inline(always)]
///     fn pair(&self, pair: Pair, _: (), mass: f32) -> f32 {
///         let inside = pair.d2 / (self.radius * self.radius);
///         mass * (1.0 - inside)
///     }
/// }
///
/// let text = cuda_source(&Occupancy { radius: 1.0 }).unwrap();
/// assert!(text.contains("const auto inside = pair.d2 / (self_radius * self_radius);"));
/// ```
pub fn cuda_source<K: PairKernel>(kernel: &K) -> Option<String> {
    Some(kernel.cuda()?.into_parts().text.into_owned())
}

/// A struct of channels, in the order of its fields: `#[derive(Channels)]` implements it, and
/// [`Channels`] follows.
pub trait ChannelStruct: Copy + Send + Sync + 'static {
    /// A tuple of the fields, or of tuples of six of them.
    type Parts: Channels;

    /// The struct of these fields.
    fn from_parts(parts: Self::Parts) -> Self;

    /// Its fields.
    fn into_parts(self) -> Self::Parts;
}
