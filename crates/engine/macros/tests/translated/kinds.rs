//! Functions whose meaning depends on types, names or conditions that no token shows: their texts
//! give what Rust gives, to the bit.

#![allow(
    unused_variables,
    unused_assignments,
    reason = "they are what users may write"
)]

use super::common::{Close, cases, check};
use nearfield_pairs::{Channels, pair_fn};

const TABLE: [u32; 4] = [3, 1, 4, 15];
const DRAWS: u32 = 6;
const LAST: u32 = u32::MAX;

mod consts {
    pub(crate) const MASK: u32 = 0x00ff_00ff;
    pub(crate) const BEGIN: u32 = 2;
    pub(crate) const END: u32 = 6;
    pub(crate) const COUNT: usize = 3;
}

/// Names of the engine's around the text, and words and macros of C++.
#[derive(Debug, Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Points {
    int: f32,
    r#type: u32,
    linux: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Channels)]
#[channels(crate = nearfield_pairs)]
struct Brick {
    row: f32,
}

struct Scaled<const N: u32>;

impl<const N: u32> Scaled<N> {
    #[pair_fn(crate = nearfield_pairs, associated)]
    fn by(a: u32) -> u32 {
        a.wrapping_mul(N)
    }
}

trait Size {
    const SIZE: u32;
}

struct Small;
struct Large;

impl Size for Small {
    const SIZE: u32 = 3;
}

impl Size for Large {
    const SIZE: u32 = 1000;
}

struct Of<S>(std::marker::PhantomData<S>);

impl<S: Size> Of<S> {
    #[pair_fn(crate = nearfield_pairs, associated)]
    fn within(a: u32) -> u32 {
        a % S::SIZE
    }
}

macro_rules! shapes {
    ($($name:ident: $factor:expr;)*) => {$(
        struct $name;

        impl $name {
            #[pair_fn(crate = nearfield_pairs, associated)]
            fn area(a: f32) -> f32 {
                let side = a * $factor;
                side * side
            }
        }
    )*};
}
shapes! {
    Square: 1.0;
    Half: 0.5;
}

macro_rules! hygienic {
    ($name:ident, $x:ident) => {
        #[pair_fn(crate = nearfield_pairs)]
        fn $name($x: f32) -> f32 {
            let y = $x * 2.0;
            let x = y + 1.0;
            x * 10.0 + $x
        }
    };
}
hygienic!(same_name, x);

#[pair_fn(crate = nearfield_pairs)]
fn signbit(a: f32) -> f32 {
    a + 1.0
}

#[pair_fn(crate = nearfield_pairs)]
fn assert(a: f32) -> f32 {
    a - 1.0
}

#[pair_fn(crate = nearfield_pairs)]
fn overlap(a: f32) -> f32 {
    a * 2.0
}

#[pair_fn(crate = nearfield_pairs)]
fn rows(a: f32) -> [[f32; 3]; 2] {
    [[a, 1.0, 2.0], [3.0, a, 4.0]]
}

cases! {
    Close::Bits;
    fn inverted(a: u32, b: i32, c: bool) -> (u32, u32, i32, bool, u32) {
        let m: u32 = !0;
        (a & !7, m ^ a, !b, !c, !a & 3)
    }

    Close::Bits;
    fn precedence(k: u32, f: i32) -> (bool, bool, u32, u32) {
        (k & 1 == 0, f & 2 == 2, k | 1 ^ k & 6 << 1, k + 1 & 3 | k >> 2 ^ 5)
    }

    Close::Bits;
    fn indices(h: u32, k: u32) -> (u32, u32, u32, u32, u32) {
        let big = h as usize * 3;
        (
            TABLE[h as usize % 4],
            TABLE[h as usize & 3],
            TABLE[(h as usize >> 30) & 3],
            TABLE[(h as usize ^ 1) % 4] + TABLE[(h as usize | 2) & 3],
            TABLE[!(k as usize) & 3] + (big >> 31) as u32,
        )
    }

    Close::Bits;
    fn large_indices(h: u32, c: i32) -> (f32, u32, bool, u32, u32) {
        let mut j = h as usize;
        j ^= 3;
        j <<= 3;
        (j as f32, (j >> 32) as u32, j == h as usize * 8, c as usize as u32, (c as usize >> 40) as u32)
    }

    Close::Bits;
    fn wide(a: u32, b: i32) -> (u32, u32, i32, i32, f32, f32) {
        let h = (a as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (a as u64) << 7;
        let s = i64::from(b) * -5_000_000_000 >> 3;
        ((h >> 33) as u32, h as u32, s as i32, (s >> 32) as i32, h as f32, s as f32)
    }

    Close::Bits;
    fn saturated(a: f32) -> (u32, u32, i32, i32) {
        let (u, i) = (a as u64, a as i64);
        (u as u32, (u >> 32) as u32, i as i32, (i >> 32) as i32)
    }

    Close::Bits;
    fn by_constants(a: u32) -> u32 {
        let mut hash = a;
        for k in 0..DRAWS {
            hash ^= (k << 31) >> 31;
            hash = hash.wrapping_add(k * 747796405);
        }
        hash
    }

    Close::Bits;
    fn signed_by_default(a: i32) -> i32 {
        let mut sum = a;
        for k in 0..5 {
            if k * 1000000007 > 2000000000 { sum = sum.wrapping_add(7); }
            sum ^= (k << 31) >> 31;
        }
        sum
    }

    Close::Bits;
    fn unsigned_by_use(a: u32) -> u32 {
        let mut sum = a;
        for k in 0..5 {
            if k * 1000000007 > 2000000000 { sum = sum.wrapping_add(k); }
        }
        sum
    }

    Close::Bits;
    fn between_constants(a: u32) -> (u32, u32) {
        let mut sum = a;
        for k in consts::BEGIN..consts::END {
            sum = sum.wrapping_add(k.wrapping_mul(5)).wrapping_sub(k.wrapping_sub(2));
        }
        let m = consts::MASK;
        (sum, sum & m)
    }

    Close::Bits;
    fn ranges_to_the_end(a: u32) -> u32 {
        let mut sum = a;
        for k in 0xffff_fffd..=LAST { sum ^= k << 1; }
        for k in (0..4u32).rev() { sum = sum << 1 ^ k; }
        for k in (1..=3).rev() { sum += k; }
        for k in 0..3u32 { for j in k + 1..4 { sum = sum.wrapping_mul(31) + k * j; } }
        for _ in 0..consts::COUNT { sum ^= sum << 3; }
        for k in -2i32..=2 { sum ^= k as u32; }
        for mut k in 0..3u32 { k *= 2; sum += k; }
        sum
    }

    Close::Bits;
    fn generics(a: u32) -> (u32, u32, u32, u32) {
        (Scaled::<2>::by(a), Scaled::<3>::by(a), Of::<Small>::within(a), Of::<Large>::within(a))
    }

    Close::Bits;
    fn repeated_names(a: f32) -> (f32, f32, f32) { (Square::area(a), Half::area(a), same_name(a)) }

    Close::Bits;
    fn conditions(a: f32) -> f32 {
        #[cfg(any())]
        let a = a + 100.0;
        let mut b = a;
        #[cfg(any())]
        {
            b = 5.0;
        }
        #[cfg(all())]
        let c = b * 2.0;
        #[cfg(any())]
        let c = UNKNOWN;
        if cfg!(any()) { b = 7.0; }
        match a > 0.0 {
            #[cfg(any())]
            true => 1.0,
            #[cfg(all())]
            true => b + c,
            false => c,
        }
    }

    Close::Bits;
    fn scopes(a: u32) -> (u32, u32, u32) {
        let before = N + a % 2;
        const N: u32 = 40;
        let n = 7;
        let inner = {
            let sum = n + NESTED;
            const NESTED: u32 = N + 1;
            sum
        };
        let r#x = n;
        (before, inner, x + r#x)
    }

    Close::Bits;
    fn copies(a: [f32; 4]) -> f32 {
        let (mut a, mut sum) = (a, 0.0);
        for v in a {
            a[2] = 10.0;
            sum += v;
        }
        for v in rows(sum)[1] { sum -= v; }
        for v in rows(a[0]) { sum += v[2]; }
        let row = rows(sum)[0];
        sum + row[0] + rows(a[1])[1][1]
    }

    Close::Bits;
    fn literals(a: f32) -> (f32, f32, i32, u32, f32) {
        (-2147483648f32 + a, -0.0, -2147483648, 4294967295, 16777217.0 * a)
    }

    Close::Bits;
    fn names_of_others(a: f32, b: u32) -> (f32, u32, f32) {
        let linux = signbit(a) + assert(a);
        let overlap = overlap(a);
        let p = Points { r#type: b, int: linux, linux: overlap };
        let Points { int, r#type, .. } = p;
        let Brick { row } = Brick { row: int };
        let _x = row + p.linux;
        let __y = _x;
        let größe = __y;
        (größe, r#type ^ p.r#type, int)
    }

    Close::Bits;
    fn early(a: f32, n: u32) -> f32 {
        let mut sum = 0.0;
        for k in 0..4 {
            for j in 0..3 {
                if j == 2 && a > 1.0 { continue; }
                if sum > 3.0 { break; }
                let part = if a < 0.0 { if n > 5 { return sum - 1.0; } a * 2.0 } else { match n % 4 { 0 => a, 1 => break, 2 => continue, _ => { let c = a + 1.0; c } } };
                sum += part + k as f32 * j as f32;
            }
        }
        sum
    }

    Close::Bits;
    fn order(a: f32, n: u32) -> (f32, f32, u32, bool) {
        let mut x = a;
        let y = x + { x += 1.0; x } * { x *= 0.5; x };
        let mut k = n;
        let mut t = [a, x, y];
        t[{ k += 1; k % 3 } as usize] = { k += 1; t[(k % 3) as usize] };
        let z = { k ^= 5; k } + k * { k += 2; k } % 7;
        let b = a > 0.0 && { k += 1; k % 2 == 0 } || { k += 3; k % 3 == 0 };
        (y, t[0] + t[1] - t[2], z ^ k, b)
    }

    Close::Bits;
    fn arms(n: u32, b: bool, x: (i32, f32)) -> (u32, f32, u32) {
        let first = match (n % 3, b) {
            (0, true) => 1,
            (k, false) if k > 1 => k + 10,
            (k @ 1..=2, _) => k + 20,
            (_, c) => c as u32,
        };
        let second = match x { (k, y) if y > 0.0 => y + k as f32, (_, mut y) => { y += 1.0; y } };
        let third = match n { 0 => 7, 5.. if b => 8, ..=9 => 9, consts::MASK => 10, LAST => 11, other => other / 2 };
        (first, second, third)
    }

    Close::Bits;
    fn methods_of_integers(a: u32, b: i32, n: u32) -> (u32, u32, i32, u32, i32, u32) {
        (
            a.rotate_left(n % 40) ^ a.rotate_right(7),
            a.count_ones() + a.leading_zeros() * 64 + a.trailing_zeros() * 4096,
            b.wrapping_neg().min(b),
            a.pow(3) ^ 3u32.pow(n % 4),
            b.signum() * b.min(5),
            b.abs_diff(3),
        )
    }
}

#[test]
fn the_texts_give_what_rust_gives() {
    check(&cases());
}
