//! `#[pair_kernel]`.

use crate::{arguments::Arguments, emit, lower};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, ImplItem, ImplItemFn, ItemImpl, Path, Result, Type, parse_quote, parse2,
    spanned::Spanned,
};

/// A function of a kernel, under the conditions that it has.
struct Made {
    cfg: TokenStream,
    assembly: TokenStream,
}

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
    let named = |name: &'static str| {
        kernel.items.iter().filter_map(move |item| match item {
            ImplItem::Fn(function) if function.sig.ident == name => Some(function),
            _ => None,
        })
    };
    if let Some(written) = named("cuda").next() {
        let message = "#[pair_kernel] writes `cuda`: remove one of them";
        return Err(Error::new(written.sig.ident.span(), message));
    }
    let evaluated = if potential { "evaluate" } else { "pair" };
    let (ty, krate) = (&kernel.self_ty, &arguments.krate);
    let pairs = named(evaluated).map(|function| made(ty, function, krate));
    let pairs = pairs.collect::<Result<Vec<Made>>>()?;
    if pairs.is_empty() {
        let message = format!("the kernel has no function `{evaluated}`");
        return Err(Error::new(kernel.self_ty.span(), message));
    }
    let name = emit::type_name(ty);
    let items = if potential {
        of_potential(krate, &name, &pairs)
    } else {
        vec![of_kernel(krate, &name, &pairs)]
    };
    inline(&mut kernel, &[evaluated, "symmetric"]);
    kernel.items.extend(items.into_iter().map(ImplItem::Fn));
    Ok(kernel.into_token_stream())
}

/// Marks functions to be inlined where they say nothing about it: a loop that calls one is not
/// vectorised, and large functions are not inlined by themselves.
fn inline(kernel: &mut ItemImpl, names: &[&str]) {
    for item in &mut kernel.items {
        if let ImplItem::Fn(function) = item
            && names.iter().any(|name| function.sig.ident == name)
            && !function.attrs.iter().any(|a| a.path().is_ident("inline"))
        {
            function.attrs.push(parse_quote! { #[inline(always)] });
        }
    }
}

fn made(ty: &Type, function: &ImplItemFn, krate: &Path) -> Result<Made> {
    let lowered = lower::function(&function.sig, &function.block, krate)?;
    let written = ty.to_token_stream().to_string();
    let own = &function.sig.ident;
    let shown = format!("{}::{own}", written.replace(' ', ""));
    let cfg = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));
    Ok(Made {
        cfg: quote! { #(#cfg)* },
        assembly: emit::assembly(&lowered, &emit::name_of(ty, own), &shown, krate),
    })
}

/// The method `cuda` of a kernel. Of functions under conditions the compiler leaves one.
fn of_kernel(krate: &Path, name: &str, pairs: &[Made]) -> ImplItemFn {
    let ways = pairs.iter().map(|Made { cfg, assembly }| {
        quote! {
            #cfg
            return #krate::__device::kernel::<Self, _>(#name, |device| #assembly);
        }
    });
    parse_quote! {
        #[allow(unreachable_code, clippy::all)]
        fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
            #(#ways)*
        }
    }
}

/// The methods of a potential: one that adds its text to that of a kernel, and `cuda`.
fn of_potential(krate: &Path, name: &str, evaluated: &[Made]) -> Vec<ImplItemFn> {
    let mut items: Vec<ImplItemFn> = Vec::new();
    for Made { cfg, assembly } in evaluated {
        items.push(parse_quote! {
            #cfg
            #[doc(hidden)]
            #[allow(clippy::all)]
            fn __nearfield_device_evaluate(&self, device: &mut #krate::__device::Device) -> #krate::__device::Method {
                #assembly
            }
        });
    }
    items.push(parse_quote! {
        fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
            #krate::__device::potential::<Self::Point, _>(#name, |device| self.__nearfield_device_evaluate(device))
        }
    });
    items
}
