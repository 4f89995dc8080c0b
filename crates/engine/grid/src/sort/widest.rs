//! Loops over points compiled for the widest vectors the processor has.

/// Work whose loops the compiler vectorises; `run` must be `#[inline(always)]` and must not leave
/// its loops to closures, which are not compiled with it.
pub(crate) trait Loops {
    type Output;
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2")]
fn avx512<L: Loops>(loops: L) -> L::Output {
    loops.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<L: Loops>(loops: L) -> L::Output {
    loops.run()
}
