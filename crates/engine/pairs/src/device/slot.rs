//! Slots: how a twin tells the types of its values.
//!
//! A twin is a closure that never runs. Its values go through the functions here, which tie the
//! type of a value to that of a slot; the compiler infers both. References are transparent, as they
//! are in a text. A trait refuses a type or a method that no text has, at the place of the value.

use super::{
    bare::{Bare, Sequence},
    types::{Type, Types},
    value::{DeviceTable, DeviceValue},
};
use crate::Pair;
use glam::{Vec2, Vec3};
use std::marker::PhantomData;

/// The type of a value of a function, for the compiler to infer.
#[derive(Debug)]
pub struct Slot<T>(PhantomData<fn() -> T>);

/// A slot whose type is not known yet.
pub fn slot<T>() -> Slot<T> {
    Slot(PhantomData)
}

/// The value as it is; its type is that of the slot.
pub fn probe<T: Bare>(_: &Slot<T::Bare>, value: T) -> T {
    value
}

/// Ties the type of what is seen to that of the slot.
pub fn see<T: Bare + ?Sized>(_: &Slot<T::Bare>, _: &T) {}

/// The same, for a place that something is asked of.
pub fn shown<'a, T: Bare + ?Sized>(_: &Slot<T::Bare>, place: &'a T) -> &'a T {
    place
}

/// Gives a slot a type that is written.
pub fn pinned<T: Bare>(_: &Slot<T::Bare>) {}

/// The type in a slot, for the text.
pub fn described<T: DeviceValue>(_: &Slot<T>) -> fn(&mut Types) -> Type {
    T::ty
}

/// No type: only the compiler asks for it.
pub fn undescribed(_: &mut Types) -> Type {
    Type::Tuple(Vec::new())
}

/// Checks that the operators of a type are those of the text.
pub fn operand<T: Operand>(_: &Slot<T>) {}

/// A type whose operators are known; structs may have others than those that Rust derives.
#[diagnostic::on_unimplemented(
    message = "operators of `{Self}` have no text for the GPU",
    note = "apply operators to its fields, one by one or in tuples: `(a.x, a.y) == (b.x, b.y)`"
)]
pub trait Operand {}

macro_rules! operands {
    ($($ty:ty),*) => {$(
        impl Operand for $ty {}
    )*};
}
operands!(f32, u32, u64, usize, i32, i64, isize, bool, Vec2, Vec3);
impl<T: Operand, const N: usize> Operand for [T; N] {}

macro_rules! operand_tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: Operand),*> Operand for ($($part,)*) {}
    )*};
}
operand_tuples!(()(A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

/// Checks that a value is read by an index.
pub fn indexed<T: DeviceTable>(_: &Slot<T>) {}

/// Checks that elements are assigned to by an index.
pub fn assigned_by_index<T: Elements>(_: &Slot<T>) {}

/// A type whose elements are assigned to by an index.
#[diagnostic::on_unimplemented(
    message = "elements of `{Self}` are not assigned to on the GPU",
    note = "assign to `.x`, `.y` or `.z`, or to the whole vector"
)]
pub trait Elements {}
impl<T, const N: usize> Elements for [T; N] {}

/// Checks that `T::from` of the slot's type is one of the text.
pub fn converted<T: From_<S>, S>(_: &Slot<S>) {}

/// `From` as texts have it.
#[diagnostic::on_unimplemented(
    message = "`{Self}::from` of `{S}` has no text for the GPU",
    note = "numbers are converted by `as`, and vectors are made of arrays and tuples"
)]
pub trait From_<S> {}

macro_rules! conversions {
    ($($ty:ty: $($from:ty)*;)*) => {$($(
        impl From_<$from> for $ty {}
    )*)*};
}
conversions! {
    f32: f32 bool;
    u32: u32 bool;
    i32: i32 bool;
    u64: u64 u32 bool;
    i64: i64 u32 i32 bool;
    usize: usize bool;
    isize: isize bool;
    Vec2: Vec2 [f32; 2] (f32, f32);
    Vec3: Vec3 [f32; 3] (f32, f32, f32);
}

/// Checks that the text has the method `M` of a type.
pub fn has<M, T: Has<M>>(_: &Slot<T>) {}

/// A type with the method `M` in texts.
#[diagnostic::on_unimplemented(
    message = "this method of `{Self}` has no text for the GPU",
    note = "call a function with #[nearfield::pair_fn] instead"
)]
pub trait Has<M> {}

/// Methods and functions, by their names.
#[allow(non_camel_case_types, missing_docs, missing_debug_implementations)]
pub mod method {
    use super::*;

    macro_rules! methods {
        ($($name:ident: $($ty:ty),*;)*) => {$(
            pub enum $name {}
            $(impl Has<$name> for $ty {})*
        )*};
    }
    methods! {
        abs: f32, Vec2, Vec3, i32, i64, isize;
        abs_diff: u32, u64, usize, i32, i64, isize;
        atan2: f32;
        ceil: f32, Vec2, Vec3;
        clamp: f32, Vec2, Vec3, u32, u64, usize, i32, i64, isize;
        clamp_length_max: Vec2, Vec3;
        clone: f32, u32, u64, usize, i32, i64, isize, bool, Vec2, Vec3, Pair;
        copysign: f32, Vec2, Vec3;
        cos: f32, Vec2, Vec3;
        count_ones: u32, i32, u64, i64, usize, isize;
        cross: Vec3;
        distance: Vec2, Vec3;
        distance_squared: Vec2, Vec3;
        dot: Vec2, Vec3;
        element_product: Vec2, Vec3;
        element_sum: Vec2, Vec3;
        exp: f32, Vec2, Vec3;
        exp2: f32, Vec2, Vec3;
        floor: f32, Vec2, Vec3;
        fract: f32, Vec2, Vec3;
        is_finite: f32, Vec2, Vec3;
        is_infinite: f32;
        is_nan: f32, Vec2, Vec3;
        is_sign_negative: f32;
        is_sign_positive: f32;
        leading_zeros: u32, i32, u64, i64, usize, isize;
        length: Vec2, Vec3;
        length_recip: Vec2, Vec3;
        length_squared: Vec2, Vec3;
        lerp: Vec2, Vec3;
        ln: f32, Vec2, Vec3;
        log10: f32;
        log2: f32, Vec2, Vec3;
        max: f32, Vec2, Vec3, u32, u64, usize, i32, i64, isize;
        max_element: Vec2, Vec3;
        min: f32, Vec2, Vec3, u32, u64, usize, i32, i64, isize;
        min_element: Vec2, Vec3;
        mul_add: f32, Vec2, Vec3;
        normalize: Vec2, Vec3;
        normalize_or: Vec2, Vec3;
        normalize_or_zero: Vec2, Vec3;
        pow: u32, u64, usize, i32, i64, isize;
        powf: f32, Vec2, Vec3;
        powi: f32;
        project_onto: Vec2, Vec3;
        recip: f32, Vec2, Vec3;
        reflect: Vec2, Vec3;
        reject_from: Vec2, Vec3;
        reversed: Pair;
        rotate_left: u32, i32, u64, i64, usize, isize;
        rotate_right: u32, i32, u64, i64, usize, isize;
        round: f32, Vec2, Vec3;
        round_ties_even: f32;
        signum: f32, Vec2, Vec3, i32, i64, isize;
        sin: f32, Vec2, Vec3;
        sqrt: f32, Vec2, Vec3;
        tan: f32;
        tanh: f32;
        to_array: Vec2, Vec3;
        to_bits: f32;
        trailing_zeros: u32, i32, u64, i64, usize, isize;
        trunc: f32, Vec2, Vec3;
        wrapping_add: u32, u64, usize, i32, i64, isize;
        wrapping_mul: u32, u64, usize, i32, i64, isize;
        wrapping_neg: u32, u64, usize, i32, i64, isize;
        wrapping_sub: u32, u64, usize, i32, i64, isize;
        iter: ;
        into_iter: Sequence;
        copied: Sequence;
        cloned: Sequence;
        rev: Sequence;
        enumerate: Sequence;
        zip: Sequence;
        map: Sequence;
        fold: Sequence;
        sum: Sequence;
        product: Sequence;
        new: Vec2, Vec3;
        splat: Vec2, Vec3;
        from: f32, u32, u64, usize, i32, i64, isize, Vec2, Vec3;
        from_array: Vec2, Vec3;
        from_bits: f32;
    }
    impl<T, const N: usize> Has<iter> for [T; N] {}
    impl<T, const N: usize> Has<into_iter> for [T; N] {}
    impl<T, const N: usize> Has<map> for [T; N] {}
    impl<T: Clone, const N: usize> Has<clone> for [T; N] {}
}
