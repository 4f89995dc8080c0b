//! What the translator knows of types, and their names in C++.
//!
//! A macro sees no types. Those of parameters are written; others follow from literals, operators
//! and methods; those of fields and of the results of functions stay [`Ty::Unknown`], and C++
//! infers them.

use super::{translator::Translator, ty::Ty};
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, Result, Type, spanned::Spanned};

const NUMBERS: [(&str, Ty); 5] = [
    ("f32", Ty::F32),
    ("u32", Ty::U32),
    ("i32", Ty::I32),
    ("bool", Ty::Bool),
    ("usize", Ty::Index),
];

const OTHER_NUMBERS: [&str; 13] = [
    "f64", "i64", "u64", "i8", "u8", "i16", "u16", "i128", "u128", "isize", "char", "str", "String",
];

impl Translator<'_> {
    /// A type as written: its text, and what is known of it.
    pub(super) fn ty(&mut self, ty: &Type) -> Result<(String, Ty)> {
        match ty {
            Type::Paren(inner) => self.ty(&inner.elem),
            Type::Group(inner) => self.ty(&inner.elem),
            Type::Reference(reference) => match reference.mutability {
                Some(token) => Err(Error::new(
                    token.span,
                    "a kernel changes no arguments: return the new value",
                )),
                None => self.ty(&reference.elem),
            },
            Type::Tuple(tuple) => {
                if tuple.elems.len() > 6 {
                    let message = "tuples have at most six parts: nest them";
                    return Err(Error::new(tuple.span(), message));
                }
                let parts: Result<Vec<_>> = tuple.elems.iter().map(|ty| self.ty(ty)).collect();
                let (names, tys): (Vec<_>, Vec<_>) = parts?.into_iter().unzip();
                Ok((format!("nf::tuple<{}>", names.join(", ")), Ty::Tuple(tys)))
            }
            Type::Array(array) => {
                let (element, known) = self.ty(&array.elem)?;
                let known = Ty::Array(Box::new(known));
                if let Expr::Lit(ExprLit {
                    lit: Lit::Int(length),
                    ..
                }) = &array.len
                {
                    let length: usize = length.base10_parse()?;
                    if length == 0 {
                        let message = "an array has at least one element here: use ()";
                        return Err(Error::new(array.len.span(), message));
                    }
                    return Ok((format!("nf::array<{element}, {length}>"), known));
                }
                Ok((self.type_hole(ty), known))
            }
            Type::Path(path) if path.qself.is_none() => self.named(path, ty),
            Type::Path(_) => Ok((self.type_hole(ty), Ty::Unknown)),
            Type::Slice(slice) => Err(Error::new(
                slice.span(),
                "a slice has no constant length: use an array",
            )),
            other => Err(Error::new(
                other.span(),
                "kernels compute with f32, u32, i32, bool, arrays, tuples, Vec3 and structs that derive Channels",
            )),
        }
    }

    /// A type by its name.
    fn named(&mut self, path: &syn::TypePath, ty: &Type) -> Result<(String, Ty)> {
        let last = path.path.segments.last().map(|last| last.ident.to_string());
        let last = last.unwrap_or_default();
        let alone = path.path.segments.len() == 1;
        if let Some((_, known)) = NUMBERS.iter().find(|(name, _)| alone && *name == last) {
            return Ok((known.short().unwrap_or_default().to_owned(), known.clone()));
        }
        if alone && OTHER_NUMBERS.contains(&last.as_str()) {
            let message = format!("`{last}` is not in kernels: use f32, u32, i32 or bool");
            return Err(Error::new(path.span(), message));
        }
        match last.as_str() {
            "Pair" => return Ok(("nf::Pair".to_owned(), Ty::Pair)),
            "Vec3" => return Ok(("nf::Vec3".to_owned(), Ty::Vec3)),
            "Vec2" => return Ok(("nf::Vec2".to_owned(), Ty::Unknown)),
            _ => {}
        }
        let first = &path.path.segments[0].ident;
        if path.path.segments.len() == 2
            && first == "Self"
            && let Some((_, meant)) = self.associated.iter().find(|(name, _)| *name == last)
        {
            let meant = meant.clone();
            return self.ty(&meant);
        }
        let arguments = path.path.segments.iter().any(|s| !s.arguments.is_empty());
        if arguments && matches!(last.as_str(), "Vec" | "Option" | "Result" | "Box") {
            let message = format!(
                "`{last}` is not in kernels: use numbers, arrays, tuples and structs that derive Channels"
            );
            return Err(Error::new(path.span(), message));
        }
        Ok((self.type_hole(ty), Ty::Unknown))
    }

    fn type_hole(&mut self, ty: &Type) -> String {
        self.hole(quote! { device.name_of::<#ty>() })
    }
}
