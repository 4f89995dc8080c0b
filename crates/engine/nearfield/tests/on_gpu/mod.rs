//! What tests on a GPU begin with.

#![allow(dead_code, reason = "not every file of tests needs all of it")]

use nearfield::device::{
    DeviceEngine, DeviceEngineBuilder,
    cudarc::driver::{CudaSlice, CudaStream, result::mem_get_info},
};
use std::sync::Arc;

/// An engine on the first GPU; None where a test is to be skipped.
pub(crate) fn start(builder: DeviceEngineBuilder) -> Option<DeviceEngine> {
    let required = std::env::var("NEARFIELD_REQUIRE_GPU").is_ok_and(|value| value == "1");
    match builder.on_gpu(0) {
        Ok(engine) => Some(engine),
        Err(error) if required => panic!("NEARFIELD_REQUIRE_GPU=1, but {error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Coordinates on the device, three numbers a point.
#[allow(
    clippy::disallowed_methods,
    reason = "copies of a test need no counting"
)]
pub(crate) fn upload(stream: &Arc<CudaStream>, points: &[[f32; 3]]) -> CudaSlice<f32> {
    stream.clone_htod(points.as_flattened()).unwrap()
}

/// Takes the memory of the stream's GPU, all but about 64 MiB; it is free again when this is
/// dropped.
pub(crate) fn take_memory(stream: &Arc<CudaStream>) -> Vec<CudaSlice<u8>> {
    const LEFT: usize = 64 << 20;
    let mut taken = Vec::new();
    stream.context().bind_to_thread().unwrap();
    for _ in 0..64 {
        stream.synchronize().unwrap();
        let (free, _) = mem_get_info().unwrap();
        let Some(more) = free.checked_sub(LEFT).filter(|&more| more > 1 << 20) else {
            break;
        };
        // SAFETY: it is never read.
        taken.extend(unsafe { stream.alloc::<u8>(more - more / 16) });
    }
    taken
}
