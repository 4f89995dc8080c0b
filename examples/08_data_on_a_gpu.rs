//! An engine for a solver whose data live on a GPU: nothing is copied to the host but
//! the answer.
//!
//! ```sh
//! cargo run --release --example 08_data_on_a_gpu
//! ```

use nearfield::{
    ErrorKind,
    device::{DeviceEngine, DeviceField, Progress},
    kernels::SphDensity,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let radius = 2.0;
    // On a stream of its own; `on(&stream)` takes yours.
    let mut engine = match DeviceEngine::builder(radius).on_gpu(0) {
        Err(error) if matches!(error.kind(), ErrorKind::DeviceUnavailable { .. }) => {
            println!("no GPU to show this on: {error}");
            return Ok(());
        }
        engine => engine?,
    };
    println!("on the {}", engine.device().name);

    // Your own kernels would fill these arrays; here they come from the host once.
    let side = 40usize;
    let coordinate = |i: usize, axis: u32| (i / side.pow(axis) % side) as f32;
    let positions: Vec<f32> = (0..side.pow(3))
        .flat_map(|i| [0, 1, 2].map(|axis| coordinate(i, axis)))
        .collect();
    // Copies through the engine's queue are counted, and show in traces.
    let (queue, stream) = (engine.queue().clone(), engine.stream().clone());
    let mut positions = queue.array("positions", &positions)?;
    let mass = queue.array("masses", &vec![1.0f32; side.pow(3)])?;
    let mut density = stream.alloc_zeros::<f32>(side.pow(3))?;

    let water = engine.add_point_set(&positions.as_view())?;
    let kernel = SphDensity::with_support(radius);
    for step in 0..3 {
        // Everything is queued on the stream; the host does not wait until `finish`.
        engine.update(water, &positions.as_view())?;
        loop {
            engine
                .traverse(&kernel, water, water)
                .sources(DeviceField::new(mass.as_view(), 1))
                .run_into(&mut density.as_view_mut())?;
            match engine.finish()? {
                Progress::Valid => break,
                // Points had left the room their cells had; there is more now.
                Progress::Repeat => {}
            }
        }
        let mut found = vec![0.0; density.len()];
        queue.copy_to_host("densities", &density.as_view(), &mut found)?;
        let inside = found.iter().copied().fold(0.0, f32::max);
        println!("step {step}: density inside {inside:.4}");

        // In the order of the cells everything that follows is faster.
        let mut sorted = stream.alloc_zeros::<f32>(positions.len())?;
        engine.reorder(water, 3, &positions.as_view(), &mut sorted.as_view_mut())?;
        positions = sorted;
    }
    println!("copied in all: {}", engine.transfers());
    Ok(())
}
