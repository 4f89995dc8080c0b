//! On a GPU every kernel of the library gives a pair what its Rust code gives it, but for the fast
//! forms that it asks for there.

use super::{GPU, assert_on_gpu, needs_gpu};
use crate::{
    functions,
    kinds::Kinds,
    with_text::{self, Visit},
};
use nearfield::kernels::Channels;
use nearfield::prelude::*;
use nearfield_testkit::kernels::Conformance;

/// Compares kernels with what a GPU gives isolated pairs.
struct OnGpu;

impl Visit for OnGpu {
    fn visit<K: PairKernel>(&mut self, comparison: Conformance<'_, K>) {
        compare(comparison.close(with_text::CLOSE));
    }
}

/// Compares a kernel with what a GPU gives isolated pairs.
fn compare<K: PairKernel>(comparison: Conformance<'_, K>) {
    let kernel = comparison.kernel();
    let compared = comparison.by_engine(|points| {
        let mut engine = Engine::builder(1.0).device(GPU).build().unwrap();
        let targets = engine.add_point_set(&points.targets).unwrap();
        let sources = engine.add_point_set(&points.sources).unwrap();
        let [of_targets, of_sources] = points.fields();
        let traversal = engine.traverse(kernel, targets, sources);
        let traversal = traversal.targets(&of_targets[..]).sources(&of_sources[..]);
        let results = traversal.run().unwrap();
        assert_on_gpu(&engine);
        let mut numbers = Vec::new();
        for result in results {
            result.write(|_, number| numbers.push(number));
        }
        numbers
    });
    compared.unwrap();
}

#[test]
fn kernels_give_isolated_pairs_what_rust_gives_them() {
    needs_gpu!();
    with_text::each(&mut OnGpu);
}

#[test]
fn functions_are_as_accurate_as_stated() {
    needs_gpu!();
    compare(functions::compared(functions::ON_GPU, 500_000));
}

#[test]
fn meanings_that_depend_on_types_and_names_are_rusts() {
    needs_gpu!();
    let kernel = Kinds {
        seed: 0x1234_5678_9abc_def0,
        place: 6,
    };
    compare(Conformance::new(&kernel).pairs(200_000));
}
