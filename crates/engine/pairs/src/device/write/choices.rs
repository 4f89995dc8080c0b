//! `if`, `match` and blocks, as values and as statements.

use super::{
    super::{
        tree::{Arm, Block, Expr, Kind, Pattern},
        types::Type,
    },
    Code, Level, Tail, Writer,
    operators::compared,
    parts,
    values::{literal, only_value},
};

impl Writer<'_> {
    /// Whether a choice can be written as `a ? b : c`: all its branches are values without
    /// statements.
    pub(super) fn is_plain(&self, expression: &Expr) -> bool {
        let of_block = |block: Block| only_value(block).is_some_and(|value| !self.needs(value));
        match &expression.kind {
            Kind::If(test, then, Some(otherwise)) => {
                !self.needs(test) && of_block(then) && !self.needs(otherwise)
            }
            Kind::Block(block) => of_block(block),
            Kind::Match(of, arms) => {
                let again = arms.len() < 2 || settled(of);
                let plain = |arm: &Arm| !self.needs(arm.body) && !self.has_mutable(&arm.pattern);
                again && !self.needs(of) && arms.iter().all(plain)
            }
            _ => false,
        }
    }

    /// A choice or a block as a value: an operator if that is enough, else a variable that every
    /// branch assigns.
    pub(super) fn chosen(&mut self, expression: &'static Expr) -> Code {
        if self.is_plain(expression) {
            return self.plain_choice(expression);
        }
        let ty = self.type_of(expression);
        let name = self.temporary();
        self.line(&format!("{} {name};", ty.name()));
        let tail = Tail::Assign(name.clone());
        self.run(expression, &tail);
        Code::atom(name)
    }

    fn plain_choice(&mut self, expression: &'static Expr) -> Code {
        match &expression.kind {
            Kind::If(test, then, Some(otherwise)) => {
                let test = self.value(test);
                let yes = self.value_of_block(then);
                let no = self.value(otherwise);
                ternary(&test, &yes, &no)
            }
            Kind::Block(block) => self.value_of_block(block),
            Kind::Match(of, arms) => {
                let ty = self.type_of(of);
                let of = self.value(of).at(Level::Atom);
                let mut cases = Vec::new();
                for arm in *arms {
                    let test = self.test_of_arm(arm, &of, &ty);
                    let value = self.value(arm.body);
                    let always = test.is_none();
                    cases.push((test, value));
                    if always {
                        break;
                    }
                }
                // Rust has checked that the arms leave nothing out, so the last needs no test.
                let mut cases = cases.into_iter().rev();
                let last = cases.next().map_or(Code::atom(""), |(_, value)| value);
                cases.fold(last, |no, (test, yes)| match test {
                    Some(test) => ternary(&test, &yes, &no),
                    None => yes,
                })
            }
            _ => self.value(expression),
        }
    }

    fn value_of_block(&mut self, block: Block) -> Code {
        match only_value(block) {
            Some(value) => self.value(value),
            None => Code::atom(""),
        }
    }

    /// A choice as statements.
    pub(super) fn branch(&mut self, expression: &'static Expr, tail: &Tail) {
        match &expression.kind {
            Kind::If(test, then, otherwise) => {
                let test = self.value(test);
                self.line(&format!("if ({}) {{", test.text));
                self.inner(|own| own.block(then, tail));
                match otherwise {
                    None => self.line("}"),
                    Some(otherwise) => self.otherwise(otherwise, tail),
                }
            }
            Kind::Match(of, arms) => self.cases(of, arms, tail),
            _ => self.run(expression, tail),
        }
    }

    fn inner(&mut self, f: impl FnOnce(&mut Self)) {
        self.indent += 4;
        f(self);
        self.indent -= 4;
    }

    /// The branch behind `else`, without braces of its own where it is a plain `if`.
    fn otherwise(&mut self, otherwise: &'static Expr, tail: &Tail) {
        match &otherwise.kind {
            Kind::If(test, then, next) if !self.needs(test) => {
                let test = self.value(test);
                self.line(&format!("}} else if ({}) {{", test.text));
                self.inner(|own| own.block(then, tail));
                match next {
                    None => self.line("}"),
                    Some(next) => self.otherwise(next, tail),
                }
            }
            Kind::Block(block) => {
                self.line("} else {");
                self.inner(|own| own.block(block, tail));
                self.line("}");
            }
            _ => {
                self.line("} else {");
                self.inner(|own| own.run(otherwise, tail));
                self.line("}");
            }
        }
    }

    /// The arms of a `match`, one `if` after the other.
    fn cases(&mut self, of: &'static Expr, arms: &'static [Arm], tail: &Tail) {
        let ty = self.type_of(of);
        let mut value = self.value(of);
        let variable = matches!(of.kind, Kind::Local(id) if self.mutable(id));
        if !settled(of) || variable {
            value = self.kept(value, &ty);
        }
        let value = value.at(Level::Atom);
        // Statements of guards are written before the first arm: guards change nothing.
        let tests: Vec<_> = arms
            .iter()
            .map(|arm| self.test_of_arm(arm, &value, &ty))
            .collect();
        for (at, (arm, test)) in arms.iter().zip(tests).enumerate() {
            let last = at + 1 == arms.len();
            let always = test.is_none() || (last && at > 0);
            let head = match (at, &test) {
                (0, Some(test)) => format!("if ({}) {{", test.text),
                (0, None) => "{".to_owned(),
                (_, Some(test)) if !always => format!("}} else if ({}) {{", test.text),
                _ => "} else {".to_owned(),
            };
            self.line(&head);
            self.inner(|own| {
                own.changing(&arm.pattern, &value, &ty);
                match &arm.body.kind {
                    Kind::Block(block) => own.block(block, tail),
                    _ => own.run(arm.body, tail),
                }
            });
            if always {
                break;
            }
        }
        self.line("}");
    }

    /// The condition of an arm; None where all values match. Its variables stand for the value.
    fn test_of_arm(&mut self, arm: &'static Arm, value: &str, ty: &Type) -> Option<Code> {
        self.alias(&arm.pattern, value, ty);
        let test = self.test(&arm.pattern, value, ty);
        match (test, arm.guard) {
            (test, None) => test,
            (None, Some(guard)) => Some(self.value(guard)),
            (Some(test), Some(guard)) => {
                let guard = self.value(guard);
                Some(both(&test, &guard))
            }
        }
    }

    /// Variables of an arm's pattern stand for parts of the value.
    fn alias(&mut self, pattern: &'static Pattern, value: &str, ty: &Type) {
        match pattern {
            Pattern::Name(id) => self.locals[usize::from(*id)] = value.to_owned(),
            Pattern::NameOf(id, inner) => {
                self.locals[usize::from(*id)] = value.to_owned();
                self.alias(inner, value, ty);
            }
            pattern => {
                for (part, text, ty) in parts(pattern, value, ty) {
                    self.alias(part, &text, &ty);
                }
            }
        }
    }

    /// Variables of an arm that are assigned to get a place of their own.
    fn changing(&mut self, pattern: &'static Pattern, value: &str, ty: &Type) {
        match pattern {
            Pattern::Name(id) | Pattern::NameOf(id, _) if self.mutable(*id) => {
                let declared = self.declared(*id);
                self.line(&format!("{declared} = {value};"));
            }
            pattern => {
                for (part, text, ty) in parts(pattern, value, ty) {
                    self.changing(part, &text, &ty);
                }
            }
        }
    }

    fn has_mutable(&self, pattern: &Pattern) -> bool {
        match pattern {
            Pattern::Name(id) | Pattern::NameOf(id, _) => self.mutable(*id),
            Pattern::Tuple(parts) | Pattern::Array(parts) | Pattern::Or(parts) => {
                parts.iter().any(|part| self.has_mutable(part))
            }
            Pattern::Struct(fields) => fields.iter().any(|field| self.has_mutable(&field.1)),
            _ => false,
        }
    }

    /// The test of a pattern; None for one that everything matches.
    fn test(&self, pattern: &'static Pattern, value: &str, ty: &Type) -> Option<Code> {
        let of = Code::atom(value);
        match pattern {
            Pattern::Any | Pattern::Name(_) => None,
            Pattern::NameOf(_, inner) => self.test(inner, value, ty),
            Pattern::Number("true") if *ty == Type::Bool => Some(of),
            Pattern::Number("false") if *ty == Type::Bool => {
                Some(Code::new(format!("!{value}"), Level::Unary))
            }
            Pattern::Number(_) | Pattern::Constant(_) => {
                Some(compared(&of, "==", Level::Equality, &self.end(pattern, ty)))
            }
            Pattern::Range { from, to, closed } => {
                let bound = |end: &'static Pattern, sign| match end {
                    Pattern::Any => None,
                    end => Some(compared(&of, sign, Level::Relation, &self.end(end, ty))),
                };
                let below = if *closed { "<=" } else { "<" };
                match (bound(from, ">="), bound(to, below)) {
                    (Some(a), Some(b)) => Some(both(&a, &b)),
                    (a, b) => a.or(b),
                }
            }
            Pattern::Or(cases) => {
                let tests: Option<Vec<Code>> = cases
                    .iter()
                    .map(|case| self.test(case, value, ty))
                    .collect();
                let texts: Vec<_> = tests?.iter().map(|test| test.at(Level::And)).collect();
                Some(Code::new(texts.join(" || "), Level::Or))
            }
            pattern => {
                let tests: Vec<Code> = parts(pattern, value, ty)
                    .iter()
                    .filter_map(|(part, text, ty)| self.test(part, text, ty))
                    .collect();
                tests.into_iter().reduce(|a, b| both(&a, &b))
            }
        }
    }

    /// A number or a constant of a pattern.
    fn end(&self, pattern: &Pattern, ty: &Type) -> Code {
        match pattern {
            Pattern::Number(digits) => literal(digits, ty),
            Pattern::Constant(id) => Code::atom(self.all.constants[usize::from(*id)].name.clone()),
            _ => Code::atom(""),
        }
    }
}

/// Whether a value may be read again.
fn settled(of: &Expr) -> bool {
    match &of.kind {
        Kind::Local(_) | Kind::Constant(_) | Kind::Uniform(_) => true,
        Kind::Field(of, _) | Kind::Part(of, _) => settled(of),
        _ => false,
    }
}

/// `a && b`
fn both(a: &Code, b: &Code) -> Code {
    let text = format!("{} && {}", a.at(Level::And), b.at(Level::BitOr));
    Code::new(text, Level::And)
}

/// `test ? yes : no`
fn ternary(test: &Code, yes: &Code, no: &Code) -> Code {
    let text = format!(
        "{} ? {} : {}",
        test.at(Level::Or),
        yes.at(Level::Or),
        no.at(Level::Choice)
    );
    Code {
        text,
        level: Level::Choice,
        plain: yes.plain && no.plain,
    }
}
