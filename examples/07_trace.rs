//! Where does the time go? Two lines record a program, `nearfield trace` shows what they recorded.
//!
//! `cargo run --release --example 07_trace` prints where the time went and the path of the trace;
//! `nearfield trace report PATH` makes a page of it.

use nearfield::{kernels::SphDensity, prelude::*};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("trace.jsonl");
    // The two lines: this one, and `trace.finish()` at the end. A program that has a `tracing`
    // subscriber of its own adds the layer of `nearfield_trace::record` to it instead. With the
    // feature `trace` of `nearfield` the module is `nearfield::report::trace`.
    let trace = nearfield_trace::start(&path)?;

    // Anything that uses an engine: here points that move, and their density.
    let mut positions: Vec<[f32; 3]> = (0..20_000u32)
        .map(|i| [i % 40, i / 40 % 25, i / 1000].map(|k| k as f32))
        .collect();
    let masses = vec![1.0f32; positions.len()];
    let kernel = SphDensity::with_support(2.5);
    let mut engine = Engine::builder(2.5).build()?;
    let points = engine.add_point_set(&positions)?;
    for step in 0..10 {
        // A span with a field `step` marks the steps; without, they are told by the updates. The
        // target is that of your crate: name it by `Options::target` to have it recorded.
        let _step = tracing::debug_span!(target: "nearfield", "step", step).entered();
        for (k, position) in positions.iter_mut().enumerate() {
            position[k % 3] += 0.02;
        }
        engine.update(points, &positions)?;
        let field = &masses;
        let density = engine
            .traverse(&kernel, points, points)
            .sources(field)
            .run()?;
        assert_eq!(density.len(), positions.len());
    }
    trace.finish()?;

    // The command line shows this too; here it is done in the program itself.
    let trace = nearfield_trace_analysis::Trace::open(&path)?;
    let analysis = nearfield_trace_analysis::Analysis::of(&trace)?;
    print!("{}", analysis.summary);
    println!("\nrecorded in {}", path.display());
    Ok(())
}
