//! Memory that is refused is an error with the bytes, wherever it happens.

use crate::{
    system::{alone, with_memory},
    uses::{self, Input},
};
use nearfield::{Builder, all_pairs::SampleGrid, prelude::*};
use nearfield_testkit::memory::Refusing;

const MEGABYTE: u64 = 1 << 20;

#[global_allocator]
static MEMORY: Refusing = Refusing::nothing();

/// From here on requests grow with the input; a controller takes 12 kB.
const GROWS: usize = 16_384;

/// Does something with one request for memory granted more every time, until it succeeds; before
/// that it must fail with an error that says so, never otherwise.
fn squeeze(name: &str, work: impl Fn() -> Result<u64, Error>) {
    let expected = work().unwrap_or_else(|error| panic!("{name}: {error}"));
    let (found, refused) = MEMORY.squeeze(GROWS, "bytes are needed for", || {
        // No threads are started here, so memory is all that can be short.
        work().inspect_err(|error| assert!(error.is_out_of_memory(), "{name}: {error}"))
    });
    assert_eq!(found, expected, "{name} after {refused} refusals");
    println!("{name}: refused {refused} times");
    assert!(refused > 0, "{name} was never short of memory");
}

#[test]
fn every_use_of_an_engine_survives_that_memory_is_refused() {
    alone(
        "memory::every_use_of_an_engine_survives_that_memory_is_refused",
        || {
            let input = Input::new(12_000);
            for boxed in [false, true] {
                let periodic = |builder: Builder| {
                    if boxed {
                        builder.periodic([10.0; 3].map(Some))
                    } else {
                        builder
                    }
                };
                for (name, of) in uses::SINGLE {
                    squeeze(name, || of(&input, periodic(uses::on_cpu(&input, 1))));
                }
                let name = "double precision";
                squeeze(name, || {
                    uses::double(&input, periodic(uses::in_double(&input, 1)))
                });
            }
        },
    );
}

#[test]
fn sums_over_all_pairs_survive_that_memory_is_refused() {
    let name = "memory::sums_over_all_pairs_survive_that_memory_is_refused";
    alone(name, || {
        let input = Input::new(12_000);
        squeeze("sums over all pairs", || uses::all_pairs(&input, 1));
    });
}

#[test]
fn what_is_far_too_much_is_refused_with_the_bytes() {
    alone(
        "memory::what_is_far_too_much_is_refused_with_the_bytes",
        || {
            with_memory(256 * MEGABYTE, || {
                let mut sums = Engine::all_pairs()
                    .device(Device::Cpu)
                    .threads(1)
                    .build()
                    .unwrap();
                let grid = SampleGrid {
                    dims: [1 << 12, 1 << 12, 1 << 12],
                    spacing: 1.0,
                    origin: [0.0; 3],
                };
                let error = sums
                    .coulomb(&grid, &[[0.0f64; 3]], &[1.0], 0.0)
                    .unwrap_err();
                assert!(error.is_out_of_memory(), "{error}");
                assert!(error.to_string().contains("549755813888 bytes"), "{error}");
                // Lists of two thousand million entries.
                let builder = Engine::builder(100.0).device(Device::Cpu).threads(1);
                let mut engine = builder.build().unwrap();
                let set = engine.add_point_set(&uses::cloud(45_000)).unwrap();
                let error = engine.find_neighbors().unwrap_err();
                assert!(error.is_out_of_memory(), "{error}");
                assert!(
                    engine.neighbors(set, set).is_err(),
                    "no lists rather than some"
                );
                engine.set_radius(0.1).unwrap();
                engine.find_neighbors().unwrap();
            });
        },
    );
}
