//! The types of texts.

use std::{any::TypeId, fmt::Write};

/// A type of values in a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// `f32`
    F32,
    /// An integer of C++, such as `nf::u32`: whether it is signed, its bits, and Rust's name.
    Integer(Integer),
    /// `bool`
    Bool,
    /// `glam::Vec2`
    Vec2,
    /// `glam::Vec3`
    Vec3,
    /// A pair as a kernel sees it.
    Pair,
    /// An array.
    Array(Box<Type>, usize),
    /// A tuple.
    Tuple(Vec<Type>),
    /// A struct: its name in the text, and the user's names of its fields with their types.
    Struct(String, Vec<(&'static str, Type)>),
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// Its name in Rust, and in the text behind `nf::`.
    pub name: &'static str,
    /// Whether it has negative values.
    pub signed: bool,
    /// Its size.
    pub bits: u32,
}

impl Type {
    /// Its name in C++.
    pub fn name(&self) -> String {
        match self {
            Self::F32 => "float".to_owned(),
            Self::Integer(integer) => format!("nf::{}", integer.name),
            Self::Bool => "bool".to_owned(),
            Self::Vec2 => "nf::Vec2".to_owned(),
            Self::Vec3 => "nf::Vec3".to_owned(),
            Self::Pair => "nf::Pair".to_owned(),
            Self::Array(of, length) => format!("nf::array<{}, {length}>", of.name()),
            Self::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(Self::name).collect();
                format!("nf::tuple<{}>", parts.join(", "))
            }
            Self::Struct(name, _) => format!("{NAMESPACE}::{name}"),
        }
    }

    /// The type of an element.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::Array(of, _) => (**of).clone(),
            _ => Self::F32,
        }
    }

    /// The type of a field.
    pub(super) fn field(&self, name: &str) -> Self {
        match self {
            Self::Struct(_, fields) => {
                let found = fields.iter().find(|field| field.0 == name);
                found.map_or(Self::F32, |field| field.1.clone())
            }
            Self::Pair if name == "d" => Self::Array(Box::new(Self::F32), 3),
            _ => Self::F32,
        }
    }

    /// The type of a part of a tuple.
    pub(super) fn part(&self, at: usize) -> Self {
        match self {
            Self::Tuple(parts) => parts.get(at).cloned().unwrap_or(Self::F32),
            _ => Self::F32,
        }
    }
}

/// The namespace that all names of the user are in.
pub(super) const NAMESPACE: &str = "translated";

/// A user's name in a text. It ends with an underscore, so that it is neither a word of C++ nor a
/// macro of any header, and no name that the translation makes.
pub(super) fn as_name(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '_' if text.is_empty() => text.push('v'),
            // Two underscores are the compiler's.
            '_' if text.ends_with('_') => text.push_str("u_"),
            c if c.is_ascii_alphanumeric() || c == '_' => text.push(c),
            c => {
                let _ = write!(text, "u{:x}", u32::from(c));
            }
        }
    }
    if text.ends_with('_') {
        text.push('u');
    }
    text.push('_');
    text
}

/// Structs that a text declares, each once.
#[derive(Debug, Default)]
pub struct Types {
    declared: Vec<Declared>,
}

#[derive(Debug)]
struct Declared {
    id: TypeId,
    ty: Type,
    text: String,
}

impl Types {
    /// Declares the struct `T` with these fields, each once, and returns it as a type.
    pub fn declare<T>(&mut self, name: &str, fields: Vec<(&'static str, Type)>) -> Type {
        let id = typeid::of::<T>();
        if let Some(known) = self.declared.iter().find(|known| known.id == id) {
            return known.ty.clone();
        }
        let plain = as_name(name);
        let mut unique = plain.clone();
        let taken = |name: &String, all: &[Declared]| {
            all.iter()
                .any(|known| matches!(&known.ty, Type::Struct(n, _) if n == name))
        };
        for number in 2.. {
            if !taken(&unique, &self.declared) {
                break;
            }
            unique = format!("{plain}{number}");
        }
        let text = declaration(&unique, &fields);
        let ty = Type::Struct(unique, fields);
        self.declared.push(Declared {
            id,
            ty: ty.clone(),
            text,
        });
        ty
    }

    /// Declarations in an order in which every struct follows those of its fields.
    pub(super) fn declarations(&self) -> impl Iterator<Item = &str> {
        self.declared.iter().map(|declared| declared.text.as_str())
    }
}

/// The declaration of a struct, with its layout among floats.
fn declaration(name: &str, fields: &[(&'static str, Type)]) -> String {
    let mut text = format!("struct {name} {{\n");
    let (mut read, mut write, mut count) = (String::new(), String::new(), String::from("0"));
    for (field, ty) in fields {
        let (field, ty) = (as_name(field), ty.name());
        let _ = writeln!(text, "    {ty} {field};");
        let _ = writeln!(
            read,
            "        value.{field} = nf::read<{ty}>(at + ({count}));"
        );
        let _ = writeln!(write, "        nf::write(at + ({count}), value.{field});");
        let _ = write!(count, " + nf::layout<{ty}>::COUNT");
    }
    let _ = write!(
        text,
        "    static constexpr int COUNT = {count};\n    \
         static __forceinline__ {name} read(const float* at) {{\n        \
         {name} value;\n{read}        return value;\n    }}\n    \
         static __forceinline__ void write(float* at, const {name}& value) {{\n{write}    }}\n\
         }};\n"
    );
    text
}
