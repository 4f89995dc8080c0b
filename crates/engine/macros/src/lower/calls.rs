//! Calls of functions.

use super::{Lowering, Part, places::strip};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, Expr, ExprCall, Result, spanned::Spanned};

/// Types whose associated functions the text has.
const TYPES: [&str; 9] = [
    "f32", "u32", "i32", "u64", "i64", "usize", "isize", "Vec2", "Vec3",
];
/// Functions of these that make a value.
const MAKERS: [&str; 5] = ["new", "splat", "from", "from_array", "from_bits"];

impl Lowering<'_> {
    pub(super) fn call(&mut self, call: &ExprCall) -> Result<Part> {
        let Expr::Path(path) = strip(&call.func) else {
            let message =
                "call functions by their names; closures are arguments of `map` and `fold` only";
            return Err(Error::new(call.func.span(), message));
        };
        let segments = &path.path.segments;
        let Some(last) = segments.last().map(|last| last.ident.clone()) else {
            return Err(Error::new(path.span(), "call functions by their names"));
        };
        let of = segments.iter().rev().nth(1).map(|of| of.ident.to_string());
        let of = of.unwrap_or_default();
        if TYPES.contains(&of.as_str()) {
            return self.associated(call, path, &last);
        }
        if last.to_string().starts_with(char::is_uppercase) {
            let message =
                "structs in kernels have named fields and derive Channels: `Name { field: value }`";
            return Err(Error::new(path.span(), message));
        }
        if segments.len() == 1 && !self.has_self && last == self.own_name {
            let message = "a function here does not call itself: use a loop of constant length";
            return Err(Error::new(path.span(), message));
        }
        if segments
            .iter()
            .any(|segment| !segment.arguments.is_empty() && segment.ident == last)
        {
            let message = "functions of kernels have no generic parameters";
            return Err(Error::new(path.span(), message));
        }
        let (twins, trees) = self.values(&call.args)?;
        let callee = match path.qself.is_some() || of.starts_with(char::is_uppercase) {
            true => associated_text(self.krate, path, &last),
            false => function_text(self.krate, path, &last),
        };
        let (cfg, at) = (self.cfg_attribute(), self.callees.len() as u16);
        self.callees.push(match cfg.is_empty() {
            true => callee,
            false => quote! {{ #cfg { #callee } #[cfg(not(all()))] { #callee } }},
        });
        let kind = quote! { Kind::Call(#at, &[#(#trees),*]) };
        Ok(self.slotted(call.span(), quote! { #path(#(#twins),*) }, kind))
    }

    /// A function of a number's or a vector's type: a maker, or a method called by its path.
    fn associated(
        &mut self,
        call: &ExprCall,
        path: &syn::ExprPath,
        last: &syn::Ident,
    ) -> Result<Part> {
        let name = last.to_string();
        let known =
            MAKERS.contains(&name.as_str()) || super::methods::METHODS.contains(&name.as_str());
        if !known {
            return Err(super::refused::method(&name, last.span()));
        }
        let mut of = path.path.clone();
        of.segments.pop();
        of.segments.pop_punct();
        let ty = self.pinned(&syn::parse_quote!(#of));
        let (twins, trees) = self.values(&call.args)?;
        let (marker, krate) = (
            format_ident!("{name}", span = last.span()),
            self.krate_at(last.span()),
        );
        self.check(
            ty,
            last.span(),
            quote! { has::<#krate::__device::method::#marker, _> },
        );
        if name == "from"
            && let Some(first) = call.args.first()
        {
            // Conversions that the text has; the argument goes through one more slot for this.
            let slot = self.slot_of(first.span(), false);
            let twin = self.probed(slot, twins[0].clone(), first.span());
            self.check(slot, first.span(), quote! { converted::<#of, _> });
            let kind = quote! { Kind::Associated(#ty, #name, &[#(#trees),*]) };
            return Ok(self.slotted(call.span(), quote! { #path(#twin) }, kind));
        }
        let kind = quote! { Kind::Associated(#ty, #name, &[#(#trees),*]) };
        Ok(self.slotted(call.span(), quote! { #path(#(#twins),*) }, kind))
    }
}

/// The expression that adds a free function: its text is carried by a type of its name. The import
/// brings the function and that type; where there is none, the name means a type without a text,
/// and the compiler says so.
fn function_text(krate: &syn::Path, path: &syn::ExprPath, last: &syn::Ident) -> TokenStream {
    // Errors are shown at the function's name, and `device` is the one around this.
    let span = last.span().resolved_at(Span::call_site());
    let text = quote_spanned! { span =>
        <Found as #krate::__device::DeviceFunction>::device(device)
    };
    quote! {{
        #[allow(dead_code)]
        enum Found {}
        {
            #[allow(unused_imports)]
            use #path as Found;
            #text
        }
    }}
}

/// The expression that adds a function of a type.
fn associated_text(krate: &syn::Path, path: &syn::ExprPath, last: &syn::Ident) -> TokenStream {
    let mut hidden = path.clone();
    let span: Span = last.span();
    if let Some(last) = hidden.path.segments.last_mut() {
        last.ident = format_ident!("__nearfield_device_{}", last.ident, span = span);
    }
    let name = &hidden.path.segments.last().map(|last| last.ident.clone());
    let message = format!("the function `{last}` has no text for the GPU");
    quote! {{
        #[diagnostic::on_unimplemented(
            message = #message,
            note = "mark the function with #[nearfield::pair_fn(associated)]"
        )]
        trait HasText {}
        trait Missing {
            fn #name(_: &mut #krate::__device::Device) -> ::std::string::String
            where
                Self: HasText,
            {
                ::core::unreachable!()
            }
        }
        impl<T: ?::core::marker::Sized> Missing for T {}
        #hidden(device)
    }}
}
