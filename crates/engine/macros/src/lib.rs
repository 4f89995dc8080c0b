//! Pair kernels written once: macros that translate Rust to CUDA.
//!
//! A kernel's function stays what it is and runs on the CPU; beside it the macros write code that
//! gives the same function as text, which the GPU backend fuses into its traversal. They translate
//! a subset of Rust, described in `docs/adding/pair-kernel.md`, and refuse everything else where it
//! stands.
//!
//! The translation is in `translate`, which knows syntax trees and texts only; the other modules
//! write the Rust code around it. Types are unknown here, so this code asks for their names at run
//! time (module `device` of `nearfield-pairs`).

mod arguments;
mod channels;
mod emit;
mod function;
mod kernel;
mod lower;

use proc_macro::TokenStream;
use syn::Error;

/// Gives an `impl PairKernel` its CUDA text: the method `cuda`, translated from `pair`; or an `impl
/// PairPotential`, translated from `evaluate`. `symmetric` of a kernel stays with the CPU.
///
/// The argument `crate = name::kernels` is for programs in which the crate `nearfield` has another
/// name.
#[proc_macro_attribute]
pub fn pair_kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let plain = item.clone();
    answer(kernel::expand(arguments.into(), item.into()), plain)
}

/// Gives a function or a method its CUDA text, so that kernels can call it.
///
/// Arguments: `crate = name::kernels` where the crate `nearfield` has another name, and
/// `associated` for a function without `self` in an `impl`.
#[proc_macro_attribute]
pub fn pair_fn(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let plain = item.clone();
    answer(function::expand(arguments.into(), item.into()), plain)
}

/// Makes a struct with named fields a value that kernels read and give: its channels are those of
/// its fields, in order.
///
/// `#[channels(crate = name::kernels)]` is for programs in which the crate `nearfield` has another
/// name.
#[proc_macro_derive(Channels, attributes(channels))]
pub fn channels(item: TokenStream) -> TokenStream {
    answer(channels::expand(item.into()), TokenStream::new())
}

/// The code, or the error beside the item as it was, so that nothing else is reported.
fn answer(result: syn::Result<proc_macro2::TokenStream>, mut plain: TokenStream) -> TokenStream {
    match result {
        Ok(code) => code.into(),
        Err(error) => {
            plain.extend(TokenStream::from(Error::into_compile_error(error)));
            plain
        }
    }
}
