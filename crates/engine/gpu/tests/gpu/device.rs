//! Programs on a GPU. Without one the tests do nothing, or fail if `NEARFIELD_REQUIRE_GPU=1`.
//! They compile, so they need NVRTC and the device runtime too.
#![allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]

use nearfield_gpu::{
    Arch, Cache, CodeStore, Compiler, Context, Entry, ErrorKind, Function, Linker, Modules, Origin,
    Program, Search, Version, open,
};
use std::{env, path::Path, sync::Arc, thread};

/// The first GPU; None where a test is to be skipped.
fn gpu() -> Option<Context> {
    let required = env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match open(0) {
        Ok(context) => Some(context),
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Modules whose code is compiled for this test.
fn fresh_modules(context: &Context) -> Modules {
    let store = CodeStore::new(None, Search::from_env());
    Modules::with_store(context, store).unwrap()
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn a_checksum_is_the_cpus() {
    let Some(context) = gpu() else { return };
    let modules = fresh_modules(&context);
    let module = modules
        .load(&Program::from(&nearfield_gpu::sources::PROBE))
        .unwrap();
    let values: Vec<u32> = (0..1_000_003u64).map(|i| mix(i) as u32).collect();
    let expected = (0u64..).zip(&values).fold(0u64, |sum, (i, &value)| {
        sum.wrapping_add(mix(i << 32 | u64::from(value)))
    });
    let stream = context.default_stream();
    let on_device = stream.clone_htod(&values).unwrap();
    let mut sum = stream.alloc_zeros::<u64>(1).unwrap();
    let kernel = module.function("checksum").unwrap();
    let count = values.len() as u32;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&on_device).arg(&count).arg(&mut sum);
    // SAFETY: the arguments are the kernel's, and `count` is the length of the values.
    unsafe { launch.start(100_000u32.div_ceil(1024), 1024) }.unwrap();
    assert_eq!(stream.clone_dtoh(&sum).unwrap(), [expected]);
}

#[test]
fn distances_are_the_cpus_to_the_bit_down_to_subnormals() {
    let Some(context) = gpu() else { return };
    let modules = fresh_modules(&context);
    let module = modules
        .load(&Program::from(&nearfield_gpu::sources::PROBE))
        .unwrap();
    let count = 100_000usize;
    let coordinate = |i: u64| {
        let unit = (mix(i) >> 40) as f32 / (1u64 << 24) as f32;
        // From 1 down to 2^-80, whose squares vanish.
        unit * 2f32.powi(-((mix(!i) % 81) as i32))
    };
    let a: Vec<f32> = (0..3 * count as u64).map(coordinate).collect();
    let b: Vec<f32> = (0..3 * count as u64)
        .map(|i| coordinate(i + 1_000_000))
        .collect();
    let expected: Vec<f32> = a
        .chunks(3)
        .zip(b.chunks(3))
        .map(|(a, b)| {
            let [dx, dy, dz] = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
            dz.mul_add(dz, dy.mul_add(dy, dx * dx))
        })
        .collect();
    assert!(
        expected.iter().any(|d| d.is_subnormal()),
        "the test meets no subnormal distance"
    );
    let stream = context.default_stream();
    let (a, b) = (
        stream.clone_htod(&a).unwrap(),
        stream.clone_htod(&b).unwrap(),
    );
    let mut out = stream.alloc_zeros::<f32>(count).unwrap();
    let kernel = module.function("squared_distances").unwrap();
    let number = count as u32;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&a).arg(&b).arg(&number).arg(&mut out);
    // SAFETY: the arguments are the kernel's, with three coordinates and one result per pair.
    unsafe { launch.start(number.div_ceil(1024), 1024) }.unwrap();
    let found = stream.clone_dtoh(&out).unwrap();
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "pair {index}: {found:e} and {expected:e}"
        );
    }
}

/// Lets `parents` threads launch a child each and checks what the children wrote.
fn children_write(context: &Context, kernel: &Function) {
    let parents = 1000u32;
    let stream = context.default_stream();
    let mut out = stream.alloc_zeros::<u32>(32 * parents as usize).unwrap();
    let mut status = stream.alloc_zeros::<u32>(1).unwrap();
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&parents).arg(&mut out).arg(&mut status);
    // SAFETY: the arguments are the kernel's, with 32 results per parent.
    unsafe { launch.start(parents.div_ceil(1024), 1024) }.unwrap();
    assert_eq!(
        stream.clone_dtoh(&status).unwrap(),
        [0],
        "launches from the device failed"
    );
    let expected: Vec<u32> = (0..32 * parents)
        .map(|slot| slot.wrapping_mul(2_654_435_761).wrapping_add(1))
        .collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn kernels_launch_kernels_whichever_linker_was_used() {
    let Some(context) = gpu() else { return };
    let program = Program::from(&nearfield_gpu::sources::CHILDREN_PROBE);
    let modules = fresh_modules(&context);
    children_write(
        &context,
        &modules
            .load(&program)
            .unwrap()
            .function("launch_children")
            .unwrap(),
    );

    let compiler = Compiler::find(&Search::from_env(), None).unwrap();
    let object = compiler.compile(&program, modules.arch()).unwrap();
    let mut linkers = vec![Linker::Driver(context.clone())];
    linkers.extend(
        compiler
            .libraries()
            .nvjitlink
            .clone()
            .map(Linker::NvJitLink),
    );
    for linker in linkers {
        let code = compiler
            .link(&program, modules.arch(), &object, &linker)
            .unwrap();
        let kernel = context.load_function(code, "launch_children").unwrap();
        children_write(&context, &kernel);
    }
}

#[test]
fn the_driver_explains_what_it_cannot_link() {
    let Some(context) = gpu() else { return };
    let compiler = Compiler::find(&Search::from_env(), None).unwrap();
    let program = Program::from(&nearfield_gpu::sources::CHILDREN_PROBE);
    let arch = fresh_modules(&context).arch();
    let linker = Linker::Driver(context);
    let error = compiler
        .link(&program, arch, b"no machine code", &linker)
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Link {
                linker: "driver",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn modules_are_loaded_once_and_later_from_the_cache_without_a_compiler() {
    let Some(context) = gpu() else { return };
    let place = tempfile::tempdir().unwrap();
    let modules = |search| {
        let store = CodeStore::new(Some(Cache::at(place.path())), search);
        Modules::with_store(&context, store).unwrap()
    };
    let program = Program::from(&nearfield_gpu::sources::PROBE);
    let first = modules(Search::from_env());
    let loaded: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| first.load(&program).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(loaded.iter().all(|module| Arc::ptr_eq(module, &loaded[0])));
    assert_eq!(loaded[0].origin(), Origin::Compiled);

    let nowhere = || Search::only([Path::new("/nowhere").to_owned()]);
    let later = modules(nowhere()).load(&program).unwrap();
    assert_eq!(later.origin(), Origin::Cache);
    later.function("checksum").unwrap();
    for name in ["no_such_kernel", "check\0sum"] {
        let error = later.function(name).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NoKernel { .. }),
            "{error}"
        );
    }
}

#[test]
fn code_that_the_driver_refuses_is_compiled_anew() {
    let Some(context) = gpu() else { return };
    let place = tempfile::tempdir().unwrap();
    let program = Program::from(&nearfield_gpu::sources::PROBE);
    let modules = |search| {
        let store = CodeStore::new(Some(Cache::at(place.path())), search);
        Modules::with_store(&context, store).unwrap()
    };
    let arch = modules(Search::from_env()).arch();
    let others = [Arch::new(75), Arch::new(80)];
    let other = others
        .into_iter()
        .find(|other| other.number() / 10 != arch.number() / 10);
    let compiler = Compiler::find(&Search::from_env(), None).unwrap();
    for code in [
        compiler.build(&program, other.unwrap(), None).unwrap(),
        b"no machine code".to_vec(),
    ] {
        // A whole entry, but one that this device cannot load.
        let compiler = Version::new(99, 0);
        let entry = Entry { code, compiler };
        let cache = Cache::at(place.path());
        let keep = || {
            cache
                .write(program.name(), arch, &program.key(arch), &entry)
                .unwrap()
        };
        keep();
        let module = modules(Search::from_env()).load(&program).unwrap();
        assert_eq!(module.origin(), Origin::Compiled);

        keep();
        let nowhere = Search::only([Path::new("/nowhere").to_owned()]);
        let error = modules(nowhere).load(&program).unwrap_err().to_string();
        assert!(error.contains("NVRTC 99.0"), "{error}");
    }
}
