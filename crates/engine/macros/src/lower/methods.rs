//! Methods: those that the text has functions for, and those of `self`.

use super::{
    Lowering, Part,
    places::{is_self, self_path, strip},
    refused,
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, Expr, ExprMethodCall, Result, spanned::Spanned};

/// Methods of numbers and vectors that texts have functions for. Which type has which is for the
/// compiler to say.
pub(super) const METHODS: &[&str] = &[
    "abs",
    "abs_diff",
    "atan2",
    "ceil",
    "clamp",
    "clamp_length_max",
    "clone",
    "copysign",
    "cos",
    "count_ones",
    "cross",
    "distance",
    "distance_squared",
    "dot",
    "element_product",
    "element_sum",
    "exp",
    "exp2",
    "floor",
    "fract",
    "is_finite",
    "is_infinite",
    "is_nan",
    "is_sign_negative",
    "is_sign_positive",
    "leading_zeros",
    "length",
    "length_recip",
    "length_squared",
    "lerp",
    "ln",
    "log10",
    "log2",
    "max",
    "max_element",
    "min",
    "min_element",
    "mul_add",
    "normalize",
    "normalize_or",
    "normalize_or_zero",
    "pow",
    "powf",
    "powi",
    "project_onto",
    "recip",
    "reflect",
    "reject_from",
    "reversed",
    "rotate_left",
    "rotate_right",
    "round",
    "round_ties_even",
    "signum",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "to_array",
    "to_bits",
    "trailing_zeros",
    "trunc",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_neg",
    "wrapping_sub",
];

/// Methods of arrays and of iterators over them, and the number of their arguments.
const SEQUENCES: &[(&str, usize)] = &[
    ("iter", 0),
    ("into_iter", 0),
    ("copied", 0),
    ("cloned", 0),
    ("rev", 0),
    ("enumerate", 0),
    ("zip", 1),
    ("map", 1),
    ("fold", 2),
    ("sum", 0),
    ("product", 0),
];

impl Lowering<'_> {
    pub(super) fn method_call(&mut self, call: &ExprMethodCall) -> Result<Part> {
        let name = call.method.to_string();
        let sequence = SEQUENCES.iter().find(|known| known.0 == name);
        let known = sequence.is_some() || METHODS.contains(&name.as_str());
        let of_kernel = is_self(&call.receiver);
        // A method of `self`, or of a part of it, without arguments is evaluated on the CPU.
        let alone = call.args.is_empty() && !matches!(name.as_str(), "iter" | "into_iter");
        if !known || of_kernel || alone {
            let path = self_path(&call.receiver).or_else(|| of_kernel.then(String::new));
            if let Some(path) = path {
                return self.method_of_self(call, &path);
            }
        }
        if !known {
            return Err(refused::method(&name, call.method.span()));
        }
        match sequence {
            Some(&(_, count)) => self.of_sequence(call, &name, count),
            None => self.of_number(call, &name),
        }
    }

    /// A method that the text has a function for.
    fn of_number(&mut self, call: &ExprMethodCall, name: &str) -> Result<Part> {
        if let Some(fish) = &call.turbofish {
            let message = "only `sum` and `product` name a type";
            return Err(Error::new(fish.span(), message));
        }
        let of = self.asked(&call.receiver)?;
        self.checked(&of, call);
        let (twins, trees) = self.values(&call.args)?;
        let (twin, tree, method) = (of.twin, of.tree, &call.method);
        let kind = quote! { Kind::Method(#name, &#tree, &[#(#trees),*]) };
        Ok(self.slotted(
            call.method.span(),
            quote! { #twin.#method(#(#twins),*) },
            kind,
        ))
    }

    /// Checks that the text has the method for the type.
    fn checked(&mut self, of: &Part, call: &ExprMethodCall) {
        let marker = format_ident!("{}", call.method, span = call.method.span());
        if let Some(slot) = of.slot {
            let krate = self.krate_at(call.method.span());
            let check = quote::quote_spanned! { call.method.span() => has::<#krate::__device::method::#marker, _> };
            self.check(slot, call.method.span(), check);
        }
    }

    /// A method of an array or an iterator.
    fn of_sequence(&mut self, call: &ExprMethodCall, name: &str, count: usize) -> Result<Part> {
        if call.args.len() != count {
            let message = format!("`{name}` takes {count} arguments");
            return Err(Error::new(call.method.span(), message));
        }
        let of = self.asked_sequence(&call.receiver)?;
        self.checked(&of, call);
        let (mut twins, mut trees) = (Vec::new(), Vec::new());
        for argument in &call.args {
            let part = match strip(argument) {
                Expr::Closure(closure) => {
                    self.closure(closure, if name == "fold" { 2 } else { 1 })?
                }
                other if name == "zip" => self.sequence(other)?,
                other if name == "map" || (name == "fold" && !twins.is_empty()) => {
                    let message = "write a closure here: `|x| f(x)`";
                    return Err(Error::new(other.span(), message));
                }
                other => self.value(other)?,
            };
            twins.push(part.twin);
            trees.push(part.tree);
        }
        let (twin, tree, method, fish) = (of.twin, of.tree, &call.method, &call.turbofish);
        let twin = quote! { #twin.#method #fish(#(#twins),*) };
        let kind = quote! { Kind::Method(#name, &#tree, &[#(#trees),*]) };
        let span = call.method.span();
        if matches!(name, "fold" | "sum" | "product") {
            return Ok(self.slotted(span, twin, kind));
        }
        // The text knows the type of a sequence by itself.
        let slot = self.slot_of(span, false);
        Ok(Part {
            twin: self.probed(slot, twin, span),
            tree: quote! { Expr { ty: NONE, kind: #kind } },
            slot: Some(slot),
        })
    }

    /// An array or an iterator over one.
    pub(super) fn sequence(&mut self, expression: &Expr) -> Result<Part> {
        match strip(expression) {
            Expr::Reference(reference) if reference.mutability.is_none() => {
                let Part { twin, tree, slot } = self.asked_sequence(&reference.expr)?;
                let twin = quote! { (&#twin) };
                Ok(Part { twin, tree, slot })
            }
            other => self.asked_sequence(other),
        }
    }

    fn asked_sequence(&mut self, expression: &Expr) -> Result<Part> {
        match strip(expression) {
            Expr::Reference(_) => self.sequence(expression),
            other => self.asked(other),
        }
    }

    fn closure(&mut self, closure: &syn::ExprClosure, count: usize) -> Result<Part> {
        if closure.inputs.len() != count {
            let message = format!("the closure takes {count} arguments");
            return Err(Error::new(closure.span(), message));
        }
        let loops = std::mem::take(&mut self.loops);
        self.closures += 1;
        let made = self.scoped(|own| {
            let (mut seen, mut patterns) = (Vec::new(), Vec::new());
            for input in &closure.inputs {
                patterns.push(own.binding(input, &mut seen)?);
            }
            let Part { twin, tree, slot } = own.value(&closure.body)?;
            let (inputs, output) = (&closure.inputs, &closure.output);
            // A closure with a written type has a block.
            Ok(Part {
                twin: quote! { |#inputs| #output { #(#seen)* #twin } },
                tree: quote! {
                    Expr { ty: NONE, kind: Kind::Closure(&[#(#patterns),*], &#tree) }
                },
                slot,
            })
        });
        self.closures -= 1;
        self.loops = loops;
        made
    }

    /// A method of `self` or a field of it that has its own text, or is evaluated on the CPU if it
    /// takes nothing else.
    fn method_of_self(&mut self, call: &ExprMethodCall, path: &str) -> Result<Part> {
        let method = &call.method;
        let whole = Expr::MethodCall(call.clone());
        let path = match path {
            "" => method.to_string(),
            path => format!("{path}_{method}"),
        };
        if call.args.is_empty() {
            let value = quote! { #call };
            let part = self.of_self(&path, value, super::UseKind::Field, &whole)?;
            let slot = self.slot(method.span());
            let twin = self.probed(slot, part.twin, method.span());
            let slot = Some(slot);
            return Ok(Part {
                twin,
                tree: part.tree,
                slot,
            });
        }
        let of_kernel = is_self(&call.receiver);
        if of_kernel && *method == self.own_name {
            let message = "a function here does not call itself: use a loop of constant length";
            return Err(Error::new(method.span(), message));
        }
        let (twins, trees) = self.values(&call.args)?;
        let receiver = &call.receiver;
        let value = self.text_of_method(receiver, method);
        if !self.has_self {
            return Err(Error::new(call.span(), "the function takes no `self`"));
        }
        let at = self.used(format!("self_{path}"), value, super::UseKind::Method);
        let kind = quote! { Kind::MethodOfSelf(#at, &[#(#trees),*]) };
        Ok(self.slotted(
            method.span(),
            quote! { #receiver.#method(#(#twins),*) },
            kind,
        ))
    }

    /// The expression that adds a method's text: the hidden method beside it, or an error that says
    /// what is missing.
    fn text_of_method(&self, receiver: &Expr, method: &syn::Ident) -> TokenStream {
        let krate = self.krate;
        let hidden = format_ident!("__nearfield_device_{method}", span = method.span());
        let message = format!("the method `{method}` has no text for the GPU");
        quote! {{
            #[diagnostic::on_unimplemented(
                message = #message,
                note = "mark the method with #[nearfield::pair_fn]"
            )]
            trait HasText {}
            trait Missing {
                fn #hidden(&self, _: &mut #krate::__device::Device) -> #krate::__device::Method
                where
                    Self: HasText,
                {
                    ::core::unreachable!()
                }
            }
            impl<T: ?::core::marker::Sized> Missing for T {}
            #receiver.#hidden(device)
        }}
    }
}
