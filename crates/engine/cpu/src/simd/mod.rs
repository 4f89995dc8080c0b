//! Vectors, and the choice of an instruction set at run time.
//!
//! [`vector`] says what a vector can do; one file per instruction set implements it; the loops of
//! this crate are generic Rust over it. A loop is compiled for a level by inlining: it is a
//! [`Task`] whose `run` is `#[inline(always)]`, and so is everything it calls that comes down to
//! vectors, up to [`Simd::call`], which is one function per level with the level's target features.
//! A closure or a function that is not inlined into it would be compiled for the baseline of the
//! target, with a call per operation.
//!
//! **Invariant:** all levels evaluate the contract's arithmetic, so they give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod level;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
pub(crate) mod sort;
pub(crate) mod vector;

use level::SimdLevel;
use vector::{Compress, Vector};

/// Lanes of the widest vectors of any level; scratch arrays are padded by as many elements, so that
/// loops need no remainder.
pub(crate) const LANES: usize = 16;

/// An instruction set, as a type that loops are generic over.
///
/// A type and not a value: generic code over `S: Simd` is compiled once per level, and every
/// operation on a vector is then one instruction. The level as a value chooses among the compiled
/// versions at run time.
pub(crate) trait Simd: Copy {
    /// The level as a value.
    const LEVEL: SimdLevel;
    /// True for the level that works lane by lane. Loops of kernels are then compiled once for all
    /// modes, because few processors need it.
    const IS_SCALAR: bool = Self::Single::LANES == 1;
    /// Its vector of `f32`.
    type Single: Compress;
    /// Its vector of `f64`.
    type Double: Vector<Real = f64>;

    /// Runs `task` as a function of its own, compiled for the level. Loops that the compiler must
    /// vectorise come out better when they are not part of a larger function.
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn call<T: Task>(task: T) {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::call_on(task, &()) }
    }

    /// Runs `task` as [`call`](Self::call) does, with a reference that is an argument of that
    /// function: see [`TaskOn`].
    ///
    /// # Safety
    /// The processor has the level.
    unsafe fn call_on<C, T: TaskOn<C>>(task: T, on: &C);
}

/// A loop that is compiled for every level.
///
/// Loops are structs with their arguments, because a closure that is passed to a function with
/// target features is compiled without them.
pub(crate) trait Task {
    /// Runs the loop; `#[inline(always)]`, as must be all it calls that comes down to vectors.
    ///
    /// # Safety
    /// The processor has the level `S`.
    unsafe fn run<S: Simd>(self);
}

/// A loop that reads a value of the caller's, such as a pair kernel, for every lane.
///
/// The compiler may read what an argument of a function points to before it is needed, but not what
/// a pointer in a struct leads to. A kernel that reads a constant only in one branch would
/// otherwise keep its whole loop from being vectorised, except where vectors have masks.
pub(crate) trait TaskOn<C> {
    /// Runs the loop; see [`Task::run`].
    ///
    /// # Safety
    /// The processor has the level `S`.
    unsafe fn run_on<S: Simd>(self, on: &C);
}

impl<T: Task> TaskOn<()> for T {
    #[inline(always)]
    unsafe fn run_on<S: Simd>(self, (): &()) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.run::<S>() }
    }
}

/// Implements [`Simd`] for a level by its vectors and its target features.
macro_rules! level {
    ($(#[cfg($when:meta)])? $level:ident, $single:ty, $double:ty $(, $features:literal)?) => {
        $(#[cfg($when)])?
        #[derive(Clone, Copy)]
        pub(crate) struct $level;

        $(#[cfg($when)])?
        impl Simd for $level {
            const LEVEL: SimdLevel = SimdLevel::$level;
            type Single = $single;
            type Double = $double;

            #[inline(always)]
            unsafe fn call_on<C, T: TaskOn<C>>(task: T, on: &C) {
                #[inline(never)]
                $(#[target_feature(enable = $features)])?
                unsafe fn compiled<C, T: TaskOn<C>>(task: T, on: &C) {
                    // SAFETY: the processor has the level, as the caller of `call_on` guarantees.
                    unsafe { task.run_on::<$level>(on) }
                }
                // SAFETY: the caller guarantees that the processor has the level.
                unsafe { compiled(task, on) }
            }
        }
    };
}
level!(Scalar, f32, f64);
level!(
    #[cfg(target_arch = "x86_64")]
    Avx2,
    std::arch::x86_64::__m256,
    std::arch::x86_64::__m256d,
    "avx2,fma,bmi1,bmi2,popcnt"
);
level!(
    #[cfg(target_arch = "x86_64")]
    Avx512,
    std::arch::x86_64::__m512,
    std::arch::x86_64::__m512d,
    "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2,popcnt"
);
level!(
    #[cfg(target_arch = "aarch64")]
    Neon,
    std::arch::aarch64::float32x4_t,
    std::arch::aarch64::float64x2_t,
    "neon"
);

/// What is chosen by the level, such as a function that is compiled for each.
pub(crate) trait WithLevel {
    /// What it is.
    type Output;

    /// That of a level.
    fn at<S: Simd>(self) -> Self::Output;
}

/// What is chosen at `level`.
#[inline(always)]
pub(crate) fn at_level<T: WithLevel>(level: SimdLevel, of: T) -> T::Output {
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => of.at::<Avx512>(),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => of.at::<Avx2>(),
        #[cfg(target_arch = "aarch64")]
        SimdLevel::Neon => of.at::<Neon>(),
        _ => of.at::<Scalar>(),
    }
}

/// Runs `task` compiled for `level`.
///
/// The processor has the level: [`CpuBackend`](crate::CpuBackend) holds only levels that
/// [`SimdLevel::available`] lists, and it is the only source of levels in this crate.
///
/// The match costs nothing beside a task, which works for microseconds at least.
pub(crate) fn with_level<T: Task>(level: SimdLevel, task: T) {
    with_level_on(level, task, &());
}

/// Runs a task on a value of the caller's, as [`with_level`] does.
pub(crate) fn with_level_on<C, T: TaskOn<C>>(level: SimdLevel, task: T, on: &C) {
    // SAFETY: the processor has the level, see above.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => Avx512::call_on(task, on),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => Avx2::call_on(task, on),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => Neon::call_on(task, on),
            _ => Scalar::call_on(task, on),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compresses and expands by every mask of up to eight lanes, and some of sixteen.
    struct ThereAndBack;

    impl Task for ThereAndBack {
        #[inline(always)]
        unsafe fn run<S: Simd>(self) {
            let lanes = S::Single::LANES;
            let all = u32::MAX >> (32 - lanes);
            let masks = (0..256).chain((0..256).map(|mask| (mask * 257) ^ 0x55aa));
            for mask in masks.map(|mask: u32| mask & all) {
                let numbers: [f32; LANES] = std::array::from_fn(|lane| 1.0 + lane as f32);
                let (mut kept, mut found) = ([f32::NAN; 2 * LANES], [f32::NAN; LANES]);
                // SAFETY: the caller guarantees the level; arrays are as long as any vector.
                unsafe {
                    let order = S::Single::order(mask);
                    S::Single::load(numbers.as_ptr()).compress(order, kept.as_mut_ptr());
                    let other = S::Single::splat(-1.0);
                    let expanded = S::Single::expand(kept.as_ptr(), mask, other);
                    expanded.store(found.as_mut_ptr());
                }
                for lane in 0..lanes {
                    let is_kept = mask >> lane & 1 == 1;
                    let expected = if is_kept { numbers[lane] } else { -1.0 };
                    assert_eq!(found[lane], expected, "lane {lane} of {mask:#b}");
                }
            }
        }
    }

    #[test]
    fn lanes_that_were_compressed_are_expanded_to_their_places() {
        for &level in SimdLevel::available() {
            with_level(level, ThereAndBack);
        }
    }
}
