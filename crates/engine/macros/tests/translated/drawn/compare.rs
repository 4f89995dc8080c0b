//! Functions compiled as Rust and as the C++ that they are translated to, and run for the same
//! arguments.

use super::{
    generate::{ARGUMENTS, Called, Made, Ty},
    subject,
};
use nearfield_testkit::{
    kernels::{SHIM, compile, odd_or_random},
    random::Random,
};
use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Argument lists that every function gets.
const CALLS: usize = 200;

/// Rust in front of the functions.
const RUST: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]
use nearfield_pairs::{Channels, pair_fn, __device::{Device, DeviceFunction, assembled}};
use nearfield_pairs::__device::glam::{Vec2, Vec3};
";

/// The Rust program: with one file it writes the text, with two it computes. Files of words go in
/// and out, first those of the kernel and then those of one call after the other.
const RUST_MAIN: [&str; 3] = [
    "fn main() {
    let files: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&files[1]).unwrap();
    let words: Vec<u32> = bytes.chunks(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    let kernel = Kernel::of(&words[..KERNEL]);
    if files.len() == 2 {
        let all = assembled(|device| vec![
",
    "        ]).unwrap();
        println!(\"{}\", all.text);
        let bits: Vec<String> = all.uniforms.iter().chain(&[0.0]).map(|u| format!(\"{:#x}\", u.to_bits())).collect();
        println!(\"const unsigned bits_of_uniforms[] = {{{}}};\", bits.join(\", \"));
        println!(\"//calls\");
        for call in all.added { println!(\"{call}\"); }
        return;
    }
    let mut out: Vec<u32> = Vec::new();
    for w in words[KERNEL..].chunks(CALL) {
        let f = |k: usize| f32::from_bits(w[k]);
        let wide = |k: usize| w[k] as u64 | (w[k + 1] as u64) << 32;
        let t = (f(8), w[9]);
        let (a, b, c, d, e, v) = (f(0), f(1), w[2], w[3] as i32, w[4] & 1 == 1, [f(5), f(6), f(7)]);
        let (p, q, r) = (Vec3::new(f(10), f(11), f(12)), Vec2::new(f(13), f(14)), Point::of(&w[15..20]));
        let (s, u) = (wide(20) as usize, wide(22));
",
    "    }
    std::fs::write(&files[2], out.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>()).unwrap();
}
",
];

const CPP_MAIN: [&str; 2] = [
    "
template <class T>
void put(std::FILE* out, const T& value) {
    float numbers[8];
    nf::write(numbers, value);
    std::fwrite(numbers, 4, nf::layout<T>::COUNT, out);
}
int main(int, char** files) {
    std::FILE* in = std::fopen(files[1], \"rb\");
    std::FILE* out = std::fopen(files[2], \"wb\");
    float uniform[sizeof bits_of_uniforms / 4], kernel[KERNEL], w[CALL];
    std::memcpy(uniform, bits_of_uniforms, sizeof uniform);
    if (std::fread(kernel, 4, KERNEL, in) != KERNEL) return 1;
    while (std::fread(w, 4, CALL, in) == CALL) {
        const float a = w[0], b = w[1];
        const nf::u32 c = nf::read<nf::u32>(w + 2);
        const nf::i32 d = nf::read<nf::i32>(w + 3);
        const bool e = (nf::read<nf::u32>(w + 4) & 1u) == 1u;
        const auto v = nf::read<nf::array<float, 3>>(w + 5);
        const auto t = nf::read<nf::tuple<float, nf::u32>>(w + 8);
        const auto p = nf::read<nf::Vec3>(w + 10);
        const auto q = nf::read<nf::Vec2>(w + 13);
        const auto r = nf::read<translated::Point_>(w + 15);
        const auto s = nf::read<nf::usize>(w + 20);
        const auto u = nf::read<nf::u64>(w + 22);
",
    "    }
    return std::fclose(out);
}
",
];

/// Compares what both programs compute.
///
/// # Errors
/// The function, the arguments and both results where they differ; the messages of a compiler that
/// refuses a text. `Ok(false)` on a machine without a C++ compiler.
pub(super) fn compare(functions: &[Made], seed: u64) -> Result<bool, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let rust_text = rust_program(functions);
    let rust = folder.path().join("functions");
    compile_rust(&rust_text, &rust)?;
    let mut input = kernel_words(seed);
    input.extend(arguments(seed));
    let cpp_text = cpp_program(&rust, &input)?;
    let both = |message: &str| format!("{message}\n{rust_text}\n{cpp_text}");
    let cpp = folder.path().join("translated");
    if !compile(&cpp_text, &cpp).map_err(|error| both(&error))? {
        return Ok(false);
    }
    let (expected, found) = (run(&rust, &input)?, run(&cpp, &input)?);
    let mut at = 0;
    for call in input[subject::WORDS..].chunks(words_of_call()) {
        for made in functions {
            let count = words(made.gives);
            let results = [&expected, &found].map(|all| all.get(at..at + count));
            at += count;
            if let [Some(a), Some(b)] = results
                && same(made.gives, a, b)
            {
                continue;
            }
            return Err(both(&format!(
                "{}\nfor the words {call:x?} Rust gives {:x?} and the text {:x?}; both programs:",
                made.text, results[0], results[1],
            )));
        }
    }
    Ok(true)
}

/// Words of all arguments of a call.
fn words_of_call() -> usize {
    ARGUMENTS.map(words).iter().sum()
}

/// Numbers of words, as both languages declare them.
fn sizes(declare: impl Fn(&str, usize) -> String) -> String {
    declare("KERNEL", subject::WORDS) + &declare("CALL", words_of_call())
}

/// The C++ program, with the text that the Rust program writes.
fn cpp_program(rust: &Path, input: &[u32]) -> Result<String, String> {
    let words = rust.with_extension("words");
    write_words(&words, input)?;
    let output = Command::new(rust).arg(&words).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (text, calls) = text.split_once("//calls\n").unwrap_or((&text, ""));
    let sizes = sizes(|name, size| format!("constexpr int {name} = {size};\n"));
    let mut all = format!("{SHIM}#include <cstdio>\n#include <cstring>\n{text}\n{sizes}");
    all.push_str(CPP_MAIN[0]);
    for call in calls.lines() {
        let _ = writeln!(
            all,
            "        put(out, {call}a, b, c, d, e, v, t, p, q, r, s, u));"
        );
    }
    Ok(all + CPP_MAIN[1])
}

fn rust_program(functions: &[Made]) -> String {
    let sizes = sizes(|name, size| format!("const {name}: usize = {size};\n"));
    let mut text = format!("{RUST}{}{sizes}", subject::ITEMS);
    for made in functions {
        match made.called {
            Called::Free => text.push_str(&made.text),
            Called::Method => {
                let _ = writeln!(text, "impl Kernel {{\n{}}}", made.text);
            }
        }
    }
    text.push_str(RUST_MAIN[0]);
    for Made { name, called, .. } in functions {
        let _ = match called {
            Called::Free => writeln!(
                text,
                "            <{name} as DeviceFunction>::device(device) + \"(\","
            ),
            Called::Method => writeln!(
                text,
                "            kernel.__nearfield_device_{name}(device).begun() + \", \","
            ),
        };
    }
    text.push_str(RUST_MAIN[1]);
    for made in functions {
        let pushed = match made.gives {
            Ty::F32 => "out.push(r.to_bits());",
            Ty::U32 => "out.push(r);",
            Ty::I32 | Ty::Bool => "out.push(r as u32);",
            Ty::Usize | Ty::U64 => "out.extend([r as u32, (r as u64 >> 32) as u32]);",
            Ty::Array => "out.extend(r.map(f32::to_bits));",
            Ty::Tuple => "out.extend([r.0.to_bits(), r.1]);",
            Ty::Vec3 | Ty::Vec2 => "out.extend(r.to_array().map(f32::to_bits));",
            Ty::Point => {
                "out.extend([r.x.to_bits(), r.n]); out.extend(r.v.to_array().map(f32::to_bits));"
            }
        };
        let on = match made.called {
            Called::Free => "",
            Called::Method => "kernel.",
        };
        let _ = writeln!(
            text,
            "        {{ let r = {on}{}(a, b, c, d, e, v, t, p, q, r, s, u); {pushed} }}",
            made.name
        );
    }
    text + RUST_MAIN[2]
}

/// Compiles with the meaning of a release build, quickly, against the libraries that this test is
/// made of.
fn compile_rust(text: &str, program: &Path) -> Result<(), String> {
    let source = program.with_extension("rs");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().unwrap_or(Path::new("."));
    let mut command = Command::new(&compiler);
    command.args([
        "--edition",
        "2024",
        "-C",
        "opt-level=0",
        "-C",
        "overflow-checks=off",
    ]);
    command.args([
        "-C",
        "debug-assertions=off",
        "-C",
        "codegen-units=4",
        "-C",
        "debuginfo=0",
    ]);
    command
        .arg("-L")
        .arg(format!("dependency={}", folder.display()));
    let library = newest(folder, "nearfield_pairs").ok_or("no library of nearfield_pairs")?;
    command
        .arg("--extern")
        .arg(format!("nearfield_pairs={}", library.display()));
    let output = command.arg("-o").arg(program).arg(&source).output();
    let output = output.map_err(|error| format!("{compiler}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = messages.lines().take(40).collect();
    Err(format!(
        "the generator is wrong: {}\n{text}",
        lines.join("\n")
    ))
}

/// The library of a crate that was made last.
fn newest(folder: &Path, name: &str) -> Option<PathBuf> {
    let of_crate = |path: &PathBuf| {
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        file.starts_with(&format!("lib{name}-")) && file.ends_with(".rlib")
    };
    let entries = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let made = |path: &PathBuf| fs::metadata(path).and_then(|of| of.modified()).ok();
    entries.filter(of_crate).max_by_key(made)
}

/// The words of a kernel.
fn kernel_words(seed: u64) -> Vec<u32> {
    let random = &mut Random::new(seed);
    // One value of each type that arguments have, and the numbers of both tables.
    let tables = [Ty::F32; 8 + 12];
    let mut words = Vec::new();
    for &ty in ARGUMENTS[1..10].iter().chain(&tables) {
        draw(ty, random, &mut words);
    }
    words
}

/// Argument lists.
fn arguments(seed: u64) -> Vec<u32> {
    let random = &mut Random::new(!seed);
    let mut words = Vec::new();
    for _ in 0..CALLS {
        for ty in ARGUMENTS {
            draw(ty, random, &mut words);
        }
    }
    words
}

/// Draws a value of a type.
fn draw(ty: Ty, random: &mut Random, words: &mut Vec<u32>) {
    let mut floats = |count, random: &mut Random| {
        words.extend((0..count).map(|_| odd_or_random(random).to_bits()));
    };
    match ty {
        Ty::F32 => floats(1, random),
        Ty::Vec2 => floats(2, random),
        Ty::Array | Ty::Vec3 => floats(3, random),
        Ty::Bool => words.push(random.below(2) as u32),
        Ty::U32 | Ty::I32 => words.push(odd_integer(random)),
        Ty::Usize | Ty::U64 => {
            let upper = [0, 0, 1, u32::MAX, odd_integer(random)];
            words.extend([odd_integer(random), upper[random.below(5) as usize]]);
        }
        Ty::Tuple => {
            floats(1, random);
            words.push(odd_integer(random));
        }
        Ty::Point => {
            floats(1, random);
            words.push(odd_integer(random));
            draw(Ty::Vec3, random, words);
        }
    }
}

/// Bits of an integer: random ones, small ones, and those where arithmetic is odd.
fn odd_integer(random: &mut Random) -> u32 {
    let odd = [0, 1, 2, 31, 32, 33, u32::MAX, 1 << 31, (1 << 31) + 1];
    match random.below(4) {
        0 => odd[random.below(9) as usize],
        1 => random.below(64) as u32,
        _ => random.below(1 << 32) as u32,
    }
}

fn run(program: &Path, words: &[u32]) -> Result<Vec<u32>, String> {
    let (from, to) = (program.with_extension("in"), program.with_extension("out"));
    write_words(&from, words)?;
    let status = Command::new(program).arg(&from).arg(&to).status();
    let status = status.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{} ends with {status}", program.display()));
    }
    let bytes = fs::read(&to).map_err(|error| error.to_string())?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|&word| u32::from_ne_bytes(word)).collect())
}

fn write_words(path: &Path, words: &[u32]) -> Result<(), String> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(path, bytes).map_err(|error| error.to_string())
}

/// Words of a result.
fn words(ty: Ty) -> usize {
    match ty {
        Ty::Point => 5,
        Ty::Array | Ty::Vec3 => 3,
        Ty::Tuple | Ty::Vec2 | Ty::Usize | Ty::U64 => 2,
        _ => 1,
    }
}

/// Whether two results are the same bits; one NaN is as good as another.
fn same(ty: Ty, a: &[u32], b: &[u32]) -> bool {
    let nan = |bits: u32| f32::from_bits(bits).is_nan();
    let float = |k: usize| match ty {
        Ty::F32 | Ty::Array | Ty::Vec3 | Ty::Vec2 => true,
        Ty::Tuple => k == 0,
        Ty::Point => k != 1,
        _ => false,
    };
    a.iter()
        .zip(b)
        .enumerate()
        .all(|(k, (&a, &b))| a == b || (float(k) && nan(a) && nan(b)))
}
