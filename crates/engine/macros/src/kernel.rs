//! `#[pair_kernel]`.

use crate::{arguments::Arguments, emit, translate};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, ImplItem, ImplItemFn, ItemImpl, Result, Type, parse_quote, parse2, spanned::Spanned,
};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = parse2(arguments)?;
    let mut kernel: ItemImpl = parse2(item)?;
    let of = kernel.trait_.as_ref().and_then(|of| of.1.segments.last());
    if of.is_none_or(|last| last.ident != "PairKernel") {
        let message = "#[pair_kernel] stands on `impl PairKernel for …`";
        return Err(Error::new(kernel.self_ty.span(), message));
    }
    let associated: Vec<(String, Type)> = kernel
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Type(item) => Some((item.ident.to_string(), item.ty.clone())),
            _ => None,
        })
        .collect();
    let functions = kernel.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let mut pair: Option<&ImplItemFn> = None;
    for function in functions {
        match function.sig.ident.to_string().as_str() {
            "cuda" => {
                let message = "#[pair_kernel] writes `cuda`: remove one of them";
                return Err(Error::new(function.sig.ident.span(), message));
            }
            "pair" => pair = Some(function),
            _ => {}
        }
    }
    let Some(pair) = pair else {
        let message = "the kernel has no function `pair`";
        return Err(Error::new(kernel.self_ty.span(), message));
    };
    let krate = &arguments.krate;
    let translated = translate::function(&pair.sig, &pair.block, krate, &associated, true)?;
    let name = type_name(&kernel.self_ty);
    let shown = format!(
        "{}::pair",
        kernel
            .self_ty
            .to_token_stream()
            .to_string()
            .replace(' ', "")
    );
    let assembly = emit::assembly(
        &translated,
        &translate::allowed(&format!("{name}_pair")),
        &shown,
    );
    let antisymmetric = match &arguments.antisymmetric {
        Some(channels) => quote! { ::core::option::Option::Some(&[#(#channels),*]) },
        None => quote! { ::core::option::Option::None },
    };
    // A static in a generic function is one for all its types, so those keep no text.
    let (kept, declared) = if kernel.generics.params.is_empty() {
        (
            quote! { ::core::option::Option::Some(&TEXT) },
            quote! { static TEXT: ::std::sync::OnceLock<::std::string::String> = ::std::sync::OnceLock::new(); },
        )
    } else {
        (quote! { ::core::option::Option::None }, quote! {})
    };
    let cuda: ImplItemFn = parse_quote! {
        #[allow(clippy::all)]
        fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
            #declared
            #krate::__device::kernel::<Self>(#name, #kept, #antisymmetric, |device| #assembly)
        }
    };
    kernel.items.push(ImplItem::Fn(cuda));
    Ok(kernel.into_token_stream())
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
    .unwrap_or_else(|| "kernel".to_owned())
}
