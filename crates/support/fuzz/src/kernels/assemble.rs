//! The text of functions, assembled as the macros have it done at run time.
//!
//! A macro writes Rust code that hands the parts of a translation to the [`Device`]. Here that code
//! is not compiled but followed: the expressions in a translation are of few forms, since this
//! crate made the functions.

#[allow(
    dead_code,
    unused_imports,
    reason = "the other roles of functions are a kernel's and a potential's"
)]
#[path = "../../../../engine/macros/src/translate/mod.rs"]
mod translate;

use super::{
    generate::{Called, Made},
    subject::{Kernel, Point, places},
};
use nearfield::kernels::__device::{Assembled, Device, Function, Method, assembled};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};
use translate::{Piece, Role, Translated, UseKind};

/// Functions of one text.
pub(super) struct Batch<'a> {
    pub(super) functions: Vec<(&'a Made, Translated)>,
    pub(super) kernel: Kernel,
}

/// Translates a function.
///
/// # Errors
/// The translator's message where it refuses the function.
pub(super) fn translated(made: &Made) -> Result<Translated, String> {
    let function: syn::ItemFn = syn::parse_str(&made.text).expect("functions are Rust");
    let krate = syn::parse_quote!(nearfield);
    translate::function(&function.sig, &function.block, &krate, &[], Role::Called)
        .map_err(|error| error.to_string())
}

/// The texts of a batch: how each function is called, up to its own arguments.
pub(super) fn text(batch: &Batch<'_>) -> Assembled<Vec<String>> {
    let all = assembled(|device| {
        // The function that calls all others has the first uniforms.
        let main = device.begin("", "main");
        let called = |(made, _): &(&Made, Translated)| match made.called {
            Called::Free => format!("{}(", batch.add(device, &made.name, false).name()),
            Called::Method => {
                let method = batch.add(device, &made.name, batch.is_top(&made.name));
                format!("{}, ", main.method(&method))
            }
        };
        batch.functions.iter().map(called).collect()
    });
    all.expect("functions call earlier ones")
}

impl Batch<'_> {
    /// Whether no other function calls this one: so it may be a kernel's own.
    fn is_top(&self, name: &str) -> bool {
        let call = format!("{name}(");
        let calls = |(made, _): &&(&Made, Translated)| made.text.contains(&call);
        // It is in its own text, behind `fn`.
        self.functions.iter().filter(calls).count() == 1
    }

    /// Adds a function, and those it calls. One of the kernel's own shares uniforms with others.
    fn add(&self, device: &mut Device, name: &str, of_kernel: bool) -> Method {
        let known = self
            .functions
            .iter()
            .find(|function| function.0.name == name);
        let (_, translated) = known.expect("called functions are in the batch");
        let place = kept(name);
        let mut function = match of_kernel {
            true => device.begin_of_kernel(place, name),
            false => device.begin(place, name),
        };
        let mut methods = BTreeMap::new();
        for used in &translated.uses {
            let value = written(&used.value);
            let key = if of_kernel { kept(&value) } else { "" };
            match used.kind {
                UseKind::Field => self.field(&mut function, device, &used.name, key, &value),
                UseKind::Table => self.table(&mut function, device, &used.name, key, &value),
                UseKind::Method => {
                    let called = value
                        .strip_prefix("self.__nearfield_device_")
                        .and_then(|rest| rest.strip_suffix("(device)"));
                    let called = called.expect("methods are the kernel's");
                    let method = match of_kernel {
                        true => device.shared(key, |device| self.add(device, called, false)),
                        false => self.add(device, called, false),
                    };
                    methods.insert(used.name.clone(), method);
                }
            }
        }
        if function.wanted() {
            for (name, path) in &translated.constants {
                constant(&mut function, device, name, &written(path));
            }
            for piece in &translated.pieces {
                match piece {
                    Piece::Text(part) => function.text(part),
                    Piece::Name => {
                        let name = function.name().to_owned();
                        function.text(&name);
                    }
                    Piece::Declarations => function.declarations(),
                    Piece::Hole(hole) => {
                        let part = self.hole(&function, device, &methods, &written(hole));
                        function.text(&part);
                    }
                }
            }
        }
        device.end(function)
    }

    /// The text for the hole with this expression.
    fn hole(
        &self,
        function: &Function,
        device: &mut Device,
        methods: &BTreeMap<String, Method>,
        hole: &str,
    ) -> String {
        if hole == "device.name_of::<Point>()" {
            return device.name_of::<Point>();
        }
        let method = hole
            .strip_prefix("function.method(&")
            .and_then(|rest| rest.strip_suffix(')'));
        if let Some(method) = method {
            return function.method(&methods[method]);
        }
        let called = hole
            .strip_prefix('<')
            .and_then(|rest| rest.split_once("asnearfield::__device::DeviceFunction>"));
        let (called, _) = called.unwrap_or_else(|| panic!("{hole} is of no known form"));
        if called.starts_with("sane") {
            // Both programs have these.
            return called.to_owned();
        }
        self.add(device, called, false).name()
    }

    /// A field of `self`, by its place.
    fn field(
        &self,
        function: &mut Function,
        device: &mut Device,
        name: &str,
        key: &'static str,
        value: &str,
    ) {
        let kernel = &self.kernel;
        macro_rules! find {
            ($($($part:tt).+ $(($($none:tt)*))?);*) => {$(
                if value == concat!("self" $(, ".", stringify!($part))+ $(, "(", $(stringify!($none),)* ")")?) {
                    return function.field(device, name, key, kernel$(.$part)+ $(($($none)*))?);
                }
            )*};
        }
        places!(find);
        panic!("{value} is no place of the kernel");
    }

    /// An array or a vector of `self` that is indexed.
    fn table(
        &self,
        function: &mut Function,
        device: &mut Device,
        name: &str,
        key: &'static str,
        value: &str,
    ) {
        let kernel = &self.kernel;
        match value {
            "self.weights" => function.table(device, name, key, kernel.weights),
            "self.table" => function.table(device, name, key, kernel.table),
            "self.rows" => function.table(device, name, key, kernel.rows),
            "self.origin" => function.table(device, name, key, kernel.origin),
            "self.point.v" => function.table(device, name, key, kernel.point.v),
            "self.slope" => function.table(device, name, key, kernel.slope),
            _ => panic!("{value} is not indexed"),
        }
    }
}

/// Constants of the Rust program, as declarations for it and for texts.
macro_rules! constants {
    ($($name:ident: $ty:ty = $value:expr;)*) => {
        /// Declarations in Rust.
        pub(super) const CONSTANTS: &str = concat!($(
            "const ", stringify!($name), ": ", stringify!($ty), " = ", stringify!($value), ";\n"
        ),*);

        /// Declares the constant at `path` as the variable `name`.
        fn constant(function: &mut Function, device: &mut Device, name: &str, path: &str) {
            use glam::{Vec2, Vec3};
            match path {
                $(stringify!($name) => {
                    let value: $ty = $value;
                    function.constant(device, name, value);
                })*
                "f32::MAX" => function.constant(device, name, f32::MAX),
                "f32::EPSILON" => function.constant(device, name, f32::EPSILON),
                "f32::NEG_INFINITY" => function.constant(device, name, f32::NEG_INFINITY),
                "std::f32::consts::PI" => function.constant(device, name, std::f32::consts::PI),
                "u32::MAX" => function.constant(device, name, u32::MAX),
                "Vec3::ONE" => function.constant(device, name, Vec3::ONE),
                "Vec3::NEG_Y" => function.constant(device, name, Vec3::NEG_Y),
                "Vec2::ONE" => function.constant(device, name, Vec2::ONE),
                "Vec2::X" => function.constant(device, name, Vec2::X),
                _ => panic!("{path} is no constant of this generator"),
            }
        }
    };
}
constants! {
    HALF: f32 = 0.5;
    TINY: f32 = f32::from_bits(0x1234);
    MASK: u32 = 0xffff_0000;
    MINUS: i32 = -7;
    DOWN: Vec3 = Vec3::new(0.0, -0.0, -9.81);
}

/// Tokens as a text without spaces.
fn written(tokens: &impl ToString) -> String {
    tokens.to_string().replace(' ', "")
}

/// A text that lives as long as the process; there are few: names of functions and places of the
/// kernel.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = text.to_owned().leak();
    kept.insert(new);
    new
}
