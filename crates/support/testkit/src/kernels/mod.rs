//! Compares any pair kernel with its CUDA text, pair by pair, over random and extreme inputs.
//!
//! A kernel exists twice, as Rust and as a text, translated or written by hand. [`Conformance`]
//! compares both in two ways. Compiled as C++ with every operation rounded by itself, the text must
//! give what Rust gives, and that needs no GPU ([`as_cpp`](Conformance::as_cpp)). An engine on a
//! GPU gets pairs that lie far from each other, so that every result is that of one pair
//! ([`by_engine`](Conformance::by_engine)).
//!
//! Inputs are values of every size and sign, among them zeros, subnormal numbers, infinities, NaN
//! and random bits; a displacement in sixteen is zero. Values that a kernel must not meet, such as
//! a kind beyond its table, are left out by [`targets`](Conformance::targets) and
//! [`sources`](Conformance::sources).
//!
//! The C++ program is a process of its own that reads a file and writes another, so nothing here is
//! unsafe.

mod inputs;

pub use inputs::{IsolatedPairs, odd_or_random};

use crate::random::Random;
use inputs::{Inputs, Values};
use nearfield_pairs::{Channels, Pair, PairKernel};
use std::{env, fmt, fs, path::Path, process::Command};

/// Functions that CUDA has and C++ has not: they stand before a text that is compiled for the CPU.
pub const SHIM: &str = include_str!("shim.hpp");

/// The program behind a text: it reads the number of uniforms, these, and pairs until the end.
const MAIN: &str = "
#include <cstdio>
#include <vector>
int main(int, char** files) {
    std::FILE* in = std::fopen(files[1], \"rb\");
    std::FILE* out = std::fopen(files[2], \"wb\");
    unsigned count = 0;
    if (!in || !out || std::fread(&count, 4, 1, in) != 1) return 1;
    std::vector<float> uniforms(count + 1), values(4 + TARGETS + SOURCES);
    if (std::fread(uniforms.data(), 4, count, in) != count) return 1;
    std::vector<float> result(OUTPUTS + 1);
    while (std::fread(values.data(), 4, values.size(), in) == values.size()) {
        const float* const v = values.data();
        const Pair seen = {{v[0], v[1], v[2]}, v[3]};
        const float* const target = v + 4;
        const float* const source = target + TARGETS;
        FUNCTION(uniforms.data(), seen, target, source, result.data());
        if (std::fwrite(result.data(), 4, result.size() - 1, out) != result.size() - 1) return 1;
    }
    return std::fclose(out) == 0 ? 0 : 1;
}
";

/// Agreement that is asked for. Any NaN is as good as another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Close {
    /// The same bits.
    Bits,
    /// The same bits, zeros of either sign.
    Zeros,
    /// At most this number of units in the last place apart.
    Units(u32),
    /// Apart by at most a share of the largest finite result of the pair, or by an absolute number:
    /// results may be differences of rounded numbers of that size.
    Within {
        /// Of the largest result.
        share: f32,
        /// In the unit of the results.
        absolute: f32,
    },
}

impl Close {
    /// Whether two results agree, the largest of the pair being `largest`.
    pub fn agree(self, a: f32, b: f32, largest: f32) -> bool {
        let ordered = |x: f32| {
            let bits = i64::from(x.to_bits() as i32);
            if bits < 0 {
                i64::from(i32::MIN) - bits
            } else {
                bits
            }
        };
        a.to_bits() == b.to_bits()
            || (a.is_nan() && b.is_nan())
            || match self {
                Self::Bits => false,
                Self::Zeros => a == 0.0 && b == 0.0,
                Self::Units(most) => ordered(a).abs_diff(ordered(b)) <= u64::from(most),
                Self::Within { share, absolute } => {
                    (a - b).abs() <= (share * largest).max(absolute)
                }
            }
    }
}

/// A pair for which a kernel and its text differ, or the reason why they could not be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// The comparison of a kernel with its text.
///
/// ```
/// use nearfield_pairs::SphDensity;
/// use nearfield_testkit::kernels::Conformance;
///
/// let pairs = Conformance::new(&SphDensity::with_support(1.0)).pairs(1000).as_cpp()?;
/// assert!(pairs == 1000 || pairs == 0); // 0 on a machine without a C++ compiler
/// # Ok::<(), nearfield_testkit::kernels::Mismatch>(())
/// ```
pub struct Conformance<'a, K: PairKernel> {
    kernel: &'a K,
    pairs: usize,
    seed: u64,
    close: Close,
    targets: Values<'a, K::Target>,
    sources: Values<'a, K::Source>,
}

impl<K: PairKernel> fmt::Debug for Conformance<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conformance")
            .field("kernel", &std::any::type_name::<K>())
            .field("pairs", &self.pairs)
            .field("close", &self.close)
            .finish_non_exhaustive()
    }
}

impl<'a, K: PairKernel> Conformance<'a, K> {
    /// Of 10,000 pairs with any values, to the bit but for the sign of zeros.
    pub fn new(kernel: &'a K) -> Self {
        Self {
            kernel,
            pairs: 10_000,
            seed: 7,
            close: Close::Zeros,
            targets: Box::new(|random| K::Target::read(|_| odd_or_random(random))),
            sources: Box::new(|random| K::Source::read(|_| odd_or_random(random))),
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'a K {
        self.kernel
    }

    /// Number of pairs.
    pub fn pairs(mut self, pairs: usize) -> Self {
        self.pairs = pairs;
        self
    }

    /// Agreement that is asked for: kernels that call `exp` and its like, or fast forms on a GPU,
    /// are not equal to the bit.
    pub fn close(mut self, close: Close) -> Self {
        self.close = close;
        self
    }

    /// Makes the values of targets.
    pub fn targets(mut self, values: impl Fn(&mut Random) -> K::Target + 'a) -> Self {
        self.targets = Box::new(values);
        self
    }

    /// Makes the values of sources.
    pub fn sources(mut self, values: impl Fn(&mut Random) -> K::Source + 'a) -> Self {
        self.sources = Box::new(values);
        self
    }

    /// Compares with the text compiled as C++. Returns the number of pairs compared: 0 if the
    /// machine has no compiler (`c++`, or the one that `CXX` names) and `NEARFIELD_REQUIRE_CXX` is
    /// not 1.
    ///
    /// # Errors
    /// The first pair that differs, a text that the compiler refuses, and a kernel without text.
    pub fn as_cpp(&self) -> Result<usize, Mismatch> {
        let name = std::any::type_name::<K>();
        let failed = |what: &dyn fmt::Display| Mismatch(format!("{name}: {what}"));
        let cuda = self.kernel.cuda().ok_or_else(|| failed(&"no CUDA text"))?;
        let parts = cuda.parts();
        let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
        let program = folder.path().join("kernel");
        let text = format!(
            "{SHIM}{}\n#define FUNCTION {}\n#define TARGETS {}\n#define SOURCES {}\n#define OUTPUTS {}\n{MAIN}",
            parts.text,
            parts.function,
            K::Target::COUNT,
            K::Source::COUNT,
            K::Output::COUNT
        );
        if !compile(&text, &program).map_err(|error| failed(&error))? {
            return Ok(0);
        }
        let inputs = Inputs::new(self.seed, self.pairs, &self.targets, &self.sources);
        let found = run(&program, &parts.uniforms, &inputs.numbers());
        let found = found.map_err(|error| failed(&error))?;
        let outputs = K::Output::COUNT.max(1);
        let results = found.chunks(outputs);
        let compared = results.len();
        for (&(pair, target, source), found) in inputs.pairs.iter().zip(results) {
            let of = EvaluatedPair {
                pair,
                target,
                source,
            };
            let expected = self.kernel.pair(pair, target, source);
            self.compare(of, expected, |value| value, found)?;
        }
        if compared != self.pairs {
            return Err(failed(&format!(
                "{compared} results for {} pairs",
                self.pairs
            )));
        }
        Ok(compared)
    }

    /// Compares with an engine of radius 1: `run` gets points whose pairs are alone, and returns
    /// the results of all targets, number by number.
    ///
    /// # Errors
    /// The first pair that differs, and a wrong number of results.
    pub fn by_engine(
        &self,
        run: impl FnOnce(&IsolatedPairs) -> Vec<f32>,
    ) -> Result<usize, Mismatch> {
        let isolated = IsolatedPairs::new::<K>(self.seed, self.pairs, &self.targets, &self.sources);
        let found = run(&isolated);
        if found.len() != self.pairs * K::Output::COUNT {
            return Err(Mismatch(format!("{} numbers of results", found.len())));
        }
        for (k, found) in found.chunks(K::Output::COUNT.max(1)).enumerate() {
            let (pair, target, source) = isolated.pair::<K>(k);
            // Every sum, minimum and maximum begins with its identity.
            let combined = |value| K::REDUCE.combine(K::REDUCE.identity(), value);
            let expected = self.kernel.pair(pair, target, source);
            let of = EvaluatedPair {
                pair,
                target,
                source,
            };
            self.compare(of, expected, combined, found)?;
        }
        Ok(self.pairs)
    }

    /// Compares a result of one pair.
    fn compare(
        &self,
        of: EvaluatedPair<K>,
        value: K::Output,
        combined: impl Fn(f32) -> f32,
        found: &[f32],
    ) -> Result<(), Mismatch> {
        let mut expected = vec![0.0; K::Output::COUNT];
        value.write(|channel, value| expected[channel] = combined(value));
        let finite = expected.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0f32, |most, value| most.max(value.abs()));
        let same = |(a, b): (&f32, &f32)| self.close.agree(*a, *b, largest);
        if expected.len() == found.len() && expected.iter().zip(found).all(same) {
            return Ok(());
        }
        let EvaluatedPair {
            pair,
            target,
            source,
        } = of;
        let mut values = [Vec::new(), Vec::new()];
        target.write(|_, value| values[0].push(value));
        source.write(|_, value| values[1].push(value));
        Err(Mismatch(format!(
            "{}: {pair:?}, target {:?}, source {:?}: Rust gives {expected:?}, the text {found:?}",
            std::any::type_name::<K>(),
            values[0],
            values[1]
        )))
    }
}

/// A pair for which a kernel was evaluated, with the values of its points.
struct EvaluatedPair<K: PairKernel> {
    pair: Pair,
    target: K::Target,
    source: K::Source,
}

/// Compiles a text as C++ in which every operation is rounded by itself. False if there is no
/// compiler.
///
/// # Errors
/// The compiler's first lines, or that there is none and one is required.
pub fn compile(text: &str, program: &Path) -> Result<bool, String> {
    let source = program.with_extension("cpp");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let output = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-ffp-contract=off", "-w", "-o"])
        .arg(program)
        .arg(&source)
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(true),
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<_> = messages.lines().take(30).collect();
            Err(format!("{compiler} refuses the text: {}", lines.join("\n")))
        }
        Err(error) => {
            let required = env::var("NEARFIELD_REQUIRE_CXX").is_ok_and(|value| value == "1");
            if required {
                return Err(format!("NEARFIELD_REQUIRE_CXX=1, but {compiler}: {error}"));
            }
            eprintln!("not compared: {compiler}: {error}");
            Ok(false)
        }
    }
}

/// Runs a compiled text for inputs, and returns the numbers that it wrote.
fn run(program: &Path, uniforms: &[f32], inputs: &[f32]) -> Result<Vec<f32>, String> {
    let (from, to) = (program.with_extension("in"), program.with_extension("out"));
    let mut bytes = (uniforms.len() as u32).to_ne_bytes().to_vec();
    let numbers = uniforms.iter().chain(inputs);
    bytes.extend(numbers.flat_map(|number| number.to_ne_bytes()));
    fs::write(&from, bytes).map_err(|error| error.to_string())?;
    let status = Command::new(program).arg(&from).arg(&to).status();
    let status = status.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("the compiled text ends with {status}"));
    }
    let bytes = fs::read(&to).map_err(|error| error.to_string())?;
    let (numbers, _) = bytes.as_chunks();
    Ok(numbers
        .iter()
        .map(|&number| f32::from_ne_bytes(number))
        .collect())
}
