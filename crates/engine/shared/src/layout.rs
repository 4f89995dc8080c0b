//! Layouts of structs, as Rust has them, and the assertions that hold CUDA sources to them.
//!
//! A struct is declared twice, by Rust for the code that fills it in and by a CUDA source for the
//! code that reads it. [`assertions`] compares the two where the CUDA compiler sees both: name,
//! offset, size and kind of number of every member, and the size of the whole. Addresses are 64-bit
//! numbers in Rust and pointers in CUDA.

use std::fmt::Write;

/// Kinds of numbers that members are made of. An array is of the kind of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A struct, which has a layout of its own.
    Struct,
    /// `f32`, `float`.
    F32,
    /// `f64`, `double`.
    F64,
    /// `i32`, `int`.
    I32,
    /// `u32`, `unsigned`.
    U32,
    /// `i64`, `long long`.
    I64,
    /// `u64`; `unsigned long long`, or a pointer.
    U64,
}

/// A type that members of shared structs may have.
pub trait Shared {
    /// The kind of number that it holds.
    const KIND: Kind;
}

macro_rules! numbers {
    ($($kind:ident: $number:ty),+) => { $(
        impl Shared for $number {
            const KIND: Kind = Kind::$kind;
        }
    )+ };
}

numbers!(F32: f32, F64: f64, I32: i32, U32: u32, I64: i64, U64: u64);

impl<T: Shared, const N: usize> Shared for [T; N] {
    const KIND: Kind = T::KIND;
}

/// Where the members of a struct are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The struct's name in the CUDA source.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Its members, in order.
    pub members: &'static [Member],
}

/// A member of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its name, in Rust and in the CUDA source.
    pub name: &'static str,
    /// Bytes before it.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// What it holds.
    pub kind: Kind,
}

/// Finds the kind of a member: the numbers are those of [`Kind`].
const KINDS: &str = "
namespace nf_layout {
template <class T> struct kind { static constexpr int value = 0; };
template <> struct kind<float> { static constexpr int value = 1; };
template <> struct kind<double> { static constexpr int value = 2; };
template <> struct kind<int> { static constexpr int value = 3; };
template <> struct kind<unsigned> { static constexpr int value = 4; };
template <> struct kind<long long> { static constexpr int value = 5; };
template <> struct kind<unsigned long long> { static constexpr int value = 6; };
template <class T> struct kind<T*> { static constexpr int value = 6; };
template <class T, unsigned long long N> struct kind<T[N]> : kind<T> {};
}
";

/// CUDA text that compiles only if the structs declared before it have these layouts; empty if
/// there are none.
pub fn assertions<'a>(layouts: impl IntoIterator<Item = &'a Layout>) -> String {
    let mut text = String::new();
    for Layout {
        name,
        size,
        members,
    } in layouts
    {
        if text.is_empty() {
            text.push_str(KINDS);
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "static_assert(sizeof({name}) == {size}, \"{name} has another size in Rust\");"
        );
        for member in *members {
            let (of, kind) = (member.name, member.kind as u32);
            let (offset, size) = (member.offset, member.size);
            // The compiler's own offsetof: it has the macro of that name in no header of its own.
            let _ = writeln!(
                text,
                "static_assert(__INTADDR__(&((({name}*)0)->{of})) == {offset} && \
                 sizeof({name}::{of}) == {size} && \
                 nf_layout::kind<decltype({name}::{of})>::value == {kind}, \
                 \"{name}::{of} is another member in Rust\");"
            );
        }
    }
    text
}

/// Declares `#[repr(C)]` structs that are copied to kernels, with a constant `LAYOUT` each.
///
/// Members are numbers of 4 or 8 bytes, addresses as `u64`, arrays and shared structs of these, so
/// Rust and the C++ compiler of the device choose the same alignment and padding. Names of members
/// are those of the CUDA declaration, and so is the name of the struct unless it is given after
/// `as`.
///
/// ```
/// nearfield_shared::shared_structs! {
///     /// A box, `Box` of dynamics.cu.
///     #[derive(Clone, Copy)]
///     struct DeviceBox as Box {
///         length: [f32; 3],
///         tilted: u32,
///     }
/// }
/// assert_eq!((DeviceBox::LAYOUT.name, DeviceBox::LAYOUT.size), ("Box", 16));
/// let text = nearfield_shared::assertions([&DeviceBox::LAYOUT]);
/// assert!(text.contains("__INTADDR__(&(((Box*)0)->tilted)) == 12"));
/// ```
#[macro_export]
macro_rules! shared_structs {
    ($(
        $(#[$about:meta])*
        $visible:vis struct $name:ident $(as $cuda:ident)? {
            $( $(#[$doc:meta])* $of:vis $member:ident: $kind:ty, )+
        }
    )+) => { $(
        $(#[$about])*
        #[repr(C)]
        $visible struct $name {
            $( $(#[$doc])* $of $member: $kind, )+
        }

        impl $crate::Shared for $name {
            const KIND: $crate::Kind = $crate::Kind::Struct;
        }

        impl $name {
            /// Where its members are; programs assert that the CUDA declaration has the same.
            $visible const LAYOUT: $crate::Layout = $crate::Layout {
                name: $crate::cuda_name!($name $($cuda)?),
                size: ::core::mem::size_of::<Self>(),
                members: &[$(
                    $crate::Member {
                        name: ::core::stringify!($member),
                        offset: ::core::mem::offset_of!(Self, $member),
                        size: ::core::mem::size_of::<$kind>(),
                        kind: <$kind as $crate::Shared>::KIND,
                    },
                )+],
            };
        }
    )+ };
}

/// The last of one or two names, as text.
#[doc(hidden)]
#[macro_export]
macro_rules! cuda_name {
    ($rust:ident) => {
        ::core::stringify!($rust)
    };
    ($rust:ident $cuda:ident) => {
        ::core::stringify!($cuda)
    };
}
