//! A function as constant data, which `nearfield-macros` writes next to it.
//!
//! Numbers stand for what the tree does not hold: types by the numbers of slots, variables by their
//! place in [`Body::locals`], constants, functions called and uses of `self` by their order.

/// The number of a slot, a variable, a constant, a function or a use of `self`.
pub type Id = u16;

/// No slot: the type follows from the parts.
pub const NONE: Id = Id::MAX;

/// A function.
#[derive(Debug)]
pub struct Body {
    /// Whether it is a method.
    pub receiver: bool,
    /// Parameters other than `self`.
    pub parameters: &'static [Parameter],
    /// All variables.
    pub locals: &'static [Local],
    /// The slot of the result.
    pub result: Id,
    /// The statements.
    pub block: Block,
}

/// Statements of a block.
pub type Block = &'static [Statement];

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Takes it apart.
    pub pattern: Pattern,
    /// The slot of its type.
    pub ty: Id,
}

/// A variable.
#[derive(Debug)]
pub struct Local {
    /// The user's name.
    pub name: &'static str,
    /// Its slot.
    pub ty: Id,
    /// Whether it is assigned to.
    pub mutable: bool,
    /// Whether it is declared under the conditions of this build.
    pub there: bool,
    /// The variable that its name means if it is not, or [`NONE`].
    pub shadows: Id,
}

/// A statement.
#[derive(Debug)]
pub enum Statement {
    /// `let pattern = value;`
    Let(Pattern, Expr),
    /// An expression whose value is thrown away.
    Run(Expr),
    /// The value of the block.
    Value(Expr),
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    /// The slot of its type, or [`NONE`].
    pub ty: Id,
    /// The expression itself.
    pub kind: Kind,
}

/// A part of an expression.
pub type Of = &'static Expr;

/// The kind of an expression, with its parts.
#[derive(Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool(bool),
    /// A number, as a decimal with its sign.
    Number(&'static str),
    /// A variable.
    Local(Id),
    /// A constant.
    Constant(Id),
    /// A field of `self`, or what is evaluated on the CPU.
    Uniform(Id),
    /// A field of a struct or a vector.
    Field(Of, &'static str),
    /// A part of a tuple.
    Part(Of, u32),
    /// An element.
    Index(Of, Of),
    /// `-x`
    Negative(Of),
    /// `!x`
    Not(Of),
    /// Two operands.
    Binary(Operator, Of, Of),
    /// `x as T`, where T is the expression's own type.
    Cast(Of),
    /// `(a, b)`
    Tuple(&'static [Expr]),
    /// `[a, b]`
    Array(&'static [Expr]),
    /// `[a; N]`
    Repeat(Of),
    /// Fields by their names.
    Struct(&'static [(&'static str, Expr)]),
    /// A function with a text of its own.
    Call(Id, &'static [Expr]),
    /// A function of the type in a slot, such as `Vec3::new` or `f32::max`.
    Associated(Id, &'static str, &'static [Expr]),
    /// A method that the text has a function for.
    Method(&'static str, Of, &'static [Expr]),
    /// A method of `self` with a text of its own.
    MethodOfSelf(Id, &'static [Expr]),
    /// An argument of `map` or `fold`.
    Closure(&'static [Pattern], Of),
    /// `if`, with the block and what follows `else`.
    If(Of, Block, Option<Of>),
    /// `match`
    Match(Of, &'static [Arm]),
    /// A block.
    Block(Block),
    /// `return`
    Return(Of),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// A loop.
    For(&'static Pattern, Over, Block),
    /// `place = value`
    Assign(Of, Of),
    /// `place += value`, or another operator.
    Update(Operator, Of, Of),
}

/// The values of a loop.
#[derive(Debug)]
pub enum Over {
    /// A range of numbers.
    Range {
        /// The first number.
        from: Of,
        /// The end.
        to: Of,
        /// Whether the end is the last number.
        closed: bool,
        /// From the last number to the first.
        reversed: bool,
    },
    /// An array, or an iterator over one.
    Values(Of),
}

/// An arm of a `match`.
#[derive(Debug)]
pub struct Arm {
    /// The values that it is for.
    pub pattern: Pattern,
    /// The condition after `if`.
    pub guard: Option<Of>,
    /// Its value.
    pub body: Of,
}

/// A pattern.
#[derive(Debug)]
pub enum Pattern {
    /// `_`
    Any,
    /// A variable.
    Name(Id),
    /// A variable that matches a pattern.
    NameOf(Id, &'static Pattern),
    /// A number, or `true` or `false`.
    Number(&'static str),
    /// A constant.
    Constant(Id),
    /// A range, with `Any` where it has no end.
    Range {
        /// The first value.
        from: &'static Pattern,
        /// The end.
        to: &'static Pattern,
        /// Whether the end belongs to it.
        closed: bool,
    },
    /// `a | b`
    Or(&'static [Pattern]),
    /// Parts of a tuple.
    Tuple(&'static [Pattern]),
    /// Elements of an array.
    Array(&'static [Pattern]),
    /// Fields of a struct.
    Struct(&'static [(&'static str, Pattern)]),
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}
