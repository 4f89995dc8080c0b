//! What methods read of `self`.

use super::{Called, Code, Level, Maker, Ty};

impl Maker<'_> {
    /// A field of the kernel, or a part of one; None in a free function.
    pub(super) fn own(&mut self, ty: Ty) -> Option<Code> {
        if self.called == Called::Free {
            return None;
        }
        let places: &[&'static str] = match ty {
            Ty::F32 => &[
                "self.scale",
                "self.both.0",
                "self.origin.y",
                "self.slope.x",
                "self.point.x",
                "self.point.v.z",
                "self.half()",
                "self.weights[1]",
            ],
            Ty::U32 => &["self.count", "self.both.1", "self.point.n"],
            Ty::I32 => &["self.offset"],
            Ty::Bool => &["self.wide"],
            Ty::Array => &["self.weights", "self.rows[2]"],
            Ty::Tuple => &["self.both"],
            Ty::Vec3 => &["self.origin", "self.point.v"],
            Ty::Vec2 => &["self.slope"],
            Ty::Point => &["self.point"],
            Ty::Usize => &["self.count as usize"],
            Ty::U64 => &["self.both.1 as u64"],
        };
        let level = match ty {
            Ty::Usize | Ty::U64 => Level::Open,
            _ => Level::Atom,
        };
        Some(Code(self.one(places).to_owned(), level))
    }

    /// An element of a table of the kernel; None in a free function.
    pub(super) fn element(&mut self, ty: Ty, depth: usize) -> Option<Code> {
        if self.called == Called::Free {
            return None;
        }
        let number = self.expression(Ty::U32, depth).at(Level::Product);
        let index = |length: usize| format!("({number} % {length}) as usize");
        Some(Code::atom(match ty {
            Ty::Array => format!("self.rows[{}]", index(4)),
            _ => match self.below(6) {
                0 => format!("self.rows[{}][{}]", index(4), self.below(3)),
                1 => format!("self.weights[{}]", index(3)),
                2 => format!("self.origin[{}]", index(3)),
                3 => format!("self.slope[{}]", index(2)),
                4 => format!("self.point.v[{}]", index(3)),
                _ => format!("self.table[{}]", index(8)),
            },
        }))
    }
}
