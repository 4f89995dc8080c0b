//! `#[derive(Channels)]`.

use crate::arguments::Arguments;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Data, DeriveInput, Error, Field, Fields, Ident, Path, Result, Token, Type, parse2,
    punctuated::Punctuated, spanned::Spanned,
};

pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    let item: DeriveInput = parse2(item)?;
    let mut arguments = Arguments::default();
    for attribute in &item.attrs {
        if attribute.path().is_ident("channels") {
            arguments = attribute.parse_args()?;
        }
    }
    let krate = &arguments.krate;
    let fields = named_fields(&item)?;
    let name = &item.ident;
    let names: Vec<&Ident> = fields
        .iter()
        .filter_map(|field| field.ident.as_ref())
        .collect();
    let tys: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let (parts, taken, given) = nested(&names, &tys);
    let arrays: Vec<Ident> = (0..names.len())
        .map(|k| format_ident!("Array{k}"))
        .collect();
    let at = (0..names.len()).map(syn::Index::from);
    let value = device_value(krate, name, &names, &tys);
    Ok(quote! {
        impl #krate::__device::ChannelStruct for #name {
            type Parts = #parts;

            #[inline(always)]
            fn from_parts(parts: Self::Parts) -> Self {
                let #taken = parts;
                Self { #(#names),* }
            }

            #[inline(always)]
            fn into_parts(self) -> Self::Parts {
                let Self { #(#names),* } = self;
                #given
            }
        }

        #value

        /// One array for each field.
        impl<'a, #(#arrays: #krate::__device::FieldsOf<'a, #tys>),*>
            #krate::__device::FieldsOf<'a, #name> for (#(#arrays,)*)
        {
            fn append_to(self, fields: &mut ::std::vec::Vec<#krate::__device::Field<'a>>) {
                #(self.#at.append_to(fields);)*
            }
        }
    })
}

/// The struct on a GPU: its declaration, its numbers, and constants of it.
fn device_value(krate: &Path, name: &Ident, names: &[&Ident], tys: &[&Type]) -> TokenStream {
    let shown = name.to_string();
    let fields: Vec<String> = names
        .iter()
        .map(|name| name.to_string().trim_start_matches("r#").to_owned())
        .collect();
    quote! {
        impl #krate::__device::Bare for #name {
            type Bare = Self;
        }

        impl #krate::__device::DeviceValue for #name {
            const NUMBERS: usize = 0 #(+ <#tys as #krate::__device::DeviceValue>::NUMBERS)*;

            fn ty(types: &mut #krate::__device::Types) -> #krate::__device::Type {
                let fields = ::std::vec![
                    #((#fields, <#tys as #krate::__device::DeviceValue>::ty(types))),*
                ];
                types.declare::<Self>(#shown, fields)
            }

            fn uniforms(self, to: &mut ::std::vec::Vec<f32>) {
                #(#krate::__device::DeviceValue::uniforms(self.#names, to);)*
            }

            fn literal(self, types: &mut #krate::__device::Types) -> ::std::string::String {
                let name = <Self as #krate::__device::DeviceValue>::name(types);
                let fields = [#(#krate::__device::DeviceValue::literal(self.#names, types)),*];
                ::std::format!("{name}{{{}}}", fields.join(", "))
            }
        }
    }
}

/// The fields of a struct that can have channels.
fn named_fields(item: &DeriveInput) -> Result<&Punctuated<Field, Token![,]>> {
    if let Some(first) = item.generics.params.first() {
        return Err(Error::new(
            first.span(),
            "a struct of channels has no generic parameters",
        ));
    }
    let fields = match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => &named.named,
            other => {
                let message =
                    "a struct of channels has named fields: `struct Point { velocity: [f32; 3] }`";
                return Err(Error::new(
                    item.ident
                        .span()
                        .join(other.span())
                        .unwrap_or(item.ident.span()),
                    message,
                ));
            }
        },
        _ => {
            return Err(Error::new(
                item.ident.span(),
                "channels are those of a struct with named fields",
            ));
        }
    };
    if fields.is_empty() || fields.len() > 12 {
        let message =
            "a struct of channels has one to twelve fields: use arrays, or structs in structs";
        return Err(Error::new(item.ident.span(), message));
    }
    Ok(fields)
}

/// Fields as tuples of at most six, and patterns and values of these.
fn nested(names: &[&Ident], tys: &[&Type]) -> (TokenStream, TokenStream, TokenStream) {
    if names.len() <= 6 {
        let names = quote! { (#(#names,)*) };
        return (quote! { (#(#tys,)*) }, names.clone(), names);
    }
    let (first, taken, given) = nested(&names[..6], &tys[..6]);
    let (rest, rest_taken, rest_given) = nested(&names[6..], &tys[6..]);
    (
        quote! { (#first, #rest) },
        quote! { (#taken, #rest_taken) },
        quote! { (#given, #rest_given) },
    )
}
