//! Values: literals, operators, conversions, arrays, tuples, structs and calls.

use super::{
    names::allowed,
    statements::{assigning, refused_macro},
    translator::{Code, Level, Translator},
    ty::Ty,
};
use proc_macro2::Span;
use quote::quote;
use syn::{BinOp, Error, Expr, ExprBinary, ExprLit, Lit, Result, UnOp, spanned::Spanned};

impl Translator<'_> {
    /// A value. `expected` helps literals and may be unknown.
    pub(super) fn expression(&mut self, expression: &Expr, expected: &Ty) -> Result<Code> {
        match expression {
            Expr::Lit(literal) => self.literal(literal),
            Expr::Path(path) => self.path(path),
            Expr::Field(field) => self.field(expression, field),
            Expr::Index(index) => self.indexed(index),
            Expr::Paren(inner) => self.expression(&inner.expr, expected),
            Expr::Group(inner) => self.expression(&inner.expr, expected),
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.expression(&reference.expr, expected)
            }
            Expr::Unary(unary) => self.unary(&unary.op, &unary.expr, expected),
            Expr::Binary(binary) => self.binary(binary, expected),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Tuple(tuple) => self.tuple(tuple, expected),
            Expr::Array(array) => self.array(array, expected),
            Expr::Repeat(repeat) => self.repeat(repeat, expected),
            Expr::Struct(parts) => self.structure(parts),
            Expr::Call(call) => self.call(call, expected),
            Expr::MethodCall(call) => self.method_call(expression, call, expected),
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) => self.choice(expression, expected),
            Expr::Macro(call) => Err(refused_macro(&call.mac)),
            other => Err(refused(other)),
        }
    }

    fn literal(&self, literal: &ExprLit) -> Result<Code> {
        match &literal.lit {
            Lit::Bool(value) => Ok(Code::atom(value.value.to_string(), Ty::Bool)),
            Lit::Float(value) => match value.suffix() {
                "" | "f32" => float(value.base10_digits(), value.span()),
                other => {
                    let message = format!("`{other}` is not in kernels: use f32");
                    Err(Error::new(value.span(), message))
                }
            },
            Lit::Int(value) => {
                let ty = match value.suffix() {
                    "f32" => return float(value.base10_digits(), value.span()),
                    "u32" => Ty::U32,
                    "i32" => Ty::I32,
                    "usize" => Ty::Index,
                    "" => Ty::Literal,
                    other => {
                        let message = format!("`{other}` is not in kernels: use u32 or i32");
                        return Err(Error::new(value.span(), message));
                    }
                };
                // Patterns have a sign in their literals.
                let number: i64 = value.base10_parse()?;
                let number = match number {
                    -2_147_483_647..=2_147_483_647 => number.to_string(),
                    -2_147_483_648 => "(-2147483647 - 1)".to_owned(),
                    2_147_483_648..=4_294_967_295 => format!("{number}u"),
                    _ => return Err(Error::new(value.span(), "this is beyond u32 and i32")),
                };
                Ok(match ty {
                    Ty::U32 | Ty::I32 => {
                        let name = ty.short().unwrap_or_default();
                        Code::atom(format!("{name}({number})"), ty)
                    }
                    ty => Code::atom(number, ty),
                })
            }
            other => Err(Error::new(
                other.span(),
                "kernels have numbers and `true` and `false` only",
            )),
        }
    }

    fn unary(&mut self, operator: &UnOp, operand: &Expr, expected: &Ty) -> Result<Code> {
        // The least i32 has no literal of its own in C++.
        if let (UnOp::Neg(_), Expr::Lit(literal)) = (operator, operand)
            && let Lit::Int(number) = &literal.lit
            && number.base10_digits() == "2147483648"
        {
            return Ok(Code::atom("nf::i32(-2147483647 - 1)", Ty::I32));
        }
        let value = self.expression(operand, expected)?;
        match operator {
            UnOp::Neg(_) => {
                let (text, ty) = (format!("-{}", value.at(Level::Atom)), value.ty);
                Ok(Code::new(text, ty, Level::Unary))
            }
            UnOp::Not(_) => Ok(match value.ty {
                Ty::Bool => Code::new(
                    format!("!{}", value.at(Level::Atom)),
                    Ty::Bool,
                    Level::Unary,
                ),
                Ty::U32 | Ty::I32 => {
                    let (text, ty) = (format!("~{}", value.at(Level::Atom)), value.ty);
                    Code::new(text, ty, Level::Unary)
                }
                ty => Code::atom(format!("nf::inverted({})", value.text), ty),
            }),
            UnOp::Deref(_) => Ok(value),
            other => Err(Error::new(other.span(), "this operator is not in kernels")),
        }
    }

    fn binary(&mut self, binary: &ExprBinary, expected: &Ty) -> Result<Code> {
        if assigning(&binary.op).is_some() {
            let message = "assign in a statement of its own";
            return Err(Error::new(binary.op.span(), message));
        }
        let comparison = comparison(&binary.op);
        let logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        // A vector may be multiplied by a number from either side.
        let of_operands = if comparison.is_some() || logical || *expected == Ty::Vec3 {
            &Ty::Unknown
        } else {
            expected
        };
        // The number of places is of any integer type.
        let shift = matches!(binary.op, BinOp::Shl(_) | BinOp::Shr(_));
        let of_right = if shift { &Ty::Unknown } else { of_operands };
        let left = self.expression(&binary.left, of_operands)?;
        let right = self.expression(&binary.right, of_right)?;
        if let Some(operator) = comparison {
            let structured = |ty: &Ty| matches!(ty, Ty::Array(_) | Ty::Tuple(_) | Ty::Vec3);
            if structured(&left.ty) || structured(&right.ty) {
                let message = "compare numbers, one by one";
                return Err(Error::new(binary.op.span(), message));
            }
            let text = format!(
                "{} {operator} {}",
                left.at(Level::Sum),
                right.at(Level::Sum)
            );
            return Ok(Code::new(text, Ty::Bool, Level::Comparison));
        }
        let ty = combined(&left.ty, &right.ty);
        let plain = |operator: &str, level: Level, of_right: Level, ty: Ty| {
            let text = format!("{} {operator} {}", left.at(level), right.at(of_right));
            Ok(Code::new(text, ty, level))
        };
        let function = |name: &str, ty: Ty| {
            Ok(Code::atom(
                format!("nf::{name}({}, {})", left.text, right.text),
                ty,
            ))
        };
        match &binary.op {
            BinOp::And(_) => plain("&&", Level::And, Level::Comparison, Ty::Bool),
            BinOp::Or(_) => plain("||", Level::Or, Level::And, Ty::Bool),
            BinOp::Add(_) => plain("+", Level::Sum, Level::Product, ty),
            BinOp::Sub(_) => plain("-", Level::Sum, Level::Product, ty),
            BinOp::Mul(_) => plain("*", Level::Product, Level::Unary, ty),
            BinOp::Div(_) if left.ty == Ty::Index || right.ty == Ty::Index => {
                let message = "indices are not divided here: compute with u32";
                Err(Error::new(binary.op.span(), message))
            }
            BinOp::Div(_) => plain("/", Level::Product, Level::Unary, ty),
            BinOp::Rem(_) => function("rem", ty),
            BinOp::BitAnd(_) => Ok(bitwise("&", "both", &left, &right, ty)),
            BinOp::BitOr(_) => Ok(bitwise("|", "either", &left, &right, ty)),
            BinOp::BitXor(_) => Ok(bitwise("^", "differ", &left, &right, ty)),
            BinOp::Shl(_) | BinOp::Shr(_) => {
                let left = self.typed(left, expected, binary.left.span())?;
                let operator = if matches!(binary.op, BinOp::Shl(_)) {
                    "<<"
                } else {
                    ">>"
                };
                let text = format!(
                    "{} {operator} {}",
                    left.at(Level::Unary),
                    right.at(Level::Unary)
                );
                Ok(Code::new(text, left.ty, Level::Bits))
            }
            other => Err(Error::new(other.span(), "this operator is not in kernels")),
        }
    }

    fn cast(&mut self, cast: &syn::ExprCast) -> Result<Code> {
        let (_, ty) = self.ty(&cast.ty)?;
        let function = match ty {
            Ty::F32 => "to_f32",
            Ty::U32 => "to_u32",
            Ty::I32 => "to_i32",
            Ty::Index => "to_index",
            _ => {
                let message = "`as` converts to f32, u32, i32 and usize";
                return Err(Error::new(cast.ty.span(), message));
            }
        };
        let value = self.expression(&cast.expr, &Ty::Unknown)?;
        Ok(Code::atom(format!("nf::{function}({})", value.text), ty))
    }

    fn tuple(&mut self, tuple: &syn::ExprTuple, expected: &Ty) -> Result<Code> {
        if tuple.elems.len() > 6 {
            let message = "tuples have at most six parts: nest them";
            return Err(Error::new(tuple.span(), message));
        }
        let mut parts = Vec::new();
        for (at, part) in tuple.elems.iter().enumerate() {
            let of = match expected {
                Ty::Tuple(tys) => tys.get(at).cloned().unwrap_or(Ty::Unknown),
                _ => Ty::Unknown,
            };
            parts.push(self.value(part, &of)?);
        }
        let texts: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
        let text = format!("nf::make_tuple({})", texts.join(", "));
        Ok(Code::atom(
            text,
            Ty::Tuple(parts.into_iter().map(|part| part.ty).collect()),
        ))
    }

    fn array(&mut self, array: &syn::ExprArray, expected: &Ty) -> Result<Code> {
        if array.elems.is_empty() {
            let message = "an array has at least one element here: use ()";
            return Err(Error::new(array.span(), message));
        }
        let of = expected.element();
        let elements: Result<Vec<_>> = array
            .elems
            .iter()
            .map(|element| self.expression(element, &of))
            .collect();
        let elements = elements?;
        let found = elements.iter().map(|element| &element.ty);
        let found = found
            .clone()
            .find(|ty| !matches!(ty, Ty::Literal | Ty::Unknown));
        let of = found.cloned().unwrap_or(of);
        let mut texts = Vec::new();
        for (code, element) in elements.into_iter().zip(&array.elems) {
            texts.push(self.typed(code, &of, element.span())?.text);
        }
        let text = format!("nf::make_array({})", texts.join(", "));
        Ok(Code::atom(text, Ty::Array(Box::new(of))))
    }

    fn repeat(&mut self, repeat: &syn::ExprRepeat, expected: &Ty) -> Result<Code> {
        let value = self.value(&repeat.expr, &expected.element())?;
        let length = self.constant_number(&repeat.len)?;
        let text = format!("nf::repeat<{length}>({})", value.text);
        Ok(Code::atom(text, Ty::Array(Box::new(value.ty))))
    }

    /// A number that is known when the text is compiled.
    pub(super) fn constant_number(&mut self, expression: &Expr) -> Result<String> {
        match expression {
            Expr::Lit(_) => Ok(self.expression(expression, &Ty::Index)?.text),
            Expr::Path(path)
                if path.path.get_ident().is_none_or(|ident| {
                    let name = ident.to_string();
                    self.variable(&name).is_none() && !name.starts_with(char::is_lowercase)
                }) =>
            {
                Ok(self.path(path)?.text)
            }
            Expr::Paren(inner) => self.constant_number(&inner.expr),
            Expr::Block(block) if block.block.stmts.len() == 1 => match &block.block.stmts[0] {
                syn::Stmt::Expr(inner, None) => self.constant_number(inner),
                other => Err(Error::new(other.span(), CONSTANT)),
            },
            other => Err(Error::new(other.span(), CONSTANT)),
        }
    }

    fn structure(&mut self, parts: &syn::ExprStruct) -> Result<Code> {
        if let Some(rest) = &parts.rest {
            return Err(Error::new(rest.span(), "name all fields of the struct"));
        }
        let path = &parts.path;
        let name = self.hole(quote! { device.name_of::<#path>() });
        let made = self.temporary();
        let mut text = format!("[&] {{ {name} {made}; ");
        for field in &parts.fields {
            let syn::Member::Named(member) = &field.member else {
                let message = "structs in kernels have named fields";
                return Err(Error::new(field.span(), message));
            };
            let value = self.value(&field.expr, &Ty::Unknown)?;
            let member = allowed(&member.to_string());
            text.push_str(&format!("{made}.{member} = {}; ", value.text));
        }
        text.push_str(&format!("return {made}; }}()"));
        Ok(Code::atom(text, Ty::Unknown))
    }
}

const CONSTANT: &str = "a length or the end of a range is a literal or a constant";

fn float(digits: &str, span: Span) -> Result<Code> {
    let value: f32 = digits.parse().map_err(|_| Error::new(span, "no number"))?;
    if value.is_infinite() {
        return Err(Error::new(span, "this is beyond f32: write f32::INFINITY"));
    }
    // The user's digits; where there are more than f32 needs, the shortest that mean the same.
    let mut text = if digits.len() > 12 {
        format!("{value:?}")
    } else {
        digits.to_owned()
    };
    if !text.contains(['.', 'e', 'E']) {
        text.push_str(".0");
    } else if text.ends_with('.') {
        text.push('0');
    }
    Ok(Code::atom(format!("{text}f"), Ty::F32))
}

/// An operator of bits: C++ has it for integers, and a function serves values of unknown type.
fn bitwise(operator: &str, function: &str, left: &Code, right: &Code, ty: Ty) -> Code {
    let integer = |code: &Code| matches!(code.ty, Ty::U32 | Ty::I32);
    if integer(left) || integer(right) {
        let (left, right) = (left.at(Level::Unary), right.at(Level::Unary));
        Code::new(format!("{left} {operator} {right}"), ty, Level::Bits)
    } else {
        Code::atom(format!("nf::{function}({}, {})", left.text, right.text), ty)
    }
}

fn comparison(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Eq(_) => "==",
        BinOp::Ne(_) => "!=",
        BinOp::Lt(_) => "<",
        BinOp::Le(_) => "<=",
        BinOp::Gt(_) => ">",
        BinOp::Ge(_) => ">=",
        _ => return None,
    })
}

/// The type of the sum or product of two values.
fn combined(left: &Ty, right: &Ty) -> Ty {
    match (left, right) {
        (a, b) if a == b => a.clone(),
        (Ty::Vec3, _) | (_, Ty::Vec3) => Ty::Vec3,
        (Ty::Literal, other) | (other, Ty::Literal) => other.clone(),
        (Ty::U32 | Ty::I32, Ty::Index) => left.clone(),
        (Ty::Index, Ty::U32 | Ty::I32) => right.clone(),
        (Ty::U32 | Ty::I32, Ty::Unknown) => left.clone(),
        (Ty::Unknown, Ty::U32 | Ty::I32) => right.clone(),
        _ => Ty::Unknown,
    }
}

fn refused(expression: &Expr) -> Error {
    let (span, message) = match expression {
        Expr::Closure(closure) => (
            closure.span(),
            "closures are arguments of `map` and `fold` only: make it a function with #[pair_fn]",
        ),
        Expr::Range(range) => (range.span(), "ranges belong into `for` and `match` only"),
        Expr::Reference(reference) => (
            reference.span(),
            "a kernel takes no `&mut`: return the new value",
        ),
        Expr::Unsafe(block) => (
            block.unsafe_token.span,
            "a kernel is safe code: remove `unsafe`",
        ),
        Expr::Try(question) => (
            question.question_token.span,
            "a kernel has no errors: return a value such as 0.0 or f32::NAN",
        ),
        Expr::Await(token) => (token.span(), "a kernel cannot wait: remove `.await`"),
        Expr::Let(token) => (
            token.let_token.span,
            "a kernel has no `if let`: use `if` or `match` on numbers",
        ),
        Expr::Assign(assignment) => (assignment.span(), "assign in a statement of its own"),
        Expr::While(token) => (
            token.while_token.span,
            "loops have constant ranges: `for k in 0..8`",
        ),
        Expr::Loop(token) => (
            token.loop_token.span,
            "loops have constant ranges: `for k in 0..8`",
        ),
        Expr::ForLoop(token) => (token.for_token.span, "a loop has no value: use a variable"),
        Expr::Return(token) => (
            token.return_token.span,
            "`return` leaves the function from within a value: make it a statement",
        ),
        other => (other.span(), "this is not in kernels"),
    };
    Error::new(span, message)
}
