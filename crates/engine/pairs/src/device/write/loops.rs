//! Loops.

use super::{
    super::{
        tree::{Block, Expr, Kind, Operator, Over, Pattern},
        types::{Integer, Type},
        value::number,
    },
    Code, Level, Tail, Writer,
};

/// A range of numbers.
struct Range {
    from: &'static Expr,
    to: &'static Expr,
    closed: bool,
    reversed: bool,
}

impl Writer<'_> {
    pub(super) fn repeat(&mut self, pattern: &'static Pattern, over: &'static Over, block: Block) {
        match *over {
            Over::Values(of) => self.over_values(pattern, of, block),
            Over::Range {
                from,
                to,
                closed,
                reversed,
            } => {
                let range = Range {
                    from,
                    to,
                    closed,
                    reversed,
                };
                self.counted(pattern, &range, block);
            }
        }
    }

    fn over_values(&mut self, pattern: &'static Pattern, of: &'static Expr, block: Block) {
        let ty = self.type_of(of);
        let element = ty.element();
        let mut values = self.value(of);
        // A loop by value runs over a copy, and no text reads a part of a value that is gone.
        let read_there = match &of.kind {
            Kind::Local(id) => !self.mutable(*id),
            Kind::Constant(_) | Kind::Uniform(_) | Kind::Method(..) => true,
            _ => false,
        };
        if !read_there {
            values = self.kept(values, &ty);
        }
        let (declared, inner) = match pattern {
            Pattern::Name(id) => (self.declared(*id), None),
            pattern => {
                let name = self.temporary();
                (
                    format!("const {} {name}", element.name()),
                    Some((pattern, name)),
                )
            }
        };
        let head = format!("for ({declared} : {}) {{", values.text);
        self.braced(&head, "}", |own| {
            if let Some((pattern, name)) = inner {
                own.take_apart(pattern, &name, &element);
            }
            own.block(block, &Tail::Drop);
        });
    }

    fn counted(&mut self, pattern: &'static Pattern, range: &Range, block: Block) {
        let ty = match pattern {
            Pattern::Name(id) => self.local_type(*id),
            _ => self.type_of(range.from),
        };
        let ends = (self.constant(range.from), self.constant(range.to));
        let largest = match &ty {
            Type::Integer(Integer { signed, bits, .. }) => {
                (1i128 << (bits - u32::from(*signed))) - 1
            }
            _ => 0,
        };
        let changes = matches!(pattern, Pattern::Name(id) if self.mutable(*id));
        // Up to the largest number a counter would begin anew.
        let safe = !range.closed || matches!(ends.1, Some(end) if end < largest);
        if safe && !range.reversed && !changes {
            return self.upwards(pattern, range, &ty, block);
        }
        let steps = self.temporary();
        let (count, from, to) = self.counts(range, &ty, ends);
        let at = self.temporary();
        let head = format!(
            "for (unsigned long long {at} = 0, {steps} = {count}; {at} < {steps}; ++{at}) {{"
        );
        self.braced(&head, "}", |own| {
            if let Pattern::Name(id) = pattern {
                let step = format!("{}({at})", step_type(&ty));
                let value = match (range.reversed, range.closed) {
                    (false, _) => format!("{from} + {step}"),
                    (true, true) => format!("{to} - {step}"),
                    (true, false) => format!("{to} - {step} - {}", number("1", &ty)),
                };
                let declared = own.declared(*id);
                own.line(&format!("{declared} = {value};"));
            }
            own.block(block, &Tail::Drop);
        });
    }

    /// The number of steps, and both ends, as texts.
    fn counts(
        &mut self,
        range: &Range,
        ty: &Type,
        ends: (Option<i128>, Option<i128>),
    ) -> (String, String, String) {
        let typed = |code: Code| format!("{}({})", ty.name(), code.text);
        let [from, to] = self.both(range.from, range.to);
        let (from, to) = (typed(from), typed(to));
        let count = match ends {
            (Some(first), Some(end)) => {
                let count = (end - first + i128::from(range.closed)).max(0);
                format!("{count}ull")
            }
            _ => format!("nf::steps({from}, {to}, {})", range.closed),
        };
        (count, from, to)
    }

    /// A loop as one writes it.
    fn upwards(&mut self, pattern: &'static Pattern, range: &Range, ty: &Type, block: Block) {
        let [from, to] = self.both(range.from, range.to);
        let name = match pattern {
            Pattern::Name(id) => self.declare(*id),
            _ => self.temporary(),
        };
        let sign = if range.closed { "<=" } else { "<" };
        let (to, one) = (to.at(Level::Shift), number("1", ty));
        let head = format!(
            "for ({} {name} = {}; {name} {sign} {to}; {name} += {one}) {{",
            ty.name(),
            from.text
        );
        self.braced(&head, "}", |own| own.block(block, &Tail::Drop));
    }

    /// The value of an end of a range that is made of constants.
    fn constant(&self, expression: &Expr) -> Option<i128> {
        match &expression.kind {
            Kind::Number(digits) => digits.parse().ok(),
            Kind::Constant(id) => self.all.constants[usize::from(*id)].integer,
            Kind::Negative(of) => self.constant(of)?.checked_neg(),
            Kind::Binary(operator, a, b) => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                let value = match operator {
                    Operator::Add => a.checked_add(b),
                    Operator::Sub => a.checked_sub(b),
                    Operator::Mul => a.checked_mul(b),
                    Operator::Div => a.checked_div(b),
                    _ => None,
                };
                self.fits(value?, &self.type_of(expression))
            }
            Kind::Cast(of) => self.fits(self.constant(of)?, &self.type_of(expression)),
            _ => None,
        }
    }

    /// A value that its type has.
    fn fits(&self, value: i128, ty: &Type) -> Option<i128> {
        let Type::Integer(Integer { signed, bits, .. }) = ty else {
            return None;
        };
        let (least, largest) = match signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        (least..=largest).contains(&value).then_some(value)
    }
}

/// The type of a step: `nf::u32` of a counter, with its bits.
fn step_type(ty: &Type) -> String {
    format!("nf::wrapped<{}>", ty.name())
}
