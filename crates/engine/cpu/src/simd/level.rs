//! The instruction sets that the inner loops are written for, and which of them this processor
//! has.
//!
//! The library is compiled for the baseline of its target, so that one binary runs everywhere, and
//! chooses at run time. The choice can be forced, for tests and comparisons, and a getter tells it
//! ([`CpuBackend::level`](crate::CpuBackend::level)).
//!
//! **Invariant:** a level that [`SimdLevel::available`] lists can be executed on this processor;
//! safe code reaches vector loops only through such a level.
//!
//! # Requirements
//!
//! AVX2 alone does not imply FMA, BMI or POPCNT, so each is asked for. AVX-512 is used with VL and
//! DQ, which every processor with AVX-512 F has except for the first generation of accelerators.
//!
//! A processor with AVX-512 is taken to have AVX2 and FMA as well, which every such processor
//! does.

/// Instruction sets the inner loops are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SimdLevel {
    /// Plain Rust, one lane.
    Scalar,
    /// Eight lanes: x86-64 with AVX2, FMA, BMI and POPCNT.
    Avx2,
    /// Sixteen lanes with compression: the above and AVX-512 F, VL and DQ.
    Avx512,
    /// Four lanes: 64-bit ARM.
    Neon,
}

impl SimdLevel {
    /// Returns the best level this processor has.
    pub fn detect() -> Self {
        *Self::available().last().unwrap_or(&Self::Scalar)
    }

    /// Returns every level this processor has, worst first. The standard library asks the processor
    /// once and remembers the answer.
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            if avx2 && avx512 {
                return &[Self::Scalar, Self::Avx2, Self::Avx512];
            } else if avx2 {
                return &[Self::Scalar, Self::Avx2];
            }
        }
        if cfg!(target_arch = "aarch64") {
            &[Self::Scalar, Self::Neon]
        } else {
            &[Self::Scalar]
        }
    }

    /// Returns true if this processor has the level.
    pub fn is_available(self) -> bool {
        Self::available().contains(&self)
    }

    /// Name as the command line prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}
