//! Random functions of the kernels' subset: what Rust computes is what their CUDA text computes.
//!
//! Bytes become functions ([`generate`]): every statement, operator and method of numbers, arrays,
//! tuples, vectors and structs of channels that the translator has, nested at random. They are free
//! functions, and methods of a kernel that read its fields ([`subject`]). All functions of an input
//! are compiled twice, by the Rust compiler and, translated and assembled as the macros have it
//! ([`assemble`]), by the C++ compiler, and both programs get the same arguments ([`compare`]). The
//! Rust compiler says what Rust means, so no interpreter of ours could be wrong in the same way as
//! the translator. Its price is a second per input, which is why an input is a batch of functions.
//! The translator runs inside the fuzz target, so libFuzzer's coverage leads to inputs that reach
//! more of it.
//!
//! Functions with an accuracy of their own (`exp`, `sin` and so on) are left out; tests of
//! `nearfield-macros` have them.

mod assemble;
mod compare;
mod generate;
mod glam;
mod subject;

/// Functions that an input becomes at most.
const MOST: usize = 40;

/// Makes functions of `bytes` and compares what they compute.
///
/// # Panics
/// When Rust and the text differ, when the C++ compiler refuses a text, or when the Rust compiler
/// refuses a function: then this generator is wrong.
pub fn check(bytes: &[u8]) {
    let functions = generate::functions(bytes, MOST);
    if let Err(message) = compare::compare(&functions) {
        panic!("{message}");
    }
}

/// The functions that `bytes` become, as Rust.
pub fn describe(bytes: &[u8]) -> String {
    let functions = generate::functions(bytes, MOST);
    functions.iter().map(|made| made.text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfield_testkit::random::Random;

    /// Most of what is made is within the subset as the macro sees it, which knows no types.
    #[test]
    fn most_functions_are_translated() {
        let mut random = Random::new(3);
        let (mut made, mut translated) = (0, 0);
        for _ in 0..20 {
            let bytes: Vec<u8> = (0..6000).map(|_| random.below(256) as u8).collect();
            let functions = generate::functions(&bytes, MOST);
            made += functions.len();
            translated += functions
                .iter()
                .filter(|made| assemble::translated(made).is_ok())
                .count();
        }
        assert!(made > 200, "{made} functions");
        assert!(translated * 10 >= made * 9, "{translated} of {made}");
    }
}
