//! What the tests of resident engines begin with.

use nearfield::resident::{
    ResidentBuilder, ResidentEngine,
    cudarc::driver::{CudaSlice, CudaStream},
};
use std::sync::Arc;

/// An engine on the first GPU; None where a test is to be skipped.
pub(crate) fn start(builder: ResidentBuilder) -> Option<ResidentEngine> {
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
pub(crate) fn upload(stream: &Arc<CudaStream>, points: &[[f32; 3]]) -> CudaSlice<f32> {
    stream.clone_htod(points.as_flattened()).unwrap()
}
