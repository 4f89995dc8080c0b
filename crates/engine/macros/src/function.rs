//! `#[pair_fn]`.
//!
//! The text of a free function is carried by a type of the function's name: names of functions and
//! of types do not collide, and a `use` brings both. That of a method is carried by a hidden method
//! beside it.

use crate::{
    arguments::Arguments,
    emit,
    translate::{self, Role},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ImplItemFn, Result, Visibility, parse_quote, parse2};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = parse2(arguments)?;
    let function: ImplItemFn = parse2(item)?;
    let krate = &arguments.krate;
    let signature = &function.sig;
    let translated = translate::function(signature, &function.block, krate, &[], Role::Called)?;
    let name = signature.ident.to_string();
    let assembly = emit::assembly(
        &translated,
        &translate::allowed(&name),
        &name,
        emit::Identity::Place,
        krate,
    );
    let visibility = &function.vis;
    let ident = &signature.ident;
    let hidden = format_ident!("__nearfield_device_{ident}");
    let allowed = quote! {
        #[doc(hidden)]
        #[allow(dead_code, non_snake_case, clippy::all)]
    };
    Ok(if signature.receiver().is_some() {
        quote! {
            #function

            #allowed
            #visibility fn #hidden(&self, device: &mut #krate::__device::Device) -> #krate::__device::Method {
                #assembly
            }
        }
    } else if arguments.associated {
        quote! {
            #function

            #allowed
            #visibility fn #hidden(device: &mut #krate::__device::Device) -> ::std::string::String {
                #assembly.name()
            }
        }
    } else {
        let visibility: Visibility = match visibility {
            Visibility::Inherited => parse_quote!(),
            other => other.clone(),
        };
        quote! {
            #function

            #[doc(hidden)]
            #[allow(dead_code, non_camel_case_types, missing_debug_implementations)]
            #visibility enum #ident {}

            #[allow(clippy::all)]
            impl #krate::__device::DeviceFunction for #ident {
                fn device(device: &mut #krate::__device::Device) -> ::std::string::String {
                    #assembly.name()
                }
            }
        }
    })
}
