//! Code beyond the subset is refused at its token, with the remedy.

use super::function;
use syn::{ItemFn, parse_quote};

/// The error of a function: the source text from its place on, and the message.
fn error_of(source: &str) -> (String, String) {
    let item: ItemFn = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let krate = parse_quote!(::nearfield);
    let Err(error) = function(&item.sig, &item.block, &krate) else {
        panic!("{source} is translated");
    };
    let start = error.span().start();
    let line = source.lines().nth(start.line - 1).unwrap_or_default();
    let rest: String = line.chars().skip(start.column).collect();
    (rest, error.to_string())
}

/// A body, the token where it is refused, and a part of the message.
const BODIES: [(&str, &str, &str); 44] = [
    ("while a > 1.0 { } a", "while", "for k in 0..8"),
    ("loop { return a; }", "loop", "for k in 0..8"),
    ("let x = loop { break a; }; x", "loop", "constant ranges"),
    ("for k in 0..n { } a", "n {", "a literal or a constant"),
    ("for k in 0.. { } a", "0..", "a first and a last number"),
    ("'outer: for k in 0..3 { } a", "'outer", "no labels"),
    (
        "let x; x = a; x",
        "let x;",
        "its value where it is declared",
    ),
    ("let Some(x) = b else { return a; }; x", "else", "use `if`"),
    ("if let 1 = n { a } else { b }", "let", "no `if let`"),
    ("a as f64 as f32", "f64", "use f32"),
    ("a + 1.0f64", "1.0f64", "use f32"),
    ("a + 1u8 as f32", "1u8", "use u32 or i32"),
    ("let s = \"text\"; a", "\"text\"", "numbers"),
    ("let c = 'c'; a", "'c'", "numbers"),
    ("panic!(\"no\")", "panic", "must not panic"),
    ("assert!(a > 0.0); a", "assert", "must not panic"),
    ("println!(\"{a}\"); a", "println", "a further output"),
    ("vec![a][0]", "vec", "use an array"),
    ("include!(\"x\")", "include", "macros are not translated"),
    ("let f = |x: f32| x; a", "|x: f32|", "#[pair_fn]"),
    ("let r = &mut a; a", "&mut a", "return the new value"),
    ("unsafe { a }", "unsafe", "remove `unsafe`"),
    ("b?; a", "?", "no errors"),
    (
        "let mut s = a; [a, b].map(|x| { s += x; s })[0]",
        "s += ",
        "outside of it",
    ),
    ("let x = (a = b); a", "a = b", "a statement of its own"),
    (
        "let mut t = [a, b]; (t[0], t[1]) = (a, b); a",
        "(t[0]",
        "one variable at a time",
    ),
    ("let [x, ..] = [a, b]; x", "..", "write a `_`"),
    ("let x @ y = a; x", "x @ y", "a pattern here"),
    ("a.hypot(b)", "hypot", "(x * x + y * y).sqrt()"),
    ("a.rem_euclid(b)", "rem_euclid", "floor()"),
    (
        "a.is_subnormal() as u32 as f32",
        "is_subnormal",
        "kernels know no method",
    ),
    ("a.sin_cos().0", "sin_cos", "x.cos()"),
    (
        "[a, b].iter().filter(|x| **x > 0.0).sum::<f32>()",
        "filter",
        "use `if`",
    ),
    ("[a, b].map(g)[0]", "g)", "write a closure"),
    ("[a, b][0..1][0]", "0..1", "index its elements"),
    (
        "match n { 0 => a, Some(1) => b, _ => a }",
        "Some(1)",
        "numbers, ranges",
    ),
    (
        "for k in 0..3 { for j in 0..n { } } a",
        "n {",
        "a literal or a constant",
    ),
    ("#[inline(never)] #[must_use] a", "#[must_use]", "use `cfg`"),
    ("use std::f32::consts::*; a", "use", "name what is imported"),
    (
        "match n { 0 if { let c = a; c > b } => a, _ => b }",
        "if",
        "compute before the `match`",
    ),
    (
        "let x = if a > b { return a } else { return b }; x",
        "if a",
        "as a statement",
    ),
    ("let x = match n { ref k => a }; x", "ref", "remove `ref`"),
    ("a.sqrt::<f32>()", "::<f32>", "name a type"),
    ("[a, b].iter().rev().len() as f32", "len", "write it"),
];

/// Whole functions.
const FUNCTIONS: [(&str, &str, &str); 15] = [
    ("fn f(a: f32) { a; }", "f(a", "add `-> f32`"),
    (
        "async fn f(a: f32) -> f32 { a }",
        "async",
        "cannot be async",
    ),
    (
        "unsafe fn f(a: f32) -> f32 { a }",
        "unsafe",
        "cannot be unsafe",
    ),
    (
        "fn f<T>(a: f32) -> f32 { a }",
        "T>",
        "no generic parameters",
    ),
    (
        "fn f<const N: usize>(a: [f32; N]) -> f32 { a[0] }",
        "const N",
        "no generic parameters",
    ),
    ("fn f(a: f64) -> f32 { 0.0 }", "f64", "use f32"),
    (
        "fn f(a: &mut f32) -> f32 { 0.0 }",
        "mut",
        "return the new value",
    ),
    ("fn f(a: &[f32]) -> f32 { 0.0 }", "[f32]", "use an array"),
    (
        "fn f(a: Vec<f32>) -> f32 { 0.0 }",
        "Vec<f32>",
        "arrays, tuples",
    ),
    (
        "fn f(a: Option<f32>) -> f32 { 0.0 }",
        "Option<f32>",
        "arrays, tuples",
    ),
    (
        "fn f(a: impl Fn(f32)) -> f32 { 0.0 }",
        "impl",
        "kernels compute with",
    ),
    (
        "fn f(a: [f32; 0]) -> f32 { 0.0 }",
        "0]",
        "at least one element",
    ),
    (
        "fn f(a: f32) -> f32 { f(a) }",
        "f(a)",
        "does not call itself",
    ),
    ("fn f(a: f32) -> f32 { Name(a) }", "Name(a)", "named fields"),
    ("fn f(a: f32) -> f32 { fn g() {} a }", "fn g", "#[pair_fn]"),
];

fn check(source: &str, token: &str, message: &str) {
    let (rest, found) = error_of(source);
    assert!(
        rest.starts_with(token),
        "{source}\nrefused at {rest:?} instead of {token:?}: {found}"
    );
    assert!(found.contains(message), "{source}\n{found}");
}

#[test]
fn what_leaves_the_subset_is_refused_where_it_stands() {
    for (body, token, message) in BODIES {
        let source = format!("fn kernel(a: f32, b: f32, n: u32) -> f32 {{ {body} }}");
        check(&source, token, message);
    }
}

#[test]
fn functions_outside_of_the_subset_are_refused_where_they_leave_it() {
    for (source, token, message) in FUNCTIONS {
        check(source, token, message);
    }
}

#[test]
fn many_kernels_leave_the_subset() {
    assert!(BODIES.len() + FUNCTIONS.len() >= 55);
}
