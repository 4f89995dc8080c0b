//! Tests in children of this process that find the null GPU in the driver's place.

use nearfield_gpu::{Compiler, Search};
use nearfield_null_gpu::Counts;
use std::{env, fs, os::unix::fs::symlink, path::PathBuf, process::Command};

/// Runs an ignored test, `module::name`, in a process whose driver is the null GPU.
pub(crate) fn on_null_gpu(test: &str) {
    on_null_gpus(1, test);
}

/// As [`on_null_gpu`], with this number of GPUs.
pub(crate) fn on_null_gpus(count: u32, test: &str) {
    if let Err(error) = Compiler::find(&Search::from_env(), None) {
        let required = env::var("NEARFIELD_REQUIRE_NVRTC").is_ok_and(|value| value == "1");
        assert!(!required, "NEARFIELD_REQUIRE_NVRTC=1, but {error}");
        eprintln!("skipped: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let driver = library();
    for name in ["libcuda.so", "libcuda.so.1"] {
        symlink(&driver, folder.path().join(name)).unwrap();
    }
    let mut path = folder.path().as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(others);
    }
    let ran = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", path)
        .env("NEARFIELD_NULL_GPUS", count.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}\n{errors}");
}

/// Calls of the driver so far.
pub(crate) fn counts() -> Counts {
    // SAFETY: the library's initialisers need nothing, and the function is that of the crate.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        let ask = driver.get::<unsafe extern "C" fn(*mut Counts)>(b"nullGpuCounts");
        let mut counts = Counts::default();
        ask.expect("the driver is not the null GPU")(&mut counts);
        counts
    }
}

/// The address of a copy of an array in memory of the GPU, which is never freed.
pub(crate) fn on_device<T: Copy>(array: &[T]) -> u64 {
    let (mut address, bytes) = (0, size_of_val(array));
    // SAFETY: as above; memory of the null GPU is memory of the host, with room for the array.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        let allocate = driver.get::<unsafe extern "C" fn(*mut u64, usize) -> u32>(b"cuMemAlloc_v2");
        assert_eq!(allocate.unwrap()(&mut address, bytes.max(1)), 0);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        std::ptr::copy_nonoverlapping(array.as_ptr().cast(), to, bytes);
    }
    address
}

/// Resets the GPU, as another library of the process may.
pub(crate) fn reset() {
    // SAFETY: as above.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        let reset = driver.get::<unsafe extern "C" fn(i32) -> u32>(b"cuDevicePrimaryCtxReset_v2");
        assert_eq!(reset.unwrap()(0), 0);
    }
}

/// Ends the context as a kernel's fault does.
pub(crate) fn fail() {
    // SAFETY: as above.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        driver
            .get::<unsafe extern "C" fn()>(b"nullGpuFail")
            .unwrap()();
    }
}

/// Whether the driver answers.
pub(crate) fn answers() -> bool {
    let (mut free, mut total) = (0usize, 0usize);
    // SAFETY: as above; both are places for a number.
    unsafe {
        type MemGetInfo = unsafe extern "C" fn(*mut usize, *mut usize) -> u32;
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        let ask = driver.get::<MemGetInfo>(b"cuMemGetInfo_v2").unwrap();
        ask(&mut free, &mut total) == 0
    }
}

/// The newest build of this package's library, beside this test.
fn library() -> PathBuf {
    let here = env::current_exe().unwrap();
    let named = here.parent().unwrap().join("libnearfield_null_gpu.so");
    assert!(
        fs::exists(&named).unwrap(),
        "{} is missing",
        named.display()
    );
    named
}
