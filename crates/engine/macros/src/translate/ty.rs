//! Types as far as they are known.

/// The type of an expression, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ty {
    F32,
    U32,
    I32,
    Bool,
    /// A `usize`, or a variable of a loop whose type is not written.
    Index,
    /// An integer literal whose type follows from what it meets.
    Literal,
    Pair,
    Vec3,
    Array(Box<Ty>),
    Tuple(Vec<Ty>),
    Unknown,
}

impl Ty {
    /// The name in C++ where it is short.
    pub(crate) fn short(&self) -> Option<&'static str> {
        match self {
            Self::F32 => Some("float"),
            Self::U32 => Some("nf::u32"),
            Self::I32 => Some("nf::i32"),
            Self::Bool => Some("bool"),
            Self::Index => Some("int"),
            Self::Vec3 => Some("nf::Vec3"),
            _ => None,
        }
    }

    pub(crate) fn element(&self) -> Self {
        match self {
            Self::Array(element) => (**element).clone(),
            Self::Vec3 => Self::F32,
            _ => Self::Unknown,
        }
    }
}
