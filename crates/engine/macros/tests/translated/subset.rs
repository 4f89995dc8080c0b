//! Sixty functions that exercise the subset: their texts, compiled as C++, give what Rust gives, to
//! the bit, for random and extreme arguments. All of them compile for the GPU too.

use super::common::{self, Close, cases, check};
use glam::{Vec2, Vec3};
use nearfield_gpu::{Arch, Program};
use nearfield_pairs::{
    fast_div, fast_mul_add, fast_recip, fast_rsqrt, fast_saturate, fast_sqrt, mul_high, normal,
    pair_fn, philox4x32, unit_interval, unit_variance,
};

const EPSILON2: f32 = 1e-4;
const STEPS: usize = 5;
const TABLE: [f32; 4] = [0.5, -1.25, 3.0e-7, f32::INFINITY];
const MASK: u32 = 0xffff_0000;

mod elsewhere {
    use nearfield_pairs::pair_fn;

    pub(crate) const FACTOR: f32 = 0.1;

    #[pair_fn(crate = nearfield_pairs)]
    pub(crate) fn twice(x: f32) -> f32 {
        2.0 * x
    }

    #[pair_fn(crate = nearfield_pairs)]
    pub(crate) fn four_times(x: f32) -> f32 {
        twice(twice(x))
    }
}
use elsewhere::twice;

struct Wall;

impl Wall {
    const HEIGHT: f32 = 0.75;

    #[pair_fn(crate = nearfield_pairs, associated)]
    fn above(z: f32) -> f32 {
        (z - Self::HEIGHT).max(0.0)
    }
}

cases! {
    Close::Bits;
    fn sums_and_products(a: f32, b: f32, c: f32) -> f32 { a * b + c - a / b - (c - a) * (b - (a - c)) }

    Close::Bits;
    fn signs(a: f32, b: f32) -> f32 { -a * -(-b) - -(a + b) }

    Close::Bits;
    fn literals(a: f32) -> f32 { a * 1e-3 + 2.5 * a + 0.1 + 1f32 + 1_000.5 + 3.402_823_5e38 * a }

    Close::Bits;
    fn remainders(a: f32, b: f32) -> f32 { a % b }

    Close::Bits;
    fn comparisons(a: f32, b: f32) -> (bool, bool, bool, bool, bool, bool) {
        (a < b, a <= b, a > b, a >= b, a == b, a != b)
    }

    Close::Bits;
    fn logic(a: bool, b: bool, c: bool) -> (bool, bool, bool, bool, bool) {
        (a && b || !c, a & b, a | c, a ^ b, (a || b) && c)
    }

    Close::Bits;
    fn unsigned(a: u32, b: u32) -> (u32, u32, u32, u32) {
        (a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b), a / b.max(1) + a % b.max(1) / 2)
    }

    Close::Bits;
    fn signed(a: i32, b: i32) -> (i32, i32, i32, i32) {
        let d = b.max(1);
        (a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b), (a / d).wrapping_sub(a % d))
    }

    Close::Bits;
    fn bits(a: u32, b: u32) -> (u32, u32, u32, u32) { (a & b, a | b, a ^ b, !a & MASK) }

    Close::Bits;
    fn mixed_bits(a: u32, b: u32) -> (bool, u32) { (a & 1 == 1 && b >> 3 & 1 != 0, a << 2 ^ b | 7) }

    Close::Bits;
    fn shifts(a: u32, b: i32, n: u32) -> (u32, u32, i32, i32) {
        (a << (n & 31), a >> (n & 31), b << (n & 31), b >> (n & 31))
    }

    Close::Bits;
    fn conversions(a: f32, b: u32, c: i32) -> (u32, i32, f32, f32, i32, u32) {
        (a as u32, a as i32, b as f32, c as f32, b as i32, c as u32)
    }

    Close::Bits;
    fn from_bools(a: bool, b: bool) -> (u32, i32) { (a as u32 + u32::from(b), i32::from(a) - b as i32) }

    Close::Bits;
    fn bit_patterns(a: f32, b: u32) -> f32 {
        let patched = (a.to_bits() & 0x7f80_0000) | (b & 0x007f_ffff);
        f32::from_bits(patched)
    }

    Close::Bits;
    fn roots(a: f32, b: f32) -> f32 { a.sqrt() + (b * b).sqrt().recip() + f32::sqrt(b.abs()) }

    Close::Zeros;
    fn least_and_largest(a: f32, b: f32) -> (f32, f32, f32) { (a.min(b), a.max(b), f32::max(a, 0.0)) }

    Close::Bits;
    fn clamped(a: f32, b: f32) -> f32 { a.clamp(-0.5, 0.5) + b.clamp(0.0, 1e30) }

    Close::Bits;
    fn fused(a: f32, b: f32, c: f32) -> f32 { a.mul_add(b, c) - a.mul_add(-b, 1.0) }

    Close::Bits;
    fn powers(a: f32) -> (f32, f32, f32, f32) { (a.powi(2), a.powi(3), a.powi(-2), a.powi(7)) }

    Close::Bits;
    fn powers_of_variables(a: f32, n: i32) -> f32 { a.powi(n % 20) }

    Close::Bits;
    fn rounded(a: f32) -> (f32, f32, f32, f32, f32) {
        (a.floor(), a.ceil(), a.trunc(), a.round(), a.round_ties_even())
    }

    Close::Bits;
    fn parts_of_numbers(a: f32, b: f32) -> (f32, f32, f32, f32) {
        (a.fract(), a.abs(), a.signum(), a.copysign(b))
    }

    Close::Bits;
    fn questions(a: f32) -> (bool, bool, bool, bool) {
        (a.is_nan(), a.is_finite(), a.is_infinite(), a.is_sign_negative())
    }

    Close::Units(4);
    fn exponentials(a: f32, b: f32) -> (f32, f32, f32) { (a.exp(), a.exp2(), b.powf(a)) }

    Close::Units(4);
    fn logarithms(a: f32) -> (f32, f32, f32) { (a.ln(), a.log2(), a.log10()) }

    Close::Units(4);
    fn angles(a: f32, b: f32) -> (f32, f32, f32, f32, f32) { (a.sin(), a.cos(), a.tan(), a.tanh(), a.atan2(b)) }

    Close::Bits;
    fn integer_functions(a: i32, b: i32, c: u32, d: u32) -> (i32, i32, u32, u32, u32) {
        (a.min(b), a.clamp(-5, 5), c.max(d), c.abs_diff(d), c.clamp(3, 9))
    }

    Close::Bits;
    fn shadowed(x: f32) -> f32 {
        let x = x * 2.0;
        let x = x - 1.0;
        let y = { let x = x * x; x + 1.0 };
        x + y
    }

    Close::Bits;
    fn mutated(a: f32, b: f32) -> f32 {
        let mut sum = a;
        sum += b;
        sum *= 2.0;
        sum -= a * b;
        sum /= 3.0;
        sum %= 1.5;
        sum = sum + sum;
        sum
    }

    Close::Bits;
    fn mutated_integers(a: u32, b: u32) -> u32 {
        let mut bits = a;
        bits &= 0xff;
        bits |= b << 8;
        bits ^= 0x55;
        bits >>= 1;
        bits <<= 2u32;
        bits
    }

    Close::Bits;
    fn types_written(a: u32) -> (u32, i32, f32) {
        let one: u32 = 1;
        let minus: i32 = -1;
        let least: i32 = -2147483648;
        (a ^ one, minus ^ least, 4294967295u32 as f32)
    }

    Close::Bits;
    fn arrays(a: [f32; 3], b: [f32; 3]) -> f32 { a[0] * b[0] + a[1] * b[1] + a[2] * b[2] }

    Close::Bits;
    fn array_values(a: f32, b: f32) -> [f32; 4] { [a, b, a + b, -a] }

    Close::Bits;
    fn changed_elements(a: [f32; 3], k: u32) -> [f32; 3] {
        let mut b = a;
        b[1] = a[0] + a[2];
        b[2] *= 0.5;
        b[(k % 3) as usize] += 1.0;
        b
    }

    Close::Bits;
    fn repeated(a: f32) -> [f32; 5] {
        let mut all = [a; STEPS];
        all[STEPS - 1] = 0.0;
        all
    }

    Close::Bits;
    fn nested_arrays(a: [[f32; 2]; 2]) -> f32 { a[0][0] * a[1][1] - a[0][1] * a[1][0] }

    Close::Bits;
    fn tuples(a: (f32, [f32; 2]), b: (u32, (f32, bool))) -> (f32, u32) {
        let (x, [y, z]) = a;
        let (n, (w, yes)) = b;
        let part = if yes { w } else { a.0 - (a.1)[1] };
        (x + y * z + part, n ^ b.0)
    }

    Close::Bits;
    fn patterns(a: [f32; 3], b: (f32, f32)) -> f32 {
        let [x, _, z] = a;
        let (mut p, _) = b;
        p += x;
        p * z
    }

    Close::Bits;
    fn choices(a: f32, b: f32) -> f32 { if a > b { a - b } else if a < 0.0 { -a } else { b } }

    Close::Bits;
    fn choices_with_statements(a: f32, b: f32) -> f32 {
        let far = if a > 0.5 {
            let c = a * a;
            c + b
        } else if b > 0.0 {
            b
        } else {
            let d = a - b;
            d * d
        };
        far + 1.0
    }

    Close::Bits;
    fn choices_within_sums(a: f32, b: f32) -> f32 {
        1.0 + (if a < b { a } else { b }) * 2.0 - if b > 1.0 { let c = b * b; c } else { 0.0 }
    }

    Close::Bits;
    fn returns(a: f32, b: f32) -> f32 {
        if a.is_nan() {
            return 0.0;
        }
        for k in 0..4 {
            if a < k as f32 {
                return b + k as f32;
            }
        }
        return a;
    }

    Close::Bits;
    fn matched(n: u32, a: f32) -> f32 {
        match n % 8 { 0 => a, 1 | 2 => a * a, 3..=5 => 1.0, _ => -a }
    }

    Close::Bits;
    fn matched_with_statements(n: i32, a: f32) -> f32 {
        let mut b = a;
        match n {
            0 => b += 1.0,
            -5..0 => {
                b *= 2.0;
                b -= a * a;
            }
            _ if a > 0.0 => b = a.sqrt(),
            _ => {}
        }
        b
    }

    Close::Bits;
    fn matched_and_bound(n: u32) -> u32 { match n >> 3 { 0 => 7, k => k ^ n } }

    Close::Bits;
    fn matched_bools(a: bool, x: f32) -> f32 { match a { true => x, false => -x } }

    Close::Bits;
    fn loops(a: f32) -> f32 {
        let mut sum = 0.0;
        for k in 0..STEPS {
            sum += a * k as f32;
        }
        for _ in 0..=2 {
            sum *= 1.5;
        }
        sum
    }

    Close::Bits;
    fn loops_that_end(a: f32) -> f32 {
        let mut x = a;
        for k in 0..10 {
            if x > 8.0 { break; }
            if k == 3 { continue; }
            x = x * 2.0 + 0.25;
        }
        x
    }

    Close::Bits;
    fn loops_over_arrays(a: [f32; 4], b: [f32; 4]) -> f32 {
        let mut sum = 0.0;
        for x in a { sum += x; }
        for (x, y) in a.iter().zip(&b) { sum -= x * y; }
        for (k, x) in b.iter().enumerate() { sum += *x * a[k]; }
        for x in a.iter().rev() { sum = sum * 0.5 + x; }
        sum
    }

    Close::Bits;
    fn nested_loops(a: [[f32; 3]; 3], v: [f32; 3]) -> [f32; 3] {
        let mut product = [0.0; 3];
        for row in 0..3 {
            for column in 0..3 {
                product[row] += a[row][column] * v[column];
            }
        }
        product
    }

    Close::Bits;
    fn integer_loops(n: u32) -> u32 {
        let mut hash = n;
        for k in 1u32..5 {
            hash = (hash ^ (hash >> k)).wrapping_mul(0x9e37_79b1);
        }
        hash
    }

    Close::Bits;
    fn mapped(a: [f32; 3], s: f32) -> [f32; 3] { a.map(|x| x * s - 1.0) }

    Close::Bits;
    fn mapped_with_statements(a: [f32; 3], s: f32) -> [f32; 3] {
        a.map(|x| {
            let y = x * s;
            if y > 0.0 { y } else { -x }
        })
    }

    Close::Bits;
    fn summed(a: [f32; 3], b: [f32; 3]) -> f32 {
        let dot: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
        dot + a.iter().sum::<f32>() - b.iter().map(|x| x * x).product::<f32>()
    }

    Close::Bits;
    fn folded(a: [f32; 4], start: f32) -> f32 { a.iter().fold(start, |sum, x| sum * 0.5 + x) }

    Close::Bits;
    fn constants(a: f32, k: u32) -> f32 {
        const OWN: f32 = 0.3;
        let table = TABLE[(k % 4) as usize];
        a * EPSILON2 + OWN * elsewhere::FACTOR + table + std::f32::consts::PI + f32::MAX * a + Wall::HEIGHT
    }

    Close::Bits;
    fn calls(a: f32, b: f32) -> f32 {
        let twice = twice(a);
        twice + elsewhere::four_times(b) - Wall::above(a) + super::subset::elsewhere::twice(twice)
    }

    Close::Bits;
    fn fast_forms(a: f32, b: f32) -> f32 {
        fast_mul_add(fast_recip(a), b, fast_sqrt(a) + fast_rsqrt(b)) - fast_div(a, b)
            + fast_saturate(1.0 - a * a)
    }

    Close::Bits;
    fn random_numbers(a: u32, b: u32, c: u32, d: u32) -> ([u32; 4], f32, f32, u32) {
        let bits = philox4x32([a, b, c, d], [d, a]);
        (bits, unit_interval(bits[0]), unit_variance(bits[1]), mul_high(a, b))
    }

    Close::Units(4);
    fn normal_numbers(a: u32, b: u32) -> f32 { normal(a, b) }

    Close::Bits;
    fn vectors(a: Vec3, b: Vec3, s: f32) -> (Vec3, f32, f32) {
        let c = a * s + b / 2.0 - a.cross(b) * b;
        let mut d = c;
        d += a;
        d *= 0.5;
        (d, c.dot(a) + a.length(), b.length_squared() + a.x * b.y - c.z)
    }

    Close::Bits;
    fn vector_lengths(a: Vec3, b: Vec3) -> (f32, f32, f32, f32, f32, f32) {
        (
            a.length_recip(),
            a.distance(b),
            a.distance_squared(b),
            a.min_element() + b.max_element(),
            a.element_sum(),
            b.element_product(),
        )
    }

    Close::Bits;
    fn directions(a: Vec3, b: Vec3) -> (Vec3, Vec3, Vec3, Vec3, Vec3) {
        (a.normalize(), a.normalize_or(b), a.normalize_or_zero(), a.reflect(b), a.clamp_length_max(0.75))
    }

    Close::Bits;
    fn projections(a: Vec3, b: Vec3, s: f32) -> (Vec3, Vec3, Vec3) {
        (a.project_onto(b), a.reject_from(b), a.lerp(b, s))
    }

    Close::Bits;
    fn vectors_part_by_part(a: Vec3, b: Vec3, c: Vec3) -> (Vec3, Vec3, Vec3, Vec3, Vec3, Vec3) {
        (
            a.min(b).max(c),
            a.clamp(Vec3::splat(-0.5), Vec3::ONE),
            a.mul_add(b, c),
            a.abs() + b.signum() - c.copysign(a),
            a.floor() + b.ceil() - c.trunc(),
            a.round() + b.fract() * c.recip() + a.sqrt() - b % c + a % 2.0,
        )
    }

    Close::Units(4);
    fn vectors_of_functions(a: Vec3, s: f32) -> (Vec3, Vec3, Vec3, Vec3) { (a.exp(), a.ln(), a.sin(), a.powf(s)) }

    Close::Bits;
    fn questions_of_vectors(a: Vec3, b: Vec3) -> (bool, bool) {
        (a.is_nan(), b.is_finite())
    }

    Close::Bits;
    fn plane_vectors(a: Vec2, b: Vec2, s: f32) -> (Vec2, Vec2, Vec2, f32, f32) {
        let c = a.lerp(b, s).max(a.min(b));
        (c.normalize_or_zero(), a.floor() * s - b.recip(), a.project_onto(b), c.distance(a), b.element_sum() + a.dot(b))
    }

    Close::Bits;
    fn blocks_of_other_types(v: Vec3, a: f32, n: i32, k: u32) -> (i32, f32, Vec3) {
        (
            n << { let m = k & 31; m ^ 1 },
            a.powi({ let m = n & 1; m + 1 }),
            v * { let b = a * a; b } + v.lerp(-v, { let b = a; b - 1.0 }),
        )
    }

    Close::Bits;
    fn vector_makers(a: [f32; 3], s: f32) -> [f32; 3] {
        let v = Vec3::from(a) + Vec3::splat(s) - Vec3::new(s, 1.0, 0.0) + Vec3::ZERO;
        (-v).to_array()
    }

    Close::Bits;
    fn words_of_cpp(double: f32, short: f32) -> f32 {
        let long = double + short;
        let register = long * 2.0;
        let template = register - double;
        let uniform = template;
        uniform
    }

    Close::Bits;
    fn short_circuits(a: u32, b: u32) -> bool { b != 0 && a / b > 2 || a == 0 }
}

#[test]
fn sixty_functions_give_what_rust_gives_to_the_bit() {
    let cases = cases();
    assert!(cases.len() >= 60, "{}", cases.len());
    check(&cases);
}

#[test]
fn their_texts_compile_for_every_gpu() {
    let Some(compiler) = common::compiler() else {
        return;
    };
    let mut text = format!(
        "{}{}",
        nearfield_pairs::texts::FAST.text,
        nearfield_pairs::texts::SUBSET
    );
    let mut calls = String::new();
    for case in cases() {
        text.push_str(&case.text);
        calls.push_str(&format!("entry_{}(in, out);\n", case.name));
    }
    text.push_str(&format!(
        "extern \"C\" __global__ void all(const float* in, float* out) {{\n{calls}}}\n"
    ));
    let program = Program::new("subset", text);
    for arch in Arch::CHECKED {
        compiler.compile(&program, arch).unwrap();
    }
}
