//! `if`, `match`, blocks and loops, as statements and as values.

use super::{
    statements::Tail,
    translator::{Code, Level, Translator},
    ty::Ty,
};
use syn::{
    Error, Expr, ExprForLoop, ExprIf, ExprMatch, Pat, RangeLimits, Result, Stmt, spanned::Spanned,
};

impl Translator<'_> {
    /// Whether a choice can be written as `a ? b : c`: all its branches are values without
    /// statements.
    pub(super) fn is_plain(&self, expression: &Expr) -> bool {
        match expression {
            Expr::If(choice) => {
                let otherwise = choice.else_branch.as_ref();
                only_value(&choice.then_branch).is_some_and(|value| self.is_plain(value))
                    && otherwise.is_some_and(|(_, other)| self.is_plain(other))
            }
            Expr::Block(block) => {
                block.label.is_none()
                    && only_value(&block.block).is_some_and(|value| self.is_plain(value))
            }
            Expr::Match(choice) => {
                let tests = choice.arms.len().saturating_sub(1);
                let again = tests < 2 || matches!(&*choice.expr, Expr::Path(_));
                again
                    && choice.arms.iter().all(|arm| {
                        !matches!(arm.pat, Pat::Ident(_))
                            && arm.guard.is_none()
                            && self.is_plain(&arm.body)
                    })
            }
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => false,
            _ => true,
        }
    }

    /// A choice or a block as a value: an operator if that is enough, else a function around it.
    pub(super) fn choice(&mut self, expression: &Expr, expected: &Ty) -> Result<Code> {
        if self.is_plain(expression) {
            return self.plain_choice(expression, expected);
        }
        let result = std::mem::replace(&mut self.result, expected.clone());
        let loops = std::mem::take(&mut self.loops);
        self.depth += 1;
        self.indent += 4;
        let mut text = String::new();
        let made = match expression {
            Expr::If(choice) => self.if_statement(choice, Tail::Return, &mut text),
            Expr::Match(choice) => self.match_statement(choice, Tail::Return, &mut text),
            Expr::Block(block) if block.label.is_none() && block.attrs.is_empty() => self
                .block(&block.block.stmts, Tail::Return, block.span())
                .map(|block| text = block),
            other => Err(Error::new(other.span(), "blocks have no labels here")),
        };
        self.indent -= 4;
        self.depth -= 1;
        self.loops = loops;
        self.result = result;
        made?;
        let returned = match expected.short() {
            Some(name) => format!("() -> {name}"),
            None => String::new(),
        };
        let text = format!("[&]{returned} {{\n{text}{}}}()", self.spaces());
        Ok(Code::atom(text, expected.clone()))
    }

    fn plain_choice(&mut self, expression: &Expr, expected: &Ty) -> Result<Code> {
        match expression {
            Expr::If(choice) => {
                let test = self.condition(&choice.cond)?;
                let value = only_value(&choice.then_branch);
                let (Some(value), Some((_, other))) = (value, &choice.else_branch) else {
                    return Err(Error::new(
                        choice.span(),
                        "an `if` with a value has an `else`",
                    ));
                };
                let yes = self.expression(value, expected)?;
                let no = self.plain_choice(other, expected)?;
                self.chosen(&test, yes, no, expected, value)
            }
            Expr::Block(block) => match only_value(&block.block) {
                Some(value) => self.plain_choice(value, expected),
                None => Err(Error::new(
                    block.span(),
                    "this block has no value: end it with one",
                )),
            },
            Expr::Match(choice) => {
                let of = self.expression(&choice.expr, &Ty::Unknown)?;
                let mut arms = choice.arms.iter().rev();
                let Some(last) = arms.next() else {
                    return Err(Error::new(choice.span(), "a `match` has arms"));
                };
                let mut text = self.expression(&last.body, expected)?;
                for arm in arms {
                    let Some(test) = self.test(&arm.pat, &of)? else {
                        let message = "arms behind this one are never taken: remove them";
                        return Err(Error::new(arm.pat.span(), message));
                    };
                    let value = self.expression(&arm.body, expected)?;
                    text = self.chosen(&test, value, text, expected, &arm.body)?;
                }
                // Rust has checked that the arms leave nothing out, so the last needs no test.
                self.test(&last.pat, &of)?;
                Ok(text)
            }
            other => self.expression(other, expected),
        }
    }

    /// `test ? yes : no`.
    fn chosen(
        &mut self,
        test: &Code,
        yes: Code,
        no: Code,
        expected: &Ty,
        at: &Expr,
    ) -> Result<Code> {
        let of = [&yes.ty, &no.ty, expected];
        let of = of
            .into_iter()
            .find(|ty| !matches!(ty, Ty::Literal | Ty::Unknown));
        let of = of.cloned().unwrap_or(Ty::Unknown);
        let unknown = of == Ty::Unknown && (yes.ty == Ty::Unknown || no.ty == Ty::Unknown);
        let (yes, no) = if unknown {
            (yes, no)
        } else {
            (
                self.typed(yes, &of, at.span())?,
                self.typed(no, &of, at.span())?,
            )
        };
        let text = format!(
            "{} ? {} : {}",
            test.at(Level::Or),
            yes.at(Level::Or),
            no.at(Level::Choice)
        );
        Ok(Code::new(text, of, Level::Choice))
    }

    fn condition(&mut self, condition: &Expr) -> Result<Code> {
        self.expression(condition, &Ty::Unknown)
    }

    pub(super) fn if_statement(
        &mut self,
        choice: &ExprIf,
        tail: Tail,
        text: &mut String,
    ) -> Result<()> {
        let spaces = self.spaces();
        let test = self.condition(&choice.cond)?;
        self.indent += 4;
        let then = self.block(&choice.then_branch.stmts, tail, choice.then_branch.span())?;
        self.indent -= 4;
        text.push_str(&format!("{spaces}if ({}) {{\n{then}{spaces}}}", test.text));
        match &choice.else_branch {
            None if tail == Tail::Return => {
                return Err(Error::new(
                    choice.span(),
                    "an `if` with a value has an `else`",
                ));
            }
            None => text.push('\n'),
            Some((_, other)) => {
                self.indent += 4;
                let mut inner = String::new();
                match &**other {
                    Expr::Block(block) => {
                        inner = self.block(&block.block.stmts, tail, block.span())?;
                    }
                    Expr::If(next) => self.if_statement(next, tail, &mut inner)?,
                    other => self.in_tail(other, tail, &mut inner)?,
                }
                self.indent -= 4;
                text.push_str(&format!(" else {{\n{inner}{spaces}}}\n"));
            }
        }
        Ok(())
    }

    fn in_tail(&mut self, expression: &Expr, tail: Tail, text: &mut String) -> Result<()> {
        match tail {
            Tail::Return => self.returned(expression, text),
            Tail::None => self.statement(expression, text),
        }
    }

    pub(super) fn match_statement(
        &mut self,
        choice: &ExprMatch,
        tail: Tail,
        text: &mut String,
    ) -> Result<()> {
        let spaces = self.spaces();
        let value = self.expression(&choice.expr, &Ty::Unknown)?;
        let value = self.typed(value, &Ty::I32, choice.expr.span())?;
        self.scopes.push(Vec::new());
        self.indent += 4;
        let inner_spaces = self.spaces();
        let name = self.temporary();
        self.declare_as(String::new(), name.clone(), value.ty.clone());
        let of_type = value.ty.short().unwrap_or("auto");
        text.push_str(&format!(
            "{spaces}{{\n{inner_spaces}const {of_type} {name} = {};\n",
            value.text
        ));
        let of = Code::atom(name, value.ty);
        for (at, arm) in choice.arms.iter().enumerate() {
            let last = at + 1 == choice.arms.len();
            self.scopes.push(Vec::new());
            self.indent += 4;
            let mut inner = String::new();
            let mut test = match &arm.pat {
                Pat::Ident(bound) if bound.subpat.is_none() && is_variable(bound) => {
                    self.take_apart(&arm.pat, &of.text, &of.ty, &mut inner)?;
                    None
                }
                pattern => self.test(pattern, &of)?,
            };
            if let Some((token, guard)) = &arm.guard {
                if !inner.is_empty() {
                    let message = "a guard here reads the matched variable itself: match on it and use `_ if …`";
                    return Err(Error::new(token.span, message));
                }
                let guard = self.condition(guard)?;
                test = Some(match test {
                    Some(test) => Code::new(
                        format!("{} && {}", test.at(Level::And), guard.at(Level::Comparison)),
                        Ty::Bool,
                        Level::And,
                    ),
                    None => guard,
                });
            }
            self.in_tail_of_arm(&arm.body, tail, &mut inner)?;
            self.indent -= 4;
            self.scopes.pop();
            let begin = if at == 0 {
                inner_spaces.clone()
            } else {
                " else ".to_owned()
            };
            match test {
                // Rust has checked that the arms leave nothing out.
                Some(test) if !last || at == 0 => {
                    text.push_str(&format!(
                        "{begin}if ({}) {{\n{inner}{inner_spaces}}}",
                        test.text
                    ));
                }
                _ => {
                    text.push_str(&format!("{begin}{{\n{inner}{inner_spaces}}}"));
                    if !last {
                        let message = "arms behind this one are never taken: remove them";
                        return Err(Error::new(arm.pat.span(), message));
                    }
                }
            }
        }
        self.indent -= 4;
        self.scopes.pop();
        text.push_str(&format!("\n{spaces}}}\n"));
        Ok(())
    }

    fn in_tail_of_arm(&mut self, body: &Expr, tail: Tail, text: &mut String) -> Result<()> {
        match body {
            Expr::Tuple(empty) if empty.elems.is_empty() && tail == Tail::None => Ok(()),
            Expr::Block(block) if block.label.is_none() => {
                text.push_str(&self.block(&block.block.stmts, tail, block.span())?);
                Ok(())
            }
            other => self.in_tail(other, tail, text),
        }
    }

    /// The test of a pattern of numbers; None for one that everything matches.
    fn test(&mut self, pattern: &Pat, of: &Code) -> Result<Option<Code>> {
        let value = of.at(Level::Sum);
        let compared = |text: String| Ok(Some(Code::new(text, Ty::Bool, Level::Comparison)));
        match pattern {
            Pat::Wild(_) => Ok(None),
            Pat::Lit(literal) => {
                let literal = self.expression(&Expr::Lit(literal.clone()), &of.ty)?;
                compared(format!("{value} == {}", literal.at(Level::Sum)))
            }
            Pat::Path(path) => {
                let constant = self.path(path)?;
                compared(format!("{value} == {}", constant.text))
            }
            Pat::Ident(ident) if ident.subpat.is_none() && !is_variable(ident) => {
                let path = syn::Path::from(ident.ident.clone());
                let path = syn::ExprPath {
                    attrs: Vec::new(),
                    qself: None,
                    path,
                };
                let constant = self.path(&path)?;
                compared(format!("{value} == {}", constant.text))
            }
            Pat::Range(range) => {
                let mut tests = Vec::new();
                if let Some(start) = &range.start {
                    let start = self.expression(start, &of.ty)?;
                    tests.push(format!("{value} >= {}", start.at(Level::Sum)));
                }
                if let Some(end) = &range.end {
                    let end = self.expression(end, &of.ty)?;
                    let operator = match range.limits {
                        RangeLimits::HalfOpen(_) => "<",
                        RangeLimits::Closed(_) => "<=",
                    };
                    tests.push(format!("{value} {operator} {}", end.at(Level::Sum)));
                }
                Ok(Some(Code::new(tests.join(" && "), Ty::Bool, Level::And)))
            }
            Pat::Or(alternatives) => {
                let mut tests = Vec::new();
                for case in &alternatives.cases {
                    match self.test(case, of)? {
                        Some(test) => tests.push(test.at(Level::And)),
                        None => return Ok(None),
                    }
                }
                Ok(Some(Code::new(tests.join(" || "), Ty::Bool, Level::Or)))
            }
            Pat::Paren(inner) => self.test(&inner.pat, of),
            other => Err(Error::new(
                other.span(),
                "arms of a `match` are numbers, ranges, constants, `|` of these, and `_`",
            )),
        }
    }

    pub(super) fn for_loop(&mut self, repeated: &ExprForLoop, text: &mut String) -> Result<()> {
        if let Some(label) = &repeated.label {
            return Err(Error::new(
                label.span(),
                "loops have no labels here: use a variable",
            ));
        }
        let spaces = self.spaces();
        let mut range = &*repeated.expr;
        while let Expr::Paren(inner) = range {
            range = &inner.expr;
        }
        self.scopes.push(Vec::new());
        let (head, first_lines) = match range {
            Expr::Range(range) => (self.counted(&repeated.pat, range)?, String::new()),
            other => {
                let values = self.expression(other, &Ty::Unknown)?;
                let name = self.temporary();
                self.declare_as(String::new(), name.clone(), values.ty.element());
                self.indent += 4;
                let mut lines = String::new();
                let taken = self.take_apart(&repeated.pat, &name, &values.ty.element(), &mut lines);
                self.indent -= 4;
                taken?;
                (format!("const auto {name} : {}", values.text), lines)
            }
        };
        self.indent += 4;
        self.loops += 1;
        let body = self.block(&repeated.body.stmts, Tail::None, repeated.body.span());
        self.loops -= 1;
        self.indent -= 4;
        self.scopes.pop();
        text.push_str(&format!(
            "{spaces}for ({head}) {{\n{first_lines}{}{spaces}}}\n",
            body?
        ));
        Ok(())
    }

    /// The head of a loop over a range.
    fn counted(&mut self, pattern: &Pat, range: &syn::ExprRange) -> Result<String> {
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            let message = "a loop has a first and a last number: `0..8`";
            return Err(Error::new(range.span(), message));
        };
        let typed = |expression: &Expr| match expression {
            Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Int(number),
                ..
            }) => match number.suffix() {
                "u32" => Some(Ty::U32),
                "i32" => Some(Ty::I32),
                _ => None,
            },
            _ => None,
        };
        let ty = typed(start).or_else(|| typed(end)).unwrap_or(Ty::Index);
        let start = self.constant_number(start)?;
        let end = self.constant_number(end)?;
        let name = match pattern {
            Pat::Ident(ident) if ident.mutability.is_none() && ident.subpat.is_none() => {
                self.declare(&ident.ident, ty.clone())
            }
            Pat::Wild(_) => {
                let name = self.temporary();
                self.declare_as(String::new(), name.clone(), ty.clone());
                name
            }
            other => {
                return Err(Error::new(
                    other.span(),
                    "the variable of a range is a name or `_`",
                ));
            }
        };
        let of = ty.short().unwrap_or("int");
        let operator = match range.limits {
            RangeLimits::HalfOpen(_) => "<",
            RangeLimits::Closed(_) => "<=",
        };
        // Plain numbers count; a user's integers have no `++`.
        let step = if ty == Ty::Index {
            format!("{name}++")
        } else {
            format!("{name} += 1")
        };
        Ok(format!(
            "{of} {name} = {start}; {name} {operator} {end}; {step}"
        ))
    }
}

/// The value of a block that is nothing else.
fn only_value(block: &syn::Block) -> Option<&Expr> {
    match block.stmts.as_slice() {
        [Stmt::Expr(value, None)] => Some(value),
        _ => None,
    }
}

/// Whether a name in a pattern binds a value; constants are in capitals.
fn is_variable(ident: &syn::PatIdent) -> bool {
    ident
        .ident
        .to_string()
        .starts_with(|c: char| c.is_lowercase() || c == '_')
}
