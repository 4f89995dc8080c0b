//! Loops over points, compiled for the widest vectors the processor has.
//!
//! The crate is compiled for the baseline of its target, which on x86-64 has vectors of 16 bytes
//! and no rounding instructions. Loops over all points that the compiler can vectorise are
//! compiled three times, and one of them is chosen at run time. Unlike the loops of the CPU
//! backend these are plain Rust: the compiler finds the vectors.
//!
//! **Invariant:** the results are the same on all processors. Rust never contracts a
//! multiplication and an addition, so wider vectors change no rounding.

/// Work whose loops the compiler vectorises; `run` must be `#[inline(always)]` and must not leave
/// its loops to closures, which are not compiled with it.
pub(crate) trait Loops {
    /// The result of the loop.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs `loops` compiled for the processor. The results are the same on all of them: operations
/// are not contracted.
#[inline]
pub(crate) fn widest<L: Loops>(loops: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: just detected; AVX2 comes with AVX-512 F.
            return unsafe { avx512(loops) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: just detected.
            return unsafe { avx2(loops) };
        }
    }
    loops.run()
}

/// Compiled for AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
fn avx512<L: Loops>(loops: L) -> L::Output {
    loops.run()
}

/// Compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<L: Loops>(loops: L) -> L::Output {
    loops.run()
}
