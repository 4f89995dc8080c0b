//! The kernel whose methods are made, and what functions call and read: items of the program that
//! the functions are compiled in.

/// The items.
pub(super) const ITEMS: &str = r#"
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Point {
    x: f32,
    n: u32,
    v: Vec3,
}

impl Point {
    /// Of five words.
    fn of(w: &[u32]) -> Self {
        let f = |k: usize| f32::from_bits(w[k]);
        Self { x: f(0), n: w[1], v: Vec3::new(f(2), f(3), f(4)) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Kernel {
    scale: f32,
    count: u32,
    offset: i32,
    wide: bool,
    weights: [f32; 3],
    both: (f32, u32),
    origin: Vec3,
    slope: Vec2,
    point: Point,
    table: [f32; 8],
    rows: [[f32; 3]; 4],
}

impl Kernel {
    /// Of thirty-nine words.
    fn of(w: &[u32]) -> Self {
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
    fn half(&self) -> f32 {
        0.5 * self.scale
    }
}

#[pair_fn(crate = nearfield_pairs)]
fn sane(x: f32) -> f32 { if x.is_nan() { 1.0 } else { x } }
#[pair_fn(crate = nearfield_pairs)]
fn sane3(v: Vec3) -> Vec3 { Vec3::new(sane(v.x), sane(v.y), sane(v.z)) }

const HALF: f32 = 0.5;
const TINY: f32 = f32::from_bits(0x1234);
const MASK: u32 = 0xffff_0000;
const MINUS: i32 = -7;
const DOWN: Vec3 = Vec3::new(0.0, -0.0, -9.81);
const WIDE: u64 = 0x9e37_79b9_7f4a_7c15;
const PLACE: usize = 5;
const SHORT: [u32; 5] = [3, 1, 4, 1, 5];
const SIGNED: [i32; 4] = [-1, i32::MIN, 7, 0];
mod consts {
    pub(crate) const BEGIN: u32 = 2;
    pub(crate) const END: u32 = 5;
    pub(crate) const COUNT: usize = 3;
}

struct Scaled<const N: u32>;
impl<const N: u32> Scaled<N> {
    #[pair_fn(crate = nearfield_pairs, associated)]
    fn by(a: u32) -> u32 { a.wrapping_mul(N) ^ N }
}
macro_rules! shaped {
    ($($name:ident $factor:literal)*) => {$(
        struct $name;
        impl $name {
            #[pair_fn(crate = nearfield_pairs, associated)]
            fn of(a: f32) -> f32 { let side = a * $factor; side + 1.0 }
        }
    )*};
}
shaped! { Square 2.0 Round 0.25 }
"#;

/// Words of a kernel.
pub(super) const WORDS: usize = 39;
