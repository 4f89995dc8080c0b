//! `if`, `match` and blocks.

use super::{Lowering, Part, places::strip};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprIf, ExprMatch, Result, spanned::Spanned};

impl Lowering<'_> {
    /// A choice or a block as a value.
    pub(super) fn choice(&mut self, expression: &Expr) -> Result<Part> {
        let before = std::mem::take(&mut self.before);
        let part = self.branching(expression);
        self.before = before;
        let Part { twin, tree, .. } = part?;
        if leaves(expression) {
            let message = "all ways leave here: write this as a statement";
            return Err(Error::new(expression.span(), message));
        }
        let ty = self.slot(expression.span());
        Ok(Part {
            twin: self.probed(ty, twin, expression.span()),
            tree: quote! { Expr { ty: #ty, kind: #tree } },
            slot: Some(ty),
        })
    }

    /// The same without a slot, as a statement or at the end of a block; the tree is a kind.
    pub(super) fn branching(&mut self, expression: &Expr) -> Result<Part> {
        match expression {
            Expr::If(choice) => self.if_else(choice),
            Expr::Match(choice) => self.matched(choice),
            Expr::Block(block) if block.label.is_none() => {
                let Part { twin, tree, .. } = self.block(&block.block)?;
                let tree = quote! { Kind::Block(#tree) };
                Ok(part(twin, tree))
            }
            other => Err(Error::new(other.span(), "blocks have no labels here")),
        }
    }

    fn if_else(&mut self, choice: &ExprIf) -> Result<Part> {
        if let Expr::Let(binding) = strip(&choice.cond) {
            let message = "kernels have no `if let`: use `match` or a comparison";
            return Err(Error::new(binding.let_token.span, message));
        }
        let test = self.value(&choice.cond)?;
        let then = self.block(&choice.then_branch)?;
        let otherwise = match &choice.else_branch {
            None => None,
            Some((_, other)) => Some(self.end(other)?),
        };
        let (on, taken, test, tree) = (test.twin, then.twin, test.tree, then.tree);
        let (else_twin, else_tree) = match otherwise {
            None => (TokenStream::new(), quote! { ::core::option::Option::None }),
            Some(Part { twin, tree, .. }) => (
                quote! { else { #twin } },
                quote! { ::core::option::Option::Some(&#tree) },
            ),
        };
        Ok(part(
            quote! { if #on #taken #else_twin },
            quote! { Kind::If(&#test, #tree, #else_tree) },
        ))
    }

    fn matched(&mut self, choice: &ExprMatch) -> Result<Part> {
        let of = self.value(&choice.expr)?;
        let (mut twins, mut trees) = (Vec::new(), Vec::new());
        for arm in &choice.arms {
            let (cfg, (twin, tree)) =
                self.under(&arm.attrs, |own| own.scoped(|own| own.arm(arm)))?;
            twins.push(quote! { #cfg #twin });
            trees.push(quote! { #cfg #tree });
        }
        let (twin, tree) = (of.twin, of.tree);
        Ok(part(
            quote! { match #twin { #(#twins)* } },
            quote! { Kind::Match(&#tree, &[#(#trees),*]) },
        ))
    }

    fn arm(&mut self, arm: &syn::Arm) -> Result<(TokenStream, TokenStream)> {
        let mut seen = Vec::new();
        let pattern = self.tested(&arm.pat, &mut seen)?;
        let (guard_twin, guard_tree) = match &arm.guard {
            None => (TokenStream::new(), quote! { ::core::option::Option::None }),
            Some((token, guard)) => {
                if has_statements(guard) {
                    let message = "a guard is one expression: compute before the `match`";
                    return Err(Error::new(token.span, message));
                }
                let Part { twin, tree, .. } = self.value(guard)?;
                (
                    quote! { if #twin },
                    quote! { ::core::option::Option::Some(&#tree) },
                )
            }
        };
        let Part { twin, tree, .. } = self.end(&arm.body)?;
        let shape = &arm.pat;
        Ok((
            quote! { #shape #guard_twin => { #(#seen)* #twin } },
            quote! { Arm { pattern: #pattern, guard: #guard_tree, body: &#tree } },
        ))
    }

    /// The end of a block, or the body of an arm: what leaves, or a choice, or a value.
    pub(super) fn end(&mut self, expression: &Expr) -> Result<Part> {
        match strip(expression) {
            other @ (Expr::If(_) | Expr::Match(_) | Expr::Block(_)) => {
                let Part { twin, tree, .. } = self.branching(other)?;
                Ok(part(twin, quote! { Expr { ty: NONE, kind: #tree } }))
            }
            other @ (Expr::Return(_)
            | Expr::Break(_)
            | Expr::Continue(_)
            | Expr::Assign(_)
            | Expr::ForLoop(_)) => self.run(other),
            Expr::Binary(binary) if super::values::assigning(&binary.op).is_some() => {
                self.run(expression)
            }
            Expr::Tuple(empty) if empty.elems.is_empty() => Ok(part(
                quote! { () },
                quote! { Expr { ty: NONE, kind: Kind::Tuple(&[]) } },
            )),
            other => self.value(other),
        }
    }
}

/// A part without a slot.
pub(super) fn part(twin: TokenStream, tree: TokenStream) -> Part {
    let slot = None;
    Part { twin, tree, slot }
}

/// Whether all ways through an expression leave it, so that it has no value.
fn leaves(expression: &Expr) -> bool {
    let of_block = |block: &syn::Block| match block.stmts.last() {
        Some(syn::Stmt::Expr(last, _)) => leaves(last),
        _ => false,
    };
    match strip(expression) {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Block(block) => of_block(&block.block),
        Expr::If(choice) => {
            let otherwise = choice.else_branch.as_ref();
            of_block(&choice.then_branch) && otherwise.is_some_and(|(_, other)| leaves(other))
        }
        Expr::Match(choice) => choice.arms.iter().all(|arm| leaves(&arm.body)),
        _ => false,
    }
}

/// Whether an expression has a block with statements in it.
fn has_statements(expression: &Expr) -> bool {
    struct Found(bool);
    impl syn::visit_mut::VisitMut for Found {
        fn visit_block_mut(&mut self, block: &mut syn::Block) {
            match block.stmts.as_mut_slice() {
                [syn::Stmt::Expr(value, None)] => self.visit_expr_mut(value),
                _ => self.0 = true,
            }
        }
    }
    let mut found = Found(false);
    syn::visit_mut::VisitMut::visit_expr_mut(&mut found, &mut expression.clone());
    found.0
}
