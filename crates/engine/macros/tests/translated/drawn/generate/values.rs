//! Random expressions of a type.

use super::{ARGUMENTS, CONSTANTS, Called, Code, Level, MOST_COST, Made, Maker, Ty, Variable};

impl Maker<'_> {
    /// An index of an array.
    pub(super) fn index(&mut self) -> String {
        match self.below(4) {
            0 | 1 => self.below(3).to_string(),
            2 => {
                let number = self.expression(Ty::U32, 1);
                format!("({} % 3) as usize", number.at(Level::Product))
            }
            _ => {
                let place = self.expression(Ty::Usize, 1);
                format!("{} % 3", place.at(Level::Product))
            }
        }
    }

    pub(super) fn expression(&mut self, ty: Ty, depth: usize) -> Code {
        if depth == 0 || self.left == 0 {
            return self.leaf(ty);
        }
        match self.below(12) {
            0 | 1 => self.leaf(ty),
            2 => self.choice(ty, depth - 1),
            3 => self.call(ty, depth - 1),
            _ => match ty {
                Ty::F32 => self.float(depth - 1),
                Ty::U32 | Ty::I32 | Ty::Usize | Ty::U64 => self.integer(ty, depth - 1),
                Ty::Bool => self.bool(depth - 1),
                Ty::Array => self.array(depth - 1),
                Ty::Tuple => {
                    let (a, b) = (
                        self.expression(Ty::F32, depth - 1),
                        self.expression(Ty::U32, depth - 1),
                    );
                    Code::atom(format!("({}, {})", a.0, b.0))
                }
                Ty::Vec3 | Ty::Vec2 => self.vector(ty, depth - 1),
                Ty::Point => self.structure(depth - 1),
            },
        }
    }

    pub(super) fn leaf(&mut self, ty: Ty) -> Code {
        if self.below(4) == 0
            && let Some(own) = self.own(ty)
        {
            return own;
        }
        let variables = self.variables(ty);
        if !variables.is_empty() && self.below(3) > 0 {
            return Code::atom(variables[self.below(variables.len())].name.clone());
        }
        let constants: Vec<_> = CONSTANTS.iter().filter(|known| known.1 == ty).collect();
        if !constants.is_empty() && self.below(4) == 0 {
            return Code::atom(constants[self.below(constants.len())].0);
        }
        match ty {
            Ty::F32 => {
                let known = self.one(&["0.0", "1.0", "0.5", "2.5", "1e-3", "3e7", "0.1", "1e30"]);
                Code::atom(format!("{known}f32"))
            }
            Ty::U32 => {
                let known = self.one(&["0", "1", "2", "7", "31", "4294967295", "0x7fff"]);
                Code::atom(format!("{known}u32"))
            }
            Ty::I32 => {
                let known = self.one(&["0", "1", "3", "31", "2147483647"]);
                Code::atom(format!("{known}i32"))
            }
            Ty::Usize => {
                Code::atom(self.one(&["0usize", "1usize", "2usize", "31usize", "4294967296usize"]))
            }
            Ty::U64 => Code::atom(self.one(&[
                "0u64",
                "1u64",
                "63u64",
                "4294967295u64",
                "0x9e3779b97f4a7c15u64",
            ])),
            Ty::Bool => Code::atom(self.one(&["true", "false"])),
            Ty::Array => {
                let value = self.leaf(Ty::F32);
                Code::atom(format!("[{}; 3]", value.0))
            }
            Ty::Tuple => {
                let (a, b) = (self.leaf(Ty::F32), self.leaf(Ty::U32));
                Code::atom(format!("({}, {})", a.0, b.0))
            }
            Ty::Vec3 => {
                let value = self.leaf(Ty::F32);
                Code::atom(format!("Vec3::new(0.0, {}, -1.5)", value.0))
            }
            Ty::Vec2 => {
                let value = self.leaf(Ty::F32);
                Code::atom(format!("Vec2::new({}, 2.0)", value.0))
            }
            Ty::Point => {
                let value = self.leaf(Ty::F32);
                let text = format!("Point {{ x: {}, n: 3u32, v: Vec3::ONE }}", value.0);
                Code(text, Level::Open)
            }
        }
    }

    /// `if`, `match` or a block as a value.
    fn choice(&mut self, ty: Ty, depth: usize) -> Code {
        match self.below(4) {
            0 => {
                let of = self.one(&[Ty::U32, Ty::Usize, Ty::U64]);
                let value = self.expression(of, depth);
                let [a, b, c] = [0; 3].map(|_| self.expression(ty, depth).0);
                Code(
                    format!("match {} {{ 0 => {a}, 1..=9 => {b}, _ => {c} }}", value.0),
                    Level::Open,
                )
            }
            1 => {
                let mark = self.scope.len();
                let of = self.one(&Ty::ALL);
                let value = self.expression(of, depth);
                let name = self.name();
                self.scope.push(Variable {
                    name: name.clone(),
                    ty: of,
                    mutable: false,
                });
                let last = self.expression(ty, depth);
                self.scope.truncate(mark);
                Code(
                    format!("{{ let {name} = {}; {} }}", value.0, last.0),
                    Level::Open,
                )
            }
            _ => {
                let test = self.expression(Ty::Bool, depth);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                Code(
                    format!("if {} {{ {} }} else {{ {} }}", test.0, a.0, b.0),
                    Level::Open,
                )
            }
        }
    }

    /// A call of an earlier function.
    fn call(&mut self, ty: Ty, depth: usize) -> Code {
        let own = self.called;
        let callable = |made: &&Made| {
            made.gives == ty && (made.called == Called::Free || own == Called::Method)
        };
        let known: Vec<_> = self.known.iter().filter(callable).collect();
        if known.is_empty() {
            return self.leaf(ty);
        }
        let called = known[self.below(known.len())].clone();
        // A closure of an array or a fold runs three times, a loop up to six.
        let cost = called.cost * 18usize.pow(self.loops as u32 + 1);
        if self.cost + cost > MOST_COST {
            return self.leaf(ty);
        }
        self.cost += cost;
        let name = called.name;
        let depth = depth.min(1);
        let arguments = ARGUMENTS.map(|ty| self.expression(ty, depth).0);
        let on = match called.called {
            Called::Free => "",
            Called::Method => "self.",
        };
        Code::atom(format!("{on}{name}({})", arguments.join(", ")))
    }

    /// Two operands and an operator that groups from the left.
    fn binary(&mut self, ty: Ty, operator: &str, level: Level, depth: usize) -> Code {
        let left = self.expression(ty, depth).at(level);
        let next = match level {
            Level::Sum => Level::Product,
            Level::Product => Level::Unary,
            Level::Shift => Level::Sum,
            Level::BitAnd => Level::Shift,
            Level::BitXor => Level::BitAnd,
            Level::BitOr => Level::BitXor,
            _ => Level::Atom,
        };
        let right = match (ty, self.below(6)) {
            // Their types follow from the left operand's.
            (Ty::F32, 0) => self.one(&["0.75", "3.0", "1e-6"]).to_owned(),
            (Ty::U32 | Ty::I32, 0) => self.one(&["1", "3", "255"]).to_owned(),
            _ => self.expression(ty, depth).at(next),
        };
        Code(format!("{left} {operator} {right}"), level)
    }

    fn float(&mut self, depth: usize) -> Code {
        let receiver = |maker: &mut Self| maker.expression(Ty::F32, depth).at(Level::Atom);
        match self.below(22) {
            18..20 => self.of_vector(depth),
            20 => match self.element(Ty::F32, depth) {
                Some(element) => element,
                None => self.leaf(Ty::F32),
            },
            21 => {
                let point = self.expression(Ty::Point, depth);
                Code::atom(format!("{}.x", point.at(Level::Atom)))
            }
            0..3 => {
                let operator = self.one(&["+", "-"]);
                self.binary(Ty::F32, operator, Level::Sum, depth)
            }
            3..6 => {
                let operator = self.one(&["*", "/", "%"]);
                self.binary(Ty::F32, operator, Level::Product, depth)
            }
            6 => {
                let of = self.expression(Ty::F32, depth);
                Code(format!("-{}", of.at(Level::Unary)), Level::Unary)
            }
            7 => {
                let method = self.one(&[
                    "abs",
                    "sqrt",
                    "recip",
                    "floor",
                    "ceil",
                    "trunc",
                    "round",
                    "round_ties_even",
                    "fract",
                ]);
                Code::atom(format!("{}.{method}()", receiver(self)))
            }
            8 => {
                let method = self.one(&["min", "max"]);
                let (a, b) = (receiver(self), self.expression(Ty::F32, depth));
                Code(format!("{a}.{method}({}) + 0.0", b.0), Level::Sum)
            }
            9 => {
                let (low, high) = self.one(&[("-0.5", "2.0"), ("0.0", "1e30"), ("HALF", "1.5")]);
                Code::atom(format!("{}.clamp({low}, {high})", receiver(self)))
            }
            10 => {
                let [a, b, c] = [0; 3].map(|_| self.expression(Ty::F32, depth));
                Code::atom(format!("{}.mul_add({}, {})", a.at(Level::Atom), b.0, c.0))
            }
            11 => {
                // Of others the Rust compiler rounds the powers of constants once.
                Code::atom(format!("{}.powi(2)", receiver(self)))
            }
            12 => {
                let (a, b) = (receiver(self), self.expression(Ty::F32, depth));
                Code::atom(format!("{a}.copysign(sane({}))", b.0))
            }
            13 => {
                let of = self.one(&[Ty::U32, Ty::I32, Ty::Usize, Ty::U64]);
                let number = self.expression(of, depth).at(Level::Atom);
                Code(format!("{number} as f32"), Level::Open)
            }
            14 => {
                let (array, index) = (self.expression(Ty::Array, depth), self.index());
                Code::atom(format!("{}[{index}]", array.at(Level::Atom)))
            }
            15 => {
                let tuple = self.expression(Ty::Tuple, depth);
                Code::atom(format!("{}.0", tuple.at(Level::Atom)))
            }
            16 => {
                let bits = self.expression(Ty::U32, depth);
                Code::atom(format!("f32::from_bits({})", bits.0))
            }
            _ => self.sum(depth),
        }
    }

    /// A number from the elements of arrays.
    fn sum(&mut self, depth: usize) -> Code {
        let [a, b] = [0; 2].map(|_| self.expression(Ty::Array, depth).at(Level::Atom));
        match self.below(3) {
            0 => Code::atom(format!(
                "{a}.iter().zip(&{b}).map(|(x, y)| x * y).sum::<f32>()"
            )),
            1 => {
                let start = self.expression(Ty::F32, depth);
                Code::atom(format!(
                    "{a}.iter().rev().fold({}, |sum, x| sum * 0.5 + x)",
                    start.0
                ))
            }
            _ => Code::atom(format!("{a}.iter().map(|x| x - 0.25).product::<f32>()")),
        }
    }

    fn integer(&mut self, ty: Ty, depth: usize) -> Code {
        let one = match ty {
            Ty::I32 => "1i32",
            _ => "1",
        };
        if self.below(8) == 0 {
            return self.looked_up(ty, depth);
        }
        match self.below(14) {
            0 | 1 => {
                let operator = self.one(&["+", "-"]);
                self.binary(ty, operator, Level::Sum, depth)
            }
            2 => self.binary(ty, "*", Level::Product, depth),
            3 => {
                let operator = self.one(&["/", "%"]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                let (a, b) = (a.at(Level::Product), b.at(Level::Atom));
                Code(format!("{a} {operator} {b}.max({one})"), Level::Product)
            }
            4 => {
                let (operator, level) = self.one(&[
                    ("&", Level::BitAnd),
                    ("^", Level::BitXor),
                    ("|", Level::BitOr),
                ]);
                self.binary(ty, operator, level, depth)
            }
            5 => {
                let operator = self.one(&["<<", ">>"]);
                let of = self.one(&[Ty::U32, Ty::I32, Ty::Usize]);
                let (a, n) = (self.expression(ty, depth), self.expression(of, depth));
                let (a, n) = (a.at(Level::Shift), n.at(Level::Sum));
                Code(format!("{a} {operator} {n}"), Level::Shift)
            }
            6 => {
                let mark = if ty == Ty::I32 {
                    self.one(&["-", "!"])
                } else {
                    "!"
                };
                let of = self.expression(ty, depth);
                Code(format!("{mark}{}", of.at(Level::Unary)), Level::Unary)
            }
            7 => {
                let of = self.one(&[Ty::F32, Ty::U32, Ty::I32, Ty::Bool, Ty::Usize, Ty::U64]);
                let value = self.expression(of, depth).at(Level::Atom);
                Code(format!("{value} as {}", ty.name()), Level::Open)
            }
            8 | 9 => {
                let method =
                    self.one(&["min", "max", "wrapping_add", "wrapping_sub", "wrapping_mul"]);
                let (a, b) = (self.expression(ty, depth), self.expression(ty, depth));
                Code::atom(format!("{}.{method}({})", a.at(Level::Atom), b.0))
            }
            10 => {
                let of = self.expression(ty, depth).at(Level::Atom);
                Code::atom(format!("{of}.clamp(1, 9)"))
            }
            11 if ty == Ty::U32 => {
                let of = self.expression(Ty::F32, depth);
                Code::atom(format!("sane({}).to_bits()", of.0))
            }
            11 if ty != Ty::I32 => {
                let method = self.one(&["rotate_left(9)", "pow(3)", "wrapping_neg()"]);
                let of = self.expression(ty, depth).at(Level::Atom);
                Code::atom(format!("{of}.{method}"))
            }
            11 => {
                let method = self.one(&["abs", "signum"]);
                let of = self.expression(ty, depth).at(Level::Atom);
                Code::atom(format!("{of}.{method}()"))
            }
            12 if ty == Ty::U32 => {
                let tuple = self.expression(Ty::Tuple, depth);
                Code::atom(format!("{}.1", tuple.at(Level::Atom)))
            }
            12 => self.leaf(ty),
            13 if ty == Ty::U32 && self.below(2) == 0 => {
                let point = self.expression(Ty::Point, depth);
                Code::atom(format!("{}.n", point.at(Level::Atom)))
            }
            _ if ty == Ty::U32 => {
                let of = self.one(&[Ty::U32, Ty::I32]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                Code::atom(format!("{}.abs_diff({})", a.at(Level::Atom), b.0))
            }
            _ => self.binary(ty, "-", Level::Sum, depth),
        }
    }

    /// An integer by a table, a function of a generic type, a count of bits, or a block with
    /// statements.
    fn looked_up(&mut self, ty: Ty, depth: usize) -> Code {
        match (ty, self.below(5)) {
            (Ty::U32, 0) => {
                let at = self.expression(Ty::Usize, depth).at(Level::Product);
                Code::atom(format!("SHORT[{at} % 5]"))
            }
            (Ty::I32, 0 | 1) => {
                let at = self.expression(Ty::U32, depth).at(Level::Atom);
                Code::atom(format!("SIGNED[{at} as usize & 3]"))
            }
            (Ty::U32, 1) => {
                let (of, number) = (self.one(&["2", "3", "77"]), self.expression(ty, depth));
                Code::atom(format!("Scaled::<{of}>::by({})", number.0))
            }
            (Ty::U32, 2) => {
                let method = self.one(&["count_ones", "leading_zeros", "trailing_zeros"]);
                let of = self.one(&[Ty::U32, Ty::I32, Ty::Usize, Ty::U64]);
                let value = self.expression(of, depth).at(Level::Atom);
                Code::atom(format!("{value}.{method}()"))
            }
            _ => {
                // A variable whose type follows from what it gives.
                let mark = self.scope.len();
                let name = self.name();
                let start = self.one(&["0", "7", "!0", "1 << 5"]);
                let mut text = format!("{{\n{}let mut {name} = {start};\n", self.spaces());
                let (plain, mutable) = (name.clone(), true);
                self.scope.push(Variable { name, ty, mutable });
                // No method is called on a number whose type is not known yet.
                let mut value = self.expression(ty, depth);
                if value.0.contains(&plain) && value.0.contains('.') {
                    value = Code::atom("3".to_owned());
                }
                let operator = self.one(&["+=", "-=", "^=", "*=", "&="]);
                text.push_str(&format!(
                    "{}{plain} {operator} {};\n",
                    self.spaces(),
                    value.0
                ));
                self.scope.truncate(mark);
                let typed = format!("{plain} as {}", ty.name());
                text.push_str(&format!("{}{typed}\n{}}}", self.spaces(), self.spaces()));
                Code(text, Level::Open)
            }
        }
    }

    fn bool(&mut self, depth: usize) -> Code {
        match self.below(9) {
            8 => self.question_of_vector(depth),
            0..4 => {
                let of = self.one(&[
                    Ty::F32,
                    Ty::U32,
                    Ty::I32,
                    Ty::Usize,
                    Ty::U64,
                    Ty::Bool,
                    Ty::Tuple,
                ]);
                let operator = self.one(&["<", "<=", ">", ">=", "==", "!="]);
                let [a, b] = [0; 2].map(|_| self.expression(of, depth).at(Level::BitOr));
                Code(format!("{a} {operator} {b}"), Level::Comparison)
            }
            4 => {
                let (operator, level, next) = self.one(&[
                    ("&&", Level::And, Level::Comparison),
                    ("||", Level::Or, Level::And),
                ]);
                let (a, b) = (
                    self.expression(Ty::Bool, depth).at(level),
                    self.expression(Ty::Bool, depth).at(next),
                );
                Code(format!("{a} {operator} {b}"), level)
            }
            5 => {
                let of = self.expression(Ty::Bool, depth);
                Code(format!("!{}", of.at(Level::Unary)), Level::Unary)
            }
            6 => {
                let (operator, level) = self.one(&[
                    ("&", Level::BitAnd),
                    ("^", Level::BitXor),
                    ("|", Level::BitOr),
                ]);
                self.binary(Ty::Bool, operator, level, depth)
            }
            _ => {
                let method = self.one(&["is_nan", "is_finite", "is_infinite"]);
                let of = self.expression(Ty::F32, depth).at(Level::Atom);
                Code::atom(format!("{of}.{method}()"))
            }
        }
    }

    fn array(&mut self, depth: usize) -> Code {
        match self.below(5) {
            3 => {
                let of = self.expression(Ty::Vec3, depth);
                Code::atom(format!("{}.to_array()", of.at(Level::Atom)))
            }
            4 => match self.element(Ty::Array, depth) {
                Some(element) => element,
                None => self.leaf(Ty::Array),
            },
            0 => {
                let parts = [0; 3].map(|_| self.expression(Ty::F32, depth).0);
                Code::atom(format!("[{}]", parts.join(", ")))
            }
            1 => {
                let of = self.expression(Ty::Array, depth).at(Level::Atom);
                let mark = self.scope.len();
                let name = self.name();
                self.scope.push(Variable {
                    name: name.clone(),
                    ty: Ty::F32,
                    mutable: false,
                });
                let value = self.expression(Ty::F32, depth);
                self.scope.truncate(mark);
                Code::atom(format!("{of}.map(|{name}| {})", value.at(Level::Or)))
            }
            _ => self.leaf(Ty::Array),
        }
    }
}
