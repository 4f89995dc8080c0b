//! Functions of the subset, drawn at random.
//!
//! Every expression is made for a type that is asked for, so the functions compile. Brackets stand
//! where Rust needs them and nowhere else: the translator has to know both precedences. Meanings
//! that Rust leaves open are avoided: signs and bits of NaN go through `sane`, and zeros that `min`
//! and `max` give are added to 0. Nothing panics: divisors of integers are at least 1, and indices
//! are remainders.

mod fields;
mod statements;
mod values;
mod vectors;

use nearfield_testkit::random::Random;

/// A type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ty {
    F32,
    U32,
    I32,
    Bool,
    /// `[f32; 3]`
    Array,
    /// `(f32, u32)`
    Tuple,
    Vec3,
    Vec2,
    /// A struct of channels.
    Point,
    Usize,
    U64,
}

impl Ty {
    const ALL: [Self; 11] = [
        Self::F32,
        Self::U32,
        Self::I32,
        Self::Bool,
        Self::Array,
        Self::Tuple,
        Self::Vec3,
        Self::Vec2,
        Self::Point,
        Self::Usize,
        Self::U64,
    ];

    /// In Rust.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::Bool => "bool",
            Self::Array => "[f32; 3]",
            Self::Tuple => "(f32, u32)",
            Self::Vec3 => "Vec3",
            Self::Vec2 => "Vec2",
            Self::Point => "Point",
            Self::Usize => "usize",
            Self::U64 => "u64",
        }
    }
}

/// The types of the arguments of all functions.
pub(super) const ARGUMENTS: [Ty; 12] = [
    Ty::F32,
    Ty::F32,
    Ty::U32,
    Ty::I32,
    Ty::Bool,
    Ty::Array,
    Ty::Tuple,
    Ty::Vec3,
    Ty::Vec2,
    Ty::Point,
    Ty::Usize,
    Ty::U64,
];

/// Constants: path in Rust and type.
const CONSTANTS: [(&str, Ty); 20] = [
    ("HALF", Ty::F32),
    ("TINY", Ty::F32),
    ("MASK", Ty::U32),
    ("MINUS", Ty::I32),
    ("DOWN", Ty::Vec3),
    ("f32::MAX", Ty::F32),
    ("f32::EPSILON", Ty::F32),
    ("f32::NEG_INFINITY", Ty::F32),
    ("std::f32::consts::PI", Ty::F32),
    ("u32::MAX", Ty::U32),
    ("Vec3::ONE", Ty::Vec3),
    ("Vec3::NEG_Y", Ty::Vec3),
    ("Vec2::ONE", Ty::Vec2),
    ("Vec2::X", Ty::Vec2),
    ("WIDE", Ty::U64),
    ("u64::MAX", Ty::U64),
    ("PLACE", Ty::Usize),
    ("consts::COUNT", Ty::Usize),
    ("consts::END", Ty::U32),
    ("i32::MIN", Ty::I32),
];

/// Names of arguments and variables, words of C++ among them.
const NAMES: [&str; 18] = [
    "a", "b", "c", "double", "e", "register", "template", "nf", "uniform", "linux", "short", "x",
    "x_2", "t1", "value", "auto", "assert", "r#type",
];

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    Free,
    /// As a method of the kernel, whose fields it reads.
    Method,
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) called: Called,
    pub(super) gives: Ty,
    /// As Rust.
    pub(super) text: String,
    /// Functions that a call of it runs.
    cost: usize,
}

/// Functions that a call runs at most: functions that call each other in loops would take years.
const MOST_COST: usize = 200;

/// How tightly the outermost operator of a Rust expression binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// `if`, `match`, blocks, conversions: always in brackets within others.
    Open,
    Or,
    And,
    Comparison,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Unary,
    Atom,
}

/// An expression.
struct Code(String, Level);

impl Code {
    fn atom(text: impl Into<String>) -> Self {
        Self(text.into(), Level::Atom)
    }

    /// In brackets if it binds less tightly than `least`.
    fn at(self, least: Level) -> String {
        if self.1 < least {
            format!("({})", self.0)
        } else {
            self.0
        }
    }
}

/// A variable in scope.
#[derive(Debug, Clone)]
struct Variable {
    name: String,
    ty: Ty,
    /// Statements of the present block may assign to it.
    mutable: bool,
}

/// Draws of a function; then everything is a leaf.
const DRAWS: usize = 300;

/// `count` functions. Later ones call earlier ones.
pub(super) fn functions(random: &mut Random, count: usize) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    while made.len() < count {
        let mut maker = Maker {
            random,
            left: DRAWS,
            known: &made,
            called: Called::Free,
            scope: Vec::new(),
            loops: 0,
            cost: 1,
            indent: 1,
        };
        let function = maker.function(made.len());
        made.push(function);
    }
    made
}

struct Maker<'a> {
    random: &'a mut Random,
    /// Draws that are left.
    left: usize,
    known: &'a [Made],
    called: Called,
    scope: Vec<Variable>,
    /// Loops around the present statement.
    loops: usize,
    /// Of the function so far.
    cost: usize,
    indent: usize,
}

impl Maker<'_> {
    /// A number below `limit`; 0 where no draws are left.
    fn below(&mut self, limit: usize) -> usize {
        self.left = self.left.saturating_sub(1);
        match self.left {
            0 => 0,
            _ => self.random.below(limit as u64) as usize,
        }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn spaces(&self) -> String {
        "    ".repeat(self.indent)
    }

    fn function(&mut self, number: usize) -> Made {
        let first = self.below(NAMES.len());
        let mut parameters = Vec::new();
        if self.below(3) > 0 {
            self.called = Called::Method;
            parameters.push("&self".to_owned());
        }
        for (k, ty) in ARGUMENTS.into_iter().enumerate() {
            let name = NAMES[(first + k) % NAMES.len()].to_owned();
            parameters.push(format!("{name}: {}", ty.name()));
            self.scope.push(Variable {
                name,
                ty,
                mutable: false,
            });
        }
        let gives = self.one(&Ty::ALL);
        let name = format!("drawn_{number}");
        let mut body = String::new();
        for _ in 0..self.below(5) {
            self.statement(gives, 2, &mut body);
        }
        let last = self.expression(gives, 4);
        let text = format!(
            "#[pair_fn(crate = nearfield_pairs)]\nfn {name}({}) -> {} {{\n{body}    {}\n}}\n",
            parameters.join(", "),
            gives.name(),
            last.0
        );
        let (called, cost) = (self.called, self.cost);
        Made {
            name,
            called,
            gives,
            text,
            cost,
        }
    }

    /// A name: new, or one that is known already, which is then shadowed.
    fn name(&mut self) -> String {
        self.one(&NAMES).to_owned()
    }

    fn variables(&self, ty: Ty) -> Vec<Variable> {
        // Of several with the same name the last is seen.
        let seen = |(at, variable): &(usize, &Variable)| {
            let behind = &self.scope[at + 1..];
            variable.ty == ty && behind.iter().all(|other| other.name != variable.name)
        };
        let all = self.scope.iter().enumerate().filter(seen);
        all.map(|(_, variable)| variable.clone()).collect()
    }
}
