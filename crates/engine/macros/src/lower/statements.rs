//! Blocks, `let`, assignments and what else is a statement.

use super::{Lowering, Part, control::part, places::strip, refused, values::assigning};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Block, Error, Expr, Item, Local, Result, Stmt, spanned::Spanned};

impl Lowering<'_> {
    /// A block, in a scope of its own. The tree is a list of statements, the twin has its braces.
    pub(super) fn block(&mut self, block: &Block) -> Result<Part> {
        self.scoped(|own| {
            own.items(&block.stmts);
            let (mut twins, mut trees) = (Vec::new(), Vec::new());
            for statement in &block.stmts {
                let (twin, tree) = own.statement(statement)?;
                twins.push(twin);
                trees.extend(tree);
            }
            Ok(part(quote! { { #(#twins)* } }, quote! { &[#(#trees),*] }))
        })
    }

    /// A statement of a block; items are in the twin alone.
    fn statement(&mut self, statement: &Stmt) -> Result<(TokenStream, Option<TokenStream>)> {
        match statement {
            Stmt::Local(local) => {
                let (cfg, (twin, tree)) = self.under(&local.attrs, |own| own.local(local))?;
                // Conditions stand before a `let` and before what shows its variables.
                let twin: TokenStream = twin.into_iter().map(|one| quote! { #cfg #one }).collect();
                Ok((twin, Some(quote! { #cfg #tree })))
            }
            Stmt::Item(item @ (Item::Const(_) | Item::Use(_))) => {
                if let Item::Use(import) = item
                    && quote! { #import }.to_string().contains('*')
                {
                    let message = "name what is imported";
                    return Err(Error::new(item.span(), message));
                }
                Ok((quote! { #item }, None))
            }
            Stmt::Item(item) => Err(Error::new(
                item.span(),
                "move this out of the kernel; functions it calls carry #[pair_fn]",
            )),
            Stmt::Macro(call) if call.mac.path.is_ident("cfg") => Ok((TokenStream::new(), None)),
            Stmt::Macro(call) => Err(refused::called_macro(&call.mac)),
            Stmt::Expr(expression, semicolon) => {
                let attributes = refused::attributes_of(expression);
                let value = semicolon.is_none();
                let (cfg, Part { twin, tree, .. }) = self.under(attributes, |own| match value {
                    true => own.end(expression),
                    false => own.run(expression),
                })?;
                let before = std::mem::take(&mut self.before);
                let before = before.iter().map(|one| quote! { #cfg #one });
                let tree = match value {
                    true => quote! { #cfg Statement::Value(#tree) },
                    false => quote! { #cfg Statement::Run(#tree) },
                };
                Ok((quote! { #(#before)* #cfg #twin #semicolon }, Some(tree)))
            }
        }
    }

    fn local(&mut self, local: &Local) -> Result<(Vec<TokenStream>, TokenStream)> {
        let Some(init) = &local.init else {
            let message = "give the variable its value where it is declared: `let x = if … { … } \
                           else { … };`";
            return Err(Error::new(local.span(), message));
        };
        if let Some((token, _)) = &init.diverge {
            let message = "a kernel has no `let … else`: use `if`";
            return Err(Error::new(token.span, message));
        }
        if let syn::Pat::Type(typed) = &local.pat {
            refused::ty(&typed.ty)?;
        }
        let Part { twin, tree, .. } = self.value(&init.expr)?;
        let mut seen = Vec::new();
        let pattern = self.binding(&local.pat, &mut seen)?;
        let shape = &local.pat;
        let mut lines = vec![quote! { let #shape = #twin; }];
        lines.append(&mut seen);
        Ok((lines, quote! { Statement::Let(#pattern, #tree) }))
    }

    /// An expression as a statement: its value is thrown away.
    pub(super) fn run(&mut self, expression: &Expr) -> Result<Part> {
        let expression = strip(expression);
        let kind = |twin: TokenStream, kind: TokenStream| {
            Ok(part(twin, quote! { Expr { ty: NONE, kind: #kind } }))
        };
        match expression {
            Expr::If(_) | Expr::Match(_) | Expr::Block(_) => {
                let before = std::mem::take(&mut self.before);
                let made = self.branching(expression);
                self.before = before;
                let Part { twin, tree, .. } = made?;
                kind(twin, tree)
            }
            Expr::ForLoop(repeated) => self.for_loop(repeated),
            Expr::Return(returned) => {
                let Some(value) = &returned.expr else {
                    return Err(Error::new(returned.span(), "return a value"));
                };
                let Part { twin, tree, .. } = self.end(value)?;
                kind(quote! { return #twin }, quote! { Kind::Return(&#tree) })
            }
            Expr::Break(left) if left.expr.is_none() && left.label.is_none() && self.loops > 0 => {
                kind(quote! { break }, quote! { Kind::Break })
            }
            Expr::Continue(left) if left.label.is_none() && self.loops > 0 => {
                kind(quote! { continue }, quote! { Kind::Continue })
            }
            Expr::Break(_) | Expr::Continue(_) => {
                let message = "loops have neither labels nor values here: use a variable";
                Err(Error::new(expression.span(), message))
            }
            Expr::Assign(assignment) => {
                let value = self.value(&assignment.right)?;
                if matches!(&*assignment.left, Expr::Infer(_)) {
                    let twin = value.twin;
                    return Ok(part(quote! { _ = #twin }, value.tree));
                }
                let place = self.assigned(&assignment.left)?;
                let (to, on, of, tree) = (place.twin, place.tree, value.twin, value.tree);
                kind(quote! { #to = #of }, quote! { Kind::Assign(&#on, &#tree) })
            }
            Expr::Binary(binary) if let Some(name) = assigning(&binary.op) => {
                let value = self.value(&binary.right)?;
                let place = self.assigned(&binary.left)?;
                let slot = self.slot_of(binary.left.span(), false);
                let seen = self.seen(slot, &place.twin, binary.left.span());
                self.before.push(seen);
                self.check(slot, binary.left.span(), quote! { operand });
                self.operand(&value, binary.right.span());
                let (to, on, of, tree) = (place.twin, place.tree, value.twin, value.tree);
                let (token, name) = (&binary.op, format_ident!("{name}"));
                kind(
                    quote! { #to #token #of },
                    quote! { Kind::Update(Operator::#name, &#on, &#tree) },
                )
            }
            Expr::Macro(call) if !call.mac.path.is_ident("cfg") => {
                Err(refused::called_macro(&call.mac))
            }
            Expr::While(other) => Err(refused::endless(other.while_token.span)),
            Expr::Loop(other) => Err(refused::endless(other.loop_token.span)),
            // Its value is thrown away, and it has no effects of its own.
            other => self.value(other),
        }
    }
}
