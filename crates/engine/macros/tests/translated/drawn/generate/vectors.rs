//! Random vectors, and structs of channels.

use super::{Code, Level, Maker, Ty};

/// Methods of a vector that give another one and take nothing.
const PLAIN: [&str; 10] = [
    "abs",
    "signum",
    "recip",
    "floor",
    "ceil",
    "trunc",
    "round",
    "fract",
    "normalize",
    "normalize_or_zero",
];

impl Maker<'_> {
    /// A vector of two or three numbers.
    pub(super) fn vector(&mut self, ty: Ty, depth: usize) -> Code {
        match self.below(14) {
            0 => {
                let count = if ty == Ty::Vec3 { 3 } else { 2 };
                let parts: Vec<_> = (0..count)
                    .map(|_| self.expression(Ty::F32, depth).0)
                    .collect();
                Code::atom(format!("{}::new({})", ty.name(), parts.join(", ")))
            }
            1..4 => {
                let (operator, level) = self.one(&[
                    ("+", Level::Sum),
                    ("-", Level::Sum),
                    ("*", Level::Product),
                    ("/", Level::Product),
                    ("%", Level::Product),
                ]);
                self.operated(ty, operator, level, depth)
            }
            4 => {
                let factor = self.expression(Ty::F32, depth).at(Level::Product);
                let of = self.expression(ty, depth).at(Level::Unary);
                let operator = self.one(&["*", "/"]);
                Code(format!("{factor} {operator} {of}"), Level::Product)
            }
            5 => {
                let of = self.expression(ty, depth);
                Code(format!("-{}", of.at(Level::Unary)), Level::Unary)
            }
            6 | 7 => {
                let method = self.one(&PLAIN);
                let of = self.expression(ty, depth).at(Level::Atom);
                Code::atom(format!("{of}.{method}()"))
            }
            8 | 9 => {
                let method = self.one(&[
                    "min",
                    "max",
                    "normalize_or",
                    "project_onto",
                    "reject_from",
                    "reflect",
                ]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                Code::atom(format!("{}.{method}({})", a.at(Level::Atom), b.0))
            }
            10 => {
                let [a, b, c] = [0; 3].map(|_| self.expression(ty, depth));
                Code::atom(format!("{}.mul_add({}, {})", a.at(Level::Atom), b.0, c.0))
            }
            11 => {
                let [a, b] = [0; 2].map(|_| self.expression(ty, depth));
                let share = self.expression(Ty::F32, depth);
                Code::atom(format!("{}.lerp({}, {})", a.at(Level::Atom), b.0, share.0))
            }
            12 => {
                let of = self.expression(ty, depth).at(Level::Atom);
                let longest = self.one(&["1.5", "1e-3", "HALF"]);
                Code::atom(format!("{of}.clamp_length_max({longest})"))
            }
            _ if ty == Ty::Vec3 => self.of_space(depth),
            _ => self.leaf(ty),
        }
    }

    /// Two vectors, or a vector and a number.
    fn operated(&mut self, ty: Ty, operator: &str, level: Level, depth: usize) -> Code {
        let left = self.expression(ty, depth).at(level);
        let of = self.one(&[ty, Ty::F32]);
        // The translator takes the left operand for a number where it does not know it.
        let next = match level {
            Level::Sum => Level::Product,
            _ => Level::Unary,
        };
        let right = self.expression(of, depth).at(next);
        Code(format!("{left} {operator} {right}"), level)
    }

    /// A vector by the functions that two numbers do not have.
    fn of_space(&mut self, depth: usize) -> Code {
        match self.below(6) {
            0 => {
                let value = self.expression(Ty::F32, depth);
                Code::atom(format!("Vec3::splat({})", value.0))
            }
            1 => {
                let make = self.one(&["from", "from_array"]);
                let array = self.expression(Ty::Array, depth);
                Code::atom(format!("Vec3::{make}({})", array.0))
            }
            2 => {
                let of = self.expression(Ty::Vec3, depth).at(Level::Atom);
                let signs = self.expression(Ty::Vec3, depth);
                Code::atom(format!("{of}.copysign(sane3({}))", signs.0))
            }
            3 => {
                let of = self.expression(Ty::Vec3, depth).at(Level::Atom);
                Code::atom(format!("{of}.clamp(DOWN, Vec3::ONE)"))
            }
            4 => {
                let point = self.expression(Ty::Point, depth);
                Code::atom(format!("{}.v", point.at(Level::Atom)))
            }
            _ => {
                let [a, b] = [0; 2].map(|_| self.expression(Ty::Vec3, depth));
                Code::atom(format!("{}.cross({})", a.at(Level::Atom), b.0))
            }
        }
    }

    /// A number of a vector.
    pub(super) fn of_vector(&mut self, depth: usize) -> Code {
        let ty = self.one(&[Ty::Vec3, Ty::Vec2]);
        let of = self.expression(ty, depth).at(Level::Atom);
        match self.below(5) {
            0 => {
                let parts: &[&str] = if ty == Ty::Vec3 {
                    &["x", "y", "z"]
                } else {
                    &["x", "y"]
                };
                Code::atom(format!("{of}.{}", self.one(parts)))
            }
            1 => {
                let method = self.one(&["dot", "distance", "distance_squared"]);
                let other = self.expression(ty, depth);
                Code::atom(format!("{of}.{method}({})", other.0))
            }
            2 => {
                let at = self.expression(Ty::U32, depth).at(Level::Product);
                let length = if ty == Ty::Vec3 { 3 } else { 2 };
                Code::atom(format!("{of}[({at} % {length}) as usize]"))
            }
            _ => {
                let method = self.one(&[
                    "length",
                    "length_squared",
                    "length_recip",
                    "min_element",
                    "max_element",
                    "element_sum",
                    "element_product",
                ]);
                Code::atom(format!("{of}.{method}()"))
            }
        }
    }

    /// A question of a vector.
    pub(super) fn question_of_vector(&mut self, depth: usize) -> Code {
        let ty = self.one(&[Ty::Vec3, Ty::Vec2]);
        let of = self.expression(ty, depth);
        match self.below(3) {
            // The translator refuses comparisons of what it knows to be a `Vec3`.
            0 if ty == Ty::Vec2 => {
                let operator = self.one(&["==", "!="]);
                let other = self.expression(ty, depth).at(Level::BitOr);
                let of = of.at(Level::BitOr);
                Code(format!("{of} {operator} {other}"), Level::Comparison)
            }
            _ => {
                let method = self.one(&["is_nan", "is_finite"]);
                Code::atom(format!("{}.{method}()", of.at(Level::Atom)))
            }
        }
    }

    /// A struct, its fields in any order.
    pub(super) fn structure(&mut self, depth: usize) -> Code {
        let x = self.expression(Ty::F32, depth).0;
        let n = self.expression(Ty::U32, depth).0;
        let v = self.expression(Ty::Vec3, depth).0;
        // Within conditions it stands in brackets.
        let text = match self.below(2) {
            0 => format!("Point {{ x: {x}, n: {n}, v: {v} }}"),
            _ => format!("Point {{ v: {v}, x: {x}, n: {n} }}"),
        };
        Code(text, Level::Open)
    }
}
