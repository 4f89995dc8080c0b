//! Patterns that take values apart: names, `_`, tuples and arrays.

use super::{names::allowed, translator::Translator, ty::Ty};
use syn::{Error, Pat, Result, spanned::Spanned};

impl Translator<'_> {
    /// A parameter, with the lines that take it apart.
    pub(super) fn parameter(
        &mut self,
        pattern: &Pat,
        type_name: &str,
        ty: &Ty,
        lines: &mut String,
    ) -> Result<String> {
        match pattern {
            Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
                let name = self.declare(&ident.ident, ty.clone());
                let constant = if ident.mutability.is_some() {
                    ""
                } else {
                    "const "
                };
                Ok(format!("{constant}{type_name} {name}"))
            }
            Pat::Wild(_) => Ok(type_name.to_owned()),
            Pat::Tuple(tuple) if tuple.elems.is_empty() => Ok(type_name.to_owned()),
            _ => {
                let name = self.temporary();
                self.declare_as(String::new(), name.clone(), ty.clone());
                self.take_apart(pattern, &name, ty, lines)?;
                Ok(format!("const {type_name} {name}"))
            }
        }
    }

    /// Declarations of the names in a pattern, for a value that is a name or a member of one.
    pub(super) fn take_apart(
        &mut self,
        pattern: &Pat,
        value: &str,
        ty: &Ty,
        lines: &mut String,
    ) -> Result<()> {
        match pattern {
            Pat::Wild(_) => Ok(()),
            Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => {
                let name = self.declare(&ident.ident, ty.clone());
                let constant = if ident.mutability.is_some() {
                    ""
                } else {
                    "const "
                };
                let spaces = self.spaces();
                let of = ty.short().unwrap_or("auto");
                lines.push_str(&format!("{spaces}{constant}{of} {name} = {value};\n"));
                Ok(())
            }
            Pat::Tuple(tuple) => {
                for (at, part) in tuple.elems.iter().enumerate() {
                    let of = match ty {
                        Ty::Tuple(parts) => parts.get(at).cloned().unwrap_or(Ty::Unknown),
                        _ => Ty::Unknown,
                    };
                    refuse_rest(part)?;
                    self.take_apart(part, &format!("{value}._{at}"), &of, lines)?;
                }
                Ok(())
            }
            Pat::Slice(slice) => {
                for (at, part) in slice.elems.iter().enumerate() {
                    refuse_rest(part)?;
                    self.take_apart(part, &format!("{value}[{at}]"), &ty.element(), lines)?;
                }
                Ok(())
            }
            Pat::Paren(inner) => self.take_apart(&inner.pat, value, ty, lines),
            Pat::Type(typed) => {
                let (_, known) = self.ty(&typed.ty)?;
                self.take_apart(&typed.pat, value, &known, lines)
            }
            Pat::Reference(reference) => self.take_apart(&reference.pat, value, ty, lines),
            Pat::Struct(parts) => {
                if let Some(rest) = &parts.rest {
                    let message = "name the fields that the kernel uses as `value.field` instead";
                    return Err(Error::new(rest.span(), message));
                }
                for field in &parts.fields {
                    let syn::Member::Named(name) = &field.member else {
                        let message = "structs in kernels have named fields";
                        return Err(Error::new(field.span(), message));
                    };
                    let member = allowed(&name.to_string());
                    let value = format!("{value}.{member}");
                    self.take_apart(&field.pat, &value, &Ty::Unknown, lines)?;
                }
                Ok(())
            }
            other => Err(Error::new(
                other.span(),
                "a pattern here is a name, `_`, a tuple, an array or a struct of these",
            )),
        }
    }
}

fn refuse_rest(part: &Pat) -> Result<()> {
    match part {
        Pat::Rest(rest) => Err(Error::new(
            rest.span(),
            "write a `_` for every part that is left out",
        )),
        _ => Ok(()),
    }
}
