//! From the syntax tree of a Rust function to two others: its twin and its tree.
//!
//! The *twin* is the function once more, as a closure that never runs, in which every value passes
//! through a slot (`probe`). The compiler infers the types of the twin as it does those of the
//! function, and so every slot knows the type of its value: shadowing, generics, constants,
//! fallbacks of literals and removed code are the compiler's. The *tree* is the same function as
//! constant data, with the numbers of slots where types belong. At run time module `device` of
//! `nearfield-pairs` writes the CUDA text from the tree and the types.
//!
//! A macro sees tokens only, so nothing here depends on a type. Syntax that no text has is refused
//! at its token, with the remedy. Types are left to the compiler: a slot whose
//! type exists on no GPU, or a method that the text does not have for that type, is an error at the
//! place of the value.
//!
//! Another back end, such as vectors of a CPU, would be a third form beside these two, made in the
//! same pass.
//!
//! **Invariant:** a tree ends and accesses no memory but its variables: loops run over ranges of
//! constants and loop variables, or over arrays, and there are no pointers.

mod calls;
mod control;
mod loops;
mod methods;
mod patterns;
mod places;
mod refused;
mod scope;
mod statements;
mod tables;
mod values;

pub(crate) use tables::{Slot, Use, UseKind};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Error, FnArg, Result, ReturnType, Signature, spanned::Spanned};
use tables::{Constant, Local, Scope};

/// A function in both forms, and what they refer to.
pub(crate) struct Lowered {
    /// The closure that never runs.
    pub(crate) twin: TokenStream,
    /// The constant data, of type `Body`.
    pub(crate) tree: TokenStream,
    pub(crate) slots: Vec<Slot>,
    /// Calls that the compiler refuses where a text has no such method.
    pub(crate) checks: Vec<TokenStream>,
    /// Constants: statements that hand them over, in order.
    pub(crate) constants: Vec<Constant>,
    /// Uses of `self`, in the order of the uniforms.
    pub(crate) uses: Vec<Use>,
    /// Expressions that add the functions called, in order.
    pub(crate) callees: Vec<TokenStream>,
}

/// A part of a function in both forms.
pub(crate) struct Part {
    twin: TokenStream,
    tree: TokenStream,
    /// The slot of its value; None where it has none of its own.
    slot: Option<u16>,
}

/// The state of the pass.
pub(crate) struct Lowering<'a> {
    /// Where the run-time half of the macros is.
    krate: &'a syn::Path,
    /// The function's name, which it must not call.
    own_name: String,
    has_self: bool,
    slots: Vec<Slot>,
    checks: Vec<TokenStream>,
    locals: Vec<Local>,
    scopes: Vec<Scope>,
    constants: Vec<Constant>,
    uses: Vec<Use>,
    callees: Vec<TokenStream>,
    /// `#[cfg(…)]` around the present place.
    cfg: Vec<syn::Meta>,
    /// Closures around the present place.
    closures: usize,
    /// Loops around it, within the innermost closure.
    loops: usize,
    /// Statements of the twin that stand before the present one.
    before: Vec<TokenStream>,
}

/// Tokens with another place in the source and the names that they have.
pub(crate) fn located(tokens: &impl ToTokens, span: Span) -> TokenStream {
    let moved = tokens.to_token_stream().into_iter().map(|mut token| {
        token.set_span(token.span().located_at(span));
        token
    });
    moved.collect()
}

/// Lowers a function.
pub(crate) fn function(
    signature: &Signature,
    body: &syn::Block,
    krate: &syn::Path,
) -> Result<Lowered> {
    refuse_qualifiers(signature)?;
    let mut lowering = Lowering {
        krate,
        own_name: signature.ident.to_string(),
        has_self: signature.receiver().is_some(),
        slots: Vec::new(),
        checks: Vec::new(),
        locals: Vec::new(),
        scopes: vec![Scope::default()],
        constants: Vec::new(),
        uses: Vec::new(),
        callees: Vec::new(),
        cfg: Vec::new(),
        closures: 0,
        loops: 0,
        before: Vec::new(),
    };
    let (twin, tree) = lowering.whole(signature, body)?;
    Ok(Lowered {
        twin,
        tree,
        slots: lowering.slots,
        checks: lowering.checks,
        constants: lowering.constants,
        uses: lowering.uses,
        callees: lowering.callees,
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
        let message = "a kernel's function has no generic parameters: write the types";
        return refused(first.span(), message);
    }
    Ok(())
}

impl Lowering<'_> {
    /// Signature and body.
    fn whole(
        &mut self,
        signature: &Signature,
        body: &syn::Block,
    ) -> Result<(TokenStream, TokenStream)> {
        let ReturnType::Type(_, result) = &signature.output else {
            let message = "a kernel's function returns a value: add `-> f32` or its like";
            return Err(Error::new(signature.ident.span(), message));
        };
        refused::ty(result)?;
        let gives = self.pinned(result);
        let (mut taken, mut patterns, mut types, mut seen) = (vec![], vec![], vec![], vec![]);
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if receiver.mutability.is_some() && receiver.reference.is_some() {
                        let message = "a kernel changes no fields: take `&self`";
                        return Err(Error::new(receiver.span(), message));
                    }
                }
                FnArg::Typed(typed) => {
                    refused::ty(&typed.ty)?;
                    let (pattern, ty) = (&typed.pat, &typed.ty);
                    types.push(self.pinned(ty));
                    patterns.push(self.binding(pattern, &mut seen)?);
                    taken.push(quote! { #pattern: #ty });
                }
            }
        }
        let block = self.block(body)?;
        let (twin, tree, locals) = (block.twin, block.tree, self.local_table());
        let receiver = self.has_self;
        Ok((
            quote! { |#(#taken),*| -> #result { #(#seen)* #twin } },
            quote! {
                Body {
                    receiver: #receiver,
                    parameters: &[#(Parameter { pattern: #patterns, ty: #types }),*],
                    locals: &[#(#locals),*],
                    result: #gives,
                    block: #tree,
                }
            },
        ))
    }

    fn local_table(&self) -> Vec<TokenStream> {
        let of = |local: &Local| {
            let (name, ty, mutable, cfg) = (&local.name, local.ty, local.mutable, &local.cfg);
            let shadows = local.shadows.unwrap_or(u16::MAX);
            let there = match cfg.is_empty() {
                true => quote! { true },
                false => quote! { cfg!(#cfg) },
            };
            quote! {
                Local { name: #name, ty: #ty, mutable: #mutable, there: #there, shadows: #shadows }
            }
        };
        self.locals.iter().map(of).collect()
    }

    /// A new slot at a place of the source, whose type the text needs; its number.
    fn slot(&mut self, span: Span) -> u16 {
        self.slot_of(span, true)
    }

    fn slot_of(&mut self, span: Span, described: bool) -> u16 {
        let at = self.slots.len();
        self.slots.push(Slot {
            ident: syn::Ident::new(&format!("slot{at}"), Span::mixed_site().located_at(span)),
            cfg: self.cfg_attribute(),
            described,
            span,
        });
        at as u16
    }

    /// A slot of a type that is written.
    fn pinned(&mut self, ty: &syn::Type) -> u16 {
        let at = self.slot(ty.span());
        let krate = self.krate_at(ty.span());
        let slot = &self.slots[usize::from(at)].ident;
        let check = quote_spanned! { ty.span() =>
            #krate::__device::pinned::<#ty>(&#slot);
        };
        self.checks.push(check);
        at
    }

    /// The path of the run-time half, so that errors of the compiler stand at this place.
    fn krate_at(&self, span: Span) -> TokenStream {
        located(self.krate, span)
    }

    /// The twin of a value, through a slot.
    fn probed(&self, slot: u16, value: TokenStream, span: Span) -> TokenStream {
        let (krate, slot) = (self.krate_at(span), &self.slots[usize::from(slot)].ident);
        quote_spanned! { span => #krate::__device::probe(&#slot, #value) }
    }

    /// A statement of the twin that shows the place of a value to a slot.
    fn seen(&self, slot: u16, place: &TokenStream, span: Span) -> TokenStream {
        let (krate, slot) = (self.krate_at(span), &self.slots[usize::from(slot)].ident);
        quote_spanned! { span => #krate::__device::see(&#slot, &#place); }
    }

    /// The twin of a place, which a slot sees.
    fn shown(&self, slot: u16, place: TokenStream, span: Span) -> TokenStream {
        let (krate, slot) = (self.krate_at(span), &self.slots[usize::from(slot)].ident);
        quote_spanned! { span => (*#krate::__device::shown(&#slot, &#place)) }
    }

    /// A check that the compiler makes of a slot's type, by a function of module `device`.
    fn check(&mut self, slot: u16, span: Span, function: TokenStream) {
        let (cfg, krate) = (self.cfg_attribute(), self.krate_at(span));
        let mut slot = self.slots[usize::from(slot)].ident.clone();
        slot.set_span(slot.span().located_at(span));
        let function = located(&function, span);
        // The braces have the hygiene of the call; else errors would stand at the attribute.
        let check = quote_spanned! { span => #cfg #krate::__device::#function({ &#slot }); };
        self.checks.push(check);
    }

    /// `#[cfg(all(…))]` of all conditions around the present place; nothing where there is none.
    fn cfg_attribute(&self) -> TokenStream {
        let conditions = self.conditions();
        match conditions.is_empty() {
            true => conditions,
            false => quote! { #[cfg(#conditions)] },
        }
    }

    /// `all(…)` of these conditions.
    fn conditions(&self) -> TokenStream {
        let conditions = self.cfg.iter().filter_map(|meta| match meta {
            syn::Meta::List(list) => Some(&list.tokens),
            _ => None,
        });
        match self.cfg.is_empty() {
            true => TokenStream::new(),
            false => quote! { all(#(#conditions),*) },
        }
    }

    /// Runs `f` inside the conditions of these attributes; returns these conditions as well.
    /// Attributes other than `cfg` that would change the code are refused.
    fn under<T>(
        &mut self,
        attributes: &[syn::Attribute],
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(TokenStream, T)> {
        let before = self.cfg.len();
        let mut own = TokenStream::new();
        for attribute in attributes {
            let path = attribute.path();
            if path.is_ident("cfg") {
                self.cfg.push(attribute.meta.clone());
                own.extend(quote! { #attribute });
            } else if !["allow", "expect", "warn", "rustfmt", "doc", "inline"]
                .iter()
                .any(|known| path.segments.first().is_some_and(|s| s.ident == known))
            {
                let message = "this attribute is not translated: remove it, or use `cfg`";
                return Err(Error::new(attribute.span(), message));
            }
        }
        let made = f(self);
        self.cfg.truncate(before);
        Ok((own, made?))
    }
}

#[cfg(test)]
mod tests;
