//! `#[pair_fn]`.
//!
//! The text of a free function is carried by a type of the function's name: names of functions and
//! of types do not collide, and a `use` brings both. That of a method is carried by a hidden method
//! beside it.

use crate::{arguments::Arguments, emit, lower};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ImplItemFn, Result, parse2};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = parse2(arguments)?;
    let function: ImplItemFn = parse2(item)?;
    let krate = &arguments.krate;
    let signature = &function.sig;
    let lowered = lower::function(signature, &function.block, krate)?;
    let name = signature.ident.to_string();
    let assembly = emit::assembly(&lowered, &name, &name, krate);
    let (visibility, ident) = (&function.vis, &signature.ident);
    let hidden = format_ident!("__nearfield_device_{ident}");
    let cfg = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));
    let cfg = quote! { #(#cfg)* };
    let allowed = quote! {
        #cfg
        #[doc(hidden)]
        #[allow(dead_code, non_snake_case, clippy::all)]
    };
    let hidden = if signature.receiver().is_some() {
        quote! {
            #allowed
            #visibility fn #hidden(&self, device: &mut #krate::__device::Device) -> #krate::__device::Method {
                #assembly
            }
        }
    } else if arguments.associated {
        quote! {
            #allowed
            #visibility fn #hidden(device: &mut #krate::__device::Device) -> ::std::string::String {
                #assembly.name()
            }
        }
    } else {
        quote! {
            #cfg
            #[doc(hidden)]
            #[allow(dead_code, non_camel_case_types, missing_debug_implementations)]
            #visibility enum #ident {}

            #cfg
            #[allow(clippy::all)]
            impl #krate::__device::DeviceFunction for #ident {
                fn device(device: &mut #krate::__device::Device) -> ::std::string::String {
                    #assembly.name()
                }
            }
        }
    };
    Ok(quote! { #function #hidden })
}
