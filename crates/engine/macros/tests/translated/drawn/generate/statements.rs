//! Random statements.

use super::{Level, Maker, NAMES, Ty, Variable};

impl Maker<'_> {
    /// A statement of a function that gives `gives`.
    pub(super) fn statement(&mut self, gives: Ty, depth: usize, text: &mut String) {
        let spaces = self.spaces();
        let kinds = if depth == 0 { 6 } else { 12 };
        match self.below(kinds) {
            0 => {
                let ty = self.one(&Ty::ALL);
                let value = self.expression(ty, 3);
                let name = self.name();
                let mutable = self.below(2) == 0;
                let (mark, of) = (if mutable { "mut " } else { "" }, self.below(2));
                let of = if of == 0 {
                    format!(": {}", ty.name())
                } else {
                    String::new()
                };
                text.push_str(&format!("{spaces}let {mark}{name}{of} = {};\n", value.0));
                self.scope.push(Variable { name, ty, mutable });
            }
            1 => {
                let value = self.expression(Ty::Tuple, 3);
                let first = self.below(NAMES.len());
                let names = [NAMES[first], NAMES[(first + 1) % NAMES.len()]];
                text.push_str(&format!(
                    "{spaces}let ({}, mut {}) = {};\n",
                    names[0], names[1], value.0
                ));
                for (name, ty, mutable) in [(names[0], Ty::F32, false), (names[1], Ty::U32, true)] {
                    let name = name.to_owned();
                    self.scope.push(Variable { name, ty, mutable });
                }
            }
            2 => {
                let value = self.expression(Ty::Array, 3);
                let name = self.name();
                text.push_str(&format!("{spaces}let [_, {name}, _] = {};\n", value.0));
                self.scope.push(Variable {
                    name,
                    ty: Ty::F32,
                    mutable: false,
                });
            }
            3 => self.taken_apart(text),
            4 | 5 => self.assignment(text),
            6 | 7 => {
                let test = self.expression(Ty::Bool, 2);
                text.push_str(&format!("{spaces}if {} {{\n", test.0));
                self.block(gives, depth, text);
                if self.below(2) == 0 {
                    text.push_str(&format!("{spaces}}} else {{\n"));
                    self.block(gives, depth, text);
                }
                text.push_str(&format!("{spaces}}}\n"));
            }
            8 => self.for_range(gives, depth, text),
            9 => self.for_array(gives, depth, text),
            10 => self.matched(gives, depth, text),
            _ => self.leave(gives, text),
        }
    }

    /// A struct, into its fields.
    fn taken_apart(&mut self, text: &mut String) {
        let value = self.expression(Ty::Point, 3);
        let first = self.below(NAMES.len());
        let names = [0, 1, 2].map(|k| NAMES[(first + k) % NAMES.len()]);
        let [x, n, v] = names;
        text.push_str(&format!(
            "{}let Point {{ x: {x}, n: mut {n}, v: {v} }} = {};\n",
            self.spaces(),
            value.0
        ));
        let types = [(Ty::F32, false), (Ty::U32, true), (Ty::Vec3, false)];
        for (name, (ty, mutable)) in names.into_iter().zip(types) {
            let name = name.to_owned();
            self.scope.push(Variable { name, ty, mutable });
        }
    }

    /// A loop over a range.
    pub(super) fn for_range(&mut self, gives: Ty, depth: usize, text: &mut String) {
        let spaces = self.spaces();
        let count = 1 + self.below(5);
        let inclusive = self.one(&["..", "..="]);
        let (name, ty) = match self.below(4) {
            0 => ("_".to_owned(), None),
            1 => (self.name(), Some(Ty::Usize)),
            _ => (self.name(), Some(Ty::U32)),
        };
        let (from, to) = match ty {
            // The type of such a range follows from the use of its variable, or is i32.
            None => ("0", count.to_string()),
            Some(Ty::Usize) => (
                "0",
                self.one(&["4usize", "consts::COUNT", "PLACE"]).to_owned(),
            ),
            _ => match self.below(4) {
                0 => ("consts::BEGIN", "consts::END".to_owned()),
                1 => ("u32::MAX - 2", "u32::MAX".to_owned()),
                _ => ("0", format!("{count}u32")),
            },
        };
        let range = match self.below(4) {
            0 => format!("({from}{inclusive}{to}).rev()"),
            _ => format!("{from}{inclusive}{to}"),
        };
        text.push_str(&format!("{spaces}for {name} in {range} {{\n"));
        let mutable = false;
        let counter = ty.map(|ty| Variable { name, ty, mutable });
        self.loop_body(counter, gives, depth, text);
    }

    /// The statements of a loop, in which `variable` is known, and its end.
    fn loop_body(
        &mut self,
        variable: Option<Variable>,
        gives: Ty,
        depth: usize,
        text: &mut String,
    ) {
        let spaces = self.spaces();
        let mark = self.scope.len();
        self.scope.extend(variable);
        self.loops += 1;
        self.block(gives, depth, text);
        self.loops -= 1;
        self.scope.truncate(mark);
        text.push_str(&format!("{spaces}}}\n"));
    }

    /// A loop over an array.
    fn for_array(&mut self, gives: Ty, depth: usize, text: &mut String) {
        let spaces = self.spaces();
        let values = self.expression(Ty::Array, 2).at(Level::Atom);
        let (head, name, ty) = match self.below(2) {
            0 => (format!("NAME in {values}"), self.name(), Ty::F32),
            _ => (
                format!("(NAME, _) in {values}.iter().enumerate()"),
                self.name(),
                Ty::Usize,
            ),
        };
        text.push_str(&format!("{spaces}for {} {{\n", head.replace("NAME", &name)));
        // Its elements stay as they are where the loop borrows it.
        let before = self.scope.clone();
        for variable in &mut self.scope {
            variable.mutable &= variable.name != values;
        }
        let mutable = false;
        self.loop_body(Some(Variable { name, ty, mutable }), gives, depth, text);
        self.scope = before;
    }

    /// A `match` on a number.
    fn matched(&mut self, gives: Ty, depth: usize, text: &mut String) {
        let spaces = self.spaces();
        let value = self.expression(Ty::U32, 2);
        text.push_str(&format!("{spaces}match {} {{\n", value.0));
        self.indent += 1;
        for pattern in ["0", "1 | 7", "8..=4000000000"] {
            text.push_str(&format!("{}{pattern} => {{\n", self.spaces()));
            self.block(gives, depth, text);
            text.push_str(&format!("{}}}\n", self.spaces()));
        }
        // Guards with statements are refused.
        let mut test = self.expression(Ty::Bool, 1);
        while test.0.contains(';') {
            test = self.expression(Ty::Bool, 1);
        }
        let bound = self.one(&["_", "other", "9.. | 3"]);
        text.push_str(&format!("{}{bound} if {} => {{\n", self.spaces(), test.0));
        self.block(gives, depth, text);
        text.push_str(&format!("{}}}\n", self.spaces()));
        text.push_str(&format!("{}_ => {{\n", self.spaces()));
        self.block(gives, depth, text);
        text.push_str(&format!("{}}}\n", self.spaces()));
        self.indent -= 1;
        text.push_str(&format!("{spaces}}}\n"));
    }

    /// `return`, `break` or `continue` in some cases.
    fn leave(&mut self, gives: Ty, text: &mut String) {
        let spaces = self.spaces();
        let test = self.expression(Ty::Bool, 2);
        let leave = if self.loops > 0 && self.below(2) == 0 {
            self.one(&["break", "continue"]).to_owned()
        } else {
            format!("return {}", self.expression(gives, 3).0)
        };
        text.push_str(&format!("{spaces}if {} {{ {leave}; }}\n", test.0));
    }

    /// Statements in a scope of their own.
    pub(super) fn block(&mut self, gives: Ty, depth: usize, text: &mut String) {
        let mark = self.scope.len();
        self.indent += 1;
        for _ in 0..1 + self.below(2) {
            self.statement(gives, depth - 1, text);
        }
        self.indent -= 1;
        self.scope.truncate(mark);
    }

    pub(super) fn assignment(&mut self, text: &mut String) {
        let ty = self.one(&[
            Ty::F32,
            Ty::U32,
            Ty::I32,
            Ty::Usize,
            Ty::U64,
            Ty::Array,
            Ty::Tuple,
            Ty::Vec3,
            Ty::Vec2,
            Ty::Point,
        ]);
        let variables = self.variables(ty);
        let mutable: Vec<_> = variables.iter().filter(|one| one.mutable).collect();
        if mutable.is_empty() {
            return;
        }
        let name = &mutable[self.below(mutable.len())].name;
        let (place, ty) = match ty {
            Ty::Array if self.below(2) == 0 => {
                let index = self.index();
                (format!("{name}[{index}]"), Ty::F32)
            }
            Ty::Tuple if self.below(2) == 0 => (format!("{name}.1"), Ty::U32),
            Ty::Vec3 | Ty::Vec2 if self.below(2) == 0 => (format!("{name}.y"), Ty::F32),
            Ty::Point => match self.below(4) {
                0 => (name.clone(), ty),
                1 => (format!("{name}.x"), Ty::F32),
                2 => (format!("{name}.v"), Ty::Vec3),
                _ => (format!("{name}.v.z"), Ty::F32),
            },
            ty => (name.clone(), ty),
        };
        let operator = match ty {
            Ty::F32 => self.one(&["=", "+=", "-=", "*=", "/=", "%="]),
            Ty::Vec3 | Ty::Vec2 => self.one(&["=", "+=", "-=", "*=", "/="]),
            Ty::U32 | Ty::I32 | Ty::Usize | Ty::U64 => {
                self.one(&["=", "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>="])
            }
            _ => "=",
        };
        // Vectors are multiplied and divided by numbers too.
        let of = match ty {
            Ty::Vec3 | Ty::Vec2 if operator != "=" && self.below(2) == 0 => Ty::F32,
            ty => ty,
        };
        let value = self.expression(of, 3);
        text.push_str(&format!(
            "{}{place} {operator} {};\n",
            self.spaces(),
            value.0
        ));
    }
}
