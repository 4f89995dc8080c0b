//! The table from which Rust constants and the text of a CUDA header are made.

/// Makes Rust constants, and the text of a CUDA header with the same numbers.
///
/// Numbers (`u32`) and reals (`f64`) become `constexpr` numbers of the namespace; choices among
/// variants, which the preprocessor compares, become macros with the prefix `NF_`. Values are
/// expressions in both languages, so a length that follows from others is written as such. The
/// header is a constant text, so it is part of every program's key.
///
/// A number that only one side reads stands beside the code that reads it, not in a table.
///
/// ```
/// nearfield_shared::constants! {
///     /// Numbers of a sum.
///     header HEADER in nf;
///     numbers {
///         /// Threads of a block.
///         THREADS = 256;
///         /// Items of a tile.
///         TILE = THREADS * 4;
///     }
/// }
/// assert_eq!(TILE, 1024);
/// assert!(HEADER.contains("namespace nf {"));
/// assert!(HEADER.contains("// Items of a tile.\nconstexpr unsigned TILE = THREADS * 4;"));
/// ```
#[macro_export]
macro_rules! constants {
    (
        $(#[doc = $about:literal])+
        header $text:ident in $namespace:ident;
        $( numbers { $( $(#[doc = $doc:literal])+ $name:ident = $value:expr; )* } )?
        $( reals { $( $(#[doc = $of_real:literal])+ $real:ident = $size:literal; )* } )?
        $( choices { $( $(#[doc = $meaning:literal])+ $choice:ident = $number:literal; )* } )?
    ) => {
        $( $( $(#[doc = $doc])+ pub const $name: u32 = $value; )* )?
        $( $( $(#[doc = $of_real])+ pub const $real: f64 = $size; )* )?
        $( $( $(#[doc = $meaning])+ pub const $choice: u32 = $number; )* )?

        $(#[doc = $about])+
        pub const $text: &str = ::core::concat!(
            $("//", $about, "\n",)+
            "#pragma once\n\nnamespace ", ::core::stringify!($namespace), " {\n\n",
            $( $(
                $("//", $doc, "\n",)+
                "constexpr unsigned ", ::core::stringify!($name), " = ",
                ::core::stringify!($value), ";\n",
            )* )?
            $( $(
                $("//", $of_real, "\n",)+
                "constexpr double ", ::core::stringify!($real), " = ",
                ::core::stringify!($size), ";\n",
            )* )?
            "\n}\n",
            $( $(
                "\n", $("//", $meaning, "\n",)+
                "#define NF_", ::core::stringify!($choice), " ", ::core::stringify!($number), "\n",
            )* )?
        );
    };
}
