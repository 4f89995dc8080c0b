//! Operators with two operands, and assignments that compute.

use super::{
    super::{
        tree::{Expr, Operator},
        types::Type,
    },
    Code, Level, Tail, Writer,
    values::{compares, typed},
};

impl Writer<'_> {
    pub(super) fn binary(
        &mut self,
        operator: Operator,
        left: &'static Expr,
        right: &'static Expr,
    ) -> Code {
        if matches!(operator, Operator::And | Operator::Or) && self.needs(right) {
            return self.lazily(operator, left, right);
        }
        let ty = self.type_of(left);
        let [a, b] = self.both(left, right);
        self.applied(operator, a, &ty, b)
    }

    /// Two operands and their operator; `ty` is the type of the left one.
    pub(super) fn applied(&self, operator: Operator, a: Code, ty: &Type, b: Code) -> Code {
        use Operator::*;
        let shift = matches!(operator, Shl | Shr);
        let a = match a.plain && (b.plain || shift) {
            true => typed(a, ty),
            false => a,
        };
        let number = matches!(ty, Type::Integer(_) | Type::Bool);
        if operator == Rem && !number {
            return Code::atom(format!("nf::rem({}, {})", a.text, b.text));
        }
        let (sign, level) = sign(operator, *ty == Type::Bool);
        // Operators of one level are applied from the left; a comparison of comparisons has
        // brackets in Rust too.
        let (of_left, of_right) = match compares(operator) {
            true => (level.next(), level.next()),
            false => (level, level.next()),
        };
        let text = format!("{} {sign} {}", a.at(of_left), b.at(of_right));
        Code::new(text, level)
    }

    /// `&&` and `||` whose right operand needs statements.
    fn lazily(&mut self, operator: Operator, left: &'static Expr, right: &'static Expr) -> Code {
        let first = self.value(left);
        let name = self.temporary();
        self.line(&format!("bool {name} = {};", first.text));
        let head = match operator {
            Operator::And => format!("if ({name}) {{"),
            _ => format!("if (!{name}) {{"),
        };
        let tail = Tail::Assign(name.clone());
        self.braced(&head, "}", |own| own.run(right, &tail));
        Code::atom(name)
    }

    /// `place += value`, or another operator; the value comes first, as in Rust.
    pub(super) fn update(
        &mut self,
        operator: Operator,
        place: &'static Expr,
        value: &'static Expr,
    ) {
        let ty = self.type_of(place);
        let value = self.first(value, place);
        let place = self.place(place);
        let number = matches!(ty, Type::Integer(_) | Type::Bool);
        if operator == Operator::Rem && !number {
            return self.line(&format!("{place} = nf::rem({place}, {});", value.text));
        }
        // The bits of a bool are assigned by the operators of bits.
        let (sign, _) = sign(operator, false);
        self.line(&format!("{place} {sign}= {};", value.text));
    }
}

/// A comparison.
pub(super) fn compared(a: &Code, sign: &str, level: Level, b: &Code) -> Code {
    let (a, b) = (a.at(level.next()), b.at(level.next()));
    Code::new(format!("{a} {sign} {b}"), level)
}

/// An operator of C++ and how tightly it binds; of bools those of bits are others.
fn sign(operator: Operator, of_bools: bool) -> (&'static str, Level) {
    use Operator::*;
    match operator {
        Add => ("+", Level::Sum),
        Sub => ("-", Level::Sum),
        Mul => ("*", Level::Product),
        Div => ("/", Level::Product),
        Rem => ("%", Level::Product),
        And => ("&&", Level::And),
        Or => ("||", Level::Or),
        BitAnd if of_bools => ("&&", Level::And),
        BitOr if of_bools => ("||", Level::Or),
        BitXor if of_bools => ("!=", Level::Equality),
        BitAnd => ("&", Level::BitAnd),
        BitOr => ("|", Level::BitOr),
        BitXor => ("^", Level::BitXor),
        Shl => ("<<", Level::Shift),
        Shr => (">>", Level::Shift),
        Equal => ("==", Level::Equality),
        Unequal => ("!=", Level::Equality),
        Less => ("<", Level::Relation),
        AtMost => ("<=", Level::Relation),
        Greater => (">", Level::Relation),
        AtLeast => (">=", Level::Relation),
    }
}
