//! Random functions of the kernels' subset: what Rust computes is what their CUDA text computes.
//!
//! Functions are drawn from the whole grammar ([`generate`]): every statement, operator and method
//! of numbers, arrays, tuples, vectors and structs of channels that texts have, nested at random.
//! They are free functions, and methods of a kernel that read its fields ([`subject`]). A program
//! of them is compiled by the Rust compiler with the macros, and writes their text, which the C++
//! compiler compiles; both programs get the same arguments ([`compare`]). The Rust compiler says
//! what Rust means, so no interpreter of ours could be wrong in the same way as the translation.
//!
//! Functions with an accuracy of their own (`exp`, `sin` and so on) are left out: `subset` has
//! them.

mod compare;
mod generate;
mod subject;

use nearfield_testkit::random::Random;
use std::env;

/// Functions of a program.
const BATCH: usize = 100;

/// `NEARFIELD_DRAWN` asks for another number of functions than 100, and `NEARFIELD_DRAWN_SEED` for
/// others.
#[test]
fn drawn_functions_give_what_rust_gives() {
    let number = |name: &str, usual: u64| {
        env::var(name).map_or(usual, |value| value.parse().expect("a number"))
    };
    let count = number("NEARFIELD_DRAWN", 100);
    let seed = number("NEARFIELD_DRAWN_SEED", 1);
    for batch in 0..count.div_ceil(BATCH as u64) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(batch));
        let functions = generate::functions(&mut random, BATCH);
        match compare::compare(&functions, batch) {
            Ok(true) => {}
            Ok(false) => return,
            Err(message) => panic!("seed {seed}, batch {batch}: {message}"),
        }
    }
}
