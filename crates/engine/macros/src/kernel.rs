//! `#[pair_kernel]`.

use crate::{
    arguments::Arguments,
    emit,
    translate::{self, Role},
};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, ImplItem, ImplItemFn, ItemImpl, Result, Type, parse_quote, parse2, spanned::Spanned,
};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = parse2(arguments)?;
    let mut kernel: ItemImpl = parse2(item)?;
    let of = kernel.trait_.as_ref().and_then(|of| of.1.segments.last());
    let potential = of.is_some_and(|last| last.ident == "PairPotential");
    if !potential && of.is_none_or(|last| last.ident != "PairKernel") {
        let message =
            "#[pair_kernel] stands on `impl PairKernel for …` or `impl PairPotential for …`";
        return Err(Error::new(kernel.self_ty.span(), message));
    }
    let evaluated = if potential { "evaluate" } else { "pair" };
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
    let (mut pair, mut symmetric): (Option<&ImplItemFn>, Option<&ImplItemFn>) = (None, None);
    for function in functions {
        match function.sig.ident.to_string().as_str() {
            "cuda" => {
                let message = "#[pair_kernel] writes `cuda`: remove one of them";
                return Err(Error::new(function.sig.ident.span(), message));
            }
            name if name == evaluated => pair = Some(function),
            // Signs say it in fewer operations.
            "symmetric" if !potential && arguments.antisymmetric.is_none() => {
                symmetric = Some(function);
            }
            _ => {}
        }
    }
    let Some(pair) = pair else {
        let message = format!("the kernel has no function `{evaluated}`");
        return Err(Error::new(kernel.self_ty.span(), message));
    };
    let krate = &arguments.krate;
    let name = type_name(&kernel.self_ty);
    let written = kernel.self_ty.to_token_stream().to_string();
    let assembly = |function: &ImplItemFn, role: Role, identity: emit::Identity| {
        let own = &function.sig.ident;
        let translated =
            translate::function(&function.sig, &function.block, krate, &associated, role)?;
        let shown = format!("{}::{own}", written.replace(' ', ""));
        let called = translate::allowed(&format!("{name}_{own}"));
        Ok::<_, Error>(emit::assembly(
            &translated,
            &called,
            &shown,
            identity,
            krate,
        ))
    };
    let identity = match (potential, kernel.generics.params.is_empty()) {
        (false, _) => emit::Identity::Kernel,
        (true, true) => emit::Identity::Place,
        (true, false) => emit::Identity::Evaluate,
    };
    let of_pair = assembly(pair, Role::Pair, identity)?;
    let of_both = match symmetric {
        Some(symmetric) => Some(assembly(symmetric, Role::Symmetric, identity)?),
        None => None,
    };
    let items = if potential {
        of_potential(&arguments, &name, &of_pair)?
    } else {
        vec![of_kernel(&arguments, &name, &of_pair, of_both.as_ref())]
    };
    kernel.items.extend(items.into_iter().map(ImplItem::Fn));
    Ok(kernel.into_token_stream())
}

/// The method `cuda` of a kernel.
fn of_kernel(
    arguments: &Arguments,
    name: &str,
    pair: &TokenStream,
    symmetric: Option<&TokenStream>,
) -> ImplItemFn {
    let krate = &arguments.krate;
    if let Some(symmetric) = symmetric {
        return parse_quote! {
            #[allow(clippy::all)]
            fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
                #krate::__device::symmetric_kernel::<Self, _, _>(
                    #name,
                    |device| #pair,
                    |device, pair_of_kernel| #symmetric,
                )
            }
        };
    }
    let antisymmetric = match &arguments.antisymmetric {
        Some(channels) => quote! { ::core::option::Option::Some(&[#(#channels),*]) },
        None => quote! { ::core::option::Option::None },
    };
    parse_quote! {
        #[allow(clippy::all)]
        fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
            #krate::__device::kernel::<Self, _>(#name, #antisymmetric, |device| #pair)
        }
    }
}

/// The methods of a potential: one that adds its text to that of a kernel, and `cuda`.
fn of_potential(
    arguments: &Arguments,
    name: &str,
    assembly: &TokenStream,
) -> Result<Vec<ImplItemFn>> {
    if let Some(first) = arguments.antisymmetric.iter().flatten().next() {
        let message = "a potential is symmetric: `Forces` and `Interactions` say how";
        return Err(Error::new(first.span(), message));
    }
    let krate = &arguments.krate;
    Ok(vec![
        parse_quote! {
            #[doc(hidden)]
            #[allow(clippy::all)]
            fn __nearfield_device_evaluate(&self, device: &mut #krate::__device::Device) -> #krate::__device::Method {
                #assembly
            }
        },
        parse_quote! {
            fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
                #krate::__device::potential::<Self::Point, _>(#name, |device| self.__nearfield_device_evaluate(device))
            }
        },
    ])
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
    .unwrap_or_else(|| "kernel".to_owned())
}
