//! The Rust code that writes a function's text at run time, from its tree and the types of its
//! twin.

use crate::lower::{Lowered, UseKind, located};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

/// An expression of type `Method` that adds the function to `device`. `shown` is what the function
/// is called in a comment, and `name` in the text.
pub(crate) fn assembly(
    lowered: &Lowered,
    name: &str,
    shown: &str,
    krate: &syn::Path,
) -> TokenStream {
    let uses = uses(lowered);
    let written = written(lowered, krate);
    quote! {{
        let mut function = device.begin(
            // The type of a closure tells all functions apart, and all instances of generic ones.
            #krate::__device::identity(&|| ()),
            #name,
            ::core::concat!(::core::module_path!(), "::", #shown),
        );
        #(#uses)*
        if function.wanted() {
            #written
        }
        device.end(function)
    }}
}

/// Statements that add the uniforms and the methods of `self`, in their order.
fn uses(lowered: &Lowered) -> impl Iterator<Item = TokenStream> {
    lowered.uses.iter().map(|used| {
        let (name, value) = (&used.name, &used.value);
        let key = value.to_string();
        let added = match used.kind {
            UseKind::Field => quote! { function.field(device, #name, #key, #value); },
            UseKind::Table => quote! { function.table(device, #name, #key, #value); },
            UseKind::Method => quote! {
                let method = #value;
                function.method(method);
            },
        };
        under(&used.cfg, &added, &quote! { function.no_use(); })
    })
}

/// Statements that hand over the tree, the types, the constants and the functions called, and write
/// the text.
fn written(lowered: &Lowered, krate: &syn::Path) -> TokenStream {
    let (twin, tree, checks) = (&lowered.twin, &lowered.tree, &lowered.checks);
    let slots = lowered.slots.iter().map(|slot| {
        let (cfg, ident) = (&slot.cfg, &slot.ident);
        quote_spanned! { slot.span => #cfg let #ident = #krate::__device::slot(); }
    });
    let types = lowered.slots.iter().map(|slot| {
        let (cfg, ident) = (&slot.cfg, &slot.ident);
        let none = quote! { #krate::__device::undescribed };
        let krate = located(krate, slot.span);
        let described = quote_spanned! { slot.span => #krate::__device::described({ &#ident }) };
        match (slot.described, cfg.is_empty()) {
            (false, _) => none,
            (true, true) => described,
            (true, false) => {
                let without = negated(cfg);
                quote! { { #cfg { #described } #without { #none } } }
            }
        }
    });
    let constants = lowered.constants.iter().map(|constant| {
        let (name, value) = (&constant.name, &constant.value);
        let added = quote! { function.constant(device, #name, #value); };
        under(&constant.cfg, &added, &quote! { function.no_constant(); })
    });
    let callees = &lowered.callees;
    quote! {
        static BODY: #krate::__device::tree::Body = {
            use #krate::__device::tree::*;
            #tree
        };
        #(#slots)*
        #[allow(warnings, clippy::all, clippy::pedantic, clippy::nursery)]
        let _ = #twin;
        #[allow(unused_braces)]
        {
            #(#checks)*
            function.types(device, &[#(#types),*]);
        }
        #(#constants)*
        #(
            let callee = #callees;
            function.callee(callee);
        )*
        function.write(&BODY);
    }
}

/// A statement under a condition, and another where it does not hold, so that numbers stay.
fn under(cfg: &TokenStream, statement: &TokenStream, otherwise: &TokenStream) -> TokenStream {
    if cfg.is_empty() {
        return statement.clone();
    }
    let without = negated(cfg);
    quote! { #cfg { #statement } #without { #otherwise } }
}

/// `#[cfg(not(…))]` of `#[cfg(…)]`.
fn negated(cfg: &TokenStream) -> TokenStream {
    let attribute: syn::Result<Vec<syn::Attribute>> =
        syn::parse::Parser::parse2(syn::Attribute::parse_outer, cfg.clone());
    let conditions = attribute.into_iter().flatten().filter_map(|attribute| {
        let list = attribute.meta.require_list().ok()?;
        Some(list.tokens.clone())
    });
    quote! { #[cfg(not(all(#(#conditions),*)))] }
}

/// A name for a function of a kernel or a potential.
pub(crate) fn name_of(ty: &syn::Type, function: &syn::Ident) -> String {
    format_ident!("{}_{}", type_name(ty), function).to_string()
}

/// The last name of a type.
pub(crate) fn type_name(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
    .unwrap_or_else(|| "kernel".to_owned())
}
