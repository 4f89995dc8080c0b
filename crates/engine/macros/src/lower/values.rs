//! Values: literals, operators, conversions, arrays, tuples and structs.

use super::{Lowering, Part, places::strip, refused, scope::plain_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{BinOp, Error, Expr, Lit, Result, UnOp, spanned::Spanned};

impl Lowering<'_> {
    /// A value: its twin goes through a slot.
    pub(super) fn value(&mut self, expression: &Expr) -> Result<Part> {
        let expression = strip(expression);
        let span = expression.span();
        match expression {
            Expr::Lit(literal) => {
                let kind = match &literal.lit {
                    Lit::Bool(value) => quote! { Kind::Bool(#value) },
                    other => {
                        let digits = digits(other)?;
                        quote! { Kind::Number(#digits) }
                    }
                };
                Ok(self.slotted(span, literal.to_token_stream(), kind))
            }
            // References are transparent: a text has values only.
            Expr::Reference(reference) => match &reference.mutability {
                Some(token) => Err(Error::new(
                    reference.and_token.span.join(token.span).unwrap_or(span),
                    "a kernel changes no arguments: return the new value",
                )),
                None => {
                    let Part { twin, tree, slot } = self.receiver(&reference.expr)?;
                    let twin = quote! { &#twin };
                    Ok(Part { twin, tree, slot })
                }
            },
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Cast(cast) => {
                refused::ty(&cast.ty)?;
                let Part { twin, tree, .. } = self.value(&cast.expr)?;
                let (ty, kind) = (&cast.ty, quote! { Kind::Cast(&#tree) });
                Ok(self.slotted(cast.ty.span(), quote! { (#twin) as #ty }, kind))
            }
            Expr::Tuple(tuple) => {
                if tuple.elems.len() > 6 {
                    let message = "tuples have at most six parts: nest them";
                    return Err(Error::new(span, message));
                }
                let (twins, trees) = self.values(&tuple.elems)?;
                let kind = quote! { Kind::Tuple(&[#(#trees),*]) };
                Ok(self.slotted(span, quote! { (#(#twins,)*) }, kind))
            }
            Expr::Array(array) => {
                if array.elems.is_empty() {
                    let message = "an array has at least one element here: use ()";
                    return Err(Error::new(span, message));
                }
                let (twins, trees) = self.values(&array.elems)?;
                let kind = quote! { Kind::Array(&[#(#trees),*]) };
                Ok(self.slotted(span, quote! { [#(#twins),*] }, kind))
            }
            Expr::Repeat(repeat) => {
                let Part { twin, tree, .. } = self.value(&repeat.expr)?;
                let (length, kind) = (&repeat.len, quote! { Kind::Repeat(&#tree) });
                Ok(self.slotted(span, quote! { [#twin; #length] }, kind))
            }
            Expr::Struct(parts) => self.structure(parts),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) => self.choice(expression),
            Expr::Macro(call) if call.mac.path.is_ident("cfg") => {
                let at = self.constant("configured".to_owned(), call.to_token_stream());
                Ok(self.slotted(span, call.to_token_stream(), quote! { Kind::Constant(#at) }))
            }
            Expr::Macro(call) => Err(refused::called_macro(&call.mac)),
            Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => {
                let Part { twin, tree, .. } = self.place(expression)?;
                Ok(self.read(span, twin, tree))
            }
            other => Err(refused::expression(other)),
        }
    }

    /// Values one after the other.
    pub(super) fn values<'e>(
        &mut self,
        all: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<(Vec<TokenStream>, Vec<TokenStream>)> {
        let mut parts = (Vec::new(), Vec::new());
        for one in all {
            let Part { twin, tree, .. } = self.value(one)?;
            parts.0.push(twin);
            parts.1.push(tree);
        }
        Ok(parts)
    }

    /// An expression of this kind, whose value goes through a new slot.
    pub(super) fn slotted(&mut self, span: Span, twin: TokenStream, kind: TokenStream) -> Part {
        let ty = self.slot(span);
        Part {
            twin: self.probed(ty, twin, span),
            tree: quote! { Expr { ty: #ty, kind: #kind } },
            slot: Some(ty),
        }
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> Result<Part> {
        let span = unary.span();
        let operand = strip(&unary.expr);
        let (function, twin_of): (_, fn(TokenStream) -> TokenStream) = match &unary.op {
            UnOp::Deref(_) => {
                let Part { twin, tree, .. } = self.receiver(operand)?;
                return Ok(self.read(span, quote! { *(#twin) }, tree));
            }
            // The least number has no literal without its sign.
            UnOp::Neg(_) if let Expr::Lit(literal) = operand => {
                let digits = format!("-{}", digits(&literal.lit)?);
                let kind = quote! { Kind::Number(#digits) };
                return Ok(self.slotted(span, quote! { -#literal }, kind));
            }
            UnOp::Neg(_) => ("Negative", |of| quote! { -(#of) }),
            UnOp::Not(_) => ("Not", |of| quote! { !(#of) }),
            other => {
                return Err(Error::new(other.span(), "this operator is not in kernels"));
            }
        };
        let part = self.value(operand)?;
        self.operand(&part, span);
        let (function, tree) = (format_ident!("{function}"), part.tree);
        Ok(self.slotted(span, twin_of(part.twin), quote! { Kind::#function(&#tree) }))
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> Result<Part> {
        if assigning(&binary.op).is_some() {
            let message = "assign in a statement of its own";
            return Err(Error::new(binary.op.span(), message));
        }
        let Some(operator) = operator(&binary.op) else {
            let message = "this operator is not in kernels";
            return Err(Error::new(binary.op.span(), message));
        };
        let (left, right) = (self.value(&binary.left)?, self.value(&binary.right)?);
        self.operand(&left, binary.left.span());
        self.operand(&right, binary.right.span());
        let (l, r, token) = (left.twin, right.twin, &binary.op);
        let (of, on) = (left.tree, right.tree);
        let operator = format_ident!("{operator}");
        let kind = quote! { Kind::Binary(Operator::#operator, &#of, &#on) };
        Ok(self.slotted(binary.span(), quote! { (#l) #token (#r) }, kind))
    }

    /// A place that is read: the compiler sees its type, and the text knows it already.
    fn read(&mut self, span: Span, twin: TokenStream, tree: TokenStream) -> Part {
        let slot = self.slot(span);
        let twin = self.probed(slot, twin, span);
        let slot = Some(slot);
        Part { twin, tree, slot }
    }

    /// Checks that operators of a value are those of the text: structs may have others.
    pub(super) fn operand(&mut self, part: &Part, span: Span) {
        if let Some(slot) = part.slot {
            self.check(slot, span, quote! { operand });
        }
    }

    fn structure(&mut self, parts: &syn::ExprStruct) -> Result<Part> {
        if let Some(rest) = &parts.rest {
            return Err(Error::new(rest.span(), "name all fields of the struct"));
        }
        let (mut twins, mut trees) = (Vec::new(), Vec::new());
        for field in &parts.fields {
            let syn::Member::Named(member) = &field.member else {
                let message = "structs in kernels have named fields";
                return Err(Error::new(field.span(), message));
            };
            let name = plain_name(member);
            let (cfg, Part { twin, tree, .. }) =
                self.under(&field.attrs, |own| own.value(&field.expr))?;
            twins.push(quote! { #cfg #member: #twin });
            trees.push(quote! { #cfg (#name, #tree) });
        }
        let path = &parts.path;
        let kind = quote! { Kind::Struct(&[#(#trees),*]) };
        Ok(self.slotted(parts.span(), quote! { #path { #(#twins),* } }, kind))
    }
}

/// The digits of a number, as a decimal.
pub(super) fn digits(literal: &Lit) -> Result<String> {
    let refused = |suffix: &str, span, remedy: &str| {
        let message = format!("`{suffix}` is not in kernels: {remedy}");
        Err(Error::new(span, message))
    };
    match literal {
        Lit::Float(value) => match value.suffix() {
            "" | "f32" => Ok(value.base10_digits().to_owned()),
            other => refused(other, value.span(), "use f32"),
        },
        Lit::Int(value) => match value.suffix() {
            "" | "f32" | "u32" | "i32" | "u64" | "i64" | "usize" | "isize" => {
                Ok(value.base10_digits().to_owned())
            }
            "f64" => refused("f64", value.span(), "use f32"),
            other => refused(other, value.span(), "use u32 or i32"),
        },
        other => Err(Error::new(
            other.span(),
            "kernels have numbers and `true` and `false` only",
        )),
    }
}

/// The name of an operator in a tree.
fn operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Add(_) => "Add",
        BinOp::Sub(_) => "Sub",
        BinOp::Mul(_) => "Mul",
        BinOp::Div(_) => "Div",
        BinOp::Rem(_) => "Rem",
        BinOp::And(_) => "And",
        BinOp::Or(_) => "Or",
        BinOp::BitAnd(_) => "BitAnd",
        BinOp::BitOr(_) => "BitOr",
        BinOp::BitXor(_) => "BitXor",
        BinOp::Shl(_) => "Shl",
        BinOp::Shr(_) => "Shr",
        BinOp::Eq(_) => "Equal",
        BinOp::Ne(_) => "Unequal",
        BinOp::Lt(_) => "Less",
        BinOp::Le(_) => "AtMost",
        BinOp::Gt(_) => "Greater",
        BinOp::Ge(_) => "AtLeast",
        _ => return None,
    })
}

/// The operator of an assignment that computes.
pub(super) fn assigning(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::AddAssign(_) => "Add",
        BinOp::SubAssign(_) => "Sub",
        BinOp::MulAssign(_) => "Mul",
        BinOp::DivAssign(_) => "Div",
        BinOp::RemAssign(_) => "Rem",
        BinOp::BitAndAssign(_) => "BitAnd",
        BinOp::BitOrAssign(_) => "BitOr",
        BinOp::BitXorAssign(_) => "BitXor",
        BinOp::ShlAssign(_) => "Shl",
        BinOp::ShrAssign(_) => "Shr",
        _ => return None,
    })
}
