//! The types of values in translated functions.
//!
//! Every type has a name in C++, a number of floats in the uniforms, and literals for constants.
//! Arrays, tuples and structs lie part after part, without padding, so the C++ side reads them with
//! `nf::read<T>` from the place where the first part is. Numbers other than `f32` travel by their
//! bits: a float holds the 32 bits of a `u32`, and nothing computes with it on the way.

use glam::{Vec2, Vec3};
use std::fmt::Write;

/// Structs that a text declares, each once.
#[derive(Debug, Default)]
pub struct Types {
    /// Identity, name in the text, and declaration.
    declared: Vec<(&'static str, String, String)>,
}

impl Types {
    /// Declares a struct with these fields; `id` tells it from all others. Returns its name.
    pub fn declare(
        &mut self,
        id: &'static str,
        name: &str,
        fields: &[(&'static str, String)],
    ) -> String {
        if let Some(known) = self.declared.iter().find(|known| known.0 == id) {
            return known.1.clone();
        }
        let mut unique = name.to_owned();
        while self.declared.iter().any(|known| known.1 == unique) {
            unique.push('_');
        }
        let mut text = format!("struct {unique} {{\n");
        let (mut read, mut write, mut count) = (String::new(), String::new(), String::from("0"));
        let mut decided = String::from("NF_of(0, 0)");
        for (field, _) in fields.iter().rev() {
            decided = format!("NF_OR({field}, {decided})");
        }
        for (field, ty) in fields {
            let _ = writeln!(text, "    {ty} {field};");
            let _ = writeln!(
                read,
                "        value.{field} = nf::read<{ty}>(at + ({count}));"
            );
            let _ = writeln!(write, "        nf::write(at + ({count}), value.{field});");
            let _ = write!(count, " + nf::layout<{ty}>::COUNT");
        }
        let _ = write!(
            text,
            "    NF_DECIDED({unique}, {decided})\n}};\n\
             template <>\n\
             struct nf::layout<{unique}> {{\n    \
             static constexpr int COUNT = {count};\n    \
             static __forceinline__ {unique} read(const float* at) {{\n        \
             {unique} value;\n{read}        return value;\n    }}\n    \
             static __forceinline__ void write(float* at, const {unique}& value) {{\n{write}    }}\n\
             }};\n"
        );
        self.declared.push((id, unique.clone(), text));
        unique
    }

    /// Declarations in an order in which every struct follows those of its fields.
    pub(super) fn declarations(&self) -> impl Iterator<Item = &str> {
        self.declared.iter().map(|declared| declared.2.as_str())
    }
}

/// A value that exists in translated functions: `f32`, `u32`, `i32`, `bool`, indices (`usize`),
/// arrays, tuples of up to six, `glam::Vec3`, and structs that derive `Channels`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no type on the GPU",
    note = "kernels compute with f32, u32, i32, bool, arrays, tuples, glam::Vec3 and structs that derive Channels"
)]
pub trait DeviceValue: Copy {
    /// Uniforms that it takes.
    const NUMBERS: usize;

    /// Its type in C++; a struct is declared in `types`.
    fn name(types: &mut Types) -> String;

    /// Appends it to the uniforms: numbers other than `f32` by their bits.
    fn uniforms(self, to: &mut Vec<f32>);

    /// An expression of C++ for it.
    fn literal(self, types: &mut Types) -> String;
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

    fn name(_: &mut Types) -> String {
        "float".to_owned()
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

macro_rules! integers {
    ($($ty:ty, $name:literal, $value:ident => $bits:expr, $literal:expr;)*) => {$(
        impl DeviceValue for $ty {
            const NUMBERS: usize = 1;

            fn name(_: &mut Types) -> String {
                $name.to_owned()
            }

            fn uniforms(self, to: &mut Vec<f32>) {
                let $value = self;
                to.push(f32::from_bits($bits));
            }

            fn literal(self, _: &mut Types) -> String {
                let $value = self;
                $literal
            }
        }
    )*};
}
integers! {
    u32, "nf::u32", value => value, format!("nf::u32({value}u)");
    // The least has no literal of its own in C++.
    i32, "nf::i32", value => value as u32, format!("nf::i32::of({}u)", value as u32);
    bool, "bool", value => u32::from(value), value.to_string();
    // No array of a kernel is as long as the largest.
    usize, "int", value => index(value), index(value).to_string();
}

/// A length or an index, which C++ has as an `int`.
fn index(value: usize) -> u32 {
    i32::try_from(value).unwrap_or(i32::MAX) as u32
}

impl<T: DeviceValue, const N: usize> DeviceValue for [T; N] {
    const NUMBERS: usize = N * T::NUMBERS;

    fn name(types: &mut Types) -> String {
        format!("nf::array<{}, {N}>", T::name(types))
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
    ($($vector:ty: $name:literal, $count:literal;)*) => {$(
        impl DeviceTable for $vector {
            type Elements = [f32; $count];
        }

        impl DeviceValue for $vector {
            const NUMBERS: usize = $count;

            fn name(_: &mut Types) -> String {
                $name.to_owned()
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
    Vec2: "nf::Vec2", 2;
    Vec3: "nf::Vec3", 3;
}

macro_rules! tuples {
    ($($part:ident $at:tt),*) => {
        impl<$($part: DeviceValue),*> DeviceValue for ($($part,)*) {
            const NUMBERS: usize = 0 $(+ $part::NUMBERS)*;

            fn name(_types: &mut Types) -> String {
                let parts: &[String] = &[$($part::name(_types)),*];
                format!("nf::tuple<{}>", parts.join(", "))
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
