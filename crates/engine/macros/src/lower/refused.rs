//! What kernels cannot have, and what to write instead.

use proc_macro2::Span;
use syn::{Attribute, Error, Expr, Result, Type, spanned::Spanned};

/// Methods that look as if they belonged here, and what to write instead.
const REMEDIES: [(&str, &str); 18] = [
    ("rem_euclid", "use `x - (x / y).floor() * y`"),
    ("div_euclid", "use `(x / y).floor()`"),
    ("unwrap", NO_PANIC),
    ("expect", NO_PANIC),
    ("cbrt", "use `x.powf(1.0 / 3.0)`"),
    ("hypot", "use `(x * x + y * y).sqrt()`"),
    ("sin_cos", "use `x.sin()` and `x.cos()`"),
    ("try_normalize", "use `normalize_or` or `normalize_or_zero`"),
    ("midpoint", "use `(a + b) * 0.5`"),
    ("len", "the length of an array is a constant: write it"),
    ("checked_add", "use wrapping_add"),
    ("checked_sub", "use wrapping_sub"),
    ("checked_mul", "use wrapping_mul"),
    ("saturating_sub", "use `a.max(b) - b`"),
    ("collect", "use `.map(…)` of the array itself"),
    ("push", "arrays have constant lengths: assign to an element"),
    ("into", "name the type: `f32::from(x)`, `Vec3::from(x)`"),
    ("exp_m1", "use `x.exp() - 1.0`"),
];

const NO_PANIC: &str = "a kernel must not panic: there are no options and results in kernels";

const OTHER_NUMBERS: [&str; 10] = [
    "f64", "i8", "u8", "i16", "u16", "i128", "u128", "char", "str", "String",
];

/// A method that texts do not have.
pub(super) fn method(name: &str, span: Span) -> Error {
    let remedy = REMEDIES.iter().find(|remedy| remedy.0 == name);
    let message = match (name, remedy) {
        (_, Some((_, remedy))) => format!("`{name}` is not in kernels: {remedy}"),
        ("filter", _) => "`filter` is not in kernels: use `if` within `for`, or `map` with 0.0 \
                          where nothing is wanted"
            .to_owned(),
        _ => format!(
            "kernels know no method `{name}`: call a function with #[pair_fn], or a method of a \
             field of `self` that has it"
        ),
    };
    Error::new(span, message)
}

pub(super) fn called_macro(call: &syn::Macro) -> Error {
    let name = call.path.segments.last().map(|last| last.ident.to_string());
    let name = name.unwrap_or_default();
    let remedy = match name.as_str() {
        "panic" | "assert" | "debug_assert" | "assert_eq" | "unreachable" | "todo"
        | "unimplemented" | "debug_assert_eq" => {
            "a kernel must not panic: return a value such as 0.0 or f32::NAN"
        }
        "println" | "print" | "eprintln" | "eprint" | "dbg" => {
            "a kernel prints nothing: return what you want to see as a further output"
        }
        "vec" => "use an array",
        _ => "macros are not translated: write what it stands for",
    };
    Error::new(call.path.span(), format!("`{name}!`: {remedy}"))
}

/// A loop whose end is not in its head.
pub(super) fn endless(span: Span) -> Error {
    let message = "loops have constant ranges: `for k in 0..8`, with `break` where it ends";
    Error::new(span, message)
}

/// An expression that no text has.
pub(super) fn expression(expression: &Expr) -> Error {
    let (span, message) = match expression {
        Expr::Closure(other) => (
            other.span(),
            "closures are arguments of `map` and `fold` only: write a function with #[pair_fn]",
        ),
        Expr::Unsafe(other) => (
            other.unsafe_token.span,
            "kernels are safe code: remove `unsafe`",
        ),
        Expr::Try(other) => (
            other.question_token.span(),
            "kernels have no errors: use `if`",
        ),
        Expr::Let(other) => (
            other.let_token.span,
            "kernels have no `if let`: use `match` or a comparison",
        ),
        Expr::Range(other) => (other.span(), "ranges stand in the head of a `for` only"),
        Expr::Assign(other) => (other.span(), "assign in a statement of its own"),
        Expr::While(other) => return endless(other.while_token.span),
        Expr::Loop(other) => return endless(other.loop_token.span),
        Expr::ForLoop(other) => (
            other.for_token.span,
            "a loop has no value: write a statement",
        ),
        Expr::Return(other) => (
            other.return_token.span,
            "`return` leaves the function from within a value: write a statement of its own",
        ),
        other => (other.span(), "this expression is not in kernels"),
    };
    Error::new(span, message)
}

/// Refuses a type that no text has, where its name says so. All others are for the compiler.
pub(super) fn ty(ty: &Type) -> Result<()> {
    let refused = |span, message: &str| Err(Error::new(span, message));
    match ty {
        Type::Paren(inner) => self::ty(&inner.elem),
        Type::Group(inner) => self::ty(&inner.elem),
        Type::Reference(reference) => match reference.mutability {
            Some(token) => refused(
                token.span,
                "a kernel changes no arguments: return the new value",
            ),
            None => self::ty(&reference.elem),
        },
        Type::Tuple(tuple) if tuple.elems.len() > 6 => {
            refused(tuple.span(), "tuples have at most six parts: nest them")
        }
        Type::Tuple(tuple) => tuple.elems.iter().try_for_each(self::ty),
        Type::Array(array) => {
            if let Expr::Lit(literal) = &array.len
                && let syn::Lit::Int(length) = &literal.lit
                && length.base10_digits() == "0"
            {
                return refused(
                    array.len.span(),
                    "an array has at least one element here: use ()",
                );
            }
            self::ty(&array.elem)
        }
        Type::Slice(slice) => refused(slice.span(), "a slice has no constant length: use an array"),
        Type::Infer(_) => Ok(()),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return Ok(());
            };
            let name = last.ident.to_string();
            let alone = path.path.segments.len() == 1;
            if alone && OTHER_NUMBERS.contains(&name.as_str()) {
                let message = format!("`{name}` is not in kernels: use f32, u32, i32 or bool");
                return refused(path.span(), &message);
            }
            let known = matches!(name.as_str(), "Vec" | "Option" | "Result" | "Box");
            if known && !last.arguments.is_empty() {
                let message = format!(
                    "`{name}` is not in kernels: use numbers, arrays, tuples and structs that \
                     derive Channels"
                );
                return refused(path.span(), &message);
            }
            Ok(())
        }
        other => refused(
            other.span(),
            "kernels compute with f32, u32, i32, bool, arrays, tuples, Vec3 and structs that \
             derive Channels",
        ),
    }
}

/// The attributes of an expression that is a statement.
pub(super) fn attributes_of(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Assign(e) => &e.attrs,
        Expr::Binary(e) => &e.attrs,
        Expr::Block(e) => &e.attrs,
        Expr::Break(e) => &e.attrs,
        Expr::Call(e) => &e.attrs,
        Expr::Continue(e) => &e.attrs,
        Expr::ForLoop(e) => &e.attrs,
        Expr::If(e) => &e.attrs,
        Expr::Lit(e) => &e.attrs,
        Expr::Match(e) => &e.attrs,
        Expr::MethodCall(e) => &e.attrs,
        Expr::Path(e) => &e.attrs,
        Expr::Return(e) => &e.attrs,
        Expr::Struct(e) => &e.attrs,
        Expr::Tuple(e) => &e.attrs,
        Expr::Unary(e) => &e.attrs,
        _ => &[],
    }
}
