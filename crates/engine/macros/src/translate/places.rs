//! Variables, fields and elements: what is read by a name, and what is assigned to.

use super::{
    names::allowed,
    translator::{Code, Level, Translator, Use, UseKind},
    ty::Ty,
};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Expr, ExprField, ExprIndex, ExprPath, Member, Result, spanned::Spanned};

impl Translator<'_> {
    /// A place that is assigned to.
    pub(super) fn place(&mut self, expression: &Expr) -> Result<Code> {
        match expression {
            Expr::Path(path) => {
                let name = path.path.get_ident().map(ToString::to_string);
                let found = name.and_then(|name| self.variable(&name)).cloned();
                let Some(found) = found else {
                    return Err(Error::new(path.span(), "only variables are assigned to"));
                };
                if found.depth < self.depth {
                    let message = "a value changes no variable outside of it: assign in a statement of its own";
                    return Err(Error::new(path.span(), message));
                }
                Ok(Code::atom(found.name, found.ty))
            }
            Expr::Field(field) => {
                if self_path(expression).is_some() {
                    let message =
                        "fields of the kernel are the same for all pairs: copy it into `let mut`";
                    return Err(Error::new(field.span(), message));
                }
                let base = self.place(&field.base)?;
                Ok(member(&base, &field.member))
            }
            Expr::Index(index) => {
                let base = self.place(&index.expr)?;
                if base.ty == Ty::Vec3 {
                    let message = "assign to `.x`, `.y` or `.z`, or to the whole vector";
                    return Err(Error::new(index.span(), message));
                }
                let at = self.index_of(&index.index)?;
                Ok(Code::atom(
                    format!("{}[{at}]", base.text),
                    base.ty.element(),
                ))
            }
            Expr::Paren(inner) => self.place(&inner.expr),
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                let message =
                    "elements are not changed through references: use an index, `a[k] = …`";
                Err(Error::new(unary.span(), message))
            }
            Expr::Tuple(tuple) => Err(Error::new(tuple.span(), "assign to one variable at a time")),
            other => Err(Error::new(other.span(), "only variables are assigned to")),
        }
    }

    pub(super) fn path(&mut self, path: &ExprPath) -> Result<Code> {
        if let Some(ident) = path.path.get_ident() {
            if let Some(found) = self.variable(&ident.to_string()) {
                return Ok(Code::atom(found.name.clone(), found.ty.clone()));
            }
            if ident == "self" {
                let message = "read fields of `self`, or call its methods: the kernel itself is no value on a GPU";
                return Err(Error::new(path.span(), message));
            }
            if ident.to_string().starts_with(|c: char| c.is_lowercase()) {
                let message = "this is no variable of the function: functions are called, constants are in capitals";
                return Err(Error::new(path.span(), message));
            }
        }
        Ok(self.constant(path.to_token_stream()))
    }

    /// A constant, declared at the beginning of the function.
    fn constant(&mut self, path: TokenStream) -> Code {
        let written = path.to_string().replace(' ', "");
        let ty = if written.contains("consts::") || written.starts_with("f32::") {
            Ty::F32
        } else if written.starts_with("u32::") {
            Ty::U32
        } else if written.starts_with("i32::") {
            Ty::I32
        } else if written.starts_with("Vec3::") {
            Ty::Vec3
        } else {
            Ty::Unknown
        };
        if let Some(known) = self.constants.iter().find(|known| known.0 == written) {
            return Code::atom(known.1.clone(), ty);
        }
        let mut parts = written.rsplit("::");
        let last = parts.next().unwrap_or_default();
        let of = parts.next().unwrap_or_default();
        let wanted = match of {
            "f32" | "u32" | "i32" | "Vec3" | "usize" => format!("{of}_{last}"),
            _ => last.to_owned(),
        };
        // Names in capitals may be macros; those behind a letter hardly are.
        let name = self.free(&allowed(&wanted));
        self.constants.push((written, name.clone(), path));
        Code::atom(name, ty)
    }

    pub(super) fn field(&mut self, expression: &Expr, field: &ExprField) -> Result<Code> {
        if let Some(path) = self_path(expression) {
            return self.of_self(
                &path,
                expression.to_token_stream(),
                UseKind::Field,
                expression,
            );
        }
        let base = self.expression(&field.base, &Ty::Unknown)?;
        let base = Code::atom(base.at(Level::Atom), base.ty);
        if base.ty == Ty::Pair {
            return Ok(match field.member.to_token_stream().to_string().as_str() {
                "d" => Code::atom(format!("{}.d", base.text), Ty::Array(Box::new(Ty::F32))),
                "d2" => Code::atom(format!("{}.d2", base.text), Ty::F32),
                _ => {
                    let message = "a pair has `d`, the displacement, and `d2`, its square";
                    return Err(Error::new(field.member.span(), message));
                }
            });
        }
        Ok(member(&base, &field.member))
    }

    /// A field of `self`, or a method of it that is evaluated on the CPU.
    pub(super) fn of_self(
        &mut self,
        path: &str,
        value: TokenStream,
        kind: UseKind,
        at: &Expr,
    ) -> Result<Code> {
        if !self.has_self {
            return Err(Error::new(at.span(), "the function takes no `self`"));
        }
        let code = |name: &str| Code::atom(name, Ty::Unknown);
        let written = value.to_string();
        let same = |used: &&Use| used.kind == kind && used.value.to_string() == written;
        if let Some(known) = self.uses.iter().find(same) {
            return Ok(code(&known.name));
        }
        let name = self.free(&allowed(&format!("self_{path}")));
        self.uses.push(Use {
            name: name.clone(),
            value,
            kind,
        });
        Ok(code(&name))
    }

    pub(super) fn indexed(&mut self, index: &ExprIndex) -> Result<Code> {
        let base = match self_path(&index.expr) {
            Some(path) => {
                let value = index.expr.to_token_stream();
                self.of_self(&path, value, UseKind::Table, &index.expr)?
            }
            None => self.expression(&index.expr, &Ty::Unknown)?,
        };
        if let Expr::Range(range) = &*index.index {
            let message = "a part of an array is no value here: index its elements";
            return Err(Error::new(range.span(), message));
        }
        let at = self.index_of(&index.index)?;
        let ty = base.ty.element();
        Ok(Code::atom(format!("{}[{at}]", base.at(Level::Atom)), ty))
    }

    fn index_of(&mut self, index: &Expr) -> Result<String> {
        Ok(self.value(index, &Ty::Index)?.text)
    }
}

/// A field of a value.
fn member(base: &Code, field: &Member) -> Code {
    match field {
        Member::Named(name) => {
            let ty = match (&base.ty, name.to_string().as_str()) {
                (Ty::Vec3, "x" | "y" | "z") => Ty::F32,
                (Ty::Pair, "d") => Ty::Array(Box::new(Ty::F32)),
                (Ty::Pair, "d2") => Ty::F32,
                _ => Ty::Unknown,
            };
            Code::atom(format!("{}.{}", base.text, allowed(&name.to_string())), ty)
        }
        Member::Unnamed(at) => {
            let ty = match &base.ty {
                Ty::Tuple(parts) => parts.get(at.index as usize).cloned(),
                _ => None,
            };
            let ty = ty.unwrap_or(Ty::Unknown);
            Code::atom(format!("{}._{}", base.text, at.index), ty)
        }
    }
}

/// For `self.a.0.b` the name `a_0_b`; None for what does not lead to `self`.
pub(super) fn self_path(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Field(field) => {
            let part = match &field.member {
                Member::Named(name) => name.to_string(),
                Member::Unnamed(at) => at.index.to_string(),
            };
            match &*field.base {
                Expr::Path(path) if path.path.is_ident("self") => Some(part),
                base => Some(format!("{}_{part}", self_path(base)?)),
            }
        }
        Expr::Paren(inner) => self_path(&inner.expr),
        Expr::Reference(reference) => self_path(&reference.expr),
        _ => None,
    }
}

/// Whether an expression is `self`.
pub(super) fn is_self(expression: &Expr) -> bool {
    match expression {
        Expr::Path(path) => path.path.is_ident("self"),
        Expr::Paren(inner) => is_self(&inner.expr),
        _ => false,
    }
}

/// The tokens of a value without its references.
pub(super) fn plain(expression: &Expr) -> TokenStream {
    quote! { #expression }
}
