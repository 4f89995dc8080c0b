//! Translated functions compiled as C++ by the machine's compiler, and compared with Rust.
//!
//! Without a compiler (`c++`, or the one named by `CXX`) the tests do nothing, or fail if
//! `NEARFIELD_REQUIRE_CXX=1`.

use libloading::Library;
use nearfield_gpu::{Compiler, Search};
use nearfield_pairs::device::{DeviceFunction, DeviceValue, assembled};
use nearfield_testkit::{
    kernels::{SHIM, odd_or_random},
    random::Random,
};
use std::{env, fmt::Debug, fs, process::Command};

/// Values to try: random ones, and those where arithmetic is odd.
pub(crate) trait Tried: Sized {
    /// The next value.
    fn next(random: &mut Random) -> Self;
}

impl Tried for f32 {
    fn next(random: &mut Random) -> Self {
        odd_or_random(random)
    }
}

/// Any 64 bits.
fn bits(random: &mut Random) -> u64 {
    random.below(1 << 32) << 32 | random.below(1 << 32)
}

impl Tried for u32 {
    fn next(random: &mut Random) -> Self {
        let bits = bits(random);
        match bits >> 61 {
            0 => [0, 1, 2, 31, 32, 33, u32::MAX, u32::MAX - 1, 1 << 31][(bits % 9) as usize],
            1..4 => bits as u32 % 64,
            _ => bits as u32,
        }
    }
}

impl Tried for i32 {
    fn next(random: &mut Random) -> Self {
        let bits = bits(random);
        match bits >> 61 {
            0 => [0, 1, -1, 31, 32, -32, i32::MAX, i32::MIN, i32::MIN + 1][(bits % 9) as usize],
            1..4 => bits as i32 % 64,
            _ => bits as i32,
        }
    }
}

impl Tried for bool {
    fn next(random: &mut Random) -> Self {
        random.below(2) == 1
    }
}

impl Tried for glam::Vec2 {
    fn next(random: &mut Random) -> Self {
        Self::from_array(Tried::next(random))
    }
}

impl Tried for glam::Vec3 {
    fn next(random: &mut Random) -> Self {
        Self::from_array(Tried::next(random))
    }
}

impl<T: Tried, const N: usize> Tried for [T; N] {
    fn next(random: &mut Random) -> Self {
        std::array::from_fn(|_| T::next(random))
    }
}

macro_rules! tried_tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: Tried),*> Tried for ($($part,)*) {
            fn next(random: &mut Random) -> Self {
                ($($part::next(random),)*)
            }
        }
    )*};
}
impl Tried for () {
    fn next(_: &mut Random) -> Self {}
}

tried_tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

/// A random generator that gives the same numbers in every run.
pub(crate) fn random(seed: u64) -> Random {
    Random::new(seed)
}

/// A compiled function: it reads its arguments and writes its result, number by number.
pub(crate) type Compiled = unsafe extern "C" fn(*const f32, *mut f32);

type Compare = Box<dyn Fn(Compiled)>;

/// A function, its text, and the comparison of both.
pub(crate) struct Case {
    /// Name of the function.
    pub(crate) name: &'static str,
    /// Its text, with the function `entry_NAME`.
    pub(crate) text: String,
    compare: Compare,
}

/// How close results have to be, in units in the last place; 0 where zeros must have the same sign
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    /// To the bit, NaN being any.
    Bits,
    /// The same, zeros of either sign.
    Zeros,
    /// Off by at most that number of units.
    Units(u32),
}

impl Case {
    /// A function `F` of a tuple of arguments `A`.
    pub(crate) fn new<F, A, R>(name: &'static str, close: Close, function: fn(A) -> R) -> Self
    where
        F: DeviceFunction,
        A: Tried + DeviceValue + Debug + 'static,
        R: DeviceValue + Debug + 'static,
    {
        let made = assembled(F::device).expect("a function calls itself");
        let (called, text) = (made.added, made.text);
        let mut types = nearfield_pairs::device::Types::default();
        let arguments = A::name(&mut types);
        let count = arguments_of(&arguments);
        let passed: Vec<_> = (0..count).map(|k| format!("a._{k}")).collect();
        // Every text has a namespace of its own, so equal names do not meet.
        let text = text.strip_prefix(nearfield_pairs::texts::SUBSET);
        let text = text.expect("a prelude");
        let text = format!(
            "namespace in_{name} {{\n{text}\n}}\nextern \"C\" void entry_{name}(const float* in, float* out) {{\n\
             const auto a = nf::read<{arguments}>(in); (void)a;\n\
             nf::write(out, in_{name}::{called}({}));\n}}\n",
            passed.join(", ")
        );
        let compare = move |compiled: Compiled| {
            let mut random = random(0x5eed);
            for _ in 0..4000 {
                let arguments = A::next(&mut random);
                let mut numbers = Vec::new();
                arguments.uniforms(&mut numbers);
                let mut found = vec![f32::NAN; R::NUMBERS];
                // SAFETY: the text reads and writes as many numbers as the types have.
                unsafe { compiled(numbers.as_ptr(), found.as_mut_ptr()) };
                let mut expected = Vec::new();
                function(arguments).uniforms(&mut expected);
                let same = expected
                    .iter()
                    .zip(&found)
                    .all(|(a, b)| agree(*a, *b, close));
                assert!(
                    same,
                    "{name}{arguments:?}: Rust has {expected:?}, the text {found:?}"
                );
            }
        };
        Self {
            name,
            text,
            compare: Box::new(compare),
        }
    }
}

/// Parts of a tuple type at its outermost level.
fn arguments_of(tuple: &str) -> usize {
    let (mut depth, mut count) = (0, 1);
    for c in tuple.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 1 => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether two results agree.
pub(crate) fn agree(a: f32, b: f32, close: Close) -> bool {
    let ordered = |x: f32| {
        let bits = x.to_bits() as i32;
        i64::from(if bits < 0 {
            i32::MIN.wrapping_sub(bits)
        } else {
            bits
        })
    };
    a.to_bits() == b.to_bits()
        || (a.is_nan() && b.is_nan())
        || match close {
            Close::Bits => false,
            Close::Zeros => a == 0.0 && b == 0.0,
            Close::Units(most) => ordered(a).abs_diff(ordered(b)) <= u64::from(most),
        }
}

/// A text compiled by the compiler of the host; None where a test is to be skipped.
pub(crate) fn compiled(text: &str) -> Option<Library> {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (
        folder.path().join("cases.cpp"),
        folder.path().join("cases.so"),
    );
    fs::write(&source, text).unwrap();
    let output = Command::new(&compiler)
        .args([
            "-std=c++17",
            "-O2",
            "-ffp-contract=off",
            "-shared",
            "-fPIC",
            "-o",
        ])
        .arg(&library)
        .arg(&source)
        .output();
    match output {
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let messages: String = messages.lines().take(60).collect::<Vec<_>>().join("\n");
            assert!(output.status.success(), "{compiler}: {messages}");
        }
        Err(error) => {
            let required = env::var("NEARFIELD_REQUIRE_CXX").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "NEARFIELD_REQUIRE_CXX=1, but {compiler}: {error}"
            );
            eprintln!("skipped: {compiler}: {error}");
            return None;
        }
    }
    // SAFETY: the library was made from translated functions a moment ago.
    Some(unsafe { Library::new(library) }.unwrap())
}

/// The compiler for GPUs; None where a test is to be skipped.
pub(crate) fn compiler() -> Option<Compiler> {
    let required = env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
    match Compiler::find(&Search::from_env(), None) {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Compiles all cases at once and compares each with Rust.
pub(crate) fn check(cases: &[Case]) {
    let mut text = format!("{SHIM}{}", nearfield_pairs::texts::SUBSET);
    for case in cases {
        text.push_str(&case.text);
    }
    let Some(library) = compiled(&text) else {
        return;
    };
    for case in cases {
        let entry = format!("entry_{}", case.name);
        // SAFETY: the entry is declared so in the text.
        let compiled = unsafe { library.get::<Compiled>(entry.as_bytes()) }.unwrap();
        (case.compare)(*compiled);
    }
}

/// Functions of a user, each with the closeness that is asked for, and `cases()` of them.
macro_rules! cases {
    ($(
        $close:expr;
        fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty { $($body:tt)* }
    )*) => {
        $(
            #[pair_fn(crate = nearfield_pairs)]
            #[allow(clippy::all, unused_parens, reason = "they are what users may write")]
            fn $name($($argument: $ty),*) -> $result { $($body)* }
        )*

        fn cases() -> Vec<$crate::common::Case> {
            vec![$(
                $crate::common::Case::new::<$name, ($($ty,)*), $result>(
                    stringify!($name),
                    $close,
                    |($($argument,)*)| $name($($argument),*),
                )
            ),*]
        }
    };
}
pub(crate) use cases;
