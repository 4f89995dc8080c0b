//! Methods: those of numbers, arrays and vectors that the text has functions for, and those of
//! `self`.

use super::{
    places::{is_self, self_path},
    statements::Tail,
    translator::{Code, Level, Translator},
    ty::Ty,
};
use proc_macro2::Span;
use syn::{Error, Expr, ExprClosure, ExprMethodCall, Result, spanned::Spanned};

/// The type of a method's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// The receiver's type.
    Same,
    F32,
    U32,
    Bool,
    Vec3,
    Array,
    /// The receiver's type, if that is a number.
    Number,
}

/// Methods, the number of their arguments, and what they give.
const METHODS: [(&str, usize, Gives); 71] = [
    ("sqrt", 0, Gives::F32),
    ("recip", 0, Gives::F32),
    ("abs", 0, Gives::Same),
    ("min", 1, Gives::Number),
    ("max", 1, Gives::Number),
    ("clamp", 2, Gives::Number),
    ("mul_add", 2, Gives::F32),
    ("powi", 1, Gives::F32),
    ("powf", 1, Gives::F32),
    ("exp", 0, Gives::F32),
    ("exp2", 0, Gives::F32),
    ("ln", 0, Gives::F32),
    ("log2", 0, Gives::F32),
    ("log10", 0, Gives::F32),
    ("sin", 0, Gives::F32),
    ("cos", 0, Gives::F32),
    ("tan", 0, Gives::F32),
    ("tanh", 0, Gives::F32),
    ("atan2", 1, Gives::F32),
    ("floor", 0, Gives::F32),
    ("ceil", 0, Gives::F32),
    ("trunc", 0, Gives::F32),
    ("round", 0, Gives::F32),
    ("round_ties_even", 0, Gives::F32),
    ("fract", 0, Gives::F32),
    ("signum", 0, Gives::Same),
    ("copysign", 1, Gives::F32),
    ("is_nan", 0, Gives::Bool),
    ("is_finite", 0, Gives::Bool),
    ("is_infinite", 0, Gives::Bool),
    ("is_sign_negative", 0, Gives::Bool),
    ("is_sign_positive", 0, Gives::Bool),
    ("to_bits", 0, Gives::U32),
    ("wrapping_add", 1, Gives::Number),
    ("wrapping_sub", 1, Gives::Number),
    ("wrapping_mul", 1, Gives::Number),
    ("abs_diff", 1, Gives::U32),
    ("dot", 1, Gives::F32),
    ("cross", 1, Gives::Vec3),
    ("length", 0, Gives::F32),
    ("length_squared", 0, Gives::F32),
    ("length_recip", 0, Gives::F32),
    ("distance", 1, Gives::F32),
    ("distance_squared", 1, Gives::F32),
    ("normalize", 0, Gives::Same),
    ("normalize_or", 1, Gives::Same),
    ("normalize_or_zero", 0, Gives::Same),
    ("lerp", 2, Gives::Same),
    ("project_onto", 1, Gives::Same),
    ("reject_from", 1, Gives::Same),
    ("reflect", 1, Gives::Same),
    ("clamp_length_max", 1, Gives::Same),
    ("min_element", 0, Gives::F32),
    ("max_element", 0, Gives::F32),
    ("element_sum", 0, Gives::F32),
    ("element_product", 0, Gives::F32),
    ("to_array", 0, Gives::Array),
    ("reversed", 0, Gives::Same),
    ("rem_euclid", 99, Gives::Same),
    ("iter", 0, Gives::Same),
    ("into_iter", 0, Gives::Same),
    ("copied", 0, Gives::Same),
    ("cloned", 0, Gives::Same),
    ("clone", 0, Gives::Same),
    ("rev", 0, Gives::Same),
    ("zip", 1, Gives::Array),
    ("enumerate", 0, Gives::Array),
    ("map", 1, Gives::Array),
    ("fold", 2, Gives::Same),
    ("sum", 0, Gives::Same),
    ("product", 0, Gives::Same),
];

/// Methods of `f32` that vectors have too, part by part.
const BY_PARTS: [&str; 16] = [
    "recip", "mul_add", "floor", "ceil", "trunc", "round", "fract", "copysign", "sqrt", "exp",
    "exp2", "ln", "log2", "sin", "cos", "powf",
];

/// Methods that look as if they belonged here, and what to write instead.
const REMEDIES: [(&str, &str); 20] = [
    ("rem_euclid", "use `x - (x / y).floor() * y`"),
    ("div_euclid", "use `(x / y).floor()`"),
    (
        "unwrap",
        "a kernel must not panic: there are no options and results in kernels",
    ),
    (
        "expect",
        "a kernel must not panic: there are no options and results in kernels",
    ),
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
    (
        "filter",
        "use `if` within `for`, or `map` with 0.0 where nothing is wanted",
    ),
    ("pow", "multiply, in a loop of constant length"),
    ("push", "arrays have constant lengths: assign to an element"),
    ("into", "name the type: `f32::from(x)`, `Vec3::from(x)`"),
    ("exp_m1", "use `x.exp() - 1.0`"),
];

impl Translator<'_> {
    pub(super) fn method_call(
        &mut self,
        expression: &Expr,
        call: &ExprMethodCall,
        expected: &Ty,
    ) -> Result<Code> {
        let name = call.method.to_string();
        let known = METHODS
            .iter()
            .any(|method| method.0 == name && method.1 < 99);
        if !known || is_self(&call.receiver) {
            let path = self_path(&call.receiver);
            if let Some(path) = path.or_else(|| is_self(&call.receiver).then(String::new)) {
                return self.method_of_self(expression, call, &path);
            }
            return Err(unknown(&name, call.method.span()));
        }
        let of = match (name.as_str(), &call.turbofish) {
            ("sum" | "product", Some(fish)) => match fish.args.first() {
                Some(syn::GenericArgument::Type(ty)) => self.ty(ty)?.1,
                _ => expected.clone(),
            },
            (_, Some(fish)) => {
                return Err(Error::new(
                    fish.span(),
                    "only `sum` and `product` name a type",
                ));
            }
            _ => expected.clone(),
        };
        let arguments: Vec<_> = call.args.iter().collect();
        self.known_method(&name, call.method.span(), &call.receiver, &arguments, &of)
    }

    /// A method that the text has a function for.
    pub(super) fn known_method(
        &mut self,
        name: &str,
        span: Span,
        receiver: &Expr,
        arguments: &[&Expr],
        expected: &Ty,
    ) -> Result<Code> {
        let found = METHODS
            .iter()
            .find(|method| method.0 == name && method.1 < 99);
        let Some(&(_, count, gives)) = found else {
            return Err(unknown(name, span));
        };
        if arguments.len() != count {
            let message = format!("`{name}` takes {count} arguments");
            return Err(Error::new(span, message));
        }
        let of = self.expression(receiver, &Ty::Unknown)?;
        if of.ty == Ty::Literal {
            self.typed(of.clone(), &Ty::Unknown, receiver.span())?;
        }
        match name {
            "iter" | "into_iter" | "copied" | "cloned" | "clone" => return Ok(of),
            "map" | "fold" | "zip" | "enumerate" | "rev" | "sum" | "product" => {
                return self.iterated(name, span, of, arguments, expected);
            }
            _ => {}
        }
        let mut text = format!("nf::{name}({}", of.text);
        for (at, argument) in arguments.iter().enumerate() {
            let expected = match (name, at) {
                ("powi", _) => &Ty::I32,
                ("powf" | "clamp_length_max", _) | ("lerp", 1) => &Ty::F32,
                _ => &of.ty,
            };
            let value = self.expression(argument, expected)?;
            text.push_str(&format!(", {}", value.text));
        }
        text.push(')');
        let ty = match gives {
            Gives::F32 if of.ty == Ty::Vec3 && BY_PARTS.contains(&name) => Ty::Vec3,
            // Of a type that is not known, they may be those of a vector.
            Gives::F32 if of.ty == Ty::Unknown && BY_PARTS.contains(&name) => Ty::Unknown,
            Gives::Same | Gives::Number => of.ty,
            Gives::F32 => Ty::F32,
            Gives::U32 => Ty::U32,
            Gives::Bool => Ty::Bool,
            Gives::Vec3 => Ty::Vec3,
            Gives::Array => Ty::Array(Box::new(Ty::F32)),
        };
        Ok(Code::atom(text, ty))
    }

    /// Methods of arrays and of iterators over them.
    fn iterated(
        &mut self,
        name: &str,
        span: Span,
        of: Code,
        arguments: &[&Expr],
        expected: &Ty,
    ) -> Result<Code> {
        let element = of.ty.element();
        let array = |ty: Ty| Ty::Array(Box::new(ty));
        match name {
            "zip" => {
                let other = self.expression(arguments[0], &Ty::Unknown)?;
                let ty = array(Ty::Tuple(vec![element, other.ty.element()]));
                Ok(Code::atom(
                    format!("nf::zip({}, {})", of.text, other.text),
                    ty,
                ))
            }
            "enumerate" => {
                let ty = array(Ty::Tuple(vec![Ty::Index, element]));
                Ok(Code::atom(format!("nf::enumerate({})", of.text), ty))
            }
            "rev" => Ok(Code::atom(format!("nf::rev({})", of.text), of.ty)),
            "map" => {
                let (closure, ty) = self.closure(arguments[0], &[element], &expected.element())?;
                Ok(Code::atom(
                    format!("nf::map({}, {closure})", of.text),
                    array(ty),
                ))
            }
            "fold" => {
                let start = self.value(arguments[0], expected)?;
                let takes = [start.ty.clone(), element];
                let (closure, _) = self.closure(arguments[1], &takes, &start.ty)?;
                let text = format!("nf::fold({}, {}, {closure})", of.text, start.text);
                Ok(Code::atom(text, start.ty))
            }
            _ => {
                let ty = match (expected, &element) {
                    (Ty::F32 | Ty::U32 | Ty::I32, _) => expected.clone(),
                    (_, Ty::F32 | Ty::U32 | Ty::I32) => element,
                    _ => {
                        let message = format!("write the type: `.{name}::<f32>()`");
                        return Err(Error::new(span, message));
                    }
                };
                let start = match (name, &ty) {
                    ("sum", Ty::F32) => "-0.0f",
                    ("sum", Ty::U32) => "nf::u32(0)",
                    ("sum", _) => "nf::i32(0)",
                    (_, Ty::F32) => "1.0f",
                    (_, Ty::U32) => "nf::u32(1)",
                    _ => "nf::i32(1)",
                };
                Ok(Code::atom(format!("nf::{name}({}, {start})", of.text), ty))
            }
        }
    }

    /// A closure of these arguments: its text, and what it gives.
    fn closure(&mut self, argument: &Expr, takes: &[Ty], gives: &Ty) -> Result<(String, Ty)> {
        let Expr::Closure(closure) = argument else {
            let message = "write a closure here: `|x| f(x)`";
            return Err(Error::new(argument.span(), message));
        };
        if closure.inputs.len() != takes.len() {
            let message = format!("the closure takes {} arguments", takes.len());
            return Err(Error::new(closure.span(), message));
        }
        let result = std::mem::replace(&mut self.result, gives.clone());
        let loops = std::mem::take(&mut self.loops);
        self.depth += 1;
        self.scopes.push(Vec::new());
        let made = self.closure_text(closure, takes);
        self.scopes.pop();
        self.depth -= 1;
        self.loops = loops;
        self.result = result;
        made
    }

    fn closure_text(&mut self, closure: &ExprClosure, takes: &[Ty]) -> Result<(String, Ty)> {
        let mut lines = String::new();
        let mut parameters = Vec::new();
        self.indent += 4;
        for (pattern, ty) in closure.inputs.iter().zip(takes) {
            let pattern = match pattern {
                syn::Pat::Reference(reference) => &*reference.pat,
                pattern => pattern,
            };
            let name = ty.short().unwrap_or("auto");
            parameters.push(self.parameter(pattern, name, ty, &mut lines)?);
        }
        let gives = self.result.clone();
        let plain = lines.is_empty() && self.is_plain(&closure.body);
        let (body, ty) = if plain {
            self.indent -= 4;
            let value = self.value(&closure.body, &gives)?;
            self.indent += 4;
            (format!(" return {}; ", value.at(Level::Bits)), value.ty)
        } else {
            match &*closure.body {
                Expr::Block(block) if block.label.is_none() => {
                    let body = self.block(&block.block.stmts, Tail::Return, block.span())?;
                    lines.push_str(&body);
                }
                other => self.returned(other, &mut lines)?,
            }
            (String::new(), gives)
        };
        self.indent -= 4;
        let body = if plain {
            body
        } else {
            format!("\n{lines}{}", self.spaces())
        };
        Ok((format!("[&]({}) {{{body}}}", parameters.join(", ")), ty))
    }
}

fn unknown(name: &str, span: Span) -> Error {
    let remedy = REMEDIES.iter().find(|remedy| remedy.0 == name);
    let message = match remedy {
        Some((_, remedy)) => format!("`{name}` is not in kernels: {remedy}"),
        None => format!(
            "`{name}` is no method that kernels know: call a function with #[pair_fn], or a method of a field of `self` that has it"
        ),
    };
    Error::new(span, message)
}
