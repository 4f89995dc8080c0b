//! Loops over ranges and over arrays.

use super::{Lowering, Part, control::part, places::strip};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{BinOp, Error, Expr, ExprForLoop, ExprRange, Pat, RangeLimits, Result, spanned::Spanned};

const CONSTANT: &str = "a length or the end of a range is a literal or a constant";

impl Lowering<'_> {
    pub(super) fn for_loop(&mut self, repeated: &ExprForLoop) -> Result<Part> {
        if let Some(label) = &repeated.label {
            let message = "loops have no labels here: use a variable";
            return Err(Error::new(label.span(), message));
        }
        let (over, reversed) = match strip(&repeated.expr) {
            Expr::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
                match strip(&call.receiver) {
                    Expr::Range(range) => (Some(range), true),
                    _ => (None, false),
                }
            }
            Expr::Range(range) => (Some(range), false),
            _ => (None, false),
        };
        self.scoped(|own| {
            let (twin, tree) = match over {
                Some(range) => own.ends(range, reversed)?,
                None => {
                    let Part { twin, tree, .. } = own.sequence(&repeated.expr)?;
                    (twin, quote! { Over::Values(&#tree) })
                }
            };
            let mut seen = Vec::new();
            let before = own.locals.len();
            let pattern = own.binding(&repeated.pat, &mut seen)?;
            if over.is_some() {
                own.counts(&repeated.pat, before)?;
            }
            own.loops += 1;
            let body = own.block(&repeated.body);
            own.loops -= 1;
            let (body, shape) = (body?, &repeated.pat);
            let (inner, block) = (body.twin, body.tree);
            Ok(part(
                quote! { for #shape in #twin { #(#seen)* #inner } },
                quote! {
                    Expr { ty: NONE, kind: Kind::For(&#pattern, #tree, #block) }
                },
            ))
        })
    }

    /// The variable of a range is a number that other ranges may end with.
    fn counts(&mut self, pattern: &Pat, at: usize) -> Result<()> {
        match pattern {
            Pat::Wild(_) => Ok(()),
            Pat::Ident(ident) if ident.subpat.is_none() => {
                self.locals[at].counted = ident.mutability.is_none();
                Ok(())
            }
            other => Err(Error::new(
                other.span(),
                "the variable of a range is a name or `_`",
            )),
        }
    }

    /// Both ends of a range.
    fn ends(&mut self, range: &ExprRange, reversed: bool) -> Result<(TokenStream, TokenStream)> {
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            let message = "a loop has a first and a last number: `0..8`";
            return Err(Error::new(range.span(), message));
        };
        self.bounded(start)?;
        self.bounded(end)?;
        let (from, to) = (self.value(start)?, self.value(end)?);
        let closed = matches!(range.limits, RangeLimits::Closed(_));
        let limits = &range.limits;
        let (a, b) = (from.twin, to.twin);
        let twin = match reversed {
            true => quote! { ((#a) #limits (#b)).rev() },
            false => quote! { (#a) #limits (#b) },
        };
        let (from, to) = (from.tree, to.tree);
        let tree = quote! {
            Over::Range { from: &#from, to: &#to, closed: #closed, reversed: #reversed }
        };
        Ok((twin, tree))
    }

    /// An end of a range is made of literals, constants and variables of other ranges, so that a
    /// loop ends soon.
    fn bounded(&self, expression: &Expr) -> Result<()> {
        match strip(expression) {
            Expr::Lit(_) => Ok(()),
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
                self.bounded(&unary.expr)
            }
            Expr::Cast(cast) => self.bounded(&cast.expr),
            Expr::Path(path) => {
                let local = path.path.get_ident().and_then(|ident| self.variable(ident));
                match local {
                    Some(at) if !self.locals[usize::from(at)].counted => {
                        Err(Error::new(path.span(), CONSTANT))
                    }
                    _ => Ok(()),
                }
            }
            Expr::Binary(binary)
                if matches!(
                    binary.op,
                    BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_)
                ) =>
            {
                self.bounded(&binary.left)?;
                self.bounded(&binary.right)
            }
            other => Err(Error::new(other.span(), CONSTANT)),
        }
    }
}
