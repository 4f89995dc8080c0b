//! Functions compiled as Rust and as the C++ that they are translated to, and run for the same
//! arguments.

#[allow(
    dead_code,
    unused_imports,
    reason = "methods of kernels and structs are not among the functions made here"
)]
#[path = "../../../../engine/macros/src/translate/mod.rs"]
mod translate;

use super::generate::{ARGUMENTS, CONSTANTS, Made, Ty};
use nearfield_testkit::{
    kernels::{SHIM, compile, odd_or_random},
    random::Random,
};
use std::{env, fs, path::Path, process::Command};
use translate::{Piece, Role};

/// Argument lists that every function gets.
const CALLS: usize = 200;
/// Words of an argument list: one for each number.
const WORDS: usize = 10;

/// Rust in front of the functions.
const RUST: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]
const HALF: f32 = 0.5;
const TINY: f32 = f32::from_bits(0x1234);
const MASK: u32 = 0xffff_0000;
const MINUS: i32 = -7;
fn sane(x: f32) -> f32 { if x.is_nan() { 1.0 } else { x } }
";

/// The main functions of both programs, before and behind the calls. A call's numbers are words.
const RUST_MAIN: [&str; 2] = [
    "fn main() {
    let files: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&files[1]).unwrap();
    let words: Vec<u32> = bytes.chunks(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    let mut out: Vec<u32> = Vec::new();
    for w in words.chunks(10) {
        let f = |k: usize| f32::from_bits(w[k]);
        let t = (f(8), w[9]);
        let (a, b, c, d, e, v) = (f(0), f(1), w[2], w[3] as i32, w[4] & 1 == 1, [f(5), f(6), f(7)]);
",
    "    }
    std::fs::write(&files[2], out.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>()).unwrap();
}
",
];
const CPP_MAIN: [&str; 2] = [
    "
#include <cstdio>
template <class T>
void put(std::FILE* out, const T& value) {
    float numbers[4];
    nf::write(numbers, value);
    std::fwrite(numbers, 4, nf::layout<T>::COUNT, out);
}
int main(int, char** files) {
    std::FILE* in = std::fopen(files[1], \"rb\");
    std::FILE* out = std::fopen(files[2], \"wb\");
    float w[10];
    while (std::fread(w, 4, 10, in) == 10) {
        const float a = w[0], b = w[1];
        const nf::u32 c = nf::read<nf::u32>(w + 2);
        const nf::i32 d = nf::read<nf::i32>(w + 3);
        const bool e = nf::both(nf::read<nf::u32>(w + 4), nf::u32(1)) == nf::u32(1);
        const auto v = nf::read<nf::array<float, 3>>(w + 5);
        const auto t = nf::read<nf::tuple<float, nf::u32>>(w + 8);
",
    "    }
    return std::fclose(out);
}
",
];

/// Compares all functions that the translator takes.
///
/// # Errors
/// The function, the arguments and both results where they differ; the messages of a compiler that
/// refuses its text.
pub(super) fn compare(functions: &[Made]) -> Result<(), String> {
    // A function that is refused takes those along that call it.
    let mut kept: Vec<(&Made, String)> = Vec::new();
    let mut refused: Vec<&str> = Vec::new();
    for made in functions {
        let calls = refused
            .iter()
            .any(|name| made.text.contains(&format!("{name}(")));
        match translated(made) {
            Ok(text) if !calls => kept.push((made, text)),
            _ => refused.push(&made.name),
        }
    }
    if kept.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let cpp = folder.path().join("translated");
    if !compile(&cpp_program(&kept), &cpp).map_err(|error| with_functions(&error, &kept))? {
        return Ok(());
    }
    let rust = folder.path().join("functions");
    compile_rust(&rust_program(&kept), &rust)?;
    let arguments = arguments();
    let (expected, found) = (run(&rust, &arguments)?, run(&cpp, &arguments)?);
    let mut at = 0;
    for call in arguments.chunks(WORDS) {
        for (made, text) in &kept {
            let count = words(made.gives);
            let results = [&expected, &found].map(|all| all.get(at..at + count));
            at += count;
            if let [Some(a), Some(b)] = results
                && same(made.gives, a, b)
            {
                continue;
            }
            return Err(format!(
                "{}\n{text}for the words {call:x?} Rust gives {:x?} and the text {:x?}; all functions:\n{}",
                made.text,
                results[0],
                results[1],
                with_functions("", &kept),
            ));
        }
    }
    Ok(())
}

/// A message, and the functions it is about.
fn with_functions(message: &str, functions: &[(&Made, String)]) -> String {
    let all: Vec<_> = functions
        .iter()
        .map(|(made, text)| format!("{}{text}", made.text))
        .collect();
    format!("{message}\n{}", all.join("\n"))
}

/// The text of a function.
///
/// # Errors
/// The translator's message where it refuses the function.
pub(super) fn translated(made: &Made) -> Result<String, String> {
    let function: syn::ItemFn = syn::parse_str(&made.text).expect("functions are Rust");
    let krate = syn::parse_quote!(nearfield_pairs);
    let translated = translate::function(&function.sig, &function.block, &krate, &[], Role::Called);
    let translated = translated.map_err(|error| error.to_string())?;
    let mut text = String::new();
    for piece in translated.pieces {
        match piece {
            Piece::Text(part) => text.push_str(&part),
            Piece::Name => text.push_str(&made.name),
            Piece::Declarations => {
                for (name, path) in &translated.constants {
                    let path = path.to_string().replace(' ', "");
                    let known = CONSTANTS.iter().find(|known| known.0 == path);
                    let &(_, ty, bits) = known.expect("a constant of this generator");
                    text.push_str(&match ty {
                        Ty::F32 => format!("    const float {name} = nf::from_bits({bits:#x}u);\n"),
                        Ty::I32 => format!("    const nf::i32 {name} = nf::i32::of({bits:#x}u);\n"),
                        _ => format!("    const nf::u32 {name} = nf::u32({bits:#x}u);\n"),
                    });
                }
            }
            // The functions here call each other and use no types that have to be asked for.
            Piece::Hole(hole) => {
                let hole = hole.to_string();
                let called = hole
                    .strip_prefix('<')
                    .and_then(|rest| rest.split(" as ").next());
                text.push_str(called.expect("a called function").trim());
            }
        }
    }
    Ok(text)
}

fn cpp_program(functions: &[(&Made, String)]) -> String {
    let sane = "inline float sane(float x) { return x != x ? 1.0f : x; }\n";
    let mut text = format!("{SHIM}{}{sane}", nearfield_kernels::pairs::SUBSET);
    functions
        .iter()
        .for_each(|(_, function)| text.push_str(function));
    text.push_str(CPP_MAIN[0]);
    for (made, _) in functions {
        text.push_str(&format!(
            "        put(out, {}(a, b, c, d, e, v, t));\n",
            made.name
        ));
    }
    text + CPP_MAIN[1]
}

fn rust_program(functions: &[(&Made, String)]) -> String {
    let mut text = RUST.to_owned();
    functions
        .iter()
        .for_each(|(made, _)| text.push_str(&made.text));
    text.push_str(RUST_MAIN[0]);
    for (made, _) in functions {
        let pushed = match made.gives {
            Ty::F32 => "out.push(r.to_bits());",
            Ty::U32 => "out.push(r);",
            Ty::I32 | Ty::Bool => "out.push(r as u32);",
            Ty::Array => "out.extend(r.map(f32::to_bits));",
            Ty::Tuple => "out.extend([r.0.to_bits(), r.1]);",
        };
        text.push_str(&format!(
            "        let r = {}(a, b, c, d, e, v, t); {pushed}\n",
            made.name
        ));
    }
    text + RUST_MAIN[1]
}

/// Compiles as a release build does.
fn compile_rust(text: &str, program: &Path) -> Result<(), String> {
    let source = program.with_extension("rs");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(&compiler)
        .args(["--edition", "2024", "-O", "-o"])
        .arg(program)
        .arg(&source)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
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

/// Argument lists, the same in every run.
fn arguments() -> Vec<u32> {
    let random = &mut Random::new(9);
    let mut words = Vec::new();
    for _ in 0..CALLS {
        for ty in ARGUMENTS {
            let mut float = || odd_or_random(random).to_bits();
            match ty {
                Ty::F32 => words.push(float()),
                Ty::Array => words.extend([float(), float(), float()]),
                Ty::Tuple => words.extend([float(), float()]),
                Ty::Bool => words.push(random.below(2) as u32),
                Ty::U32 | Ty::I32 => {
                    let odd = [0, 1, 2, 31, 32, 33, u32::MAX, 1 << 31, (1 << 31) + 1];
                    words.push(match random.below(4) {
                        0 => odd[random.below(9) as usize],
                        1 => random.below(64) as u32,
                        _ => random.below(1 << 32) as u32,
                    });
                }
            }
        }
    }
    words
}

fn run(program: &Path, words: &[u32]) -> Result<Vec<u32>, String> {
    let (from, to) = (program.with_extension("in"), program.with_extension("out"));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(&from, bytes).map_err(|error| error.to_string())?;
    let status = Command::new(program).arg(&from).arg(&to).status();
    let status = status.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{} ends with {status}", program.display()));
    }
    let bytes = fs::read(&to).map_err(|error| error.to_string())?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|&word| u32::from_ne_bytes(word)).collect())
}

/// Words of a result.
fn words(ty: Ty) -> usize {
    match ty {
        Ty::Array => 3,
        Ty::Tuple => 2,
        _ => 1,
    }
}

/// Whether two results are the same bits; one NaN is as good as another.
fn same(ty: Ty, a: &[u32], b: &[u32]) -> bool {
    let nan = |bits: u32| f32::from_bits(bits).is_nan();
    let float = |k: usize| match ty {
        Ty::F32 | Ty::Array => true,
        Ty::Tuple => k == 0,
        _ => false,
    };
    a.iter()
        .zip(b)
        .enumerate()
        .all(|(k, (&a, &b))| a == b || (float(k) && nan(a) && nan(b)))
}
