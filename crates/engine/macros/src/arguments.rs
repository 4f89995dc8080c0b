//! Arguments of the attributes.

use syn::{
    Error, Ident, LitInt, Path, Result, Token, bracketed,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    parse_quote,
    punctuated::Punctuated,
};

/// The arguments of an attribute, with their defaults.
pub(crate) struct Arguments {
    /// The module with the run-time half.
    pub(crate) krate: Path,
    pub(crate) antisymmetric: Option<Vec<LitInt>>,
    pub(crate) associated: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            krate: parse_quote!(::nearfield::kernels),
            antisymmetric: None,
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
                "antisymmetric" => {
                    input.parse::<Token![=]>()?;
                    let list;
                    bracketed!(list in input);
                    let channels = Punctuated::<LitInt, Token![,]>::parse_terminated(&list)?;
                    arguments.antisymmetric = Some(channels.into_iter().collect());
                }
                "associated" => arguments.associated = true,
                _ => {
                    let message = "the arguments are `crate = path`, `antisymmetric = [channels]` and `associated`";
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
