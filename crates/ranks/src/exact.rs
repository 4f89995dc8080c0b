//! Sums without rounding: the same bits in any order, on any number of ranks.
//!
//! The sum of floating-point numbers is a multiple of 2⁻¹⁰⁷⁴, the smallest of them. It is kept as
//! such, in base-2³² digits that are wider than necessary, so an addition changes three of them and
//! carries are propagated rarely (U. W. Kulisch & W. L. Miranker, "The arithmetic of the digital
//! computer: a new approach", SIAM Review 28, 1986, <https://doi.org/10.1137/1028001>). Only
//! [`ExactSum::value`] rounds, once.
//!
//! Ranks add digits: after carries are propagated they are below 2³², so doubles hold the sums of
//! those of two million ranks exactly.

/// Digits: 2,098 bits of numbers and 64 of carries.
const DIGITS: usize = 68;

/// Additions between two propagations of carries: each adds less than 2³² to a digit.
const ROOM: u32 = 1 << 30;

/// A sum that does not depend on the order of its numbers.
///
/// ```
/// use nearfield_ranks::ExactSum;
/// let numbers = [1e100, 3.5, -1e100, 1e-300];
/// let mut sum = ExactSum::default();
/// numbers.iter().for_each(|number| sum.add(*number));
/// assert_eq!((sum.value(), numbers.iter().sum::<f64>()), (3.5, 1e-300));
/// ```
#[derive(Debug, Clone)]
pub struct ExactSum {
    /// The lowest first, of weight 2⁻¹⁰⁷⁴.
    digits: [i64; DIGITS],
    /// Additions until carries have to be propagated.
    room: u32,
    /// The sum of infinities and NaNs.
    rest: f64,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self {
            digits: [0; DIGITS],
            room: ROOM,
            rest: 0.0,
        }
    }
}

impl ExactSum {
    /// Number of numbers that [`digits`](Self::digits) returns.
    pub(crate) const NUMBERS: usize = DIGITS + 1;

    /// Adds a number.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        if exponent == 0x7ff {
            self.rest += value;
            return;
        }
        let fraction = bits & ((1 << 52) - 1);
        let whole = fraction | u64::from(exponent != 0) << 52;
        let place = exponent.saturating_sub(1);
        let wide = u128::from(whole) << (place % 32);
        let low = place / 32;
        // All ones for a negative number: the digits are then those of the opposite number.
        let sign = bits as i64 >> 63;
        for (digit, shift) in self.digits[low..low + 3].iter_mut().zip([0, 32, 64]) {
            let part = (wide >> shift) as u32;
            *digit += (i64::from(part) ^ sign) - sign;
        }
        self.room -= 1;
        if self.room == 0 {
            self.settle();
        }
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        let mut other = other.clone();
        other.settle();
        self.settle();
        for (digit, other) in self.digits.iter_mut().zip(other.digits) {
            *digit += other;
        }
        self.rest += other.rest;
        self.settle();
    }

    /// Propagates carries: all digits but the last are then from 0 to below 2³².
    fn settle(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            let sum = *digit + carry;
            carry = sum >> 32;
            *digit = sum & 0xffff_ffff;
        }
        self.digits[DIGITS - 1] += carry;
        self.room = ROOM;
    }

    /// The digits after propagation and the rest; their sums over ranks are exact.
    pub(crate) fn digits(&mut self) -> [f64; Self::NUMBERS] {
        self.settle();
        let mut numbers = [self.rest; Self::NUMBERS];
        for (number, digit) in numbers.iter_mut().zip(self.digits) {
            *number = digit as f64;
        }
        numbers
    }

    /// The sum with digits that were added over ranks.
    pub(crate) fn of(numbers: &[f64]) -> Self {
        let mut sum = Self::default();
        for (digit, number) in sum.digits.iter_mut().zip(numbers) {
            *digit = *number as i64;
        }
        sum.rest = numbers.get(DIGITS).copied().unwrap_or_default();
        sum.settle();
        sum
    }

    /// The sum, rounded to the nearest number; infinite if it overflows.
    pub fn value(&self) -> f64 {
        if self.rest != 0.0 {
            return self.rest;
        }
        let mut sum = self.clone();
        sum.settle();
        let negative = sum.digits[DIGITS - 1] < 0;
        if negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.settle();
        }
        let digits = &sum.digits;
        let Some(high) = digits.iter().rposition(|digit| *digit != 0) else {
            return 0.0;
        };
        let low = high.saturating_sub(2);
        let mut whole = 0u128;
        for digit in digits[low..=high].iter().rev() {
            whole = whole << 32 | *digit as u128;
        }
        // Lower digits decide between two numbers only if they are there at all. The lowest bit
        // here is not among the 53 that stay.
        if digits[..low].iter().any(|digit| *digit != 0) {
            whole |= 1;
        }
        let size = whole as f64 * power(32 * low as i32 - 1074);
        if negative { -size } else { size }
    }
}

/// 2 to an exponent from −1074 to 1023.
fn power(exponent: i32) -> f64 {
    let bits = if exponent >= -1022 {
        ((exponent + 1023) as u64) << 52
    } else {
        1 << (exponent + 1074)
    };
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.value()
    }

    /// A number from the bits of a generator (Marsaglia's xorshift, DOI 10.18637/jss.v008.i14).
    fn drawn(state: &mut u64, exponents: u64) -> f64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let exponent = 1023 - exponents / 2 + *state % exponents;
        let sign = *state >> 63 << 63;
        let fraction = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
        f64::from_bits(sign | exponent << 52 | fraction)
    }

    #[test]
    fn a_single_number_is_itself() {
        let mut state = 7;
        let numbers = (0..2000).map(|_| drawn(&mut state, 2000));
        let ends = [
            0.0,
            1.0,
            -1.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
        ];
        for number in numbers.chain(ends) {
            assert_eq!(sum(&[number]).to_bits(), number.to_bits(), "{number:e}");
            assert_eq!(sum(&[number, -number, number]), number);
        }
    }

    #[test]
    fn two_numbers_are_rounded_as_the_processor_rounds() {
        let mut state = 99;
        for exponents in [4, 60, 120, 2000] {
            for _ in 0..2000 {
                let (a, b) = (drawn(&mut state, exponents), drawn(&mut state, exponents));
                assert_eq!(sum(&[a, b]).to_bits(), (a + b).to_bits(), "{a:e} + {b:e}");
            }
        }
        // Half way between two numbers, and beyond by as little as there is.
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, -5e-324]), 1.0);
    }

    #[test]
    fn the_order_and_the_parts_do_not_matter() {
        let mut state = 3;
        let mut numbers: Vec<f64> = (0..3000).map(|_| drawn(&mut state, 300)).collect();
        let whole = sum(&numbers);
        numbers.reverse();
        assert_eq!(sum(&numbers).to_bits(), whole.to_bits());
        numbers.sort_by(f64::total_cmp);
        assert_eq!(sum(&numbers).to_bits(), whole.to_bits());
        for parts in [2, 3, 7] {
            let mut all = [0.0; ExactSum::NUMBERS];
            for part in numbers.chunks(numbers.len() / parts) {
                let mut of_part = ExactSum::default();
                part.iter().for_each(|number| of_part.add(*number));
                let digits = of_part.digits();
                all.iter_mut()
                    .zip(digits)
                    .for_each(|(all, digit)| *all += digit);
            }
            assert_eq!(ExactSum::of(&all).value().to_bits(), whole.to_bits());
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_too_much_is_infinite() {
        assert!(sum(&[1.0, f64::NAN, 2.0]).is_nan());
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum(&[1.0, f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, f64::MIN]), f64::MAX);
        assert_eq!(sum(&[]), 0.0);
    }

    #[test]
    fn sums_of_parts_are_the_sum_of_all() {
        let mut state = 5;
        let numbers: Vec<f64> = (0..3000).map(|_| drawn(&mut state, 2000)).collect();
        for part in [1, 7, 1000, 3000] {
            let mut whole = ExactSum::default();
            for numbers in numbers.chunks(part) {
                let mut sum = ExactSum::default();
                numbers.iter().for_each(|number| sum.add(*number));
                whole.add_sum(&sum);
            }
            assert_eq!(whole.value().to_bits(), sum(&numbers).to_bits(), "{part}");
        }
        let mut infinite = ExactSum::default();
        infinite.add(f64::INFINITY);
        let mut sum = ExactSum::default();
        sum.add_sum(&infinite);
        assert_eq!(sum.value(), f64::INFINITY);
    }

    #[test]
    fn carries_are_settled_before_digits_are_full() {
        let mut many = ExactSum {
            room: 3,
            ..ExactSum::default()
        };
        for _ in 0..10 {
            many.add(-4294967295.0);
        }
        assert_eq!(many.value(), -42949672950.0);
        assert!(many.room > ROOM - 10);
    }
}
