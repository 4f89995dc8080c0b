//! Blocks, `let`, assignments and what else is a statement.

use super::{
    translator::{Code, Level, Translator},
    ty::Ty,
};
use proc_macro2::Span;
use syn::{Error, Expr, Item, Local, Pat, Result, Stmt, spanned::Spanned};

/// The use of the value of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// It is returned.
    Return,
    /// The block has none.
    None,
}

impl Translator<'_> {
    /// The statements of a block in a scope of its own.
    pub(super) fn block(&mut self, statements: &[Stmt], tail: Tail, span: Span) -> Result<String> {
        self.scopes.push(Vec::new());
        let mut text = String::new();
        let mut ends = false;
        for (at, statement) in statements.iter().enumerate() {
            let last = at + 1 == statements.len();
            match statement {
                Stmt::Local(local) => self.local(local, &mut text)?,
                Stmt::Item(Item::Const(constant)) => {
                    let (name, ty) = self.ty(&constant.ty)?;
                    let value = self.value(&constant.expr, &ty)?;
                    let variable = self.declare(&constant.ident, ty);
                    let spaces = self.spaces();
                    text.push_str(&format!(
                        "{spaces}const {name} {variable} = {};\n",
                        value.text
                    ));
                }
                Stmt::Item(item) => {
                    return Err(Error::new(
                        item.span(),
                        "move this out of the kernel; functions it calls carry #[pair_fn]",
                    ));
                }
                Stmt::Macro(call) => return Err(refused_macro(&call.mac)),
                Stmt::Expr(expression, semicolon) => {
                    if last && tail == Tail::Return && (semicolon.is_none() || leaves(expression)) {
                        self.returned(expression, &mut text)?;
                        ends = true;
                    } else {
                        self.statement(expression, &mut text)?;
                    }
                }
            }
        }
        self.scopes.pop();
        if tail == Tail::Return && !ends {
            return Err(Error::new(span, "this block has no value: end it with one"));
        }
        Ok(text)
    }

    fn local(&mut self, local: &Local, text: &mut String) -> Result<()> {
        let Some(init) = &local.init else {
            let message = "give the variable its value where it is declared: `let x = if … { … } else { … };`";
            return Err(Error::new(local.span(), message));
        };
        if let Some((token, _)) = &init.diverge {
            let message = "a kernel has no `let … else`: use `if`";
            return Err(Error::new(token.span, message));
        }
        let (pattern, annotated) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(self.ty(&typed.ty)?)),
            pattern => (pattern, None),
        };
        let expected = annotated.as_ref().map_or(Ty::Unknown, |(_, ty)| ty.clone());
        let value = self.value(&init.expr, &expected)?;
        let ty = if annotated.is_some() && expected != Ty::Unknown {
            expected
        } else {
            value.ty.clone()
        };
        let type_name = match &annotated {
            Some((name, _)) => name.clone(),
            None => ty.short().unwrap_or("auto").to_owned(),
        };
        let spaces = self.spaces();
        match pattern {
            Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
                let name = self.declare(&ident.ident, ty);
                let constant = if ident.mutability.is_some() {
                    ""
                } else {
                    "const "
                };
                text.push_str(&format!(
                    "{spaces}{constant}{type_name} {name} = {};\n",
                    value.text
                ));
            }
            Pat::Wild(_) => {}
            pattern => {
                let name = self.temporary();
                self.declare_as(String::new(), name.clone(), ty.clone());
                text.push_str(&format!(
                    "{spaces}const {type_name} {name} = {};\n",
                    value.text
                ));
                self.take_apart(pattern, &name, &ty, text)?;
            }
        }
        Ok(())
    }

    /// A value that is returned: `if`, `match` and blocks return from within.
    pub(super) fn returned(&mut self, expression: &Expr, text: &mut String) -> Result<()> {
        match expression {
            Expr::Return(_) => self.statement(expression, text),
            Expr::Paren(inner) => self.returned(&inner.expr, text),
            Expr::Block(block) if block.label.is_none() => {
                let spaces = self.spaces();
                self.indent += 4;
                let inner = self.block(&block.block.stmts, Tail::Return, block.span())?;
                self.indent -= 4;
                text.push_str(&format!("{spaces}{{\n{inner}{spaces}}}\n"));
                Ok(())
            }
            Expr::If(choice) if !self.is_plain(expression) => {
                self.if_statement(choice, Tail::Return, text)
            }
            Expr::Match(choice) if !self.is_plain(expression) => {
                self.match_statement(choice, Tail::Return, text)
            }
            _ => {
                let expected = self.result.clone();
                let value = self.value(expression, &expected)?;
                text.push_str(&format!("{}return {};\n", self.spaces(), value.text));
                Ok(())
            }
        }
    }

    pub(super) fn statement(&mut self, expression: &Expr, text: &mut String) -> Result<()> {
        let spaces = self.spaces();
        match expression {
            Expr::If(choice) => self.if_statement(choice, Tail::None, text),
            Expr::Match(choice) => self.match_statement(choice, Tail::None, text),
            Expr::ForLoop(repeated) => self.for_loop(repeated, text),
            Expr::Block(block) if block.label.is_none() => {
                self.indent += 4;
                let inner = self.block(&block.block.stmts, Tail::None, block.span())?;
                self.indent -= 4;
                text.push_str(&format!("{spaces}{{\n{inner}{spaces}}}\n"));
                Ok(())
            }
            Expr::Return(returned) => {
                if self.depth > 0 {
                    let message = "`return` leaves the function from within a value: make the value a statement of its own";
                    return Err(Error::new(returned.span(), message));
                }
                let Some(value) = &returned.expr else {
                    return Err(Error::new(returned.span(), "return a value"));
                };
                self.returned(value, text)
            }
            Expr::Break(left) if left.expr.is_none() && left.label.is_none() && self.loops > 0 => {
                text.push_str(&format!("{spaces}break;\n"));
                Ok(())
            }
            Expr::Continue(left) if left.label.is_none() && self.loops > 0 => {
                text.push_str(&format!("{spaces}continue;\n"));
                Ok(())
            }
            Expr::Assign(assignment) => {
                if matches!(&*assignment.left, Expr::Infer(_)) {
                    return Ok(());
                }
                let place = self.place(&assignment.left)?;
                let value = self.value(&assignment.right, &place.ty)?;
                text.push_str(&format!("{spaces}{} = {};\n", place.text, value.text));
                Ok(())
            }
            Expr::Binary(binary) if assigning(&binary.op).is_some() => {
                let line = self.compound(binary)?;
                text.push_str(&format!("{spaces}{line};\n"));
                Ok(())
            }
            Expr::Paren(inner) => self.statement(&inner.expr, text),
            Expr::Macro(call) => Err(refused_macro(&call.mac)),
            Expr::While(other) => Err(Error::new(
                other.while_token.span,
                "loops have constant ranges: `for k in 0..8`, with `break` where it ends",
            )),
            Expr::Loop(other) => Err(Error::new(
                other.loop_token.span,
                "loops have constant ranges: `for k in 0..8`, with `break` where it ends",
            )),
            Expr::Break(_) | Expr::Continue(_) => Err(Error::new(
                expression.span(),
                "loops have neither labels nor values here: use a variable",
            )),
            other => {
                // Its value is thrown away, and it has no effects; errors in it are still reported.
                self.expression(other, &Ty::Unknown)?;
                Ok(())
            }
        }
    }

    fn compound(&mut self, binary: &syn::ExprBinary) -> Result<String> {
        use syn::BinOp;
        let place = self.place(&binary.left)?;
        let shift = matches!(binary.op, BinOp::ShlAssign(_) | BinOp::ShrAssign(_));
        let expected = if shift { Ty::Unknown } else { place.ty.clone() };
        let value = self.expression(&binary.right, &expected)?;
        let operator = assigning(&binary.op).unwrap_or_default();
        let bits = match operator {
            "&=" => Some("both"),
            "|=" => Some("either"),
            "^=" => Some("differ"),
            "%=" => Some("rem"),
            _ => None,
        };
        Ok(match bits {
            Some(function) => {
                format!(
                    "{} = nf::{function}({}, {})",
                    place.text, place.text, value.text
                )
            }
            None => format!("{} {operator} {}", place.text, value.at(Level::Choice)),
        })
    }

    /// A value for a variable: literals get the type that is expected of them.
    pub(super) fn value(&mut self, expression: &Expr, expected: &Ty) -> Result<Code> {
        let value = self.expression(expression, expected)?;
        self.typed(value, expected, expression.span())
    }

    /// Gives a literal without a type the one that is expected.
    pub(super) fn typed(&self, value: Code, expected: &Ty, span: Span) -> Result<Code> {
        if value.ty != Ty::Literal {
            return Ok(value);
        }
        match expected {
            Ty::U32 | Ty::I32 => {
                let name = expected.short().unwrap_or_default();
                Ok(Code::atom(
                    format!("{name}({})", value.text),
                    expected.clone(),
                ))
            }
            Ty::Index => Ok(Code {
                ty: Ty::Index,
                ..value
            }),
            _ => Err(Error::new(
                span,
                "the type of this number cannot be seen here: write it, such as `1u32` or `let n: i32 = 1`",
            )),
        }
    }
}

/// Whether an expression returns by itself.
fn leaves(expression: &Expr) -> bool {
    matches!(expression, Expr::Return(_))
}

pub(super) fn assigning(operator: &syn::BinOp) -> Option<&'static str> {
    use syn::BinOp::*;
    Some(match operator {
        AddAssign(_) => "+=",
        SubAssign(_) => "-=",
        MulAssign(_) => "*=",
        DivAssign(_) => "/=",
        RemAssign(_) => "%=",
        BitAndAssign(_) => "&=",
        BitOrAssign(_) => "|=",
        BitXorAssign(_) => "^=",
        ShlAssign(_) => "<<=",
        ShrAssign(_) => ">>=",
        _ => return None,
    })
}

pub(super) fn refused_macro(call: &syn::Macro) -> Error {
    let name = call.path.segments.last().map(|last| last.ident.to_string());
    let name = name.unwrap_or_default();
    let remedy = match name.as_str() {
        "panic" | "assert" | "debug_assert" | "assert_eq" | "unreachable" | "todo"
        | "unimplemented" | "debug_assert_eq" => {
            "a kernel must not panic: return a value such as 0.0 or f32::NAN"
        }
        "println" | "print" | "eprintln" | "eprint" | "dbg" => {
            "a kernel prints nothing: return what you want to see as a further output"
        }
        "vec" => "use an array",
        _ => "macros are not translated: write what it stands for",
    };
    Error::new(call.path.span(), format!("`{name}!`: {remedy}"))
}
