//! `#[pair_kernel]`.

use crate::{
    arguments::Arguments,
    emit,
    lower::{self, Role},
};
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
    let all = |name, role| -> Result<Vec<Made>> {
        named(name)
            .map(|function| made(ty, function, role, !potential, krate))
            .collect()
    };
    let pairs = all(evaluated, Role::Pair)?;
    if pairs.is_empty() {
        let message = format!("the kernel has no function `{evaluated}`");
        return Err(Error::new(kernel.self_ty.span(), message));
    }
    // Signs say it in fewer operations.
    let symmetric = match potential || arguments.antisymmetric.is_some() {
        true => Vec::new(),
        false => all("symmetric", Role::Symmetric)?,
    };
    let name = emit::type_name(ty);
    let items = if potential {
        of_potential(&arguments, &name, &pairs)?
    } else {
        vec![of_kernel(&arguments, &name, &pairs, &symmetric)]
    };
    kernel.items.extend(items.into_iter().map(ImplItem::Fn));
    Ok(kernel.into_token_stream())
}

fn made(ty: &Type, function: &ImplItemFn, role: Role, shares: bool, krate: &Path) -> Result<Made> {
    let lowered = lower::function(&function.sig, &function.block, krate, role)?;
    let written = ty.to_token_stream().to_string();
    let own = &function.sig.ident;
    let shown = format!("{}::{own}", written.replace(' ', ""));
    let cfg = function.attrs.iter().filter(|a| a.path().is_ident("cfg"));
    Ok(Made {
        cfg: quote! { #(#cfg)* },
        assembly: emit::assembly(&lowered, &emit::name_of(ty, own), &shown, shares, krate),
    })
}

/// The method `cuda` of a kernel. Of functions under conditions the compiler leaves one.
fn of_kernel(arguments: &Arguments, name: &str, pairs: &[Made], symmetric: &[Made]) -> ImplItemFn {
    let krate = &arguments.krate;
    let antisymmetric = match &arguments.antisymmetric {
        Some(channels) => quote! { ::core::option::Option::Some(&[#(#channels),*]) },
        None => quote! { ::core::option::Option::None },
    };
    let ways = pairs.iter().map(|made| {
        let (cfg, pair) = (&made.cfg, &made.assembly);
        let both = symmetric.iter().map(|made| {
            let (cfg, both) = (&made.cfg, &made.assembly);
            quote! {
                #cfg
                return #krate::__device::symmetric_kernel::<Self, _, _>(
                    #name,
                    |device| #pair,
                    |device, pair_of_kernel| #both,
                );
            }
        });
        let always = symmetric.iter().any(|made| made.cfg.is_empty());
        let alone = (!always).then(|| {
            quote! {
                return #krate::__device::kernel::<Self, _>(#name, #antisymmetric, |device| #pair);
            }
        });
        quote! { #cfg { #(#both)* #alone } }
    });
    parse_quote! {
        #[allow(unreachable_code, clippy::all)]
        fn cuda(&self) -> ::core::option::Option<#krate::__device::Cuda> {
            #(#ways)*
        }
    }
}

/// The methods of a potential: one that adds its text to that of a kernel, and `cuda`.
fn of_potential(arguments: &Arguments, name: &str, evaluated: &[Made]) -> Result<Vec<ImplItemFn>> {
    if let Some(first) = arguments.antisymmetric.iter().flatten().next() {
        let message = "a potential is symmetric: `Forces` and `Interactions` say how";
        return Err(Error::new(first.span(), message));
    }
    let krate = &arguments.krate;
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
    Ok(items)
}
