//! Texts of programs, and the headers that they include.

use crate::Layout;

/// The source text of one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Name in messages, in traces and in the cache's file names.
    pub name: &'static str,
    /// The CUDA C++ text.
    pub text: &'static str,
    /// Headers that the text includes, directly or through another one.
    pub headers: &'static [Header],
    /// Structs of the text that Rust fills in.
    pub layouts: &'static [Layout],
    /// True if its kernels launch kernels: it is then linked with the CUDA device runtime.
    pub launches_children: bool,
    /// Names of all its `__global__` functions, in the text and in its headers. Some are compiled
    /// only with certain macros. Those that the host starts are `extern "C"`.
    pub kernels: &'static [&'static str],
}

/// A text that sources include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The name in `#include "…"`.
    pub name: &'static str,
    /// The CUDA C++ text.
    pub text: &'static str,
    /// Structs of the text that Rust fills in.
    pub layouts: &'static [Layout],
}

impl Header {
    /// A header without structs that Rust fills in.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            layouts: &[],
        }
    }

    /// The same header, with the structs that Rust fills in.
    pub const fn with(self, layouts: &'static [Layout]) -> Self {
        Self { layouts, ..self }
    }
}

impl Source {
    /// Every struct that Rust fills in, those of headers first.
    pub fn all_layouts(&self) -> impl Iterator<Item = &'static Layout> {
        let of_headers = self.headers.iter().flat_map(|header| header.layouts);
        of_headers.chain(self.layouts)
    }
}
