//! Variables, fields and elements: what is read by a name, and what is assigned to.

use super::{Lowering, Part, UseKind, scope::plain_name};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Expr, ExprPath, Member, Result, spanned::Spanned};

impl Lowering<'_> {
    /// A place to read: a variable, a constant, `self`'s field, or a part of a value.
    /// Its twin goes through no slot.
    pub(super) fn place(&mut self, expression: &Expr) -> Result<Part> {
        let expression = strip(expression);
        if let Some(path) = self_path(expression) {
            let value = expression.to_token_stream();
            return self.of_self(&path, value, UseKind::Field, expression);
        }
        match expression {
            Expr::Path(path) => self.path(path),
            Expr::Field(field) => {
                let Part { twin, tree, .. } = self.receiver(&field.base)?;
                let member = &field.member;
                let kind = match member {
                    Member::Named(name) => {
                        let name = plain_name(name);
                        quote! { Kind::Field(&#tree, #name) }
                    }
                    Member::Unnamed(at) => {
                        let at = at.index;
                        quote! { Kind::Part(&#tree, #at) }
                    }
                };
                Ok(unslotted(quote! { #twin.#member }, kind))
            }
            Expr::Index(index) => self.indexed(index),
            other => self.value(other),
        }
    }

    /// The same for anything that a member is asked of: places as they are, other values through a
    /// slot.
    pub(super) fn receiver(&mut self, expression: &Expr) -> Result<Part> {
        match strip(expression) {
            place @ (Expr::Path(_) | Expr::Field(_) | Expr::Index(_)) => self.place(place),
            other => self.value(other),
        }
    }

    /// The same for a method, which is checked by the type of what it is asked of.
    pub(super) fn asked(&mut self, expression: &Expr) -> Result<Part> {
        let part = self.receiver(expression)?;
        if part.slot.is_some() {
            return Ok(part);
        }
        let slot = self.slot_of(expression.span(), false);
        let twin = self.shown(slot, part.twin, expression.span());
        Ok(Part {
            twin,
            tree: part.tree,
            slot: Some(slot),
        })
    }

    fn path(&mut self, path: &ExprPath) -> Result<Part> {
        let twin = path.to_token_stream();
        if let Some(ident) = path.path.get_ident() {
            if let Some(at) = self.variable(ident) {
                self.conditional(ident, at);
                return Ok(unslotted(twin, quote! { Kind::Local(#at) }));
            }
            if ident == "self" {
                let message = "read fields of `self`, or call its methods: the kernel itself is \
                               not a value on a GPU";
                return Err(Error::new(path.span(), message));
            }
        }
        let segments = &path.path.segments;
        let last = segments
            .last()
            .map(|last| plain_name(&last.ident))
            .unwrap_or_default();
        let of = segments.iter().rev().nth(1).map(|s| s.ident.to_string());
        let name = match of.as_deref() {
            Some(of @ ("f32" | "u32" | "i32" | "u64" | "i64" | "usize" | "Vec2" | "Vec3")) => {
                format!("{of}_{last}")
            }
            _ => last,
        };
        let at = self.constant(name, twin.clone());
        Ok(unslotted(twin, quote! { Kind::Constant(#at) }))
    }

    /// Refuses a variable that is declared under conditions where they do not hold and no other
    /// variable has its name.
    fn conditional(&mut self, ident: &syn::Ident, mut at: u16) {
        let mut missing = Vec::new();
        loop {
            let local = &self.locals[usize::from(at)];
            if local.cfg.is_empty() {
                return;
            }
            missing.push(local.cfg.clone());
            match local.shadows {
                Some(next) => at = next,
                None => break,
            }
        }
        let cfg = self.cfg_attribute();
        let message = "this is no variable under the conditions of this build: declare one";
        self.checks.push(quote::quote_spanned! { ident.span() =>
            #cfg
            #[cfg(not(any(#(#missing),*)))]
            ::core::compile_error!(#message);
        });
    }

    fn indexed(&mut self, index: &syn::ExprIndex) -> Result<Part> {
        if let Expr::Range(range) = strip(&index.index) {
            let message = "a part of an array is no value here: index its elements";
            return Err(Error::new(range.span(), message));
        }
        let base = match self_path(&index.expr) {
            Some(path) => {
                let value = index.expr.to_token_stream();
                self.of_self(&path, value, UseKind::Table, &index.expr)?
            }
            None => self.receiver(&index.expr)?,
        };
        let at = self.value(&index.index)?;
        let span = index.expr.span();
        let slot = self.slot_of(span, false);
        self.check(slot, span, quote! { indexed });
        let (of, to) = (self.shown(slot, base.twin, span), at.twin);
        let (tree, at) = (base.tree, at.tree);
        Ok(unslotted(
            quote! { #of[#to] },
            quote! { Kind::Index(&#tree, &#at) },
        ))
    }

    /// A place that is assigned to.
    pub(super) fn assigned(&mut self, expression: &Expr) -> Result<Part> {
        let refused = |span, message| Err(Error::new(span, message));
        match expression {
            Expr::Paren(inner) => self.assigned(&inner.expr),
            Expr::Path(path) => {
                let found = path.path.get_ident().and_then(|ident| self.variable(ident));
                let Some(at) = found else {
                    return refused(path.span(), "only variables are assigned to");
                };
                if self.locals[usize::from(at)].closures < self.closures {
                    let message = "a closure changes no variable outside of it: use a loop";
                    return refused(path.span(), message);
                }
                self.path(path)
            }
            Expr::Field(field) => {
                if self_path(expression).is_some() {
                    let message =
                        "fields of the kernel are the same for all pairs: copy it into `let mut`";
                    return refused(field.span(), message);
                }
                self.assigned(&field.base)?;
                self.place(expression)
            }
            Expr::Index(index) => {
                if self_path(&index.expr).is_some() {
                    return self.assigned(&index.expr);
                }
                let base = self.assigned(&index.expr)?;
                let at = self.value(&index.index)?;
                let (of, tree, to, at) = (base.twin, base.tree, at.twin, at.tree);
                let (slot, span) = (self.slot_of(index.span(), false), index.expr.span());
                let seen = self.seen(slot, &of, span);
                self.before.push(seen);
                self.check(slot, span, quote! { assigned_by_index });
                Ok(unslotted(
                    quote! { #of[#to] },
                    quote! { Kind::Index(&#tree, &#at) },
                ))
            }
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => refused(
                unary.span(),
                "elements are not changed through references: use an index, `a[k] = …`",
            ),
            Expr::Tuple(tuple) => refused(tuple.span(), "assign to one variable at a time"),
            other => refused(other.span(), "only variables are assigned to"),
        }
    }

    /// A field of `self`, or a method of it that is evaluated on the CPU.
    pub(super) fn of_self(
        &mut self,
        path: &str,
        value: TokenStream,
        kind: UseKind,
        at: &Expr,
    ) -> Result<Part> {
        if !self.has_self {
            return Err(Error::new(at.span(), "the function takes no `self`"));
        }
        let twin = value.clone();
        let at = self.used(format!("self_{path}"), value, kind);
        Ok(unslotted(twin, quote! { Kind::Uniform(#at) }))
    }
}

/// A part without a slot, whose type the text knows.
fn unslotted(twin: TokenStream, kind: TokenStream) -> Part {
    let tree = quote! { Expr { ty: NONE, kind: #kind } };
    let slot = None;
    Part { twin, tree, slot }
}

/// An expression without brackets around it.
pub(super) fn strip(mut expression: &Expr) -> &Expr {
    loop {
        expression = match expression {
            Expr::Paren(inner) => &inner.expr,
            Expr::Group(inner) => &inner.expr,
            other => return other,
        };
    }
}

/// For `self.a.0.b` the name `a_0_b`; None for what does not lead to `self`.
pub(super) fn self_path(expression: &Expr) -> Option<String> {
    match strip(expression) {
        Expr::Field(field) => {
            let part = match &field.member {
                Member::Named(name) => plain_name(name),
                Member::Unnamed(at) => at.index.to_string(),
            };
            match strip(&field.base) {
                Expr::Path(path) if path.path.is_ident("self") => Some(part),
                base => Some(format!("{}_{part}", self_path(base)?)),
            }
        }
        Expr::Reference(reference) => self_path(&reference.expr),
        _ => None,
    }
}

/// Whether an expression is `self`.
pub(super) fn is_self(expression: &Expr) -> bool {
    matches!(strip(expression), Expr::Path(path) if path.path.is_ident("self"))
}
