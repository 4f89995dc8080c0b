//! Values: what is read, made and called.

use super::{
    super::{
        tree::{Expr, Id, Kind, Operator, Statement},
        types::Type,
        value::number,
    },
    Code, Level, Used, Writer, member,
};

impl Writer<'_> {
    /// A value; the statements that it needs are written before it.
    pub(super) fn value(&mut self, expression: &'static Expr) -> Code {
        match &expression.kind {
            Kind::Bool(value) => Code::atom(value.to_string()),
            Kind::Number(digits) => literal(digits, &self.type_of(expression)),
            Kind::Local(id) => Code::atom(self.locals[self.meant(*id)].clone()),
            Kind::Constant(id) => Code::atom(self.all.constants[usize::from(*id)].name.clone()),
            Kind::Uniform(id) => match &self.all.used[usize::from(*id)] {
                Used::Value(name, _) | Used::Method(name) => Code::atom(name.clone()),
                Used::None => Code::atom(""),
            },
            Kind::Field(of, name) => {
                let ty = self.type_of(of);
                let of = self.value(of).at(Level::Atom);
                Code::atom(format!("{of}.{}", member(&ty, name)))
            }
            Kind::Part(of, at) => Code::atom(format!("{}._{at}", self.value(of).at(Level::Atom))),
            Kind::Index(of, at) => {
                let [of, at] = self.both(of, at);
                Code::atom(format!("{}[{}]", of.at(Level::Atom), at.text))
            }
            Kind::Negative(of) => Code::new(format!("-{}", self.operand(of)), Level::Unary),
            Kind::Not(of) => {
                let sign = match self.type_of(of) {
                    Type::Bool => '!',
                    _ => '~',
                };
                Code::new(format!("{sign}{}", self.operand(of)), Level::Unary)
            }
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right),
            Kind::Cast(of) => self.cast(of, &self.type_of(expression)),
            Kind::Tuple(parts) => self.made(parts.iter(), &self.type_of(expression), ["{", "}"]),
            Kind::Array(parts) => self.made(parts.iter(), &self.type_of(expression), ["{{", "}}"]),
            Kind::Repeat(of) => {
                let Type::Array(element, length) = self.type_of(expression) else {
                    return self.value(of);
                };
                let value = self.argument(of);
                let element = element.name();
                Code::atom(format!("nf::repeat<{length}, {element}>({value})"))
            }
            Kind::Struct(fields) => self.structure(fields, &self.type_of(expression)),
            Kind::Call(id, arguments) => {
                let arguments = self.list(arguments.iter());
                let callee = &self.all.callees[usize::from(*id)];
                Code::atom(format!("{callee}({})", arguments.join(", ")))
            }
            Kind::MethodOfSelf(id, arguments) => {
                let arguments = self.list(arguments.iter());
                let Used::Method(begun) = &self.all.used[usize::from(*id)] else {
                    return Code::atom("");
                };
                Code::atom(format!("{begun}, {})", arguments.join(", ")))
            }
            Kind::Associated(ty, name, arguments) => self.associated(*ty, name, arguments),
            Kind::Method(name, of, arguments) => self.method(name, of, arguments, expression),
            Kind::Closure(patterns, body) => self.closure(patterns, body, &[]),
            Kind::If(..) | Kind::Match(..) | Kind::Block(_) => self.chosen(expression),
            // These are statements; their values are never asked for.
            Kind::Return(_)
            | Kind::Break
            | Kind::Continue
            | Kind::For(..)
            | Kind::Assign(..)
            | Kind::Update(..) => {
                self.run(expression, &super::Tail::Drop);
                Code::atom("")
            }
        }
    }

    /// An operand of a unary operator.
    fn operand(&mut self, of: &'static Expr) -> String {
        let ty = self.type_of(of);
        let code = self.value(of);
        typed(code, &ty).at(Level::Atom)
    }

    /// Two values in their order.
    pub(super) fn both(&mut self, a: &'static Expr, b: &'static Expr) -> [Code; 2] {
        let mut all = self.values([a, b].into_iter());
        let second = all.pop().unwrap_or_else(|| Code::atom(""));
        let first = all.pop().unwrap_or_else(|| Code::atom(""));
        [first, second]
    }

    /// Values in their order: one whose successors need statements is kept in a variable.
    pub(super) fn values(&mut self, all: impl Iterator<Item = &'static Expr> + Clone) -> Vec<Code> {
        let mut last = 0;
        for (at, one) in all.clone().enumerate() {
            if self.needs(one) {
                last = at;
            }
        }
        let mut codes = Vec::new();
        for (at, one) in all.enumerate() {
            let mut code = self.value(one);
            let constant = matches!(
                one.kind,
                Kind::Number(_) | Kind::Bool(_) | Kind::Constant(_) | Kind::Uniform(_)
            );
            let settled = constant || matches!(one.kind, Kind::Local(id) if !self.mutable(id));
            if at < last && !settled && !matches!(one.kind, Kind::Closure(..)) {
                let ty = self.type_of(one);
                code = self.kept(code, &ty);
            }
            codes.push(code);
        }
        codes
    }

    /// Arguments of a function of the user's, whose parameters have types.
    fn list(&mut self, all: impl Iterator<Item = &'static Expr> + Clone) -> Vec<String> {
        self.values(all).into_iter().map(|code| code.text).collect()
    }

    /// An argument whose type the called function takes from it.
    pub(super) fn argument(&mut self, of: &'static Expr) -> String {
        let ty = self.type_of(of);
        typed(self.value(of), &ty).text
    }

    /// Arguments whose types the called function takes from them.
    pub(super) fn arguments(
        &mut self,
        all: impl Iterator<Item = &'static Expr> + Clone,
    ) -> Vec<String> {
        let types: Vec<Type> = all.clone().map(|one| self.type_of(one)).collect();
        let codes = self.values(all).into_iter().zip(&types);
        codes.map(|(code, ty)| typed(code, ty).text).collect()
    }

    /// A value of this type made of its parts.
    fn made(
        &mut self,
        parts: impl Iterator<Item = &'static Expr> + Clone,
        ty: &Type,
        [open, close]: [&str; 2],
    ) -> Code {
        let parts = self.list(parts).join(", ");
        Code::atom(format!("{}{open}{parts}{close}", ty.name()))
    }

    /// A struct; its fields may be given in any order.
    fn structure(&mut self, fields: &'static [(&'static str, Expr)], ty: &Type) -> Code {
        let values = self.list(fields.iter().map(|field| &field.1));
        let Type::Struct(_, order) = ty else {
            return self.vector(fields, &values, ty);
        };
        let of = |(name, _): &(&str, Type)| {
            let at = fields.iter().position(|field| field.0 == *name);
            at.map_or(String::new(), |at| values[at].clone())
        };
        let parts: Vec<String> = order.iter().map(of).collect();
        Code::atom(format!("{}{{{}}}", ty.name(), parts.join(", ")))
    }

    /// A vector or a pair by its fields.
    fn vector(
        &mut self,
        fields: &'static [(&'static str, Expr)],
        values: &[String],
        ty: &Type,
    ) -> Code {
        let order: &[&str] = match ty {
            Type::Pair => &["d", "d2"],
            Type::Vec2 => &["x", "y"],
            _ => &["x", "y", "z"],
        };
        let of = |name: &&str| {
            let at = fields.iter().position(|field| field.0 == *name);
            at.map_or(String::new(), |at| values[at].clone())
        };
        let parts: Vec<String> = order.iter().map(of).collect();
        Code::atom(format!("{}{{{}}}", ty.name(), parts.join(", ")))
    }

    /// `x as T`
    pub(super) fn cast(&mut self, of: &'static Expr, to: &Type) -> Code {
        let from = self.type_of(of);
        let code = self.value(of);
        if from == *to {
            return code;
        }
        let name = match to {
            Type::Integer(integer) => integer.name,
            Type::Bool => "bool",
            _ => "f32",
        };
        Code::atom(format!("nf::to_{name}({})", typed(code, &from).text))
    }

    /// A function of a number's or a vector's type.
    fn associated(&mut self, ty: Id, name: &'static str, arguments: &'static [Expr]) -> Code {
        let ty = self.slot(ty);
        let called = ty.name();
        match (name, arguments) {
            ("new", _) => {
                let values = self.list(arguments.iter()).join(", ");
                Code::atom(format!("{called}{{{values}}}"))
            }
            ("splat", [of]) => Code::atom(format!("nf::splat<{called}>({})", self.argument(of))),
            ("from" | "from_array", [of]) => match self.type_of(of) {
                from if from == ty => self.value(of),
                Type::Array(..) | Type::Tuple(_) => {
                    Code::atom(format!("nf::to_vector<{called}>({})", self.argument(of)))
                }
                _ => self.cast(of, &ty),
            },
            ("from_bits", [of]) => Code::atom(format!("nf::from_bits({})", self.argument(of))),
            (_, [of, rest @ ..]) => self.method(name, of, rest, of),
            _ => Code::atom(""),
        }
    }

    /// Whether a value cannot be written as one expression.
    pub(super) fn needs(&self, expression: &Expr) -> bool {
        match &expression.kind {
            Kind::If(..) | Kind::Match(..) | Kind::Block(_) => !self.is_plain(expression),
            Kind::Return(_)
            | Kind::Break
            | Kind::Continue
            | Kind::For(..)
            | Kind::Assign(..)
            | Kind::Update(..) => true,
            Kind::Field(of, _)
            | Kind::Part(of, _)
            | Kind::Negative(of)
            | Kind::Not(of)
            | Kind::Cast(of)
            | Kind::Repeat(of) => self.needs(of),
            Kind::Index(a, b) | Kind::Binary(_, a, b) => self.needs(a) || self.needs(b),
            Kind::Tuple(all)
            | Kind::Array(all)
            | Kind::Call(_, all)
            | Kind::MethodOfSelf(_, all)
            | Kind::Associated(_, _, all) => all.iter().any(|one| self.needs(one)),
            Kind::Method(_, of, all) => self.needs(of) || all.iter().any(|one| self.needs(one)),
            Kind::Struct(fields) => fields.iter().any(|field| self.needs(&field.1)),
            Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Local(_)
            | Kind::Constant(_)
            | Kind::Uniform(_)
            | Kind::Closure(..) => false,
        }
    }

    /// An argument of `map` or `fold`.
    pub(super) fn closure(
        &mut self,
        patterns: &'static [super::Pattern],
        body: &'static Expr,
        types: &[Type],
    ) -> Code {
        let lines = std::mem::take(&mut self.lines);
        self.indent += 4;
        let mut parameters = Vec::new();
        for (at, pattern) in patterns.iter().enumerate() {
            let ty = types.get(at).cloned().unwrap_or(Type::F32);
            parameters.push(self.parameter(pattern, &ty));
        }
        let short = self.lines.is_empty() && !self.needs(body);
        let result = self.type_of(body).name();
        let inner = match short {
            true => format!(" return {}; ", self.value(body).text),
            false => {
                self.run(body, &super::Tail::Return);
                format!("\n{}{:indent$}", self.lines, "", indent = self.indent - 4)
            }
        };
        self.indent -= 4;
        self.lines = lines;
        let parameters = parameters.join(", ");
        Code::atom(format!("[&]({parameters}) -> {result} {{{inner}}}"))
    }
}

/// A literal of C++.
pub(super) fn literal(digits: &str, ty: &Type) -> Code {
    let text = number(digits, ty);
    let level = match text.starts_with('-') {
        true => Level::Unary,
        false => Level::Atom,
    };
    Code {
        text,
        level,
        plain: matches!(ty, Type::Integer(_)),
    }
}

/// The same value, with the type of the text where it was a plain number.
pub(super) fn typed(code: Code, ty: &Type) -> Code {
    match code.plain {
        true => Code::atom(format!("{}({})", ty.name(), code.text)),
        false => code,
    }
}

/// The one value of a block.
pub(super) fn only_value(block: &'static [Statement]) -> Option<&'static Expr> {
    match block {
        [Statement::Value(value)] => Some(value),
        _ => None,
    }
}

/// Whether an operator compares.
pub(super) fn compares(operator: Operator) -> bool {
    use Operator::*;
    matches!(
        operator,
        Equal | Unequal | Less | AtMost | Greater | AtLeast
    )
}
