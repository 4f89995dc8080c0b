//! The CUDA C++ sources of the GPU lane, as text.
//!
//! They are compiled at run time for the device found (crate `nearfield-gpu`), so neither building
//! nor running needs the CUDA toolkit. A source includes nothing but the headers listed with it
//! and what the compiler has built in.

/// One program's source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Name in messages, in traces and in the cache's file names.
    pub name: &'static str,
    /// The CUDA C++ text.
    pub text: &'static str,
    /// What the text may include: name in `#include "…"`, then the header's text.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether its kernels launch kernels: it is then linked with the CUDA device runtime.
    pub launches_children: bool,
    /// Names of its kernels, all `extern "C"`.
    pub kernels: &'static [&'static str],
}

/// Arithmetic and a checksum, to see whether a device computes what the CPU computes.
pub const PROBE: Source = Source {
    name: "probe",
    text: include_str!("../cuda/probe.cu"),
    headers: &[],
    launches_children: false,
    kernels: &["checksum", "squared_distances"],
};

/// A kernel that launches kernels, to see whether a device can.
pub const CHILDREN_PROBE: Source = Source {
    name: "children_probe",
    text: include_str!("../cuda/children_probe.cu"),
    headers: &[],
    launches_children: true,
    kernels: &["launch_children"],
};

/// All sources.
pub const ALL: &[Source] = &[PROBE, CHILDREN_PROBE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_named_is_defined_in_its_source() {
        for source in ALL {
            assert!(
                !source.kernels.is_empty(),
                "{} names no kernel",
                source.name
            );
            for kernel in source.kernels {
                let definition = format!("void {kernel}(");
                assert!(
                    source.text.contains(&definition),
                    "{} has no `{definition}`",
                    source.name
                );
            }
        }
    }

    #[test]
    fn names_are_told_apart() {
        for (index, source) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != source.name));
        }
    }
}
