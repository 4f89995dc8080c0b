//! The kernel whose methods are made: what functions read of `self`.
//!
//! Its types are items of this crate and, as text, of the Rust program that the functions are
//! compiled in, so both are the same.

use glam::{Vec2, Vec3};

/// Declares a struct of channels and further items here, and keeps their text.
macro_rules! declared_twice {
    ({ $($channels:tt)* } $($item:item)*) => {
        #[derive(Debug, Clone, Copy, nearfield::kernels::Channels)]
        $($channels)*
        $($item)*

        /// These items.
        pub(super) const RUST: &str = concat!(
            "#[derive(Debug, Clone, Copy)]\n",
            stringify!($($channels)*), "\n",
            $(stringify!($item), "\n"),*
        );
    };
}

declared_twice! {
    {
        pub(crate) struct Point {
            pub(crate) x: f32,
            pub(crate) n: u32,
            pub(crate) v: Vec3,
        }
    }

    impl Point {
        /// Of five words.
        pub(crate) fn of(w: &[u32]) -> Self {
            let f = |k: usize| f32::from_bits(w[k]);
            Self { x: f(0), n: w[1], v: Vec3::new(f(2), f(3), f(4)) }
        }
    }

    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Kernel {
        pub(crate) scale: f32,
        pub(crate) count: u32,
        pub(crate) offset: i32,
        pub(crate) wide: bool,
        pub(crate) weights: [f32; 3],
        pub(crate) both: (f32, u32),
        pub(crate) origin: Vec3,
        pub(crate) slope: Vec2,
        pub(crate) point: Point,
        pub(crate) table: [f32; 8],
        pub(crate) rows: [[f32; 3]; 4],
    }

    impl Kernel {
        /// Of thirty-nine words.
        pub(crate) fn of(w: &[u32]) -> Self {
            let f = |k: usize| f32::from_bits(w[k]);
            let row = |k: usize| [f(k), f(k + 1), f(k + 2)];
            Self {
                scale: f(0),
                count: w[1],
                offset: w[2] as i32,
                wide: w[3] & 1 == 1,
                weights: row(4),
                both: (f(7), w[8]),
                origin: Vec3::from(row(9)),
                slope: Vec2::new(f(12), f(13)),
                point: Point::of(&w[14..19]),
                table: std::array::from_fn(|k| f(19 + k)),
                rows: [row(27), row(30), row(33), row(36)],
            }
        }

        /// Takes nothing but `self`, so its value is a uniform.
        pub(crate) fn half(&self) -> f32 {
            0.5 * self.scale
        }
    }
}

/// Words of a kernel.
pub(super) const WORDS: usize = 39;

/// Calls a macro with the places of a kernel that have a type on the GPU, as they are written
/// behind `self`.
macro_rules! places {
    ($call:ident) => {
        $call!(
            scale; count; offset; wide; weights; both; both.0; both.1; origin; origin.x; origin.y;
            origin.z; slope; slope.x; slope.y; point; point.x; point.n; point.v; point.v.x;
            point.v.y; point.v.z; half()
        )
    };
}
pub(super) use places;
