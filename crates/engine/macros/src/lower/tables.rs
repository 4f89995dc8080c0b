//! The tables that a function refers to by numbers, and scopes.

use proc_macro2::{Span, TokenStream};
use syn::Ident;

/// A value whose type the compiler infers.
pub(crate) struct Slot {
    pub(crate) ident: Ident,
    /// The conditions under which it exists.
    pub(crate) cfg: TokenStream,
    /// Whether the text needs its type.
    pub(crate) described: bool,
    /// The value's place in the source.
    pub(crate) span: Span,
}

/// A use of `self`.
pub(crate) struct Use {
    /// The variable in the text.
    pub(crate) name: String,
    /// The Rust expression of its value, or of the method.
    pub(crate) value: TokenStream,
    pub(crate) kind: UseKind,
    pub(crate) cfg: TokenStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseKind {
    Field,
    /// An array that is indexed where it lies.
    Table,
    /// A method with its own text.
    Method,
}

/// A constant: its name in the text, and the Rust expression of its value.
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) value: TokenStream,
    pub(crate) cfg: TokenStream,
}

/// A variable.
pub(super) struct Local {
    pub(super) name: String,
    pub(super) ty: u16,
    pub(super) mutable: bool,
    /// Closures around its declaration.
    pub(super) closures: usize,
    /// Whether its values are those of a range of constants.
    pub(super) counted: bool,
    /// The conditions under which it is declared.
    pub(super) cfg: TokenStream,
    /// The variable of the same name that is meant where it is not.
    pub(super) shadows: Option<u16>,
}

/// A name of a block: a variable, or an item, which is no variable.
pub(super) struct Name {
    pub(super) key: String,
    pub(super) local: Option<u16>,
}

#[derive(Default)]
pub(super) struct Scope {
    pub(super) names: Vec<Name>,
    /// Constants and imports of the block, for constants that are evaluated outside of it.
    pub(super) items: Vec<TokenStream>,
}
