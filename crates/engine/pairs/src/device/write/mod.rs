//! From a tree and the types of its slots to the text of a function.
//!
//! Every value is a piece of text with the precedence of its outermost operator. A value that needs
//! statements, such as an `if` with a `let` in it, has them written before the statement that it is
//! in, and its operands to the left are kept in variables first: the order of evaluation is Rust's.
//!
//! Integers are of the types of `kernels/cuda/pairs/subset.cuh`, whose operators are Rust's in a
//! release build. A plain C++ number is written where the other operand or a declaration gives it
//! its type.

mod choices;
mod loops;
mod methods;
mod operators;
mod values;

use super::{
    tree::{Body, Expr, Id, Kind, NONE, Pattern, Statement},
    types::{Type, as_name},
};
use std::{collections::BTreeSet, fmt::Write};

/// A constant of a function.
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) integer: Option<i128>,
}

/// A use of `self`.
#[derive(Debug)]
pub(super) enum Used {
    /// The variable that holds it, and its type.
    Value(String, Type),
    /// The beginning of a call: name and first argument.
    Method(String),
    /// It is not there under the conditions of this build.
    None,
}

/// The tables that a tree refers to.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) types: Vec<Type>,
    pub(super) constants: Vec<Constant>,
    pub(super) used: Vec<Used>,
    pub(super) callees: Vec<String>,
    /// Names in the text that variables cannot have.
    pub(super) names: BTreeSet<String>,
}

/// A piece of text.
#[derive(Debug, Clone)]
struct Code {
    text: String,
    level: Level,
    /// A number of C++, whose type is that of its surroundings.
    plain: bool,
}

/// How tightly the outermost operator of a text binds, in C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Choice,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
    Atom,
}

impl Level {
    /// The next tighter one.
    fn next(self) -> Self {
        use Level::*;
        match self {
            Choice => Or,
            Or => And,
            And => BitOr,
            BitOr => BitXor,
            BitXor => BitAnd,
            BitAnd => Equality,
            Equality => Relation,
            Relation => Shift,
            Shift => Sum,
            Sum => Product,
            Product => Unary,
            Unary | Atom => Atom,
        }
    }
}

impl Code {
    fn new(text: impl Into<String>, level: Level) -> Self {
        let (text, plain) = (text.into(), false);
        Self { text, level, plain }
    }

    fn atom(text: impl Into<String>) -> Self {
        Self::new(text, Level::Atom)
    }

    /// The text, in brackets if it binds less tightly than `least`.
    fn at(&self, least: Level) -> String {
        match self.level < least {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }
}

/// The use of the value at the end of a block.
#[derive(Debug, Clone)]
enum Tail {
    Drop,
    Return,
    /// It is assigned to this variable.
    Assign(String),
}

struct Writer<'a> {
    body: &'static Body,
    all: &'a References,
    names: BTreeSet<String>,
    /// The text of every variable: its name, or what it stands for.
    locals: Vec<String>,
    lines: String,
    indent: usize,
    temporaries: usize,
}

/// Parameters and body of a function.
pub(super) struct Written {
    pub(super) result: String,
    pub(super) parameters: String,
    /// Lines, the declarations of uniforms and constants being before them.
    pub(super) lines: String,
}

/// Writes a function.
pub(super) fn function(body: &'static Body, all: &References) -> Written {
    let mut writer = Writer {
        body,
        all,
        names: all.names.clone(),
        locals: vec![String::new(); body.locals.len()],
        lines: String::new(),
        indent: 4,
        temporaries: 0,
    };
    let mut parameters = Vec::new();
    if body.receiver {
        parameters.push("const float* uniform".to_owned());
    }
    for parameter in body.parameters {
        let ty = writer.slot(parameter.ty);
        parameters.push(writer.parameter(&parameter.pattern, &ty));
    }
    writer.block(body.block, &Tail::Return);
    Written {
        result: writer.slot(body.result).name(),
        parameters: parameters.join(", "),
        lines: writer.lines,
    }
}

impl Writer<'_> {
    /// The type in a slot.
    fn slot(&self, id: Id) -> Type {
        let found = self.all.types.get(usize::from(id));
        found.cloned().unwrap_or(Type::F32)
    }

    /// The variable that a name means under the conditions of this build.
    fn meant(&self, mut id: Id) -> usize {
        while let Some(local) = self.body.locals.get(usize::from(id)) {
            if local.there {
                break;
            }
            id = local.shadows;
        }
        usize::from(id).min(self.body.locals.len() - 1)
    }

    fn local_type(&self, id: Id) -> Type {
        self.slot(self.body.locals[self.meant(id)].ty)
    }

    fn mutable(&self, id: Id) -> bool {
        self.body.locals[self.meant(id)].mutable
    }

    /// The value of an assignment, which is there before the place is looked for.
    fn first(&mut self, value: &'static Expr, place: &'static Expr) -> Code {
        let ty = self.type_of(value);
        let code = self.value(value);
        match self.needs(place) {
            true => self.kept(code, &ty),
            false => code,
        }
    }

    /// The text of a place that is assigned to: its variable is not copied.
    fn place(&mut self, expression: &'static Expr) -> String {
        match &expression.kind {
            Kind::Field(of, name) => {
                let ty = self.type_of(of);
                format!("{}.{}", self.place(of), member(&ty, name))
            }
            Kind::Part(of, at) => format!("{}._{at}", self.place(of)),
            Kind::Index(of, at) => {
                let of = self.place(of);
                format!("{of}[{}]", self.value(at).text)
            }
            _ => self.value(expression).text,
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.lines, "{:indent$}{text}", "", indent = self.indent);
    }

    /// Lines in braces, one step further in. `head` ends with the opening brace.
    fn braced(&mut self, head: &str, end: &str, f: impl FnOnce(&mut Self)) {
        self.line(head);
        self.indent += 4;
        f(self);
        self.indent -= 4;
        self.line(end);
    }

    /// A name that no other variable of the function has: C++ knows no shadowing within a block,
    /// and a variable's name is known in its own initialiser.
    fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        for number in 2.. {
            if self.names.insert(name.clone()) {
                break;
            }
            name = format!("{wanted}{number}");
        }
        name
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t{}", self.temporaries)
    }

    /// Gives a variable its name.
    fn declare(&mut self, id: Id) -> String {
        let wanted = as_name(self.body.locals[usize::from(id)].name);
        let name = self.unique(&wanted);
        self.locals[usize::from(id)] = name.clone();
        name
    }

    /// `const T name`, or `T name` of a variable that is assigned to.
    fn declared(&mut self, id: Id) -> String {
        let name = self.declare(id);
        let ty = self.local_type(id).name();
        match self.mutable(id) {
            true => format!("{ty} {name}"),
            false => format!("const {ty} {name}"),
        }
    }

    /// A parameter; what takes it apart goes into the lines.
    fn parameter(&mut self, pattern: &Pattern, ty: &Type) -> String {
        match pattern {
            Pattern::Name(id) => self.declared(*id),
            Pattern::Any => ty.name(),
            Pattern::Tuple([]) => ty.name(),
            pattern => {
                let name = self.temporary();
                self.take_apart(pattern, &name, ty);
                format!("const {} {name}", ty.name())
            }
        }
    }

    /// Declares the variables of a pattern for a value that is a name or a part of one.
    fn take_apart(&mut self, pattern: &Pattern, value: &str, ty: &Type) {
        if let Pattern::Name(id) = pattern {
            let declared = self.declared(*id);
            return self.line(&format!("{declared} = {value};"));
        }
        for (part, text, ty) in parts(pattern, value, ty) {
            self.take_apart(part, &text, &ty);
        }
    }

    /// The statements of a block.
    fn block(&mut self, block: &'static [Statement], tail: &Tail) {
        for statement in block {
            match statement {
                Statement::Let(pattern, value) => self.binding(pattern, value),
                Statement::Run(expression) => self.run(expression, &Tail::Drop),
                Statement::Value(expression) => self.run(expression, tail),
            }
        }
    }

    fn binding(&mut self, pattern: &'static Pattern, value: &'static Expr) {
        let ty = self.type_of(value);
        match pattern {
            Pattern::Name(id) if self.needs(value) && branches(value) => {
                // The name is not known in its own value.
                let name = {
                    let wanted = as_name(self.body.locals[usize::from(*id)].name);
                    self.unique(&wanted)
                };
                self.line(&format!("{} {name};", self.local_type(*id).name()));
                self.run(value, &Tail::Assign(name.clone()));
                self.locals[usize::from(*id)] = name;
            }
            Pattern::Name(id) => {
                let value = self.value(value);
                let declared = self.declared(*id);
                self.line(&format!("{declared} = {};", value.text));
            }
            Pattern::Any => self.run(value, &Tail::Drop),
            pattern => {
                let code = self.value(value);
                let kept = self.kept(code, &ty);
                self.take_apart(pattern, &kept.text, &ty);
            }
        }
    }

    /// Keeps a value in a variable.
    fn kept(&mut self, code: Code, ty: &Type) -> Code {
        let name = self.temporary();
        self.line(&format!("const {} {name} = {};", ty.name(), code.text));
        Code::atom(name)
    }

    /// An expression as a statement, or at the end of a block.
    fn run(&mut self, expression: &'static Expr, tail: &Tail) {
        let plain = !matches!(tail, Tail::Drop) && !self.needs(expression);
        match &expression.kind {
            Kind::If(..) | Kind::Match(..) if !plain => self.branch(expression, tail),
            Kind::Block(block) if !plain => {
                self.braced("{", "}", |own| own.block(block, tail));
            }
            Kind::Return(value) => self.run(value, &Tail::Return),
            Kind::Break => self.line("break;"),
            Kind::Continue => self.line("continue;"),
            Kind::For(pattern, over, block) => self.repeat(pattern, over, block),
            Kind::Assign(place, value) => {
                let value = self.first(value, place).text;
                let place = self.place(place);
                self.line(&format!("{place} = {value};"));
            }
            Kind::Update(operator, place, value) => self.update(*operator, place, value),
            Kind::Tuple([]) if matches!(tail, Tail::Drop) => {}
            _ => match tail {
                Tail::Drop if !self.needs(expression) => {}
                Tail::Drop => drop(self.value(expression)),
                Tail::Return => {
                    let value = self.value(expression);
                    self.line(&format!("return {};", value.text));
                }
                Tail::Assign(name) => {
                    let value = self.value(expression);
                    self.line(&format!("{name} = {};", value.text));
                }
            },
        }
    }

    /// The type of a value.
    fn type_of(&self, expression: &Expr) -> Type {
        if expression.ty != NONE {
            return self.slot(expression.ty);
        }
        match &expression.kind {
            Kind::Bool(_) => Type::Bool,
            Kind::Local(id) => self.local_type(*id),
            Kind::Constant(id) => self.all.constants[usize::from(*id)].ty.clone(),
            Kind::Uniform(id) => match &self.all.used[usize::from(*id)] {
                Used::Value(_, ty) => ty.clone(),
                _ => Type::F32,
            },
            Kind::Field(of, name) => self.type_of(of).field(name),
            Kind::Part(of, at) => self.type_of(of).part(*at as usize),
            Kind::Index(of, _) => self.type_of(of).element(),
            Kind::Closure(_, body) => self.type_of(body),
            Kind::Method(name, of, arguments) => self.type_of_sequence(name, of, arguments),
            _ => Type::Tuple(Vec::new()),
        }
    }
}

/// The parts of a pattern that takes a value apart: each with its text and type.
fn parts<'p>(pattern: &'p Pattern, value: &str, ty: &Type) -> Vec<(&'p Pattern, String, Type)> {
    match pattern {
        Pattern::Tuple(parts) => {
            let one = |(at, part)| (part, format!("{value}._{at}"), ty.part(at));
            parts.iter().enumerate().map(one).collect()
        }
        Pattern::Array(parts) => {
            let one = |(at, part)| (part, format!("{value}[{at}]"), ty.element());
            parts.iter().enumerate().map(one).collect()
        }
        Pattern::Struct(fields) => {
            let one = |(name, part): &'p (&str, Pattern)| {
                (
                    part,
                    format!("{value}.{}", member(ty, name)),
                    ty.field(name),
                )
            };
            fields.iter().map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// The name of a field in the text.
fn member(ty: &Type, name: &str) -> String {
    match ty {
        Type::Struct(..) => as_name(name),
        _ => name.to_owned(),
    }
}

/// Whether an expression is a choice or a block.
fn branches(expression: &Expr) -> bool {
    matches!(
        expression.kind,
        Kind::If(..) | Kind::Match(..) | Kind::Block(_)
    )
}
