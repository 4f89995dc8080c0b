//! The Rust code that assembles a translated function's text at run time.

use crate::translate::{Piece, Translated, UseKind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The identity of a function among all functions of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Its place in the program.
    Place,
    /// That, for a function of the kernel itself, which shares uniforms with its others.
    Kernel,
    /// That, and the address of the hidden method of a potential, which is another one for every
    /// type of a generic potential.
    Evaluate,
}

/// An expression of type `Method` that adds the function to `device`. `shown` is what the function
/// is called in a comment, and `name` in the text.
pub(crate) fn assembly(
    translated: &Translated,
    name: &str,
    shown: &str,
    identity: Identity,
    krate: &syn::Path,
) -> TokenStream {
    let shares = identity == Identity::Kernel;
    let uses = translated.uses.iter().map(|used| {
        let (name, value) = (&used.name, &used.value);
        let key = if shares {
            value.to_string()
        } else {
            String::new()
        };
        match used.kind {
            UseKind::Field => quote! { function.field(device, #name, #key, #value); },
            UseKind::Table => quote! { function.table(device, #name, #key, #value); },
            UseKind::Method => {
                let variable = format_ident!("{name}");
                if shares {
                    quote! { let #variable = device.shared(#key, |device| #value); }
                } else {
                    quote! { let #variable = #value; }
                }
            }
        }
    });
    let constants = translated.constants.iter().map(|(name, path)| {
        quote! { function.constant(device, #name, #path); }
    });
    let pieces = translated.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => quote! { function.text(#text); },
        Piece::Name => quote! {
            let name = function.name().to_owned();
            function.text(&name);
        },
        Piece::Declarations => quote! { function.declarations(); },
        Piece::Hole(expression) => {
            quote! {
                let part = #expression;
                function.text(&part);
            }
        }
    });
    let comment = format!("// {shown}\n");
    let place = quote! {
        ::core::concat!(::core::module_path!(), "::", #shown, ":", ::core::line!(), ":", ::core::column!())
    };
    let begun = match identity {
        Identity::Place => quote! { device.begin(#place, #name) },
        Identity::Kernel => quote! { device.begin_of_kernel(#place, #name) },
        Identity::Evaluate => quote! {{
            let written: fn(&Self, &mut #krate::__device::Device) -> #krate::__device::Method =
                Self::__nearfield_device_evaluate;
            device.begin_generic(#place, written as usize, #name)
        }},
    };
    quote! {{
        let mut function = #begun;
        #(#uses)*
        if function.wanted() {
            #(#constants)*
            function.text(#comment);
            #(#pieces)*
        }
        device.end(function)
    }}
}
