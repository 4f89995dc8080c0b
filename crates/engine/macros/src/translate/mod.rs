//! From the syntax tree of a Rust function to the text of a CUDA function.
//!
//! The text has holes where a macro does not know what belongs there: names of types and of the
//! functions called. [`Translated`] lists them, with the Rust expressions that fill them in when
//! the text is assembled. Everything else is text already.
//!
//! The meaning is that of Rust. Operators of floats are those of C++, which the GPU's compiler is
//! told not to contract; integers are of types whose operators wrap; functions are those of
//! `kernels/cuda/pairs/subset.cuh`. No expression of the subset has side effects, so the order of
//! evaluation, which C++ leaves open, does not matter: assignments are statements, and none changes
//! a variable from within a value.
//!
//! **Invariant:** a text that is translated compiles, ends, and accesses no memory but its
//! variables. Code that would break this is refused at its token, with the remedy.

mod calls;
mod control;
mod expressions;
mod methods;
mod names;
mod patterns;
mod places;
mod statements;
mod translator;
mod ty;
mod types;

pub(crate) use names::allowed;
use syn::{Error, FnArg, Result, ReturnType, Signature, Type, spanned::Spanned};
use translator::{DECLARATIONS, NAME, Translator};
pub(crate) use translator::{Piece, Role, Translated, UseKind};
use ty::Ty;

/// Translates a function. `associated` has the types that `Self::NAME` stands for.
pub(crate) fn function(
    signature: &Signature,
    body: &syn::Block,
    krate: &syn::Path,
    associated: &[(String, Type)],
    role: Role,
) -> Result<Translated> {
    refuse_qualifiers(signature)?;
    let mut translator = Translator {
        krate,
        associated,
        role,
        own_name: signature.ident.to_string(),
        scopes: vec![Vec::new()],
        uses: Vec::new(),
        constants: Vec::new(),
        holes: Vec::new(),
        result: Ty::Unknown,
        depth: 0,
        loops: 0,
        has_self: signature.receiver().is_some(),
        indent: 4,
        temporaries: 0,
    };
    let text = translator.whole(signature, body)?;
    let pieces = translator.pieces(&text);
    let constants = translator.constants.into_iter();
    Ok(Translated {
        uses: translator.uses,
        constants: constants.map(|(_, name, path)| (name, path)).collect(),
        pieces,
    })
}

fn refuse_qualifiers(signature: &Signature) -> Result<()> {
    let refused = |span, message| Err(Error::new(span, message));
    if let Some(token) = &signature.asyncness {
        return refused(token.span, "a kernel cannot be async: remove it");
    }
    if let Some(token) = &signature.unsafety {
        return refused(token.span, "a kernel cannot be unsafe: remove it");
    }
    if let Some(first) = signature.generics.params.first() {
        return refused(
            first.span(),
            "a kernel's function has no generic parameters: write the types",
        );
    }
    Ok(())
}

impl Translator<'_> {
    /// Signature and body.
    fn whole(&mut self, signature: &Signature, body: &syn::Block) -> Result<String> {
        let (result, known) = match &signature.output {
            ReturnType::Default => {
                let message = "a kernel's function returns a value: add `-> f32` or its like";
                return Err(Error::new(signature.ident.span(), message));
            }
            ReturnType::Type(_, ty) => self.ty(ty)?,
        };
        self.result = known;
        let mut parameters = Vec::new();
        let mut first_lines = String::new();
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if receiver.mutability.is_some() && receiver.reference.is_some() {
                        let message = "a kernel changes no fields: take `&self`";
                        return Err(Error::new(receiver.span(), message));
                    }
                    parameters.push("const float* uniform".to_owned());
                }
                FnArg::Typed(typed) => {
                    let (name, ty) = self.ty(&typed.ty)?;
                    parameters.push(self.parameter(&typed.pat, &name, &ty, &mut first_lines)?);
                }
            }
        }
        let body = self.block(&body.stmts, statements::Tail::Return, body.span())?;
        Ok(format!(
            "__forceinline__ {result} {NAME}({}) {{\n{DECLARATIONS}{first_lines}{body}}}\n",
            parameters.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests;
