//! The state of a translation: scopes, names, and the holes of the text.

use super::{names::allowed, ty::Ty};
use proc_macro2::TokenStream;
use syn::{Ident, Type};

/// A function in C++, with holes.
pub(crate) struct Translated {
    /// Fields of `self` in the order of the uniforms.
    pub(crate) uses: Vec<Use>,
    /// Constants: the variable and the path.
    pub(crate) constants: Vec<(String, TokenStream)>,
    pub(crate) pieces: Vec<Piece>,
}

/// A use of `self`.
pub(crate) struct Use {
    /// The variable in the text.
    pub(crate) name: String,
    /// The Rust expression of its value, or of the method.
    pub(crate) value: TokenStream,
    pub(crate) kind: UseKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseKind {
    Field,
    /// An array that is indexed where it lies.
    Table,
    /// A method with its own text.
    Method,
}

/// The part that a function has in a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A function or a method that kernels call.
    Called,
    /// The kernel's function, or a potential's.
    Pair,
    /// The kernel's function for both points, which may call that for one.
    Symmetric,
}

/// A part of the text.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// The function's own name.
    Name,
    /// The declarations of fields and constants.
    Declarations,
    /// A Rust expression of type `String`, in which `device` is the text on the way.
    Hole(TokenStream),
}

/// A translated expression.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    pub(crate) text: String,
    pub(crate) ty: Ty,
    pub(crate) level: Level,
}

/// How tightly the outermost operator of an expression binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Operators whose precedence differs between the languages: always in brackets.
    Bits,
    Choice,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Unary,
    Atom,
}

impl Code {
    pub(super) fn new(text: impl Into<String>, ty: Ty, level: Level) -> Self {
        Self {
            text: text.into(),
            ty,
            level,
        }
    }

    pub(super) fn atom(text: impl Into<String>, ty: Ty) -> Self {
        Self::new(text, ty, Level::Atom)
    }

    /// The text, in brackets if it binds less tightly than `least`.
    pub(super) fn at(&self, least: Level) -> String {
        if self.level < least {
            format!("({})", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// A variable in scope.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) rust: String,
    pub(super) name: String,
    pub(super) ty: Ty,
    /// Functions within the function, made for values of blocks, around its declaration.
    pub(super) depth: usize,
}

pub(crate) struct Translator<'a> {
    /// Where the run-time half of the macros is.
    pub(super) krate: &'a syn::Path,
    /// Associated types of the `impl` around the function.
    pub(super) associated: &'a [(String, Type)],
    pub(super) role: Role,
    /// The function's name, which it must not call.
    pub(super) own_name: String,
    pub(super) scopes: Vec<Vec<Variable>>,
    pub(super) uses: Vec<Use>,
    pub(super) constants: Vec<(String, String, TokenStream)>,
    pub(super) holes: Vec<TokenStream>,
    /// The type that `return` gives.
    pub(super) result: Ty,
    /// Functions within the function around the present place.
    pub(super) depth: usize,
    /// Loops around the present place, within the innermost of those functions.
    pub(super) loops: usize,
    pub(super) has_self: bool,
    /// Spaces at the beginning of a line.
    pub(super) indent: usize,
    /// Temporary variables made so far.
    pub(super) temporaries: usize,
}

/// Marks of holes in texts.
pub(super) const HOLE: [char; 2] = ['\u{1}', '\u{2}'];
pub(super) const NAME: char = '\u{3}';
pub(super) const DECLARATIONS: char = '\u{4}';

impl Translator<'_> {
    /// Keeps an expression for a hole and returns its mark.
    pub(super) fn hole(&mut self, expression: TokenStream) -> String {
        let written = expression.to_string();
        let same = |hole: &TokenStream| hole.to_string() == written;
        let known = self.holes.iter().position(same);
        let at = known.unwrap_or_else(|| {
            self.holes.push(expression);
            self.holes.len() - 1
        });
        format!("{}{at}{}", HOLE[0], HOLE[1])
    }

    /// Takes a text apart at its marks.
    pub(super) fn pieces(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = text;
        let marks = [HOLE[0], NAME, DECLARATIONS];
        while let Some(at) = rest.find(marks) {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            let behind = &rest[at + 1..];
            rest = behind;
            match rest_mark(text, rest) {
                NAME => pieces.push(Piece::Name),
                DECLARATIONS => pieces.push(Piece::Declarations),
                _ => {
                    let end = behind.find(HOLE[1]).unwrap_or(0);
                    let number: usize = behind[..end].parse().unwrap_or(0);
                    pieces.push(Piece::Hole(self.holes[number].clone()));
                    rest = &behind[end + 1..];
                }
            }
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        pieces
    }

    /// A variable by its name in Rust, the innermost first.
    pub(super) fn variable(&self, name: &str) -> Option<&Variable> {
        let mut all = self
            .scopes
            .iter()
            .rev()
            .flat_map(|scope| scope.iter().rev());
        all.find(|variable| variable.rust == name)
    }

    /// Declares a variable and returns its name in the text: the user's, with a number if that name
    /// is visible already, because C++ knows no shadowing within a block and a variable's name is
    /// known in its own initialiser.
    pub(super) fn declare(&mut self, ident: &Ident, ty: Ty) -> String {
        let rust = ident.to_string();
        let name = self.free(&allowed(&rust));
        self.declare_as(rust, name.clone(), ty);
        name
    }

    pub(super) fn declare_as(&mut self, rust: String, name: String, ty: Ty) {
        let depth = self.depth;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Variable {
                rust,
                name,
                ty,
                depth,
            });
        }
    }

    /// A name that is not visible here.
    pub(super) fn free(&self, wanted: &str) -> String {
        let taken = |name: &String| {
            let variables = self.scopes.iter().flatten();
            variables.map(|variable| &variable.name).any(|n| n == name)
                || self.uses.iter().any(|used| used.name == *name)
                || self.constants.iter().any(|constant| constant.1 == *name)
        };
        let mut numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let plain = Some(wanted.to_owned()).filter(|name| !taken(name));
        plain
            .or_else(|| numbered.find(|name| !taken(name)))
            .unwrap_or_default()
    }

    /// A name for a value of the translator's.
    pub(super) fn temporary(&mut self) -> String {
        self.temporaries += 1;
        self.free(&format!("t{}", self.temporaries))
    }

    pub(super) fn spaces(&self) -> String {
        " ".repeat(self.indent)
    }
}

/// The mark right before `rest` in `text`; all marks are one byte long.
fn rest_mark(text: &str, rest: &str) -> char {
    char::from(text.as_bytes()[text.len() - rest.len() - 1])
}
