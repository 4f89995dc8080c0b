//! Types without their references.

use crate::Pair;
use glam::{Vec2, Vec3};
use std::{iter, slice};

/// A type without its references, and sequences as one. Unsuffixed numbers are of any type that
/// has this, so their types are those that the compiler falls back to elsewhere too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no type on the GPU",
    note = "kernels compute with f32, integers, bool, arrays, tuples, glam::Vec3 and structs that derive Channels"
)]
pub trait Bare {
    /// The type of the value.
    type Bare;
}

macro_rules! bare {
    ($($ty:ty),*) => {$(
        impl Bare for $ty {
            type Bare = Self;
        }
    )*};
}
bare!(
    f32, f64, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool
);
bare!(Vec2, Vec3, Pair);

impl<T, const N: usize> Bare for [T; N] {
    type Bare = Self;
}

impl<T: Bare + ?Sized> Bare for &T {
    type Bare = T::Bare;
}

/// An iterator over an array, which a text has as an array.
#[derive(Debug)]
pub struct Sequence;

macro_rules! sequences {
    ($(<$($g:ident),*> $ty:ty;)*) => {$(
        impl<$($g),*> Bare for $ty {
            type Bare = Sequence;
        }
    )*};
}
sequences! {
    <T> slice::Iter<'_, T>;
    <I> iter::Rev<I>;
    <I> iter::Enumerate<I>;
    <I> iter::Copied<I>;
    <I> iter::Cloned<I>;
    <A, B> iter::Zip<A, B>;
    <I, F> iter::Map<I, F>;
}

impl<T, const N: usize> Bare for std::array::IntoIter<T, N> {
    type Bare = Sequence;
}

macro_rules! bare_tuples {
    ($(($($part:ident)*))*) => {$(
        impl<$($part: Bare),*> Bare for ($($part,)*) {
            type Bare = ($($part::Bare,)*);
        }
    )*};
}
bare_tuples!(()(A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));
