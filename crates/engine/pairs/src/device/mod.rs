//! The CUDA text of functions that the macros of `nearfield-macros` translate.
//!
//! A macro sees the tokens of one function and no types. Next to the function it writes a twin of
//! it, which never runs and whose types the compiler infers ([`Slot`]), and the function as
//! constant data (module [`tree`]). From both, module `write` makes the text at run time.
//! [`Device`] collects the functions that a kernel calls, each once and before its callers, and the
//! structs that they use.
//!
//! Fields of `self` are uniforms. A function of a kernel reads them through the pointer `uniform`,
//! those of a method of a field from where they begin.
//!
//! The code for a kernel with one field, `radius`, which calls `squared`, has this shape:
//!
//! ```text
//! let mut function = device.begin(identity(&|| ()), "Kernel_pair", "crate::Kernel::pair");
//! function.field(device, "self_radius", "self.radius", self.radius); // a uniform, in every call
//! if function.wanted() {                                   // the text, in the first call only
//!     static BODY: Body = …;                               // the tree
//!     let slot0 = slot(); …                                // types that the compiler infers
//!     let _ = |pair: Pair, …| { … squared(probe(&slot3, self.radius)) … };  // from the twin
//!     function.types(device, &[described(&slot0), …]);
//!     function.callee(<squared as DeviceFunction>::device(device)); // adds `squared` before it
//!     function.write(&BODY);
//! }
//! device.end(function)
//! ```
//!
//! A step that changes a field thus costs a few moves of numbers. A text is made once per process
//! and type of kernel. It is found again by the type of the closure that writes it, because a
//! static variable in a generic function would be one for all types.
//!
//! **Invariant:** texts come from trees that the macros have checked. They have no loops but those
//! over ranges of constants and loop variables and over arrays, indices that are checked, and
//! pointers nowhere, so the conditions of [`Cuda::new`](crate::Cuda::new) hold for every text.

mod bare;
pub mod fast;
mod slot;
pub mod tree;
mod types;
mod value;
mod write;

pub use bare::Bare;
pub use slot::{
    Operand, Slot, assigned_by_index, converted, described, has, indexed, method, operand, pinned,
    probe, see, shown, slot, undescribed,
};
pub use types::{Type, Types};
pub use value::{DeviceTable, DeviceValue};

pub use crate::{Cuda, Field, FieldsOf};
/// The vectors that kernels compute with, for programs that are compiled against this library.
pub use glam;

use crate::{Channels, PairKernel, texts};
use std::{
    any::TypeId,
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::{PoisonError, RwLock},
};
use types::{NAMESPACE, as_name};
use write::Used;

/// A function that has a text, under the name of the function: the macro `pair_fn` writes it.
#[diagnostic::on_unimplemented(
    message = "this function has no text for the GPU",
    label = "kernels call functions with a text",
    note = "mark the function with #[nearfield::pair_fn]"
)]
pub trait DeviceFunction {
    /// Adds the function and returns its name in the text.
    fn device(device: &mut Device) -> String;
}

/// A method of a value that is among the uniforms.
#[derive(Debug)]
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
    names: BTreeSet<String>,
    /// Functions that have begun and not ended.
    open: Vec<TypeId>,
    /// There is no text: a function calls itself, which no GPU kernel here may, or a potential has
    /// none.
    refused: bool,
    /// A part was written by hand and may change with the kernel's values.
    by_hand: bool,
}

/// A function whose text is complete.
#[derive(Debug)]
struct Done {
    /// None for a text by hand.
    id: Option<TypeId>,
    name: String,
    text: String,
    /// Whether the user wrote it: it is in the global namespace.
    by_hand: bool,
}

/// A function whose text is being written.
#[derive(Debug)]
pub struct Function {
    id: TypeId,
    /// The name in the text: the user's, with a number where two functions have the same.
    name: String,
    /// Its name in a comment.
    shown: &'static str,
    /// Place of its first uniform among those of the kernel.
    start: usize,
    /// Fields that are among the uniforms: the Rust expression, and the place behind the first.
    placed: Vec<(&'static str, usize)>,
    /// Lines for fields and constants.
    declarations: String,
    all: write::References,
    text: String,
    /// False if another call has written it.
    wanted: bool,
}

impl Function {
    /// Whether its text is to be written.
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// The place of a value behind the first uniform of the function. Values of one `key`, their
    /// Rust expression, are among the uniforms once, also where one use reads the whole and another
    /// an element.
    fn place<T: DeviceValue>(&mut self, device: &mut Device, key: &'static str, value: T) -> usize {
        if let Some(known) = self.placed.iter().find(|known| known.0 == key) {
            return known.1;
        }
        let at = device.uniforms.len() - self.start;
        value.uniforms(&mut device.uniforms);
        self.placed.push((key, at));
        at
    }

    /// A field of `self`, as the variable `name`, under the `key` of its Rust expression. Its value
    /// is a uniform.
    pub fn field<T: DeviceValue>(
        &mut self,
        device: &mut Device,
        name: &str,
        key: &'static str,
        value: T,
    ) {
        let at = self.place(device, key, value);
        if self.wanted {
            let ty = T::ty(&mut device.types);
            let shown = ty.name();
            let read = match ty {
                Type::F32 => format!("uniform[{at}]"),
                _ => format!("nf::read<{shown}>(uniform + {at})"),
            };
            let name = self.unique(name);
            let _ = writeln!(self.declarations, "    const {shown} {name} = {read};");
            self.all.used.push(Used::Value(name, ty));
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
        let at = self.place(device, key, value);
        if self.wanted {
            let ty = T::Elements::ty(&mut device.types);
            let (name, shown) = (self.unique(name), ty.name());
            let _ = writeln!(
                self.declarations,
                "    const nf::table<{shown}> {name} = {{uniform + {at}}};"
            );
            self.all.used.push(Used::Value(name, ty));
        }
    }

    /// A method of `self`, or of a field of it. Its uniforms lie behind those added to this
    /// function before it.
    pub fn method(&mut self, method: Method) {
        if self.wanted {
            let begun = format!("{}(uniform + {}", method.name, method.start - self.start);
            self.all.used.push(Used::Method(begun));
        }
    }

    /// A use that is not there under the conditions of this build.
    pub fn no_use(&mut self) {
        self.all.used.push(Used::None);
    }

    /// The types of the slots.
    pub fn types(&mut self, device: &mut Device, slots: &[fn(&mut Types) -> Type]) {
        let types = slots.iter().map(|ty| ty(&mut device.types));
        self.all.types = types.collect();
    }

    /// A constant, as the variable `name`.
    pub fn constant<T: DeviceValue>(&mut self, device: &mut Device, name: &str, value: T) {
        let ty = T::ty(&mut device.types);
        let name = self.unique(&as_name(name));
        let (shown, literal) = (ty.name(), value.literal(&mut device.types));
        let _ = writeln!(self.declarations, "    const {shown} {name} = {literal};");
        self.all.constants.push(write::Constant {
            name,
            ty,
            integer: value.integer(),
        });
    }

    /// A constant that is not there under the conditions of this build.
    pub fn no_constant(&mut self) {
        self.all.constants.push(write::Constant {
            name: String::new(),
            ty: Type::F32,
            integer: None,
        });
    }

    /// A function that it calls.
    pub fn callee(&mut self, name: String) {
        self.all.callees.push(name);
    }

    /// Writes the text; the types, the constants and the functions called are there.
    pub fn write(&mut self, body: &'static tree::Body) {
        let write::Written {
            result,
            parameters,
            lines,
        } = write::function(body, &self.all);
        let name = self.name.rsplit("::").next().unwrap_or_default();
        self.text = format!(
            "// {}\n__forceinline__ {result} {name}({parameters}) {{\n{}{lines}}}\n",
            self.shown, self.declarations
        );
    }

    /// A name that no variable of the function has yet.
    fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        for number in 2.. {
            if self.all.names.insert(name.clone()) {
                break;
            }
            name = format!("{wanted}_{number}");
        }
        name
    }
}

/// The identity of a function, or of an instance of a generic one: the type of a closure in it.
pub fn identity<F>(_: &F) -> TypeId {
    typeid::of::<F>()
}

impl Device {
    /// An empty text; without one, `wanted` is false and functions add uniforms only.
    fn new(wanted: bool) -> Self {
        Self {
            uniforms: Vec::new(),
            wanted,
            types: Types::default(),
            functions: Vec::new(),
            names: BTreeSet::new(),
            open: Vec::new(),
            refused: false,
            by_hand: false,
        }
    }

    /// Begins a function; its `id` tells it from all others.
    pub fn begin(&mut self, id: TypeId, name: &str, shown: &'static str) -> Function {
        let known = self.functions.iter().find(|done| done.id == Some(id));
        // Values of one type can have different texts by hand.
        let known = known.filter(|_| !self.by_hand);
        let open = self.open.contains(&id);
        self.refused |= open;
        let wanted = self.wanted && known.is_none() && !open;
        let name = match known {
            Some(done) => done.name.clone(),
            None => self.free(name, wanted),
        };
        self.open.push(id);
        Function {
            id,
            name,
            shown,
            start: self.uniforms.len(),
            placed: Vec::new(),
            declarations: String::new(),
            all: write::References::default(),
            text: String::new(),
            wanted,
        }
    }

    /// A name that no function has: this one, or with a number.
    fn free(&mut self, name: &str, taken: bool) -> String {
        let plain = format!("{NAMESPACE}::{}", as_name(name));
        let mut free = plain.clone();
        for number in 2.. {
            if !self.names.contains(&free) {
                break;
            }
            free = format!("{plain}{number}");
        }
        if taken {
            self.names.insert(free.clone());
        }
        free
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
        let known = |done: &Done| done.by_hand && done.text == cuda.text;
        if !self.functions.iter().any(known) {
            self.functions.push(Done {
                id: None,
                name: String::new(),
                text: cuda.text.into_owned(),
                by_hand: true,
            });
        }
        let (ty, point) = (E::ty(&mut self.types), self.name_of::<P>());
        let (name, room, found) = (self.free("by_hand", true), P::NUMBERS.max(1), ty.name());
        let short = name.rsplit("::").next().unwrap_or_default();
        let text = format!(
            "__forceinline__ {found} {short}(const float* uniform, float d2, const {point} a, \
             const {point} b) {{\n    \
             float of_a[{room}], of_b[{room}];\n    \
             nf::write(of_a, a);\n    nf::write(of_b, b);\n    \
             {found} found;\n    \
             ::{}(uniform, d2, of_a, of_b, found.{}, found.{});\n    \
             return found;\n}}\n",
            cuda.function,
            as_name("energy"),
            as_name("force_over_r"),
        );
        self.functions.push(Done {
            id: None,
            name: name.clone(),
            text,
            by_hand: false,
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
                id: Some(id),
                name: name.clone(),
                text,
                by_hand: false,
            });
        }
        Method { name, start }
    }

    /// The name of a type in the text.
    pub fn name_of<T: DeviceValue>(&mut self) -> String {
        T::name(&mut self.types)
    }

    /// Prelude, structs and functions, callees first. All names are in a namespace of their own,
    /// except those of texts by hand.
    fn assembled(&self) -> String {
        let mut text = texts::SUBSET.to_owned();
        let (by_hand, translated): (Vec<_>, Vec<_>) =
            self.functions.iter().partition(|done| done.by_hand);
        for done in by_hand {
            let _ = write!(text, "\n{}", done.text);
        }
        let _ = write!(text, "\nnamespace {NAMESPACE} {{\n");
        for declaration in self.types.declarations() {
            let _ = write!(text, "\n{declaration}");
        }
        for function in translated {
            let _ = write!(text, "\n{}", function.text);
        }
        let _ = write!(text, "\n}}  // namespace {NAMESPACE}\n");
        text
    }
}

impl Method {
    /// The beginning of a call from outside of the text: name and first argument.
    pub fn begun(&self) -> String {
        format!("{}(uniform + {}", self.name, self.start)
    }

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

/// Texts by the type of the code that writes them; each is made once per process and type.
static TEXTS: RwLock<BTreeMap<TypeId, &'static str>> = RwLock::new(BTreeMap::new());

/// The text of a kernel whose function `pair` adds, with its uniforms. None if a function calls
/// itself.
pub fn kernel<K, F>(file: &'static str, pair: F) -> Option<Cuda>
where
    K: PairKernel<Target: DeviceValue, Source: DeviceValue, Output: DeviceValue>,
    F: FnOnce(&mut Device) -> Method,
{
    whole(file, identity(&pair), pair, with_entry::<K>)
}

/// The text of a potential of points `P` whose function `translated` adds, in the form that
/// [`PairPotential::cuda`](crate::PairPotential::cuda) asks for.
pub fn potential<P, F>(file: &'static str, translated: F) -> Option<Cuda>
where
    P: DeviceValue,
    F: FnOnce(&mut Device) -> Method,
{
    let cuda = whole(file, identity(&translated), translated, with_values::<P>)?;
    Some(cuda.function("potential"))
}

/// The text that the code of this type writes, kept unless it may change.
fn whole<M>(
    file: &'static str,
    of_type: TypeId,
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
         energy = found.{};\n    over = found.{};\n}}\n",
        method.name,
        as_name("energy"),
        as_name("force_over_r"),
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
/// assert!(text.contains("const float inside_ = pair_.d2 / (self_radius * self_radius);"));
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
