//! Programs on a GPU. Without one the tests do nothing, or fail if `NEARFIELD_REQUIRE_GPU=1`.
//! They compile, so they need NVRTC and the device runtime too.
#![allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]

use nearfield_gpu::{
    Arch, Cache, CodeStore, Compiler, Context, Entry, ErrorKind, LaunchShape, Linker, Modules,
    Origin, Program, Queue, Search, Stream, UserKernel, Version, open,
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
    let kernel = UserKernel::of(&module, "checksum", &Queue::new(stream.clone())).unwrap();
    let count = values.len() as u32;
    let shape = LaunchShape::covering(100_000, 1024);
    // SAFETY: the arguments are the kernel's, and `count` is the length of the values.
    unsafe { kernel.start(shape, (&on_device, &count, &mut sum)) }.unwrap();
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
    let queue = Queue::new(stream.clone());
    let kernel = UserKernel::of(&module, "squared_distances", &queue).unwrap();
    let (number, shape) = (count as u32, LaunchShape::covering(count, 1024));
    // SAFETY: the arguments are the kernel's, with three coordinates and one result per pair.
    unsafe { kernel.start(shape, (&a, &b, &number, &mut out)) }.unwrap();
    let found = stream.clone_dtoh(&out).unwrap();
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "pair {index}: {found:e} and {expected:e}"
        );
    }
}

#[test]
fn a_block_has_the_shared_memory_that_its_launch_names_and_no_more() {
    let Some(context) = gpu() else { return };
    let text = r#"extern "C" __global__ void shared_bytes(unsigned* bytes) {
        extern __shared__ unsigned words[];
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(*bytes));
        words[*bytes / 4 - 1] = 7;
        *bytes += words[*bytes / 4 - 1];
    }"#;
    let program = Program::new("shared_bytes", text);
    let module = fresh_modules(&context).load(&program).unwrap();
    let queue = Queue::new(context.default_stream());
    let kernel = UserKernel::of(&module, "shared_bytes", &queue).unwrap();
    let mut bytes = queue.alloc_zeros::<u32>(1).unwrap();
    let mut start = |shared| {
        let shape = LaunchShape::of(1, 1).with_shared(shared);
        // SAFETY: the argument is the kernel's, which uses the shared memory that it is told of.
        unsafe { kernel.start(shape, (&mut bytes,)) }?;
        Ok::<_, nearfield_gpu::Error>(queue.clone_dtoh(&bytes).unwrap()[0])
    };
    assert_eq!(start(1024).unwrap(), 1024 + 7);
    let error = start(56 << 10).unwrap_err().to_string();
    assert!(error.contains("shared_bytes"), "{error}");
    kernel.allow_shared(56 << 10).unwrap();
    assert_eq!(start(56 << 10).unwrap(), (56 << 10) + 7);
    let error = kernel.allow_shared(u32::MAX).unwrap_err().to_string();
    assert!(error.contains("shared_bytes"), "{error}");
}

/// Lets `parents` threads launch a child each and checks what the children wrote.
fn children_write(stream: &Stream, kernel: &UserKernel) {
    let parents = 1000u32;
    let mut out = stream.alloc_zeros::<u32>(32 * parents as usize).unwrap();
    let mut status = stream.alloc_zeros::<u32>(1).unwrap();
    let shape = LaunchShape::covering(parents as usize, 1024);
    // SAFETY: the arguments are the kernel's, with 32 results per parent.
    unsafe { kernel.start(shape, (&parents, &mut out, &mut status)) }.unwrap();
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
    let queue = Queue::new(context.default_stream());
    let module = modules.load(&program).unwrap();
    children_write(
        &queue,
        &UserKernel::of(&module, "launch_children", &queue).unwrap(),
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
        children_write(
            &queue,
            &UserKernel::of_code(code, "launch_children", &queue).unwrap(),
        );
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
    let queue = Queue::new(context.default_stream());
    UserKernel::of(&later, "checksum", &queue).unwrap();
    for name in ["no_such_kernel", "check\0sum"] {
        let error = UserKernel::of(&later, name, &queue).unwrap_err();
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
