//! Patterns: those that take values apart, and those of the arms of a `match`.

use super::{Lowering, scope::plain_name};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Error, Pat, RangeLimits, Result, spanned::Spanned};

/// Whether a pattern may leave values out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    /// A `let`, a parameter or a loop: all values match.
    Bind,
    /// An arm.
    Test,
}

impl Lowering<'_> {
    /// The tree of a pattern that all values match; statements of the twin that show its variables
    /// are appended to `seen`.
    pub(super) fn binding(
        &mut self,
        pattern: &Pat,
        seen: &mut Vec<TokenStream>,
    ) -> Result<TokenStream> {
        self.pattern(pattern, May::Bind, seen)
    }

    /// The tree of an arm's pattern.
    pub(super) fn tested(
        &mut self,
        pattern: &Pat,
        seen: &mut Vec<TokenStream>,
    ) -> Result<TokenStream> {
        self.pattern(pattern, May::Test, seen)
    }

    fn pattern(
        &mut self,
        pattern: &Pat,
        may: May,
        seen: &mut Vec<TokenStream>,
    ) -> Result<TokenStream> {
        let tested = may == May::Test;
        match pattern {
            Pat::Wild(_) => Ok(quote! { Pattern::Any }),
            Pat::Paren(inner) => self.pattern(&inner.pat, may, seen),
            Pat::Type(typed) => self.pattern(&typed.pat, may, seen),
            Pat::Reference(reference) if reference.mutability.is_none() => {
                self.pattern(&reference.pat, may, seen)
            }
            Pat::Ident(ident) if tested && self.is_constant(ident) => {
                let name = &ident.ident;
                let at = self.constant(plain_name(name), name.to_token_stream());
                Ok(quote! { Pattern::Constant(#at) })
            }
            Pat::Ident(ident) => self.bound(ident, may, seen),
            Pat::Tuple(tuple) => {
                let parts = self.all(tuple.elems.iter(), may, seen)?;
                Ok(quote! { Pattern::Tuple(&[#(#parts),*]) })
            }
            Pat::Slice(slice) => {
                let parts = self.all(slice.elems.iter(), may, seen)?;
                Ok(quote! { Pattern::Array(&[#(#parts),*]) })
            }
            Pat::Struct(parts) => {
                let mut fields = Vec::new();
                for field in &parts.fields {
                    let syn::Member::Named(name) = &field.member else {
                        let message = "structs in kernels have named fields";
                        return Err(Error::new(field.span(), message));
                    };
                    let name = plain_name(name);
                    let (cfg, part) =
                        self.under(&field.attrs, |own| own.pattern(&field.pat, may, seen))?;
                    fields.push(quote! { #cfg (#name, #part) });
                }
                Ok(quote! { Pattern::Struct(&[#(#fields),*]) })
            }
            Pat::Rest(rest) => {
                let message = "write a `_` for every part that is not read";
                Err(Error::new(rest.span(), message))
            }
            other if tested => self.of_arm(other, seen),
            other => Err(Error::new(
                other.span(),
                "a pattern here is a name, `_`, a tuple, an array or a struct",
            )),
        }
    }

    /// The tree of a pattern that leaves values out.
    fn of_arm(&mut self, pattern: &Pat, seen: &mut Vec<TokenStream>) -> Result<TokenStream> {
        match pattern {
            Pat::Lit(literal) => self.known(&syn::Expr::Lit(literal.clone())),
            Pat::Path(path) => self.known(&syn::Expr::Path(path.clone())),
            Pat::Range(range) => {
                let mut end = |value: &Option<Box<syn::Expr>>| match value {
                    None => Ok(quote! { &Pattern::Any }),
                    Some(value) => self.known(value).map(|end| quote! { &#end }),
                };
                let (from, to) = (end(&range.start)?, end(&range.end)?);
                let closed = matches!(range.limits, RangeLimits::Closed(_));
                Ok(quote! { Pattern::Range { from: #from, to: #to, closed: #closed } })
            }
            Pat::Or(alternatives) => {
                let before = self.locals.len();
                let parts = self.all(alternatives.cases.iter(), May::Test, seen)?;
                if self.locals.len() > before {
                    let message = "alternatives bind no variables here: match on the value itself";
                    return Err(Error::new(alternatives.span(), message));
                }
                Ok(quote! { Pattern::Or(&[#(#parts),*]) })
            }
            other => Err(Error::new(
                other.span(),
                "arms of a `match` are numbers, ranges, constants, `|` of these, names, `_`, and \
                 tuples and arrays of these",
            )),
        }
    }

    fn all<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p Pat>,
        may: May,
        seen: &mut Vec<TokenStream>,
    ) -> Result<Vec<TokenStream>> {
        parts.map(|part| self.pattern(part, may, seen)).collect()
    }

    /// A variable.
    fn bound(
        &mut self,
        ident: &syn::PatIdent,
        may: May,
        seen: &mut Vec<TokenStream>,
    ) -> Result<TokenStream> {
        if let Some(token) = &ident.by_ref {
            let message = "remove `ref`: values are copied";
            return Err(Error::new(token.span, message));
        }
        let name = &ident.ident;
        if may == May::Test {
            // Were there a constant of this name, the arm would test for it: then this is an error.
            let cfg = self.cfg_attribute();
            let unbound = quote_spanned! { name.span() => #cfg { let #name = (); let _ = #name; } };
            self.checks.push(unbound);
        }
        let ty = self.slot(name.span());
        seen.push(self.seen(ty, &name.to_token_stream(), name.span()));
        let inner = match &ident.subpat {
            None => None,
            Some((_, inner)) if may == May::Test => Some(self.pattern(inner, may, seen)?),
            Some((at, _)) => {
                let message = "a pattern here is a name, `_`, a tuple, an array or a struct";
                return Err(Error::new(
                    ident.ident.span().join(at.span).unwrap_or(name.span()),
                    message,
                ));
            }
        };
        let at = self.declare(name, ty, ident.mutability.is_some());
        Ok(match inner {
            None => quote! { Pattern::Name(#at) },
            Some(inner) => quote! { Pattern::NameOf(#at, &#inner) },
        })
    }

    /// A literal or a constant: an arm, or an end of a range.
    fn known(&mut self, value: &syn::Expr) -> Result<TokenStream> {
        match value {
            syn::Expr::Lit(literal) => {
                let value = self.literal_of_pattern(literal)?;
                Ok(quote! { Pattern::Number(#value) })
            }
            syn::Expr::Path(path) => {
                let name = path
                    .path
                    .segments
                    .last()
                    .map(|last| plain_name(&last.ident));
                let at = self.constant(name.unwrap_or_default(), path.to_token_stream());
                Ok(quote! { Pattern::Constant(#at) })
            }
            other => Err(Error::new(
                other.span(),
                "an end of a range in a pattern is a number or a constant",
            )),
        }
    }

    /// The digits of a number in a pattern, with its sign.
    fn literal_of_pattern(&mut self, literal: &syn::ExprLit) -> Result<String> {
        match &literal.lit {
            syn::Lit::Bool(value) => Ok(value.value.to_string()),
            _ => super::values::digits(&literal.lit),
        }
    }

    /// Whether a name in an arm is a constant, by its capitals: the compiler refuses the twin or
    /// the constant where this is wrong.
    fn is_constant(&self, ident: &syn::PatIdent) -> bool {
        let name = plain_name(&ident.ident);
        ident.subpat.is_none()
            && ident.mutability.is_none()
            && (self.is_item(&ident.ident)
                || !name.starts_with(|c: char| c.is_lowercase() || c == '_'))
    }
}
