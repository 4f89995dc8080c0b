//! Programs compile for old and new GPUs, and those whose kernels launch kernels link.
//! Needs NVRTC, nvJitLink and the device runtime, but neither a driver nor a GPU. Without them
//! the tests do nothing, or fail if `NEARFIELD_REQUIRE_NVRTC=1`.

use nearfield_gpu::sources::{CHILDREN_PROBE, manifest};
use nearfield_gpu::{
    Arch, Cache, CodeStore, Compiler, ErrorKind, Linker, Origin, PairProgram, Program, Search,
    USER_HEADER, programs,
};
use nearfield_pairs::{Cuda, Pair, PairKernel};
use nearfield_shared::Source;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The machine's compiler, with linker and device runtime; None where a test is to be skipped.
fn compiler() -> Option<Compiler> {
    let required = env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
    let found = Compiler::find(&Search::from_env(), None).and_then(|compiler| {
        // Links a program, so that a missing part is named here.
        let program = programs().into_iter().find(Program::launches_children);
        let arch = *compiler
            .archs()
            .first()
            .expect("NVRTC names what it compiles for");
        compiler.build(&program.expect("a program launches kernels"), arch, None)?;
        Ok(compiler)
    });
    match found {
        Ok(compiler) => Some(compiler),
        Err(error) if required => panic!("NEARFIELD_REQUIRE_NVRTC=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Whether the code is for a GPU (`EM_CUDA` in the header of an ELF file).
fn is_machine_code(code: &[u8]) -> bool {
    code.starts_with(b"\x7fELF") && code[18..20] == 190u16.to_le_bytes()
}

/// Whether the code holds a name.
fn holds(code: &[u8], name: &str) -> bool {
    code.windows(name.len())
        .any(|window| window == name.as_bytes())
}

/// The kernels of the manifest that machine code holds. Every function has a section of its own.
fn kernels_in(source: &Source, code: &[u8]) -> BTreeSet<&'static str> {
    let kernels = source.kernels.iter().copied();
    kernels.filter(|kernel| holds(code, kernel)).collect()
}

/// Does `work` for every item, on all cores.
fn on_all_cores<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let (next, cores) = (AtomicUsize::new(0), thread::available_parallelism());
    thread::scope(|scope| {
        for _ in 0..cores.map_or(1, Into::into) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// The program of a source and the kernels that machine code of it holds.
type Found = BTreeMap<(&'static str, BTreeSet<&'static str>), Program>;

fn build(
    compiler: &Compiler,
    program: &Program,
    arch: Arch,
) -> (&'static str, BTreeSet<&'static str>) {
    let code = compiler.build(program, arch, None).unwrap();
    assert!(is_machine_code(&code), "{} for {arch}", program.name());
    let source = manifest().find(|source| source.name == program.name());
    let source = source.expect("a program is made of a source");
    let kernels = kernels_in(source, &code);
    assert!(
        !kernels.is_empty(),
        "{} for {arch} is empty",
        program.name()
    );
    (source.name, kernels)
}

/// Compiles programs for one architecture, which have to hold every kernel between them; then one
/// program of each set of kernels for others. The package `nearfield-kernels` compiles those of
/// applications.
fn compile(compiler: &Compiler, programs: &[Program], others: &[Arch]) {
    let known = compiler.archs();
    assert!(
        others.iter().all(|arch| known.contains(arch)),
        "NVRTC {} knows only {known:?}",
        compiler.version()
    );
    let first = Arch::new(90);
    let found = Mutex::new(Found::new());
    on_all_cores(programs, |program| {
        let kernels = build(compiler, program, first);
        let mut found = found.lock().unwrap();
        found.entry(kernels).or_insert_with(|| program.clone());
    });
    let found = found.into_inner().unwrap();
    for source in manifest() {
        let of_source = found.keys().filter(|(name, _)| *name == source.name);
        let compiled: BTreeSet<_> = of_source
            .flat_map(|(_, kernels)| kernels)
            .copied()
            .collect();
        let named: BTreeSet<_> = source.kernels.iter().copied().collect();
        assert_eq!(compiled, named, "kernels of {}", source.name);
    }
    let others = others.iter().filter(|&&arch| arch != first);
    let work: Vec<_> = others
        .flat_map(|arch| found.iter().map(move |found| (found, *arch)))
        .collect();
    on_all_cores(&work, |&((kernels, program), arch)| {
        assert_eq!(build(compiler, program, arch), *kernels, "{arch}");
    });
}

/// What a program is made of, two parts at a time: its source, options and the user's text.
fn pairs_of_parts(program: &Program) -> BTreeSet<[String; 3]> {
    let user = program.user_name().map(str::to_owned);
    let parts: Vec<_> = program.own_options().iter().cloned().chain(user).collect();
    let none = [program.name(), "", ""].map(str::to_owned);
    let pairs = (0..parts.len()).flat_map(|a| (a + 1..parts.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| {
            [
                program.name().to_owned(),
                parts[a].clone(),
                parts[b].clone(),
            ]
        })
        .chain([none])
        .collect()
}

/// Some programs that have every two parts together which any program has, the one with the most
/// new pairs first.
fn two_by_two() -> Vec<Program> {
    let mut left: Vec<_> = programs()
        .into_iter()
        .map(|program| (pairs_of_parts(&program), program))
        .collect();
    let mut chosen = Vec::new();
    while let Some(k) = (0..left.len()).max_by_key(|&k| left[k].0.len()) {
        let (pairs, program) = left.swap_remove(k);
        chosen.push(program);
        left.retain_mut(|(other, _)| {
            other.retain(|pair| !pairs.contains(pair));
            !other.is_empty()
        });
    }
    chosen
}

#[test]
fn every_kernel_is_compiled_with_every_two_options_together_for_old_and_new_gpus() {
    let Some(compiler) = compiler() else { return };
    let ends = [Arch::CHECKED[0], Arch::CHECKED[Arch::CHECKED.len() - 1]];
    compile(&compiler, &two_by_two(), &ends);
}

#[test]
#[ignore = "takes minutes"]
fn every_program_and_for_every_architecture_every_kernel_is_compiled() {
    let Some(compiler) = compiler() else { return };
    compile(&compiler, &programs(), &Arch::CHECKED);
}

#[test]
fn what_launches_kernels_needs_linking_and_gets_it() {
    let Some(compiler) = compiler() else { return };
    let arch = Arch::new(90);
    let program = Program::from(&CHILDREN_PROBE);
    let object = compiler.compile(&program, arch).unwrap();
    let found = compiler.libraries().nvjitlink.clone().unwrap();
    let linked = compiler
        .link(&program, arch, &object, &Linker::NvJitLink(found.clone()))
        .unwrap();
    // The device runtime has come in.
    assert!(
        linked.len() > object.len() + 10_000,
        "{} and {}",
        object.len(),
        linked.len()
    );
    let error = compiler
        .link(
            &program,
            arch,
            b"no machine code",
            &Linker::NvJitLink(found),
        )
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Link {
                linker: "nvJitLink",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn arithmetic_is_not_contracted() {
    let Some(compiler) = compiler() else { return };
    let text = "extern \"C\" __global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; }";
    let arch = Arch::new(90);
    let plain = Program::new("contract", text);
    let contracted = plain.clone().option("--fmad=true");
    let codes = [plain, contracted].map(|program| compiler.compile(&program, arch).unwrap());
    assert_ne!(
        codes[0], codes[1],
        "the option changes nothing, so this test sees nothing"
    );
    let explicit = text.replace(
        "x[1] * x[2] + x[3]",
        "__fadd_rn(__fmul_rn(x[1], x[2]), x[3])",
    );
    let explicit = compiler
        .compile(&Program::new("contract", explicit), arch)
        .unwrap();
    assert_eq!(codes[0], explicit);
}

#[test]
fn a_users_mistake_is_shown_with_the_users_file_and_line() {
    let Some(compiler) = compiler() else { return };
    let own = format!(
        "#include \"shape.cuh\"\n// A line of ours.\n#include \"{USER_HEADER}\"\n\
         extern \"C\" __global__ void go(float* out) {{ out[0] = weight(SIDE); }}\n"
    );
    let program = |text: &str| {
        Program::new("fused", own.as_str())
            .header("shape.cuh", "#define SIDE (2.0f * SCALE)\n")
            .define("SCALE", 3)
            .user_text("my kernel.cu", text)
    };
    let right = "float weight(float q) {\n    return 1.0f - q;\n}\n";
    let wrong = "float weight(float q) {\n    float a = 1.0f;\n    return a - qq;\n}\n";
    let arch = Arch::new(80);
    assert!(is_machine_code(
        &compiler.compile(&program(right), arch).unwrap()
    ));
    let error = compiler.compile(&program(wrong), arch).unwrap_err();
    let ErrorKind::Compile { program, log, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(program, "fused");
    assert!(log.contains("my kernel.cu(3)"), "{log}");
    assert!(log.contains("\"qq\""), "{log}");
}

/// A kernel whose text the compiler refuses, by hand or as if the macro had written it.
struct Broken {
    translated: bool,
}

impl PairKernel for Broken {
    type Target = ();
    type Source = ();
    type Output = f32;

    fn pair(&self, pair: Pair, (): (), (): ()) -> f32 {
        pair.d2
    }

    fn cuda(&self) -> Option<Cuda> {
        let text = "void pair(const float*, const Pair& pair, const float*, const float*, float* r) {\n\
                    r[0] = pair.d3;\n}";
        // SAFETY: it does not compile.
        let cuda = unsafe { Cuda::new("Broken", text) };
        Some(if self.translated {
            cuda.translated()
        } else {
            cuda
        })
    }
}

#[test]
fn a_refused_translation_is_called_a_bug_of_the_library() {
    let Some(compiler) = compiler() else { return };
    let refused = |translated| {
        let (program, _) = PairProgram::of(&Broken { translated }).unwrap();
        compiler.compile(&program.program(), Arch::new(80))
    };
    let error = refused(true).unwrap_err();
    let ErrorKind::Translation { kernel, log, .. } = error.kind() else {
        panic!("{error}");
    };
    assert!(kernel.ends_with("Broken"), "{kernel}");
    assert!(log.contains("Broken(2)") && log.contains("d3"), "{log}");
    let message = error.to_string();
    for part in [kernel, "bug of Nearfield", "cuda_source", "sm_80", log] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    // A text by hand is its author's.
    let error = refused(false).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Compile { .. }), "{error}");
}

#[test]
fn what_cannot_be_compiled_is_refused_by_name() {
    let Some(compiler) = compiler() else { return };
    let arch = Arch::new(90);
    let refused =
        |program: Program, arch| compiler.compile(&program, arch).unwrap_err().to_string();
    let nul = refused(Program::new("holed", "int a;\0"), arch);
    assert!(
        nul.contains("holed") && nul.contains("NUL character at byte 6"),
        "{nul}"
    );
    let odd = refused(Program::new("odd", "").option("--no-such-option"), arch);
    assert!(
        odd.contains("odd") && odd.contains("no-such-option"),
        "{odd}"
    );
    let old = refused(Program::new("old", ""), Arch::new(10));
    assert!(old.contains("sm_10") && old.contains("sm_90"), "{old}");
}

#[test]
fn an_architecture_newer_than_the_compiler_gets_code_of_its_family() {
    let Some(compiler) = compiler() else { return };
    assert_eq!(compiler.target(Arch::new(90)), Arch::new(90));
    // No GPU has 9.9 or 13.7, so no compiler knows them.
    assert_eq!(compiler.target(Arch::new(99)), Arch::new(90));
    assert_eq!(compiler.target(Arch::new(137)), Arch::new(137));
    let store = CodeStore::new(None, Search::from_env());
    let program = &programs()[0];
    let code = store.code(program, Arch::new(99), None).unwrap();
    assert_eq!(
        code.bytes,
        compiler.build(program, Arch::new(90), None).unwrap()
    );
    let error = store.code(program, Arch::new(137), None).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::UnknownArch { .. }),
        "{error}"
    );
}

#[test]
fn a_filled_cache_needs_no_compiler() {
    let Some(_) = compiler() else { return };
    let place = tempfile::tempdir().unwrap();
    let cache = || Some(Cache::at(place.path()));
    let nowhere = || Search::only([Path::new("/nowhere").to_owned()]);
    let arch = Arch::new(90);
    let here = CodeStore::new(cache(), Search::from_env());
    let node = CodeStore::new(cache(), nowhere());
    let (linked, plain): (Vec<_>, Vec<_>) =
        programs().into_iter().partition(Program::launches_children);
    let few = linked.into_iter().take(1).chain(plain.into_iter().take(3));
    for program in few {
        assert!(matches!(
            node.code(&program, arch, None).unwrap_err().kind(),
            ErrorKind::NoLibrary { .. }
        ));
        let made = here.code(&program, arch, None).unwrap();
        assert_eq!(made.origin, Origin::Compiled);
        let read = node.code(&program, arch, None).unwrap();
        assert_eq!(read.origin, Origin::Cache);
        assert_eq!(read.bytes, made.bytes);
        assert_eq!(read.compiler, here.compiler().unwrap().version());
        // Another architecture is another entry.
        assert!(node.code(&program, Arch::new(80), None).is_err());
    }
}

#[test]
fn a_damaged_entry_is_compiled_anew_and_mended() {
    let Some(_) = compiler() else { return };
    let place = tempfile::tempdir().unwrap();
    let store = CodeStore::new(Some(Cache::at(place.path())), Search::from_env());
    let (program, arch) = (&programs()[0], Arch::new(90));
    let made = store.code(program, arch, None).unwrap();
    let path = store
        .cache()
        .unwrap()
        .path(program.name(), arch, &program.key(arch));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let again = store.code(program, arch, None).unwrap();
    assert_eq!(again.origin, Origin::Compiled);
    assert_eq!(again.bytes, made.bytes);
    assert_eq!(
        store.code(program, arch, None).unwrap().origin,
        Origin::Cache
    );
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let Some(_) = compiler() else { return };
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let store = CodeStore::new(Some(Cache::at(file.join("folder"))), Search::from_env());
    let program = &programs()[0];
    for _ in 0..2 {
        let code = store.code(program, Arch::new(90), None).unwrap();
        assert_eq!(code.origin, Origin::Compiled);
    }
}
