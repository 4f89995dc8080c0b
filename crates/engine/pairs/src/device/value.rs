//! The types of values in translated functions.
//!
//! Every type has a name in C++, a number of floats in the uniforms, and literals for constants.
//! Arrays, tuples and structs lie part after part, without padding, so the C++ side reads them with
//! `nf::read<T>` from the place where the first part is. Numbers other than `f32` are passed as
//! bits: a float holds the 32 bits of a `u32`, and nothing computes with it on the way.

use super::{
    bare::Bare,
    types::{Integer, Type, Types},
};
use crate::Pair;
use glam::{Vec2, Vec3};

/// A value that exists in translated functions: `f32`, `bool`, integers of 32 and 64 bits, arrays,
/// tuples of up to six, `glam::Vec2`, `glam::Vec3`, and structs that derive `Channels`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no type on the GPU",
    note = "kernels compute with f32, u32, i32, bool, arrays, tuples, glam::Vec3 and structs that derive Channels"
)]
pub trait DeviceValue: Copy + Bare<Bare = Self> {
    /// Uniforms that it takes.
    const NUMBERS: usize;

    /// Its type in the text; a struct is declared in `types`.
    fn ty(types: &mut Types) -> Type;

    /// Its name in C++.
    fn name(types: &mut Types) -> String {
        Self::ty(types).name()
    }

    /// Appends it to the uniforms: numbers other than `f32` by their bits.
    fn uniforms(self, to: &mut Vec<f32>);

    /// An expression of C++ for it.
    fn literal(self, types: &mut Types) -> String;

    /// Its value if it is an integer.
    fn integer(self) -> Option<i128> {
        None
    }
}

/// A value whose elements are read by an index where it lies: an array or a vector.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not indexed on the GPU",
    note = "fields that a kernel indexes are arrays, glam::Vec2 and glam::Vec3"
)]
pub trait DeviceTable: DeviceValue {
    /// An array of the elements.
    type Elements: DeviceValue;
}

impl<T: DeviceValue, const N: usize> DeviceTable for [T; N] {
    type Elements = Self;
}

impl DeviceValue for f32 {
    const NUMBERS: usize = 1;

    fn ty(_: &mut Types) -> Type {
        Type::F32
    }

    fn uniforms(self, to: &mut Vec<f32>) {
        to.push(self);
    }

    fn literal(self, _: &mut Types) -> String {
        if self.is_finite() {
            format!("{self:?}f")
        } else {
            format!("nf::from_bits({:#x}u)", self.to_bits())
        }
    }
}

impl DeviceValue for bool {
    const NUMBERS: usize = 1;

    fn ty(_: &mut Types) -> Type {
        Type::Bool
    }

    fn uniforms(self, to: &mut Vec<f32>) {
        to.push(f32::from_bits(u32::from(self)));
    }

    fn literal(self, _: &mut Types) -> String {
        self.to_string()
    }
}

macro_rules! integers {
    ($($ty:ident: $signed:literal, $bits:literal, $numbers:literal;)*) => {$(
        impl DeviceValue for $ty {
            const NUMBERS: usize = $numbers;

            fn ty(_: &mut Types) -> Type {
                Type::Integer(Integer {
                    name: stringify!($ty),
                    signed: $signed,
                    bits: $bits,
                })
            }

            fn uniforms(self, to: &mut Vec<f32>) {
                let bits = self as u64;
                to.push(f32::from_bits(bits as u32));
                if Self::NUMBERS == 2 {
                    to.push(f32::from_bits((bits >> 32) as u32));
                }
            }

            fn literal(self, types: &mut Types) -> String {
                let ty = Self::ty(types);
                format!("{}({})", ty.name(), number(&self.to_string(), &ty))
            }

            fn integer(self) -> Option<i128> {
                Some(self as i128)
            }
        }
    )*};
}
integers! {
    u32: false, 32, 1;
    i32: true, 32, 1;
    u64: false, 64, 2;
    i64: true, 64, 2;
    usize: false, 64, 2;
    isize: true, 64, 2;
}

/// The digits of a number as a literal of C++ whose plain type is that of the number.
pub(super) fn number(digits: &str, ty: &Type) -> String {
    match ty {
        Type::Integer(Integer { name, signed, bits }) => match (bits, signed) {
            // The least has no literal of its own in C++.
            (32, true) if digits == "-2147483648" => "(-2147483647 - 1)".to_owned(),
            (64, true) if digits == "-9223372036854775808" => {
                "(-9223372036854775807ll - 1)".to_owned()
            }
            (32, true) => digits.to_owned(),
            (32, false) => format!("{digits}u"),
            // Indices are small, and an int becomes what it is compared or added to.
            _ if *name == "usize" && digits.len() < 10 => digits.to_owned(),
            (_, true) => format!("{digits}ll"),
            (_, false) => format!("{digits}ull"),
        },
        Type::F32 => float(digits),
        _ => digits.to_owned(),
    }
}

/// The user's digits; where there are more than f32 needs, the shortest that mean the same.
fn float(digits: &str) -> String {
    let mut text = match digits.parse::<f32>() {
        Ok(value) if value.is_infinite() => {
            return format!("nf::from_bits({:#x}u)", value.to_bits());
        }
        Ok(value) if digits.len() > 12 => format!("{value:?}"),
        _ => digits.to_owned(),
    };
    if text.ends_with('.') {
        text.push('0');
    } else if !text.contains(['.', 'e', 'E']) {
        text.push_str(".0");
    }
    format!("{text}f")
}

impl DeviceValue for Pair {
    const NUMBERS: usize = 4;

    fn ty(_: &mut Types) -> Type {
        Type::Pair
    }

    fn uniforms(self, to: &mut Vec<f32>) {
        to.extend([self.d[0], self.d[1], self.d[2], self.d2]);
    }

    fn literal(self, types: &mut Types) -> String {
        format!(
            "nf::Pair{{{}, {}}}",
            self.d.literal(types),
            self.d2.literal(types)
        )
    }
}

impl<T: DeviceValue, const N: usize> DeviceValue for [T; N] {
    const NUMBERS: usize = N * T::NUMBERS;

    fn ty(types: &mut Types) -> Type {
        Type::Array(Box::new(T::ty(types)), N)
    }

    fn uniforms(self, to: &mut Vec<f32>) {
        self.into_iter().for_each(|value| value.uniforms(to));
    }

    fn literal(self, types: &mut Types) -> String {
        let values: Vec<_> = self.iter().map(|value| value.literal(types)).collect();
        format!("{}{{{{{}}}}}", Self::name(types), values.join(", "))
    }
}

macro_rules! vectors {
    ($($vector:ty: $ty:ident, $name:literal, $count:literal;)*) => {$(
        impl DeviceTable for $vector {
            type Elements = [f32; $count];
        }

        impl DeviceValue for $vector {
            const NUMBERS: usize = $count;

            fn ty(_: &mut Types) -> Type {
                Type::$ty
            }

            fn uniforms(self, to: &mut Vec<f32>) {
                to.extend(self.to_array());
            }

            fn literal(self, types: &mut Types) -> String {
                let values = self.to_array().map(|value| value.literal(types));
                format!("{}{{{}}}", $name, values.join(", "))
            }
        }
    )*};
}
vectors! {
    Vec2: Vec2, "nf::Vec2", 2;
    Vec3: Vec3, "nf::Vec3", 3;
}

macro_rules! tuples {
    ($($part:ident $at:tt),*) => {
        impl<$($part: DeviceValue),*> DeviceValue for ($($part,)*) {
            const NUMBERS: usize = 0 $(+ $part::NUMBERS)*;

            fn ty(_types: &mut Types) -> Type {
                Type::Tuple(vec![$($part::ty(_types)),*])
            }

            fn uniforms(self, _to: &mut Vec<f32>) {
                $(self.$at.uniforms(_to);)*
            }

            fn literal(self, types: &mut Types) -> String {
                let parts: &[String] = &[$(self.$at.literal(types)),*];
                format!("{}{{{}}}", Self::name(types), parts.join(", "))
            }
        }
    };
}
tuples!();
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
