//! Calls of functions, and of methods of `self`.

use super::{
    places::{is_self, plain},
    translator::{Code, Role, Translator, UseKind},
    ty::Ty,
};
use quote::{format_ident, quote};
use syn::{Error, Expr, ExprCall, Result, spanned::Spanned};

impl Translator<'_> {
    pub(super) fn call(&mut self, call: &ExprCall, expected: &Ty) -> Result<Code> {
        let Expr::Path(path) = &*call.func else {
            let message =
                "call functions by their names; closures are arguments of `map` and `fold` only";
            return Err(Error::new(call.func.span(), message));
        };
        let segments: Vec<_> = path
            .path
            .segments
            .iter()
            .map(|s| s.ident.to_string())
            .collect();
        let last = segments.last().cloned().unwrap_or_default();
        let of = segments.iter().rev().nth(1).cloned().unwrap_or_default();
        if let Some(code) = self.conversion(call, &of, &last)? {
            return Ok(code);
        }
        if matches!(of.as_str(), "f32" | "u32" | "i32" | "Vec3") {
            let arguments: Vec<_> = call.args.iter().collect();
            if let Some((receiver, arguments)) = arguments.split_first() {
                return self.known_method(&last, path.span(), receiver, arguments, expected);
            }
        }
        if last.starts_with(char::is_uppercase) {
            let message =
                "structs in kernels have named fields and derive Channels: `Name { field: value }`";
            return Err(Error::new(path.span(), message));
        }
        if segments.len() == 1 && !self.has_self && self.own_name == last {
            let message = "a function here does not call itself: use a loop of constant length";
            return Err(Error::new(path.span(), message));
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.expression(argument, &Ty::Unknown)?.text);
        }
        let name = self.hole(self.callee(path, &of)?);
        Ok(Code::atom(
            format!("::{name}({})", arguments.join(", ")),
            Ty::Unknown,
        ))
    }

    /// The expression that adds a function and gives its name.
    fn callee(&self, path: &syn::ExprPath, of: &str) -> Result<proc_macro2::TokenStream> {
        let krate = self.krate;
        if path
            .path
            .segments
            .iter()
            .any(|segment| !segment.arguments.is_empty())
        {
            let message = "functions of kernels have no generic parameters";
            return Err(Error::new(path.span(), message));
        }
        if of.starts_with(char::is_uppercase) {
            let mut hidden = path.clone();
            if let Some(last) = hidden.path.segments.last_mut() {
                last.ident = format_ident!("__nearfield_device_{}", last.ident);
            }
            return Ok(quote! { #hidden(device) });
        }
        Ok(quote! { <#path as #krate::__device::DeviceFunction>::device(device) })
    }

    /// Functions that make vectors and numbers of others.
    fn conversion(&mut self, call: &ExprCall, of: &str, last: &str) -> Result<Option<Code>> {
        let (function, ty) = match (of, last) {
            ("Vec3", "new") => ("Vec3", Ty::Vec3),
            ("Vec2", "new") => ("Vec2", Ty::Unknown),
            ("Vec3", "splat") => ("splat", Ty::Vec3),
            ("Vec3", "from" | "from_array") => ("to_vec3", Ty::Vec3),
            ("f32", "from") => ("to_f32", Ty::F32),
            ("f32", "from_bits") => ("from_bits", Ty::F32),
            ("u32", "from") => ("to_u32", Ty::U32),
            ("i32", "from") => ("to_i32", Ty::I32),
            _ => return Ok(None),
        };
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.expression(argument, &Ty::Unknown)?.text);
        }
        let arguments = arguments.join(", ");
        Ok(Some(Code::atom(
            if function.starts_with("Vec") {
                format!("nf::{function}{{{arguments}}}")
            } else {
                format!("nf::{function}({arguments})")
            },
            ty,
        )))
    }

    /// A method of `self` or a field of it that has its own text, or is evaluated on the CPU if it
    /// takes nothing else.
    pub(super) fn method_of_self(
        &mut self,
        expression: &Expr,
        call: &syn::ExprMethodCall,
        path: &str,
    ) -> Result<Code> {
        let method = &call.method;
        let path = if path.is_empty() {
            method.to_string()
        } else {
            format!("{path}_{method}")
        };
        if call.args.is_empty() {
            let value = plain(expression);
            return self.of_self(&path, value, UseKind::Field, expression);
        }
        let of_kernel = is_self(&call.receiver);
        if of_kernel && *method == self.own_name {
            let message = "a function here does not call itself: use a loop of constant length";
            return Err(Error::new(method.span(), message));
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.expression(argument, &Ty::Unknown)?.text);
        }
        let receiver = &call.receiver;
        let hidden = format_ident!("__nearfield_device_{method}");
        let value = if of_kernel && self.role == Role::Symmetric && method == "pair" {
            quote! { ::core::clone::Clone::clone(pair_of_kernel) }
        } else {
            quote! { #receiver.#hidden(device) }
        };
        let used = self.of_self(&path, value, UseKind::Method, expression)?;
        let name = format_ident!("{}", used.text);
        let begun = self.hole(quote! { function.method(&#name) });
        Ok(Code::atom(
            format!("::{begun}, {})", arguments.join(", ")),
            Ty::Unknown,
        ))
    }
}
