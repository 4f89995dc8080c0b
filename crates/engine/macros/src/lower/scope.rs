//! Names in scope, and the tables that a function refers to.

use super::{
    Lowering,
    tables::{Constant, Local, Name, Scope, Use, UseKind},
};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Ident, Item, Result};

/// Two names are the same variable where their text and their hygiene are the same: a macro's `x`
/// is not its caller's. A raw name is the same as a plain one.
fn key(ident: &Ident) -> String {
    let text = ident.to_string();
    let shown = format!("{:?}", ident.span());
    let context = shown.split_whitespace().next().unwrap_or_default();
    let text = text.strip_prefix("r#").unwrap_or(&text);
    // The compiler shows `#3 bytes(5..9)`; elsewhere a span shows no context.
    match context.starts_with('#') {
        true => format!("{text}{context}"),
        false => text.to_owned(),
    }
}

impl Lowering<'_> {
    /// Declares a variable whose type is that of a slot.
    pub(super) fn declare(&mut self, ident: &Ident, ty: u16, mutable: bool) -> u16 {
        let at = self.locals.len() as u16;
        self.locals.push(Local {
            name: plain_name(ident),
            ty,
            mutable,
            closures: self.closures,
            counted: false,
            cfg: self.conditions(),
            shadows: self.variable(ident),
        });
        let name = Name {
            key: key(ident),
            local: Some(at),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push(name);
        }
        at
    }

    /// The variable of this name, the innermost first; None where it is an item or unknown.
    pub(super) fn variable(&self, ident: &Ident) -> Option<u16> {
        let key = key(ident);
        let names = self.scopes.iter().rev().flat_map(|s| s.names.iter().rev());
        let mut known = names.filter(|name| name.key == key);
        known.next().and_then(|name| name.local)
    }

    /// Whether a name is that of a constant of a block around this place.
    pub(super) fn is_item(&self, ident: &Ident) -> bool {
        let key = key(ident);
        let mut names = self.scopes.iter().rev().flat_map(|s| s.names.iter().rev());
        names
            .find(|name| name.key == key)
            .is_some_and(|name| name.local.is_none())
    }

    /// Runs `f` in a scope of its own.
    pub(super) fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(Scope::default());
        let made = f(self);
        self.scopes.pop();
        made
    }

    /// Makes the items of a block known, which are so from its beginning on.
    pub(super) fn items(&mut self, block: &[syn::Stmt]) {
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        for statement in block {
            let syn::Stmt::Item(item) = statement else {
                continue;
            };
            if let Item::Const(constant) = item {
                let key = key(&constant.ident);
                scope.names.push(Name { key, local: None });
            }
            scope.items.push(item.to_token_stream());
        }
    }

    /// A constant, evaluated where the function's constants and imports are in scope; its number.
    pub(super) fn constant(&mut self, name: String, value: TokenStream) -> u16 {
        let items = self.scopes.iter().map(|scope| &scope.items);
        let items: Vec<_> = items.filter(|items| !items.is_empty()).collect();
        // The items of an inner block are behind those of the outer ones.
        let value = items.iter().rev().fold(
            value,
            |value, items| quote! { { #(#[allow(unused)] #items)* #value } },
        );
        let cfg = self.cfg_attribute();
        let (written, condition) = (value.to_string(), cfg.to_string());
        let same = |known: &Constant| {
            known.value.to_string() == written && known.cfg.to_string() == condition
        };
        if let Some(at) = self.constants.iter().position(same) {
            return at as u16;
        }
        self.constants.push(Constant { name, value, cfg });
        self.constants.len() as u16 - 1
    }

    /// A use of `self`; its number.
    pub(super) fn used(&mut self, name: String, value: TokenStream, kind: UseKind) -> u16 {
        let cfg = self.cfg_attribute();
        let (written, condition) = (value.to_string(), cfg.to_string());
        let same = |used: &Use| {
            used.kind == kind
                && used.value.to_string() == written
                && used.cfg.to_string() == condition
        };
        if let Some(at) = self.uses.iter().position(same) {
            return at as u16;
        }
        self.uses.push(Use {
            name,
            value,
            kind,
            cfg,
        });
        self.uses.len() as u16 - 1
    }
}

/// A name as it is written in the source, without the mark of a raw one.
pub(super) fn plain_name(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}
