//! Arguments of the attributes.

use syn::{
    Error, Ident, Path, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    parse_quote,
};

/// The arguments of an attribute, with their defaults.
pub(crate) struct Arguments {
    /// The module with the run-time half.
    pub(crate) krate: Path,
    pub(crate) associated: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            krate: parse_quote!(::nearfield::kernels),
            associated: false,
        }
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            match name.to_string().as_str() {
                "crate" => {
                    input.parse::<Token![=]>()?;
                    arguments.krate = input.call(Path::parse_mod_style)?;
                }
                "associated" => arguments.associated = true,
                _ => {
                    let message = "the arguments are `crate = path` and `associated`";
                    return Err(Error::new(name.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}
