//! Methods: of numbers and vectors, and of arrays and iterators over them.

use super::{
    super::{
        tree::{Expr, Kind, Operator},
        types::{Integer, Type},
    },
    Code, Level, Writer,
    values::typed,
};

impl Writer<'_> {
    pub(super) fn method(
        &mut self,
        name: &'static str,
        of: &'static Expr,
        arguments: &'static [Expr],
        whole: &'static Expr,
    ) -> Code {
        match (name, arguments) {
            ("iter" | "into_iter" | "copied" | "cloned" | "clone", _) => self.value(of),
            ("map" | "fold" | "zip" | "enumerate" | "rev" | "sum" | "product", _) => {
                self.iterated(name, of, arguments, whole)
            }
            ("wrapping_add", [by]) => self.binary(Operator::Add, of, by),
            ("wrapping_sub", [by]) => self.binary(Operator::Sub, of, by),
            ("wrapping_mul", [by]) => self.binary(Operator::Mul, of, by),
            _ => {
                let all = Arguments(of, arguments);
                let arguments = self.arguments(all.iter()).join(", ");
                Code::atom(format!("nf::{name}({arguments})"))
            }
        }
    }

    /// Methods of arrays and of iterators over them.
    fn iterated(
        &mut self,
        name: &'static str,
        of: &'static Expr,
        arguments: &'static [Expr],
        whole: &'static Expr,
    ) -> Code {
        let element = self.type_of(of).element();
        match (name, arguments) {
            ("zip", [other]) => {
                let [a, b] = self.both(of, other);
                Code::atom(format!("nf::zip({}, {})", a.text, b.text))
            }
            ("map", [f]) => {
                let values = self.value(of).text;
                let f = self.closure_of(f, &[element]);
                Code::atom(format!("nf::map({values}, {f})"))
            }
            ("fold", [start, f]) => {
                let ty = self.type_of(start);
                let [values, first] = self.both(of, start);
                let first = typed(first, &ty).text;
                let f = self.closure_of(f, &[ty, element]);
                Code::atom(format!("nf::fold({}, {first}, {f})", values.text))
            }
            ("sum" | "product", []) => {
                let values = self.value(of).text;
                let start = start_of(name, &self.type_of(whole));
                Code::atom(format!("nf::{name}({values}, {start})"))
            }
            _ => Code::atom(format!("nf::{name}({})", self.value(of).text)),
        }
    }

    fn closure_of(&mut self, f: &'static Expr, types: &[Type]) -> String {
        match &f.kind {
            Kind::Closure(patterns, body) => self.closure(patterns, body, types).at(Level::Atom),
            _ => self.value(f).text,
        }
    }

    /// The type of an array that a method of arrays and iterators gives.
    pub(super) fn type_of_sequence(&self, name: &str, of: &Expr, arguments: &[Expr]) -> Type {
        let ty = self.type_of(of);
        let length = |ty: &Type| match ty {
            Type::Array(_, length) => *length,
            _ => 0,
        };
        let array = |element, count| Type::Array(Box::new(element), count);
        match (name, arguments) {
            ("map", [f]) => array(self.type_of(f), length(&ty)),
            ("zip", [other]) => {
                let other = self.type_of(other);
                let count = length(&ty).min(length(&other));
                array(Type::Tuple(vec![ty.element(), other.element()]), count)
            }
            ("enumerate", _) => {
                let at = Type::Integer(Integer {
                    name: "usize",
                    signed: false,
                    bits: 64,
                });
                array(Type::Tuple(vec![at, ty.element()]), length(&ty))
            }
            _ => ty,
        }
    }
}

/// The first value of a sum or a product. Sums of f32 begin with −0, as those of Rust do.
fn start_of(name: &str, ty: &Type) -> String {
    let number = if name == "sum" { "0" } else { "1" };
    match ty {
        Type::F32 if name == "sum" => "-0.0f".to_owned(),
        Type::F32 => "1.0f".to_owned(),
        Type::Vec2 | Type::Vec3 => format!("nf::splat<{}>({number}.0f)", ty.name()),
        ty => format!("{}({number})", ty.name()),
    }
}

/// A receiver and the arguments behind it.
#[derive(Clone, Copy)]
struct Arguments(&'static Expr, &'static [Expr]);

impl Arguments {
    fn iter(self) -> impl Iterator<Item = &'static Expr> + Clone {
        let Self(first, rest) = self;
        (0..=rest.len()).map(move |at| match at {
            0 => first,
            at => &rest[at - 1],
        })
    }
}
